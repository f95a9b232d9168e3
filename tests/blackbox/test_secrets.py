"""Passwords, keys and payloads of logins appear in no log, profile, list of operations or error."""

import threading
import time
from types import SimpleNamespace

import pytest
from bson import Binary
from pymongo.errors import OperationFailure, PyMongoError

from support.selkie import run

pytestmark = pytest.mark.selkie_only


class Canaries:
    """Secrets, each distinct, that must not be found anywhere."""

    def __init__(self):
        self.all: list[str] = []

    def new(self) -> str:
        self.all.append(f"CANARY{len(self.all):03}SECRET")
        return self.all[-1]

    def payload(self) -> Binary:
        return Binary(f"n,,n=user,r={self.new()}".encode())

    def check(self, shown: str, where: str):
        found = [canary for canary in self.all if canary in shown or canary.encode().hex() in shown]
        assert not found, f"{found} in {where}"


@pytest.fixture
def canaries():
    return Canaries()


@pytest.fixture
def server(own_server, tmp_path):
    settings = tmp_path / "secrets.toml"
    settings.write_text(f'log = "trace"\nslow-ms = 0\n[audit]\nlog = "{tmp_path / "audit.log"}"\n')
    server = own_server("--config", str(settings))
    yield server
    if server.mariadb:
        server.mariadb.forget_users()


def commands(canaries: Canaries) -> list[tuple[str, dict]]:
    user = {"createUser": "canary", "pwd": canaries.new(), "roles": []}
    return [
        ("secrets", user),
        ("secrets", {"createUser": "canary", "pwd": canaries.new(), "roles": []}),
        ("secrets", {"createUser": "other", "pwd": canaries.new(), "roles": [], "unknown": 1}),
        ("secrets", {"createUser": 5, "pwd": canaries.new(), "roles": []}),
        ("secrets", {"createUser": "other", "pwd": {"nested": canaries.new()}, "roles": []}),
        ("secrets", {"createUser": "other", "pwd": canaries.new(), "roles": ["no such role"]}),
        ("secrets", {"createUser": "other", "pwd": canaries.new(), "roles": [], "mechanisms": ["NONE"]}),
        ("secrets", {"createUser": "other", "pwd": canaries.new(), "roles": [], "writeConcern": {"w": "none"}}),
        ("secrets", {"updateUser": "canary", "pwd": canaries.new()}),
        ("secrets", {"updateUser": "missing", "pwd": canaries.new()}),
        ("secrets", {"updateUser": "canary", "pwd": [canaries.new()]}),
        ("secrets", {"explain": {"createUser": "canary", "pwd": canaries.new(), "roles": []}}),
        ("secrets", {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": canaries.payload()}),
        ("secrets", {"saslStart": 1, "mechanism": "PLAIN", "payload": Binary(f"\0u\0{canaries.new()}".encode())}),
        ("secrets", {"saslStart": 1, "mechanism": "NONE", "payload": canaries.new()}),
        ("secrets", {"saslStart": 1, "payload": {"nested": canaries.new()}}),
        ("secrets", {"saslContinue": 1, "conversationId": 1, "payload": canaries.payload()}),
        ("secrets", {"saslContinue": 1, "conversationId": "x", "payload": canaries.new()}),
        ("$external", {"authenticate": 1, "mechanism": "MONGODB-X509", "key": canaries.new()}),
        ("secrets", {"authenticate": 1, "user": "u", "nonce": "n", "key": canaries.new()}),
        ("admin", {"hello": 1, "speculativeAuthenticate": {
            "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": canaries.payload(), "db": "secrets"}}),
        ("admin", {"isMaster": 1, "speculativeAuthenticate": {
            "saslStart": 1, "mechanism": "NONE", "payload": canaries.payload(), "db": "secrets"}}),
        ("admin", {"hello": 1, "speculativeAuthenticate": {"authenticate": 1, "key": canaries.new()}}),
        ("admin", {"copydbsaslstart": 1, "payload": canaries.payload()}),
    ]


def test_no_secret_is_shown(server, canaries, tmp_path):
    with server.client(retryWrites=False) as client:
        for name in ("secrets", "admin"):
            client[name].command("profile", 2)
        for database, command in commands(canaries):
            try:
                reply = client[database].command(command)
                # They repeat the client's nonce, as RFC 5802 requires.
                reply = {name: value for name, value in reply.items() if name not in ("payload", "speculativeAuthenticate")}
            except (OperationFailure, PyMongoError) as error:
                reply = f"{error} {getattr(error, 'details', '')}"
            canaries.check(str(reply), f"the reply to {next(iter(command))}")
        client.admin.command("profile", 0)
        client.secrets.command("profile", 0)
        for name in ("secrets", "admin"):
            canaries.check(str(list(client[name]["system.profile"].find())), "system.profile")
        for log in ("global", "startupWarnings"):
            canaries.check("\n".join(client.admin.command("getLog", log)["log"]), "getLog")
        canaries.check(str(list(client.admin.aggregate([{"$listLocalSessions": {}}]))), "$listLocalSessions")
        canaries.check(str(client.admin.command("getCmdLineOpts")), "getCmdLineOpts")
        canaries.check(str(client.admin.command("serverStatus")), "serverStatus")
    server.stop()
    canaries.check(server.log.read_text(errors="replace"), "the log")
    canaries.check((tmp_path / "audit.log").read_text(), "the audit log")
    assert "Slow query" in server.log.read_text(errors="replace")


def test_waiting_commands_are_shown_without_secrets(server, canaries):
    """While writes are locked, a command about users waits, and other connections see it."""
    with server.client(retryWrites=False) as client:
        client.secrets.c.insert_one({})
        client.admin.command("fsync", 1, lock=True)
        command = {"createUser": "canary", "pwd": canaries.new(), "roles": []}

        def create():
            try:
                client.secrets.command(command)
            except OperationFailure:
                pass

        thread = threading.Thread(target=create)
        thread.start()
        shown = []
        end = time.monotonic() + 1
        while thread.is_alive() and not shown and time.monotonic() < end:
            found = client.admin.command("currentOp")["inprog"]
            found += list(client.admin.aggregate([{"$currentOp": {"allUsers": True}}]))
            canaries.check(str(found), "currentOp")
            shown = [each for each in found if "createUser" in each.get("command", {})]
        client.admin.command("fsyncUnlock")
        thread.join(10)
        assert all(each["command"]["pwd"] == "xxx" for each in shown)
    canaries.check(server.log.read_text(errors="replace"), "the log")


def test_passwords_of_urls_are_not_shown(canaries, tmp_path):
    for scheme, flag in (("mysql", "--mariadb"), ("redis", "--cache-storage")):
        for login in (f"joe:{canaries.new()}", f":{canaries.new()}", f"joe:{canaries.new()}@x"):
            for rest in ("127.0.0.1:1", "127.0.0.1:x", "[::1", ""):
                url = f"{scheme}://{login}@{rest}"
                done = run("serve", "--listen", "127.0.0.1:0", "--log", "trace", "--data", str(tmp_path / "d"), flag, url)
                canaries.check(done.stdout + done.stderr, f"the errors about {flag}")


@pytest.mark.mariadb_only
def test_passwords_of_sql_statements_are_not_logged(own_server, mariadb, canaries):
    import pymysql

    from support.process import free_port

    port = free_port()
    user, first, second = f"u{port}", canaries.new(), canaries.new()
    options = ("--log", "trace", "--slow-ms", "0", "--sql-listen", f"127.0.0.1:{port}")
    server = own_server(*options, mariadb=SimpleNamespace(url=mariadb.tcp_url))
    root = mariadb.connect()
    try:
        with root.cursor() as cursor:
            cursor.execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{first}'")
            cursor.execute(f"GRANT ALL ON *.* TO '{user}'@'%' WITH GRANT OPTION")
        with pymysql.connect(host="127.0.0.1", port=port, user=user, password=first) as sql, sql.cursor() as cursor:
            for statement in (f"SET PASSWORD = PASSWORD('{second}')", f"CREATE USER x{port} IDENTIFIED BY '{second}'",
                              f"CREATE USER IDENTIFIED '{second}'", f"DROP USER x{port}"):
                try:
                    cursor.execute(statement)
                except pymysql.err.MySQLError:
                    pass
        with pytest.raises(pymysql.err.OperationalError):
            pymysql.connect(host="127.0.0.1", port=port, user=user, password=first)
        with server.client() as client:
            canaries.check(str(client.admin.command("currentOp")), "currentOp")
            canaries.check(str(client.admin.command("getLog", "global")), "getLog")
    finally:
        with root.cursor() as cursor:
            cursor.execute(f"DROP USER '{user}'@'%'")
        root.close()
    canaries.check(server.log.read_text(errors="replace"), "the log")
