"""Many updates in one command do what they do one by one."""

import random
import threading

import pytest
from bson import Int64
from pymongo import UpdateOne

from support.mariadb import MariadbServer

ROUNDS, STATEMENTS = 56, 25


def any_filter(number, other) -> list[dict]:
    return [
        {"_id": number}, {"_id": number}, {"_id": number, "n": {"$gte": 3}}, {"key": number}, {"key": number, "n": other},
        {"n": {"$gt": number}}, {"tags": number}, {"_id": {"$in": [number, other]}}, {},
    ]


# The filters of one batch: arbitrary ones, or each a value of the same field.
FILTERS = [
    any_filter, lambda number, _: [{"_id": number}], lambda number, _: [{"key": number}, {"key": float(number)}],
    lambda number, other: [{"tags": number}, {"tags": Int64(other)}], lambda number, _: [{"n": number}],
    lambda number, _: [{"key": f"k{number}"}, {"key": number}], lambda number, _: [{"sub.key": number}],
]


def statement(choose: random.Random, filters) -> dict:
    """Returns a random update of few ids and keys, so that statements of a batch affect the same
    documents."""
    number, other = choose.randrange(12), choose.randrange(8)
    query = choose.choice(filters(number, other))
    update = choose.choice([
        {"$set": {"n": other}}, {"$inc": {"n": 1}}, {"$set": {"key": other}}, {"$push": {"tags": other}}, {"$unset": {"key": 1}},
        {"$setOnInsert": {"n": 1}}, {"$set": {"_id": 99}}, {"$inc": {"text": 1}}, [{"$set": {"n": {"$add": ["$n", 1]}}}],
        {"n": number, "text": "x"}, {"$set": {"key": f"k{other}"}}, {"$set": {"tags": [other, [1]]}},
        {"$set": {"sub": [{"key": other}, {"key": number}]}}, {"$set": {"sub.key": other}}, {"$set": {"n": [number, other]}},
    ])
    is_replacement = isinstance(update, dict) and not next(iter(update)).startswith("$")
    multi = choose.random() < 0.1 and not is_replacement
    return {"q": query, "u": update, "upsert": choose.random() < 0.6, "multi": multi}


def apart(collection, statements: list[dict], ordered: bool) -> dict:
    """The reply that a batch should have, of commands with one statement each."""
    total = {"n": 0, "nModified": 0, "upserted": [], "writeErrors": []}
    for index, each in enumerate(statements):
        reply = collection.database.command("update", collection.name, updates=[each])
        total["n"] += reply["n"]
        total["nModified"] += reply["nModified"]
        total["upserted"] += [{**one, "index": index} for one in reply.get("upserted", [])]
        total["writeErrors"] += [{**one, "index": index} for one in reply.get("writeErrors", [])]
        if ordered and total["writeErrors"]:
            break
    return total


def without_made_up(value):
    """Ids that a server makes up are different ones."""
    if isinstance(value, dict):
        return {name: without_made_up(inner) for name, inner in value.items() if name != "errmsg"}
    if isinstance(value, list):
        return [without_made_up(inner) for inner in value]
    return value if isinstance(value, (int, str, float)) or value is None else "<made up>"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_batch_is_its_statements_one_by_one(db, seed):
    choose = random.Random(seed)
    filters = FILTERS[seed % len(FILTERS)]
    statements = [statement(choose, filters) for _ in range(STATEMENTS)]
    ordered, is_unique, has_index = choose.random() < 0.5, choose.random() < 0.5, choose.random() < 0.5
    for collection in (db.together, db.apart):
        collection.insert_many({"_id": number, "key": number, "n": number, "tags": [number]} for number in range(6))
        if is_unique:
            collection.create_index("key", unique=True, sparse=True)
        if has_index:
            collection.create_index([("n", 1), ("tags", 1)])
    reply = db.command("update", "together", updates=statements, ordered=ordered)
    expected = apart(db.apart, statements, ordered)
    found = {name: reply.get(name, type(value)()) for name, value in expected.items()}
    assert without_made_up(found) == without_made_up(expected)
    documents = lambda collection: without_made_up(list(collection.find(sort=[("$natural", 1)])))
    assert documents(db.together) == documents(db.apart)


def test_batches_from_many_clients_at_once(db):
    """Each increment counts once, whichever transactions are in one another's way."""
    collection, rounds, clients = db.counters, 20, 4

    def count(number: int) -> None:
        choose = random.Random(number)
        for _ in range(rounds):
            ids = choose.sample(range(12), 8)
            collection.bulk_write([UpdateOne({"_id": one}, {"$inc": {"n": 1}}, upsert=True) for one in ids], ordered=False)

    threads = [threading.Thread(target=count, args=[number]) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(document["n"] for document in collection.find()) == 8 * rounds * clients
    assert collection.count_documents({}) == 12


@pytest.mark.mariadb_only
def test_upserts_of_a_batch_need_few_statements_and_one_transaction(own_server, tmp_path):
    mariadb = MariadbServer(tmp_path / "m").start()

    def executed() -> dict[str, int]:
        status = mariadb.sql("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_commit', 'Com_select', 'Com_update', 'Com_insert', 'Handler_commit')")
        return {name: int(value) for name, value in status}

    def difference(work) -> dict[str, int]:
        before = executed()
        work()
        return {name: count - before[name] for name, count in executed().items()}

    try:
        with own_server("--threads", "1", mariadb=mariadb).client() as client:
            collection = client.d.c
            collection.create_index("key", unique=True)
            new = [UpdateOne({"_id": number}, {"$set": {"key": number}}, upsert=True) for number in range(100)]
            known = [UpdateOne({"key": number}, {"$set": {"text": "x"}}, upsert=True) for number in range(100)]
            collection.bulk_write(new[:2])
            for batch in (new[2:], known):
                taken = difference(lambda: collection.bulk_write(batch, ordered=False))
                assert taken["Com_commit"] <= 2 and taken["Com_select"] <= 8, taken
            assert collection.count_documents({"text": "x"}) == 100
            client.d["from"].insert_many({"_id": number, "key": number, "merged": True} for number in range(3000))
            for mode in ("merge", "replace", "keepExisting", [{"$set": {"piped": "$$new.merged"}}]):
                stage = {"$merge": {"into": "c", "whenMatched": mode}}
                taken = difference(lambda: client.d["from"].aggregate([stage]))
                assert taken["Com_commit"] <= 40, (mode, taken)
            assert collection.count_documents({"merged": True, "piped": True}) == 3000
            client.d.drop_collection("c")
            stage = {"$merge": {"into": "c", "whenMatched": [{"$set": {"piped": "$$new.merged"}}]}}
            taken = difference(lambda: client.d["from"].aggregate([stage]))
            assert taken["Com_commit"] <= 40 and taken["Com_insert"] <= 400, taken
            assert collection.count_documents({"merged": True}) == 3000
    finally:
        mariadb.remove()
