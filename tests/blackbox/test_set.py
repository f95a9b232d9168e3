"""`$set` by `_id`, which MariaDB executes in one statement, has the same result as reading the
document first."""

import datetime
import random
import re

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp, decode, encode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

VALUES = [
    None, True, False, 0, 1, -7, Int64(1), Int64(1 << 62), 1.0, 1.5, -0.0, float("inf"), float("nan"), 1e300, Decimal128("1.0"), Decimal128("1"),
    "", "x", "X", " x ", "1", "null", '"', "\\", "a\\u0041", "é", "\U0001f600", "\n\t\x01", "$a", "{}", datetime.datetime(2020, 1, 1), ObjectId(b"abcdefghijkl"),
    Binary(b"\x00\xff"), Binary(b"", 5), Regex("^a", "i"), re.compile("b"), Code("f()"), Timestamp(1, 2), MinKey(), MaxKey(),
    {}, {"x": 1}, {"x": Int64(1), "y": [1, {"z": None}]}, [], [1, 2], [[], {"x": "é"}], "long " * 500,
]  # fmt: skip
FIELDS = ["a", "b", "c", "n 1", "d-e", "é", "10", "9", "_x"]


def some(rng: random.Random, least: int) -> dict:
    return {name: rng.choice(VALUES) for name in rng.sample(FIELDS, rng.randint(least, 4))}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("indexed", [False, True], ids=["", "indexed"])
def test_the_result_equals_that_of_reading_first(db, seed, indexed):
    rng = random.Random(seed)
    documents = [{"_id": number, **some(rng, 0)} for number in range(60)]
    raw = CodecOptions(document_class=RawBSONDocument)
    here, read_first = (db.get_collection(name, raw) for name in ("here", "read_first"))
    for collection in (here, read_first):
        if indexed:
            collection.create_index([("a", 1), ("b", -1)])
            collection.create_index("c")
        collection.insert_many([RawBSONDocument(encode(document)) for document in documents])
    for _ in range(400):
        number = rng.randrange(62)
        before = read_first.find_one({"_id": number})
        # Sometimes the present value.
        known = {} if before is None or rng.random() < 0.6 else {name: value for name, value in decode(before.raw).items() if name != "_id"}
        fields = known or some(rng, 1)
        change = {"$set": fields}
        upsert = rng.random() < 0.05
        try:
            after = read_first.find_one_and_update({"_id": number}, change, upsert=upsert, return_document=ReturnDocument.AFTER)
        except Exception as refused:
            with pytest.raises(type(refused)):
                here.update_one({"_id": number}, change, upsert=upsert)
            continue
        done = here.update_one({"_id": number}, change, upsert=upsert)
        expected = (int(before is not None), int(before is not None and before.raw != after.raw))
        assert (done.matched_count, done.modified_count) == expected, change
        found = here.find_one({"_id": number})
        assert (found and found.raw) == (after and after.raw), (before, change)
    everything = lambda collection: sorted(bytes(one.raw) for one in collection.find())
    assert everything(here) == everything(read_first)
    for name in "abc":
        for value in VALUES:
            by_index = sorted(one["_id"] for one in here.find({name: value}))
            assert by_index == sorted(one["_id"] for one in here.find({name: value}).hint([("$natural", 1)])), (name, value)


def test_a_duplicate_value_is_refused(db):
    db.c.create_index("a", unique=True)
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 1}, {"$set": {"a": 2}})
    assert db.c.find_one({"_id": 1}) == {"_id": 1, "a": 1}


@pytest.mark.selkie_only
@pytest.mark.mariadb_only
def test_nothing_is_modified_if_sql_has_written_the_value(db, server):
    db.c.insert_one({"_id": 1})
    server.mariadb.sql(f"INSERT INTO `{db.name}`.c (doc) VALUES ('{{ \"_id\": 2,  \"a\": 5, \"b\": [1,  2] }}')")
    assert db.c.update_one({"_id": 2}, {"$set": {"a": 5}}).modified_count == 0
    assert db.c.update_one({"_id": 2}, {"$set": {"a": 6, "z": 1}}).modified_count == 1
    assert db.c.find_one({"_id": 2}) == {"_id": 2, "a": 6, "b": [1, 2], "z": 1}


@pytest.mark.selkie_only
@pytest.mark.mariadb_only
def test_no_document_is_read_first(db, server):
    db.c.insert_one({"_id": 1, "a": 1})
    db.c.update_one({"_id": 1}, {"$set": {"a": 2}})
    selects = lambda: int(server.mariadb.sql("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1])
    before = selects()
    for number in range(100):
        assert db.c.update_one({"_id": 1}, {"$set": {"a": number, "b": str(number)}}).modified_count == 1
    assert selects() - before < 50
