"""Queries of indexed fields only are answered from the keys, if these contain the values; else from
the documents."""

import datetime
import random
import struct

import pytest
from bson import Int64, ObjectId
from bson.raw_bson import RawBSONDocument

START = datetime.datetime(2024, 1, 1)
# For short documents, MariaDB's keys are not faster to read.
PAD = "x" * 1500
INDEXES = ([("a", 1)], [("a", -1), ("b", 1)], [("b", -1), ("c", 1)], [("c", 1)])


def told(rng: random.Random):
    return rng.choice([
        rng.choice(["", "a", "b", 'q"uote', "back\\slash", "é", "nul\0", "one\x01", "l" * 470, "l" * 600]),
        START + datetime.timedelta(milliseconds=rng.randrange(5000)),
        START + datetime.timedelta(days=rng.randrange(400)),
        ObjectId(struct.pack(">QI", 7, rng.randrange(20))),
        rng.random() < 0.5,
    ])


def untold(rng: random.Random):
    return rng.choice([1, -300, 1.0, 2.5, None, {"x": 1}, b"bytes", datetime.datetime(1960, 1, 1), datetime.datetime(3100, 1, 1)])


def documents(rng: random.Random, number: int, arrays: bool) -> list[dict]:
    made = []
    for at in range(number):
        document = {"_id": at, "pad": PAD}
        for field in rng.sample("abc", 3):
            chance = rng.random()
            if chance < 0.7:
                document[field] = told(rng)
            elif chance < 0.9:
                document[field] = untold(rng)
            elif arrays and field == "b":
                document[field] = [told(rng) for _ in range(rng.randrange(3))]
        made.append(document)
    return made


def filters(rng: random.Random) -> dict:
    asked = {}
    for field in rng.sample("abc", rng.choice([0, 1, 1, 1, 2])):
        asked[field] = rng.choice([
            told(rng),
            {"$gt": told(rng)},
            {"$lte": told(rng)},
            {"$in": [told(rng), told(rng), untold(rng)]},
            {"$ne": told(rng)},
            {"$type": "string"},
            {"$gte": "a", "$lt": "c"},
        ])
    return asked


def shown(found) -> list[str]:
    return sorted(repr(sorted(document.items())) for document in found)


def key(value) -> str:
    """The first of equal numbers is returned."""
    return repr(float(value)) if type(value) in (int, float) else repr(value)


def counted(groups) -> list[tuple[str, int]]:
    return sorted((key(group["_id"]), group["n"]) for group in groups)


def explained(collection, command: dict) -> dict:
    command = command | {next(iter(command)): collection.name}
    return collection.database.command("explain", command, verbosity="executionStats")


def stages(plan: dict) -> list[str]:
    return [plan["stage"], *(stages(plan["inputStage"]) if "inputStage" in plan else [])]


@pytest.fixture
def things(db):
    for key in INDEXES:
        db["covered"].create_index(key)
    return db["covered"]


@pytest.mark.parametrize("arrays", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answers_are_those_of_the_documents(things, seed, arrays):
    rng = random.Random(seed)
    things.insert_many(documents(rng, 400, arrays))
    list(things.find())
    for _ in range(60):
        asked, fields = filters(rng), rng.sample("abc", rng.choice([1, 2]))
        projection = {"_id": 0} | {field: 1 for field in fields}
        expected = shown(things.find(asked, projection).hint([("$natural", 1)]))
        assert shown(things.find(asked, projection, batch_size=rng.choice([3, 101]))) == expected, (asked, projection)
        sort = [(fields[0], rng.choice([1, -1])), *((field, 1) for field in fields[1:])]
        assert shown(things.find(asked, projection).sort(sort)) == expected, (asked, projection, sort)
        for key in INDEXES:
            assert shown(things.find(asked, projection).hint(key)) == expected, (asked, projection, key)
        group = {"$group": {"_id": f"${fields[0]}", "n": {"$sum": 1}}}
        expected = counted(things.aggregate([{"$match": asked}, {"$set": {"pad": 1}}, group], hint={"$natural": 1}))
        assert counted(things.aggregate([{"$match": asked}, group])) == expected, (asked, group)


def test_no_documents_are_examined(things):
    things.insert_many([{"a": f"a{at % 9}", "b": START + datetime.timedelta(hours=at), "n": at, "pad": PAD} for at in range(300)])
    list(things.find())
    both = {"_id": 0, "b": 1, "a": 1}
    for command in (
        {"find": 1, "filter": {"a": "a3"}, "projection": both},
        {"find": 1, "filter": {"a": {"$in": ["a3", "a4"]}, "b": {"$ne": START}}, "projection": both},
        {"find": 1, "filter": {"a": {"$gte": "a7"}}, "projection": {"_id": 0, "a": 1}, "sort": {"a": -1}, "skip": 1, "limit": 7},
        {"find": 1, "sort": {"a": 1}, "projection": {"_id": 0, "a": 1}},
    ):
        told = explained(things, command)
        assert told["executionStats"]["totalDocsExamined"] == 0, command
        assert told["executionStats"]["nReturned"] > 0, command
        names = stages(told["executionStats"]["executionStages"])
        assert "PROJECTION_COVERED" in names and names[-1] == "IXSCAN" and "FETCH" not in names, command
    # In the order of the index, as MongoDB has them.
    assert [list(document) for document in things.find({"a": "a3"}, both).limit(2)] == [["a", "b"]] * 2
    group = {"aggregate": 1, "pipeline": [{"$match": {"a": {"$gte": "a"}}}, {"$group": {"_id": "$a"}}], "cursor": {}}
    told = explained(things, group)["executionStats"]
    assert told["totalDocsExamined"] == 0
    for projection in ({"a": 1}, {"_id": 0, "a": 1, "n": 1}, {"_id": 0, "n": 0}, {"_id": 0, "upper": {"$toUpper": "$n"}}):
        told = explained(things, {"find": 1, "filter": {"a": "a3"}, "projection": projection})["executionStats"]
        assert told["totalDocsExamined"] == told["nReturned"], projection


def test_documents_are_read_for_values_that_keys_do_not_contain(things):
    things.insert_many([{"a": float(at) if at % 2 else f"a{at}", "pad": PAD} for at in range(100)])
    list(things.find())
    told = explained(things, {"find": 1, "sort": {"a": 1}, "projection": {"_id": 0, "a": 1}})
    assert told["executionStats"]["totalDocsExamined"] in (50, 100, 101)
    assert "FETCH" in stages(told["executionStats"]["executionStages"])
    found = [document["a"] for document in things.find({}, {"_id": 0, "a": 1}).sort("a", 1)]
    assert found == [at for at in range(100) if at % 2] + sorted(f"a{at}" for at in range(0, 100, 2))


def test_leading_nulls_do_not_prevent_covered_values(things):
    things.insert_many([{"pad": PAD} if at < 250 else {"a": f"a{at}", "pad": PAD} for at in range(310)])
    list(things.find())
    assert list(things.find({}, {"_id": 0, "a": 1}).sort("a", 1).limit(200)) == [{}] * 200
    told = explained(things, {"find": 1, "filter": {"a": {"$gte": "a"}}, "projection": {"_id": 0, "a": 1}})
    assert (told["executionStats"]["totalDocsExamined"], told["executionStats"]["nReturned"]) == (0, 60)


def test_numbers_of_one_type_are_covered(server, things):
    things.insert_many([{"c": at - 50, "pad": PAD} for at in range(100)])
    list(things.find())
    in_order = {"find": 1, "filter": {"c": {"$gt": -40}}, "sort": {"c": 1}, "projection": {"_id": 0, "c": 1}}
    # On MariaDB, keys of numbers do not contain their type.
    expected = 0 if server.mariadb is None else 89
    assert explained(things, in_order)["executionStats"]["totalDocsExamined"] in (expected, expected + 1)
    group = [{"$match": {"c": {"$gte": -1}}}, {"$group": {"_id": "$c"}}, {"$sort": {"_id": 1}}, {"$limit": 3}]
    assert list(things.aggregate(group)) == [{"_id": -1}, {"_id": 0}, {"_id": 1}]
    for other in (7.0, Int64(8)):
        things.insert_one({"c": other, "pad": PAD})
        found = [document["c"] for document in things.find({"c": {"$in": [7, 8]}}, {"_id": 0, "c": 1}).sort("c", 1)]
        assert sorted(type(value).__name__ for value in found if value == other) == sorted([type(other).__name__, "int"])
    assert explained(things, in_order)["executionStats"]["totalDocsExamined"] >= 91


def test_an_array_or_a_symbol_inserted_later_is_returned_unchanged(server, things):
    things.insert_many([{"_id": at, "a": f"a{at:03}", "pad": PAD} for at in range(60)])
    list(things.find())
    cursor = things.find({"a": {"$gte": "a"}}, {"_id": 0, "a": 1}, batch_size=10).sort("a", 1)
    first = [next(cursor)["a"] for _ in range(10)]
    symbol = b"\x0ea\x00" + struct.pack("<i", 5) + b"a057\x00"
    pad = b"\x02pad\x00" + struct.pack("<i", len(PAD) + 1) + PAD.encode() + b"\x00"
    body = b"\x10_id\x00" + struct.pack("<i", 57) + symbol + pad
    things.replace_one({"_id": 57}, RawBSONDocument(struct.pack("<i", len(body) + 5) + body + b"\x00"))
    things.update_one({"_id": 58}, {"$set": {"a": ["a058"]}})
    rest = [document["a"] for document in cursor]
    # On MariaDB neither has a place of its own, so that the cursor does not come by.
    later = ["a057", ["a058"]] if server.mariadb is None else []
    assert first + rest == [*(f"a{at:03}" for at in range(57)), *later, "a059"]
    raw = things.with_options(codec_options=things.codec_options.with_options(document_class=RawBSONDocument))
    found = [document.raw for document in raw.find({"a": {"$gte": "a056"}}, {"_id": 0, "a": 1}).sort("a", 1)]
    assert [bytes(document)[4] for document in found] == [0x02, 0x0E, 0x04, 0x02]
