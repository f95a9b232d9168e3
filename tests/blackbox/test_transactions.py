"""Transactions of several statements, on both stores and on MongoDB's replica set of one."""

import random
import threading
import uuid

import pymongo
import pytest
from bson import Binary, Int64
from pymongo.errors import ConnectionFailure, OperationFailure

from support.clock import Clock
from support.selkie import SelkieServer, data_flag
from support.transactions import ABORT, ALL, COMMIT, FIND, Sessions, admin, comparable, increase, insert, of
from support.wire import Wire

OPTIONS = ("--topology", "replica-set")


# The transactions that may be open at the same time.
OPEN_MAX = {"embedded": 1000, "mariadb": 64, "embedded-mariadb": 64}


def mariadb_of(store, request):
    return request.getfixturevalue("mariadb") if store == "mariadb" else None


@pytest.fixture(scope="module")
def selkie(store, request, tmp_path_factory):
    folder, mariadb = tmp_path_factory.mktemp("transactions"), mariadb_of(store, request)
    server = SelkieServer(folder, mariadb, OPTIONS, data_flag(store)).start()
    yield server
    assert server.stop() == 0, server.end_of_log()
    server.remove()


@pytest.fixture
def own_selkie(store, request, tmp_path):
    server = SelkieServer(tmp_path / "selkie", mariadb_of(store, request), OPTIONS, data_flag(store)).start()
    with server.client(directConnection=True) as client:
        client.drop_database("t")
    yield server
    server.remove()


SCRIPTS = {
    "numbers": [
        of("s", 1, FIND), of("s", 1, COMMIT), of("s", 1, ABORT), admin(COMMIT, session="s"),
        admin(COMMIT, session="s", txnNumber=Int64(1)), of("s", 1, COMMIT, True), of("s", 1, FIND, True),
        of("s", 1, FIND, True), of("s", 1, FIND), of("s", 1, ABORT), of("s", 1, ABORT), of("s", 1, FIND),
        of("s", 2, FIND, True), of("s", 2, insert(100)), of("s", 1, FIND), of("s", 1, FIND, True), of("s", 5, FIND),
        of("s", 2, FIND), of("s", 2, COMMIT), of("s", 2, COMMIT), of("s", 2, ABORT), of("s", 2, FIND),
        of("s", 2, FIND, True), (insert(101), {"session": "s", "txnNumber": Int64(2)}),
        (insert(102), {"session": "s", "txnNumber": Int64(1)}), (insert(103), {"session": "s", "txnNumber": Int64(3)}),
        of("s", 3, FIND), of("s", 3, COMMIT), of("s", 4, FIND, True),
        (insert(104), {"session": "s", "txnNumber": Int64(4)}), of("s", 4, FIND),
        (insert(105), {"session": "s", "txnNumber": Int64(5)}), of("s", 4, FIND), of("s", 6, FIND, True),
        of("s", 7, FIND, True), of("s", 6, FIND), of("s", 7, COMMIT), (ALL, {}),
    ],
    "concerns": [
        of("s", 1, insert(100), True, writeConcern={"w": 1}), of("s", 1, FIND),
        of("s", 2, FIND, True, readConcern={"level": "snapshot"}), of("s", 2, FIND, readConcern={"level": "snapshot"}),
        of("s", 2, FIND), of("s", 3, FIND, True, readConcern={"level": "linearizable"}),
        of("s", 4, FIND, True, readConcern={"level": "available"}), of("s", 5, FIND, True, readConcern={"level": "local"}),
        of("s", 6, insert(200), True, readConcern={"level": "majority"}), of("s", 6, COMMIT, writeConcern={"w": "majority"}),
        of("s", 7, FIND, True, autocommit=True),
    ],
    "conflicts": [
        of("a", 1, ALL, True), of("a", 1, increase(1)), of("b", 1, increase(1), True), of("b", 1, FIND),
        of("b", 1, ABORT), of("a", 1, COMMIT), of("a", 2, ALL, True), (increase(2), {}), of("a", 2, increase(2)),
        of("a", 3, ALL, True), (insert(200), {}), of("a", 3, insert(200)), of("a", 4, ALL, True), of("b", 4, ALL, True),
        of("a", 4, insert(201)), of("b", 4, insert(201)), of("a", 4, insert(1)), of("a", 4, FIND),
        ({"createIndexes": "u", "indexes": [{"key": {"k": 1}, "name": "k_1", "unique": True}]}, {}),
        of("a", 5, ALL, True), of("b", 5, ALL, True), of("a", 5, {"insert": "u", "documents": [{"_id": 1, "k": 5}]}),
        of("b", 5, {"insert": "u", "documents": [{"_id": 2, "k": 5}]}), of("a", 5, COMMIT),
        of("a", 6, ALL, True), ({"insert": "u", "documents": [{"_id": 3, "k": 6}]}, {}),
        of("a", 6, {"insert": "u", "documents": [{"_id": 4, "k": 6}]}),
        of("a", 7, {"insert": "c", "ordered": False, "documents": [{"_id": 300}, {"_id": 1}, {"_id": 301}]}, True),
        of("a", 7, FIND),
        # A unique key that the transaction itself sets free.
        of("a", 8, {"delete": "u", "deletes": [{"q": {"k": 5}, "limit": 1}]}, True),
        of("a", 8, {"insert": "u", "documents": [{"_id": 9, "k": 5}]}), of("a", 8, COMMIT),
        ({"find": "u", "sort": {"_id": 1}}, {}),
    ],
    "own writes": [
        ({"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}, {}),
        of("s", 1, {"update": "c", "updates": [{"q": {"x": {"$gte": 5}}, "u": {"$inc": {"x": 100}}, "multi": True}]}, True),
        of("s", 1, {"delete": "c", "deletes": [{"q": {"x": {"$lt": 3}}, "limit": 0}]}),
        of("s", 1, insert(50, 51)), of("s", 1, {"update": "c", "updates": [{"q": {"_id": 60}, "u": {"$set": {"x": 7}}, "upsert": True}]}),
        of("s", 1, ALL), of("s", 1, {"find": "c", "filter": {"x": {"$gt": 3}}, "sort": {"x": -1}}),
        of("s", 1, {"find": "c", "filter": {"x": {"$gte": 7, "$lt": 106}}, "sort": {"x": 1}, "projection": {"_id": 0, "x": 1}}),
        of("s", 1, {"find": "c", "filter": {"_id": {"$in": [1, 5, 50]}}, "sort": {"_id": 1}}),
        of("s", 1, {"distinct": "c", "key": "x", "query": {"x": {"$gt": 4}}}),
        of("s", 1, {"aggregate": "c", "pipeline": [{"$group": {"_id": None, "n": {"$sum": 1}, "x": {"$sum": "$x"}}}], "cursor": {}}),
        of("s", 1, {"aggregate": "c", "pipeline": [{"$match": {"x": {"$gt": 4}}}, {"$count": "n"}], "cursor": {}}),
        of("s", 1, {"aggregate": "c", "pipeline": [
            {"$match": {"_id": {"$gte": 8}}}, {"$sort": {"_id": 1}},
            {"$lookup": {"from": "c", "localField": "x", "foreignField": "x", "as": "same"}}], "cursor": {}}),
        of("s", 1, {"findAndModify": "c", "query": {"_id": 50}, "update": {"$set": {"x": 1}}, "new": True}),
        of("s", 1, {"findAndModify": "c", "query": {}, "sort": {"x": 1}, "remove": True}),
        of("s", 1, {"find": "c", "filter": {"x": {"$lt": 10}}, "sort": {"x": 1}}),
        (ALL, {}), of("s", 1, COMMIT), (ALL, {}),
        ({"find": "c", "filter": {"x": {"$gt": 3}}, "sort": {"x": -1}}, {}),
        of("s", 2, {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, True), of("s", 2, ALL), of("s", 2, ABORT), (ALL, {}),
    ],
    "arrays and unions": [
        ({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"b": 1}, "name": "b_1"}]}, {}),
        ({"insert": "c", "documents": [{"_id": 100 + i, "a": i, "b": -i} for i in range(5)]}, {}),
        of("s", 1, {"insert": "c", "documents": [{"_id": 200, "a": [1, 2, 3], "b": 7}, {"_id": 201, "a": [3, 9], "b": -2}]}, True),
        of("s", 1, {"find": "c", "filter": {"a": {"$gte": 1}}, "sort": {"_id": 1}}),
        of("s", 1, {"find": "c", "filter": {"$or": [{"a": 3}, {"b": -2}]}, "sort": {"_id": 1}}),
        of("s", 1, {"find": "c", "filter": {"$or": [{"a": 3}, {"a": 2}]}, "sort": {"a": 1, "_id": 1}}),
        of("s", 1, {"update": "c", "updates": [{"q": {"a": 9}, "u": {"$set": {"a": 4}}}]}),
        of("s", 1, {"find": "c", "filter": {"a": {"$gt": 3}}, "sort": {"_id": 1}}),
        of("s", 1, COMMIT), ({"find": "c", "filter": {"a": {"$gte": 1}}, "sort": {"_id": 1}}, {}),
    ],
    "commands": [
        step
        for number, (command, database) in enumerate([
            ({"count": "c"}, "t"), ({"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}, "t"),
            ({"aggregate": "c", "pipeline": [{"$merge": "d"}], "cursor": {}}, "t"), ({"drop": "c"}, "t"),
            ({"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z_1"}]}, "t"), ({"listCollections": 1}, "t"),
            ({"ping": 1}, "admin"), ({"hello": 1}, "admin"), ({"dropDatabase": 1}, "t"), (insert(1), "config"),
            (insert(1), "local"), ({"insert": "system.js", "documents": [{"_id": "x", "value": 1}]}, "t"),
            ({"find": "system.js"}, "t"), ({"explain": FIND}, "t"), ({"killCursors": "c", "cursors": [Int64(1)]}, "t"),
            ({"aggregate": "c", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}, "t"),
            ({"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}}, "admin"),
            ({"getMore": Int64(5), "collection": "c"}, "t"), ({"endSessions": []}, "admin"), ({"buildInfo": 1}, "admin"),
            ({"listIndexes": "c"}, "t"), ({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"_id": 7}}}]}, "t"),
            (insert(1), "t"), ({"find": "c", "filter": {"$foo": 1}}, "t"), ({"find": "c", "tailable": True}, "t"),
        ], start=1)
        for step in [
            (command, {"database": database, "session": "s", "number": number, "start": True}), of("s", number, FIND),
            of("s", number, ABORT),
        ]
    ],
    "new collections": [
        of("s", 1, {"create": "n"}, True), of("s", 1, insert(1, 2, collection="n")), of("s", 1, {"find": "n"}),
        of("s", 1, {"createIndexes": "m", "indexes": [{"key": {"x": 1}, "name": "x_1", "unique": True}]}),
        of("s", 1, insert(1, 2, collection="m")), of("s", 1, {"find": "m", "filter": {"x": 2}}), ({"find": "n"}, {}),
        of("s", 1, insert(1, collection="implicit")), of("s", 1, {"delete": "n", "deletes": [{"q": {"_id": 1}, "limit": 1}]}),
        of("s", 1, {"create": "arrays"}), of("s", 1, {"createIndexes": "arrays", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}),
        of("s", 1, {"insert": "arrays", "documents": [{"_id": 1, "x": [1, 2, 3]}, {"_id": 2, "x": [2, 5]}]}),
        of("s", 1, {"find": "arrays", "filter": {"x": {"$gte": 1}}, "sort": {"_id": 1}}),
        of("s", 1, COMMIT), ({"find": "n"}, {}), ({"find": "m", "filter": {"x": 2}}, {}), ({"find": "implicit"}, {}),
        ({"find": "arrays", "filter": {"x": {"$gte": 1}}, "sort": {"_id": 1}}, {}),
        ({"insert": "m", "documents": [{"_id": 3, "x": 2}]}, {}), of("s", 2, insert(1, collection="gone"), True),
        of("s", 2, ABORT), ({"find": "gone"}, {}), of("s", 3, {"create": "c"}, True), of("s", 3, FIND),
    ],
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_replies_are_those_of_mongodb(selkie, store, mongod, name):
    if name == "new collections" and store != "embedded":
        pytest.skip("MariaDB creates tables outside of transactions")
    replies = []
    for server in (mongod, selkie):
        with server.client(directConnection=True) as client:
            client.drop_database("t")
            client.t.c.insert_many([{"_id": i, "x": i} for i in range(10)])
        sessions = Sessions(server)
        replies.append([comparable(sessions.run(command, **options)) for command, options in SCRIPTS[name]])
        sessions.close()
    for (command, options), expected, found in zip(SCRIPTS[name], *replies, strict=True):
        assert found == expected, (command, options)


def test_cursors_belong_to_their_transaction(selkie, mongod):
    def step(server):
        with server.client(directConnection=True) as client:
            client.drop_database("t")
            client.t.c.insert_many([{"_id": i} for i in range(10)])
        sessions = Sessions(server)
        first = sessions.run({"find": "c", "batchSize": 2}, session="a", number=1, start=True)
        more = {"getMore": first["cursor"]["id"], "collection": "c", "batchSize": 1}
        yield sessions.run(more)
        yield sessions.run(more, session="a")
        yield sessions.run(more, session="b", number=1, start=True)
        sessions.run(insert(100), session="other")
        yield sessions.run(more, session="a", number=1)
        yield sessions.run(more | {"batchSize": 50}, session="a", number=1)
        outside = sessions.run({"find": "c", "batchSize": 2}, session="a")
        yield sessions.run(more | {"getMore": outside["cursor"]["id"]}, session="a", number=1)
        yield sessions.run(FIND, session="a", number=1)
        sessions.close()

    expected, found = ([comparable(reply) for reply in step(server)] for server in (mongod, selkie))
    assert found == expected


@pytest.mark.parametrize("server_name", ["selkie", "mongod"])
def test_with_transaction(server_name, store, request):
    with request.getfixturevalue(server_name).client() as client:
        client.drop_database("t")
        accounts = client.t.accounts
        accounts.insert_many([{"_id": i, "balance": 100} for i in range(2)])

        def transfer(session):
            accounts.update_one({"_id": 0}, {"$inc": {"balance": -30}}, session=session)
            accounts.update_one({"_id": 1}, {"$inc": {"balance": 30}}, session=session)
            client.t.log.insert_one({"moved": 30}, session=session)
            return [account["balance"] for account in accounts.find(sort=[("_id", 1)], session=session)]

        with client.start_session() as session:
            assert session.with_transaction(transfer) == [70, 130]
            with pytest.raises(ZeroDivisionError):
                session.with_transaction(lambda session: transfer(session) and 1 // 0)
        assert [account["balance"] for account in accounts.find(sort=[("_id", 1)])] == [70, 130]
        assert client.t.log.count_documents({}) == 1


def test_too_many_transactions(own_selkie, store):
    sessions = Sessions(own_selkie)
    sessions.run(insert(1))
    for session in range(OPEN_MAX[store]):
        assert sessions.run(FIND, session=session, number=1, start=True)["ok"] == 1
    refused = sessions.run(FIND, session="last", number=1, start=True)
    assert (refused["code"], refused["errorLabels"]) == (24, ["TransientTransactionError"])
    assert sessions.run(COMMIT, "admin", session=1, number=1)["ok"] == 1
    assert sessions.run(FIND, session="last", number=2, start=True)["ok"] == 1
    sessions.close()
    assert own_selkie.stop() == 0


def test_writers_outside_wait_for_the_transaction(selkie):
    with selkie.client() as client:
        client.drop_database("t")
        client.t.c.create_index("k", unique=True)
        client.t.c.insert_many([{"_id": i, "x": 0, "k": i} for i in range(5)])
        writes = {
            "update": lambda: client.t.c.update_one({"_id": 1}, {"$inc": {"x": 1}}),
            "update of many": lambda: client.t.c.update_many({}, {"$inc": {"x": 1}}),
            "find and modify": lambda: client.t.c.find_one_and_update({"_id": 1}, {"$inc": {"x": 1}}),
            "insert of the same _id": lambda: client.t.c.insert_one({"_id": 50, "k": 51}),
            "insert of the same key": lambda: client.t.c.insert_one({"_id": 51, "k": 50}),
            "delete": lambda: client.t.c.delete_many({"_id": 1}),
            "delete of all": lambda: client.t.c.delete_many({}),
        }
        for name, write in writes.items():
            for end in ("abort", "commit"):
                client.t.c.delete_many({})
                client.t.c.insert_many([{"_id": i, "x": 0, "k": i} for i in range(5)])
                outcome = []
                with client.start_session() as session:
                    session.start_transaction()
                    client.t.c.update_one({"_id": 1}, {"$inc": {"x": 10}}, session=session)
                    client.t.c.insert_one({"_id": 50, "k": 50}, session=session)
                    thread = threading.Thread(target=lambda write=write, outcome=outcome: outcome.append(tried(write)))
                    thread.start()
                    thread.join(0.15)
                    assert thread.is_alive(), name
                    session.commit_transaction() if end == "commit" else session.abort_transaction()
                thread.join(10)
                assert outcome == ["duplicate" if end == "commit" and "same" in name else "done"], (name, end)
                x = (client.t.c.find_one({"_id": 1}) or {"x": None})["x"]
                own = 10 if end == "commit" else 0
                assert x == (None if "delete" in name else own if "same" in name else own + 1), (name, end)


def test_a_drop_waits_for_the_transaction(selkie):
    with selkie.client() as client:
        changes = (
            client.t.c.drop, lambda: client.drop_database("t"), lambda: client.t.c.rename("d"), lambda: client.t.c.create_index("x"))
        for change in changes:
            client.drop_database("t")
            client.t.c.insert_one({"_id": 1, "x": 0})
            with client.start_session() as session:
                session.start_transaction()
                client.t.c.update_one({"_id": 1}, {"$set": {"x": [1, 2]}}, session=session)
                thread = threading.Thread(target=change)
                thread.start()
                thread.join(0.1)
                assert thread.is_alive()
                session.commit_transaction()
            thread.join(10)
            assert not thread.is_alive()
        assert client.t.c.find_one({"x": 2}, hint="x_1")["_id"] == 1


INDEXES = [[("a", 1)], [("b", -1)], [("a", 1), ("b", 1)], [("a.c", 1)], [("$**", 1)], [("a", "hashed")], [("b", 1), ("_id", -1)]]


def random_value(rng: random.Random, field: str = "a"):
    values = [rng.randrange(6), rng.randrange(6), float(rng.randrange(6)), None, "text", {"c": rng.randrange(4)}, Int64(3)]
    # Two arrays cannot be sorted by.
    arrays = [[rng.randrange(6), rng.randrange(6)], [], [{"c": 1}, {"c": rng.randrange(4)}]]
    return rng.choice(values + arrays if field == "a" else values)


def random_document(rng: random.Random, new_id: int) -> dict:
    return {"_id": new_id} | {name: random_value(rng, name) for name in ("a", "b") if rng.random() < 0.9}


def random_filter(rng: random.Random) -> dict:
    def condition():
        return rng.choice([random_value(rng), {"$gt": rng.randrange(6)}, {"$lte": rng.randrange(6)}, {"$in": [1, 3, None]},
                           {"$gte": 1, "$lt": 4}, {"$exists": True}])

    return rng.choice([
        {}, {"a": condition()}, {"b": condition()}, {"a": condition(), "b": condition()}, {"a.c": {"$gte": 1}},
        {"$or": [{"a": condition()}, {"b": condition()}]}, {"_id": {"$in": rng.sample(range(60), 8)}}, {"_id": {"$gt": 20}},
    ])


def random_statement(rng: random.Random, new_id: int) -> dict:
    sort = rng.choice([{"_id": 1}, {"_id": -1}, {"a": 1, "_id": 1}, {"b": -1, "_id": -1}, {"a": 1, "b": 1, "_id": 1}])
    change = rng.choice([{"$set": {"a": random_value(rng)}}, {"$set": {"b": random_value(rng, "b")}}, {"$unset": {"a": 1}}])
    where = random_filter(rng)
    return rng.choice([
        lambda: {"insert": "c", "documents": [random_document(rng, new_id), random_document(rng, new_id + 1)]},
        lambda: {"update": "c", "updates": [{"q": where, "u": change, "multi": True}]},
        lambda: {"update": "c", "updates": [{"q": {"_id": rng.randrange(70)}, "u": change, "upsert": True}]},
        lambda: {"delete": "c", "deletes": [{"q": {"_id": {"$mod": [7, rng.randrange(7)]}} | where, "limit": 0}]},
        lambda: {"findAndModify": "c", "query": where, "sort": sort, "update": change, "new": True},
        lambda: {"findAndModify": "c", "query": where, "sort": sort, "remove": True},
        lambda: {"find": "c", "filter": where, "sort": sort},
        lambda: {"find": "c", "filter": where, "sort": sort, "limit": 5, "projection": {"a": 1}},
        lambda: {"find": "c", "filter": where, "sort": {"a": 1}, "projection": {"_id": 0, "a": 1}},
        lambda: {"aggregate": "c", "pipeline": [{"$match": where}, {"$count": "n"}], "cursor": {}},
        lambda: {"aggregate": "c", "pipeline": [
            {"$match": where}, {"$sort": sort}, {"$limit": 3},
            {"$lookup": {"from": "c", "localField": "a", "foreignField": "b", "as": "x", "pipeline": [{"$sort": {"_id": 1}}]}}],
            "cursor": {}},
        lambda: {"distinct": "c", "key": "a", "query": where},
    ])()


@pytest.mark.parametrize("seed", range(12))
def test_statements_read_their_own_writes(selkie, seed):
    """As the same statements outside of a transaction do, whatever the indexes."""
    rng = random.Random(seed)
    with selkie.client() as client:
        for _ in range(4):
            for name in ("t", "twin"):
                client.drop_database(name)
            documents = [random_document(rng, i) for i in range(rng.choice([0, 5, 50]))]
            indexes = rng.sample(INDEXES, rng.randrange(4))
            for db in (client.t, client.twin):
                db.create_collection("c")
                for index in indexes:
                    # Arrays cannot be hashed.
                    if all(direction != "hashed" for _, direction in index):
                        db.c.create_index(index)
                if documents:
                    db.c.insert_many(documents)
            with client.start_session() as session:
                session.start_transaction()
                for step in range(25):
                    statement = random_statement(rng, 1000 + 2 * step)
                    found, expected = (
                        comparable(db.command(statement, session=in_session))
                        for db, in_session in ((client.t, session), (client.twin, None)))
                    if "cursor" in expected:
                        found["cursor"]["ns"] = expected["cursor"]["ns"]
                        if "sort" in statement and "_id" not in statement["sort"]:
                            for reply in (found, expected):
                                reply["cursor"]["firstBatch"].sort(key=repr)
                    assert found == expected, (statement, indexes)
                session.commit_transaction()
            assert list(client.t.c.find(sort=[("_id", 1)])) == list(client.twin.c.find(sort=[("_id", 1)]))
            assert client.t.command("validate", "c")["valid"]


def tried(write):
    try:
        write()
        return "done"
    except pymongo.errors.DuplicateKeyError:
        return "duplicate"


def test_a_commit_survives_a_kill(own_selkie):
    sessions = Sessions(own_selkie)
    sessions.run(insert(1, 2))
    sessions.run(increase(1), session="committed", number=3, start=True)
    sessions.run(insert(10, collection="new"), session="committed", number=3)
    assert sessions.run(COMMIT, "admin", session="committed", number=3)["ok"] == 1
    sessions.run(increase(2), session="open", number=1, start=True)
    own_selkie.kill()
    own_selkie.start()
    ids = sessions.ids
    sessions = Sessions(own_selkie)
    sessions.ids = ids
    assert sessions.run(ALL)["cursor"]["firstBatch"] == [{"_id": 1, "x": 2}, {"_id": 2, "x": 2}]
    assert sessions.run({"find": "new"})["cursor"]["firstBatch"] == [{"_id": 10, "x": 10}]
    assert sessions.run(COMMIT, "admin", session="committed", number=3)["ok"] == 1
    assert sessions.run(ABORT, "admin", session="committed", number=3)["code"] == 256
    assert sessions.run(FIND, session="committed", number=2, start=True)["code"] == 225
    lost = sessions.run(COMMIT, "admin", session="open", number=1)
    assert (lost["code"], lost["errorLabels"]) == (251, ["TransientTransactionError"])
    sessions.close()


def test_a_transaction_has_a_life_time(own_selkie):
    sessions = Sessions(own_selkie)
    sessions.run(insert(1))
    sessions.run({"setParameter": 1, "transactionLifetimeLimitSeconds": 1}, "admin")
    sessions.run(increase(1), session="a", number=1, start=True)
    # It waits for the transaction to be aborted.
    assert sessions.run(increase(1))["nModified"] == 1
    assert sessions.run(COMMIT, "admin", session="a", number=1)["code"] == 251
    sessions.run({"setParameter": 1, "transactionLifetimeLimitSeconds": 60}, "admin")
    number = 1
    for kill in ({"killSessions": [{"id": sessions.ids["a"]}]}, {"endSessions": [{"id": sessions.ids["a"]}]},
                 {"killAllSessions": []}):
        number += 1
        sessions.run(increase(1), session="a", number=number, start=True)
        sessions.run(kill, "admin")
        assert sessions.run(COMMIT, "admin", session="a", number=number)["code"] == 251
    assert sessions.run(FIND)["cursor"]["firstBatch"] == [{"_id": 1, "x": 2}]
    counts = sessions.run({"serverStatus": 1}, "admin")["transactions"]
    assert (counts["currentOpen"], counts["totalStarted"], counts["totalAborted"]) == (0, 4, 4)
    sessions.close()


@pytest.mark.parametrize("leap_s", [-7200, 7200])
def test_the_life_time_does_not_depend_on_the_time_of_day(own_selkie, leap_s):
    """A writer outside waits for as long as the transaction lives, also if the clock is set
    meanwhile."""
    own_selkie.kill()
    clock = Clock(own_selkie)
    own_selkie.start()
    sessions = Sessions(own_selkie)
    sessions.run(insert(1))
    sessions.run({"setParameter": 1, "transactionLifetimeLimitSeconds": 2}, "admin")
    sessions.run(increase(1), session="a", number=1, start=True)
    clock.set(leap_s)
    assert sessions.run({"find": "c"}, session="a", number=1)["ok"] == 1
    assert sessions.run(increase(1))["nModified"] == 1
    assert sessions.run(COMMIT, "admin", session="a", number=1)["code"] == 251
    sessions.close()


def test_the_statements_of_a_transaction_use_several_connections(selkie):
    """Whichever worker serves them."""
    with selkie.client() as client:
        client.drop_database("t")
        client.t.c.insert_one({"_id": 1, "x": 0})
    session, wires = Binary(uuid.uuid4().bytes, 4), [Wire(selkie.port) for _ in range(8)]
    fields = {"lsid": {"id": session}, "txnNumber": Int64(1), "autocommit": False}
    for at, wire in enumerate(wires):
        start = {"startTransaction": True} if at == 0 else {}
        assert wire.run(increase(1) | fields | start | {"$db": "t"})["nModified"] == 1
    assert wires[3].run(FIND | fields | {"$db": "t"})["cursor"]["firstBatch"] == [{"_id": 1, "x": 8}]
    assert wires[5].run(FIND | {"$db": "t"})["cursor"]["firstBatch"] == [{"_id": 1, "x": 0}]
    assert wires[6].run(COMMIT | fields | {"$db": "admin"})["ok"] == 1
    assert wires[7].run(FIND | {"$db": "t"})["cursor"]["firstBatch"] == [{"_id": 1, "x": 8}]
    for wire in wires:
        wire.socket.close()


ACCOUNTS, CLIENTS, TRANSFERS, KILLS = 20, 8, 25, 3


def test_transfers_keep_the_sum_while_the_server_is_killed(own_selkie):
    """Clients move money and record each transfer, with kills in between: a snapshot always has the
    same sum, and no transfer is lost or made twice."""
    with own_selkie.client() as client:
        client.t.accounts.insert_many([{"_id": i, "balance": 100} for i in range(ACCOUNTS)])
    done, problems, finished = [], [], threading.Event()

    def work(worker):
        rng = random.Random(worker)
        with own_selkie.client(serverSelectionTimeoutMS=20_000) as client:
            for n in range(TRANSFERS):
                (source, target), name = rng.sample(range(ACCOUNTS), 2), f"{worker}-{n}"
                while not transfer(client, source, target, rng.randrange(1, 20), name):
                    pass
                done.append(name)

    def transfer(client, source, target, amount, name) -> bool:
        def move(session):
            sums = list(client.t.accounts.aggregate([{"$group": {"_id": 0, "sum": {"$sum": "$balance"}}}], session=session))
            if sums != [{"_id": 0, "sum": 100 * ACCOUNTS}]:
                problems.append(sums)
            client.t.accounts.update_one({"_id": source}, {"$inc": {"balance": -amount}}, session=session)
            client.t.accounts.update_one({"_id": target}, {"$inc": {"balance": amount}}, session=session)
            client.t.transfers.insert_one({"_id": name, "source": source, "target": target, "amount": amount}, session=session)

        try:
            with client.start_session() as session:
                session.with_transaction(move)
            return True
        except pymongo.errors.DuplicateKeyError:
            # An earlier attempt was committed, though its reply was lost.
            return True
        except (ConnectionFailure, OperationFailure):
            return False

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for kill in range(KILLS):
        while len(done) < (kill + 1) * CLIENTS * TRANSFERS // (KILLS + 1) and any(thread.is_alive() for thread in threads):
            finished.wait(0.02)
        own_selkie.kill()
        own_selkie.start()
    for thread in threads:
        thread.join(120)
    assert not problems and len(done) == CLIENTS * TRANSFERS
    with own_selkie.client() as client:
        balances = {account["_id"]: account["balance"] for account in client.t.accounts.find()}
        transfers = list(client.t.transfers.find())
    assert sorted(transfer["_id"] for transfer in transfers) == sorted(done)
    expected = dict.fromkeys(range(ACCOUNTS), 100)
    for transfer in transfers:
        expected[transfer["source"]] -= transfer["amount"]
        expected[transfer["target"]] += transfer["amount"]
    assert balances == expected
