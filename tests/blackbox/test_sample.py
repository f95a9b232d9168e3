"""`$sample` of a small part of a collection examines few other documents, and all documents are
equally likely."""

import collections

import pytest

DOCUMENTS = 4000


def fill(db):
    db.things.insert_many([{"_id": number, "n": number % 10} for number in range(2 * DOCUMENTS)])
    # Rows with gaps between them, and a wide one.
    db.things.delete_many({"$or": [{"_id": {"$mod": [3, 0]}}, {"_id": {"$gte": 3000, "$lt": 4500}}]})
    return {one["_id"] for one in db.things.find({}, {"_id": 1})}


def examined(db, pipeline):
    explained = db.command("explain", {"aggregate": "things", "pipeline": pipeline, "cursor": {}}, verbosity="executionStats")
    stats = explained.get("executionStats") or explained["stages"][0]["$cursor"]["executionStats"]
    return stats["totalDocsExamined"]


def test_a_small_part_is_chosen_without_reading_the_rest(db):
    there = fill(db)
    times = collections.Counter()
    for _ in range(40):
        found = [one["_id"] for one in db.things.aggregate([{"$sample": {"size": 100}}])]
        assert len(set(found)) == 100 and set(found) <= there
        times.update(found)
    # 4,000 draws: on average a document comes once or less, and a half of them half of the time.
    assert max(times.values()) < 15
    low = sum(count for number, count in times.items() if number < 3000)
    expected = 4000 * sum(number < 3000 for number in there) / len(there)
    assert abs(low - expected) < 300, (low, expected)
    assert examined(db, [{"$sample": {"size": 100}}]) <= 300


def test_later_stages_process_the_sample(db):
    fill(db)
    grouped = list(db.things.aggregate([{"$sample": {"size": 50}}, {"$group": {"_id": None, "count": {"$sum": 1}}}]))
    assert grouped == [{"_id": None, "count": 50}]
    assert len(list(db.things.aggregate([{"$sample": {"size": 20}}, {"$match": {"n": {"$gte": 0}}}, {"$limit": 5}]))) == 5


def test_a_large_part_a_filter_and_a_view_are_chosen_from_as_well(db):
    there = fill(db)
    for size in (len(there) // 2, len(there) + 5):
        found = [one["_id"] for one in db.things.aggregate([{"$sample": {"size": size}}])]
        assert len(set(found)) == len(found) == min(size, len(there))
    filtered = list(db.things.aggregate([{"$match": {"n": 1}}, {"$sample": {"size": 5}}]))
    assert len(filtered) == 5 and all(one["n"] == 1 for one in filtered)
    db.create_collection("ones", viewOn="things", pipeline=[{"$match": {"n": 1}}])
    seen = list(db.ones.aggregate([{"$sample": {"size": 5}}]))
    assert len(seen) == 5 and all(one["n"] == 1 for one in seen)
    assert list(db.nothing.aggregate([{"$sample": {"size": 5}}])) == []


@pytest.mark.mariadb_only
def test_a_table_dropped_by_sql_has_no_sample(server, db):
    fill(db)
    assert len(list(db.things.aggregate([{"$sample": {"size": 5}}]))) == 5
    with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE things")
    assert list(db.things.aggregate([{"$sample": {"size": 5}}])) == []
