"""Time limits and killOp end operations in every phase: while they read, hold documents, or return
them."""

import threading
import time

import pytest
from pymongo.errors import OperationFailure

DOCUMENTS = 30_000
NEVER = {"$match": {"never": 1}}
# An expression that takes long to evaluate for one document.
WORK = {"$reduce": {"input": {"$range": [0, 400]}, "initialValue": 0, "in": {"$add": ["$$value", {"$mod": ["$$this", 7]}]}}}
SLOW = {"$match": {"$expr": {"$lt": [WORK, 0]}}}
# With a millisecond and more a document, no machine comes to the end of this one.
SLOWER = {"$match": {"$expr": {"$lt": [{"$sum": {"$map": {"input": {"$range": [0, 10]}, "in": WORK}}}, 0]}}}

PIPELINES = {
    "sort": [{"$sort": {"r": 1}}, SLOW],
    "group": [{"$group": {"_id": "$_id", "n": {"$sum": "$r"}}}, SLOW],
    "group takes in": [{"$group": {"_id": WORK}}],
    "bucketAuto": [{"$bucketAuto": {"groupBy": {"$add": ["$r", WORK]}, "buckets": 2, "output": {"n": {"$sum": WORK}}}}],
    "setWindowFields": [{"$setWindowFields": {"sortBy": {"r": 1}, "output": {"n": {"$sum": WORK, "window": {"documents": [-1, 1]}}}}}, NEVER],
    "graphLookup": [{"$graphLookup": {"from": "c", "startWith": "$_id", "connectFromField": "next", "connectToField": "_id", "as": "x"}}, {"$match": {"x.never": 1}}],
    "lookup": [{"$lookup": {"from": "c", "let": {"r": "$r"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$next", "$$r"]}}}], "as": "x"}}, {"$match": {"x.never": 1}}],
    "facet": [{"$facet": {"a": [{"$sort": {"r": 1}}, SLOW], "b": [{"$limit": 1}]}}],
    "unionWith": [{"$limit": 1}, {"$unionWith": {"coll": "c", "pipeline": [{"$sort": {"r": 1}}, SLOW]}}],
    "densify": [{"$densify": {"field": "r", "range": {"step": 1, "bounds": "full"}}}, SLOW],
}


@pytest.fixture(scope="module")
def big(session_client):
    """A collection that takes a while to go through."""
    db = session_client["interruption"]
    db.c.insert_many([{"_id": i, "r": i * 7919 % DOCUMENTS, "next": i + 1, "t": "x" * 100} for i in range(DOCUMENTS)])
    yield db
    session_client.drop_database("interruption")


def took(work) -> tuple[float, int]:
    """Returns the time until the error, and its code."""
    began = time.monotonic()
    with pytest.raises(OperationFailure) as refused:
        work()
    return time.monotonic() - began, refused.value.code


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_ends_when_its_time_is_up(big, name):
    seconds, code = took(lambda: list(big.c.aggregate(PIPELINES[name], maxTimeMS=150)))
    assert code == 50 and seconds < 2


def test_a_sorted_find_ends_when_its_time_is_up(big):
    seconds, code = took(lambda: list(big.c.find({"$expr": {"$gte": [WORK, 0]}}, sort=[("r", 1)]).max_time_ms(150)))
    assert code == 50 and seconds < 2


def test_a_condition_without_matches_ends_at_its_time_limit(big):
    for work in (
        lambda: list(big.c.find({"$expr": {"$lt": [WORK, 0]}}).max_time_ms(100)),
        lambda: big.c.count_documents({"$expr": {"$lt": [WORK, 0]}}, maxTimeMS=100),
        lambda: big.c.distinct("r", {"$expr": {"$lt": [WORK, 0]}}, maxTimeMS=100),
    ):
        seconds, code = took(work)
        assert code == 50 and seconds < 2


@pytest.mark.parametrize("name", ["sort", "bucketAuto", "setWindowFields", "graphLookup", "lookup", "facet"])
def test_a_pipeline_can_be_killed(big, client, name):
    outcome = []

    def run():
        outcome.append(took(lambda: list(big.c.aggregate(PIPELINES[name], comment="to be killed"))))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    for _ in range(100):
        found = client.admin.command({"currentOp": 1, "command.comment": "to be killed"})["inprog"]
        if found:
            break
        time.sleep(0.02)
    client.admin.command({"killOp": 1, "op": found[0]["opid"]})
    killed = time.monotonic()
    thread.join()
    assert outcome[0][1] == 11601 and time.monotonic() - killed < 2


def test_other_clients_are_served_during_a_long_condition(own_server, database_name):
    """A worker does not process all rows of a long scan in one go, even if they have all arrived.
    """
    server = own_server("--threads", "1")
    with server.client() as busy, server.client() as other:
        collection = busy[database_name].c
        collection.insert_many([{"_id": i, "r": i} for i in range(20_000)])
        refused = []

        def run():
            refused.append(took(lambda: list(collection.aggregate([{"$sort": {"r": 1}}, SLOWER], maxTimeMS=2500))))

        other.admin.command("ping")
        thread = threading.Thread(target=run)
        thread.start()
        longest = 0.0
        while thread.is_alive():
            began = time.monotonic()
            other.admin.command("ping")
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.01)
        assert refused[0][1] == 50 and longest < 1, longest
