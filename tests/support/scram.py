"""The client's side of SCRAM, for saying what no driver would say."""

import base64
import hashlib
import hmac
import os

from bson import Binary


MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-1")


class ScramClient:
    """One conversation."""

    def __init__(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256"):
        self.mechanism = mechanism
        self.algorithm = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}[mechanism]
        digest = hashlib.md5(f"{user}:mongo:{password}".encode()).hexdigest()
        self.password = password if self.algorithm == "sha256" else digest
        name = user.replace("=", "=3D").replace(",", "=2C")
        self.bare = f"n={name},r={base64.b64encode(os.urandom(24)).decode()}"

    def first(self) -> Binary:
        return Binary(f"n,,{self.bare}".encode())

    def final(self, server_first: bytes) -> Binary:
        """The client's last message, with its proof."""
        server_first = bytes(server_first).decode()
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        salt, iterations = base64.b64decode(parts["s"]), int(parts["i"])
        salted = hashlib.pbkdf2_hmac(self.algorithm, self.password.encode(), salt, iterations)
        client_key = hmac.new(salted, b"Client Key", self.algorithm).digest()
        without_proof = f"c=biws,r={parts['r']}"
        message = f"{self.bare},{server_first},{without_proof}".encode()
        stored_key = hashlib.new(self.algorithm, client_key).digest()
        signature = hmac.new(stored_key, message, self.algorithm).digest()
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return Binary(f"{without_proof},p={base64.b64encode(proof).decode()}".encode())


def start(wire, client: ScramClient, database: str, **fields) -> dict:
    """Sends `saslStart`."""
    return wire.run({"saslStart": 1, "mechanism": client.mechanism, "payload": client.first(), "$db": database, **fields})


def proceed(wire, payload: bytes, database: str, conversation: int = 1) -> dict:
    """Sends `saslContinue`."""
    return wire.run({"saslContinue": 1, "conversationId": conversation, "payload": Binary(payload), "$db": database})


def log_in(wire, user: str, password: str, database: str, mechanism: str = "SCRAM-SHA-256") -> dict:
    """Logs in; returns the last reply, or the first that is an error."""
    client = ScramClient(user, password, mechanism)
    reply = start(wire, client, database)
    if reply["ok"]:
        reply = proceed(wire, client.final(reply["payload"]), database)
    if reply["ok"] and not reply["done"]:
        reply = proceed(wire, b"", database)
    return reply
