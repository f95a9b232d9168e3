"""The times of replies and reads after a time, compared with MongoDB as a replica set of one."""

import time

import bson
import pymongo
import pytest
from bson.timestamp import Timestamp
from pymongo.read_concern import ReadConcern

from support.wire import Wire, op_query

pytestmark = pytest.mark.selkie_only

DATABASE = "times"
ZERO = {"hash": b"\0" * 20, "keyId": bson.Int64(0)}
MALFORMED = [
    1, None, {}, {"clusterTime": 1}, {"clusterTime": Timestamp(1, 1)},
    *({"clusterTime": Timestamp(1, 1), "signature": signature} for signature in (
        1, {}, {"hash": 1, "keyId": 0}, {"hash": b"1", "keyId": 0}, {"hash": b"1" * 20}, {"hash": b"1" * 20, "keyId": 1})),
    {"clusterTime": Timestamp(0, 0), "signature": ZERO}, {"clusterTime": Timestamp(1, 1), "signature": ZERO, "x": 1},
    {"clusterTime": Timestamp(2**32 - 1, 1), "signature": ZERO},
]
INSERT = {"insert": "c", "documents": [{}]}


class Client:
    def __init__(self, port: int):
        self.wire = Wire(port)

    def run(self, command: dict, database: str = DATABASE) -> dict:
        return self.wire.run({**command, "$db": database})

    def find_after(self, after: Timestamp, **fields) -> dict:
        return self.run({"find": "c", "readConcern": {"afterClusterTime": after}, **fields})


@pytest.fixture
def clients(own_server, mongod) -> tuple[Client, Client]:
    return Client(own_server("--topology", "replica-set").port), Client(mongod.port)


def gossip(at: Timestamp) -> dict:
    return {"$clusterTime": {"clusterTime": at, "signature": ZERO}}


def ahead(reply: dict, seconds: int) -> Timestamp:
    """A time after that of a reply."""
    return Timestamp(reply["$clusterTime"]["clusterTime"].time + seconds, 7)


def code_of(reply: dict) -> int | None:
    return reply.get("code")


def test_each_reply_has_times(clients):
    for client in clients:
        last = Timestamp(0, 0)
        for command in (INSERT, {"find": "c"}, {"ping": 1}, {"nosuch": 1}, {"find": 1}, {"hello": 1}, {"create": "c"}, INSERT,
                        {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": True}]}):
            reply = client.run(command)
            assert list(reply)[-2:] == ["$clusterTime", "operationTime"], command
            assert reply["$clusterTime"]["signature"] == ZERO
            assert last <= reply["operationTime"] <= reply["$clusterTime"]["clusterTime"]
            if command is INSERT:
                assert reply["operationTime"] > last
            last = reply["operationTime"]
        client.wire.send(op_query("admin.$cmd", {"isMaster": 1}))
        assert list(client.wire.receive_reply())[-2:] == ["$clusterTime", "operationTime"]


def test_clients_move_the_clock(clients):
    for client in clients:
        before = client.run({"ping": 1})
        moved = ahead(before, 100)
        after = client.run({"ping": 1, **gossip(moved)})
        assert after["$clusterTime"]["clusterTime"] == moved and after["operationTime"] < moved
        assert client.run({"ping": 1})["$clusterTime"]["clusterTime"] == moved
        assert client.run(INSERT)["operationTime"] > moved


def test_malformed_times(clients):
    for sent in MALFORMED:
        for command in ({"ping": 1}, {"find": 1}, {"ping": 1, "nosuch": 1}):
            ours, theirs = (client.run({**command, "$clusterTime": sent}) for client in clients)
            assert (ours["ok"], code_of(ours)) == (theirs["ok"], code_of(theirs)), (command, sent)
            if code_of(ours) not in (None, 205):
                assert ours["errmsg"] == theirs["errmsg"]


def test_reads_after_a_time(clients):
    outcomes = []
    for client in clients:
        operation_time = client.run(INSERT)["operationTime"]
        future = ahead(client.run({"ping": 1}), 500)
        replies = [
            client.find_after(operation_time), client.find_after(future), client.find_after(Timestamp(0, 0)),
            client.run({**INSERT, **gossip(future)}), client.find_after(future),
            client.run({"ping": 1, "readConcern": {"afterClusterTime": operation_time}}),
            client.run({**INSERT, "readConcern": {"afterClusterTime": operation_time}}),
            *(client.run({"find": "c", "readConcern": concern}) for concern in (
                {"level": "majority", "afterClusterTime": operation_time}, {"level": "available", "afterClusterTime": operation_time},
                {"level": "local", "atClusterTime": operation_time}, {"level": "snapshot", "atClusterTime": ahead(client.run({"ping": 1}), 900)},
                {"level": "snapshot", "atClusterTime": Timestamp(0, 0)},
                {"level": "majority", "afterOpTime": {"ts": operation_time, "t": bson.Int64(1)}},
                {"level": "local", "afterClusterTime": operation_time, "afterOpTime": {"ts": operation_time, "t": bson.Int64(1)}})),
        ]
        assert replies[4]["operationTime"] >= future
        outcomes.append([(reply["ok"], code_of(reply)) for reply in replies])
    assert outcomes[0] == outcomes[1]


def test_a_read_after_a_time_without_writes(own_server):
    """MongoDB waits for its next entry without effect, ten seconds at most."""
    client = Client(own_server("--topology", "replica-set").port)
    future = ahead(client.run(INSERT), 500)
    assert client.find_after(future, **gossip(future))["operationTime"] >= future


@pytest.mark.parametrize("topology", ["router", "replica-set"])
def test_causal_sessions(own_server, topology, database_name):
    server = own_server("--topology", topology)
    with server.client(readConcernLevel="majority") as client, client.start_session(causal_consistency=True) as session:
        collection = client[database_name].c
        for number in range(20):
            collection.insert_one({"_id": number}, session=session)
            assert collection.count_documents({}, session=session) == number + 1
            assert collection.find_one({"_id": number}, session=session)
        # Another session begins after the first.
        with server.client() as other, other.start_session(causal_consistency=True) as later:
            later.advance_cluster_time(session.cluster_time)
            later.advance_operation_time(session.operation_time)
            read = other[database_name].get_collection("c", read_concern=ReadConcern("local"))
            assert read.count_documents({}, session=later) == 20
            assert later.operation_time >= session.operation_time
        client.drop_database(database_name)


def test_cached_replies_have_the_times_of_now(own_server, store, database_name):
    """Small ones are copied, large ones are sent from where they are stored."""
    alone = ("--external-writes", "none") if store == "mariadb" else ()
    server = own_server("--topology", "replica-set", "--cache", "documents", *alone)
    client = Client(server.port)
    for pad in (10, 100_000):
        client.run({"drop": "c"}, database_name)
        client.run({"insert": "c", "documents": [{"_id": number, "pad": "x" * pad} for number in range(20)]}, database_name)
        for batch in ({}, {"batchSize": 10}):
            times = []
            for _ in range(4):
                reply = client.run({"find": "c", "sort": {"_id": 1}, **batch}, database_name)
                assert [row["_id"] for row in reply["cursor"]["firstBatch"]] == list(range(batch.get("batchSize", 20)))
                times.append(reply["operationTime"])
                client.run({"insert": "other", "documents": [{}]}, database_name)
            assert times == sorted(set(times))
    assert client.run({"serverStatus": 1}, "admin")["cache"]["hits"] > 0
    client.run({"dropDatabase": 1}, database_name)


def test_a_clock_that_logins_protect(own_server):
    """Times are not signed, so clients may not move the clock far."""
    server = own_server("--topology", "replica-set", "--auth")
    client = Client(server.port)
    now = int(time.time())
    assert client.run({"hello": 1, **gossip(Timestamp(now + 20, 1))}, "admin")["ok"] == 1
    assert code_of(client.run({"hello": 1, **gossip(Timestamp(now + 1000, 1))}, "admin")) == 205


def test_a_standalone_server_has_no_times(own_server):
    client = Client(own_server("--topology", "standalone").port)
    assert list(client.run({"ping": 1, "$clusterTime": 1})) == ["ok"]
    assert code_of(client.find_after(Timestamp(1, 1))) == 20
    with pytest.raises(pymongo.errors.OperationFailure) as error, pymongo.MongoClient(f"mongodb://127.0.0.1:{client.wire.socket.getpeername()[1]}") as driver:
        driver[DATABASE].command("find", "c", readConcern={"level": "snapshot"})
    assert error.value.code == 123
