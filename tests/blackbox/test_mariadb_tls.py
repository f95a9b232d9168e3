"""TLS to MariaDB, and the authentication plugins of Selkie's own account there."""

import socket
import struct
import threading

import pymysql
import pytest

from blackbox.test_external_writes import LOGGING
from support.authority import CLIENT_USE, Authority
from support.mariadb import MariadbServer
from support.selkie import SelkieServer, run

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

PRIVILEGES = "ALL PRIVILEGES ON *.*"


class TlsMariadb:
    """A MariaDB with TLS, whose certificate can be replaced."""

    def __init__(self, folder):
        self.authority = Authority(folder / "ca")
        self.other = Authority(folder / "other", "Other CA")
        self.certificate = self.authority.issue("server.pem")
        options = (
            f"--ssl-cert={self.certificate}", f"--ssl-key={self.certificate}", f"--ssl-ca={self.authority.file}", *LOGGING,
        )
        self.server = MariadbServer(folder / "m", options).start()
        self.sql = self.server.sql
        self.sql("INSTALL SONAME 'auth_ed25519'")
        self.sql("CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL")
        self.sql("CREATE USER x509@'%' IDENTIFIED BY 'secret' REQUIRE X509")
        self.sql("CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('s3cret')")
        for user in ("tls", "x509", "ed"):
            self.sql(f"GRANT {PRIVILEGES} TO {user}@'%'")

    def url(self, user: str, parameters: str = "", host: str = "127.0.0.1", password: str = "secret") -> str:
        return f"mysql://{user}:{password}@{host}:{self.server.port}/?{parameters}"

    @property
    def verified(self) -> str:
        return f"tls=verify-identity&tls-ca={self.authority.file}"

    def present(self, certificate):
        """Makes MariaDB present another certificate."""
        self.certificate.write_bytes(certificate.read_bytes())
        self.sql("FLUSH SSL")


class At:
    """A MariaDB at a URL, for Selkie."""

    def __init__(self, url: str):
        self.url = lambda: url


@pytest.fixture(scope="module")
def mariadb(store, tmp_path_factory):
    mariadb = TlsMariadb(tmp_path_factory.mktemp("tls"))
    yield mariadb
    mariadb.server.remove()


def refusal(url: str) -> str:
    """Returns the error of a Selkie that does not start."""
    done = run("serve", "--listen", "127.0.0.1:0", "--mariadb", url)
    assert done.returncode != 0, url
    return done.stderr


def works(folder, url: str, *options: str):
    selkie = SelkieServer(folder, At(url), options).start()
    try:
        with selkie.client() as client:
            client.d.c.insert_one({"x": "y" * 100_000})
            assert client.d.c.find_one()["x"] == "y" * 100_000
            large = [{"n": n, "x": "z" * 50_000} for n in range(200)]
            client.d.c.insert_many(large)
            assert sum(len(document["x"]) for document in client.d.c.find({"n": {"$gte": 0}})) == 10_000_000
            client.drop_database("d")
            return client.admin.command("serverStatus")
    finally:
        selkie.kill()


def test_documents_over_tls(mariadb, tmp_path):
    """The account requires TLS, so that all connections have it: those of the pools, of the
    follower of the log, and for lookups."""
    status = works(tmp_path, mariadb.url("tls", mariadb.verified), "--cache", "documents", "--external-writes", "follow")
    assert status["ok"] == 1
    for parameters in ("tls=required", "tls=preferred", f"ssl-mode=VERIFY_CA&ssl-ca={mariadb.authority.file}"):
        works(tmp_path / "more", mariadb.url("tls", parameters, password="secret"))


def test_over_a_unix_socket(mariadb, tmp_path):
    works(tmp_path, f"mysql://tls:secret@localhost/?socket={mariadb.server.socket}&{mariadb.verified}")


def test_accounts_that_require_tls_or_a_certificate(mariadb, tmp_path):
    assert "requires TLS" in refusal(mariadb.url("tls"))
    assert "x509" in refusal(mariadb.url("x509", mariadb.verified))
    own = mariadb.authority.issue("gateway.pem", (CLIENT_USE,))
    works(tmp_path, mariadb.url("x509", f"{mariadb.verified}&tls-certificate={own}"))


def test_passwords_by_ed25519(mariadb, tmp_path):
    works(tmp_path, mariadb.url("ed", password="s3cret"))
    works(tmp_path / "tls", mariadb.url("ed", mariadb.verified, password="s3cret"))
    assert "refuses user 'ed'" in refusal(mariadb.url("ed", password="wrong"))


def test_certificates_that_are_refused(mariadb):
    original = mariadb.authority.issue("original.pem")
    try:
        for certificate, verify, part in [
            (mariadb.other.issue("mariadb.pem"), "verify-ca", "not signed by a certificate in tls-ca"),
            (mariadb.authority.issue("expired.pem", hours=(-3, -1)), "verify-ca", "has expired"),
            (mariadb.authority.issue("elsewhere.pem", host="db.example.org"), "verify-identity", "not for '127.0.0.1'"),
        ]:
            mariadb.present(certificate)
            error = refusal(mariadb.url("tls", f"tls={verify}&tls-ca={mariadb.authority.file}"))
            assert part in error and "secret" not in error, error
    finally:
        mariadb.present(original)


def test_a_name_matters_only_where_it_is_verified(mariadb, tmp_path):
    original = mariadb.authority.issue("original.pem")
    mariadb.present(mariadb.authority.issue("elsewhere.pem", host="db.example.org"))
    try:
        works(tmp_path, mariadb.url("tls", f"tls=verify-ca&tls-ca={mariadb.authority.file}"))
    finally:
        mariadb.present(original)


def test_settings_that_do_not_fit_together(mariadb, tmp_path):
    missing = tmp_path / "missing.pem"
    for parameters, part in [
        ("tls=on", "verify-identity"), ("tls=verify-ca", "tls-ca"), (f"tls=required&tls-ca={missing}", "no effect"),
        ("tls-key=x", "tls-certificate"), ("tsl=required", "known: socket, tls"), (f"tls-ca={missing}", "missing.pem"),
    ]:
        done = run("check", "--mariadb", mariadb.url("tls", parameters))
        assert done.returncode != 0 and part in done.stderr and "secret" not in done.stderr, (parameters, done.stderr)


def test_a_server_without_tls(store, tmp_path):
    server = MariadbServer(tmp_path / "m").start()
    try:
        server.sql("CREATE USER joe@'%' IDENTIFIED BY 'secret'")
        server.sql(f"GRANT {PRIVILEGES} TO joe@'%'")
        url = f"mysql://joe:secret@127.0.0.1:{server.port}/"
        assert "offers no TLS" in refusal(f"{url}?tls=required")
        works(tmp_path, f"{url}?tls=preferred")
    finally:
        server.remove()


def test_new_files_count_without_a_restart(mariadb, tmp_path):
    """The authority changes. New connections verify by its file as it is then."""
    ca = tmp_path / "ca.pem"
    ca.write_bytes(mariadb.authority.file.read_bytes())
    original = mariadb.authority.issue("original.pem")
    selkie = SelkieServer(tmp_path / "s", At(mariadb.url("tls", f"tls=verify-identity&tls-ca={ca}"))).start()
    try:
        with selkie.client() as client:
            client.d.c.insert_one({"_id": 1})
            ca.write_bytes(mariadb.other.file.read_bytes())
            mariadb.present(mariadb.other.issue("mariadb.pem"))
            for (session,) in mariadb.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'tls'"):
                try:
                    mariadb.sql(f"KILL {session}")
                except pymysql.err.MySQLError:
                    pass
            assert client.d.c.find_one() == {"_id": 1}
            client.d.c.insert_one({"_id": 2})
    finally:
        selkie.kill()
        mariadb.present(original)


class Asking(threading.Thread):
    """A server that asks for another plugin than the client's, and records the client's answers."""

    def __init__(self, plugin: bytes):
        super().__init__(daemon=True)
        self.plugin, self.received = plugin, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        client = self.listener.accept()[0]
        greeting = (
            b"\x0a5.5.5-10.11.19-MariaDB\0\x21\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15" + bytes(6)
            + b"\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0"
        )
        client.sendall(struct.pack("<I", len(greeting)) + greeting)
        self.received += client.recv(4096)
        switch = b"\xfe" + (self.plugin + b"\0abcdefghijklmnopqrst\0" if self.plugin else b"")
        client.sendall(struct.pack("<I", len(switch) | 2 << 24) + switch)
        while chunk := client.recv(4096):
            self.received += chunk
            if self.plugin == b"caching_sha2_password":
                client.sendall(b"\x02\0\0\x04\x01\x04")


@pytest.mark.parametrize("plugin, part", [
    (b"mysql_clear_password", "verify-identity"), (b"caching_sha2_password", "verify-identity"), (b"dialog", "pam_use_cleartext"),
    (b"", "not secure"), (b"mysql_old_password", "not secure"), (b"auth_socket", "Unix socket"), (b"parsec", "mysql_native_password"),
])
def test_plugins_that_cannot_be_used(store, plugin, part):
    """Only a verified MariaDB gets a password in clear text."""
    server = Asking(plugin)
    error = refusal(f"mysql://joe:s3cret@127.0.0.1:{server.port}/?tls=preferred")
    assert part in error and "plugin" in error and "s3cret" not in error, error
    server.join(5)
    assert b"joe" in server.received and b"s3cret" not in server.received
