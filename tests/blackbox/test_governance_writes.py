"""No write blocks others: long ones are divided, end when they are killed or their time is over,
and keep the completed part.

The limits here are several times the goals, because the machine may be busy.
"""

import contextlib
import threading
import time

import bson
import pymongo
import pytest
from support.wire import Wire

DOCUMENTS = 20_000
STATEMENTS = 1000
# Some minutes of work on one document, and a millisecond or more.
HOURS = {"$size": {"$map": {"input": {"$range": [0, 100_000]}, "in": {"$size": {"$map": {"input": {"$range": [0, 100_000]}, "in": 1}}}}}}
A_WHILE = {"$size": {"$map": {"input": {"$range": [0, 300]}, "in": {"$size": {"$map": {"input": {"$range": [0, 300]}, "in": 1}}}}}}


def session(number: int, transaction: int) -> dict:
    return {"lsid": {"id": bson.Binary(bytes([number]) * 16, 4)}, "txnNumber": bson.Int64(transaction)}


def increments(documents: int, **more) -> dict:
    """A thousand statements, none of which finds its document by an index."""
    updates = [{"q": {"email": f"u{documents - STATEMENTS + i}@x"}, "u": {"$inc": {"n": 1}}} for i in range(STATEMENTS)]
    return {"update": "c", "updates": updates, **more}


def one(update=None, **query) -> dict:
    return {"q": query, "u": update or [{"$set": {"x": HOURS}}]}


# The second collection has ten documents and is called `few`.
LONG = {
    "a batch of searches": increments(DOCUMENTS),
    "a retryable batch of searches": increments(DOCUMENTS, **session(1, 1)),
    "an unordered batch": increments(DOCUMENTS, ordered=False),
    "a pipeline": {"update": "few", "updates": [one(_id=1)]},
    "a retryable pipeline": {"update": "few", "updates": [one(_id=1)], **session(2, 1)},
    "an upsert": {"update": "few", "updates": [{**one(_id="new"), "upsert": True}]},
    "a pipeline for many": {"update": "c", "updates": [{**one([{"$set": {"x": A_WHILE}}]), "multi": True}]},
    "many pipelines": {"update": "c", "updates": [one([{"$set": {"x": A_WHILE}}], _id=i) for i in range(STATEMENTS * 5)]},
    "a filter": {"update": "few", "updates": [{"q": {"$expr": {"$eq": [HOURS, 1]}}, "u": {"$set": {"x": 1}}, "multi": True}]},
    "a filter for many": {"delete": "c", "deletes": [{"q": {"$expr": {"$eq": [A_WHILE, 1]}}, "limit": 0}]},
    "findAndModify": {"findAndModify": "few", "query": {}, "update": [{"$set": {"x": HOURS}}]},
    "findAndModify with a filter": {"findAndModify": "few", "query": {"$expr": {"$eq": [HOURS, 1]}}, "remove": True},
    "findAndModify with a sort": {
        "findAndModify": "c", "query": {"$expr": {"$gt": [A_WHILE, 1]}}, "sort": {"r": -1}, "update": {"$set": {"x": 1}},
    },
    "a validator": {"insert": "valid", "documents": [{"_id": 1}]},
    "$merge": {
        "aggregate": "few", "cursor": {},
        "pipeline": [{"$merge": {"into": "merged", "whenMatched": [{"$set": {"x": HOURS}}]}}],
    },
}


@pytest.fixture
def busy_server(store, own_server, tmp_path):
    if store != "embedded":
        pytest.skip("about the embedded store's one writer")
    config = tmp_path / "selkie.toml"
    config.write_text("drain-seconds = 1\n")
    return own_server("--config", str(config))


@pytest.fixture
def client(busy_server) -> pymongo.MongoClient:
    with busy_server.client(retryWrites=False) as client:
        fill(client.t)
        yield client


def fill(db, documents: int = DOCUMENTS):
    db.c.insert_many([{"_id": i, "email": f"u{i}@x", "n": 0, "r": i * 7919 % documents} for i in range(documents)])
    few = [{"_id": i} for i in range(10)]
    db.few.insert_many(few)
    db.merged.insert_many(few)
    db.create_collection("valid", validator={"$expr": {"$eq": [HOURS, 1]}})


class Other(threading.Thread):
    """Another client, which inserts into another collection all the while."""

    def __init__(self, uri: str):
        super().__init__(daemon=True)
        self.uri, self.longest, self.inserted = uri, 0.0, 0
        self.enough, self.begun = threading.Event(), threading.Event()

    def run(self):
        with pymongo.MongoClient(self.uri, retryWrites=False) as client:
            while not self.enough.is_set():
                began = time.monotonic()
                client.t.other.insert_one({"n": self.inserted})
                self.longest = max(self.longest, time.monotonic() - began)
                self.inserted += 1
                self.begun.set()

    def __enter__(self):
        self.start()
        assert self.begun.wait(30)
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.join()


def run(server, command: dict, **more) -> dict:
    """Runs a command without a driver, which would put its own session into it."""
    with Wire(server.port, timeout_s=120) as wire:
        return wire.run({**command, "$db": "t", **more})


def refused(server, command: dict, **more) -> tuple[int, float]:
    """With which code (0: it was carried out), and after how long."""
    began = time.monotonic()
    reply = run(server, command, **more)
    return reply.get("code", 0), time.monotonic() - began


def kill(client, comment: str, after: float):
    time.sleep(after)
    for _ in range(100):
        found = client.admin.command({"currentOp": 1, "command.comment": comment})["inprog"]
        for operation in found:
            client.admin.command({"killOp": 1, "op": operation["opid"]})
        if found:
            return
        time.sleep(0.05)


def test_long_writes_end_at_their_limit_and_do_not_block_others(client, busy_server):
    for name, command in LONG.items():
        with Other(busy_server.uri) as other:
            code, seconds = refused(busy_server, command, maxTimeMS=500)
        assert code == 50 and seconds < 5, (name, code, seconds)
        assert other.longest < 5, (name, other.longest)
        killer = threading.Thread(target=kill, args=(client, name, 0.3))
        killer.start()
        code, seconds = refused(busy_server, command, comment=name)
        killer.join()
        assert code == 11601 and seconds < 6, (name, code, seconds)
    assert client.t.command("validate", "c")["valid"]


def test_long_writes_do_not_wait_for_each_other(client, busy_server):
    """Each has a time limit as long as one of them occupies the writer."""
    outcomes = []

    def run_one():
        outcomes.append(refused(busy_server, LONG["a pipeline"], maxTimeMS=1000))

    threads = [threading.Thread(target=run_one) for _ in range(4)]
    [thread.start() for thread in threads]
    began = time.monotonic()
    client.t.few.update_one({"_id": 2}, [{"$set": {"x": A_WHILE}}])
    assert time.monotonic() - began < 5
    [thread.join() for thread in threads]
    assert [code for code, _ in outcomes] == [50] * 4 and max(seconds for _, seconds in outcomes) < 8


def test_a_retry_completes_a_partial_write(busy_server):
    documents = 5000
    with busy_server.client() as client:
        fill(client.t, documents)
        retry_the_rest(busy_server, client.t, increments(documents, **session(3, 1)))


def retry_the_rest(server, db, command: dict):
    code, _ = refused(server, command, maxTimeMS=300)
    assert code == 50
    done = db.c.count_documents({"n": 1})
    assert 0 < done < STATEMENTS
    reply = run(server, command)
    assert (reply["n"], reply["nModified"]) == (STATEMENTS, STATEMENTS)
    assert db.c.count_documents({"n": 1}) == STATEMENTS
    again = run(server, command)
    assert again["n"] == STATEMENTS and again["retriedStmtIds"] == list(range(STATEMENTS))
    assert db.c.count_documents({"n": 1}) == STATEMENTS and db.c.count_documents({"n": {"$gt": 1}}) == 0


def test_the_process_ends_during_any_write(client, busy_server):
    """With all that was acknowledged."""
    running = []
    for name in ("a retryable batch of searches", "a pipeline", "a pipeline for many", "a filter"):
        def break_off(command=LONG[name]):
            with pytest.raises(OSError):
                run(busy_server, command)

        running.append(threading.Thread(target=break_off))
        running[-1].start()
    other = Other(busy_server.uri)
    other.start()
    time.sleep(0.5)
    # It is ended between two of its writes, so that all of them were acknowledged.
    other.enough.set()
    other.join()
    began = time.monotonic()
    busy_server.stop()
    assert time.monotonic() - began < 1 + 5
    [thread.join() for thread in running]
    busy_server.start()
    with busy_server.client() as after:
        assert after.t.other.count_documents({}) == other.inserted > 0
        assert after.t.command("validate", "c")["valid"]


def test_each_statement_is_carried_out_once_through_a_kill(busy_server):
    documents = 5000
    command = increments(documents, **session(4, 7))
    with busy_server.client(retryWrites=False) as client:
        fill(client.t, documents)

    def break_off():
        with contextlib.suppress(OSError):
            run(busy_server, command)

    kills = 0
    for after in (0.3, 0.6, 0.9):
        thread = threading.Thread(target=break_off)
        thread.start()
        time.sleep(after)
        busy_server.kill()
        thread.join()
        busy_server.start()
        with busy_server.client() as client:
            counts = {count["_id"]: count["n"] for count in client.t.c.aggregate([{"$sortByCount": "$n"}, {"$project": {"n": "$count"}}])}
            assert set(counts) <= {0, 1}, counts
            kills += counts.get(1, 0) < STATEMENTS
    assert kills > 0, "the batch was done before the first kill"
    reply = run(busy_server, command)
    with busy_server.client(retryWrites=False) as client:
        assert (reply["n"], reply["nModified"]) == (STATEMENTS, STATEMENTS)
        assert client.t.c.count_documents({"n": 1}) == STATEMENTS
        assert client.t.c.count_documents({"n": 0}) == documents - STATEMENTS
        assert client.t.command("validate", "c")["valid"]


def test_large_batches_do_not_block_other_writers(busy_server):
    with busy_server.client(retryWrites=False) as client, Other(busy_server.uri) as other:
        client.t.c.insert_many([{"_id": i, "r": i * 7919 % 100_000, "pad": "x" * 100} for i in range(100_000)])
        client.t.c.create_index("r")
        client.t.c.insert_many([{"r": i, "pad": "x" * 400_000} for i in range(100)])
        assert client.t.c.update_many({}, {"$inc": {"r": 1}}).modified_count == 100_100
        assert client.t.c.update_many({"r": {"$gt": 50_000}}, {"$inc": {"r": 1}}).modified_count > 40_000
        assert client.t.c.delete_many({}).deleted_count == 100_100
        assert client.t.command("validate", "c")["valid"]
    assert other.longest < 5, other.longest
