"""Usage of indexes and collections in $indexStats, $collStats and serverStatus."""

import pymongo


def accesses(collection) -> dict[str, int]:
    return {index["name"]: index["accesses"]["ops"] for index in collection.aggregate([{"$indexStats": {}}])}


def collection_stats(collection, **asked) -> dict:
    return collection.aggregate([{"$collStats": asked}]).next()


def test_uses_of_an_index_are_counted(db):
    collection = db.used
    collection.insert_many({"_id": number, "a": number % 10, "b": number} for number in range(100))
    collection.create_index("a")
    collection.create_index("b")
    assert accesses(collection) == {"_id_": 0, "a_1": 0, "b_1": 0}
    collection.find_one({"_id": 3})
    list(collection.find({"b": {"$gt": 20}}, batch_size=5))
    list(collection.find({"$or": [{"a": 1}, {"b": 3}]}))
    collection.bulk_write([pymongo.UpdateOne({"b": 1}, {"$set": {"z": 1}}), pymongo.UpdateOne({"b": 2}, {"$set": {"z": 2}})])
    collection.count_documents({"a": 1})
    db.command("explain", {"find": "used", "filter": {"a": 1}})
    assert accesses(collection) == {"_id_": 1, "a_1": 2, "b_1": 4}
    collection.drop_index("b_1")
    collection.create_index("b")
    assert accesses(collection)["b_1"] == 0, "a new index of that name"
    made = {index["name"]: index["accesses"]["since"] for index in collection.aggregate([{"$indexStats": {}}])}
    assert made["b_1"] > made["a_1"] >= made["_id_"]


def test_scans_and_times_are_counted(db):
    collection = db.timed
    collection.insert_one({"_id": 1, "a": 1})
    list(collection.find({"a": 1}))
    found = collection_stats(collection, queryExecStats={}, latencyStats={"histograms": True})
    assert found["queryExecStats"]["collectionScans"] == {"total": 1, "nonTailable": 1}
    times = found["latencyStats"]
    assert times["reads"]["ops"] >= 1 and times["writes"]["ops"] == 1 and times["transactions"]["ops"] == 0
    assert sum(bucket["count"] for bucket in times["reads"]["histogram"]) == times["reads"]["ops"]
    assert "histogram" not in collection_stats(collection, latencyStats={})["latencyStats"]["reads"]
    of_server = db.client.admin.command("serverStatus")["opLatencies"]
    assert of_server["reads"]["ops"] >= times["reads"]["ops"] and of_server["commands"]["latency"] > 0
