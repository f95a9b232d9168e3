"""A Redis server of ours, with a password, and with TLS if wanted."""

import os
import shutil
import subprocess
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

    def url(self, password: str = PASSWORD) -> str:
        return f"redis{'s' * self.tls}://:{password}@127.0.0.1:{self.port}/2"
