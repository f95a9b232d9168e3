"""Many clients at once on the same documents."""

import multiprocessing
import threading

import pymongo
from pymongo.errors import DuplicateKeyError, OperationFailure

PROCESSES, ROUNDS, INDEXED = 4, 100, 6


def in_processes(work, *arguments) -> list:
    """Runs `work(number, *arguments)` in several processes that start together, and returns their
    results."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES) as pool:
        return pool.starmap(work, [(number, *arguments) for number in range(PROCESSES)])


def count_up(_number: int, uri: str, database: str) -> list[int]:
    with pymongo.MongoClient(uri) as client:
        counters = client[database].counters
        after = pymongo.ReturnDocument.AFTER
        return [
            counters.find_one_and_update({"_id": "c"}, {"$inc": {"n": 1}}, upsert=True, return_document=after)["n"]
            for _ in range(ROUNDS)
        ]


def test_counters_from_several_processes(db, server):
    numbers = in_processes(count_up, server.uri, db.name)
    assert sorted(n for part in numbers for n in part) == list(range(1, PROCESSES * ROUNDS + 1))


def upsert(number: int, uri: str, database: str) -> int:
    made = 0
    with pymongo.MongoClient(uri) as client:
        slots = client[database].slots
        for n in range(ROUNDS):
            made += slots.update_one({"_id": n}, {"$addToSet": {"by": number}}, upsert=True).upserted_id is not None
            made += slots.update_one({"key": n}, {"$inc": {"n": 1}}, upsert=True).upserted_id is not None
    return made


def test_upserts_race(db, server):
    db.slots.create_index("key", unique=True, sparse=True)
    assert sum(in_processes(upsert, server.uri, db.name)) == 2 * ROUNDS
    assert db.slots.count_documents({"by": {"$size": PROCESSES}}) == ROUNDS
    assert db.slots.count_documents({"n": PROCESSES}) == ROUNDS


def insert_same(number: int, uri: str, database: str) -> int:
    won = 0
    with pymongo.MongoClient(uri) as client:
        for n in range(ROUNDS):
            try:
                client[database].names.insert_one({"name": f"n{n}", "by": number})
                won += 1
            except DuplicateKeyError:
                pass
    return won


def test_a_unique_index_holds(db, server):
    db.names.create_index("name", unique=True)
    assert sum(in_processes(insert_same, server.uri, db.name)) == ROUNDS
    assert db.names.count_documents({}) == ROUNDS


def transfer(number: int, uri: str, database: str) -> int:
    """Optimistic locking: read, change, write where the version is still the same."""
    done = 0
    with pymongo.MongoClient(uri) as client:
        account = client[database].account
        while done < 25:
            seen = account.find_one({"_id": 1})
            wanted = {"_id": 1, "version": seen["version"]}
            change = {"$set": {"version": seen["version"] + 1, "sum": seen["sum"] + number}}
            done += account.update_one(wanted, change).modified_count
    return done


def test_compare_and_set(db, server):
    db.account.insert_one({"_id": 1, "version": 0, "sum": 0})
    assert sum(in_processes(transfer, server.uri, db.name)) == 100
    assert db.account.find_one() == {"_id": 1, "version": 100, "sum": 25 * sum(range(PROCESSES))}


def take(_number: int, uri: str, database: str) -> list[int]:
    taken = []
    with pymongo.MongoClient(uri) as client:
        jobs = client[database].jobs
        while (job := jobs.find_one_and_update({"state": "new"}, {"$set": {"state": "taken"}}, sort=[("priority", 1)])):
            taken.append(job["_id"])
    return taken


def test_a_queue_returns_each_job_once(db, server):
    db.jobs.insert_many([{"_id": n, "state": "new", "priority": n % 7} for n in range(200)])
    taken = in_processes(take, server.uri, db.name)
    assert sorted(job for part in taken for job in part) == list(range(200))


def test_a_writer_sees_its_own_writes_and_readers_whole_documents(db, server):
    """No reader ever sees half an update."""
    db.pairs.insert_one({"_id": 1, "a": 0, "b": 0})
    stop = threading.Event()
    torn = []

    def read():
        with server.client() as client:
            while not stop.is_set():
                pair = client[db.name].pairs.find_one({"_id": 1})
                if pair["a"] != pair["b"]:
                    torn.append(pair)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for n in range(1, 301):
        db.pairs.update_one({"_id": 1}, {"$inc": {"a": 1, "b": 1}})
        assert db.pairs.find_one({"_id": 1})["a"] == n
    stop.set()
    for reader in readers:
        reader.join()
    assert not torn


def test_collections_appear_under_many_hands(db, server):
    def insert(number: int):
        with server.client() as client:
            for n in range(10):
                client[db.name][f"made{n}"].insert_one({"_id": number})

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [db[f"made{n}"].count_documents({}) for n in range(10)] == [6] * 10


def create_same(_number: int, uri: str, database: str) -> list[str]:
    refused = []
    with pymongo.MongoClient(uri) as client:
        for n in range(INDEXED):
            try:
                client[database][f"c{n}"].create_indexes([
                    pymongo.IndexModel([("a", 1), ("b", 1)], unique=True), pymongo.IndexModel("b"),
                ])
            except OperationFailure as error:
                refused.append(str(error))
    return refused


def test_the_same_indexes_made_at_once(db, server):
    assert in_processes(create_same, server.uri, db.name) == [[]] * PROCESSES
    for n in range(INDEXED):
        collection = db[f"c{n}"]
        assert sorted(collection.index_information()) == ["_id_", "a_1_b_1", "b_1"]
        collection.drop_indexes()
        collection.create_index([("a", 1), ("b", 1)], unique=True)


def test_an_index_that_went_with_its_collection_is_missed_by_no_connection(db, server):
    clients = [pymongo.MongoClient(server.uri) for _ in range(6)]
    for n in range(12):
        db.c.drop()
        db.c.insert_many([{"a": a} for a in range(5)])
        if n % 2 == 0:
            db.c.create_index("a")
        for client in clients:
            again = client[db.name].c
            assert again.update_many({"a": 3}, {"$set": {"n": n}}).matched_count == 1
            assert again.find_one_and_update({"a": 2}, {"$set": {"n": n}})["a"] == 2
            assert again.delete_many({"a": 9}).deleted_count == 0
            assert len(list(again.find({"a": 3}))) == 1
    for client in clients:
        client.close()
