"""The behavior of drivers with each topology that Selkie can announce: server selection, retries
and streaming."""

import threading
import time

import bson
import gridfs
import pymongo
import pytest
from pymongo.errors import AutoReconnect

from support.node import run

pytestmark = pytest.mark.selkie_only

TOPOLOGIES = {
    "router": ((), "", "Sharded"),
    "replica-set": (("--topology", "replica-set", "--replica-set", "rs7"), "?replicaSet=rs7", "ReplicaSetWithPrimary"),
    "standalone": (("--topology", "standalone"), "", "Single"),
}


@pytest.fixture(params=TOPOLOGIES)
def topology(request) -> str:
    return request.param


@pytest.fixture
def uri(topology, own_server) -> str:
    """The address of a server of that topology, as its users would write it."""
    options, query, _ = TOPOLOGIES[topology]
    return f"{own_server(*options).uri}/{query}"


def test_pymongo(uri, topology, database_name):
    with pymongo.MongoClient(uri) as client:
        db = client[database_name]
        db.c.insert_many([{"_id": number} for number in range(1000)])
        assert client.topology_description.topology_type_name == TOPOLOGIES[topology][2]
        assert [row["_id"] for row in db.c.find(sort=[("_id", 1)], batch_size=100)] == list(range(1000))
        assert db.c.update_many({"_id": {"$lt": 10}}, {"$set": {"x": 1}}).modified_count == 10
        assert db.c.find_one_and_delete({"_id": 3})["x"] == 1
        files = gridfs.GridFS(db)
        assert files.get(files.put(b"ab" * 2**20)).read() == b"ab" * 2**20
        with client.start_session(causal_consistency=True) as session:
            assert db.c.with_options(read_concern=pymongo.read_concern.ReadConcern("majority")).count_documents({}, session=session) == 999
        assert db.c.with_options(write_concern=pymongo.WriteConcern("majority")).delete_many({}).deleted_count == 999
        client.drop_database(database_name)


def test_exhaust_cursor(uri, topology, database_name):
    if topology == "router":
        pytest.skip("pymongo does not ask routers for exhaust cursors")
    with pymongo.MongoClient(uri) as client:
        db = client[database_name]
        db.c.insert_many([{"_id": number, "pad": "x" * 1000} for number in range(5000)])
        with db.c.find(cursor_type=pymongo.CursorType.EXHAUST, batch_size=100) as cursor:
            assert [row["_id"] for row in cursor] == list(range(5000))
        # An interrupted request closes its connection; the other connections keep working.
        with db.c.find(cursor_type=pymongo.CursorType.EXHAUST, batch_size=2) as cursor:
            next(cursor)
        assert db.c.count_documents({}) == 5000
        client.drop_database(database_name)


@pytest.mark.parametrize("script", ["driver.mjs", "mongoose.mjs"])
def test_node(uri, script, database_name, tmp_path):
    assert run(["node", script, uri, database_name], tmp_path).count("ok ") >= 5


def test_clients_notice_that_a_server_is_back(topology, own_server, database_name):
    """Monitors stream hello; a write during the restart is retried if the topology has retryable
    writes."""
    options, query, _ = TOPOLOGIES[topology]
    server = own_server(*options)
    with pymongo.MongoClient(f"{server.uri}/{query}", heartbeatFrequencyMS=500, serverSelectionTimeoutMS=20_000) as client:
        collection = client[database_name].c
        collection.insert_one({"_id": "before"})
        restart = threading.Thread(target=lambda: (server.kill(), time.sleep(0.5), server.start()))
        restart.start()
        written, deadline = 0, time.monotonic() + 20
        while (restart.is_alive() or written < 20) and time.monotonic() < deadline:
            try:
                collection.insert_one({})
                written += 1
            except AutoReconnect:
                # Without retryable writes, or where the restart takes longer than the one retry.
                time.sleep(0.05)
        restart.join()
        assert written >= 20
        assert collection.count_documents({}) >= written + 1
        client.drop_database(database_name)


def test_an_unsatisfiable_write_concern_is_reported_with_the_write(topology, uri, database_name):
    """Like a set of one member; a standalone server refuses the write."""
    concern = {"w": 2, "wtimeout": 10}
    with pymongo.MongoClient(uri) as client:
        db = client[database_name]
        if topology == "standalone":
            assert db.command("insert", "c", documents=[{"_id": 1}], writeConcern=concern, check=False)["code"] == 2
            return
        error = {"code": 100, "codeName": "UnsatisfiableWriteConcern", "errmsg": "Not enough data-bearing nodes",
                 "errInfo": {"writeConcern": {**concern, "provenance": "clientSupplied"}}}
        for command in ({"insert": "c", "documents": [{"_id": 1}]}, {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
                        {"create": "d"}, {"createIndexes": "d", "indexes": [{"key": {"a": 1}, "name": "a"}]}, {"drop": "d"},
                        {"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}, {"findAndModify": "c", "query": {}, "remove": True}):
            reply = db.command({**command, "writeConcern": concern}, check=False)
            assert (reply["ok"], reply["writeConcernError"]) == (1, error), command
        assert db.d.find_one() == {"_id": 1, "a": 1} and db.c.count_documents({}) == 0
        # Reads need no acknowledgement.
        assert "writeConcernError" not in db.command("aggregate", "d", pipeline=[], cursor={}, writeConcern=concern)
        for w, code in (("x", 79), ({"dc": 1}, 4), (None, 79)):
            assert db.command("insert", "c", documents=[{}], writeConcern={"w": w})["writeConcernError"]["code"] == code
        client.drop_database(database_name)


def test_linearizable_reads(topology, uri, database_name):
    linearizable = pymongo.read_concern.ReadConcern("linearizable")
    with pymongo.MongoClient(uri) as client:
        client[database_name].c.insert_one({"_id": 1})
        collection = client[database_name].get_collection("c", read_concern=linearizable)
        if topology == "standalone":
            with pytest.raises(pymongo.errors.OperationFailure) as error:
                collection.find_one()
            assert error.value.code == 123
            return
        assert collection.find_one() == {"_id": 1} and list(collection.aggregate([])) == [{"_id": 1}]
        with pytest.raises(pymongo.errors.OperationFailure) as error:
            client[database_name].command("aggregate", "c", pipeline=[{"$out": "d"}], cursor={}, readConcern={"level": "linearizable"})
        assert error.value.code == 72
        client.drop_database(database_name)


def test_a_missing_oplog_is_not_followed(topology, uri, store):
    if (topology, store) == ("replica-set", "embedded"):
        pytest.skip("it has one")
    with pymongo.MongoClient(uri) as client:
        oplog = client.local["oplog.rs"]
        follow = lambda: list(oplog.find({}, cursor_type=pymongo.CursorType.TAILABLE_AWAIT))
        if topology == "standalone":
            assert follow() == []
            return
        with pytest.raises(pymongo.errors.OperationFailure) as error:
            follow()
        assert error.value.code == 238 and "no oplog" in str(error.value)


def test_numbers_of_transactions(topology, uri, database_name):
    """Retryable writes and transactions have one. With other commands it is refused, but not as if
    retryable writes were unsupported."""
    if topology == "standalone":
        return
    with pymongo.MongoClient(uri) as client, client.start_session() as session:
        db = client[database_name]
        numbered = {"lsid": session.session_id, "txnNumber": bson.Int64(1)}
        retried = {"insert": "c", "documents": [{"_id": 1}], "txnNumber": bson.Int64(2)}
        begin = {"find": "c", "startTransaction": True, "autocommit": False}
        commands = [{"find": "c"}, {"create": "c"}, begin, retried, retried]
        # The command's name must be first.
        replies = [db.command({**command, **numbered, **command}, check=False) for command in commands]
        assert [reply.get("code") for reply in replies] == [50768, 50768, None, None, None]
        assert replies[-1]["n"] == 1
        client.drop_database(database_name)


def test_a_router_has_a_shard(topology, uri):
    with pymongo.MongoClient(uri) as client:
        shards = client.config.shards
        if topology != "router":
            assert shards.find_one() is None
            return
        shard = shards.find_one({"state": 1})
        assert shard["_id"] == "selkie" and shard["host"] and shards.find_one({"state": 2}) is None
        assert [*shards.find({}, {"_id": 1})] == [{"_id": "selkie"}] and [*shards.aggregate([{"$project": {"_id": 1}}])] == [{"_id": "selkie"}]
        assert shards.count_documents({}) == 1 and shards.estimated_document_count() == 1
        assert client.admin.command("listShards")["shards"] == [shard]


def test_the_state_of_a_set(topology, uri):
    with pymongo.MongoClient(uri) as client:
        if topology != "replica-set":
            assert client.admin.command("replSetGetStatus", check=False)["code"] == 76
            return
        status = client.admin.command("replSetGetStatus")
        (member,) = status["members"]
        assert (status["myState"], member["stateStr"], member["self"]) == (1, "PRIMARY", True)
        assert member["optime"] == status["optimes"]["appliedOpTime"] and member["optimeDate"] >= member["electionDate"]
        config = client.admin.command("replSetGetConfig")["config"]
        assert config["protocolVersion"] == 1 and config["members"][0]["buildIndexes"]
