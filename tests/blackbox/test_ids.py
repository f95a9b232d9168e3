"""`_id`s: which are equal, and which values are allowed."""

import uuid
from datetime import datetime

import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import DuplicateKeyError, WriteError

SAME = [
    (1, 1.0),
    (1, Int64(1)),
    (1.0, Int64(1)),
    (1, Decimal128("1.00")),
    (0.0, -0.0),
    (0, -0.0),
    (2**53, float(2**53)),
    (Int64(2**62), float(2**62)),
    ({"a": 1}, {"a": 1.0}),
    (float("nan"), float("nan")),
    (Decimal128("0.5"), 0.5),
]

DIFFERENT = [
    ("a", "A"),
    ("a", "a "),
    ("a", " a"),
    ("ä", "a"),
    ("ä", "Ä"),
    ("é", "e\u0301"),
    ("ß", "ss"),
    ("a\0", "a"),
    ("", " "),
    ("1", 1),
    (1, True),
    (0, False),
    (None, 0),
    (None, ""),
    (Int64(2**53), Int64(2**53 + 1)),
    (Int64(2**53 + 1), float(2**53)),
    (0.1, Decimal128("0.1")),
    (ObjectId("507f1f77bcf86cd799439011"), "507f1f77bcf86cd799439011"),
    (Binary(b"a", 0), Binary(b"a", 128)),
    (Binary(b"a", 0), "a"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({}, None),
    (datetime(1970, 1, 1), 0),
    (datetime(1970, 1, 1), Timestamp(0, 0)),
    (MinKey(), MaxKey()),
]

POSSIBLE = [
    "x" * 500,
    "日" * 300,
    {"tenant": 5, "key": {"deep": ["x", 1.5]}},
    ObjectId("507f1f77bcf86cd799439011"),
    Binary.from_uuid(uuid.UUID("c7f5a4d0-93f1-4f0a-9f5e-2f6f0a4b8e11")),
    datetime(1969, 12, 31, 23, 59, 59, 1000),
    Decimal128("123.456"),
    1e300,
    -1,
    True,
    None,
    "",
    Timestamp(5, 6),
    MinKey(),
]

IMPOSSIBLE = [[], [1], Regex("a")]


@pytest.mark.parametrize("pair", SAME, ids=repr)
def test_same(db, pair):
    (first, second) = pair
    db.ids.insert_one({"_id": first, "n": 1})
    with pytest.raises(DuplicateKeyError) as error:
        db.ids.insert_one({"_id": second})
    assert error.value.details["keyPattern"] == {"_id": 1}
    assert db.ids.find_one({"_id": second})["n"] == 1
    assert db.ids.update_one({"_id": second}, {"$set": {"n": 2}}).matched_count == 1
    assert db.ids.delete_one({"_id": second}).deleted_count == 1


@pytest.mark.parametrize("pair", DIFFERENT, ids=repr)
def test_different(db, pair):
    (first, second) = pair
    db.ids.insert_one({"_id": first, "n": 1})
    db.ids.insert_one({"_id": second, "n": 2})
    assert db.ids.find_one({"_id": first})["n"] == 1
    assert db.ids.find_one({"_id": second})["n"] == 2
    assert db.ids.delete_one({"_id": first}).deleted_count == 1
    assert db.ids.find_one({"_id": second})["n"] == 2


@pytest.mark.parametrize("identifier", POSSIBLE, ids=lambda value: repr(value)[:40])
def test_possible(db, identifier):
    db.ids.insert_one({"_id": identifier, "n": 1})
    assert db.ids.find_one({"_id": identifier})["n"] == 1
    assert db.ids.find_one({"_id": {"$eq": identifier}})["n"] == 1
    assert db.ids.find_one({"_id": {"$in": [identifier]}})["n"] == 1
    with pytest.raises(DuplicateKeyError):
        db.ids.insert_one({"_id": identifier})
    assert db.ids.replace_one({"_id": identifier}, {"n": 2}).modified_count == 1
    assert db.ids.count_documents({}) == 1


@pytest.mark.parametrize("identifier", IMPOSSIBLE, ids=repr)
def test_impossible(db, identifier):
    with pytest.raises(WriteError):
        db.ids.insert_one({"_id": identifier})
    assert db.ids.count_documents({}) == 0


def test_id_is_first_and_generated_if_missing(db):
    reply = db.command({"insert": "ids", "documents": [{"a": 1, "_id": 5}, {"b": 1}]})
    assert reply["n"] == 2
    documents = list(db.ids.find().sort("_id"))
    assert [list(document) for document in documents] == [["_id", "a"], ["_id", "b"]]
    assert isinstance(documents[1]["_id"], ObjectId)


def test_id_never_changes(db):
    db.ids.insert_one({"_id": 1})
    for update in ({"$set": {"_id": 2}}, {"$unset": {"_id": 1}}, {"$inc": {"_id": 1}}):
        with pytest.raises(WriteError) as error:
            db.ids.update_one({"_id": 1}, update)
        assert error.value.code == 66, update
    with pytest.raises(WriteError) as error:
        db.ids.replace_one({"_id": 1}, {"_id": 2})
    assert error.value.code == 66
    assert db.ids.find_one() == {"_id": 1}


def test_sorted_ids_of_many_types(db):
    identifiers = [MinKey(), None, -1.5, 0, Int64(3), "", "a", "b", {"x": 1}, Binary(b"a"), ObjectId(), False, True,
                   datetime(2020, 1, 1), Timestamp(1, 1), MaxKey()]
    db.ids.insert_many([{"_id": identifier, "n": n} for n, identifier in enumerate(identifiers)][::-1])
    assert [d["n"] for d in db.ids.find().sort("_id", 1)] == list(range(len(identifiers)))
    assert [d["n"] for d in db.ids.find().sort("_id", -1)] == list(range(len(identifiers)))[::-1]
    assert [d["n"] for d in db.ids.find({"_id": {"$gt": 0}}).sort("_id")] == [4]
    assert [d["n"] for d in db.ids.find({"_id": {"$gte": ""}}).sort("_id")] == [5, 6, 7]
