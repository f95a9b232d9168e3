"""The profiler and the slow log: examined documents, and durations."""

import time

import pymongo
import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def profiled(db):
    db.things.insert_many([{"_id": number, "a": number % 10, "b": number} for number in range(300)])
    db.things.create_index("a")
    yield db
    db.command("profile", 0, slowms=100, sampleRate=1.0, filter="unset")
    db.drop_collection("system.profile")


def only(db, **what) -> dict:
    found = list(db["system.profile"].find(what))
    assert len(found) == 1, (what, found)
    return found[0]


def shown(entry, *keys) -> dict:
    return {key: entry.get(key) for key in keys}


def test_levels_are_remembered_per_database(profiled, client):
    db = profiled
    assert shown(db.command("profile", -1), "was", "slowms", "sampleRate") == {"was": 0, "slowms": 100, "sampleRate": 1.0}
    assert db.command("profile", 2, slowms=50)["was"] == 0
    assert shown(db.command("profile", -1), "was", "slowms") == {"was": 2, "slowms": 50}
    assert client["another"].command("profile", -1)["was"] == 0
    options = next(db.list_collections(filter={"name": "system.profile"}))["options"]
    assert options == {"capped": True, "size": 1024 * 1024}
    with pytest.raises(OperationFailure) as refused:
        db.drop_collection("system.profile")
    assert refused.value.code == 20
    with pytest.raises(OperationFailure) as refused:
        db["system.profile"].insert_one({})
    assert refused.value.code == 73
    for wrong, code in [({"sampleRate": 2}, 2), ({"filter": 5}, 2), ({"slowms": "x"}, 14), ({"filter": {"$nope": 1}}, 2)]:
        with pytest.raises(OperationFailure) as refused:
            db.command("profile", 0, **wrong)
        assert refused.value.code == code
    assert db.command("profile", 0)["was"] == 2


def test_explained_commands_are_profiled(profiled):
    db = profiled
    db.command("profile", 2)
    db.command("explain", {"find": "things", "filter": {"a": 1}}, verbosity="queryPlanner")
    entry = only(db, op="command", **{"command.explain": {"$exists": True}})
    assert entry["ns"] == f"{db.name}.things" and entry["command"]["explain"]["filter"] == {"a": 1}


def test_reads_report_examined_documents(profiled):
    db = profiled
    db.command("profile", 2)
    assert len(list(db.things.find({"a": {"$gte": 3}}, batch_size=50))) == 210
    entry = only(db, op="query")
    assert shown(entry, "ns", "planSummary", "nreturned", "docsExamined", "keysExamined", "protocol", "user") == {
        "ns": f"{db.name}.things", "planSummary": "IXSCAN { a: 1 }", "nreturned": 50, "docsExamined": entry["docsExamined"],
        "keysExamined": entry["keysExamined"], "protocol": "op_msg", "user": ""}
    assert entry["command"]["filter"] == {"a": {"$gte": 3}}
    assert entry["cursorid"] and entry["responseLength"] > 1000 and entry["millis"] >= 0 and entry["client"] and entry["ts"]
    rest = list(db["system.profile"].find({"op": "getmore"}))
    assert sum(one["nreturned"] for one in rest) == 160 and rest[-1]["cursorExhausted"]
    assert 210 <= entry["docsExamined"] + sum(one["docsExamined"] for one in rest) <= 240

    db.things.find_one({"_id": 7})
    found = only(db, **{"command.filter": {"_id": 7}})
    assert shown(found, "planSummary", "keysExamined", "docsExamined", "nreturned") == {
        "planSummary": "IDHACK", "keysExamined": 1, "docsExamined": 1, "nreturned": 1}
    list(db.things.find({"b": {"$lt": 0}}, sort=[("b", 1)]))
    found = only(db, **{"command.filter.b.$lt": 0})
    assert shown(found, "planSummary", "hasSortStage", "nreturned") == {"planSummary": "COLLSCAN", "hasSortStage": True, "nreturned": 0}
    db.things.count_documents({})
    db.things.estimated_document_count()
    assert only(db, **{"command.count": "things"})["planSummary"] == "RECORD_STORE_FAST_COUNT"
    with pytest.raises(OperationFailure):
        db.things.find_one({"$nope": 1})
    assert shown(only(db, ok=0.0), "errCode", "errName") == {"errCode": 2, "errName": "BadValue"}


def test_writes_report_examined_documents(profiled):
    db = profiled
    db.command("profile", 2)
    db.things.insert_one({"_id": "new", "a": 77})
    assert shown(only(db, op="insert"), "ninserted", "ns") == {"ninserted": 1, "ns": f"{db.name}.things"}
    db.things.bulk_write([
        pymongo.UpdateOne({"_id": 5}, {"$set": {"z": 1}}),
        pymongo.UpdateMany({"a": 3}, {"$set": {"z": 1}}),
        pymongo.UpdateOne({"a": -1}, {"$set": {"z": 1}}, upsert=True),
    ])
    by_id, many, upsert = db["system.profile"].find({"op": "update"})
    keys = ["planSummary", "docsExamined", "nMatched", "nModified", "nUpserted"]
    assert list(shown(by_id, *keys).values()) == ["IDHACK", 1, 1, 1, 0]
    assert list(shown(many, *keys).values()) == ["IXSCAN { a: 1 }", 30, 30, 30, 0]
    assert list(shown(upsert, *keys).values()) == ["IXSCAN { a: 1 }", 0, 0, 0, 1]
    assert upsert["command"] == {"q": {"a": -1}, "u": {"$set": {"z": 1}}, "upsert": True, "multi": False}
    db.things.delete_many({"a": 4})
    assert shown(only(db, op="remove"), "ndeleted", "planSummary") == {"ndeleted": 30, "planSummary": "IXSCAN { a: 1 }"}
    db.things.find_one_and_update({"a": 5}, {"$set": {"q": 1}})
    assert shown(only(db, **{"command.findAndModify": "things"}), "nMatched", "planSummary") == {"nMatched": 1, "planSummary": "IXSCAN { a: 1 }"}


def test_a_filter_decides_alone(profiled):
    db = profiled
    db.command("profile", 1, filter={"nreturned": {"$gt": 20}})
    db.things.find_one({"_id": 1})
    list(db.things.find({"a": 1}))
    assert [entry["command"]["filter"] for entry in db["system.profile"].find()] == [{"a": 1}]
    reply = db.command("profile", -1)
    assert reply["filter"] == {"nreturned": {"$gt": 20}} and "note" in reply
    db.command("profile", 1, filter="unset", slowms=10_000)
    list(db.things.find({"a": 2}))
    assert db["system.profile"].count_documents({}) == 1


def test_nothing_is_lost_and_the_profile_stays_small(profiled):
    db = profiled
    db.command("profile", 2)
    for number in range(400):
        db.things.find_one({"_id": number})
    assert db["system.profile"].count_documents({"op": "query"}) == 400
    db.command("profile", 0)
    db.things.find_one({"_id": 12345})
    assert db["system.profile"].count_documents({"command.filter": {"_id": 12345}}) == 0


@pytest.mark.selkie_only
def test_slow_operations_are_logged(own_server, store):
    server = own_server()
    with server.client(appname="patient") as client:
        db = client["slow"]
        db.things.insert_many([{"a": number} for number in range(1000)])
        db.command("profile", 0, slowms=-1)
        list(db.things.find({"a": {"$gt": 990}}))
        db.command("profile", 0, slowms=100)
        list(db.things.find({"a": {"$gt": 991}}))
        deadline = time.monotonic() + 5
        while "Slow query" not in server.end_of_log() and time.monotonic() < deadline:
            time.sleep(0.05)
        lines = [line for line in server.end_of_log().splitlines() if "Slow query" in line]
    line = next(line for line in lines if '"find"' in line)
    for part in ['"ns":"slow.things"', '"appName":"patient"', '"planSummary":"COLLSCAN"', '"nreturned":9', "durationMillis"]:
        assert part in line, line
    # MariaDB has filtered most rows itself; it reports their number to explain only.
    assert '"docsExamined":1000' in line or "mariadb" in store
    assert not any("991" in line for line in lines)
