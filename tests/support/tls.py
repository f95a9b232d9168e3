"""Selkie with TLS, and raw TLS connections to it."""

import socket
import ssl
import struct
from pathlib import Path

import bson
import pymongo
from cryptography import x509
from pymongo.errors import PyMongoError

from .selkie import SelkieServer


class TlsServer(SelkieServer):
    """Selkie with TLS, on the embedded store. `ca` and `client` (a file with certificate and key)
    are those of its clients."""

    def __init__(self, folder: Path, *options: str, ca: Path, client: Path | None = None):
        super().__init__(folder, options=options)
        self.ca, self.client_file = ca, client

    def tls_client(self, **options) -> pymongo.MongoClient:
        files = {"tlsCAFile": str(self.ca)}
        if self.client_file:
            files["tlsCertificateKeyFile"] = str(self.client_file)
        return pymongo.MongoClient("localhost", self.port, directConnection=True, **{"tls": True, **files, **options})

    def is_ready(self) -> bool:
        plain = any(option in ("off", "allow", "prefer") for option in self.options)
        try:
            with (self.client() if plain else self.tls_client(serverSelectionTimeoutMS=500)) as client:
                return client.admin.command("ping")["ok"] == 1
        except PyMongoError:
            return False


def context(ca: Path, client: Path | None = None) -> ssl.SSLContext:
    """Returns the settings of a client."""
    made = ssl.create_default_context(cafile=str(ca))
    if client:
        made.load_cert_chain(str(client))
    return made


def message(body: dict, request: int = 1) -> bytes:
    """Returns an OP_MSG."""
    document = b"\0\0\0\0\0" + bson.encode(body)
    return struct.pack("<iiii", 16 + len(document), request, 0, 2013) + document


class Raw:
    """A connection without a driver, so that a test sees each handshake and each end."""

    def __init__(self, port: int, settings: ssl.SSLContext | None, host: str = "localhost"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        try:
            if settings:
                self.socket = settings.wrap_socket(self.socket, server_hostname=host)
            # In TLS 1.3 the server verifies the client's certificate after the client's handshake.
            self.ask({"hello": 1})
        except BaseException:
            self.socket.close()
            raise

    def read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return bytes(data)

    def ask(self, body: dict) -> dict:
        self.socket.sendall(message({**body, "$db": "admin"}))
        return self.reply()

    def reply(self) -> dict:
        length = struct.unpack("<i", self.read(4))[0]
        return bson.decode(self.read(length - 4)[17:])

    def certificate(self) -> int:
        """Returns the serial number of the server's certificate."""
        return x509.load_der_x509_certificate(self.socket.getpeercert(True)).serial_number

    def close(self):
        self.socket.close()


def refusal(port: int, settings: ssl.SSLContext | None, host: str = "localhost") -> str:
    """Returns how a connection is refused; fails if it is not."""
    try:
        Raw(port, settings, host).close()
    except (OSError, ConnectionError) as error:
        return str(error)
    raise AssertionError("the connection was accepted")
