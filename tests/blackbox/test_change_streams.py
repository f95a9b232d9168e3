"""Change streams of the embedded store, compared with those of MongoDB as a replica set."""

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import bson
import pymongo
import pytest
from bson import Binary, Int64, Timestamp
from pymongo.errors import OperationFailure

from support.node import run as node
from support.selkie import SelkieServer

pytestmark = pytest.mark.selkie_only

REPLICA_SET = ("--topology", "replica-set")
# Random updates of each seed.
UPDATES = int(os.environ.get("SELKIE_STREAM_UPDATES", "250"))


@pytest.fixture(scope="module")
def selkie(tmp_path_factory):
    server = SelkieServer(tmp_path_factory.mktemp("streams") / "selkie", options=REPLICA_SET).start()
    yield server
    server.remove()


@pytest.fixture
def fresh(tmp_path):
    """A function that starts a server for one test."""
    started = []

    def start(*options):
        started.append(SelkieServer(tmp_path / "fresh", options=options).start())
        return started[-1]

    yield start
    for server in started:
        server.remove()


@pytest.fixture
def servers(selkie, mongod):
    """A client of each: Selkie's, and MongoDB's."""
    with selkie.client(directConnection=True) as ours, mongod.client(directConnection=True) as theirs:
        yield ours, theirs


@pytest.fixture
def db(selkie, database_name):
    with selkie.client(directConnection=True) as client:
        yield client[database_name]


def opened(db, target=1, stages=(), cursor=None, session=None, **options):
    command = {"aggregate": target, "pipeline": [{"$changeStream": options}, *stages], "cursor": cursor or {}}
    return db.command(command, session=session)["cursor"]


def more(db, cursor, wait_ms=1, session=None):
    collection = cursor["ns"].split(".", 1)[1]
    command = {"getMore": Int64(cursor["id"]), "collection": collection, "maxTimeMS": wait_ms}
    return db.command(command, session=session)["cursor"]


def rest(db, cursor):
    """All events until none is left or the stream has ended."""
    events, batch = list(cursor["firstBatch"]), cursor
    while batch["id"]:
        batch = more(db, batch)
        events += batch["nextBatch"]
        if not batch["nextBatch"]:
            db.command({"killCursors": batch["ns"].split(".", 1)[1], "cursors": [batch["id"]]})
            break
    return events


def masked(value, database):
    """Masks tokens, times and UUIDs, which differ between two servers."""
    match value:
        case dict():
            return [(key, masked(item, database)) for key, item in value.items() if key != "_data"]
        case list():
            return [masked(item, database) for item in value]
        case Timestamp() | Binary():
            return type(value).__name__
        case str():
            return value.replace(database, "D")
        case _ if type(value).__name__ == "datetime":
            return "datetime"
        case _:
            return value


def failure(action):
    with pytest.raises(OperationFailure) as error:
        action()
    return error.value


def changes(db):
    """Changes of every kind."""
    things = db.things
    things.insert_one({"_id": 1, "a": {"b": 1, "list": [1, 2, {"x": 1}]}, "list": [1, 2, 3, 4, 5], "long": "x" * 300})
    things.update_one({"_id": 1}, {"$set": {"a.b": 2, "z": 1}, "$unset": {"long": 1}})
    things.update_one({"_id": 1}, [{"$set": {"list": [1, 2, 3]}}])
    things.update_one({"_id": 1}, {"$set": {"a.list.2.x": 2, "new.field": 1}})
    things.update_one({"_id": 1}, {"$push": {"list": 6}})
    things.update_one({"_id": 1}, {"$push": {"list": {"$each": [7], "$position": 0}}})
    things.update_one({"_id": 1}, {"$set": {"list.9": 9}})
    things.update_one({"_id": 1}, {"$rename": {"z": "y"}})
    things.replace_one({"_id": 1}, {"k": 1})
    things.insert_many([{"_id": number} for number in range(2, 5)])
    things.update_many({"_id": {"$gt": 2}}, {"$inc": {"n": 1}})
    things.delete_one({"_id": 2})
    db.other.find_one_and_update({"_id": "u"}, {"$set": {"v": 1}}, upsert=True)
    db.create_collection("capped", capped=True, size=4096)
    things.create_index("x")
    things.create_index([("x", 1), ("y", -1)], name="xy")
    db.fresh.create_index("f")
    things.drop_index("x_1")
    db.command({"collMod": "things", "changeStreamPreAndPostImages": {"enabled": True}})
    db.command({"collMod": "things", "index": {"name": "xy", "hidden": True}})
    things.update_one({"_id": 3}, {"$set": {"q": 1}})
    things.replace_one({"_id": 3}, {"r": 1})
    things.delete_one({"_id": 3})
    things.rename("renamed")
    db.renamed.rename("fresh", dropTarget=True)
    db.create_collection("view", viewOn="fresh", pipeline=[])
    db.view.drop()
    db.fresh.drop()
    db.capped.drop()
    db.client.drop_database(db.name)


@pytest.mark.parametrize("scope", ["things", "fresh", 1, "cluster"])
@pytest.mark.parametrize("options", [
    {}, {"showExpandedEvents": True, "fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"},
    {"fullDocument": "updateLookup"},
], ids=["plain", "expanded", "lookup"])
def test_events_agree(servers, database_name, scope, options):
    found = []
    for client in servers:
        db, of = client[database_name], {}
        target = (db, scope)
        if scope == "cluster":
            target, of = (client.admin, 1), {"allChangesForCluster": True}
        token = opened(*target, **of)["postBatchResumeToken"]
        changes(db)
        events = rest(target[0], opened(*target, **of, **options, resumeAfter=token))
        found.append(masked([event for event in events if event.get("ns", {}).get("db", database_name) == database_name], database_name))
    ours, theirs = found
    for our, their in zip(ours, theirs):
        assert our == their
    assert len(ours) == len(theirs)


VALUES = [1, 2, 2.5, "x", "text" * 20, None, True, Int64(7)]


def random_value(chance, depth=3):
    kind = chance.random()
    if depth and kind < 0.25:
        return {name: random_value(chance, depth - 1) for name in chance.sample("abcd", chance.randint(0, 4))}
    if depth and kind < 0.5:
        return [random_value(chance, depth - 1) for _ in range(chance.randint(0, 5))]
    return chance.choice(VALUES)


def random_document(chance):
    return {name: random_value(chance) for name in chance.sample("abcdefg", chance.randint(0, 7))}


def mutated(chance, value):
    """A similar value, so that a difference is often smaller."""
    if chance.random() < 0.15:
        return random_value(chance, 2)
    match value:
        case dict():
            fields = {name: mutated(chance, item) for name, item in value.items() if chance.random() > 0.1}
            return fields | ({chance.choice("abcdefg"): random_value(chance, 1)} if chance.random() < 0.3 else {})
        case list():
            kept = [mutated(chance, item) if chance.random() < 0.3 else item for item in value]
            return kept[: chance.randint(0, len(kept))] if chance.random() < 0.2 else kept + [random_value(chance, 1)] * chance.randint(0, 1)
        case _:
            return value


def random_update(chance, document):
    path = ".".join(chance.choice(["a", "b", "c", "d", "0", "1", "4"]) for _ in range(chance.randint(1, 3)))
    path = chance.choice("abcdefg") + ("." + path if chance.random() < 0.5 else "")
    value = random_value(chance, 2)
    similar = {name: mutated(chance, item) for name, item in document.items()}
    return chance.choice([
        [{"$replaceWith": {"$literal": {**similar, "_id": 1}}}],
        {"$set": {path: value}}, {"$set": {path: value, "z": chance.random()}}, {"$unset": {path: 1}},
        {"$push": {path: value}}, {"$push": {path: {"$each": [value, 1], "$position": chance.randint(-2, 3)}}},
        {"$push": {path: {"$each": [value], "$slice": chance.choice([-3, 3, 50])}}}, {"$pop": {path: 1}},
        {"$addToSet": {path: value}}, {"$pull": {path: 1}}, {"$inc": {path: 1}}, {"$rename": {path: "renamed"}},
        {"$set": {path + ".$[]": value}}, {"$set": {path + ".$[].q": 1}}, {"$mul": {path: 2}}, {"$min": {path: 1}},
    ])


@pytest.mark.timeout(300 + UPDATES // 10)
@pytest.mark.parametrize("seed", range(3))
def test_random_updates_agree(servers, database_name, seed):
    """Entries of the log describe random updates as MongoDB's do, byte for byte."""
    chance = random.Random(seed)
    ours, theirs = (client[database_name].c for client in servers)
    for collection in (ours, theirs):
        collection.database.create_collection("c")
    tokens = [opened(collection.database, "c")["postBatchResumeToken"] for collection in (ours, theirs)]
    for number in range(UPDATES):
        document = {"_id": 1, **random_document(chance)}
        update = random_update(chance, document)
        outcomes = []
        for collection in (ours, theirs):
            collection.replace_one({"_id": 1}, document, upsert=True)
            try:
                outcomes.append(collection.update_one({"_id": 1}, update).modified_count)
            except OperationFailure as error:
                outcomes.append(error.code)
        assert outcomes[0] == outcomes[1], (document, update)
    entries = []
    for client in servers:
        log = client.local["oplog.rs"].find({"ns": f"{database_name}.c", "op": {"$in": ["i", "u"]}})
        entries.append([(entry["op"], entry["o"], entry.get("o2")) for entry in log])
    for our, their in zip(*entries):
        assert bson.encode(our[1]) == bson.encode(their[1]), (our, their)
        assert (our[0], our[2]) == (their[0], their[2])
    assert len(entries[0]) == len(entries[1]) > UPDATES
    for client, token in zip(servers, tokens):
        stream = opened(client[database_name], "c", resumeAfter=token)
        entries.append(masked(rest(client[database_name], stream), database_name))
    assert entries[2] == entries[3]


STAGES = [
    {"$group": {"_id": 1}}, {"$sort": {"a": 1}}, {"$limit": 1}, {"$skip": 1}, {"$unwind": "$a"}, {"$out": "zz"},
    {"$lookup": {"from": "x", "localField": "a", "foreignField": "b", "as": "c"}}, {"$facet": {"a": []}}, {"$count": "x"},
    {"$sample": {"size": 1}}, {"$merge": "x"}, {"$unionWith": "x"}, {"$indexStats": {}}, {"$changeStream": {}},
    {"$sortByCount": "$a"}, {"$project": {"_id": 0}}, {"$addFields": {"_id": 1}}, {"$replaceWith": {"a": "$_id"}},
    {"$match": {"operationType": "insert"}}, {"$redact": "$$KEEP"}, {"$unset": "fullDocument"}, {"$set": {"x": 1}},
    {"$project": {"fullDocument": 0}}, {"$match": {"$expr": {"$gt": ["$fullDocument._id", 1]}}}, {"$match": 1},
    {"$match": {"$text": {"$search": "a"}}}, {"$documents": [{"a": 1}]}, {"$fill": {"output": {"x": {"value": 1}}}},
    {"$fill": {"sortBy": {"a": 1}, "output": {"x": {"method": "locf"}, "y": {"value": 1}}}},
]

OPTIONS = [
    {"fullDocument": "required"}, {"fullDocument": "required", "fullDocumentBeforeChange": "required"}, {"fullDocumentBeforeChange": "required"}, {"fullDocument": "x"}, {"nope": 1},
    {"resumeAfter": {"_data": "zz"}}, {"resumeAfter": {"x": 1}}, {"resumeAfter": {}}, {"startAfter": {"_data": 1}},
    {"startAtOperationTime": 1}, {"allChangesForCluster": True}, {"startAtOperationTime": Timestamp(2**32 - 9, 1)},
    {"resumeAfter": {"_data": "82FF0AB23D000000022B0229296E04"}},
]


def test_a_stream_starts_at_the_time_of_the_last_write(servers, database_name):
    for client in servers:
        db = client[database_name]
        with client.start_session() as session:
            db.c.insert_one({"_id": 1}, session=session)
            for _ in range(20):  # They change nothing, so they are not in the log.
                db.c.delete_one({"_id": "none"}, session=session)
            stream = db.c.watch(start_at_operation_time=session.operation_time, max_await_time_ms=2000)
            with stream:
                db.c.insert_one({"_id": 2})
                found = [next(stream)["documentKey"]["_id"] for _ in range(2)]
        assert found == [1, 2]


def test_errors_agree(servers, database_name):
    found = []
    for client in servers:
        db = client[database_name]
        db.command({"create": "v", "viewOn": "c", "pipeline": []})
        db.command({"create": "t", "timeseries": {"timeField": "t"}})
        start = opened(db, "c")["postBatchResumeToken"]
        db.c.insert_many([{"_id": 1}, {"_id": 2}])
        db.c.update_one({"_id": 1}, {"$set": {"a": 1}})
        event = opened(db, "c", resumeAfter=start)["firstBatch"][0]["_id"]
        client.admin.command("ping")
        answers = []

        def ask(*arguments, **options):
            try:
                cursor = opened(*arguments, **options)
                answers.append(masked({**cursor, "id": bool(cursor["id"])}, database_name))
            except OperationFailure as error:
                labels = error.details.get("errorLabels")
                # Tokens and times differ.
                message = error.details["errmsg"].split("_data")[0].split("clusterTime")[0].replace(database_name, "D")
                answers.append((error.code, message, labels))

        for stage in STAGES:
            ask(db, "c", [stage], resumeAfter=start)
        for options in OPTIONS:
            base = {} if {"resumeAfter", "startAfter", "startAtOperationTime"} & options.keys() else {"resumeAfter": start}
            ask(db, "c", **base, **options)
        ask(db, "c", resumeAfter=event)
        ask(db, "c", startAfter=event)
        ask(db, "c", resumeAfter=event, startAfter=event)
        ask(db, "c", startAfter=event, startAtOperationTime=Timestamp(1, 1))
        ask(db, "other", resumeAfter=start)
        for name in ("v", "t", "system.views"):
            ask(db, name)
        for name in ("admin", "local", "config"):
            ask(client[name], 1)
            ask(client[name], "c")
        ask(client.admin, 1, allChangesForCluster=True)
        ask(db, "c", cursor={"batchSize": 0}, resumeAfter=start)
        ask(db, "c", cursor={"batchSize": 1}, resumeAfter=start)
        for level in ("local", "available", "linearizable", "majority"):
            command = {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}, "readConcern": {"level": level}}
            try:
                db.command(command)
                answers.append(level)
            except OperationFailure as error:
                answers.append((error.code, error.details["errmsg"]))
        found.append(answers)
    for number, (our, their) in enumerate(zip(*found)):
        assert our == their, number


def test_a_stream_ends_with_its_collection(servers, database_name):
    found = []
    for client in servers:
        db = client[database_name]
        db.c.insert_one({"_id": 1})
        stream = opened(db, "c")
        db.c.drop()
        batch = more(db, stream)
        error = failure(lambda: more(db, {**batch, "id": stream["id"]}))
        assert (batch["id"], batch["invalidated"], error.code) == (0, True, 43)
        invalidate = batch["nextBatch"][-1]["_id"]
        refused = failure(lambda: opened(db, "c", resumeAfter=invalidate))
        db.c.insert_one({"_id": 2})
        behind = rest(db, opened(db, "c", startAfter=invalidate))
        found.append([masked([*batch["nextBatch"], *behind], database_name), refused.code, refused.details["errmsg"]])
    assert found[0] == found[1]


def test_a_waiting_stream_is_woken(db):
    stream = opened(db, "c")
    arrived = []
    waiting = threading.Thread(target=lambda: arrived.extend(more(db, stream, wait_ms=60_000)["nextBatch"]))
    waiting.start()
    db.other.insert_one({"_id": 1})
    db.c.insert_one({"_id": 2})
    waiting.join(50)
    assert [event["documentKey"] for event in arrived] == [{"_id": 2}]


def test_killing_a_cursor_ends_a_wait(db):
    stream = opened(db, "c")
    errors = []
    waiting = threading.Thread(target=lambda: errors.append(failure(lambda: more(db, stream, wait_ms=60_000))))
    waiting.start()
    db.command({"killCursors": "c", "cursors": [stream["id"]]})
    waiting.join(50)
    assert errors[0].code in (43, 237)


def test_watch_sees_every_change_over_a_crash(fresh, database_name):
    """pymongo's stream resumes by itself; none is lost or repeated."""
    server = fresh(*REPLICA_SET)
    with server.client(directConnection=True) as client:
        with client[database_name].c.watch(max_await_time_ms=100) as stream:
            for round in range(3):
                client[database_name].c.insert_many([{"_id": round * 100 + number} for number in range(50)])
                seen = [next(stream)["documentKey"]["_id"] for _ in range(25)]
                assert seen == [round * 100 + number for number in range(25)]
                server.kill()
                server.start()
                assert [next(stream)["documentKey"]["_id"] for _ in range(25)] == [round * 100 + number for number in range(25, 50)]


def test_lost_history_is_reported(fresh, tmp_path, database_name):
    config = tmp_path / "selkie.toml"
    config.write_text("[store]\noplog = true\noplog-mb = 1\n")
    with fresh("--config", str(config)).client() as client:
        db = client[database_name]
        stream = opened(db, "c")
        db.c.insert_many([{"text": "x" * 10_000} for _ in range(150)])
        # The last batch makes the log delete the first entries.
        for _ in range(20):
            db.c.insert_many([{"text": "x" * 10_000} for _ in range(10)])
        lost = failure(lambda: opened(db, "c", resumeAfter=stream["postBatchResumeToken"]))
        assert (lost.code, lost.details["errorLabels"]) == (286, ["NonResumableChangeStreamError"])
        assert client.local.command("collStats", "oplog.rs")["size"] < 3 << 20


def test_many_streams_share_the_feed(db):
    streams = [opened(db, f"c{number}") for number in range(40)]
    for number in range(40):
        db[f"c{number}"].insert_one({"_id": number})
    for number, stream in enumerate(streams):
        assert [event["documentKey"]["_id"] for event in more(db, stream)["nextBatch"]] == [number]


@pytest.mark.parametrize("matches", [
    lambda number: {"documentKey._id": number},
    lambda number: {"fullDocument.tags": f"t{number}", "operationType": {"$in": ["insert", "update"]}},
    lambda number: {"fullDocument.parts.n": {"$in": [float(number), -1]}},
    lambda number: {"fullDocument.name": {"$regex": f"^N{number}$"}},
])
def test_waiting_streams_get_the_events_with_their_value(db, matches):
    """Streams that wait are found by a value that they need, in each type and in arrays."""
    db.create_collection("c")
    sessions = [db.client.start_session() for _ in range(30)]
    streams = [
        opened(db, "c", [{"$match": matches(number)}], session=session) for number, session in enumerate(sessions)
    ]
    with ThreadPoolExecutor(30) as pool:
        waiting = [pool.submit(more, db, stream, 30_000, session) for stream, session in zip(streams, sessions)]
        for number in range(30):
            tags, parts = ["all", f"t{number}"], [{"n": 1000}, {"n": number}]
            db.c.insert_one({"_id": number, "tags": tags, "parts": parts, "name": f"N{number}"})
        for number, batch in enumerate(waiting):
            assert [event["documentKey"]["_id"] for event in batch.result()["nextBatch"]] == [number]


def test_waiting_streams_compare_by_their_collation(db):
    db.create_collection("c")
    stage = {"$changeStream": {}}
    pipeline = [stage, {"$match": {"fullDocument.name": "BOB"}}]
    options = {"cursor": {}, "collation": {"locale": "en", "strength": 2}}
    session = db.client.start_session()
    stream = db.command("aggregate", "c", pipeline=pipeline, session=session, **options)["cursor"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(more, db, stream, 30_000, session)
        for name in ("al", "Bob"):
            db.c.insert_one({"name": name})
        assert [event["fullDocument"]["name"] for event in waiting.result()["nextBatch"]] == ["Bob"]


def test_without_a_log_there_are_no_streams(client, database_name):
    error = failure(lambda: opened(client[database_name], "c"))
    assert error.code == 40573


def test_node(selkie, database_name, tmp_path):
    """The driver's `watch`, and the queries with which Meteor tails the oplog."""
    assert node(["node", "streams.mjs", selkie.uri, database_name], tmp_path).count("ok ") == 2
