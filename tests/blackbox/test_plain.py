"""PLAIN, the login that sends the password, and the setting that lists the mechanisms."""

import threading
import time

import pytest
from bson import Binary
from pymongo.errors import OperationFailure

from blackbox.test_audit import events, logins, verify
from support.authority import CLIENT_USE, Authority
from support.node import run as run_node
from support.selkie import SelkieServer
from support.tls import TlsServer

pytestmark = pytest.mark.selkie_only

PASSWORD = "p%ss/word:ü,="
SECRET = "the password of nobody"
FAILED = (18, "Authentication failed.")


class Plain:
    def __init__(self, folder, mechanisms: str, *options: str):
        authority = Authority(folder / "authority")
        self.authority, self.log = authority, folder / "audit.log"
        file = folder / "selkie.toml"
        file.write_text(f"[security]\nmechanisms = {mechanisms}\n[limits]\nlogin-failures = 1000\n")
        listener = ("--tls", "prefer", "--tls-certificate", str(authority.issue("server.pem")), "--tls-ca",
                    str(authority.file), "--tls-client-certificates", "optional")
        options = ("--config", str(file), "--auth", "--threads", "1", *listener, "--audit-log", str(self.log), *options)
        self.server = TlsServer(folder / "selkie", *options, ca=authority.file).start()
        with self.server.client() as first:
            first.admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
        self.root = self.server.tls_client(username="root", password=PASSWORD)

    def client(self, user: str, password: str = PASSWORD, **options):
        return self.server.tls_client(username=user, password=password,
                                      **{"authMechanism": "PLAIN", "authSource": "shop", **options})

    def stop(self):
        self.root.close()
        assert self.server.stop() == 0, self.server.end_of_log()
        for text in (self.server.log.read_text(errors="replace"), self.log.read_text()):
            assert PASSWORD not in text and SECRET not in text and "p%ss" not in text
        assert verify(self.log)[0] == 0
        self.server.remove()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    plain = Plain(tmp_path_factory.mktemp("plain"), '["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"]')
    for user, mechanisms in (("both", None), ("only1", ["SCRAM-SHA-1"]), ("only256", ["SCRAM-SHA-256"])):
        options = {"mechanisms": mechanisms} if mechanisms else {}
        plain.root.shop.command("createUser", user, pwd=PASSWORD, roles=["readWrite"], **options)
    plain.root["$external"].command("createUser", "external", roles=[])
    yield plain
    plain.stop()


def answer(client, database: str, command: dict) -> tuple:
    try:
        reply = client[database].command(command)
        return reply["done"], bytes(reply["payload"]) if reply["payload"] else b""
    except OperationFailure as error:
        return error.code, error.details["errmsg"]


def start(payload, **more) -> dict:
    return {"saslStart": 1, "mechanism": "PLAIN", "payload": payload if isinstance(payload, str) else Binary(payload), **more}


@pytest.mark.parametrize("user", ["both", "only1", "only256"])
def test_pymongo_logs_in(plain, user):
    before = len(logins(plain.log))
    with plain.client(user) as client:
        assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": user, "db": "shop"}]
        client.shop.c.insert_one({})
    assert logins(plain.log)[before:] == [(f"{user}@shop", "PLAIN", 0)]
    for name, password, source in ((user, SECRET, "shop"), (user, PASSWORD, "admin"), ("nobody", PASSWORD, "shop")):
        before = len(logins(plain.log))
        with plain.client(name, password, authSource=source) as client, pytest.raises(OperationFailure) as refused:
            client.shop.c.find_one()
        assert refused.value.code == 18
        assert logins(plain.log)[before:] == [(f"{name}@{source}", "PLAIN", 18)]


def test_node_is_refused_as_by_mongodb(plain, tmp_path):
    arguments = (f"localhost:{plain.server.port}", str(plain.authority.file), "both", PASSWORD)
    assert "ok plain" in run_node(["node", "plain.mjs", *arguments], tmp_path)


# What MongoDB 6.0.5 answers with authenticationMechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-1.
OF_EXTERNAL = (334, "Unsupported mechanism 'PLAIN' on authentication database '$external'")
RIGHT = PASSWORD.encode()
ANSWERS = [
    ("shop", start(b"\0both\0" + RIGHT), (True, b"")),
    ("shop", start(b"both\0both\0" + RIGHT), (True, b"")),
    ("shop", start(b"joe\0both\0" + RIGHT), FAILED),
    ("shop", start(b"\0both\0" + RIGHT + b"\0x"), (True, b"")),
    ("shop", start(b"\0both\0" + RIGHT, options={"skipEmptyExchange": True}), (True, b"")),
    ("shop", start(b"garbage"), FAILED),
    ("shop", start(b""), FAILED),
    ("shop", start(b"\0both"), FAILED),
    ("shop", start(b"\0both\0"), FAILED),
    ("shop", start(b"\0\0" + RIGHT), FAILED),
    ("shop", start(b"\0\xff\0pw"), FAILED),
    ("shop", start(b"\0both\0\xff"), FAILED),
    ("shop", start("A?"), (10270, "Failed decoding SASL payload: invalid base64")),
    ("$external", start(b"\0both\0" + RIGHT), OF_EXTERNAL),
    ("$external", start(b"\0external\0" + RIGHT), OF_EXTERNAL),
    ("shop", {**start(b""), "mechanism": "plain"}, (334, "Received authentication for mechanism plain which is not enabled")),
    ("shop", {"authenticate": 1, "mechanism": "PLAIN"}, (2, "Unsupported mechanism: PLAIN")),
]


@pytest.mark.parametrize(("database", "command", "expected"), ANSWERS, ids=range(len(ANSWERS)))
def test_it_answers_as_mongodb(plain, database, command, expected):
    with plain.server.tls_client() as client:
        assert answer(client, database, command) == expected


def test_a_hello_neither_offers_nor_begins_it(plain):
    login = {**start(b"\0both\0" + RIGHT), "db": "shop"}
    with plain.server.tls_client() as client:
        reply = client.admin.command("hello", speculativeAuthenticate=login, saslSupportedMechs="shop.both")
        assert "speculativeAuthenticate" not in reply
        assert reply["saslSupportedMechs"] == ["SCRAM-SHA-256", "SCRAM-SHA-1"]
        assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == []


def test_it_is_refused_without_tls(plain):
    before = len(logins(plain.log))
    with plain.server.client(directConnection=True) as client:
        code, message = answer(client, "shop", start(b"\0both\0" + SECRET.encode()))
    assert code == 334 and "not available without TLS" in message
    # The name is not read either.
    assert logins(plain.log)[before:] == [("@shop", "PLAIN", 334)]
    with plain.server.client(username="both", password=SECRET, authSource="shop", authMechanism="PLAIN") as client:
        with pytest.raises(OperationFailure, match="not available without TLS"):
            client.shop.c.find_one()


def test_other_sessions_are_answered_meanwhile(plain):
    # All on one worker.
    outcomes, pings = [], 0

    def log_in():
        with plain.server.tls_client() as client:
            outcomes.append(answer(client, "shop", start(b"\0nobody\0" + RIGHT)))

    attempts = [threading.Thread(target=log_in) for _ in range(20)]
    with plain.server.tls_client() as other:
        other.admin.command("ping")
        for attempt in attempts:
            attempt.start()
        slowest = 0
        while any(attempt.is_alive() for attempt in attempts):
            began = time.monotonic()
            other.admin.command("ping")
            slowest, pings = max(slowest, time.monotonic() - began), pings + 1
    assert outcomes == [FAILED] * 20
    # A worker that computed the passwords itself would answer one or two.
    assert pings > 5, (pings, slowest)


def test_failures_are_delayed(tmp_path):
    plain = Plain(tmp_path, '["PLAIN", "SCRAM-SHA-256"]')
    (tmp_path / "selkie.toml").write_text('[security]\nmechanisms = ["PLAIN", "SCRAM-SHA-256"]\n[limits]\nlogin-failures = 1\n')
    plain.root.close()
    assert plain.server.stop() == 0
    plain.server.start()
    plain.root = plain.server.tls_client(username="root", password=PASSWORD)
    plain.root.admin.command("ping")

    def attempt(user: str) -> float:
        began = time.monotonic()
        with plain.server.tls_client() as client:
            assert answer(client, "shop", start(b"\0" + user.encode() + b"\0" + SECRET.encode())) == FAILED
        return time.monotonic() - began

    for user in ("root", "nobody"):
        seconds = [attempt(user) for _ in range(6)]
        # One is free; then 0.1, 0.2, 0.4 and 0.8 seconds.
        assert seconds[5] > 0.75 and sum(seconds[2:]) > 1.4, seconds
    plain.stop()


def test_it_is_off_by_default(tmp_path):
    server = SelkieServer(tmp_path, options=("--auth",)).start()
    try:
        with server.client() as first:
            first.admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
        with server.client(username="root", password=PASSWORD) as root:
            parameter = root.admin.command("getParameter", authenticationMechanisms=1)["authenticationMechanisms"]
            assert parameter == ["SCRAM-SHA-1", "SCRAM-SHA-256"]
        with server.client() as client:
            message = "Received authentication for mechanism PLAIN which is not enabled"
            for database in ("shop", "$external"):
                assert answer(client, database, start(b"\0root\0" + RIGHT)) == (334, message)
            assert answer(client, "shop", {"authenticate": 1, "mechanism": "PLAIN"}) == (334, message)
    finally:
        server.remove()


def test_the_setting_counts_for_all_mechanisms(tmp_path):
    plain = Plain(tmp_path, '["SCRAM-SHA-256"]')
    root = plain.root

    def refusal(client, database: str, command: dict) -> tuple:
        with pytest.raises(OperationFailure) as refused:
            client[database].command(command)
        return refused.value.code, refused.value.details["errmsg"]

    def not_enabled(mechanism: str) -> tuple:
        return 334, f"Received authentication for mechanism {mechanism} which is not enabled"

    try:
        parameter = root.admin.command("getParameter", authenticationMechanisms=1)["authenticationMechanisms"]
        assert parameter == ["SCRAM-SHA-256"]
        root.shop.command("createUser", "joe", pwd=PASSWORD, roles=[])
        assert root.shop.command("usersInfo", "joe")["users"][0]["mechanisms"] == ["SCRAM-SHA-256"]
        user = {"createUser": "ann", "pwd": PASSWORD, "roles": []}
        expected = (2, "SCRAM-SHA-1 not supported in authMechanisms")
        assert refusal(root, "shop", {**user, "mechanisms": ["SCRAM-SHA-1"]}) == expected
        assert refusal(root, "shop", {**user, "mechanisms": ["PLAIN"]}) == (2, "Unknown auth mechanism 'PLAIN'")
        certificate = plain.authority.issue("known.pem", usages=(CLIENT_USE,), common_name="known")
        with plain.server.tls_client(tlsCertificateKeyFile=str(certificate)) as client:
            for name in ("joe", "nobody"):
                assert client.admin.command("hello", saslSupportedMechs=f"shop.{name}")["saslSupportedMechs"] == ["SCRAM-SHA-256"]
            payload = Binary(b"n,,n=joe,r=abcdefgh")
            sha_1 = {"saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": payload}
            assert refusal(client, "shop", sha_1) == not_enabled("SCRAM-SHA-1")
            assert refusal(client, "shop", {"authenticate": 1, "mechanism": "SCRAM-SHA-1"}) == not_enabled("SCRAM-SHA-1")
            x509 = {"authenticate": 1, "mechanism": "MONGODB-X509"}
            assert refusal(client, "$external", x509) == (2, "x.509 authentication is disabled.")
            assert refusal(client, "admin", x509)[0] == 17
    finally:
        plain.stop()
    assert events(plain.log, "authenticate")
