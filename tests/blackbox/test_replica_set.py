"""The replica set that Selkie presents, compared with MongoDB as a replica set of one."""

import bson
import pymongo
import pytest
from pymongo.errors import ServerSelectionTimeoutError

from support.process import free_port
from support.wire import EXHAUST_ALLOWED, Wire

pytestmark = pytest.mark.selkie_only

# Fields about storage and elections, which MongoDB adds.
ONLY_MONGODB = {"lastStableRecoveryTimestamp", "electionCandidateMetrics", "replicaSetId"}
CHANGES = [
    {"replSetAbortPrimaryCatchUp": 1}, {"replSetFreeze": 10}, {"replSetInitiate": {}}, {"replSetMaintenance": True}, {"replSetSyncFrom": "a:1"},
    {"replSetStepDown": 1, "secondaryCatchUpPeriodSecs": 0}, {"replSetGetRBID": 1},
]


@pytest.fixture
def wires(own_server, mongod) -> tuple[Wire, Wire]:
    return Wire(own_server("--topology", "replica-set").port), Wire(mongod.port)


def shape(value, name: str = ""):
    """Names of fields and types of values, all the way down."""
    if isinstance(value, dict):
        return {name: shape(inner, name) for name, inner in value.items() if name not in ONLY_MONGODB}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return type(value).__name__


@pytest.mark.parametrize("command", ["hello", "isMaster", "replSetGetStatus", "replSetGetConfig", "replSetGetRBID"])
def test_state(wires, command):
    ours, theirs = (wire.run({command: 1, "$db": "admin"}) for wire in wires)
    assert shape(ours) == shape(theirs)


@pytest.mark.parametrize("read", [
    {"find": "system.replset"}, {"find": "system.replset", "projection": {"members.host": 1, "_id": 0}},
    {"find": "system.replset", "filter": {"_id": "other"}}, {"aggregate": "system.replset", "pipeline": [{"$match": {"version": 1}}], "cursor": {}}])
def test_the_stored_configuration(wires, read):
    ours, theirs = (wire.run({**read, "$db": "local"}) for wire in wires)
    assert shape(ours) == shape(theirs)
    stored = wires[0].run({"find": "system.replset", "$db": "local"})["cursor"]["firstBatch"]
    assert stored == [wires[0].run({"replSetGetConfig": 1, "$db": "admin"})["config"]]


def test_replies_to_writes_name_their_time(wires):
    replies = []
    for wire in wires:
        wire.run({"dropDatabase": 1, "$db": "times"})
        upsert = {"q": {"_id": 2}, "u": {"$set": {"x": 1}}, "upsert": True}
        replies.append([wire.run({**command, "$db": "times"}) for command in (
            {"insert": "c", "documents": [{"_id": 1}]}, {"insert": "c", "documents": [{"_id": 1}]},
            {"update": "c", "updates": [upsert]}, {"update": "c", "updates": [upsert]},
            {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"x": 2}}},
            {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
            {"insert": "c", "documents": [{"_id": 9}], "writeConcern": {"w": 3}}, {"create": "d"}, {"drop": "d"})])
        assert [reply["opTime"]["ts"] for reply in replies[-1] if "opTime" in reply] == sorted(
            reply["opTime"]["ts"] for reply in replies[-1] if "opTime" in reply)
        assert all(reply["opTime"]["ts"] <= reply["operationTime"] for reply in replies[-1] if "opTime" in reply)
    for ours, theirs in zip(*replies):
        assert list(shape(ours).items()) == list(shape(theirs).items())


def test_changes_are_refused(wires):
    for command in CHANGES:
        ours, theirs = (wire.run({**command, "$db": "admin"}) for wire in wires)
        assert (ours["ok"], ours.get("code")) == (theirs["ok"], theirs.get("code")), command
        if ours.get("code") != 262:
            assert ours.get("errmsg") == theirs.get("errmsg")


def test_hello_waits_for_a_change(wires):
    """Replies come when the time is up, at once for another version, and as a stream if allowed."""
    for wire in wires:
        version = wire.run({"hello": 1, "$db": "admin"})["topologyVersion"]
        waiting = {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 20, "$db": "admin"}
        assert wire.run(waiting)["topologyVersion"] == version
        of_another = {"processId": bson.ObjectId(), "counter": bson.Int64(0)}
        assert wire.run({**waiting, "topologyVersion": of_another, "maxAwaitTimeMS": 60_000})["topologyVersion"] == version
        later = {**version, "counter": bson.Int64(version["counter"] + 1)}
        assert wire.run({**waiting, "topologyVersion": later})["code"] == 31382
        first = wire.run(waiting, flags=EXHAUST_ALLOWED)
        for _ in range(2):
            assert wire.receive_reply()["topologyVersion"] == first["topologyVersion"]


def test_the_advertised_address(own_server):
    """Drivers go to it unless they connect directly, also without the name of the set."""
    elsewhere = f"127.0.0.1:{free_port()}"
    server = own_server("--topology", "replica-set", "--advertise", elsewhere)
    for query in ("", "?replicaSet=selkie"):
        with pymongo.MongoClient(f"{server.uri}/{query}", serverSelectionTimeoutMS=300) as client:
            with pytest.raises(ServerSelectionTimeoutError, match=elsewhere):
                client.admin.command("ping")
    with pymongo.MongoClient(f"{server.uri}/?directConnection=true", serverSelectionTimeoutMS=3000) as client:
        assert client.admin.command("ping")["ok"] == 1
