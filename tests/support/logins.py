"""Logins that every driver must be able to make, and those that must fail: URIs with their
outcomes, and servers to try them on.

A program of a driver reads URIs, one a line. For each it sends `{find: "c"}` to the database
`test`, then `{connectionStatus: 1}`, and prints `user NAME`, or `error CODE`.
"""

import subprocess
import time
from pathlib import Path

import pymongo
from pymongo.errors import PyMongoError

from .authority import CLIENT_USE, Authority
from .mariadb import MariadbServer
from .mongod import MongodServer
from .process import ServerProcess
from .selkie import SelkieServer

ROOT, PASSWORD = "root", "secret"
MECHANISMS = ("SCRAM-SHA-1", "SCRAM-SHA-256")
SUBJECT = "CN=known,O=Clients,C=CH"


class LoginServer:
    """A server that requires logins, and offers TLS on the same port. `store`: Selkie's, or
    `mongod` for MongoDB itself."""

    def __init__(self, folder: Path, store: str):
        self.authority = Authority(folder / "ca")
        certificate = self.authority.issue("server.pem")
        self.known, self.unknown = (
            self.authority.issue(f"{name}.pem", usages=(CLIENT_USE,), common_name=name, organization="Clients")
            for name in ("known", "unknown")
        )
        # Its own server, because the users of a MariaDB are those of all gateways.
        self.mariadb = MariadbServer(folder / "mariadb").start() if store == "mariadb" else None
        self.server: ServerProcess = (
            MongodServer(folder, (
                "--auth", "--tlsMode", "allowTLS", "--tlsCertificateKeyFile", str(certificate),
                "--tlsCAFile", str(self.authority.file), "--tlsAllowConnectionsWithoutCertificates",
            )) if store == "mongod" else
            SelkieServer(folder, self.mariadb, (
                "--auth", "--tls", "allow", "--tls-certificate", str(certificate),
                "--tls-ca", str(self.authority.file), "--tls-client-certificates", "optional",
            ), "--embedded-mariadb" if store == "embedded-mariadb" else "--data")
        ).start()
        with self.server.client(directConnection=True) as first:
            first.admin.command("createUser", ROOT, pwd=PASSWORD, roles=["root"])
        with self.server.client(username=ROOT, password=PASSWORD) as root:
            read = {"roles": [{"role": "read", "db": "test"}]}
            root.test.command("createUser", "both", pwd="p/ü %1", **read)
            for mechanism in MECHANISMS:
                root.test.command("createUser", mechanism, pwd="p", mechanisms=[mechanism], **read)
            root["$external"].command("createUser", SUBJECT, **read)

    def uri(self, login: str = "", certificate: Path | None = None, **options: str) -> str:
        if options.pop("tls", None) or certificate:
            options |= {"tls": "true", "tlsCAFile": str(self.authority.file)}
        if certificate:
            options["tlsCertificateKeyFile"] = str(certificate)
        options |= {"authSource": "test", "directConnection": "true"} | options if login else {"directConnection": "true"}
        words = "&".join(f"{key}={value}" for key, value in options.items())
        return f"mongodb://{login}{'@' * bool(login)}localhost:{self.server.port}/?{words}"

    def attempts(self) -> list[tuple[str, str]]:
        """The URIs, each with the outcome that is right."""
        both = "both:p%2F%C3%BC%20%251"
        made = [(self.uri(both), "user both"), (self.uri(both, tls="yes"), "user both"), (self.uri(), "error 13")]
        for mechanism in MECHANISMS:
            other = next(name for name in MECHANISMS if name != mechanism)
            made += [
                (self.uri(both, authMechanism=mechanism), "user both"),
                (self.uri(both, authMechanism=mechanism, tls="yes"), "user both"),
                (self.uri("both:wrong", authMechanism=mechanism), "error 18"),
                (self.uri("nobody:p", authMechanism=mechanism), "error 18"),
                # The driver asks which mechanisms the user has.
                (self.uri(f"{mechanism}:p"), f"user {mechanism}"),
                (self.uri(f"{mechanism}:wrong"), "error 18"),
                (self.uri(f"{mechanism}:p", authMechanism=other), "error 18"),
            ]
        x509 = {"authMechanism": "MONGODB-X509"}
        return made + [
            (self.uri(certificate=self.known), "error 13"),
            (self.uri(certificate=self.known, **x509), f"user {SUBJECT}"),
            (self.uri(certificate=self.unknown, **x509), "error 11"),
            (self.uri(tls="yes", **x509), "error 18"),
        ]

    def remove(self):
        self.server.kill()
        self.server.remove()
        if self.mariadb:
            self.mariadb.remove()


def check(server: LoginServer, program: list[str], **options):
    """Runs a program of a driver, and compares its outcomes with the right ones."""
    attempts = server.attempts()
    lines = "".join(f"{uri}\n" for uri, _ in attempts)
    done = subprocess.run(program, input=lines, capture_output=True, text=True, timeout=200, **options)
    seen = [line for line in done.stdout.splitlines() if line.startswith(("user ", "error"))]
    expected = [outcome for _, outcome in attempts]
    differing = [(uri, outcome, got) for (uri, outcome), got in zip(attempts, seen) if outcome != got]
    assert seen == expected, (differing, done.stdout[-2000:], done.stderr[-4000:])
