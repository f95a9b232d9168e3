"""Common operations of applications through pymongo, with each compressor: insert, find, update,
delete, aggregate, indexes, GridFS."""

import os
from datetime import datetime, timezone

import gridfs
import pymongo
import pytest
from bson import ObjectId
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError


def test_insert_and_find(compressed_db):
    people = compressed_db.people
    one = people.insert_one({"name": "Ada", "born": datetime(1815, 12, 10, tzinfo=timezone.utc)})
    assert isinstance(one.inserted_id, ObjectId)
    many = people.insert_many([{"name": name, "tags": ["x", name]} for name in ("Grace", "Edsger", "Barbara")])
    assert len(many.inserted_ids) == 3
    assert people.find_one({"name": "Ada"})["born"] == datetime(1815, 12, 10)
    assert [d["name"] for d in people.find({"tags": "x"}).sort("name")] == ["Barbara", "Edsger", "Grace"]
    assert people.find_one({"tags": "Grace"}, {"_id": 0, "name": 1}) == {"name": "Grace"}
    assert people.count_documents({}) == 4
    assert people.estimated_document_count() == 4
    assert sorted(people.distinct("name")) == ["Ada", "Barbara", "Edsger", "Grace"]


def test_cursor_over_several_batches(compressed_db):
    numbers = compressed_db.numbers
    numbers.insert_many([{"_id": n, "square": n * n, "pad": "x" * 100} for n in range(3000)])
    assert [d["_id"] for d in numbers.find().sort("_id")] == list(range(3000))
    assert [d["_id"] for d in numbers.find(batch_size=7).limit(100)] == list(range(100))
    assert len(list(numbers.find({"square": {"$gte": 10_000}}, batch_size=500))) == 2900
    assert [d["_id"] for d in numbers.find().sort("_id", -1).skip(10).limit(3)] == [2989, 2988, 2987]


def test_update_and_delete(compressed_db):
    things = compressed_db.things
    things.insert_many([{"_id": n, "n": n, "list": [n]} for n in range(10)])
    assert things.update_one({"_id": 1}, {"$set": {"a.b": 5}, "$inc": {"n": 10}}).modified_count == 1
    assert things.find_one({"_id": 1}) == {"_id": 1, "n": 11, "list": [1], "a": {"b": 5}}
    assert things.update_many({"_id": {"$lt": 5}}, {"$push": {"list": {"$each": [7, 8], "$slice": -2}}}).modified_count == 5
    assert things.find_one({"_id": 0})["list"] == [7, 8]
    assert things.update_one({"_id": 1}, {"$set": {"n": 11}}).modified_count == 0
    assert things.replace_one({"_id": 2}, {"new": True}).matched_count == 1
    assert things.find_one({"_id": 2}) == {"_id": 2, "new": True}
    upserted = things.update_one({"_id": 99, "kind": "late"}, {"$set": {"n": 1}}, upsert=True)
    assert upserted.upserted_id == 99
    assert things.find_one({"_id": 99}) == {"_id": 99, "kind": "late", "n": 1}
    assert things.find_one_and_update(
        {"_id": 99}, {"$inc": {"n": 1}}, return_document=pymongo.ReturnDocument.AFTER
    ) == {"_id": 99, "kind": "late", "n": 2}
    assert things.find_one_and_delete({"_id": 99}, projection={"n": 1}) == {"_id": 99, "n": 2}
    assert things.find_one_and_replace({"_id": 404}, {"x": 1}) is None
    assert things.delete_one({"_id": 0}).deleted_count == 1
    assert things.delete_many({"_id": {"$gte": 5}}).deleted_count == 5
    assert sorted(d["_id"] for d in things.find()) == [1, 2, 3, 4]


def test_aggregate(compressed_db):
    sales = compressed_db.sales
    sales.insert_many(
        [{"_id": n, "shop": f"s{n % 3}", "amount": n, "items": [{"sku": n % 2}, {"sku": 9}]} for n in range(300)]
    )
    totals = sales.aggregate(
        [
            {"$match": {"amount": {"$gte": 30}}},
            {"$group": {"_id": "$shop", "sum": {"$sum": "$amount"}, "count": {"$sum": 1}}},
            {"$sort": {"_id": 1}},
        ]
    )
    expected = [{"_id": f"s{k}", "sum": sum(n for n in range(30, 300) if n % 3 == k), "count": 90} for k in range(3)]
    assert list(totals) == expected
    skus = sales.aggregate(
        [{"$unwind": "$items"}, {"$group": {"_id": "$items.sku", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]
    )
    assert list(skus) == [{"_id": 0, "n": 150}, {"_id": 1, "n": 150}, {"_id": 9, "n": 300}]
    assert list(sales.aggregate([{"$match": {"amount": {"$lt": 5}}}, {"$count": "few"}])) == [{"few": 5}]
    paged = sales.aggregate([{"$sort": {"_id": -1}}, {"$skip": 1}, {"$project": {"amount": 1}}], batchSize=13)
    assert [d["amount"] for d in paged] == list(range(298, -1, -1))


def test_indexes(compressed_db):
    things = compressed_db.indexed
    assert things.create_index([("a", 1), ("b", -1)]) == "a_1_b_-1"
    assert things.create_index("email", unique=True, name="by_email") == "by_email"
    assert things.create_index("email", unique=True, name="by_email") == "by_email"
    information = things.index_information()
    assert set(information) == {"_id_", "a_1_b_-1", "by_email"}
    assert information["by_email"]["unique"] is True
    assert information["a_1_b_-1"]["key"] == [("a", 1), ("b", -1)]
    things.insert_many([{"a": n % 5, "b": n, "email": f"{n}@example.com"} for n in range(100)])
    assert [d["b"] for d in things.find({"a": 3}).sort("b", -1).limit(3)] == [98, 93, 88]
    assert things.find_one({"email": "42@example.com"})["b"] == 42
    things.drop_index("a_1_b_-1")
    assert set(things.index_information()) == {"_id_", "by_email"}
    things.drop_indexes()
    assert set(things.index_information()) == {"_id_"}


def test_bulk_write(compressed_db):
    things = compressed_db.bulk
    result = things.bulk_write(
        [
            InsertOne({"_id": 1}),
            InsertOne({"_id": 2, "x": 1}),
            UpdateOne({"_id": 1}, {"$set": {"x": 5}}),
            UpdateMany({}, {"$inc": {"x": 1}}),
            ReplaceOne({"_id": 3}, {"x": 0}, upsert=True),
            DeleteOne({"_id": 2}),
            DeleteMany({"x": 1000}),
        ]
    )
    assert (result.inserted_count, result.matched_count, result.modified_count) == (2, 3, 3)
    assert (result.deleted_count, result.upserted_ids) == (1, {4: 3})
    assert list(things.find().sort("_id")) == [{"_id": 1, "x": 6}, {"_id": 3, "x": 0}]


def test_ordered_and_unordered_errors(compressed_db):
    things = compressed_db.ordered
    things.insert_one({"_id": 2})
    with pytest.raises(BulkWriteError) as error:
        things.insert_many([{"_id": 1}, {"_id": 2}, {"_id": 3}])
    details = error.value.details
    assert (details["nInserted"], [e["index"] for e in details["writeErrors"]]) == (1, [1])
    with pytest.raises(BulkWriteError) as error:
        things.insert_many([{"_id": 1}, {"_id": 2}, {"_id": 3}, {"_id": 2}], ordered=False)
    assert [e["index"] for e in error.value.details["writeErrors"]] == [0, 1, 3]
    assert {e["code"] for e in error.value.details["writeErrors"]} == {11000}
    assert sorted(d["_id"] for d in things.find()) == [1, 2, 3]


def test_sessions(compressed_db):
    things = compressed_db.sessions
    with compressed_db.client.start_session() as session:
        things.insert_many([{"_id": n} for n in range(300)], session=session)
        assert sum(1 for _ in things.find({}, session=session, batch_size=50)) == 300
        assert things.update_one({"_id": 5}, {"$set": {"x": 1}}, session=session).modified_count == 1
    with compressed_db.client.start_session(causal_consistency=False) as session:
        assert things.find_one({"x": 1}, session=session) == {"_id": 5, "x": 1}


def test_collections_and_databases(compressed_db):
    db = compressed_db
    db.create_collection("made")
    db.appeared.insert_one({})
    assert sorted(db.list_collection_names()) == ["appeared", "made"]
    assert db.name in db.client.list_database_names()
    db.appeared.rename("renamed")
    assert sorted(db.list_collection_names()) == ["made", "renamed"]
    db.drop_collection("made")
    db.client.drop_database(db.name)
    assert db.list_collection_names() == []
    assert db.name not in db.client.list_database_names()


def test_gridfs(compressed_db):
    # Half of it noise, so that compressors neither win nor lose everything.
    content = os.urandom(10 * 1024 * 1024) + b"selkie " * (10 * 1024 * 1024 // 7)
    bucket = gridfs.GridFSBucket(compressed_db)
    file_id = bucket.upload_from_stream("film.bin", content, metadata={"kind": "test"})
    assert bucket.open_download_stream(file_id).read() == content
    part = bucket.open_download_stream_by_name("film.bin")
    part.seek(5_000_000)
    assert part.read(1000) == content[5_000_000:5_001_000]
    assert [f.length for f in bucket.find({"filename": "film.bin"})] == [len(content)]
    bucket.rename(file_id, "movie.bin")
    bucket.delete(file_id)
    assert compressed_db["fs.chunks"].count_documents({}) == 0
