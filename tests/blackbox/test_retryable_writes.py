"""A driver that lost the reply to a write sends it again; the server must not execute it twice."""

import uuid

import pymongo
import pytest
from bson import Binary, Int64

from support.proxy import BreakingProxy
from support.wire import Wire


@pytest.fixture
def run(db, server):
    """Runs a command in a session of the test; drivers do not expose the session's transaction
    number."""
    session_id = {"id": Binary(uuid.uuid4().bytes, 4)}
    with Wire(server.port) as wire:
        yield lambda command, number: wire.run(
            {**command, "$db": db.name, "lsid": session_id, "txnNumber": Int64(number)}
        )


WRITES = [
    {"insert": "c", "documents": [{"_id": 5}, {"_id": 6}]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]},
    {"update": "c", "updates": [{"q": {"_id": 9}, "u": {"$inc": {"n": 1}}, "upsert": True}]},
    {"delete": "c", "deletes": [{"q": {"n": {"$gte": 0}}, "limit": 1}]},
    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": True},
    {"findAndModify": "c", "query": {"_id": 1}, "remove": True},
]


@pytest.mark.selkie_only
@pytest.mark.parametrize("write", WRITES, ids=str)
def test_a_repeated_transaction_number_returns_the_first_outcome(db, run, write):
    db.c.insert_many([{"_id": n, "n": 0} for n in range(3)])
    first = run(write, 7)
    assert first["ok"] == 1 and "writeErrors" not in first
    before = list(db.c.find().sort("_id"))
    again = run(write, 7)
    assert list(db.c.find().sort("_id")) == before, "carried out twice"
    for field in ("n", "nModified", "upserted", "value", "lastErrorObject", "ok"):
        assert first.get(field) == again.get(field), field
    # The next number is a new write.
    db.c.insert_one({"_id": 1000})
    run(write, 8)
    if "insert" not in write:
        assert list(db.c.find().sort("_id")) != before


@pytest.mark.selkie_only
def test_an_older_number_is_refused(run):
    assert run({"insert": "c", "documents": [{}]}, 5)["ok"] == 1
    reply = run({"insert": "c", "documents": [{}]}, 4)
    assert (reply["ok"], reply["code"]) == (0, 225)


@pytest.mark.selkie_only
def test_a_connection_that_breaks_after_the_write(db, server):
    """The driver's retry, end to end: the write is executed, the reply is lost, the driver sends it
    again."""
    broken = {}

    def swallow(request: bytes) -> bool:
        for name in (b"insert\0", b"update\0", b"findAndModify\0", b"delete\0"):
            if b"\x02" + name in request[:60] and b"txnNumber" in request and name not in broken:
                broken[name] = True
                return True
        return False

    db.c.insert_one({"_id": 1, "n": 0})
    db.victims.insert_many([{} for _ in range(10)])
    with BreakingProxy(server.port, swallow) as proxy:
        uri = f"mongodb://127.0.0.1:{proxy.port}/?retryWrites=true&serverMonitoringMode=poll"
        with pymongo.MongoClient(uri) as client:
            through = client[db.name]
            through.c.insert_one({"_id": 2})
            through.c.update_one({"_id": 1}, {"$inc": {"n": 1}})
            assert through.c.find_one_and_update(
                {"_id": 1}, {"$inc": {"n": 1}}, return_document=pymongo.ReturnDocument.AFTER
            )["n"] == 2
            assert through.victims.delete_one({}).deleted_count == 1
        assert proxy.swallowed == 4, broken
    assert db.c.find_one({"_id": 1})["n"] == 2
    assert db.c.count_documents({}) == 2
    assert db.victims.count_documents({}) == 9
