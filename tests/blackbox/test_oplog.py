"""Reads of `local.oplog.rs`: conditions on `ts` find their place without reading all entries."""

import random

import pymongo
import pytest
from bson import Timestamp

from support.mariadb import LOG, MariadbServer
from support.selkie import EMBEDDED_MARIADB, SelkieServer

pytestmark = pytest.mark.selkie_only

ENTRIES = 300


@pytest.fixture(scope="module")
def oplog(store, tmp_path_factory):
    if store == EMBEDDED_MARIADB:
        pytest.skip("has no log")
    mariadb = MariadbServer(tmp_path_factory.mktemp("log"), LOG).start() if store == "mariadb" else None
    server = SelkieServer(tmp_path_factory.mktemp("oplog") / "selkie", mariadb, ("--topology", "replica-set")).start()
    with server.client(directConnection=True) as client:
        for number in range(ENTRIES):
            client.test.c.insert_one({"_id": number})
        yield client.local["oplog.rs"]
    server.remove()
    if mariadb:
        mariadb.remove()


MATCHES = {
    "$gt": lambda ts, bound: ts > bound,
    "$gte": lambda ts, bound: ts >= bound,
    "$lt": lambda ts, bound: ts < bound,
    "$lte": lambda ts, bound: ts <= bound,
    "$eq": lambda ts, bound: ts == bound,
}


def test_conditions_on_ts_are_answered_as_a_filter_of_all_entries(oplog):
    entries = list(oplog.find())
    times = [entry["ts"] for entry in entries]
    near = [Timestamp(ts.time, max(0, ts.inc + by)) for ts in random.Random(1).sample(times, 30) for by in (-1, 0, 1)]
    generator = random.Random(2)
    for bound in [*near, Timestamp(0, 0), Timestamp(2**32 - 1, 2**32 - 1)]:
        conditions = {name: generator.choice([bound, *times]) for name in generator.sample([*MATCHES], generator.choice([1, 2]))}
        conditions[generator.choice([*MATCHES])] = bound
        for direction in (1, -1):
            expected = [
                entry for entry in entries[::direction] if all(MATCHES[name](entry["ts"], value) for name, value in conditions.items())
            ]
            assert list(oplog.find({"ts": conditions}).sort("$natural", direction)) == expected, conditions
            paged = oplog.find({"$and": [{"ts": conditions}, {"op": "i"}]}).sort("$natural", direction).batch_size(7)
            assert list(paged) == [entry for entry in expected if entry["op"] == "i"]


@pytest.mark.parametrize("direction", [1, -1])
def test_only_entries_in_the_range_are_examined(oplog, direction):
    times = [entry["ts"] for entry in oplog.find()]
    for conditions, most in [({"$gt": times[-10]}, 12), ({"$gte": times[50], "$lt": times[60]}, 12), (times[70], 2)]:
        stats = oplog.find({"ts": conditions}).sort("$natural", direction).explain()["executionStats"]
        assert 0 < stats["totalDocsExamined"] <= most, conditions


def test_a_tail_begins_at_its_ts(oplog):
    last = oplog.find().sort("$natural", -1).limit(1).next()["ts"]
    for bound in (last, Timestamp(last.time + 1000, 1)):
        cursor = oplog.find({"ts": {"$gt": bound}}, cursor_type=pymongo.CursorType.TAILABLE)
        assert list(cursor) == [] and cursor.alive
    follow = oplog.find({"ts": {"$gt": last}}, cursor_type=pymongo.CursorType.TAILABLE_AWAIT)
    assert list(follow) == [] and follow.alive
    oplog.database.client.test.c.insert_one({"_id": "later"})
    assert next(follow)["o"] == {"_id": "later"}
