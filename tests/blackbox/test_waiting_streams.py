"""Change streams that wait: each is woken by the changes that it shows, and by no others."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from bson import Int64
from pymongo.errors import OperationFailure

from support.selkie import SelkieServer

pytestmark = pytest.mark.selkie_only

REPLICA_SET = ("--topology", "replica-set")
# Longer than a test may take.
LONG_MS = 20_000


@pytest.fixture(scope="module")
def selkie(tmp_path_factory):
    server = SelkieServer(tmp_path_factory.mktemp("streams") / "selkie", options=REPLICA_SET).start()
    yield server
    server.remove()


@pytest.fixture
def db(selkie, database_name):
    with selkie.client(directConnection=True) as client:
        yield client[database_name]


class Stream:
    """A cursor of a change stream, and the events that it has shown."""

    def __init__(self, db, target=1, stages=(), collation=None, **options):
        command = {"aggregate": target, "pipeline": [{"$changeStream": options}, *stages], "cursor": {}}
        self.db, self.session = db, db.client.start_session()
        command |= {"collation": collation} if collation else {}
        self.take(db.command(command, session=self.session)["cursor"], "firstBatch")
        self.collection = self.cursor["ns"].split(".", 1)[1]

    def take(self, cursor, batch):
        self.cursor, self.events = cursor, cursor[batch]
        return self.events

    def more(self, wait_ms=1):
        """The next events."""
        command = {"getMore": Int64(self.cursor["id"]), "collection": self.collection, "maxTimeMS": wait_ms}
        return self.take(self.db.command(command, session=self.session)["cursor"], "nextBatch")

    def shown_ids(self, wait_ms=1):
        return [event["documentKey"]["_id"] for event in self.more(wait_ms)]

    @property
    def token(self):
        return self.cursor["postBatchResumeToken"]["_data"]


def until_they_wait(db, number):
    """Waits until this many getMores wait for changes of the database."""
    mine = {"ns": {"$regex": f"^{db.name}[.]"}, "op": "getmore"}
    deadline = time.monotonic() + 30
    while len(list(db.client.admin.aggregate([{"$currentOp": {"allUsers": True}}, {"$match": mine}]))) < number:
        assert time.monotonic() < deadline


def random_changes(db, chance):
    for name in ("c", "other"):
        db.create_collection(name, changeStreamPreAndPostImages={"enabled": True})
    for number in range(200):
        collection = db[chance.choice(["c", "c", "other"])]
        key = {"_id": chance.randrange(12)}
        match chance.randrange(4):
            case 0:
                collection.replace_one(key, {"n": number, "text": chance.choice("aAbB")}, upsert=True)
            case 1:
                collection.update_one(key, {"$set": {"n": number}}, upsert=True)
            case 2:
                collection.insert_many([{"n": number + more, "text": chance.choice("aA")} for more in range(3)])
            case 3:
                collection.delete_one(key)
    db.fresh.create_index("n")


STAGES = [
    [],
    [{"$match": {}}],
    [{"$match": {"operationType": {"$in": ["insert", "delete"]}}}],
    [{"$match": {"$or": [{"operationType": "update"}, {"documentKey._id": {"$gt": 6}}]}}],
    [{"$match": {"fullDocument.text": {"$regex": "^a", "$options": "i"}}}, {"$project": {"fullDocument.n": 1}}],
    [{"$match": {"fullDocumentBeforeChange.n": {"$lt": 100}}}],
    [{"$match": {"updateDescription.updatedFields.n": {"$exists": True}}}, {"$match": {"documentKey._id": {"$ne": 2}}}],
    [{"$match": {"$expr": {"$eq": ["$operationType", "delete"]}}}],
    [{"$project": {"wallTime": 0}}, {"$match": {"operationType": "replace"}}],
    [{"$addFields": {"fullDocument.n": 5}}, {"$match": {"fullDocument.n": 5}}],
    [{"$match": {"$nor": [{"ns.coll": "c"}, {"fullDocument.n": None}]}}],
    [{"$match": {"fullDocument.text": "A"}}],
    [{"$match": {"_id": "none"}}],
    *([{"$match": {"documentKey._id": key}}] for key in range(4)),
    *([{"$match": {"fullDocument.n": {"$mod": [5, rest]}}}] for rest in range(5)),
]

OPTIONS = [
    {},
    {"showExpandedEvents": True},
    {"fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"},
]


def test_waiting_streams_show_what_later_ones_show(db, selkie):
    opened = [
        (target, stages, collation, OPTIONS[(number + more) % len(OPTIONS)])
        for number, stages in enumerate(STAGES)
        for more, (target, collation) in enumerate([("c", None), (1, None), ("other", {"locale": "en", "strength": 2})])
    ]
    start = db.command("insert", "start", documents=[{}])["operationTime"]
    ended = threading.Event()
    end = Stream(db, showExpandedEvents=True)

    def follow(target, stages, collation, options):
        with selkie.client(directConnection=True) as client:
            stream = Stream(client[db.name], target, stages, collation, startAtOperationTime=start, **options)
            events = list(stream.events)
            while not ended.is_set() or stream.token < end.token:
                events += stream.more(wait_ms=100)
            return events

    with ThreadPoolExecutor(len(opened)) as threads:
        followers = [threads.submit(follow, *stream) for stream in opened]
        try:
            random_changes(db, random.Random(1))
            while end.more():
                pass
        finally:
            ended.set()
        for (target, stages, collation, options), follower in zip(opened, followers):
            later = Stream(db, target, stages, collation, startAtOperationTime=start, **options)
            expected = list(later.events)
            while later.more():
                expected += later.events
            assert follower.result() == expected, (target, stages, options)


def test_looked_up_documents_pass_filters(db):
    db.c.insert_one({"_id": 1, "n": 1})
    stages = [{"$match": {"fullDocument.n": 3}}]
    with ThreadPoolExecutor(2) as threads:
        streams = [Stream(db, "c", stages, fullDocument="updateLookup"), Stream(db, "c", stages)]
        waiting = [threads.submit(streams[0].more, LONG_MS), threads.submit(streams[1].more, LONG_MS)]
        until_they_wait(db, 2)
        db.c.update_one({"_id": 1}, {"$set": {"n": 2}})
        db.c.update_one({"_id": 1}, {"$set": {"n": 3}})
        # An update has no document unless it is looked up.
        assert {event["fullDocument"]["n"] for event in waiting[0].result()} == {3}
        db.c.insert_one({"_id": 2, "n": 3})
        assert [event["documentKey"]["_id"] for event in waiting[1].result()] == [2]


def test_streams_go_on_behind_what_they_do_not_show(db):
    stream = Stream(db, "c", [{"$match": {"documentKey._id": 7}}])
    before = stream.token
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(stream.more, 300)
        until_they_wait(db, 1)
        db.c.insert_many([{"_id": number} for number in range(7)])
        db.other.insert_one({"_id": 7})
        seen_by_all = Stream(db)
        assert waiting.result() == []
    assert before < stream.token and stream.token >= seen_by_all.token
    again = Stream(db, "c", [{"$match": {"documentKey._id": {"$lte": 7}}}], resumeAfter={"_data": stream.token})
    db.c.insert_one({"_id": 7})
    assert stream.shown_ids() == again.shown_ids() == [7]


def test_equal_streams_wait_independently(db):
    stages = [{"$match": {"operationType": "insert"}}]
    streams = [Stream(db, "c", stages) for _ in range(4)]
    with ThreadPoolExecutor(len(streams)) as threads:
        killed, *others = [threads.submit(stream.more, LONG_MS) for stream in streams]
        until_they_wait(db, 4)
        db.command({"killCursors": "c", "cursors": [Int64(streams[0].cursor["id"])]})
        assert killed.exception().code in (43, 237)
        db.c.insert_one({"_id": 1})
        for waiting in others:
            assert [event["documentKey"]["_id"] for event in waiting.result()] == [1]
    db.c.insert_one({"_id": 2})
    assert [stream.shown_ids() for stream in streams[1:]] == [[2]] * 3


def test_a_dropped_collection_ends_waiting_streams(db):
    db.c.insert_one({"_id": 1})
    nothing = [{"$match": {"documentKey._id": "none"}}]
    of_collection, of_database = Stream(db, "c", nothing), Stream(db, 1, nothing)
    expanded = Stream(db, "c", nothing, showExpandedEvents=True)
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(stream.more, LONG_MS) for stream in (of_collection, expanded, of_database)]
        until_they_wait(db, 3)
        db.c.drop()
        assert (waiting[0].result(), waiting[1].result()) == ([], [])
        assert of_collection.cursor["id"] == expanded.cursor["id"] == 0
        db.c.insert_one({"_id": 2})
        fresh = Stream(db, "c", [{"$match": {"documentKey._id": 3}}])
        again = threads.submit(fresh.more, LONG_MS)
        until_they_wait(db, 2)
        db.c.insert_one({"_id": 3})
        assert [event["documentKey"]["_id"] for event in again.result()] == [3]
        assert not waiting[2].done()
        db.client.drop_database(db.name)
        assert waiting[2].result() == []
        assert of_database.cursor["id"] == 0


def test_each_stream_has_the_rights_of_its_user(tmp_path, database_name):
    server = SelkieServer(tmp_path / "secured", options=(*REPLICA_SET, "--auth")).start()
    try:
        with server.client(directConnection=True) as client:
            client.admin.command("createUser", "root", pwd="p", roles=["root"])
        with server.client(directConnection=True, username="root", password="p") as root:
            db = root[database_name]
            streams = []
            for user in ("reader", "other"):
                db.command("createUser", user, pwd="p", roles=["read"])
                client = server.client(directConnection=True, username=user, password="p", authSource=db.name)
                streams.append(Stream(client[db.name], "c"))
            with ThreadPoolExecutor(2) as threads:
                waiting = [threads.submit(stream.more, LONG_MS) for stream in streams]
                until_they_wait(db, 2)
                db.command("updateUser", "other", roles=[{"role": "read", "db": "elsewhere"}])
                db.c.insert_one({"_id": 1})
                assert [event["documentKey"]["_id"] for event in waiting[0].result()] == [1]
                waiting[1].exception()
            db.c.insert_one({"_id": 2})
            assert streams[0].shown_ids() == [2]
            with pytest.raises(OperationFailure) as refused:
                streams[1].more()
            assert refused.value.code == 13
            for stream in streams:
                stream.db.client.close()
    finally:
        server.remove()
