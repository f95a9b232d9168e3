"""A query's cost follows from the size of its result: the documents examined by explain, and the
right results.

SELKIE_INDEXED sets the size of the collection.
"""

import datetime
import os
from concurrent.futures import ThreadPoolExecutor

import pymongo
import pytest
from bson import ObjectId
from pymongo import ASCENDING, DESCENDING

DOCUMENTS = int(os.environ.get("SELKIE_INDEXED", "20000"))
GROUPS = DOCUMENTS // 20
BATCH = 5000

# The first test fills the collection.
pytestmark = pytest.mark.timeout(300 + DOCUMENTS // 500)


def document(number: int) -> dict:
    return {
        "_id": number,
        "group": number % GROUPS,
        "rank": number * 7919 % DOCUMENTS,
        "name": f"n{number * 31 % DOCUMENTS:08d}",
        "tags": [number % GROUPS, -(number % 17) - 1],
        "kind": number % 25,
        "unique": number,
        "ref": ObjectId(f"ff00ff{number % GROUPS:018x}"),
        "at": datetime.datetime(2024, 2, 28) + datetime.timedelta(minutes=number),
        "items": [{"sku": number % GROUPS, "count": number % 7}, {"sku": -1, "count": 9}],
    }


@pytest.fixture(scope="module")
def filled(server):
    with server.client() as client:
        collection = client["indexed"]["things"]
        collection.drop()
        for first in range(0, DOCUMENTS, BATCH):
            collection.insert_many([document(number) for number in range(first, min(first + BATCH, DOCUMENTS))])
        collection.create_index("group")
        collection.create_index([("kind", ASCENDING), ("rank", ASCENDING)])
        collection.create_index("rank")
        collection.create_index("name")
        collection.create_index("tags")
        collection.create_index([("items.sku", ASCENDING), ("rank", DESCENDING)])
        collection.create_index("unique", unique=True)
        collection.create_index("ref")
        collection.create_index("at")
        yield collection
        client.drop_database("indexed")


def group(number: int) -> dict:
    return {"group": number}


CASES = {
    "equality": (group(3), {}),
    "range": ({"rank": {"$gte": 100, "$lt": 160}}, {}),
    "$in of 50": ({"group": {"$in": list(range(50))}}, {}),
    "compound equality and range": ({"kind": 4, "rank": {"$gt": 10, "$lt": DOCUMENTS // 10}}, {}),
    "sort and limit": ({}, {"sort": [("rank", ASCENDING)], "limit": 10}),
    "sort and limit, descending": ({}, {"sort": [("rank", DESCENDING)], "limit": 10}),
    "sort behind equality": ({"kind": 3}, {"sort": [("rank", DESCENDING)], "limit": 10}),
    "sort behind several points": ({"kind": {"$in": [1, 5, 9, 30]}}, {"sort": [("rank", ASCENDING)], "limit": 10}),
    "prefix of a string": ({"name": {"$regex": "^n000001"}}, {}),
    "what a pattern begins with": ({"name": {"$regex": r"^n000001.*\d$"}}, {}),
    "a prefix with an escape": ({"name": {"$regex": r"^\Qn000001\E"}}, {}),
    "$or of two indexes": ({"$or": [group(5), {"name": {"$regex": "^n0000001"}}]}, {}),
    "$or, merged in order": (
        {"$or": [{"kind": 3}, {"kind": 7}]},
        {"sort": [("rank", ASCENDING)], "limit": 10},
    ),
    "multikey equality": ({"tags": 7}, {}),
    "multikey, and a range behind it": ({"items.sku": 9, "rank": {"$lt": DOCUMENTS // 2}}, {}),
    "a page by _id": ({"_id": {"$gt": DOCUMENTS // 2}}, {"sort": [("_id", ASCENDING)], "limit": 50}),
    "unique": ({"unique": 77}, {}),
    "an ObjectId": ({"ref": ObjectId(f"ff00ff{7:018x}")}, {}),
    "a range of dates": ({"at": {"$gte": datetime.datetime(2024, 2, 29), "$lt": datetime.datetime(2024, 2, 29, 1)}}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_examined_documents_follow_from_returned_ones(filled, name):
    query, options = CASES[name]
    command = {"find": filled.name, "filter": query, **options}
    if "sort" in options:
        command["sort"] = dict(options["sort"])
    stats = filled.database.command("explain", command, verbosity="executionStats")["executionStats"]
    found = list(filled.find(query, **options))
    assert stats["nReturned"] == len(found) > 0
    natural = list(filled.find(query, hint={"$natural": 1}, sort=options.get("sort")).limit(options.get("limit", 0)))
    if "sort" in options:
        assert found == natural
    else:
        assert sorted(one["_id"] for one in found) == sorted(one["_id"] for one in natural)
    print(f"{name}: {len(found)} returned, {stats['totalDocsExamined']} documents and {stats['totalKeysExamined']} keys examined")
    assert stats["totalDocsExamined"] <= 1.1 * len(found) + 10
    assert stats["totalKeysExamined"] > 0


@pytest.mark.parametrize(
    "low, high",
    [
        ({"rank": 100}, {"rank": 160}),
        ({"rank": DOCUMENTS - 50}, None),
        (None, {"rank": 50}),
        ({"kind": 4, "rank": 10}, {"kind": 4, "rank": DOCUMENTS // 10}),
        ({"_id": 100}, {"_id": 160}),
    ],
)
def test_min_and_max_are_a_stretch_of_an_index(filled, low, high):
    ends = {name: end for name, end in (("min", low), ("max", high)) if end}
    key = dict.fromkeys(low or high, ASCENDING)
    command = {"find": filled.name, "hint": key, **ends}
    stats = filled.database.command("explain", command, verbosity="executionStats")["executionStats"]
    first, last = (tuple(end.values()) if end else None for end in (low, high))
    inside = {
        number
        for number in range(DOCUMENTS)
        for found in [tuple(document(number)[field] for field in key)]
        if (first is None or first <= found) and (last is None or found < last)
    }
    found = filled.database.command({**command, "batchSize": DOCUMENTS})["cursor"]["firstBatch"]
    assert {one["_id"] for one in found} == inside
    assert stats["nReturned"] == len(inside) > 0
    assert stats["totalDocsExamined"] <= 1.1 * len(inside) + 10


def test_counting_and_different_values(filled):
    assert filled.count_documents({"kind": 3}) == len(list(filled.find({"kind": 3})))
    assert filled.count_documents({"rank": {"$gte": 10, "$lt": 500}}) == 490
    assert filled.count_documents({"tags": 3}) == len(list(filled.find({"tags": 3})))
    assert filled.distinct("kind") == list(range(25))
    assert filled.distinct("rank", {"kind": 3}) == sorted(one["rank"] for one in filled.find({"kind": 3}))
    assert filled.find_one(sort=[("rank", DESCENDING)])["rank"] == DOCUMENTS - 1


def test_an_upsert_uses_the_unique_index(filled):
    done = filled.update_one({"unique": 12}, {"$set": {"seen": True}}, upsert=True)
    assert (done.matched_count, done.upserted_id) == (1, None)
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        filled.insert_one({"_id": "another", "unique": 12})


def test_a_join_by_an_index(filled):
    pipeline = [
        {"$match": {"_id": {"$in": [1, 2, 3]}}},
        {"$lookup": {"from": filled.name, "localField": "group", "foreignField": "group", "as": "others"}},
        {"$project": {"count": {"$size": "$others"}}},
    ]
    assert [one["count"] for one in filled.aggregate(pipeline)] == [20, 20, 20]


def examined(database, command) -> tuple[int, dict]:
    """Returns the number of documents that a command examines, from explain, and the stages."""
    stats = database.command("explain", command, verbosity="executionStats")["executionStats"]
    return stats["totalDocsExamined"], stats["executionStages"]


def stage_names(stage) -> list[str]:
    return [stage["stage"]] + (stage_names(stage["inputStage"]) if "inputStage" in stage else [])


def test_distinct_examines_one_document_per_value(filled):
    for key, values in [("kind", 25), ("group", GROUPS)]:
        documents, stages = examined(filled.database, {"distinct": filled.name, "key": key})
        print(f"distinct {key}: {values} values, {documents} documents examined")
        assert documents <= 1.1 * values + 10
        assert "DISTINCT_SCAN" in stage_names(stages)


def test_a_count_by_an_index_examines_keys(filled):
    for query in [{"kind": 3}, {"rank": {"$gte": 10, "$lt": 500}}]:
        documents, stages = examined(filled.database, {"count": filled.name, "query": query})
        print(f"count {query}: {stages['nCounted']} counted, {documents} documents examined")
        assert documents <= 10 and "COUNT_SCAN" in stage_names(stages)
        assert stages["nCounted"] == filled.count_documents(query)
    assert examined(filled.database, {"count": filled.name, "query": {}})[0] == 0


def test_equalities_in_expressions_are_found_by_an_index(filled):
    for expression in [{"$eq": ["$group", 7]}, {"$and": [{"$eq": [7, "$group"]}, {"$gt": ["$rank", 0]}]}]:
        query = {"$expr": expression}
        found = sorted(one["_id"] for one in filled.find(query))
        assert found == sorted(one["_id"] for one in filled.find(query, hint={"$natural": 1})) != []
        documents, stages = examined(filled.database, {"find": filled.name, "filter": query})
        print(f"{expression}: {len(found)} documents returned, {documents} examined")
        assert documents <= 1.1 * 20 + 10 and "IXSCAN" in stage_names(stages)
    documents, _ = examined(filled.database, {"find": filled.name, "filter": {"$expr": {"$eq": ["$_id", 5]}}})
    assert documents <= 10


@pytest.fixture
def profile(filled):
    """Profiles operations on the collection; returns a function that finds the entry of one of
    them."""
    database = filled.database
    database.command("profile", 2)
    yield lambda **what: list(database["system.profile"].find(what))
    database.command("profile", 0)
    database.drop_collection("system.profile")


def rows_read(server) -> int:
    """Rows and keys that MariaDB has read since it started."""
    return sum(int(count) for _, count in server.mariadb.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%'"))


@pytest.mark.selkie_only
@pytest.mark.mariadb_only
def test_joins_by_an_index_leave_the_rest_of_the_collection_alone(filled, server):
    """Nothing else is asked of MariaDB either, such as how many documents there are."""
    lookup = {"from": filled.name, "localField": "group", "foreignField": "group", "as": "others"}
    pipeline = [{"$match": {"_id": {"$in": [1, 2, 3]}}}, {"$lookup": lookup}]
    expected = list(filled.aggregate(pipeline))
    before = rows_read(server)
    assert list(filled.aggregate(pipeline)) == expected
    assert rows_read(server) - before <= 2 * 63 + 10


def test_writes_and_joins_examine_few_documents(filled, profile):
    filled.update_one({"unique": 13}, {"$set": {"seen": True}}, upsert=True)
    filled.update_one({"unique": -1}, {"$set": {"seen": True}}, upsert=True)
    filled.delete_one({"unique": -1})
    writes = profile(op={"$in": ["update", "remove"]})
    print(f"unique upserts and a delete: {[entry['docsExamined'] for entry in writes]} documents examined")
    assert [entry["docsExamined"] <= 11 for entry in writes] == [True] * 3
    pipeline = [
        {"$match": {"_id": {"$in": [1, 2, 3]}}},
        {"$lookup": {"from": filled.name, "localField": "group", "foreignField": "group", "as": "others"}},
    ]
    assert [len(one["others"]) for one in filled.aggregate(pipeline)] == [20, 20, 20]
    (join,) = profile(**{"command.aggregate": filled.name})
    print(f"$lookup: 63 documents returned, {join['docsExamined']} examined")
    assert join["docsExamined"] <= 1.1 * 63 + 10
    by_variable = [{"$match": {"$expr": {"$eq": ["$group", "$$group"]}}}]
    pipeline[1] = {"$lookup": {"from": filled.name, "let": {"group": "$group"}, "pipeline": by_variable, "as": "others"}}
    assert [len(one["others"]) for one in filled.aggregate(pipeline)] == [20, 20, 20]
    join = profile(**{"command.aggregate": filled.name})[-1]
    print(f"$lookup with a pipeline: 63 documents returned, {join['docsExamined']} examined")
    assert join["docsExamined"] <= 1.1 * 63 + 10


@pytest.mark.selkie_only
def test_counts_of_drivers_examine_keys(filled, profile):
    """Returns the aggregation that drivers send for count_documents."""
    assert filled.count_documents({"kind": 3}) == DOCUMENTS // 25
    assert filled.count_documents({"kind": {"$lt": 0}}) == 0
    assert [entry["docsExamined"] for entry in profile(**{"command.aggregate": filled.name})] == [0, 0]
    (sums,) = filled.aggregate([{"$match": {"kind": 3}}, {"$group": {"_id": None, "n": {"$sum": 1}, "two": {"$sum": 2}}}])
    assert sums == {"_id": None, "n": DOCUMENTS // 25, "two": DOCUMENTS // 25 * 2}


@pytest.mark.selkie_only
@pytest.mark.mariadb_only
def test_different_values_are_skipped_to_each_time(filled, server):
    """MariaDB forgets to skip from one value to the next when it runs the statement again."""
    assert len(filled.distinct("group")) == GROUPS
    before = rows_read(server)
    for _ in range(3):
        assert len(filled.distinct("group")) == GROUPS
    # With those of what the keys lead to, and of the tables in between.
    assert rows_read(server) - before <= 3 * DOCUMENTS / 2


def test_expired_documents_are_found_by_the_ttl_index(db, filled):
    """The filter is that by which the server deletes once a minute."""
    statement = {"q": {"at": {"$lt": datetime.datetime(2024, 2, 28, 0, 30)}}, "limit": 0}
    documents, stages = examined(filled.database, {"delete": filled.name, "deletes": [statement]})
    print(f"TTL expiry: {stages['nWouldDelete']} to delete, {documents} documents examined")
    assert stages["nWouldDelete"] == 30 and documents <= 1.1 * 30 + 10
    now = datetime.datetime.now(datetime.timezone.utc)
    times = [now + datetime.timedelta(hours=1 if number % 100 else -1) for number in range(3000)]
    db.sessions.insert_many([{"at": at} for at in times])
    db.sessions.create_index("at", expireAfterSeconds=3600)
    statement = {"q": {"at": {"$lt": now}}, "limit": 0}
    documents, stages = examined(db, {"delete": "sessions", "deletes": [statement]})
    assert stages["nWouldDelete"] == 30 and documents <= 1.1 * 30 + 10


@pytest.mark.selkie_only
@pytest.mark.parametrize("key", [{"n": 1}, {"n": "hashed"}, {"at": "2dsphere"}, {"flat": "2d"}, {"$**": 1}], ids=str)
def test_an_index_is_of_no_use_before_it_is_built(own_server, key):
    """Reads during the build find all documents."""
    server = own_server()
    documents = 40_000
    point = lambda number: [number % 300 / 10, number // 300 / 10]
    with server.client() as client, server.client() as reader, ThreadPoolExecutor() as threads:
        things = client["half_built"]["things"]
        things.drop()
        for first in range(0, documents, 10_000):
            numbers = range(first, first + 10_000)
            things.insert_many([{"_id": number, "n": number % 100, "at": {"type": "Point", "coordinates": point(number)}, "flat": point(number)}
                                for number in numbers])
        circle = {"$geoWithin": {"$centerSphere": [[5, 5], 0.02]}}
        questions = [{"n": 7}, {"at": circle}, {"flat": {"$geoWithin": {"$box": [[3, 3], [5, 5]]}}}]
        expected = [things.count_documents(question) for question in questions]
        assert all(expected)
        build = threads.submit(things.create_index, list(key.items()))
        polls = 0
        while not build.done():
            found = [sum(1 for _ in reader["half_built"]["things"].find(question, {"_id": 1})) for question in questions]
            assert found == expected
            polls += 1
        build.result()
        assert polls
        client.drop_database("half_built")


@pytest.mark.selkie_only
def test_a_build_can_be_stopped(own_server):
    """Ended by its time limit or by killOp: then the index does not exist."""
    server = own_server()
    documents = 80_000
    with server.client() as client, ThreadPoolExecutor() as threads:
        things = client["stopped"]["things"]
        things.drop()
        for first in range(0, documents, 10_000):
            things.insert_many([{"_id": number, "n": number, "s": f"{number:080}", "w": {"x": number % 90, "y": "w"}}
                                for number in range(first, first + 10_000)])
        for key in ({"s": 1, "n": -1}, {"$**": 1}):
            indexes = [{"key": {"n": 1}, "name": "first"}, {"key": key, "name": "second"}]
            with pytest.raises(pymongo.errors.OperationFailure) as stopped:
                things.database.command("createIndexes", "things", indexes=indexes, maxTimeMS=60)
            assert stopped.value.code == 50
            build = threads.submit(things.database.command, "createIndexes", "things", indexes=indexes)
            found = []
            while not found and not build.done():
                found = client.admin.command({"currentOp": 1, "command.createIndexes": "things"})["inprog"]
            client.admin.command("killOp", op=found[0]["opid"])
            with pytest.raises(pymongo.errors.OperationFailure) as stopped:
                build.result()
            assert stopped.value.code == 11601
            assert list(things.index_information()) == ["_id_"]
        things.update_many({"_id": {"$lt": 10}}, {"$set": {"n": -1}})
        assert things.count_documents({"n": -1}) == 10
        things.create_index("n")
        assert things.count_documents({"n": -1}) == 10
        client.drop_database("stopped")


@pytest.mark.selkie_only
def test_a_build_shows_how_far_it_is(own_server):
    server = own_server()
    documents = 60_000
    with server.client() as client, ThreadPoolExecutor() as threads:
        things = client["building"]["things"]
        for first in range(0, documents, 10_000):
            things.insert_many([{"_id": number, "n": number, "s": f"{number:050}"} for number in range(first, first + 10_000)])
        build = threads.submit(things.create_index, [("s", 1), ("n", -1)])
        seen = []
        while not build.done():
            operations = client.admin.command({"currentOp": 1, "command.createIndexes": "things"})["inprog"]
            seen += [one for one in operations if "progress" in one]
        assert build.result() == "s_1_n_-1"
    assert seen and all(one["msg"].startswith("Index Build") for one in seen)
    done = [one["progress"]["done"] for one in seen]
    assert done == sorted(done) and 0.5 * documents < seen[0]["progress"]["total"] < 2 * documents
    log = server.end_of_log()
    assert "index build begins" in log and "index built" in log
