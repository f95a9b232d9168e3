"""Logins: mechanisms, failures, the localhost exception, and the commands that need no login."""

import base64
import os

import pymongo
import pytest
from bson import Binary
from pymongo.errors import OperationFailure

from support.mariadb import MariadbServer
from support.mongod import MongodServer
from support.scram import ScramClient, log_in, proceed, start
from support.selkie import SelkieServer, run
from support.wire import Wire, op_query

pytestmark = pytest.mark.selkie_only

ROOT, PASSWORD = "root", "p%ss/word:ü"
FAILED = (18, "Authentication failed.")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-1")

# The commands that MongoDB 6.0 answers before a login; each other one fails with 13.
FREE = {
    "_isSelf", "authenticate", "buildInfo", "connectionStatus", "getLastError", "getnonce", "hello", "isMaster",
    "listCommands", "ping", "saslContinue", "saslStart", "waitForFailPoint", "whatsmyuri",
}


def failure(client, database: str, command: dict) -> tuple:
    """The code and message of a command's error; `None` if it succeeds."""
    try:
        client[database].command(command)
    except OperationFailure as error:
        return error.code, error.details["errmsg"].split(" to execute command")[0]
    return None


def error_of(reply: dict) -> tuple:
    return reply.get("code"), reply.get("errmsg")


class Secured:
    """A server that requires a login, and its answers while it had no user."""

    def __init__(self, server: SelkieServer):
        self.server = server
        self.port = server.port
        self.before = {}
        with server.client(directConnection=True) as anonymous, Wire(server.port) as second:
            attempts = [
                ("admin", {"ping": 1}), ("test", {"find": "c"}), ("admin", {"listDatabases": 1}),
                ("admin", {"usersInfo": 1}), ("test", {"createUser": "u", "pwd": "p", "roles": []}),
                ("admin", {"createUser": "u", "pwd": "p", "roles": [{"role": "read", "db": "test"}]}),
                ("admin", {"createRole": "r", "privileges": [], "roles": []}),
                ("admin", {"createUser": ROOT, "pwd": PASSWORD, "roles": ["root"]}),
                ("admin", {"createUser": "second", "pwd": "p", "roles": ["root"]}),
            ]
            for database, command in attempts:
                self.before[(*command,)[0], database, str(command)] = failure(anonymous, database, command)
            self.by_second = error_of(second.run({"createUser": "second", "pwd": "p", "roles": ["root"], "$db": "admin"}))
        self.root = server.client(username=ROOT, password=PASSWORD)
        for user in [
            {"createUser": "u", "pwd": "p", "roles": ["readWrite"]},
            {"createUser": "a,b=c", "pwd": "p", "roles": []},
            {"createUser": "only1", "pwd": "p", "roles": [], "mechanisms": ["SCRAM-SHA-1"]},
            {"createUser": "only256", "pwd": "p", "roles": [], "mechanisms": ["SCRAM-SHA-256"]},
            {"createUser": "IX", "pwd": "IX", "roles": [], "mechanisms": ["SCRAM-SHA-256"]},
            {"createUser": "\u2168", "pwd": "\u2163", "roles": [], "mechanisms": ["SCRAM-SHA-256"]},
            {"createUser": "near", "pwd": "p", "roles": [], "authenticationRestrictions": [{"clientSource": ["127.0.0.0/8"]}]},
            {"createUser": "far", "pwd": "p", "roles": [], "authenticationRestrictions": [{"clientSource": ["10.0.0.0/8"]}]},
            {"createUser": "elsewhere", "pwd": "p", "roles": [],
             "authenticationRestrictions": [{"serverAddress": ["10.0.0.1"]}]},
        ]:
            self.root.test.command(user)

    def client(self, user: str, password: str, **options) -> pymongo.MongoClient:
        options = {"authSource": "test", "serverSelectionTimeoutMS": 5000, **options}
        return self.server.client(username=user, password=password, **options)

    def wire(self) -> Wire:
        return Wire(self.port)


@pytest.fixture(scope="module")
def secured(store, tmp_path_factory) -> Secured:
    folder = tmp_path_factory.mktemp("secured")
    # Its own server, because the users of a MariaDB are those of all gateways.
    mariadb = MariadbServer(folder / "mariadb").start() if store == "mariadb" else None
    options = ("--auth", "--cache", "documents", *(("--external-writes", "none") if mariadb else ()))
    server = SelkieServer(folder, mariadb, options).start()
    secured = Secured(server)
    yield secured
    secured.root.close()
    assert server.stop() == 0, server.end_of_log()
    log = server.log.read_text(errors="replace")
    assert PASSWORD not in log and "storedKey" not in log
    server.remove()
    if mariadb:
        mariadb.remove()


def status(wire: Wire) -> list[tuple]:
    """The users that are logged in on a connection."""
    info = wire.run({"connectionStatus": 1, "$db": "admin"})["authInfo"]
    return [(user["user"], user["db"]) for user in info["authenticatedUsers"]]


def test_the_localhost_exception_admits_only_the_first_user(secured):
    answers = list(secured.before.values())
    assert answers[:3] == [None, (13, "not authorized on test"), None]
    assert answers[3:7] == [(13, f"not authorized on {database}") for database in ("admin", "test", "admin", "admin")]
    assert answers[7:] == [None, (13, "command createUser requires authentication")]
    assert secured.by_second == (13, "command createUser requires authentication")


@pytest.mark.parametrize("mechanism", [*MECHANISMS, None])
def test_pymongo_logs_in(secured, mechanism):
    options = {"authMechanism": mechanism} if mechanism else {}
    with secured.client("u", "p", **options) as client:
        client.test.c.replace_one({"_id": 1}, {"_id": 1}, upsert=True)
        assert client.test.c.find_one() == {"_id": 1}
        info = client.test.command("connectionStatus", showPrivileges=True)["authInfo"]
        assert info["authenticatedUsers"] == [{"user": "u", "db": "test"}]
        assert info["authenticatedUserRoles"] == [{"role": "readWrite", "db": "test"}]
        resources = [privilege["resource"] for privilege in info["authenticatedUserPrivileges"]]
        assert resources == [{"db": "test", "collection": ""}, {"db": "test", "collection": "system.js"}]


@pytest.mark.parametrize(("user", "password"), [
    ("a,b=c", "p"), ("only1", "p"), ("only256", "p"), ("near", "p"),
    ("IX", "IX"), ("IX", "I\u00ADX"), ("\u2168", "IV"), ("\u2168", "I\u00ADV"),
])
def test_users_log_in(secured, user, password):
    with secured.client(user, password) as client:
        assert client.test.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": user, "db": "test"}]


@pytest.mark.parametrize(("user", "password", "options"), [
    ("u", "wrong", {}), ("nobody", "p", {}), ("u", "p", {"authSource": "admin"}), ("far", "p", {}), ("elsewhere", "p", {}),
    ("only1", "p", {"authMechanism": "SCRAM-SHA-256"}), ("only256", "p", {"authMechanism": "SCRAM-SHA-1"}),
])
def test_logins_that_fail(secured, user, password, options):
    with secured.client(user, password, **options) as client:
        assert failure(client, "test", {"find": "c"}) == FAILED


def test_unknown_users_are_answered_like_others(secured):
    with secured.wire() as wire:
        def first_answer(user: str, mechanism: str) -> str:
            reply = start(wire, ScramClient(user, "p", mechanism), "test")
            return bytes(reply["payload"]).decode().split(",", 1)[1]

        for mechanism in MECHANISMS:
            known, unknown, lacking = (first_answer(user, mechanism) for user in ("u", "nobody", "only1"))
            assert len(known) == len(unknown) == len(lacking) and known[-8:] == unknown[-8:]
            assert unknown == first_answer("nobody", mechanism) != first_answer("nobody2", mechanism)
        assert error_of(log_in(wire, "nobody", "p", "test")) == FAILED

        def mechanisms(name) -> list:
            return wire.run({"hello": 1, "saslSupportedMechs": name, "$db": "admin"})["saslSupportedMechs"]

        assert mechanisms("test.u") == mechanisms("test.nobody") == mechanisms({"user": "u", "db": "test"}) == [*MECHANISMS]
        assert mechanisms("test.only1") == ["SCRAM-SHA-1"] and mechanisms("test.only256") == ["SCRAM-SHA-256"]
        assert mechanisms("$external.CN=x") == []


def test_conversations(secured):
    with secured.wire() as wire:
        client = ScramClient("u", "p")
        reply = start(wire, client, "test")
        assert (reply["conversationId"], reply["done"]) == (1, False)
        assert error_of(wire.run({"find": "c", "$db": "test"})) == (13, "command find requires authentication")
        reply = proceed(wire, client.final(reply["payload"]), "test")
        assert not reply["done"] and status(wire) == []
        reply = proceed(wire, b"", "test")
        assert reply["done"] and reply["payload"] == b"" and status(wire) == [("u", "test")]
        assert error_of(proceed(wire, b"", "test")) == (17, "No SASL session state found")
    with secured.wire() as wire:
        client = ScramClient("u", "p")
        reply = start(wire, client, "test", options={"skipEmptyExchange": True})
        assert proceed(wire, client.final(reply["payload"]), "test")["done"] and status(wire) == [("u", "test")]
        # A second login of the same user is accepted, that of another one is not.
        assert log_in(wire, "u", "p", "test", "SCRAM-SHA-1")["ok"]
        code, message = error_of(log_in(wire, "only1", "p", "test", "SCRAM-SHA-1"))
        assert code == 5626702 and message.endswith("Already authenticated as: u@test")
        code, message = error_of(log_in(wire, ROOT, PASSWORD, "admin"))
        assert code == 5626701 and message.endswith("Previously authenticated as: u@test")
        assert wire.run({"logout": 1, "$db": "admin"})["ok"] and status(wire) == [("u", "test")]
        assert wire.run({"logout": 1, "$db": "test"})["ok"] and status(wire) == []
        assert log_in(wire, ROOT, PASSWORD, "admin")["ok"] and status(wire) == [(ROOT, "admin")]


def test_broken_conversations(secured):
    with secured.wire() as wire:
        client = ScramClient("u", "p")
        reply = start(wire, client, "test")
        last = client.final(reply["payload"])
        assert error_of(proceed(wire, last, "test", 77)) == (17, "sasl: Mismatched conversation id")
        assert error_of(proceed(wire, last, "test")) == (17, "No SASL session state found")
        first = start(wire, client, "test")
        start(wire, ScramClient("u", "p"), "test")
        assert error_of(proceed(wire, client.final(first["payload"]), "test")) == FAILED
        for change in (b"", b"x", last, last.replace(b"biws", b"eSws"), last + b",x=y"):
            start(wire, ScramClient("u", "p"), "test")
            assert error_of(proceed(wire, change, "test")) == FAILED
        reply = start(wire, client, "test")
        broken = client.final(reply["payload"]).replace(b",p=", b",p=!")
        assert error_of(proceed(wire, broken, "test")) == (10270, "invalid base64")
        assert status(wire) == []


@pytest.mark.parametrize("payload", [
    b"", b"n", b"n,,", b"p=tls-unique,,n=u,r=abcdefgh", b"n,a=v,n=u,r=abcdefgh", b"n,,m=x,n=u,r=abcdefgh", b"n,,n=u,r=abc",
    b"n,,n=u=,r=abcdefgh", b"n,,n=\xff,r=abcdefgh",
])
def test_malformed_payloads_fail(secured, payload):
    with secured.wire() as wire:
        command = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": Binary(payload), "$db": "test"}
        assert error_of(wire.run(command)) == FAILED


SASL_START = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": Binary(b"n,,n=u,r=abcdefgh")}
ERRORS = [
    ({"saslStart": 1}, (40414, "BSON field 'saslStart.mechanism' is missing but a required field")),
    ({"saslStart": 1, "mechanism": "SCRAM-SHA-1"}, (40414, "BSON field 'saslStart.payload' is missing but a required field")),
    (SASL_START | {"x": 1}, (40415, "BSON field 'saslStart.x' is an unknown field.")),
    (SASL_START | {"payload": 5}, (2, "Invalid SASLPayload type. Expected Base64 or BinData, got: int")),
    (SASL_START | {"payload": "!"}, (10270, "Failed decoding SASL payload: invalid base64")),
    (SASL_START | {"options": {"skipEmptyExchange": 1}}, (2, "skipEmptyExchange must be boolean")),
    (SASL_START | {"mechanism": "PLAIN"}, (334, "Received authentication for mechanism PLAIN which is not enabled")),
    (SASL_START | {"mechanism": ""}, (334, "Received authentication for mechanism  which is not enabled")),
    (SASL_START | {"$db": "$external"},
     (334, "Unsupported mechanism 'SCRAM-SHA-256' on authentication database '$external'")),
    ({"saslContinue": 1, "conversationId": 1, "payload": b""}, (17, "No SASL session state found")),
    ({"saslContinue": 1, "conversationId": 1.0}, (14, "BSON field 'saslContinue.conversationId' is the wrong type 'double', expected type 'int'")),
    ({"authenticate": 1}, (40414, "BSON field 'authenticate.mechanism' is missing but a required field")),
    ({"authenticate": 1, "mechanism": "MONGODB-X509"}, (18, "No verified subject name available from client")),
    ({"authenticate": 1, "mechanism": "SCRAM-SHA-1"}, (2, "Unsupported mechanism: SCRAM-SHA-1")),
    ({"logout": 1}, (13, "command logout requires authentication")),
    ({"nonsense": 1}, (59, "no such command: 'nonsense'")),
    ({"find": "c", "x": 1}, (13, "command find requires authentication")),
    ({"find": "c", "apiVersion": "2"}, (322, "Cannot accept API version 2")),
    ({"ping": 1, "x": 1}, (40415, "BSON field 'ping.x' is an unknown field.")),
]


@pytest.mark.parametrize(("command", "expected"), ERRORS, ids=lambda value: str(value)[:60])
def test_errors(secured, command, expected):
    with secured.wire() as wire:
        assert error_of(wire.run({**command, "$db": command.get("$db", "test")})) == expected


def test_payloads_may_be_text(secured):
    with secured.wire() as wire:
        client = ScramClient("u", "p")
        text = base64.b64encode(client.first()).decode()
        reply = start(wire, client, "test", payload=text)
        assert isinstance(reply["payload"], str)
        assert proceed(wire, client.final(base64.b64decode(reply["payload"])), "test")["ok"]


def test_a_hello_begins_the_login(secured):
    for name in ("hello", "isMaster"):
        with secured.wire() as wire:
            client = ScramClient("u", "p")
            login = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": client.first(), "db": "test",
                     "options": {"skipEmptyExchange": True}}
            reply = wire.run({name: 1, "speculativeAuthenticate": login, "saslSupportedMechs": "test.u", "$db": "admin"})
            fields = [name for name in reply if name not in ("$clusterTime", "operationTime")]
            assert fields[-3:] == ["saslSupportedMechs", "speculativeAuthenticate", "ok"]
            reply = reply["speculativeAuthenticate"]
            assert proceed(wire, client.final(reply["payload"]), "test")["done"] and status(wire) == [("u", "test")]
    with secured.wire() as wire:
        for login in [{"saslStart": 1, "mechanism": "X", "payload": b"", "db": "test"}, {"saslStart": 1, "db": "test"},
                      {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=u,r=abcdefgh"},
                      {"authenticate": 1, "mechanism": "MONGODB-X509", "db": "$external"}]:
            reply = wire.run({"hello": 1, "speculativeAuthenticate": login, "$db": "admin"})
            assert reply["ok"] and "speculativeAuthenticate" not in reply
        client = ScramClient("u", "p")
        login = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": client.first(), "db": "test"}
        wire.send(op_query("admin.$cmd", {"isMaster": 1, "speculativeAuthenticate": login}))
        reply = wire.receive_reply()["speculativeAuthenticate"]
        assert proceed(wire, client.final(reply["payload"]), "test")["ok"]


def test_each_command_before_login(secured, tmp_path):
    """Each command, as MongoDB answers it, if there is one to ask."""
    commands = secured.root.admin.command("listCommands")["commands"]
    free = {name for name in commands if not commands[name]["requiresAuth"]}
    assert free <= FREE | {"isdbgrid"}, free - FREE
    differing = {}
    for name in commands:
        with secured.wire() as wire:
            reply = wire.run({name: 1, "$db": "admin"})
            if name not in free and error_of(reply) != (13, f"command {name} requires authentication"):
                differing[name] = error_of(reply)
    assert not differing
    if "MONGOD" in os.environ:
        compare_with_mongodb(secured, tmp_path, commands)


def compare_with_mongodb(secured, folder, names):
    class SecuredMongod(MongodServer):
        def command(self):
            return [*super().command(), "--auth"]

    mongod = SecuredMongod(folder).start()
    try:
        with mongod.client() as client:
            client.admin.command({"createUser": "u", "pwd": "p", "roles": []})
        differing = {}
        for name in names:
            for database in ("admin", "test"):
                command = {name: 1, "$db": database}
                with Wire(mongod.port) as theirs, secured.wire() as ours:
                    expected, actual = error_of(theirs.run(command)), error_of(ours.run(command))
                # Without commands that MongoDB lacks.
                if expected[0] != 59 and name not in ("shutdown",) and expected != actual:
                    differing[name, database] = (expected, actual)
        assert not differing
    finally:
        mongod.remove()


# Those of RFC 4013 and others: mapped, normalized as in Unicode 3.2, from right to left, refused.
PASSWORDS = [
    "I\u00adX", "IX", "\u2168", "\u00aa", "a\u00a0b", "e\u0301", "\u212b", "\uff21", "\U0002f868", "\U0002f91f", "\uf951",
    "\u0627\u0031\u0628", "\u05d0", "\u0007", "\u0627\u0031", "a\u0627", "\u0221", "\u1e9e", "\u00ad", "\ue000", "\U0010ffff",
]
# Equal or refused after SASLprep, which is not for names.
NAMES = ["\u2168", "IX", "I\u00adX", "\u0007x", "\u0221", "\u0627\u0031", "a\u00a0b"]


def prepared(server, root) -> dict:
    """The errors of a server that is asked to store these. pymongo logs in with the others."""
    accepted = {}
    users = [(f"p{number}", password) for number, password in enumerate(PASSWORDS)] + [(name, "pencil") for name in NAMES]
    for user, password in users:
        command = {"createUser": user, "pwd": password, "roles": [], "mechanisms": ["SCRAM-SHA-256"]}
        accepted[user, password] = failure(root, "prepared", command)
        if accepted[user, password] is None:
            options = {"authSource": "prepared", "directConnection": True}
            with server.client(username=user, password=password, **options) as client:
                status = client.prepared.command("connectionStatus")["authInfo"]["authenticatedUsers"]
                assert status == [{"user": user, "db": "prepared"}]
    return accepted


def test_passwords_are_prepared_and_names_are_not(secured, tmp_path):
    ours = prepared(secured.server, secured.root)
    assert [ours[name, "pencil"] for name in NAMES] == [None] * len(NAMES)
    refused = {password for (_, password), error in ours.items() if error}
    assert refused == set(PASSWORDS[13:]) and {error[0] for error in ours.values() if error} == {50692}
    with secured.client("p0", "\u2168", authSource="prepared") as client:
        assert client.admin.command("ping")["ok"]
    if "MONGOD" in os.environ:
        mongod = MongodServer(tmp_path, ("--auth",)).start()
        try:
            with mongod.client() as first:
                first.admin.command("createUser", ROOT, pwd=PASSWORD, roles=["root"])
            with mongod.client(username=ROOT, password=PASSWORD) as root:
                assert prepared(mongod, root) == ours
        finally:
            mongod.remove()


def counted(root: pymongo.MongoClient, port: int) -> dict:
    """Logs in in several ways, and returns what `serverStatus` has counted of them."""
    root.counted.command("createUser", "c", pwd="p", roles=[], mechanisms=["SCRAM-SHA-256"])

    def counters() -> dict:
        authentication = root.admin.command("serverStatus")["security"]["authentication"]
        flat = {"asked": authentication["saslSupportedMechsReceived"]}
        for mechanism in MECHANISMS:
            for kind, counts in authentication["mechanisms"][mechanism].items():
                flat |= {f"{mechanism} {kind} {name}": number for name, number in counts.items()}
        return flat

    before = counters()
    with Wire(port) as wire:
        wire.run({"hello": 1, "saslSupportedMechs": "counted.c", "$db": "admin"})
    for password in ("p", "wrong"):
        for mechanism in MECHANISMS:
            with Wire(port) as wire:
                log_in(wire, "c", password, "counted", mechanism)
            with Wire(port) as wire:
                client = ScramClient("c", password, mechanism)
                begins = {"saslStart": 1, "mechanism": mechanism, "payload": client.first(), "db": "counted"}
                reply = wire.run({"hello": 1, "speculativeAuthenticate": begins, "$db": "admin"})
                if begun := reply.get("speculativeAuthenticate"):
                    proceed(wire, client.final(begun["payload"]), "counted")
                    proceed(wire, b"", "counted")
    after = counters()
    return {name: after[name] - before[name] for name in after}


def test_logins_are_counted(secured, tmp_path):
    ours = counted(secured.root, secured.port)
    assert ours["asked"] == 1 and ours["SCRAM-SHA-256 authenticate received"] == 4
    assert ours["SCRAM-SHA-256 authenticate successful"] == 2
    assert ours["SCRAM-SHA-256 speculativeAuthenticate successful"] == 1
    if "MONGOD" in os.environ:
        mongod = MongodServer(tmp_path, ("--auth",)).start()
        try:
            with mongod.client() as first:
                first.admin.command("createUser", ROOT, pwd=PASSWORD, roles=["root"])
            with mongod.client(username=ROOT, password=PASSWORD) as root:
                assert counted(root, mongod.port) == ours
        finally:
            mongod.remove()


def test_changed_users(secured):
    root = secured.root.test
    root.command({"createUser": "fleeting", "pwd": "p", "roles": ["readWrite"]})
    with secured.wire() as wire:
        find = {"find": "c", "$db": "test"}
        assert log_in(wire, "fleeting", "p", "test")["ok"] and wire.run(find)["ok"]
        root.command({"updateUser": "fleeting", "pwd": "q"})
        assert wire.run(find)["ok"] and status(wire) == [("fleeting", "test")]
        root.command({"updateUser": "fleeting", "authenticationRestrictions": [{"clientSource": ["10.0.0.1"]}]})
        assert error_of(wire.run(find)) == (13, "command find requires authentication") and status(wire) == []
        root.command({"updateUser": "fleeting", "authenticationRestrictions": []})
        assert log_in(wire, "fleeting", "q", "test")["ok"]
        root.command({"dropUser": "fleeting"})
        root.command({"createUser": "fleeting", "pwd": "q", "roles": ["readWrite"]})
        assert error_of(wire.run(find)) == (13, "command find requires authentication") and status(wire) == []
    root.command({"dropUser": "fleeting"})


def test_cached_replies_need_a_login(secured):
    with secured.client("u", "p") as client, secured.wire() as wire:
        client.test.c.replace_one({"_id": 7}, {"_id": 7, "secret": True}, upsert=True)
        for _ in range(5):
            assert client.test.c.find_one({"_id": 7})["secret"]
            reply = wire.run({"find": "c", "filter": {"_id": 7}, "limit": 1, "singleBatch": True, "$db": "test"})
            assert error_of(reply) == (13, "command find requires authentication")


def test_an_address_that_others_reach_requires_a_login():
    refused = run("serve", "--listen", "0.0.0.0:0")
    assert refused.returncode != 0
    assert "--auth" in refused.stderr and "--insecure-without-auth" in refused.stderr
