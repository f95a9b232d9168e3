"""Change streams on MariaDB, which come from its binary log."""

import threading

import pymongo
import pytest
from bson import Timestamp

from support.mariadb import LOG, MariadbServer
from support.selkie import SelkieServer
from test_change_streams import changes, failure, masked, more, opened, rest

pytestmark = pytest.mark.selkie_only

REPLICA_SET = ("--topology", "replica-set")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = MariadbServer(tmp_path_factory.mktemp("log"), LOG).start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def selkie(server, tmp_path_factory):
    gateway = SelkieServer(tmp_path_factory.mktemp("streams") / "selkie", server, REPLICA_SET).start()
    yield gateway
    gateway.remove()


@pytest.fixture
def db(selkie, database_name):
    with selkie.client(directConnection=True) as client:
        yield client[database_name]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A server that tests end, or whose log they delete."""
    server = MariadbServer(tmp_path_factory.mktemp("scratch"), LOG).start()
    yield server
    server.remove()


@pytest.fixture
def gateway(tmp_path):
    """A function that starts a gateway for one test."""
    started = []

    def start(mariadb, *options):
        folder = tmp_path / f"selkie{len(started)}"
        started.append(SelkieServer(folder, mariadb, (*REPLICA_SET, *options)).start())
        return started[-1]

    yield start
    for server in started:
        server.remove()


def drained(db, cursor, count):
    """The next events: the log is read soon, not at once."""
    events, batch = list(cursor["firstBatch"]), cursor
    while len(events) < count and batch["id"]:
        batch = more(db, batch, wait_ms=20_000)
        events += batch["nextBatch"]
    return events


def ids(events):
    return [event["documentKey"]["_id"] for event in events]


def test_changes_of_documents_and_collections(db):
    token = opened(db)["postBatchResumeToken"]
    db.c.insert_one({"_id": 1, "a": 1, "text": "x" * 100})
    db.c.update_one({"_id": 1}, {"$set": {"a": 2}})
    db.c.replace_one({"_id": 1}, {"b": 1})
    db.c.delete_one({"_id": 1})
    db.c.rename("e")
    db.e.drop()
    events = rest(db, opened(db, resumeAfter=token))
    kinds = [event["operationType"] for event in events]
    assert kinds == ["insert", "update", "replace", "delete", "rename", "drop"]
    assert events[1]["updateDescription"]["updatedFields"] == {"a": 2}
    assert events[2]["fullDocument"] == {"_id": 1, "b": 1}
    assert events[4]["to"] == {"db": db.name, "coll": "e"}
    # It can be resumed behind each of them.
    for number, event in enumerate(events):
        assert rest(db, opened(db, startAfter=event["_id"])) == events[number + 1:]


def test_changes_by_sql(db, server):
    db.c.insert_one({"_id": 1, "a": 1})
    stream = opened(db, "c")
    with server.connect(database=db.name) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO c (doc) VALUES ('{\"_id\": 2, \"a\": 1}')")
        cursor.execute("UPDATE c SET doc = JSON_SET(doc, '$.long', REPEAT('x', 100))")
        cursor.execute("BEGIN")
        cursor.execute("UPDATE c SET doc = JSON_SET(doc, '$.a', 5) WHERE id = 2")
        cursor.execute("ROLLBACK")
        cursor.execute("UPDATE c SET doc = JSON_SET(doc, '$._id', 7) WHERE id = 2")
        cursor.execute("DELETE FROM c WHERE id = 1")
        cursor.execute("TRUNCATE TABLE c")
    events = drained(db, stream, 8)
    assert [event["operationType"] for event in events] == [
        "insert", "replace", "replace", "delete", "insert", "delete", "drop", "invalidate"]
    assert ids(events[:6]) == [2, 1, 2, 2, 7, 1]
    assert events[4]["fullDocument"]["long"] == "x" * 100


def updates(db):
    """Updates and replacements of each kind, of short and of long documents."""
    db.c.insert_many([{"_id": number, "n": 1} for number in range(4)] + [{"_id": "long", "n": 1, "text": "x" * 500, "list": [1]}])
    for query in ({"_id": 1}, {"_id": "long"}):
        db.c.update_one(query, {"$set": {"n": 2}})
        db.c.update_one(query, {"$inc": {"n": 1}, "$unset": {"none": 1}})
        db.c.update_one(query, {"$push": {"list": 2}})
        db.c.find_one_and_update(query, {"$set": {"x": None}})
        db.c.replace_one(query, {**db.c.find_one(query), "n": 4})
        db.c.find_one_and_replace(query, {**db.c.find_one(query), "n": 5})
        db.c.update_one(query, [{"$set": {"n": 6}}])
        db.c.bulk_write([
            pymongo.UpdateOne({"_id": 2}, {"$set": {"n": 7}}), pymongo.ReplaceOne(query, {**db.c.find_one(query), "n": 7}),
            pymongo.UpdateOne({"_id": 3}, [{"$set": {"n": 7}}]),
        ])
        db.c.update_one(query, {"$unset": {"x": 1}, "$rename": {"n": "m"}})
        db.c.update_one(query, {"$set": {"n": 1}})
    db.c.update_many({}, {"$inc": {"n": 1}})
    db.c.update_many({}, [{"$set": {"many": 1}}])
    with db.client.start_session() as session, session.start_transaction():
        db.c.update_one({"_id": 0}, {"$set": {"n": 0}}, session=session)
        db.c.replace_one({"_id": "long"}, {**db.c.find_one({"_id": "long"}), "n": 0}, session=session)


def test_updates_and_replacements_are_told_apart(db, mongod, database_name):
    with mongod.client(directConnection=True) as client:
        found = []
        for db in (db, client[database_name]):
            token = opened(db)["postBatchResumeToken"]
            updates(db)
            found.append(masked(rest(db, opened(db, resumeAfter=token)), database_name))
    ours, theirs = found
    for our, their in zip(ours, theirs):
        assert our == their
    assert len(ours) == len(theirs) > 30


def test_events_of_a_transaction_in_sql_have_one_time(db, server):
    db.c.insert_one({"_id": 0})
    token = opened(db)["postBatchResumeToken"]
    with server.connect(database=db.name) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in (1, 2, 3):
            cursor.execute(f"INSERT INTO c (doc) VALUES ('{{\"_id\": {number}}}')")
        cursor.execute("COMMIT")
    db.c.insert_one({"_id": 4})
    events = rest(db, opened(db, resumeAfter=token))
    assert ids(events) == [1, 2, 3, 4]
    times = [event["clusterTime"] for event in events]
    assert times[0] == times[2] < times[3]
    assert all("lsid" not in event for event in events)
    for number, event in enumerate(events):
        assert rest(db, opened(db, startAfter=event["_id"])) == events[number + 1:]


def test_a_waiting_stream_is_woken(db):
    stream = opened(db, "c")
    arrived = []
    waiting = threading.Thread(target=lambda: arrived.extend(more(db, stream, wait_ms=60_000)["nextBatch"]))
    waiting.start()
    db.other.insert_one({"_id": 1})
    db.c.insert_one({"_id": 2})
    waiting.join(50)
    assert ids(arrived) == [2]


def test_a_stream_starts_at_the_time_of_the_last_write(db):
    opened(db, "c")
    with db.client.start_session() as session:
        db.c.insert_one({"_id": 1}, session=session)
        stream = opened(db, "c", startAtOperationTime=session.operation_time)
        db.c.insert_one({"_id": 2})
        assert ids(drained(db, stream, 2))[-1] == 2
    # A time that no change has reached is as good as now.
    stream = opened(db, "c", startAtOperationTime=Timestamp(2**32 - 9, 1))
    db.c.insert_one({"_id": 3})
    assert ids(drained(db, stream, 1)) == [3]


def test_all_gateways_give_the_same_events(db, server, gateway):
    everything = (db.client.admin, 1)
    token = opened(*everything, allChangesForCluster=True)["postBatchResumeToken"]
    changes(db)
    # Entries before the last file are not read when a gateway starts.
    server.sql("FLUSH BINARY LOGS")
    db.c.insert_one({"_id": 1})
    events = rest(db.client.admin, opened(*everything, allChangesForCluster=True, resumeAfter=token))
    assert len(events) > 15
    with gateway(server).client(directConnection=True) as client:
        seen = rest(client.admin, opened(client.admin, allChangesForCluster=True, resumeAfter=token))
        assert [event["_id"]["_data"][:16] for event in seen] == [event["_id"]["_data"][:16] for event in events]
        assert [event["operationType"] for event in seen] == [event["operationType"] for event in events]
        # It can be resumed behind each of them.
        for number, event in enumerate(events):
            stream = opened(client.admin, allChangesForCluster=True, startAfter=event["_id"])
            assert rest(client.admin, stream) == seen[number + 1:]


def test_purged_history_is_reported(scratch, gateway):
    with gateway(scratch).client(directConnection=True) as client:
        stream = opened(client["d"], "c")
        client["d"].c.insert_one({"_id": 1})
        event = drained(client["d"], stream, 1)[0]
        scratch.sql("FLUSH BINARY LOGS")
        # A file that is being read is not purged.
        while len(files := scratch.sql("SHOW BINARY LOGS")) > 1:
            scratch.sql(f"PURGE BINARY LOGS TO '{files[-1][0]}'")
    with gateway(scratch).client(directConnection=True) as client:
        lost = failure(lambda: opened(client["d"], "c", resumeAfter=event["_id"]))
        assert (lost.code, lost.details["errorLabels"]) == (286, ["NonResumableChangeStreamError"])


def test_another_log_is_noticed(scratch, gateway):
    with gateway(scratch).client(directConnection=True) as client:
        client["d"].reset.insert_one({"_id": 1})
        stream = opened(client["d"], "reset")
        scratch.stop()
        for file in scratch.data.glob("*-bin.*"):
            file.unlink()
        scratch.start()
        scratch.sql("INSERT INTO d.reset (doc) VALUES ('{\"_id\": 2}')")
        assert failure(lambda: drained(client["d"], stream, 1)).code == 286
        stream = opened(client["d"], "reset")
        client["d"].reset.insert_one({"_id": 3})
        assert ids(drained(client["d"], stream, 1)) == [3]


@pytest.mark.parametrize("killed", ["gateway", "mariadb"])
def test_watch_sees_every_change_over_a_crash(scratch, gateway, database_name, killed):
    """pymongo's stream resumes by itself; none is lost or repeated."""
    selkie = gateway(scratch)
    victim = scratch if killed == "mariadb" else selkie
    with selkie.client(directConnection=True) as client:
        collection = client[database_name].c
        with collection.watch(max_await_time_ms=100) as stream:
            for round in range(3):
                numbers = range(round * 100, round * 100 + 50)
                collection.insert_many([{"_id": number} for number in numbers])
                assert ids(next(stream) for _ in range(25)) == [*numbers][:25]
                victim.kill()
                victim.start()
                assert ids(next(stream) for _ in range(25)) == [*numbers][25:]


def test_a_large_transaction_is_read_from_the_log(db, server):
    db.c.insert_one({"_id": -1})
    stream = opened(db, "c")
    with server.connect(database=db.name) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO c (doc) SELECT JSON_OBJECT('_id', seq, 't', REPEAT('x', 10000)) FROM seq_0_to_999")
    assert ids(drained(db, stream, 1000)) == [*range(1000)]


def test_the_oplog_is_read_from_files(scratch, gateway, database_name):
    """In both directions, beyond what a gateway has in memory, in batches that end anywhere."""
    with gateway(scratch).client(directConnection=True) as client:
        db = client[database_name]
        for round in range(3):
            db.c.insert_many([{"_id": f"{round} {number}"} for number in range(300)])
            with client.start_session() as session, session.start_transaction():
                db.c.insert_many([{"_id": f"{round} t{number}"} for number in range(3)], session=session)
            db.c.insert_many([{"_id": f"{round} l{number}", "x": "x" * 400_000} for number in range(30)])
            db.c.update_many({"x": None}, {"$set": {"y": round}})
            scratch.sql("FLUSH BINARY LOGS")
    with gateway(scratch).client(directConnection=True) as client:
        log = client.local["oplog.rs"]
        entries = list(log.find())
        times = [entry["ts"] for entry in entries]
        assert times == sorted(set(times))
        kinds = [entry["op"] for entry in entries if entry["ns"] == f"{database_name}.c"]
        assert (kinds.count("i"), kinds.count("u")) == (3 * 330, 300 + 600 + 900 + 3 + 6 + 9)
        transactions = [entry for entry in entries if "lsid" in entry]
        assert [len(entry["o"]["applyOps"]) for entry in transactions][-3:] == [3, 3, 3]
        for size in (0, 7, 100):
            assert list(log.find(batch_size=size)) == entries
            assert list(log.find(batch_size=size).sort("$natural", -1)) == entries[::-1]
        assert list(log.find({}, {"ts": 1}).sort("ts", -1).limit(5)) == [{"ts": ts} for ts in times[:-6:-1]]
        for at in (1, len(times) // 2, -2):
            assert [entry["ts"] for entry in log.find({"ts": {"$gte": times[at]}}, {"ts": 1})] == times[at:]
            assert [entry["ts"] for entry in log.find({"ts": {"$lt": times[at]}}, {"ts": 1}).sort("ts", -1)] == times[:at][::-1]
        assert log.count_documents({}) == log.estimated_document_count() == len(entries)


def test_the_oplog_is_a_collection(db, server):
    log = db.client.local["oplog.rs"]
    db.c.insert_one({"_id": 1})
    last = log.find().sort("$natural", -1).limit(1).next()
    assert (last["op"], last["ns"], last["o"]) == ("i", f"{db.name}.c", {"_id": 1})
    assert "oplog.rs" in db.client.local.list_collection_names() and "local" in db.client.list_database_names()
    assert log.options()["capped"] is True
    for action in (
        lambda: log.insert_one({"_id": 1}), lambda: log.update_one({}, {"$set": {"x": 1}}), lambda: log.delete_many({}),
        log.drop, lambda: log.rename("x"), lambda: log.create_index("x"),
    ):
        assert failure(action).code == 73
    follow = log.find({"ts": {"$gt": last["ts"]}}, cursor_type=pymongo.CursorType.TAILABLE_AWAIT)
    assert list(follow) == [] and follow.alive
    server.sql(f"INSERT INTO {db.name}.c (doc) VALUES ('{{\"_id\": 2}}'), ('{{\"_id\": 3}}')")
    assert [next(follow)["o"] for _ in range(2)] == [{"_id": 2}, {"_id": 3}]


@pytest.mark.parametrize("killed", ["gateway", "mariadb"])
def test_tailing_the_oplog_over_a_crash(scratch, gateway, database_name, killed):
    selkie = gateway(scratch)
    victim = scratch if killed == "mariadb" else selkie
    with selkie.client(directConnection=True) as client:
        collection, log = client[database_name].c, client.local["oplog.rs"]
        collection.insert_one({"_id": -1})
        last, seen = log.find().sort("$natural", -1).limit(1).next()["ts"], []

        def follow(count):
            nonlocal last
            query = {"ts": {"$gt": last}, "ns": f"{database_name}.c"}
            cursor = log.find(query, cursor_type=pymongo.CursorType.TAILABLE_AWAIT)
            for _ in range(count):
                entry = next(cursor)
                last = entry["ts"]
                seen.append(entry["o"]["_id"])
            cursor.close()

        for round in range(3):
            collection.insert_many([{"_id": round * 50 + number} for number in range(50)])
            follow(25)
            victim.kill()
            victim.start()
            follow(25)
        assert seen == [*range(150)]


def test_an_unsuitable_log_is_explained(scratch, gateway):
    """The last test: the server keeps its unsuitable settings."""
    unsuitable = {
        "keeps no binary log": ("--skip-log-bin",), "binlog_row_image is MINIMAL": ("--binlog-row-image=MINIMAL", *LOG),
    }
    for reason, options in unsuitable.items():
        scratch.kill()
        scratch.options = options
        scratch.start()
        with gateway(scratch).client(directConnection=True) as client:
            refused = failure(lambda: opened(client["d"], "c"))
            assert refused.code == 40573 and reason in refused.details["errmsg"]
            refused = failure(lambda: client.local["oplog.rs"].find_one())
            assert refused.code == 238 and reason in refused.details["errmsg"] and "$changeStream" not in str(refused)
