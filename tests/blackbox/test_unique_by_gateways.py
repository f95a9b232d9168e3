"""Unique indexes whose keys MariaDB cannot compute: with a collation, with filters that SQL cannot
evaluate, and more than a table has columns for. Gateways claim their keys, in the transaction that
writes the document."""

import contextlib
import random
import threading

import pytest
from pymongo import InsertOne, UpdateOne
from pymongo.collation import Collation
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError

ENGLISH = Collation("en", strength=2)


def refused(run):
    with pytest.raises(DuplicateKeyError) as caught:
        run()
    assert caught.value.code == 11000
    return caught.value.details


@pytest.fixture
def names(db):
    db.names.create_index("name", unique=True, collation=ENGLISH, name="name_1")
    return db.names


def test_every_kind_of_write_refuses_duplicates(names):
    names.insert_many([{"_id": 1, "name": "Anna"}, {"_id": 2, "name": "Bert"}, {"_id": 3, "name": ["x", "y"]}])
    details = refused(lambda: names.insert_one({"_id": 4, "name": "ANNA"}))
    assert details["keyPattern"] == {"name": 1} and details["collation"]["locale"] == "en"
    refused(lambda: names.update_one({"_id": 2}, {"$set": {"name": "anna"}}))
    refused(lambda: names.replace_one({"_id": 2}, {"name": "anna"}))
    refused(lambda: names.find_one_and_update({"_id": 2}, {"$set": {"name": "aNNa"}}))
    refused(lambda: names.update_one({"_id": 9}, {"$set": {"name": "anna"}}, upsert=True))
    refused(lambda: names.insert_one({"_id": 4, "name": ["z", "Y"]}))
    refused(lambda: names.update_one({"_id": 2}, {"$push": {"names": 1}, "$set": {"name": ["X"]}}))
    with pytest.raises(OperationFailure) as caught:
        names.update_many({}, {"$set": {"name": "same"}})
    assert caught.value.code == 11000
    assert names.count_documents({}) == 3
    # Released keys are free.
    names.update_one({"_id": 1}, {"$set": {"name": "Anne"}})
    names.insert_one({"_id": 4, "name": "anna"})
    names.delete_one({"_id": 2})
    names.insert_one({"_id": 5, "name": "BERT"})
    names.insert_one({"_id": 6})
    refused(lambda: names.insert_one({"_id": 7, "name": None}))
    assert {one["_id"] for one in names.find({"name": {"$in": ["ANNA", "bert"]}}, collation=ENGLISH)} == {4, 5}


@pytest.mark.parametrize("ordered", [True, False])
def test_batches_report_the_refused_documents(names, ordered):
    documents = [{"_id": 1, "name": "a"}, {"_id": 2, "name": "b"}, {"_id": 3, "name": "A"}, {"_id": 4, "name": "c"}, {"_id": 5, "name": "B"}]
    with pytest.raises(BulkWriteError) as caught:
        names.bulk_write([InsertOne(document) for document in documents], ordered=ordered)
    errors = [(error["index"], error["code"]) for error in caught.value.details["writeErrors"]]
    assert errors == ([(2, 11000)] if ordered else [(2, 11000), (4, 11000)])
    assert {one["_id"] for one in names.find()} == ({1, 2} if ordered else {1, 2, 4})
    with pytest.raises(BulkWriteError) as caught:
        names.bulk_write([UpdateOne({"_id": 1}, {"$set": {"name": "B"}}), UpdateOne({"_id": 2}, {"$set": {"n": 1}})], ordered=False)
    assert [error["index"] for error in caught.value.details["writeErrors"]] == [0]
    assert names.find_one({"_id": 2})["n"] == 1


def test_an_index_is_refused_where_documents_have_a_key_in_common(db):
    db.names.insert_many([{"name": "anna"}, {"name": "ANNA"}])
    with pytest.raises(DuplicateKeyError):
        db.names.create_index("name", unique=True, collation=ENGLISH)
    assert list(db.names.index_information()) == ["_id_"]
    db.names.delete_one({"name": "ANNA"})
    db.names.create_index("name", unique=True, collation=ENGLISH)
    refused(lambda: db.names.insert_one({"name": "Anna"}))
    db.names.drop_index("name_1")
    db.names.insert_one({"name": "Anna"})


def test_one_of_many_concurrent_writers_gets_the_name(server, db):
    db.names.create_index("name", unique=True, collation=ENGLISH)
    won = []

    def write(number):
        rng = random.Random(number)
        with server.client() as client:
            for name in range(12):
                spelled = "".join(rng.choice([char, char.upper()]) for char in f"name{name}")
                try:
                    client[db.name].names.insert_one({"name": spelled})
                    won.append(name)
                except DuplicateKeyError:
                    pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(won) == list(range(12))
    assert db.names.count_documents({}) == 12


def test_more_unique_indexes_than_a_table_has_columns_for(db):
    for number in range(22):
        db.wide.create_index(f"k{number}", unique=True, sparse=True)
    db.wide.insert_one({"_id": 1, **{f"k{number}": number for number in range(22)}})
    for number in range(22):
        refused(lambda: db.wide.insert_one({f"k{number}": float(number)}))
    db.wide.insert_many([{"_id": 2}, {"_id": 3}])


def test_a_collection_with_a_collation_has_unique_indexes_with_it(db):
    db.create_collection("names", collation=ENGLISH)
    db.names.create_index("name", unique=True)
    db.names.insert_one({"name": "anna"})
    refused(lambda: db.names.insert_one({"name": "ANNA"}))
    db.names.rename("renamed")
    refused(lambda: db.renamed.insert_one({"name": "ANNA"}))
    db.renamed.insert_one({"name": "bert"})


@pytest.mark.mariadb_only
def test_gateways_know_rows_written_by_sql(names, sql):
    names.insert_one({"_id": 1, "name": "anna"})
    sql("INSERT INTO names (doc) VALUES (%s)", '{"_id": 2, "name": "bert"}')
    refused(lambda: names.insert_one({"_id": 3, "name": "BERT"}))
    # MariaDB cannot refuse this; the document that had the name first keeps it.
    sql("INSERT INTO names (doc) VALUES (%s)", '{"_id": 4, "name": "ANNA"}')
    assert {one["_id"] for one in names.find({"name": "Anna"}, collation=ENGLISH)} == {1, 4}
    refused(lambda: names.insert_one({"_id": 5, "name": "Anna"}))
    sql("DELETE FROM names WHERE id = '2'")
    names.insert_one({"_id": 6, "name": "Bert"})


@pytest.mark.mariadb_only
def test_a_gateway_that_does_not_know_the_index_yet_writes_no_duplicate(server, own_server, db):
    other = own_server(mariadb=server.mariadb)
    with other.client() as client:
        elsewhere = client[db.name].names
        elsewhere.insert_one({"_id": 0, "name": "zoe"})
        for number in range(5):
            db.names.create_index("name", unique=True, collation=ENGLISH)
            db.names.insert_one({"_id": f"a{number}", "name": f"anna{number}"})
            refused(lambda: elsewhere.insert_one({"name": f"ANNA{number}"}))
            elsewhere.insert_one({"_id": f"b{number}", "name": f"bert{number}"})
            refused(lambda: db.names.insert_one({"name": f"BERT{number}"}))
            db.names.drop_index("name_1")


def test_writers_beside_a_build_do_not_hide_that_documents_have_a_key_in_common(server, db):
    db.names.insert_many([{"name": f"name{number % 2999}"} for number in range(3000)])
    done = threading.Event()

    def write(number):
        with server.client() as client:
            written = 0
            while not done.is_set():
                written += 1
                client[db.name].names.insert_one({"name": f"{number}.{written}"})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    try:
        with pytest.raises(DuplicateKeyError):
            db.names.create_index("name", unique=True, collation=ENGLISH)
    finally:
        done.set()
        [thread.join() for thread in threads]
    assert list(db.names.index_information()) == ["_id_"]


@pytest.mark.mariadb_only
@pytest.mark.parametrize("kind", ["~claims~", "~pending~"])
def test_an_index_that_a_killed_gateway_had_begun_is_built_on_request(server, own_server, db, sql, kind):
    db.names.insert_many([{"_id": number, "name": f"name{number}"} for number in range(4000)])
    other = own_server(mariadb=server.mariadb)

    def create():
        with other.client(serverSelectionTimeoutMS=100, retryWrites=False) as client, contextlib.suppress(PyMongoError):
            client[db.name].names.create_index("name", unique=True, collation=ENGLISH)

    thread = threading.Thread(target=create)
    thread.start()
    while not any(name.startswith(kind) for (name,) in sql("SHOW TABLES")):
        pass
    other.kill()
    thread.join()
    db.names.create_index("name", unique=True, collation=ENGLISH)
    refused(lambda: db.names.insert_one({"name": "NAME1"}))
    refused(lambda: db.names.insert_one({"name": "NAME3999"}))
    db.names.drop_index("name_1")
    assert [name for (name,) in sql("SHOW TABLES") if name.startswith("~")] == []
    db.names.insert_one({"name": "NAME1"})
