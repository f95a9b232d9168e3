"""A Redis server of ours, with a password, and with TLS if wanted."""

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from support.process import ServerProcess, free_port

UNPACKED = Path(__file__).parents[2] / ".build" / "redis"
PASSWORD = "se@cret"


def program() -> str:
    unpacked = UNPACKED / "usr" / "bin" / "redis-server"
    found = os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or (str(unpacked) if unpacked.exists() else None)
    if found is None:
        pytest.skip("there is no redis-server: tests/tools/setup brings it")
    return found


class RedisServer(ServerProcess):
    name = "redis"

    def __init__(self, folder: Path, tls: bool = False):
        super().__init__(folder)
        self.port, self.tls = free_port(), tls
        if tls:
            self.make_certificates()

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def make_certificates(self):
        def openssl(*arguments: str):
            subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder)

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=a test's authority")
        openssl("req", *key, "-keyout", "redis.key", "-out", "redis.csr", "-subj", "/CN=redis")
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", "redis.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "names", "-out", "redis.pem")

    def command(self) -> list[str]:
        port = ["--port", str(self.port)]
        if self.tls:
            file = {name: str(self.folder / name) for name in ("redis.pem", "redis.key", "ca.pem")}
            port = ["--port", "0", "--tls-port", str(self.port), "--tls-cert-file", file["redis.pem"],
                    "--tls-key-file", file["redis.key"], "--tls-ca-cert-file", file["ca.pem"], "--tls-auth-clients", "no"]
        libraries = Path(program()).parents[1] / "lib" / "x86_64-linux-gnu"
        return ["env", f"LD_LIBRARY_PATH={libraries}", program(), *port, "--bind", "127.0.0.1", "--dir", str(self.folder), "--requirepass",
                PASSWORD, "--save", "", "--appendonly", "no"]

    def is_ready(self) -> bool:
        return "Ready to accept connections" in self.log.read_text(errors="replace").rsplit("oO0OoO0OoO0Oo", 1)[-1]

    def url(self, password: str = PASSWORD, port: int | None = None) -> str:
        return f"redis{'s' * self.tls}://:{password}@127.0.0.1:{port or self.port}/2"


class AgelessProxy:
    """A proxy between gateways and Redis. With `lie` it makes every shared reply look as if it had
    all changes: as if gateways did not compare the position in MariaDB's log at the front of a
    reply (numbers for some domains) with their own."""

    def __init__(self, redis: RedisServer, lies: bool):
        self.redis, self.lies = redis, lies
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = redis.url(port=self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                (gateway, _) = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.redis.port))
            for serve in (self.pass_questions, self.pass_replies):
                threading.Thread(target=serve, args=(gateway, server), daemon=True).start()

    def pass_questions(self, gateway: socket.socket, server: socket.socket):
        with server, contextlib.suppress(OSError):
            while data := gateway.recv(1 << 16):
                server.sendall(data)

    def pass_replies(self, gateway: socket.socket, server: socket.socket):
        with gateway, server.makefile("rb") as replies, contextlib.suppress(OSError):
            while line := replies.readline():
                if line.startswith(b"$") and (length := int(line[1:])) >= 0:
                    entry = replies.read(length)
                    line += (self.raised(entry) if self.lies else entry) + replies.read(2)
                gateway.sendall(line)

    @staticmethod
    def raised(entry: bytes) -> bytes:
        entry = bytearray(entry)
        (domains,) = struct.unpack_from("<I", entry)
        for domain in range(domains):
            struct.pack_into("<Q", entry, 4 + 12 * domain + 4, 1 << 62)
        return bytes(entry)

    def close(self):
        self.listener.close()
