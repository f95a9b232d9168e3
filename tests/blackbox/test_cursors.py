"""Cursors: batches, limits, access from other sessions, and their end."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from bson import Int64
from pymongo.errors import OperationFailure

from support.wire import EXHAUST_ALLOWED, MORE_TO_COME, Wire, op_msg


def fill(db, count=1000, pad=0):
    db.c.insert_many([{"_id": n, "pad": "x" * pad} for n in range(count)])


def test_first_batch_is_101_and_the_next_has_the_rest(db):
    fill(db)
    reply = db.command({"find": "c"})["cursor"]
    assert (len(reply["firstBatch"]), reply["ns"]) == (101, f"{db.name}.c")
    assert isinstance(reply["id"], Int64) and reply["id"] != 0
    rest = db.command({"getMore": reply["id"], "collection": "c"})["cursor"]
    assert (len(rest["nextBatch"]), rest["id"]) == (899, 0)


def test_batch_size_zero_opens_a_cursor(db):
    fill(db, 10)
    reply = db.command({"find": "c", "batchSize": 0})["cursor"]
    assert reply["firstBatch"] == [] and reply["id"] != 0
    rest = db.command({"getMore": reply["id"], "collection": "c", "batchSize": 3})["cursor"]
    assert [d["_id"] for d in rest["nextBatch"]] == [0, 1, 2]


def test_aggregate_with_batch_size_zero(db):
    fill(db, 10)
    reply = db.command({"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 0}})["cursor"]
    assert reply["firstBatch"] == [] and reply["id"] != 0
    assert len(db.command({"getMore": reply["id"], "collection": "c"})["cursor"]["nextBatch"]) == 10


def test_a_batch_that_is_just_full(db):
    fill(db, 101)
    reply = db.command({"find": "c", "batchSize": 102})["cursor"]
    assert (len(reply["firstBatch"]), reply["id"]) == (101, 0)
    assert db.command({"find": "c", "limit": 101})["cursor"]["id"] == 0


def test_single_batch(db):
    fill(db, 500)
    reply = db.command({"find": "c", "batchSize": 5, "singleBatch": True})["cursor"]
    assert (len(reply["firstBatch"]), reply["id"]) == (5, 0)


def test_limit_over_batches(db):
    fill(db, 500)
    reply = db.command({"find": "c", "batchSize": 5, "limit": 8})["cursor"]
    rest = db.command({"getMore": reply["id"], "collection": "c", "batchSize": 5})["cursor"]
    assert (len(reply["firstBatch"]), len(rest["nextBatch"]), rest["id"]) == (5, 3, 0)


def test_batches_stop_at_16_mebibytes(db):
    fill(db, 40, pad=1_000_000)
    reply = db.command({"find": "c", "batchSize": 1000})["cursor"]
    assert len(reply["firstBatch"]) == 16 and reply["id"] != 0
    assert len(list(db.c.find(batch_size=1000))) == 40


def test_documents_of_16_mebibytes_are_returned_one_by_one(db):
    largest = 16 * 1024 * 1024 - 100
    for n in range(3):
        db.c.insert_one({"_id": n, "pad": "x" * largest})
    assert [len(d["pad"]) for d in db.c.find()] == [largest] * 3


def test_kill_cursors(db):
    fill(db)
    cursor = db.command({"find": "c", "batchSize": 1})["cursor"]["id"]
    reply = db.command({"killCursors": "c", "cursors": [cursor, Int64(987654321)]})
    assert reply["cursorsKilled"] == [cursor]
    assert reply["cursorsNotFound"] == [987654321]
    with pytest.raises(OperationFailure) as error:
        db.command({"getMore": cursor, "collection": "c"})
    assert error.value.code == 43


def test_get_more_checks_the_collection(db):
    fill(db)
    cursor = db.command({"find": "c", "batchSize": 1})["cursor"]["id"]
    with pytest.raises(OperationFailure) as error:
        db.command({"getMore": cursor, "collection": "other"})
    assert error.value.code == 13


def test_a_cursor_sees_the_end_of_its_collection(db):
    fill(db)
    cursor = db.command({"find": "c", "batchSize": 1})["cursor"]["id"]
    db.c.drop()
    with pytest.raises(OperationFailure) as error:
        db.command({"getMore": cursor, "collection": "c"})
    assert error.value.code in (43, 175, 237)


def test_writes_while_a_cursor_is_open(db):
    fill(db)
    cursor = iter(db.c.find(batch_size=10))
    seen = [next(cursor)["_id"] for _ in range(10)]
    db.c.delete_many({"_id": {"$gte": 500}})
    db.c.update_many({}, {"$set": {"pad": "y" * 500}})
    seen += [d["_id"] for d in cursor]
    assert seen[:500] == list(range(500))
    assert len(seen) == len(set(seen)), "a document came twice"


def test_an_unacknowledged_write_gets_no_reply(db, server):
    with Wire(server.port) as wire:
        command = {"insert": "c", "$db": db.name, "writeConcern": {"w": 0}}
        wire.send(op_msg(command, MORE_TO_COME, {"documents": [{"_id": 1}]}))
        # Also one that fails.
        wire.send(op_msg(command, MORE_TO_COME, {"documents": [{"_id": 1}]}))
        assert wire.is_silent()
        assert wire.run({"ping": 1, "$db": "admin"})["ok"] == 1
    assert db.c.count_documents({}) == 1


def test_exhaust_cursor(db, server):
    fill(db)
    with Wire(server.port) as wire:
        cursor = wire.run({"find": "c", "$db": db.name, "batchSize": 2})["cursor"]["id"]
        wire.send(op_msg({"getMore": cursor, "collection": "c", "$db": db.name, "batchSize": 100}, EXHAUST_ALLOWED))
        batches = []
        while True:
            batches.append(wire.receive_reply()["cursor"])
            if batches[-1]["id"] == 0:
                break
        assert [d["_id"] for batch in batches for d in batch["nextBatch"]] == list(range(2, 1000))
        assert len(batches) == 10
        assert wire.run({"ping": 1, "$db": "admin"})["ok"] == 1


def test_exhaust_cursor_of_pymongo(db):
    from pymongo.cursor import CursorType

    fill(db)
    if db.client.is_mongos:
        pytest.skip("pymongo does not ask routers for exhaust cursors")
    assert [d["_id"] for d in db.c.find(cursor_type=CursorType.EXHAUST, batch_size=50)] == list(range(1000))


def rows_passed(server) -> int:
    """Rows and keys that MariaDB has stepped to since it started."""
    steps = ("Handler_read_next", "Handler_read_prev", "Handler_icp_attempts")
    return sum(int(server.mariadb.sql(f"SHOW GLOBAL STATUS LIKE '{step}'")[0][1]) for step in steps)


@pytest.mark.selkie_only
@pytest.mark.mariadb_only
@pytest.mark.parametrize("keys", [["n"], ["n", "m"]], ids=" and ".join)
@pytest.mark.parametrize("direction", [1, -1], ids=["forwards", "backwards"])
@pytest.mark.parametrize("filter", [{}, {"n": {"$in": [0, 2]}}, {"n": {"$gte": 1}}], ids=str)
def test_batches_by_an_index_begin_where_the_last_one_ended(db, server, keys, direction, filter):
    """Documents that share a key are not passed over again for each batch."""
    db.c.insert_many([{"_id": number, "n": number % 3, "m": -number % 2, "pad": "x" * 200} for number in range(1200)])
    index = [(keys[0], 1), *((key, -1) for key in keys[1:])]
    db.c.create_index(index)
    sort = [(key, way * direction) for key, way in index]
    # The catalog has cached the collection by then.
    expected = list(db.c.find(filter).sort(sort))
    before = rows_passed(server)
    assert list(db.c.find(filter).sort(sort).batch_size(20)) == expected
    assert rows_passed(server) - before <= 3 * 1200


def test_a_cursor_killed_in_use_ends_its_command(db):
    fill(db)
    size = {"$size": {"$map": {"input": {"$range": [0, 100_000]}, "in": {"$multiply": ["$$this", "$_id"]}}}}
    late = {"$expr": {"$cond": [{"$gt": ["$_id", 5]}, {"$gt": [size, 0]}, True]}}
    opened = db.command({"find": "c", "filter": late, "batchSize": 2})["cursor"]
    with ThreadPoolExecutor(1) as pool:
        more = pool.submit(db.command, {"getMore": opened["id"], "collection": "c", "batchSize": 900})
        time.sleep(0.3)
        began = time.monotonic()
        assert db.command({"killCursors": "c", "cursors": [opened["id"]]})["cursorsKilled"] == [opened["id"]]
        with pytest.raises(OperationFailure, match="operation was interrupted") as caught:
            more.result()
    assert caught.value.code == 237 and time.monotonic() - began < 2
    with pytest.raises(OperationFailure) as caught:
        db.command({"getMore": opened["id"], "collection": "c"})
    assert caught.value.code == 43


def test_an_exhaust_cursor_ends_with_its_client(db, server):
    fill(db)

    def is_open(cursor):
        idle = db.client.admin.aggregate([{"$currentOp": {"idleCursors": True, "localOps": True}}])
        return any(operation.get("cursor", {}).get("cursorId") == cursor for operation in idle)

    for _ in range(10):
        with Wire(server.port) as wire:
            cursor = wire.run({"find": "c", "batchSize": 2, "$db": db.name})["cursor"]["id"]
            wire.send(op_msg({"getMore": cursor, "collection": "c", "batchSize": 1, "$db": db.name}, EXHAUST_ALLOWED))
            wire.receive_reply()
        until = time.monotonic() + 5
        while is_open(cursor) and time.monotonic() < until:
            time.sleep(0.05)
        assert not is_open(cursor)
