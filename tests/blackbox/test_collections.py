"""Views, validators and capped collections, as an application meets them through a driver."""

import threading
import time

import pymongo
import pytest
from pymongo.errors import BulkWriteError, OperationFailure, WriteError


def test_a_view_is_read_like_a_collection(db):
    db.cars.insert_many([{"_id": number, "make": "Toyota" if number % 2 else "Opel"} for number in range(300)])
    db.command("create", "toyotas", viewOn="cars", pipeline=[{"$match": {"make": "Toyota"}}])
    db.command("create", "few", viewOn="toyotas", pipeline=[{"$match": {"_id": {"$lt": 10}}}])
    assert db.toyotas.count_documents({}) == 150
    assert len(list(db.toyotas.find(batch_size=20))) == 150
    assert [car["_id"] for car in db.few.find().sort("_id", -1).limit(2)] == [9, 7]
    assert db.few.find_one({"_id": 3}, {"make": 1}) == {"_id": 3, "make": "Toyota"}
    assert db.few.distinct("make") == ["Toyota"]
    assert "few" in db.list_collection_names()
    with pytest.raises(OperationFailure) as refused:
        db.few.insert_one({})
    assert refused.value.code == 166
    db.command("collMod", "few", viewOn="cars", pipeline=[{"$match": {"_id": 2}}])
    assert [car["_id"] for car in db.few.find()] == [2]
    db.few.drop()
    assert list(db.few.find()) == []


def test_documents_have_to_be_valid(db):
    schema = {"required": ["name"], "properties": {"age": {"bsonType": "int", "minimum": 0}}}
    people = db.create_collection("people", validator={"$jsonSchema": schema})
    people.insert_one({"_id": 1, "name": "Ann", "age": 5})
    with pytest.raises(WriteError) as refused:
        people.insert_one({"_id": 2, "age": -1})
    assert refused.value.code == 121
    rules = refused.value.details["errInfo"]["details"]["schemaRulesNotSatisfied"]
    assert {rule["operatorName"] for rule in rules} == {"properties", "required"}
    with pytest.raises(WriteError):
        people.update_one({"_id": 1}, {"$unset": {"name": 1}})
    people.insert_one({"_id": 3}, bypass_document_validation=True)
    with pytest.raises(BulkWriteError) as refused:
        people.insert_many([{"_id": 4}, {"_id": 5, "name": "Bob"}], ordered=False)
    assert [error["code"] for error in refused.value.details["writeErrors"]] == [121]
    assert people.count_documents({}) == 3


def test_a_changed_validator_is_heeded_by_every_connection(server, db):
    db.create_collection("rules")
    clients = [server.client() for _ in range(8)]
    others = [client[db.name].rules for client in clients]
    for number, other in enumerate(others):
        other.insert_one({"_id": number})
    db.command("collMod", "rules", validator={"x": {"$exists": True}})
    for number, other in enumerate(others):
        with pytest.raises(WriteError):
            other.insert_one({"_id": 100 + number})
    db.command("collMod", "rules", validator={})
    for number, other in enumerate(others):
        other.insert_one({"_id": 100 + number})
    for client in clients:
        client.close()


def test_a_capped_collection_keeps_the_newest(db):
    log = db.create_collection("log", capped=True, size=100_000, max=10)
    log.insert_many([{"_id": number} for number in range(25)])
    assert [entry["_id"] for entry in log.find()] == list(range(15, 25))
    assert [entry["_id"] for entry in log.find().sort("$natural", -1).limit(2)] == [24, 23]
    assert log.options() == {"capped": True, "size": 100_096, "max": 10}


def test_a_tailable_cursor_waits_for_documents(server, db):
    log = db.create_collection("log", capped=True, size=100_000)
    log.insert_one({"_id": 0})
    cursor = log.find(cursor_type=pymongo.CursorType.TAILABLE_AWAIT).max_await_time_ms(5000)
    assert next(cursor)["_id"] == 0

    def write():
        time.sleep(0.3)
        with server.client() as other:
            other[db.name].log.insert_many([{"_id": 1}, {"_id": 2}])

    writer = threading.Thread(target=write)
    writer.start()
    began = time.monotonic()
    assert [next(cursor)["_id"] for _ in range(2)] == [1, 2]
    assert 0.2 < time.monotonic() - began < 4
    writer.join()
    assert cursor.alive
    db.plain.insert_one({})
    with pytest.raises(OperationFailure):
        next(db.plain.find(cursor_type=pymongo.CursorType.TAILABLE))
    cursor.close()


def test_a_tailing_reader_of_a_capped_collection_misses_nothing(server, db):
    log = db.create_collection("log", capped=True, size=10_000_000)
    log.insert_one({"_id": "first"})
    cursor = log.find(cursor_type=pymongo.CursorType.TAILABLE_AWAIT)
    next(cursor)

    def write(writer):
        with server.client() as client:
            for number in range(50):
                client[db.name].log.insert_one({"_id": f"{writer} {number}"})

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    seen, end = set(), time.monotonic() + 30
    while len(seen) < 200 and time.monotonic() < end:
        seen.add(next(cursor)["_id"])
    for writer in writers:
        writer.join()
    assert len(seen) == 200
    cursor.close()


def test_a_database_dropped_by_another_worker(server, database_name):
    """Views are looked for in a collection that another worker has dropped just now."""
    clients = [server.client() for _ in range(6)]
    try:
        for turn in range(24):
            here, there = clients[turn % 6][database_name], clients[(turn + 1) % 6][database_name]
            here.create_collection("v", viewOn="c", pipeline=[])
            assert list(there.v.find()) == [] and list(there.other.find()) == []
            here.client.drop_database(database_name)
            there.c.insert_one({"_id": turn})
            assert [found["_id"] for found in there.c.find()] == [turn]
            there.client.drop_database(database_name)
    finally:
        for client in clients:
            client.close()
