"""The audit log: its events, its chain of hashes, and its behavior when it cannot be written."""

import json
import os
import signal
import socket
import time

import pytest
from bson import Binary
from pymongo.errors import OperationFailure, PyMongoError

from support import logs, scram
from support.authority import CLIENT_USE, Authority
from support.scram import ScramClient
from support.selkie import SelkieServer, run
from support.tls import TlsServer
from support.wire import Wire

pytestmark = pytest.mark.selkie_only


def events(path, *kinds: str) -> list[dict]:
    """Returns the entries of these kinds, or all but the metadata of clients."""
    every = logs.entries(path)
    return [entry for entry in every if (entry["atype"] in kinds if kinds else entry["atype"] != "clientMetadata")]


def params(path, *kinds: str) -> list[dict]:
    return [entry["param"] for entry in events(path, *kinds)]


def verify(*arguments) -> tuple[int, str]:
    done = run("audit", "verify", *map(str, arguments))
    return done.returncode, done.stdout + done.stderr


def logins(path) -> list[tuple]:
    """The attempts to log in: user, mechanism and result."""
    return [
        (f"{entry['param']['user']}@{entry['param']['db']}", entry["param"]["mechanism"], entry["result"])
        for entry in events(path, "authenticate")
    ]


def eventually(condition):
    """Returns the value of a condition once it is true."""
    end = time.monotonic() + 10
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.log"


def test_changes_of_the_catalog_are_recorded(own_server, log, database_name):
    server = own_server("--audit-log", str(log))
    with server.client(appname="auditor") as client:
        db = client[database_name]
        db.a.insert_one({"_id": 1})
        db.a.insert_one({"_id": 2})
        db.a.create_index("x", name="x")
        db.a.create_index("x", name="x")
        db.a.drop_index("x")
        db.create_collection("view", viewOn="a", pipeline=[{"$match": {"x": 1}}])
        db.a.rename("b")
        db.b.update_one({"_id": 1}, {"$set": {"y": 1}})
        with pytest.raises(OperationFailure):
            db.command("drop", "missing")
        db.b.aggregate([{"$out": "c"}])
        db.b.drop()
        client.drop_database(database_name)
    recorded = [(entry["atype"], entry["param"]) for entry in events(log)]
    spec = {"name": "x", "key": {"x": 1}}
    expected = [
        ("createDatabase", {"ns": database_name}),
        ("createCollection", {"ns": f"{database_name}.a"}),
        *(
            ("createIndex", {"ns": f"{database_name}.a", "indexName": "x", "indexSpec": spec, "indexBuildState": state})
            for state in ("IndexBuildStarted", "IndexBuildSucceeded")
        ),
        ("dropIndex", {"ns": f"{database_name}.a", "indexName": "x"}),
        ("createCollection", {"ns": f"{database_name}.view", "viewOn": "a", "pipeline": [{"$match": {"x": 1}}]}),
        ("renameCollection", {"old": f"{database_name}.a", "new": f"{database_name}.b"}),
        ("dropCollection", {"ns": f"{database_name}.missing"}),
        ("createCollection", {"ns": f"{database_name}.c"}),
        ("dropCollection", {"ns": f"{database_name}.b"}),
    ]
    assert recorded[0][0] == "startup"
    assert recorded[1 : 1 + len(expected)] == expected
    assert recorded[-1] == ("dropDatabase", {"ns": database_name})
    assert ("dropCollection", {"ns": f"{database_name}.c"}) in recorded[-4:]
    assert [entry["result"] for entry in events(log, "dropCollection")][0] == 26
    metadata = [param["clientMetadata"] for param in params(log, "clientMetadata")]
    assert {"name": "auditor"} in [each.get("application") for each in metadata]
    entry = events(log, "dropDatabase")[0]
    assert entry["local"] == {"ip": "127.0.0.1", "port": server.port} and entry["remote"]["ip"] == "127.0.0.1"
    assert entry["uuid"]["$type"] == "04" and entry["users"] == entry["roles"] == []
    assert server.stop() == 0
    assert [entry["atype"] for entry in events(log)][-1] == "shutdown"
    code, output = verify(log)
    assert code == 0 and "The log is whole: entries 1 to" in output, output


def test_refusals_are_recorded(own_server, log):
    server = own_server("--audit-log", str(log))
    with server.client() as client:
        with pytest.raises(OperationFailure, match="admin database"):
            client.test.command("listDatabases", 1)
    [entry] = events(log, "authCheck")
    assert entry["result"] == 13 and entry["param"]["command"] == "listDatabases"
    assert entry["param"]["ns"] == "test." and entry["param"]["args"]["$db"] == "test"


@pytest.fixture
def guarded(tmp_path, log):
    """A server that requires logins, with a store of its own."""
    server = SelkieServer(tmp_path / "guarded", options=("--auth", "--audit-log", str(log))).start()
    add_users(server)
    yield server
    assert server.stop() == 0
    assert verify(log)[0] == 0
    server.remove()


def add_users(server):
    with server.client() as first:
        first.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with server.client(username="root", password="secret") as root:
        for user, mechanisms in (("both", scram.MECHANISMS), ("only1", ["SCRAM-SHA-1"])):
            root.shop.command("createUser", user, pwd="pencil", roles=["read"], mechanisms=list(mechanisms))


@pytest.mark.parametrize("mechanism", scram.MECHANISMS)
def test_each_login_is_recorded_once(guarded, log, mechanism):
    server = guarded
    before = len(logins(log))
    options = {"authSource": "shop", "authMechanism": mechanism}
    with server.client(username="both", password="pencil", directConnection=True, **options) as client:
        client.admin.command("ping")
    assert logins(log)[before:] == [("both@shop", mechanism, 0)]
    for user, password in (("both", "wrong"), ("nobody", "pencil")):
        with server.client(username=user, password=password, directConnection=True, **options) as client:
            with pytest.raises(OperationFailure):
                client.shop.c.find_one()
    recorded = logins(log)[before + 1:]
    # After a failure in its handshake the driver may try again.
    assert set(recorded) == {("both@shop", mechanism, 18), ("nobody@shop", mechanism, 18)}
    entry = events(log, "authenticate")[before]
    assert entry["users"] == [{"user": "both", "db": "shop"}] and entry["roles"] == [{"role": "read", "db": "shop"}]
    assert entry["remote"]["ip"] == "127.0.0.1" and entry["local"] == {"ip": "127.0.0.1", "port": server.port}


START = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": Binary(b"n,,n=both,r=abcdefgh")}
HELLO = {"hello": 1, "$db": "admin"}


EARLY_FAILURES = [
    (START | {"mechanism": "GSSAPI"}, ("@shop", "GSSAPI", 334)),
    (START | {"$db": "$external"}, ("@$external", "SCRAM-SHA-256", 334)),
    (START | {"payload": Binary(b"n,,n=")}, ("@shop", "SCRAM-SHA-256", 18)),
    (START | {"payload": Binary(b"\xff")}, ("@shop", "SCRAM-SHA-256", 18)),
    (START | {"payload": "!"}, ("@shop", "SCRAM-SHA-256", 10270)),
    (START | {"payload": 5}, ("@shop", "SCRAM-SHA-256", 2)),
    ({"saslStart": 1}, ("@shop", "", 40414)),
    ({"saslContinue": 1, "conversationId": 1, "payload": b""}, ("@shop", "", 17)),
    ({"saslContinue": 1}, ("@shop", "", 40414)),
    ({"authenticate": 1, "mechanism": "SCRAM-SHA-1"}, ("@shop", "SCRAM-SHA-1", 2)),
    ({"authenticate": 1, "mechanism": "MONGODB-CR"}, ("@shop", "MONGODB-CR", 334)),
    ({"authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external"}, ("@$external", "MONGODB-X509", 18)),
    (HELLO | {"speculativeAuthenticate": START | {"db": "shop", "mechanism": "FOO"}}, ("@shop", "FOO", 334)),
    (HELLO | {"speculativeAuthenticate": START}, ("@", "SCRAM-SHA-256", 40414)),
    (HELLO | {"speculativeAuthenticate": {"authenticate": 1}}, ("@", "", 40414)),
    (HELLO | {"speculativeAuthenticate": {"authenticate": 1, "mechanism": "MONGODB-X509"}},
     ("@$external", "MONGODB-X509", 18)),
    # The user has another mechanism: the driver begins again.
    (HELLO | {"speculativeAuthenticate": START | {"db": "shop", "payload": Binary(b"n,,n=only1,r=abcdefgh")}},
     ("only1@shop", "SCRAM-SHA-256", 18)),
]


def test_a_login_that_fails_early_is_recorded_once(guarded, log):
    for command, expected in EARLY_FAILURES:
        before = len(logins(log))
        with Wire(guarded.port) as wire:
            wire.run({**command, "$db": command.get("$db", "shop")})
        assert logins(log)[before:] == [expected], command


def test_an_unfinished_login_is_recorded_as_abandoned(guarded, log):
    server = guarded
    before = len(logins(log))
    with Wire(server.port) as wire:
        for mechanism in scram.MECHANISMS:
            assert scram.start(wire, ScramClient("both", "pencil", mechanism), "shop")["ok"]
        assert logins(log)[before:] == [("both@shop", "SCRAM-SHA-256", 337)]
    assert eventually(lambda: logins(log)[before + 1:]) == [("both@shop", "SCRAM-SHA-1", 337)]
    with Wire(server.port) as wire:
        client = ScramClient("both", "pencil")
        reply = scram.start(wire, client, "shop")
        broken = client.final(reply["payload"]).replace(b",p=", b",p=!")
        assert scram.proceed(wire, broken, "shop")["code"] == 10270
        assert scram.log_in(wire, "both", "pencil", "shop")["ok"]
        # Another user beside it.
        assert scram.log_in(wire, "root", "secret", "admin")["code"] == 5626701
    assert logins(log)[before + 2:] == [
        ("both@shop", "SCRAM-SHA-256", 10270), ("both@shop", "SCRAM-SHA-256", 0), ("root@admin", "SCRAM-SHA-256", 5626701),
    ]


def test_each_logout_is_recorded_once(guarded, log):
    server = guarded
    eventually(lambda: len(events(log, "logout")) == len([each for each in logins(log) if each[2] == 0]))
    before = len(events(log, "logout"))

    def reasons(count: int) -> list[tuple]:
        eventually(lambda: len(events(log, "logout")) >= before + count)
        return [(entry["param"]["reason"], entry["param"]["initialUsers"], entry["param"]["updatedUsers"])
                for entry in events(log, "logout")[before:]]

    both = [{"user": "both", "db": "shop"}]
    closed = ("Implicit logout due to client connection closure", both, [])
    with Wire(server.port) as wire:
        assert scram.log_in(wire, "both", "pencil", "shop")["ok"]
        # The user of another database stays.
        assert wire.run({"logout": 1, "$db": "admin"})["ok"] and len(events(log, "logout")) == before
    assert reasons(1) == [closed]
    with Wire(server.port) as wire:
        assert scram.log_in(wire, "both", "pencil", "shop")["ok"]
        assert wire.run({"logout": 1, "$db": "shop"})["ok"]
    assert reasons(2)[1:] == [("Explicit logout from db 'shop'", both, [])]
    with Wire(server.port) as wire, server.client(username="root", password="secret") as root:
        assert scram.log_in(wire, "both", "pencil", "shop")["ok"]
        root.shop.command("dropUser", "both")
        assert wire.run({"find": "c", "$db": "shop"})["code"] == 13
    recorded = reasons(4)[2:]
    assert recorded[0] == ("Implicit logout due to a change of the user", both, [])
    # The connection has no user any more, when it ends; the client's have.
    assert {tuple(user["user"] for user in users) for _, users, _ in recorded[1:]} == {("root",)}


def test_restored_users_and_roles_are_recorded(guarded, log):
    with guarded.client(username="root", password="secret") as root:
        root.shop.command("createRole", "clerk", privileges=[], roles=["read"])
        stored = {name: list(root.admin[f"system.{name}"].find({"db": "shop"})) for name in ("users", "roles")}
        root.shop.command("dropUser", "only1")
        root.shop.command("dropRole", "clerk")
        root.shop.command("createUser", "late", pwd="pencil", roles=[])
        root.admin.tempusers.insert_many(stored["users"])
        root.admin.temproles.insert_many(stored["roles"])
        kinds = ("createUser", "updateUser", "dropUser", "createRole", "updateRole", "dropRole")
        before = len(events(log, *kinds))
        root.admin.command("_mergeAuthzCollections", tempUsersCollection="admin.tempusers",
                           tempRolesCollection="admin.temproles", db="shop", drop=True)
        recorded = events(log, *kinds)[before:]
    roles = [{"role": "read", "db": "shop"}]
    expected = [
        ("updateUser", {"user": "both", "db": "shop", "passwordChanged": True, "roles": roles}),
        ("createUser", {"user": "only1", "db": "shop", "roles": roles}),
        ("dropUser", {"user": "late", "db": "shop"}),
        ("createRole", {"role": "clerk", "db": "shop", "privileges": [], "roles": roles}),
    ]
    assert [(entry["atype"], entry["param"]) for entry in recorded] == expected
    assert {entry["result"] for entry in recorded} == {0} and recorded[0]["users"] == [{"user": "root", "db": "admin"}]
    assert "storedKey" not in log.read_text()


def test_logins_by_certificate_are_recorded(tmp_path, log):
    authority = Authority(tmp_path / "authority")
    server_file = authority.issue("server.pem")
    known = authority.issue("known.pem", usages=(CLIENT_USE,), common_name="known")
    unknown = authority.issue("unknown.pem", usages=(CLIENT_USE,), common_name="unknown")
    options = ("--auth", "--tls", "require", "--tls-certificate", str(server_file), "--tls-ca", str(authority.file))
    server = TlsServer(tmp_path / "x509", *options, "--audit-log", str(log), ca=authority.file, client=known).start()
    try:
        name = "CN=known,O=Tests\\, Inc,C=CH"
        with server.tls_client() as first:
            first.admin.command("createUser", "root", pwd="secret", roles=["root"])
        with server.tls_client(username="root", password="secret") as root:
            root["$external"].command("createUser", name, roles=[{"role": "read", "db": "shop"}])
        before = len(logins(log))
        eventually(lambda: len(events(log, "logout")) == before)
        x509 = {"authMechanism": "MONGODB-X509"}
        with server.tls_client(**x509) as client:
            client.shop.c.find_one()
        assert logins(log)[before:] == [(f"{name}@$external", "MONGODB-X509", 0)]
        logout = eventually(lambda: events(log, "logout")[before:])[0]
        assert logout["param"]["initialUsers"] == [{"user": name, "db": "$external"}]
        with server.tls_client(**x509, tlsCertificateKeyFile=str(unknown)) as client:
            with pytest.raises(OperationFailure):
                client.shop.c.find_one()
        with server.tls_client(**x509, username="CN=root") as client:
            with pytest.raises(OperationFailure):
                client.shop.c.find_one()
        failed = logins(log)[before + 1:]
        assert set(failed) == {
            ("CN=unknown,O=Tests\\, Inc,C=CH@$external", "MONGODB-X509", 11), (f"{name}@$external", "MONGODB-X509", 18),
        }
        assert server.stop() == 0, server.end_of_log()
    finally:
        server.remove()
    assert verify(log)[0] == 0


def test_operations_within_a_command_are_recorded_once(own_server, tmp_path, log, database_name):
    settings = tmp_path / "audit.toml"
    settings.write_text(f'[audit]\nlog = "{log}"\nauthorization-success = true\n')
    server = own_server("--config", str(settings))

    def entry(operation: str, namespace: str, document: dict, **more) -> dict:
        return {"op": operation, "ns": namespace, "o": document, **more}

    catalog, name = f"{database_name}.$cmd", f"{database_name}.a"
    operations = [
        entry("c", catalog, {"create": "a"}), entry("i", name, {"_id": 1}), entry("i", name, {"_id": 2}),
        entry("u", name, {"$v": 2, "diff": {"i": {"x": 1}}}, o2={"_id": 1}), entry("d", name, {"_id": 2}),
        entry("c", catalog, {"renameCollection": name, "to": f"{database_name}.b"}),
        entry("c", catalog, {"create": "c"}), entry("c", catalog, {"drop": "b"}),
        entry("c", catalog, {"applyOps": [entry("c", catalog, {"create": "d"})]}),
        entry("c", catalog, {"dropDatabase": 1}),
    ]
    with server.client() as client:
        assert client.admin.command("applyOps", operations)["ok"]
    # A reply does not wait for the event of a check that has succeeded.
    assert server.stop() == 0
    checked = [param["command"] for param in params(log, "authCheck")]
    assert checked.count("applyOps") == 1 and not {"create", "update", "delete", "drop"} & set(checked), checked
    recorded = [(entry["atype"], entry["param"]) for entry in events(log) if entry["atype"] not in ("startup", "shutdown", "authCheck")]
    created = [("createCollection", {"ns": f"{database_name}.{each}"}) for each in "acd"]
    assert recorded[:7] == [
        ("createDatabase", {"ns": database_name}), created[0],
        ("renameCollection", {"old": name, "new": f"{database_name}.b"}), created[1],
        ("dropCollection", {"ns": f"{database_name}.b"}), created[2],
        recorded[6],
    ]
    dropped = {param["ns"] for kind, param in recorded[6:] if kind == "dropCollection"}
    assert dropped == {f"{database_name}.{each}" for each in "cd"} and recorded[8:] == [("dropDatabase", {"ns": database_name})]
    assert verify(log)[0] == 0


def test_each_edit_of_the_log_is_found(own_server, log, tmp_path):
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef\n")
    settings = tmp_path / "audit.toml"
    settings.write_text(f'[audit]\nlog = "{log}"\nkey = "{key}"\n')
    refused = run("check", "--config", str(settings))
    assert refused.returncode == 1 and "chmod 600" in refused.stderr
    key.chmod(0o600)
    server = own_server("--config", str(settings))
    with server.client() as client:
        for number in range(10):
            client.edits[f"c{number}"].insert_one({})
        client.drop_database("edits")
    assert server.stop() == 0
    lines = log.read_text().splitlines(keepends=True)
    whole, head = log.read_text(), (tmp_path / "audit.log.head").read_text()
    last = json.loads(lines[-1])
    assert verify(log, "--key", key)[0] == 0
    assert verify(log, "--key", key, "--contains", last["hash"])[0] == 0
    assert "entry 1 was changed" in verify(log)[1], "without the key"

    def edited(text: str, expected: str):
        log.write_text(text)
        code, output = verify(log, "--key", key)
        log.write_text(whole)
        assert code == 1 and expected in output, output

    edited(whole.replace("edits.c3", "edits.c4", 1), "was changed")
    edited("".join(lines[:4] + lines[5:]), "audit.log:5: entry 5 is missing before this line")
    edited("".join(lines[1:]), "audit.log:1: entry 1 is missing before this line")
    edited("".join(lines[:4] + ["{}\n"] + lines[4:]), "audit.log:5: this line is no entry")
    edited("".join(lines[:4] + [lines[1]] + lines[4:]), "audit.log:5: entry 2 appears where entry 5 must be")
    edited("".join(lines[:4] + [lines[5], lines[4]] + lines[6:]), "it was moved")
    edited("".join(lines[:-1]), "it was cut")
    edited("", "it was cut")
    assert verify(log, "--key", key)[0] == 0
    # An earlier copy of both files is not noticed, unless the hash is known elsewhere.
    copy = tmp_path / "copy.log"
    copy.write_text("".join(lines[:-1]))
    assert verify(copy, "--key", key)[0] == 0
    assert "does not contain" in verify(copy, "--key", key, "--contains", last["hash"])[1]
    assert head.startswith('{"seq":')


def test_rotation_and_kills_continue_the_chain(own_server, log, tmp_path, database_name):
    server = own_server("--audit-log", str(log))
    with server.client(serverSelectionTimeoutMS=1000) as client:
        client[database_name].a.insert_one({})
        client.admin.command("logRotate", "audit")
        client[database_name].b.insert_one({})
        time.sleep(1.1)
        os.kill(server.pid, signal.SIGUSR1)
        end = time.monotonic() + 10
        while len(list(tmp_path.glob("audit.log.2*"))) < 2:
            assert time.monotonic() < end
            time.sleep(0.02)
        client[database_name].c.insert_one({})
        # The event of an acknowledged command survives.
        server.kill()
    assert {"ns": f"{database_name}.c"} in params(log, "createCollection")
    with log.open("a") as torn:
        torn.write('{"atype":"logout","ts":{"$date":"20')
    server.start()
    server.kill()
    [torn] = [
        json.loads(line)["param"] for line in log.read_text().splitlines() if line.startswith('{"atype":"tornLine"')
    ]
    assert torn["bytes"] == 35
    files = [*tmp_path.glob("audit.log.2*"), log]
    code, output = verify(*files, tmp_path / "audit.log.head")
    assert code == 0 and "entries 1 to" in output and "1 lines are incomplete" in output, output
    code, output = verify(log)
    assert code == 1 and "missing" in output
    first = json.loads(log.read_text().splitlines()[0])
    assert first["atype"] == "rotateLog" and verify(log, "--from", first["seq"])[0] == 0
    assert verify(*files[1:])[0] == 1


def test_two_processes_cannot_write_one_log(own_server, log, tmp_path):
    own_server("--audit-log", str(log))
    refused = run("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "other"), "--audit-log", str(log))
    assert refused.returncode == 1 and "another process writes to it" in refused.stderr


def test_filters_choose_the_events(own_server, tmp_path, log, database_name):
    settings = tmp_path / "audit.toml"
    settings.write_text(f'[audit]\nlog = "{log}"\nonly = ["createCollection", "dropDatabase"]\nexcept = ["dropDatabase"]\n')
    server = own_server("--config", str(settings))
    with server.client() as client:
        client[database_name].a.insert_one({})
        client.drop_database(database_name)
    assert [entry["atype"] for entry in events(log)] == ["startup", "createCollection"]
    settings.write_text(f'[audit]\nlog = "{log}"\nonly = ["createColection"]\n')
    refused = run("check", "--config", str(settings))
    assert refused.returncode == 1 and 'did you mean "createCollection"' in refused.stderr


def test_all_commands_are_recorded_on_demand(own_server, tmp_path, log, database_name):
    settings = tmp_path / "audit.toml"
    settings.write_text(f'[audit]\nlog = "{log}"\nauthorization-success = true\nsync = true\n')
    server = own_server("--config", str(settings))
    with server.client() as client:
        client[database_name].a.insert_one({"_id": 1})
        assert client[database_name].a.find_one({"_id": 1})
        client[database_name].a.drop()
    commands = [(param["command"], param["ns"]) for param in params(log, "authCheck")]
    # The client that waited for the server has ended its session, too.
    commands = [each for each in commands if each[0] != "endSessions"]
    assert commands[:3] == [(name, f"{database_name}.a") for name in ("insert", "find", "drop")]


@pytest.fixture
def small_disk(tmp_path):
    """A directory with room for few events, where the system permits it."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k tmpfs {folder} 2>/dev/null"):
        pytest.skip("no file system can be mounted here")
    yield folder
    os.system(f"umount -l {folder}")


def test_a_full_disk_refuses_changes_until_there_is_room(own_server, small_disk, database_name):
    log, filler = small_disk / "audit.log", small_disk / "filler"
    server = own_server("--audit-log", str(log))
    with server.client() as client:
        db = client[database_name]
        db.a.insert_one({"_id": 1})
        with pytest.raises(OSError), filler.open("wb", buffering=0) as full:
            while True:
                full.write(b"x" * 512)
        with pytest.raises(OperationFailure, match="the audit log cannot be written") as refused:
            for number in range(100):
                db.create_collection(f"c{number}")
        assert refused.value.code == 96
        # Documents are still read and written.
        db.a.insert_one({"_id": 2})
        assert db.a.count_documents({}) == 2 and client.admin.command("ping")["ok"] == 1
        filler.unlink()
        end = time.monotonic() + 10
        while True:
            try:
                db.create_collection("later")
                break
            except OperationFailure as error:
                assert error.code == 96 and time.monotonic() < end
                time.sleep(0.05)
        created = [param["ns"] for param in params(log, "createCollection")]
        for name in db.list_collection_names():
            assert f"{database_name}.{name}" in created
    assert verify(log)[0] == 0


def test_syslog_is_a_destination(own_server, tmp_path):
    if not os.path.exists("/dev/log"):
        refused = run("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "d"), "--audit-log", "syslog")
        assert refused.returncode == 1 and "/dev/log" in refused.stderr
        return
    server = own_server("--audit-log", "syslog")
    with server.client() as client, pytest.raises(OperationFailure):
        client.admin.command("logRotate", "audit")


def test_half_open_connections_leave_no_events(own_server, log):
    server = own_server("--audit-log", str(log))
    before = events(log)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as lost:
            lost.sendall(b"\x10\0\0\0")
    assert events(log) == before
    with server.client(serverSelectionTimeoutMS=5000) as client:
        try:
            client.admin.command("ping")
        except PyMongoError as error:
            raise AssertionError(error) from None
