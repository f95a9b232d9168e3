"""Compound indexes over arrays: they find the right documents, and examine few others.

SELKIE_ARRAYS_SEED picks other documents and questions.
"""

import datetime
import json
import os
import random

import pytest
from bson import Decimal128, Int64, ObjectId, json_util
from pymongo.errors import BulkWriteError, WriteError

SEED = int(os.environ.get("SELKIE_ARRAYS_SEED", "1"))
DOCUMENTS, QUESTIONS = 200, 100

# A table in MariaDB has no room for all of them.
INDEXES = {
    "of elements": [{"attrs.k": 1, "attrs.v": 1}, {"tags": 1, "at": -1}, {"tags": 1}],
    "beside elements": [{"n": 1, "attrs.v": -1, "tags": 1}, {"at": 1, "tags": -1}],
    "deep": [{"deep.list.x": 1, "deep.list.y.z": 1, "n": 1}, {"deep.list.x": -1}, {"attrs": 1, "attrs.k": 1}],
}

SCALARS = [
    0, 1, 2, 3, 2.5, -1, 10**18 + 1, float("nan"), float("inf"), Decimal128("2.5"), Decimal128("1E+3"), "", "a", "ab", "b", "ü",
    "x" * 600, "x" * 599 + "y", True, False, None, ObjectId("507f1f77bcf86cd799439011"), b"ab",
    datetime.datetime(2024, 2, 29), datetime.datetime(1950, 1, 1), datetime.datetime(3500, 1, 1),
]


def scalar(rng):
    return rng.choice(SCALARS) if rng.random() < 0.4 else rng.choice(SCALARS[:4] + SCALARS[11:14])


def values(rng):
    """A field's value: often an array, sometimes one within another."""
    kind = rng.random()
    if kind < 0.5:
        return scalar(rng)
    if kind < 0.55:
        return {"p": scalar(rng)}
    elements = [scalar(rng) for _ in range(rng.randrange(4))]
    if kind < 0.6:
        elements.append([scalar(rng)])
    return elements


def fields(rng, names, value):
    return {name: value(rng) for name in names if rng.random() < 0.8}


def several(rng, one):
    kind = rng.random()
    if kind < 0.15:
        return one(rng)
    if kind < 0.2:
        return scalar(rng)
    elements = [one(rng) if rng.random() < 0.9 else scalar(rng) for _ in range(rng.randrange(5))]
    if kind < 0.25:
        elements.append([one(rng)])
    return elements


def seldom_an_array(rng):
    return values(rng) if rng.random() < 0.1 else scalar(rng)


def document(rng, number):
    made = {"_id": number}
    attribute = lambda rng: fields(rng, ["k", "v"], seldom_an_array)
    inner = lambda rng: fields(rng, ["x", "y"], lambda rng: {"z": values(rng)} if rng.random() < 0.5 else seldom_an_array(rng))
    parts = {
        "n": seldom_an_array,
        "at": seldom_an_array,
        "tags": values,
        "attrs": lambda rng: several(rng, attribute),
        "deep": lambda rng: several(rng, lambda rng: {"list": several(rng, inner)}) if rng.random() < 0.2 else {"list": several(rng, inner)},
    }
    # Two arrays can seldom be in one index.
    for name in rng.sample(sorted(parts), rng.randrange(1, 4)):
        made[name] = parts[name](rng)
    return made


def test_of_value(rng, depth=0):
    kind = rng.randrange(12 if depth == 0 else 9)
    if kind < 4:
        return scalar(rng) if depth == 0 else {"$eq": scalar(rng)}
    if kind == 4:
        return {"$in": [scalar(rng) for _ in range(3)]}
    if kind == 5:
        return {"$gte": scalar(rng), "$lt": scalar(rng)}
    if kind == 6:
        return {rng.choice(["$gt", "$lte", "$gte", "$lt"]): scalar(rng)}
    if kind == 7:
        return {"$regex": rng.choice(["^a", "^x", "b"])}
    if kind == 8:
        return what_most_meet(rng)
    if kind == 9:
        return {"$elemMatch": test_of_value(rng, 1)}
    if kind == 10:
        return [scalar(rng)] if rng.random() < 0.5 else []
    return {"$all": [scalar(rng), scalar(rng)]}


test_of_value.__test__ = False


def what_most_meet(rng):
    types = ["string", "number", "null", "array", "object", "bool"]
    return rng.choice([
        {"$ne": scalar(rng)}, {"$ne": {"$gt": 1}}, {"$nin": [scalar(rng), scalar(rng)]}, {"$not": {"$gt": scalar(rng)}},
        {"$exists": rng.random() < 0.8}, {"$exists": True, "$in": [scalar(rng), scalar(rng)]},
        {"$type": rng.sample(types, 2)}, {"$type": "number", "$gt": scalar(rng)}, {"$mod": [2, 0]},
    ])


def condition(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return {"attrs": {"$elemMatch": fields(rng, ["k", "v"], test_of_value)}}
    if kind == 1:
        return {"deep.list": {"$elemMatch": fields(rng, ["x", "y.z"], test_of_value)}}
    if kind == 2 and rng.random() < 0.3:
        return {"deep": {"$elemMatch": {"list.x": test_of_value(rng)}}}
    path = rng.choice(["n", "at", "tags", "tags", "attrs.k", "attrs.v", "attrs.k", "deep.list.x", "deep.list.y.z", "attrs"])
    return {path: test_of_value(rng)}


def question(rng):
    conditions = [condition(rng) for _ in range(rng.choice([1, 2, 2, 3]))]
    return {rng.choice(["$and", "$and", "$and", "$or"]): conditions} if len(conditions) > 1 else conditions[0]


def compare(collection, rng, indexes, questions=QUESTIONS):
    """Runs the query with each index and without any."""
    fetched = 0
    for _ in range(questions):
        asked = question(rng)
        plain = sorted(one["_id"] for one in collection.find(asked, {"_id": 1}, hint={"$natural": 1}))
        fetched += len(plain)
        for hint in (None, *indexes):
            hint = hint and list(hint.items())
            found = sorted(one["_id"] for one in collection.find(asked, {"_id": 1}, hint=hint))
            assert found == plain, (SEED, hint, json_util.dumps(asked))
        assert collection.count_documents(asked) == len(plain), (SEED, json_util.dumps(asked))
    assert fetched > 0


def create(collection, indexes):
    for keys in indexes:
        collection.create_index(list(keys.items()))


def insert(collection, documents):
    try:
        collection.insert_many(documents, ordered=False)
    except BulkWriteError as error:
        assert {one["code"] for one in error.details["writeErrors"]} == {171}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_answers_are_the_same_with_and_without_an_index(db, when, kind):
    rng = random.Random(f"{SEED} {when} {kind}")
    collection, indexes = db.things, INDEXES[kind]
    # Some documents have arrays that no index can have together.
    create(collection if when == "before" else db.sieve, indexes)
    insert(collection if when == "before" else db.sieve, [document(rng, number) for number in range(DOCUMENTS)])
    if when == "after":
        collection.insert_many(list(db.sieve.find()))
    create(collection, indexes)
    compare(collection, rng, indexes)
    for number in rng.sample(range(DOCUMENTS), DOCUMENTS // 3):
        try:
            match rng.randrange(3):
                case 0:
                    collection.delete_one({"_id": number})
                case 1:
                    collection.replace_one({"_id": number}, document(rng, number), upsert=True)
                case 2:
                    collection.update_one({"_id": number}, {"$set": {"attrs": document(rng, number).get("attrs", [])}})
        except WriteError as error:
            assert error.code == 171
    compare(collection, rng, indexes, QUESTIONS // 2)


@pytest.mark.mariadb_only
@pytest.mark.parametrize("kind", INDEXES)
def test_rows_written_by_sql_are_found(server, db, kind):
    """Rows that no gateway has seen: new ones, changed ones and ones that are gone."""
    rng = random.Random(f"{SEED} {kind}")
    create(db.things, INDEXES[kind])
    insert(db.things, [document(rng, number) for number in range(20)])
    with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
        for number in range(20, DOCUMENTS):
            made = json.loads(json_util.dumps(document(rng, number)))
            cursor.execute("INSERT INTO things (doc) VALUES (%s)", (json.dumps(made, indent=rng.choice([None, 1])),))
            if rng.random() < 0.3:
                other = json_util.dumps(document(rng, number))
                cursor.execute("UPDATE things SET doc = %s WHERE id = %s", (other, str(number)))
            if rng.random() < 0.1:
                cursor.execute("DELETE FROM things WHERE id = %s", (str(number),))
    compare(db.things, rng, INDEXES[kind])


@pytest.mark.mariadb_only
def test_rows_that_truncate_leaves_behind_do_no_harm(server, db):
    db.things.create_index([("tags", 1), ("n", 1)])
    db.things.insert_many([{"_id": number, "tags": ["a", "b"], "n": 1} for number in range(10)])
    with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE things")
        cursor.executemany(
            "INSERT INTO things (doc) VALUES (%s)",
            [(json.dumps({"_id": number, "tags": ["a"] if number == 3 else "a", "n": 1}),) for number in range(6)],
        )
    assert sorted(one["_id"] for one in db.things.find({"tags": "a", "n": 1})) == [0, 1, 2, 3, 4, 5]
    assert list(db.things.find({"tags": "b", "n": 1})) == []


# Values around the limits of a trigger's fast path: strings of some lengths and with escapes,
# integers of some digits, ObjectIds.
AROUND_PLAIN = [
    "é" * 480, "é" * 481, *("a" * length for length in (959, 960, 961, 962)), 'a"b', "a\\b", "\0", "null", "12", "\U0001f600", "[",
    -1, -0.0, 10**17, 10**18 - 1, 1 - 10**18, 10**18, Int64(2**63 - 1), Int64(-(2**63)), 2.0, ObjectId("f" * 24), {"$oid": 1}, None, [], {},
]  # fmt: skip


@pytest.mark.mariadb_only
@pytest.mark.parametrize("key", [{"tags": 1}, {"n": -1, "tags": 1}, {"tags.k": 1}, {"tags.k": 1, "tags.j": -1, "n": 1}], ids=str)
@pytest.mark.parametrize("unique", [False, True])
def test_elements_have_the_same_keys_inserted_one_by_one_or_together(server, db, key, unique):
    rng, options = random.Random(SEED), {"unique": unique, "name": "i"}

    def element():
        one = rng.choice([SCALARS, AROUND_PLAIN])
        if "tags" in key:
            return rng.choice(one)
        return rng.choice([{"k": rng.choice(one)}, {"k": rng.choice(one), "j": scalar(rng)}, {"j": 1}, rng.choice(one)])

    def rows():
        names = server.mariadb.sql(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE '~%%' ORDER BY 1", db.name
        )
        return [sorted(server.mariadb.sql(f"SELECT * FROM `{db.name}`.`{name}`")) for (name,) in names]

    db.things.create_index(list(key.items()), **options)
    db.things.insert_one({"tags": ["first"] if "tags" in key else [{"k": "first"}]})
    for number in range(150):
        try:
            db.things.insert_one({"n": number % 7, "tags": [element() for _ in range(rng.choice([0, 1, 1, 2, 3, 5]))]})
        except WriteError:
            pass
    one_by_one = rows()
    assert len(one_by_one[-1]) > 20
    db.things.drop_indexes()
    db.things.create_index(list(key.items()), **options)
    assert rows() == one_by_one


@pytest.mark.mariadb_only
def test_gateways_work_independently(server, own_server, db, database_name):
    rng, indexes = random.Random(SEED), INDEXES["of elements"]
    other = own_server(mariadb=server.mariadb)
    with other.client() as client:
        theirs = client[database_name].things
        create(db.things, indexes)
        assert theirs.count_documents({"tags": 1}) == 0
        for first in range(0, DOCUMENTS, 50):
            insert(theirs if first % 100 else db.things, [document(rng, number) for number in range(first, first + 50)])
            compare(theirs, rng, indexes, 15)
            compare(db.things, rng, indexes, 15)


QUESTIONS_ABOUT_ASSETS = {
    "an element's name and value": {"attrs": {"$elemMatch": {"k": "name3", "v": 17}}},
    "an element's name, and a range of values": {"attrs": {"$elemMatch": {"k": "name1", "v": {"$gte": 10, "$lt": 14}}}},
    "several names": {"attrs": {"$elemMatch": {"k": {"$in": ["name1", "name2"]}, "v": 5}}},
    "a tag, and a range beside": {"tags": 9, "rank": {"$gte": 200, "$lt": 300}},
    "a range, and a tag beside": {"rank": {"$gte": 200, "$lt": 700}, "tags": 9},
    "either of two": {"$or": [{"tags": 9, "rank": {"$lt": 300}}, {"attrs": {"$elemMatch": {"k": "name4", "v": 3}}}]},
    "two values in one array": {"tags": {"$elemMatch": {"$gt": 8, "$lt": 10}}, "rank": {"$lt": 500}},
}


@pytest.fixture(scope="module")
def assets(server):
    with server.client() as client:
        collection = client["arrays"].assets
        collection.drop()
        collection.create_index([("attrs.k", 1), ("attrs.v", 1)])
        collection.create_index([("tags", 1), ("rank", 1)])
        collection.insert_many([
            {
                "_id": number,
                "attrs": [{"k": f"name{at}", "v": (number * 7 + at * 31) % 200} for at in range(5)],
                "tags": [number % 50, 1000 + number % 7],
                "rank": number * 7 % 1000,
            }
            for number in range(4000)
        ])
        yield collection
        client.drop_database("arrays")


@pytest.mark.parametrize("name", QUESTIONS_ABOUT_ASSETS)
def test_examined_documents_follow_from_returned_ones(assets, name):
    asked = QUESTIONS_ABOUT_ASSETS[name]
    explained = assets.database.command("explain", {"find": assets.name, "filter": asked}, verbosity="executionStats")
    stats = explained["executionStats"]
    natural = sorted(one["_id"] for one in assets.find(asked, hint={"$natural": 1}))
    assert sorted(one["_id"] for one in assets.find(asked)) == natural
    assert stats["nReturned"] == len(natural) > 0
    print(f"{name}: {len(natural)} returned, {stats['totalDocsExamined']} documents and {stats['totalKeysExamined']} keys examined")
    assert stats["totalDocsExamined"] <= 1.1 * len(natural) + 10
    stage = explained["queryPlanner"]["winningPlan"]
    while "inputStage" in stage:
        stage = stage["inputStage"]
    for stage in stage.get("inputStages", [stage]):
        assert (stage["stage"], stage["isMultiKey"]) == ("IXSCAN", True)


def test_explain_says_where_arrays_are(server, db):
    db.things.insert_one({"k": 1, "t": [1, 2], "o": [{"x": {"y": [3]}}]})
    for key in ([("k", 1)], [("k", 1), ("t", -1)], [("o.x.y", 1)]):
        db.things.create_index(key)

    def paths(asked: dict, **options) -> dict | None:
        stage = db.command("explain", {"find": "things", "filter": asked, **options})["queryPlanner"]["winningPlan"]
        while "inputStage" in stage:
            stage = stage["inputStage"]
        return stage.get("multiKeyPaths")

    assert paths({"k": 1}, hint={"k": 1}) == {"k": []}
    assert paths({"k": 1, "t": 2}, hint={"k": 1, "t": -1}) == {"k": [], "t": ["t"]}
    assert paths({"_id": {"$gt": 1}}) == {"_id": []}
    # MariaDB's tables of elements say of which field they are, not of which part of its path.
    expected = {"o.x.y": ["o", "o.x.y"]} if server.mariadb is None else None
    assert paths({"o.x.y": 3}) == expected


def test_fields_become_arrays_one_after_the_other(db):
    """Each has a table of its own from then on; statements prepared before know of it."""
    for field in ("a", "b", "c"):
        db.things.create_index(field)
    db.things.insert_many([{"_id": number, "a": number, "b": number, "c": number} for number in range(10)])
    for number, field in enumerate(("a", "b", "c")):
        db.things.update_one({"_id": number}, {"$set": {field: [100, 200]}})
        db.things.insert_one({"_id": 10 + number, field: [100, 300]})
        db.things.update_many({"_id": {"$gte": 8}}, {"$inc": {"n": 1}})
        db.things.delete_one({"_id": 7 - number})
        assert sorted(one["_id"] for one in db.things.find({field: 100})) == [number, 10 + number]
    assert db.things.count_documents({}) == 10


@pytest.mark.selkie_only
@pytest.mark.mariadb_only
def test_distinct_beside_arrays_that_sql_has_put_side_by_side(db, server):
    """MongoDB has none of them in such an index; SQL writes them all the same."""
    db.things.create_index([("l", 1), ("a", 1)])
    db.things.insert_many([{"_id": 1, "l": 2.0}, {"_id": 2, "l": 2}])
    server.mariadb.sql(f"INSERT INTO `{db.name}`.things (doc) VALUES ('{{\"_id\": 3, \"a\": [], \"l\": [2, 5]}}')")
    assert sorted(db.things.distinct("l")) == [2, 5]
