"""`configureFailPoint`, compared with MongoDB: the commands that drivers' own tests let fail."""

import os

import bson
import pymongo
import pytest

from support.mongod import MongodReplicaSet
from support.wire import Wire, op_msg

pytestmark = pytest.mark.selkie_only

DATABASE = "fails"
FIND, INSERT = {"find": "c"}, {"insert": "c", "documents": [{}]}
MODES = [
    1, None, True, [1], "on", {}, {"times": -1}, {"times": "x"}, {"times": 1.5}, {"times": 2**33}, {"skip": -1}, {"nosuch": 1},
    {"activationProbability": 2}, {"activationProbability": "x"}, {"times": 0}, {"times": 2, "nosuch": 1},
]
# The codes that have labels or details of their own, and some that do not.
CODES = [6, 7, 8, 43, 50, 64, 89, 91, 100, 112, 121, 133, 134, 189, 234, 251, 262, 317, 9001, 10107, 11000, 11600, 11602, 13388, 13435, 13436]
# A fail point's data, and a command.
FAILURES = [
    ({"failCommands": ["find"], "errorCode": 91}, FIND),
    ({"failCommands": ["insert"], "errorCode": 91}, FIND),
    ({"failCommands": "find", "errorCode": 91}, FIND),
    ({"failCommands": {"a": "find"}, "errorCode": 91}, FIND),
    ({"failCommands": [1, "find"], "errorCode": 91}, FIND),
    ({"errorCode": 91}, FIND),
    ({"failCommands": ["find"], "errorCode": "x"}, FIND),
    ({"failCommands": ["find"], "errorCode": 91.0}, FIND),
    ({"failCommands": ["find"], "errorCode": 91.5}, FIND),
    ({"failCommands": ["find"], "errorCode": 0}, FIND),
    ({"failCommands": ["find"], "errorCode": -1}, FIND),
    ({"failCommands": ["find"], "errorCode": 91, "errorLabels": ["a", "b"]}, FIND),
    ({"failCommands": ["find"], "errorLabels": ["a"]}, FIND),
    ({"failCommands": ["find"], "closeConnection": 1}, FIND),
    ({"failCommands": ["find"], "closeConnection": True}, FIND),
    ({"failCommands": ["find"], "closeConnection": True, "errorCode": 91}, FIND),
    ({"failCommands": ["find"], "blockConnection": True}, FIND),
    ({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": -1}, FIND),
    ({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": "x"}, FIND),
    ({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 1}, FIND),
    ({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 1, "errorCode": 91}, FIND),
    ({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 20}, {**FIND, "maxTimeMS": 10}),
    ({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 20, "errorCode": 91}, {**FIND, "maxTimeMS": 10}),
    ({"failCommands": ["find"], "errorCode": 91, "appName": "tests"}, FIND),
    ({"failCommands": ["find"], "errorCode": 91, "appName": "others"}, FIND),
    ({"failCommands": ["find"], "errorCode": 91, "namespace": f"{DATABASE}.c"}, FIND),
    ({"failCommands": ["find"], "errorCode": 91, "namespace": f"{DATABASE}.d"}, FIND),
    ({"failCommands": ["ping"], "errorCode": 91, "namespace": DATABASE}, {"ping": 1}),
    ({"failCommands": ["aggregate"], "errorCode": 91, "namespace": f"{DATABASE}.$cmd.aggregate"}, {"aggregate": 1, "pipeline": [], "cursor": {}}),
    ({"failCommands": ["getMore"], "errorCode": 91, "namespace": f"{DATABASE}.c"}, {"getMore": bson.Int64(1), "collection": "c"}),
    # The order of checks.
    ({"failCommands": ["find"], "errorCode": 91}, {"find": 1}),
    ({"failCommands": ["find"], "errorCode": 91}, {**FIND, "nosuch": 1}),
    ({"failCommands": ["find"], "errorCode": 91}, {**FIND, "maxTimeMS": -1}),
    ({"failCommands": ["find"], "errorCode": 91}, {**FIND, "readConcern": {"level": "x"}}),
    ({"failCommands": ["create"], "errorCode": 91}, {"create": "c", "nosuch": 1}),
    ({"failCommands": ["ping"], "errorCode": 91}, {"ping": 1, "writeConcern": {"w": 1}}),
    ({"failCommands": ["ping"], "errorCode": 91}, {"ping": 1, "apiVersion": "2"}),
    ({"failCommands": ["nosuch"], "errorCode": 91}, {"nosuch": 1}),
    ({"failCommands": ["listDatabases"], "errorCode": 91}, {"listDatabases": 1}),
    ({"failCommands": ["ismaster"], "errorCode": 91}, {"isMaster": 1, "check": 1}),
    ({"failCommands": ["configureFailPoint"], "errorCode": 91}, {"configureFailPoint": "failCommand", "mode": "alwaysOn"}),
    # Errors of write concerns.
    ({"failCommands": ["insert"], "writeConcernError": {"code": 100, "errmsg": "x"}}, INSERT),
    ({"failCommands": ["insert"], "writeConcernError": {"code": 91, "errmsg": "x", "errInfo": {"a": 1}}}, INSERT),
    ({"failCommands": ["insert"], "writeConcernError": {"code": 100}}, {**INSERT, "writeConcern": {"w": 5}}),
    ({"failCommands": ["insert"], "writeConcernError": {"code": 91}, "errorCode": 91}, INSERT),
    ({"failCommands": ["find"], "writeConcernError": {"code": 91}}, FIND),
    ({"failCommands": ["ping"], "writeConcernError": {"code": 91}}, {"ping": 1}),
    ({"failCommands": ["aggregate"], "writeConcernError": {"code": 91}}, {"aggregate": "c", "pipeline": [{"$limit": 1}, {"$out": "d"}], "cursor": {}}),
    ({"failCommands": ["createIndexes"], "writeConcernError": {"code": 91}}, {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}),
]
RETRYABLE_FAILURES = [
    *({"failCommands": ["insert"], "errorCode": code} for code in CODES),
    {"failCommands": ["insert"], "errorCode": 11000, "errorExtraInfo": {"keyPattern": {"a": 1}, "keyValue": {"a": 2}}},
    {"failCommands": ["insert"], "errorCode": 91, "errorLabels": []},
    {"failCommands": ["insert"], "errorCode": 91, "errorLabels": "a"},
    {"failCommands": ["insert"], "errorCode": 50, "errorLabels": ["RetryableWriteError"]},
    {"failCommands": ["insert"], "writeConcernError": {"code": 91}},
    {"failCommands": ["insert"], "writeConcernError": {"code": 91}, "errorLabels": ["a"]},
    {"failCommands": ["insert"], "writeConcernError": {"code": 91}, "errorLabels": []},
    {"failCommands": ["insert"], "writeConcernError": {"code": 64}, "errorLabels": ["RetryableWriteError"]},
]
# Fields that differ between servers.
MASKED = {"opTime", "electionId", "operationTime", "$clusterTime", "connectionId", "localTime", "topologyVersion", "codeName"}


class Client:
    """A client with the application's name `tests`, on either server."""

    def __init__(self, port: int):
        self.port = port
        self.connect()
        self.session = {"id": bson.Binary(os.urandom(16), 4)}
        self.number = 0

    def connect(self):
        self.wire = Wire(self.port)
        metadata = {"application": {"name": "tests"}, "driver": {"name": "x", "version": "1"}, "os": {"type": "x"}}
        self.wire.run({"hello": 1, "client": metadata, "$db": "admin"})

    def run(self, command: dict, database: str = DATABASE) -> dict | str:
        try:
            return masked(self.wire.run({**command, "$db": database}))
        except ConnectionError:
            self.connect()
            return "closed"

    def configure(self, **fields) -> dict | str:
        return self.run({"configureFailPoint": "failCommand", **fields}, "admin")

    def retryable(self, command: dict) -> dict:
        self.number += 1
        return {**command, "lsid": self.session, "txnNumber": bson.Int64(self.number)}


def masked(reply: dict) -> dict:
    return {name: value if name not in MASKED else None for name, value in reply.items()
            if name not in {"operationTime", "$clusterTime", "opTime", "electionId"}}


@pytest.fixture(scope="module")
def mongod(tmp_path_factory):
    server = MongodReplicaSet(tmp_path_factory.mktemp("mongod"), ("--setParameter", "enableTestCommands=1")).start()
    yield server
    server.remove()


@pytest.fixture
def clients(own_server, mongod, tmp_path) -> tuple[Client, Client]:
    """Clients of Selkie and of MongoDB, whose collection has one document."""
    clients = Client(own_server("--topology", "replica-set", "--test-commands").port), Client(mongod.port)
    for client in clients:
        client.configure(mode="off")
        for command in ({"dropDatabase": 1}, {"insert": "c", "documents": [{"_id": 1}]}):
            assert client.run(command)["ok"] == 1
    return clients


def test_modes(clients):
    data = {"failCommands": ["ping"], "errorCode": 91}
    for fields in ({}, {"mode": "off", "data": 5}, {"mode": "off", "nosuch": 1}, *({"mode": mode} for mode in MODES)):
        selkie, mongod = (without_count(client.configure(**fields)) for client in clients)
        assert selkie == mongod, fields
    for mode in ("off", "alwaysOn", {"times": 2}, {"skip": 2}, {"activationProbability": 0}, {"activationProbability": 1}):
        counts = []
        for client in clients:
            before = client.configure(mode=mode, data=data)["count"]
            codes = [client.run({"ping": 1}).get("code") for _ in range(4)]
            counts.append((codes, client.configure(mode="off")["count"] - before))
        assert counts[0] == counts[1], mode
    for client in clients:
        assert client.run({"configureFailPoint": "nosuch", "mode": "off"}, "admin")["code"] == 266
        assert client.run({"configureFailPoint": "failCommand", "mode": "off"}, "test")["code"] == 13


def without_count(reply: dict) -> dict:
    return {name: value for name, value in reply.items() if name != "count"}


def test_failures(clients):
    for data, command in FAILURES:
        replies = []
        for client in clients:
            before = client.configure(mode="alwaysOn", data=data)
            reply = client.run({**command, **({"documents": [{"_id": 2}]} if "insert" in command else {})})
            after = client.configure(mode="off")
            replies.append((essence(reply), after["count"] - before["count"]))
            client.run({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]})
        assert replies[0] == replies[1], (data, command)


def essence(reply: dict | str) -> dict | str:
    """The parts that a fail point decides."""
    parts = ("ok", "code", "errmsg", "errorLabels", "topologyVersion", "writeConcernError", "n")
    return reply if isinstance(reply, str) else {name: reply[name] for name in parts if name in reply}


def test_failures_of_retryable_writes(clients):
    for data in RETRYABLE_FAILURES:
        replies = []
        for client in clients:
            client.configure(mode={"times": 1}, data=data)
            replies.append(client.run(client.retryable(INSERT)))
        assert replies[0] == replies[1], data


def test_a_driver_retries(own_server, database_name):
    """As drivers' own tests have it: one failure, and a retry that succeeds."""
    with own_server("--topology", "replica-set", "--test-commands").client(heartbeatFrequencyMS=500) as client:
        collection = client[database_name].c
        for data in ({"errorCode": 91}, {"closeConnection": True}, {"writeConcernError": {"code": 91, "errmsg": "x"}}):
            fail = {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["insert"], **data}}
            client.admin.command(fail)
            collection.insert_one(data)
        client.admin.command({**fail, "mode": {"times": 1}, "data": {"failCommands": ["find"], "errorCode": 6}})
        assert collection.count_documents({}) == 3 and len(list(collection.find())) == 3
        client.admin.command({**fail, "mode": {"times": 2}, "data": {"failCommands": ["insert"], "errorCode": 91}})
        with pytest.raises(pymongo.errors.AutoReconnect):
            collection.insert_one({})
        client.drop_database(database_name)


def test_a_delay_blocks_one_connection(own_server):
    server = own_server("--topology", "replica-set", "--test-commands")
    slow, other = Client(server.port), Client(server.port)
    slow.configure(mode={"times": 1}, data={"failCommands": ["ping"], "blockConnection": True, "blockTimeMS": 60_000})
    slow.wire.send(op_msg({"ping": 1, "$db": DATABASE}))
    blocked = {"aggregate": 1, "pipeline": [{"$currentOp": {}}, {"$match": {"command.ping": 1}}], "cursor": {}}
    while not (operations := other.run(blocked, "admin")["cursor"]["firstBatch"]):
        pass
    other.run({"killOp": 1, "op": operations[0]["opid"]}, "admin")
    assert slow.wire.receive_reply()["code"] == 11601


def test_without_test_commands(own_server):
    client = Client(own_server().port)
    assert client.configure(mode="off") == {
        "ok": 0.0, "errmsg": "no such command: 'configureFailPoint'", "code": 59, "codeName": None}
    assert "configureFailPoint" not in client.run({"listCommands": 1})["commands"]
    assert client.run({"getParameter": 1, "enableTestCommands": 1}, "admin")["enableTestCommands"] is False


def test_labels_in_transactions(clients):
    for code in [*CODES, 24, 150, 239, 246]:
        replies = []
        for client in clients:
            statement = {**client.retryable(INSERT), "autocommit": False}
            client.configure(mode={"times": 1}, data={"failCommands": ["insert"], "errorCode": code})
            failed = client.run({**statement, "startTransaction": True})
            client.configure(mode={"times": 1}, data={"failCommands": ["commitTransaction"], "errorCode": code})
            commit = {**{name: statement[name] for name in ("lsid", "txnNumber", "autocommit")}}
            replies.append((failed, client.run({"commitTransaction": 1, **commit}, "admin")))
        assert replies[0] == replies[1], code
