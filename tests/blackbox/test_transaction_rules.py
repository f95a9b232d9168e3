"""What a transaction may not do, and how it fails: as on MongoDB's replica set of one."""

import threading
from datetime import datetime

import pytest
from bson import Binary, Int64, Timestamp

from support.selkie import SelkieServer, data_flag
from support.transactions import COMMIT, FIND, Sessions, comparable, insert, of

pytestmark = pytest.mark.selkie_only


@pytest.fixture(scope="module")
def selkie(store, request, tmp_path_factory):
    mariadb = request.getfixturevalue("mariadb") if store == "mariadb" else None
    folder = tmp_path_factory.mktemp("rules")
    server = SelkieServer(folder, mariadb, ("--topology", "replica-set"), data_flag(store)).start()
    yield server
    assert server.stop() == 0, server.end_of_log()
    server.remove()


def aggregate(*stages, collection="c", **fields):
    return {"aggregate": collection, "pipeline": list(stages), "cursor": {}, **fields}


def update(query, change, collection="c", **options):
    return {"update": collection, "updates": [{"q": query, "u": change, **options}]}


def delete(query, collection="c", limit=0):
    return {"delete": collection, "deletes": [{"q": query, "limit": limit}]}


def modify(collection, **fields):
    return {"findAndModify": collection, "query": {"_id": 1}, **fields}


MEASUREMENT = {"_id": 1, "t": datetime(2020, 1, 1), "m": 1}
LATER = Timestamp(4_000_000_000, 1)


def measure(i):
    return {"insert": "ts", "documents": [MEASUREMENT | {"_id": i}]}


# Commands before, and statements of which each is the first of a transaction.
STATEMENTS = {
    "time series": ([{"create": "ts", "timeseries": {"timeField": "t", "metaField": "m"}}, measure(1)], [
        {"find": "ts"}, aggregate({"$group": {"_id": "$m", "n": {"$sum": 1}}}, collection="ts"), {"distinct": "ts", "key": "m"},
        aggregate({"$limit": 1}, {"$lookup": {"from": "ts", "pipeline": [], "as": "all"}}), measure(2),
        update({"m": 1}, {"$set": {"m": 2}}, "ts", multi=True), delete({"m": 1}, "ts"), modify("ts", remove=True),
        {"create": "more", "timeseries": {"timeField": "t"}},
    ]),
    "capped collections": ([{"create": "capped", "capped": True, "size": 4096}, insert(1, collection="capped")], [
        {"find": "capped"}, insert(2, collection="capped"), update({"_id": 1}, {"$inc": {"x": 1}}, "capped"),
        update({"_id": 7}, {"$inc": {"x": 1}}, "capped", upsert=True), delete({}, "capped"),
        modify("capped", remove=True), modify("capped", update={"$inc": {"x": 1}}), {"find": "capped", "tailable": True},
    ]),
    "views": ([{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"x": {"$gt": 7}}}]}], [
        {"find": "v"}, insert(1, collection="v"), update({}, {"$inc": {"x": 1}}, "v"), delete({}, "v"), modify("v", remove=True),
        {"create": "w", "viewOn": "c"}, {"create": "v"},
    ]),
    "documents that an index refuses": ([{"createIndexes": "c", "indexes": [
        {"key": {"h": "hashed"}, "name": "h"}, {"key": {"g": "2dsphere"}, "name": "g"}, {"key": {"a": 1, "b": 1}, "name": "ab"}]}], [
        {"insert": "c", "documents": [{"_id": 100}, {"_id": 101, "h": [1, 2]}]}, {"insert": "c", "documents": [{"_id": 100, "g": "x"}]},
        {"insert": "c", "documents": [{"_id": 100, "a": [1], "b": [1]}]}, update({"_id": 1}, {"$set": {"h": [1]}}),
        update({"_id": 1}, {"$set": {"g": 1}}), modify("c", update={"$set": {"h": [1]}}),
    ]),
    "stages and system collections": ([], [
        aggregate({"$unionWith": "c"}), aggregate({"$facet": {"n": [{"$unionWith": "c"}]}}), aggregate(explain=True),
        {"find": "system.views"}, aggregate(collection="system.views"), {"find": "system.profile"}, {"find": "system.js"},
        aggregate({"$graphLookup": {"from": "c", "startWith": 1, "connectFromField": "x", "connectToField": "_id", "as": "g"}},
                  {"$limit": 1}),
    ]),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_fail_as_on_mongodb(selkie, mongod, name):
    (before, statements), replies = STATEMENTS[name], []
    for server in (mongod, selkie):
        with server.client(directConnection=True) as client:
            client.drop_database("t")
            client.t.c.insert_many([{"_id": i, "x": i} for i in range(10)])
            for command in before:
                client.t.command(command)
        sessions = Sessions(server)
        replies.append([])
        for number, statement in enumerate(statements):
            for command, options in (of("s", number, statement, True), of("s", number, FIND), of("s", number, COMMIT)):
                replies[-1].append((command, comparable(sessions.run(command, **options))))
        sessions.close()
    for expected, found in zip(*replies, strict=True):
        assert found == expected


NUMBERS = [
    of("s", -1, FIND, True), of("s", 0, FIND, True), of("s", 0, COMMIT),
    of("s", 1, FIND, True, readConcern={"afterClusterTime": LATER}), of("s", 1, FIND),
    of("s", 2, FIND, True, readConcern={"level": "snapshot", "afterClusterTime": Timestamp(1, 1)}), of("s", 2, COMMIT),
    (FIND, {"lsid": {"id": Binary(bytes(16), 4), "txnNumber": Int64(1)}}),
    *(of("s", 3 + number, FIND, True, readConcern=concern) for number, concern in enumerate((
        {"level": "snapshot", "atClusterTime": Timestamp(1, 1)}, {"level": "snapshot", "atClusterTime": LATER},
        {"level": "local", "atClusterTime": Timestamp(1, 1)}, {"level": "snapshot", "atClusterTime": Timestamp(0, 0)},
        {"level": "snapshot", "atClusterTime": 5}, {"level": "snapshot", "atClusterTime": Timestamp(1, 1), "afterClusterTime": Timestamp(1, 1)}))),
]


def test_numbers_and_times(selkie, mongod):
    def step(server):
        sessions = Sessions(server)
        for command, options in NUMBERS:
            reply = comparable(sessions.run(command, **options))
            yield reply | {"errmsg": reply.get("errmsg", "").split("current clusterTime")[0]}
        sessions.close()

    for server in (mongod, selkie):
        with server.client(directConnection=True) as client:
            client.drop_database("t")
            client.t.c.insert_one({"_id": 1})
    for asked, expected, found in zip(NUMBERS, step(mongod), step(selkie), strict=True):
        assert found == expected, asked


@pytest.mark.parametrize("in_transaction", [True, False])
@pytest.mark.parametrize("kill", ["killSessions", "killAllSessions"])
def test_killing_a_session_ends_its_operations(selkie, kill, in_transaction):
    with selkie.client() as client:
        client.drop_database("t")
        client.t.c.insert_many([{"_id": i} for i in range(20_000)])
        first, second = Sessions(selkie), Sessions(selkie)
        number = {"number": 1, "start": True} if in_transaction else {}
        replies = []
        first.run(FIND, session="s")
        # Executed for each document, as it depends on it.
        none = [{"$match": {"$expr": {"$lt": ["$_id", {"$subtract": ["$$id", 10**9]}]}}}]
        work = aggregate({"$lookup": {"from": "c", "let": {"id": "$_id"}, "pipeline": none, "as": "x"}},
                         {"$match": {"x.never": 1}})
        thread = threading.Thread(target=lambda: replies.append(first.run(work, session="s", **number)))
        thread.start()
        while not [operation for operation in client.admin.aggregate([{"$currentOp": {}}])
                   if operation.get("command", {}).get("aggregate") == "c"]:
            assert thread.is_alive()
        sessions = [] if kill == "killAllSessions" else [{"id": first.ids["s"]}]
        assert second.run({kill: sessions}, "admin")["ok"] == 1
        thread.join(8)
        assert [reply["code"] for reply in replies] == [11601]
        first.close()
        second.close()
