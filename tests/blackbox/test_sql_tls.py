"""TLS of SQL clients: with Selkie, and from Selkie to MariaDB; and the handshake's bad input."""

import random
import socket
import ssl
import struct
import subprocess

import pymysql
import pymysql._auth as _auth
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from blackbox.test_mariadb_tls import TlsMariadb
from blackbox.test_sql_clients import change_user
from support.authority import CLIENT_USE
from support.process import free_port
from support.selkie import SelkieServer

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

PASSWORD_OF_32 = "a password of 32 bytes, as a key"
TLS = 1 << 11


class Gateway:
    """A Selkie for SQL clients. `url`: of MariaDB."""

    def __init__(self, folder, mariadb: TlsMariadb, url: str, *options: str):
        self.mariadb, self.port = mariadb, free_port()
        listen = ("--sql-listen", f"127.0.0.1:{self.port}", "--threads", "1")
        self.selkie = SelkieServer(folder, None, (*listen, "--mariadb", url, *options))
        self.selkie.command = lambda: [
            word for word in SelkieServer.command(self.selkie) if word not in ("--data", str(self.selkie.data))
        ]
        self.selkie.is_ready = self.accepts
        self.selkie.start()

    def accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True

    def connect(self, user: str = "plain", password: str = "secret", tls: bool = True, **options) -> pymysql.Connection:
        secured = {"ssl": {"ca": str(self.mariadb.authority.file), "check_hostname": True, **options.pop("ssl", {})}}
        options |= secured if tls else {"ssl_disabled": True}
        return pymysql.connect(host="127.0.0.1", port=self.port, user=user, password=password, autocommit=True, **options)

    def refusal(self, *arguments, **options) -> tuple:
        with pytest.raises(pymysql.err.MySQLError) as refused:
            self.connect(*arguments, **options)
        return refused.value.args


def one(connection, sql: str):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()


@pytest.fixture(scope="module")
def mariadb(store, tmp_path_factory):
    mariadb = TlsMariadb(tmp_path_factory.mktemp("tls"))
    mariadb.sql("CREATE DATABASE d")
    mariadb.sql("CREATE TABLE d.t (id INT PRIMARY KEY, body LONGTEXT)")
    mariadb.sql("INSERT INTO d.t VALUES (1, 'one')")
    mariadb.sql("CREATE USER plain@'%' IDENTIFIED BY 'secret'")
    mariadb.sql("CREATE USER subject@'%' IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=x'")
    for user in ("plain", "subject"):
        mariadb.sql(f"GRANT ALL PRIVILEGES ON *.* TO {user}@'%'")
    yield mariadb
    mariadb.server.remove()


def listener(mariadb, mode: str) -> tuple[str, ...]:
    certificate = mariadb.authority.issue("listener.pem")
    return "--tls", mode, "--tls-certificate", str(certificate)


@pytest.fixture(scope="module")
def both(mariadb, tmp_path_factory):
    """TLS on both sides, and certificates of clients."""
    options = (
        *listener(mariadb, "prefer"), "--tls-ca", str(mariadb.authority.file), "--tls-client-certificates", "optional",
    )
    own = f"tls-certificate={mariadb.authority.issue('gateway.pem', (CLIENT_USE,))}"
    url = mariadb.url("tls", f"{mariadb.verified}&{own}")
    gateway = Gateway(tmp_path_factory.mktemp("both"), mariadb, url, *options, "--cache", "both")
    yield gateway
    assert gateway.selkie.is_running()
    gateway.selkie.kill()


@pytest.fixture(scope="module")
def front(mariadb, tmp_path_factory):
    """TLS with clients only."""
    gateway = Gateway(tmp_path_factory.mktemp("front"), mariadb, mariadb.url("plain"), *listener(mariadb, "require"))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.selkie.kill()


@pytest.mark.parametrize("tls", [True, False])
def test_statements_with_and_without_tls(both, tls):
    with both.connect(tls=tls, database="d") as connection:
        assert (connection._secure or False) is tls
        assert one(connection, "SELECT CURRENT_USER(), DATABASE()") == ("plain@%", "d")
        assert one(connection, "SHOW STATUS LIKE 'Ssl_version'")[1].startswith("TLS"), "Selkie's connection"
        for length in (10, 70_000, 17_000_000):
            with connection.cursor() as cursor:
                cursor.execute("REPLACE INTO t VALUES (2, %s)", ("x" * length,))
            assert one(connection, "SELECT body FROM t WHERE id = 2") == ("x" * length,)
        for _ in range(3):
            assert one(connection, "SELECT body FROM t WHERE id = 1") == ("one",)


def test_results_are_cached_with_tls(both):
    with both.connect(database="d") as connection, both.selkie.client() as client:
        hits = lambda: client.admin.command("serverStatus")["cache"]["sql"]["hits"]
        for _ in range(200):
            before = hits()
            one(connection, "SELECT body FROM t WHERE id = 1")
            if hits() > before:
                return
    pytest.fail("never answered from the cache")


def test_tls_is_required_of_clients(front, mariadb):
    code, message = front.refusal(tls=False)
    assert code == 3159 and "TLS" in message
    with front.selkie.client(tls=True, tlsCAFile=str(mariadb.authority.file)) as client:
        assert client.admin.command("serverStatus")["selkie"]["sqlClients"]["logins"]["withoutTls"] == 1
    with front.connect() as connection:
        assert one(connection, "SELECT CURRENT_USER()") == ("plain@%",)
        assert one(connection, "SHOW STATUS LIKE 'Ssl_version'") == ("Ssl_version", "")


def test_clients_verify_selkie(both, mariadb):
    other = {"ca": str(mariadb.other.file)}
    code, message = both.refusal(ssl=other)
    assert code == 2003 and "certificate" in message.lower()
    with socket.create_connection(("localhost", both.port)) as raw:
        raw.recv(4096)
        raw.sendall(struct.pack("<I", 32 | 1 << 24) + struct.pack("<IIB", TLS | 0x8A200, 1 << 24, 45) + bytes(23))
        context = ssl.create_default_context(cafile=mariadb.authority.file)
        with context.wrap_socket(raw, server_hostname="localhost") as secured:
            assert secured.version() == "TLSv1.3"


def test_accounts_that_require_tls(both, front):
    """MariaDB sees the connection of Selkie, so Selkie checks that of the client."""
    with both.connect("tls") as connection:
        assert one(connection, "SELECT CURRENT_USER()") == ("tls@%",)
    code, message = both.refusal("tls", tls=False)
    assert code == 1045 and "REQUIRE SSL" in message
    assert both.refusal("tls", "wrong")[0] == 1045
    # MariaDB refuses it where Selkie's connection has no TLS.
    assert front.refusal("tls")[0] == 1045


def test_accounts_that_require_a_certificate(both, mariadb):
    code, message = both.refusal("x509")
    assert code == 1045 and "REQUIRE X509" in message
    own = {"cert": str(mariadb.authority.issue("someone.pem", (CLIENT_USE,)))}
    with both.connect("x509", ssl=own) as connection:
        assert one(connection, "SELECT CURRENT_USER()") == ("x509@%",)
    assert both.refusal("subject", ssl=own)[0] == 1045
    stranger = {"cert": str(mariadb.other.issue("stranger.pem", (CLIENT_USE,)))}
    assert both.refusal("x509", ssl=stranger)


def test_changing_to_an_account_that_requires_tls(both):
    with both.connect() as connection:
        assert change_user(connection, "tls", "secret")[0] == 0
        assert one(connection, "SELECT CURRENT_USER()") == ("tls@%",)
    with both.connect(tls=False) as connection:
        with pytest.raises(pymysql.err.OperationalError) as refused:
            change_user(connection, "tls", "secret")
        assert refused.value.args[0] == 1045 and "REQUIRE SSL" in refused.value.args[1]
        with pytest.raises(pymysql.err.MySQLError):
            one(connection, "SELECT 1")


def test_passwords_by_ed25519(both, front, mariadb, monkeypatch):
    monkeypatch.setattr(
        _auth, "ed25519_password", lambda password, scramble: Ed25519PrivateKey.from_private_bytes(password).sign(scramble)
    )
    mariadb.sql(f"CREATE OR REPLACE USER ed32@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD_OF_32}')")
    for gateway, tls in ((both, True), (both, False), (front, True)):
        with gateway.connect("ed32", PASSWORD_OF_32, tls=tls) as connection:
            assert one(connection, "SELECT CURRENT_USER()") == ("ed32@%",)
        assert gateway.refusal("ed32", PASSWORD_OF_32[::-1], tls=tls)[0] == 1045


def test_the_command_line_client(both, mariadb):
    for options in ((f"--ssl-ca={mariadb.authority.file}", "--ssl-verify-server-cert"), ("--skip-ssl",)):
        command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{both.port}", "-uplain", "-psecret", "d", "-N", "-B", *options]
        done = subprocess.run(command, input="SELECT body FROM t WHERE id = 1", capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "one\n"), done.stderr


def test_a_mariadb_whose_certificate_is_refused(mariadb, tmp_path):
    """It is replaced while Selkie runs."""
    original = mariadb.authority.issue("original.pem")
    gateway = Gateway(tmp_path, mariadb, mariadb.url("tls", mariadb.verified), *listener(mariadb, "allow"))
    try:
        with gateway.connect() as connection:
            mariadb.present(mariadb.other.issue("mariadb.pem"))
            code, message = gateway.refusal()
            assert code == 2026 and "not signed" in message
            assert one(connection, "SELECT 1") == (1,)
        mariadb.present(original)
        gateway.connect().close()
    finally:
        mariadb.present(original)
        gateway.selkie.kill()


# --- bad input


def login_packet(capabilities: int = 0x3FA685, user: bytes = b"plain", proof: bytes = b"\x14" + bytes(20),
                 tail: bytes = b"mysql_native_password\0\x04\x01k\x01v") -> bytes:
    return struct.pack("<IIB", capabilities, 1 << 24, 45) + bytes(23) + user + b"\0" + proof + tail


def framed(payload: bytes, number: int = 1) -> bytes:
    return struct.pack("<I", len(payload) | number << 24) + payload


def reply_to(port: int, *packets: bytes) -> bytes:
    """Returns the reply to a login, which may be empty."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
        raw.settimeout(5)
        assert raw.recv(4096)[4] == 10
        try:
            for packet in packets:
                raw.sendall(packet)
            raw.shutdown(socket.SHUT_WR)
            reply = b""
            while chunk := raw.recv(65536):
                reply += chunk
            return reply
        except OSError:
            # The server may have closed the connection already.
            return b""


@pytest.mark.parametrize("proof", [b"\xfc\xff\xff", b"\xfd\xff\xff\xff", b"\xfe" + b"\xff" * 8, b"\xfe" + b"\xff" * 7 + b"\x7f", b"\xfb", b"\xff"])
def test_lengths_beyond_the_packet(both, front, proof):
    for gateway in (both, front):
        for packet in (
            login_packet(proof=proof),
            login_packet(proof=proof + bytes(64)),
            login_packet(tail=b"mysql_native_password\0" + proof),
            login_packet(tail=b"mysql_native_password\0\x09" + proof),
        ):
            reply = reply_to(gateway.port, framed(packet))
            assert not reply or reply[4] == 0xFF, reply


def test_long_passwords_and_names(both):
    for length in (255, 256, 65_535, 65_536, 1_000_000):
        stated = b"\xfd" + struct.pack("<I", length)[:3]
        for packet in (login_packet(proof=stated + b"x" * length), login_packet(user=b"u" * length),
                       login_packet(tail=b"p" * length + b"\0")):
            reply = reply_to(both.port, framed(packet))
            assert not reply or reply[4] == 0xFF, (length, reply[:100])
    assert both.refusal(password="x" * 70_000)[0] in (1045, 2013)
    with both.connect() as connection:
        connection._execute_command(0x11, b"plain\0\xff" + b"x" * 255 + b"d\0\x2d\0" + b"p" * 70_000 + b"\0\xfe" + b"\xff" * 8)
        with pytest.raises(pymysql.err.MySQLError):
            connection._read_packet()
        with pytest.raises(pymysql.err.MySQLError):
            one(connection, "SELECT 1")


def test_packets_that_are_no_login(both):
    whole = framed(login_packet())
    rng = random.Random(38)
    changed = []
    for _ in range(60):
        packet = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            packet[rng.randrange(len(packet))] = rng.choice((0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF))
        changed.append(bytes(packet))
    for packet in [*(whole[:length] for length in range(0, len(whole), 3)), *changed, b"\xff\xff\xff\x01", framed(b""),
                   framed(b"\0"), framed(bytes(31)), framed(bytes(32)), b"GET / HTTP/1.1\r\n\r\n"]:
        reply = reply_to(both.port, packet)
        assert not reply or reply[4] in (0, 0xFE, 0xFF), reply
    with both.connect() as connection:
        assert one(connection, "SELECT 1") == (1,)


def test_a_request_for_tls_without_tls_behind_it(both):
    request = framed(struct.pack("<IIB", TLS | 0x3FA685, 1 << 24, 45) + bytes(23))
    for behind in (b"", framed(login_packet(), 2), b"\x16\x03\x01\xff\xff" + bytes(100), bytes(5000)):
        reply = reply_to(both.port, request, behind)
        # An alert of TLS or nothing; never an answer to a login in clear text.
        assert not reply or reply[0] == 0x15, reply
    with both.connect() as connection:
        assert one(connection, "SELECT 1") == (1,)


def test_a_login_in_clear_text_behind_the_request(both):
    """A man in the middle may send it together with the request. It is no part of the session."""
    with socket.create_connection(("127.0.0.1", both.port), timeout=5) as raw:
        raw.settimeout(5)
        raw.recv(4096)
        raw.sendall(framed(struct.pack("<IIB", TLS | 0x3FA685, 1 << 24, 45) + bytes(23)) + framed(login_packet(), 2))
        reply = raw.recv(4096)
        assert not reply or reply[0] == 0x15, reply
