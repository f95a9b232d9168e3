"""A server before MariaDB that asks one account for another plugin than MariaDB has."""

import hashlib
import socket
import struct
import threading

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from .mariadb import MariadbServer

SCRAMBLE = b"abcdefghijklmnopqrst"
TLS = 1 << 11


def read_packet(stream: socket.socket) -> tuple[int, bytes]:
    def read(count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = stream.recv(count - len(data))
            if not piece:
                raise ConnectionError("closed within a packet")
            data += piece
        return data

    header = struct.unpack("<I", read(4))[0]
    return header >> 24, read(header & 0xFFFFFF)


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload) | number << 24) + payload


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ other[at % len(other)] for at, a in enumerate(one))


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def native_proof(password: bytes, scramble: bytes) -> bytes:
    once = hashlib.sha1(password).digest()
    return xor(once, hashlib.sha1(scramble + hashlib.sha1(once).digest()).digest())


class PluginMariadb(threading.Thread):
    """Forwards to MariaDB. The account `asked` logs in by `plugin`; then it is the account `plain`
    of MariaDB. All that it sends is in `received`."""

    PASSWORD = b"a pass word"

    def __init__(self, mariadb: MariadbServer, plugin: str, knows_password: bool = True):
        super().__init__(daemon=True)
        self.mariadb, self.plugin, self.knows_password = mariadb, plugin, knows_password
        self.received = b""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        self.listener.close()

    def serve(self, client: socket.socket):
        server = socket.create_connection(("127.0.0.1", self.mariadb.port))
        try:
            number, greeting = read_packet(server)
            client.sendall(packet(number, greeting))
            number, login = read_packet(client)
            if login[32 : login.index(0, 32)] != b"asked":
                server.sendall(packet(number, login))
            else:
                self.received += login
                self.client, self.number = client, number
                if not self.is_right(self.ask(b"\xfe" + self.plugin.encode() + b"\0" + SCRAMBLE + b"\0")):
                    client.sendall(packet(self.number + 1, b"\xff\x15\x04#28000Access denied"))
                    return
                self.log_in(server, greeting, login)
                client.sendall(packet(self.number + 1, read_packet(server)[1]))
            threading.Thread(target=self.forward, args=(server, client), daemon=True).start()
            self.forward(client, server)
        except (OSError, ConnectionError):
            pass
        finally:
            client.close()
            server.close()

    def ask(self, request: bytes) -> bytes:
        self.client.sendall(packet(self.number + 1, request))
        self.number, answer = read_packet(self.client)
        self.received += answer
        return answer

    def is_right(self, answer: bytes) -> bool:
        if self.plugin == "mysql_clear_password":
            return answer == self.PASSWORD + b"\0"
        assert self.plugin == "caching_sha2_password"
        once = sha256(self.PASSWORD)
        if self.knows_password:
            if answer != xor(once, sha256(sha256(once) + SCRAMBLE)):
                return False
            self.client.sendall(packet(self.number + 1, b"\x01\x03"))
            self.number += 1
            return True
        # It needs the password itself, encrypted by its key.
        answer = self.ask(b"\x01\x04")
        if answer == b"\x02":
            public = self.key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            answer = self.ask(b"\x01" + public)
            oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
            answer = xor(self.key.decrypt(answer, oaep), SCRAMBLE)
        return answer == self.PASSWORD + b"\0"

    @staticmethod
    def log_in(server: socket.socket, greeting: bytes, login: bytes):
        """Logs in to MariaDB as `plain`, with the client's capabilities."""
        at = greeting.index(0) + 5
        scramble = greeting[at : at + 8] + greeting[at + 27 : at + 39]
        # No schema, and a length of one byte before the proof.
        capabilities = struct.unpack("<I", login[:4])[0] & ~(1 << 3 | 1 << 20 | 1 << 21)
        payload = struct.pack("<I", capabilities) + login[4:32] + b"plain\0\x14" + native_proof(b"secret", scramble)
        server.sendall(packet(1, payload + b"mysql_native_password\0"))

    @staticmethod
    def forward(source: socket.socket, to: socket.socket):
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass
