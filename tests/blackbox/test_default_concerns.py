"""The default concerns of a replica set, compared with MongoDB as a replica set of one."""

import pytest
from bson import Timestamp

from support.wire import Wire

pytestmark = pytest.mark.selkie_only

TIMES = {"$clusterTime", "operationTime", "updateOpTime", "updateWallClockTime", "localUpdateWallClockTime", "electionId", "opTime"}
GET = {"getDefaultRWConcern": 1}
ONE = {"w": 1}


def change(**concerns) -> dict:
    return {"setDefaultRWConcern": 1, **concerns, "writeConcern": ONE}


STEPS = [
    GET, {**GET, "inMemory": True}, {**GET, "x": 1}, change(), change(x=1), change(defaultWriteConcern=5),
    *(change(defaultReadConcern=concern) for concern in (
        {"level": "majority"}, {"level": "snapshot"}, {"level": "linearizable"}, {"level": "x"}, {"level": "available"}, {}, {"y": 1},
        {"level": "local", "afterClusterTime": Timestamp(1, 1)})),
    *(change(defaultWriteConcern=concern) for concern in (
        {}, ONE, {}, {"w": 0}, {"wtimeout": 5}, {"j": True}, {"w": 1, "provenance": "clientSupplied"}, {"w": 1, "nope": 1})),
    GET, change(defaultReadConcern={"level": "majority"}, defaultWriteConcern={"w": "majority", "wtimeout": 100}), GET,
    change(defaultWriteConcern={"w": 2, "wtimeout": 7}), {**GET, "inMemory": True},
]
WRITES = [
    {"insert": "c", "documents": [{"_id": 1}]}, {"insert": "c", "documents": [{"_id": 2}], "writeConcern": ONE},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}]}, {"find": "c", "sort": {"_id": 1}},
    {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
]


def shown(reply: dict) -> dict:
    kept = {name: value for name, value in reply.items() if name not in TIMES}
    return kept | {"times": sorted(TIMES & reply.keys())}


def test_they_are_set_and_used_as_in_mongodb(own_server, mongod):
    server = own_server("--topology", "replica-set")
    wires = Wire(server.port), Wire(mongod.port)
    wires[0].run({"delete": "settings", "deletes": [{"q": {}, "limit": 0}], "$db": "config"})
    for command, database in [*((step, "admin") for step in STEPS), *((write, "concerns") for write in WRITES)]:
        ours, theirs = (shown(wire.run({**command, "$db": database})) for wire in wires)
        assert ours == theirs, command
    stored = [wire.run({"find": "settings", "filter": {"_id": "ReadWriteConcernDefaults"}, "$db": "config"})["cursor"]["firstBatch"] for wire in wires]
    assert [shown(document) for document in stored[0]] == [shown(document) for document in stored[1]]


def test_they_outlive_a_restart(own_server):
    server = own_server("--topology", "replica-set")
    assert Wire(server.port).run({**change(defaultWriteConcern={"w": 2}), "$db": "admin"})["ok"] == 1
    server.kill()
    server.start()
    wire = Wire(server.port)
    reply = wire.run({"insert": "c", "documents": [{}], "$db": "concerns"})
    assert reply["writeConcernError"]["errInfo"]["writeConcern"] == {"w": 2, "wtimeout": 0, "provenance": "customDefault"}
    assert wire.run({**change(defaultWriteConcern=ONE), "$db": "admin"})["ok"] == 1
    assert "writeConcernError" not in wire.run({"insert": "c", "documents": [{}], "$db": "concerns"})


def test_other_topologies_have_none(own_server):
    wire = Wire(own_server("--topology", "standalone").port)
    for command in (GET, change(defaultWriteConcern=ONE)):
        assert wire.run({**command, "$db": "admin"})["code"] == 51300
