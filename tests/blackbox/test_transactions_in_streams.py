"""Transactions in the log and in change streams, compared with MongoDB's."""

import pytest
from blackbox.test_change_streams import REPLICA_SET, masked, opened, rest, servers  # noqa: F401
from support.mariadb import LOG, MariadbServer
from support.selkie import EMBEDDED_MARIADB, SelkieServer

pytestmark = pytest.mark.selkie_only

OPTIONS = [
    {}, {"showExpandedEvents": True, "fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"},
    {"fullDocument": "updateLookup"},
]


@pytest.fixture(scope="module")
def selkie(store, tmp_path_factory):
    if store == EMBEDDED_MARIADB:
        pytest.skip("has no log")
    mariadb = MariadbServer(tmp_path_factory.mktemp("log"), LOG).start() if store == "mariadb" else None
    server = SelkieServer(tmp_path_factory.mktemp("streams") / "selkie", mariadb, REPLICA_SET).start()
    yield server
    server.remove()
    if mariadb:
        mariadb.remove()


def prepare(db):
    db.things.insert_many([{"_id": number, "n": 1} for number in range(3)])
    db.create_collection("images", changeStreamPreAndPostImages={"enabled": True})
    db.images.insert_one({"_id": 0, "n": 1})
    # On MariaDB, a collection that a transaction creates exists at once.
    db.create_collection("fresh")


def transactions(db):
    """A transaction with all kinds of changes, one with a single change, one without, one that is
    aborted, and a change that is in none."""
    things, images = db.things, db.images
    with db.client.start_session() as session:
        with session.start_transaction():
            things.insert_many([{"_id": "a"}, {"_id": "b"}], session=session)
            images.update_one({"_id": 0}, {"$set": {"x": 1}}, session=session)
            things.delete_one({"_id": 0}, session=session)
            things.replace_one({"_id": "a"}, {"y": 1}, session=session)
            images.delete_one({"_id": 0}, session=session)
            db.fresh.insert_one({"_id": 1}, session=session)
        with session.start_transaction():
            things.insert_one({"_id": "c"}, session=session)
        with session.start_transaction():
            things.find_one({}, session=session)
        session.start_transaction()
        things.insert_one({"_id": "never"}, session=session)
        session.abort_transaction()
    things.insert_one({"_id": "last"})


def changed(client, name):
    """Returns a token from before the transactions."""
    prepare(client[name])
    token = opened(client[name], 1)["postBatchResumeToken"]
    transactions(client[name])
    return token


def test_created_collections_are_part_of_a_transaction(servers, database_name, store):
    if store == "mariadb":
        pytest.skip("creates them at once")
    found = []
    for client in servers:
        db = client[database_name]
        prepare(db)
        token = opened(db, 1)["postBatchResumeToken"]
        with client.start_session() as session, session.start_transaction():
            db.things.insert_one({"_id": "a"}, session=session)
            db.created.insert_one({"_id": 1}, session=session)
        events = rest(db, opened(db, 1, resumeAfter=token, showExpandedEvents=True))
        assert len({event["clusterTime"] for event in events}) == 1
        found.append(masked(events, database_name))
    assert found[0] == found[1]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "expanded", "lookup"])
def test_events_agree(servers, database_name, options):
    found = []
    for client in servers:
        token = changed(client, database_name)
        events = rest(client[database_name], opened(client[database_name], 1, **options, resumeAfter=token))
        found.append(masked(events, database_name))
        of_first = [event for event in events if event.get("txnNumber") == events[0]["txnNumber"]]
        assert len({event["clusterTime"] for event in of_first}) == 1 and len(of_first) >= 7
        assert of_first[0]["clusterTime"] < events[-1]["clusterTime"]
    ours, theirs = found
    for our, their in zip(ours, theirs):
        assert our == their
    assert len(ours) == len(theirs)


def test_entries_of_the_log_agree(servers, database_name):
    found = []
    for client in servers:
        prepare(client[database_name])
        before = client.local["oplog.rs"].find().sort("$natural", -1).limit(1).next()["ts"]
        transactions(client[database_name])
        found.append(masked(list(client.local["oplog.rs"].find({"ts": {"$gt": before}, "o.applyOps": {"$exists": True}})), database_name))
    ours, theirs = found
    assert len(ours) == len(theirs) == 2
    for our, their in zip(ours, theirs):
        assert our == their


def test_streams_resume_within_a_transaction(servers, database_name):
    for client in servers:
        db = client[database_name]
        token = changed(client, database_name)
        events = rest(db, opened(db, 1, resumeAfter=token))
        tokens = [event["_id"]["_data"] for event in events]
        assert tokens == sorted(tokens) and len({*tokens}) == len(tokens)
        for number, event in enumerate(events):
            for how in ("resumeAfter", "startAfter"):
                assert rest(db, opened(db, 1, **{how: event["_id"]})) == events[number + 1:]
            # Batches of one event.
            stream = opened(db, 1, cursor={"batchSize": 1}, resumeAfter=event["_id"])
            assert rest(db, stream) == events[number + 1:]
        at = events[0]["clusterTime"]
        assert rest(db, opened(db, 1, startAtOperationTime=at)) == events


def test_waiting_streams_see_whole_transactions(servers, database_name):
    for client in servers:
        db = client[database_name]
        prepare(db)
        streams = [db.watch(max_await_time_ms=5000), db.images.watch(max_await_time_ms=5000), db.watch([{"$match": {"operationType": "delete"}}], max_await_time_ms=5000)]
        transactions(db)
        for stream, count in zip(streams, (9, 2, 2)):
            with stream:
                events = [stream.next() for _ in range(count)]
            assert len({event["clusterTime"] for event in events}) == (3 if count == 9 else 1)


def test_a_restart_reads_transactions_from_the_file(selkie, database_name):
    with selkie.client(directConnection=True) as client:
        db = client[database_name]
        token = changed(client, database_name)
        options = dict(fullDocumentBeforeChange="whenAvailable", resumeAfter=token)
        events = rest(db, opened(db, 1, **options))
        selkie.kill()
        selkie.start()
        assert rest(db, opened(db, 1, **options)) == events
        middle = {**options, "resumeAfter": events[2]["_id"]}
        assert rest(db, opened(db, 1, **middle)) == events[3:]


def test_a_large_transaction_is_shown_whole(servers, database_name):
    for client in servers:
        db = client[database_name]
        prepare(db)
        token = opened(db, 1)["postBatchResumeToken"]
        with client.start_session() as session, session.start_transaction():
            for number in range(3):
                db.things.insert_one({"_id": f"large {number}", "x": "x" * (7 << 20)}, session=session)
        stages = [{"$project": {"documentKey": 1, "txnNumber": 1}}]
        events = rest(db, opened(db, 1, stages, resumeAfter=token))
        assert len({event["txnNumber"] for event in events}) == 1
        assert [event["documentKey"]["_id"] for event in events] == [f"large {number}" for number in range(3)]
        for number, event in enumerate(events):
            assert rest(db, opened(db, 1, stages, resumeAfter=event["_id"])) == events[number + 1:]
