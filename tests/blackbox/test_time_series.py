"""Time-series collections through a driver."""

from datetime import datetime, timedelta, timezone

import pytest
from pymongo.errors import BulkWriteError, OperationFailure, WriteError

BEGIN = datetime(2024, 5, 1, tzinfo=timezone.utc)


def measured(db, count: int):
    series = db.create_collection("weather", timeseries={"timeField": "at", "metaField": "sensor", "granularity": "minutes"})
    series.insert_many(
        {"at": BEGIN + timedelta(minutes=number), "sensor": {"id": number % 5}, "degrees": number / 10} for number in range(count)
    )
    return series


def test_measurements_are_read_like_documents(db):
    series = measured(db, 1000)
    assert series.count_documents({}) == 1000
    assert len(list(series.find(batch_size=50))) == 1000
    hour = {"at": {"$gte": BEGIN + timedelta(minutes=60), "$lt": BEGIN + timedelta(minutes=120)}}
    assert series.count_documents(hour) == 60
    assert series.count_documents({**hour, "sensor.id": 3}) == 12
    assert series.find_one(sort=[("at", -1)])["degrees"] == 99.9
    grouped = series.aggregate([{"$group": {"_id": "$sensor.id", "n": {"$sum": 1}, "most": {"$max": "$degrees"}}}, {"$sort": {"_id": 1}}])
    assert [group["n"] for group in grouped] == [200] * 5
    series.create_index([("sensor.id", 1), ("at", 1)])
    assert series.count_documents({**hour, "sensor.id": 3}) == 12
    assert [index["key"] for index in series.list_indexes()] == [{"sensor.id": 1, "at": 1}]
    assert series.delete_many({"sensor.id": 4}).deleted_count == 200
    assert series.update_many({"sensor.id": 0}, {"$set": {"sensor.place": "roof"}}).modified_count == 200
    assert series.count_documents({"sensor.place": "roof"}) == 200


def test_measurements_may_be_alike(db):
    series = db.create_collection("weather", timeseries={"timeField": "at"})
    series.insert_many([{"_id": 1, "at": BEGIN}, {"_id": 1, "at": BEGIN}])
    assert series.count_documents({"_id": 1}) == 2
    with pytest.raises(WriteError) as refused:
        series.insert_one({"degrees": 5})
    assert refused.value.code == 2
    with pytest.raises(BulkWriteError):
        series.insert_many([{"at": 5}, {"at": BEGIN}])


def test_features_that_time_series_do_not_support(db):
    series = measured(db, 10)
    for refused, code in (
        (lambda: series.update_one({"sensor.id": 1}, {"$set": {"sensor.id": 2}}), 72),
        (lambda: series.update_many({"degrees": 1}, {"$set": {"sensor": 1}}), 72),
        (lambda: series.delete_one({"sensor.id": 1}), 20),
        (lambda: series.find_one_and_delete({}), 166),
        (lambda: series.create_index("sensor", unique=True), 72),
        (lambda: series.rename("other"), 166),
    ):
        with pytest.raises(OperationFailure) as error:
            refused()
        assert error.value.code == code
    assert series.count_documents({}) == 10
    kinds = {entry["name"]: entry["type"] for entry in db.list_collections()}
    assert kinds["weather"] == "timeseries" and "system.buckets.weather" in kinds
    series.drop()
    assert "system.buckets.weather" not in db.list_collection_names()
