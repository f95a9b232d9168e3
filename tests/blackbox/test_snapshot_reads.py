"""Reads of a snapshot outside of a transaction, compared with MongoDB as a replica set of one."""

import time

import pymongo
import pytest
from bson.timestamp import Timestamp
from pymongo.errors import OperationFailure

from support.transactions import Sessions, comparable, insert
from support.wire import Wire

pytestmark = pytest.mark.selkie_only

SNAPSHOT = {"level": "snapshot"}


def at(moment):
    return {"level": "snapshot", "atClusterTime": moment}


def time_of(reply: dict):
    return reply.get("atClusterTime") or reply.get("cursor", {}).get("atClusterTime")


class Client:
    def __init__(self, server):
        self.wire = Wire(server.port)

    def run(self, command: dict, concern: dict | None = None, database: str = "snapshots") -> dict:
        concerns = {"readConcern": concern} if concern else {}
        return self.wire.run({**command, **concerns, "$db": database})

    def find(self, concern: dict, collection: str = "c", **fields) -> dict:
        return self.run({"find": collection, "sort": {"_id": 1}, **fields}, concern)

    def ids(self, concern: dict, collection: str = "c") -> list:
        reply = self.find(concern, collection)
        assert reply["ok"] == 1, reply
        return [document["_id"] for document in reply["cursor"]["firstBatch"]]


@pytest.fixture
def clients(own_server, mongod) -> tuple[Client, Client]:
    both = Client(own_server("--topology", "replica-set")), Client(mongod)
    for client in both:
        client.run({"dropDatabase": 1})
    return both


@pytest.fixture
def replica_set(own_server):
    server = own_server("--topology", "replica-set")
    Client(server).run({"dropDatabase": 1})
    return server


@pytest.fixture
def own(replica_set) -> Client:
    return Client(replica_set)


def shown(reply: dict) -> dict:
    """The part of a reply that both servers must agree on."""
    kept = comparable(reply) | ({"atClusterTime": True} if time_of(reply) else {})
    if "cursor" in kept:
        kept["cursor"].pop("atClusterTime", None)
    if "values" in kept:
        kept["values"] = sorted(kept["values"])
    kept.pop("errmsg", None)
    return kept


PIPELINES = [
    [], [{"$group": {"_id": None, "n": {"$sum": 1}}}], [{"$unionWith": "c"}, {"$sort": {"_id": 1}}], [{"$changeStream": {}}],
    [{"$lookup": {"from": "d", "localField": "_id", "foreignField": "_id", "as": "d"}}, {"$sort": {"_id": 1}}],
    [{"$facet": {"n": [{"$count": "n"}]}}],
]


def test_replies(clients):
    replies = []
    for client in clients:
        client.run(insert(*range(5)))
        client.run(insert(2, collection="d"))
        client.run({"create": "v", "viewOn": "c", "pipeline": [{"$sort": {"_id": 1}}]})
        client.run({"create": "capped", "capped": True, "size": 4096})
        first = client.find(SNAPSHOT, batchSize=2)
        moment, cursor = time_of(first), first["cursor"]["id"]
        client.run(insert(100))
        client.run({"delete": "c", "deletes": [{"q": {"_id": {"$lt": 4}}, "limit": 0}]})
        found = [
            first, client.run({"getMore": cursor, "collection": "c", "batchSize": 1}), client.run({"getMore": cursor, "collection": "c"}),
            *(client.run({"aggregate": "c", "pipeline": pipeline, "cursor": {}}, concern)
              for pipeline in PIPELINES for concern in (at(moment), SNAPSHOT)),
            *(client.run({"distinct": "c", "key": "_id"}, concern) for concern in (at(moment), SNAPSHOT)),
            *(client.run({command: collection, **fields}, SNAPSHOT) for collection in ("none", "v", "capped") for command, fields in (
                ("find", {}), ("aggregate", {"pipeline": [], "cursor": {}}), ("distinct", {"key": "_id"}))),
            client.find(at(Timestamp(0, 0))), client.find(at(Timestamp(2**32 - 2, 1))), client.find(at(5)),
            client.find({"level": "majority", "atClusterTime": moment}), client.find({"atClusterTime": moment}),
            client.find({**at(moment), "afterClusterTime": moment}), client.find({**SNAPSHOT, "afterClusterTime": moment}),
            *(client.run(command, SNAPSHOT) for command in (
                {"count": "c"}, {"listCollections": 1}, insert(9), {"explain": {"find": "c"}}, {"ping": 1},
                {"aggregate": 1, "pipeline": [{"$documents": [{"a": 1}]}], "cursor": {}})),
            client.run({"find": "transactions"}, SNAPSHOT, "config"),
        ]
        assert {time_of(reply) for reply in found[:4]} == {moment}
        replies.append([shown(reply) for reply in found])
    for number, (ours, theirs) in enumerate(zip(*replies)):
        assert ours == theirs, number


def test_a_session_reads_one_snapshot_of_two_collections(replica_set):
    with replica_set.client() as client, replica_set.client() as other, client.start_session(snapshot=True) as session:
        database = client.snapshots
        for name in "ab":
            database[name].insert_many([{"_id": i, "v": 0} for i in range(300)])
        assert database.a.count_documents({}, session=session) == 300
        cursor = database.b.find({}, session=session, batch_size=50)
        seen = [next(cursor)]
        for name in "ab":
            other.snapshots[name].update_many({}, {"$inc": {"v": 1}})
            other.snapshots[name].insert_one({"_id": 1000, "v": 0})
            other.snapshots[name].delete_many({"_id": {"$lt": 100}})
        seen += cursor
        assert sorted(document["_id"] for document in seen) == list(range(300))
        for name in "ab":
            assert {document["v"] for document in database[name].find({}, session=session)} == {0}
            assert sorted(database[name].distinct("_id", session=session)) == list(range(300))
        joined = database.a.aggregate([{"$lookup": {"from": "b", "localField": "_id", "foreignField": "_id", "as": "b"}},
                                       {"$match": {"b.v": 0}}, {"$count": "n"}], session=session)
        assert joined.next() == {"n": 300}
        assert database.a.count_documents({}) == 201


def test_any_connection_reads_a_kept_snapshot(replica_set):
    clients = [Client(replica_set) for _ in range(6)]
    moments = []
    for number, client in enumerate(clients):
        client.run(insert(number))
        moments.append(time_of(client.find(SNAPSHOT)))
    assert moments == sorted(set(moments))
    for client in clients:
        for number, moment in enumerate(moments):
            assert client.ids(at(moment)) == list(range(number + 1))


def test_the_present_has_the_time_of_the_last_write(own_server, store):
    if store == "mariadb":
        pytest.skip("the times of its log are not those of replies")
    client = Client(own_server("--topology", "replica-set"))
    written = client.run(insert(1))["operationTime"]
    assert client.ids(at(written)) == [1]
    client.run(insert(2))
    assert client.ids(at(written)) == [1]
    assert client.find(at(Timestamp(written.time - 5, 1)))["code"] == 239
    later = client.run(insert(3))["operationTime"]
    client.run(insert(4))
    assert client.find(at(later))["code"] == 239


def test_old_snapshots_are_released(own):
    own.run(insert(*range(5)))
    first = own.find(SNAPSHOT, batchSize=2)
    own.run(insert(7))
    parameter = "minSnapshotHistoryWindowInSeconds"
    assert own.run({"getParameter": 1, parameter: 1}, database="admin")[parameter] == 300
    assert own.run({"setParameter": 1, parameter: -1}, database="admin")["code"] == 2
    assert own.run({"setParameter": 1, parameter: 0}, database="admin")["was"] == 300
    while (reply := own.find(at(time_of(first))))["ok"] == 1:
        time.sleep(0.01)
    assert (reply["code"], reply["codeName"]) == (239, "SnapshotTooOld")
    more = {"getMore": first["cursor"]["id"], "collection": "c"}
    assert own.run(more)["code"] == 239
    assert own.run(more)["code"] == 43
    own.run({"setParameter": 1, parameter: 300}, database="admin")
    assert own.ids(SNAPSHOT) == [0, 1, 2, 3, 4, 7]


def test_many_snapshots_release_the_least_recently_used(own, store):
    own.run(insert(1))
    moments, count = [], 16 if store == "mariadb" else 100
    for number in range(count + 10):
        moments.append(time_of(own.find(SNAPSHOT)))
        own.run(insert(100 + number))
        assert own.ids(at(moments[0])) == [1]
    assert own.find(at(moments[1]))["code"] == 239
    assert own.ids(at(moments[12])) == [1, *range(100, 112)]


def test_changes_of_definitions_do_not_wait(own):
    own.run(insert(1))
    moment = time_of(own.find(SNAPSHOT))
    assert own.run({"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}]})["ok"] == 1
    assert own.run(insert(1, collection="later"))["ok"] == 1
    assert own.find(at(moment), "later")["code"] in (239, 246)
    assert own.ids(SNAPSHOT, "later") == [1]
    own.run({"drop": "c"})
    own.run(insert(1))
    assert own.find(at(moment))["code"] in (239, 246)


def test_snapshot_reads_write_nothing(own):
    own.run(insert(1))
    for stage in ({"$out": "o"}, {"$merge": {"into": "o"}}):
        assert own.run({"aggregate": "c", "pipeline": [stage], "cursor": {}}, SNAPSHOT)["code"] == 72
    assert own.ids({"level": "local"}, "o") == []


def test_transactions_beside_snapshots(replica_set):
    """A snapshot is no conflict of a transaction, and does not see it before its commit."""
    client = Client(replica_set)
    client.run(insert(1))
    sessions = Sessions(replica_set)
    assert sessions.run(insert(2), "snapshots", "s", 1, start=True)["ok"] == 1
    before = time_of(client.find(SNAPSHOT))
    assert sessions.run({"commitTransaction": 1}, "admin", "s", 1)["ok"] == 1
    assert client.ids(at(before)) == [1] and client.ids(SNAPSHOT) == [1, 2]
    sessions.close()


def test_a_transaction_at_a_time(replica_set, store):
    if store == "mariadb":
        pytest.skip("the times of its log are not those of replies")
    client, sessions = Client(replica_set), Sessions(replica_set)
    client.run(insert(1))
    moment = time_of(client.find(SNAPSHOT))
    begin = {"find": "c", "readConcern": at(moment)}
    assert sessions.run(begin, "snapshots", "s", 1, start=True)["ok"] == 1
    client.run(insert(2))
    assert sessions.run({"aggregate": "c", "pipeline": [{"$count": "n"}], "cursor": {}}, "snapshots", "s", 1)["cursor"]["firstBatch"] == [{"n": 1}]
    assert sessions.run(insert(3), "snapshots", "s", 1)["ok"] == 1
    assert sessions.run({"commitTransaction": 1}, "admin", "s", 1)["ok"] == 1
    late = sessions.run(begin, "snapshots", "s", 2, start=True)
    assert (late["code"], late["errorLabels"]) == (239, ["TransientTransactionError"])
    sessions.close()


def test_a_standalone_server_has_no_snapshots(own_server):
    with own_server("--topology", "standalone").client() as client, client.start_session(snapshot=True) as session:
        with pytest.raises((OperationFailure, pymongo.errors.ConfigurationError)):
            client.snapshots.c.find_one({}, session=session)
