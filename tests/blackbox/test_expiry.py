"""TTL indexes."""

import time
from datetime import datetime, timedelta, timezone

import pytest

# Longer than a server needs for a round.
EXPIRY_S = 80


@pytest.fixture(autouse=True)
def checks_every_second(session_client):
    """Lets the server look for documents past their time every second, not every minute."""
    admin = session_client.admin
    before = admin.command({"setParameter": 1, "ttlMonitorSleepSecs": 1})["was"]
    yield
    admin.command({"setParameter": 1, "ttlMonitorSleepSecs": before})


def documents_left(db) -> dict[str, int]:
    return {name: db[name].count_documents({}) for name in ("sessions", "weather", "clustered", "drafts", "letters")}


def test_documents_go_when_their_time_is_up(db):
    long_ago, now = datetime(2020, 1, 1), datetime.now(timezone.utc)
    old, young = now - timedelta(hours=2), now + timedelta(hours=2)
    db.sessions.create_index("at", expireAfterSeconds=60)
    db.create_collection("weather", timeseries={"timeField": "at", "metaField": "m"}, expireAfterSeconds=3600)
    db.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True}, expireAfterSeconds=3600)
    # Documents outside of a partial index do not expire.
    db.drafts.create_index("at", expireAfterSeconds=60, partialFilterExpression={"words": {"$gt": 5}})
    db.letters.create_index("at", expireAfterSeconds=60, partialFilterExpression={"kind": "draft"}, collation={"locale": "en", "strength": 2})
    db.drafts.insert_many([{"_id": 1, "at": old, "words": 9}, {"_id": 2, "at": old, "words": 1}, {"_id": 3, "at": old}, {"_id": 4, "at": young, "words": 9}])
    db.letters.insert_many([{"_id": 1, "at": old, "kind": "DRAFT"}, {"_id": 2, "at": old, "kind": "sent"}])
    db.sessions.insert_many([{"at": long_ago}, {"at": [long_ago, datetime(2200, 1, 1)]}, {"at": "never"}, {}])
    db.weather.insert_many([{"at": old, "m": 1}, {"at": young, "m": 2}])
    db.clustered.insert_many([{"_id": old}, {"_id": young}, {"_id": 5}])
    expected = {"sessions": 2, "weather": 1, "clustered": 2, "drafts": 3, "letters": 1}
    until = time.monotonic() + EXPIRY_S
    while time.monotonic() < until and documents_left(db) != expected:
        time.sleep(0.5)
    assert documents_left(db) == expected
    assert [one["_id"] for one in db.drafts.find().sort("_id")] == [2, 3, 4] and db.letters.find_one()["_id"] == 2
    assert db.sessions.count_documents({"at": {"$type": "date"}}) == 0
    assert db.weather.estimated_document_count() == 1
    assert [measurement["m"] for measurement in db.weather.find()] == [2]
    assert db.clustered.count_documents({"_id": {"$lt": now}}) == 0 and db.clustered.count_documents({"_id": 5}) == 1
