"""Time-series collections: options of `create`, writes, reads, and refused commands."""

from datetime import datetime

from bson import Int64

from compat.case import differs, script
from compat.cases.scripts import admin

MEASURED = {"timeField": "t", "metaField": "m"}
CREATE = {"create": "c", "timeseries": MEASURED}
LISTED = {"listCollections": 1, "filter": {"name": {"$in": ["c", "system.buckets.c", "d", "system.buckets.d"]}}}
BUCKETS = {"find": "system.buckets.c"}
FOUND = {"find": "c", "sort": {"_id": 1}, "projection": {"t": 0}}


def at(hour, minute=0, second=0, millisecond=0):
    return datetime(2024, 3, 5, hour, minute, second, millisecond * 1000)


# One document per bucket, so that both servers have the same ones.
DOCUMENTS = [
    {"_id": 1, "t": at(1, 2, 3), "m": {"b": "x", "a": 1}, "v": 1.5},
    {"_id": 2, "t": at(3), "m": {"a": 2}, "v": 2},
    {"_id": 3, "t": at(5, 59, 59, 999), "v": [1, {"z": 2}]},
    {"_id": 4, "t": at(7, 0, 1), "m": None, "v": {"p": 1, "q": {"r": None}}},
    {"_id": 5, "t": at(9, 30), "m": "y", "w": "x"},
    {"_id": 6, "t": at(11), "m": [1, {"d": 1, "c": [{"f": 1, "e": 2}]}], "v": 3},
]
FILLED = [CREATE, {"insert": "c", "documents": DOCUMENTS}]
OPTIONS = [
    {}, 1, None, {"timeField": 1}, {"timeField": "t"}, {"timeField": ""}, {"timeField": "a.b"}, {"timeField": "$a"}, {"timeField": "_id"}, {"timeField": None},
    {"metaField": "m"}, *({"timeField": "t", "metaField": name} for name in ("t", "_id", "a.b", "", "$a", 1, None, "m")),
    *({"timeField": "t", "granularity": value} for value in ("seconds", "minutes", "hours", "days", 1, None, "")),
    *({"timeField": "t", "bucketMaxSpanSeconds": value} for value in (1, 3600, 0, -1, "x", None, 10**12, 3600.5)),
    {"timeField": "t", "granularity": "hours", "bucketMaxSpanSeconds": 2592000}, {"timeField": "t", "granularity": "hours", "bucketMaxSpanSeconds": 3600},
    {"timeField": "t", "x": 1}, {"timeField": "t", "bucketRoundingSeconds": 60},
]
WITH = [
    *({"expireAfterSeconds": value} for value in (0, 1, 3600, -1, "x", None, "off", 1.5, Int64(2**40), 2**31, Int64(2**62))), {"capped": True, "size": 1000}, {"size": 1000}, {"max": 1},
    {"validator": {"a": 1}}, {"validator": {}}, {"validationLevel": "strict"}, {"validationAction": "warn"}, {"collation": {"locale": "fr"}}, {"collation": {"locale": "simple"}},
    {"storageEngine": {"wiredTiger": {}}}, {"storageEngine": {}}, {"indexOptionDefaults": {}}, {"idIndex": {"key": {"_id": 1}, "name": "_id_"}}, {"autoIndexId": True}, {"autoIndexId": False},
    {"viewOn": "x"}, {"viewOn": "x", "pipeline": []}, {"pipeline": []}, {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"clusteredIndex": True}, {"clusteredIndex": False}, {"temp": True}, {"flags": 1},
    {"changeStreamPreAndPostImages": {"enabled": True}}, {"changeStreamPreAndPostImages": {"enabled": False}}, {"recordPreImages": True}, {"encryptedFields": {"fields": []}}, {"comment": 1},
]
NO_OWN_SPECIFICATION = "of an index on measurements the collection of buckets keeps no specification of its own"
COUNTED = "MongoDB 6.0.5 counts measurements among those inserted that it has refused"
NO_PLACES = "places in measurements have no indexes here, and $geoNear does not find them"
NO_PARTIAL = "partial filters are about metadata here"
FILTERS = [
    {}, {"_id": 3}, {"t": at(3)}, {"t": {"$gte": at(3), "$lt": at(9)}}, {"t": {"$gt": at(3)}}, {"t": {"$lt": 5}}, {"m": None}, {"m": "y"}, {"m.a": 1}, {"m.a": {"$gt": 0}}, {"m": {"a": 1, "b": "x"}},
    {"m": {"b": "x", "a": 1}}, {"m": {"$exists": False}}, {"m": {"$exists": True}}, {"v": 2}, {"v": {"$gt": 1}}, {"v.z": 2}, {"v.q.r": None}, {"v": None}, {"v": {"$exists": True}}, {"w": "x"}, {"v": {"$type": "array"}},
    {"$or": [{"v": 2}, {"m": "y"}]}, {"$and": [{"v": {"$gte": 1}}, {"t": {"$lt": at(4)}}]}, {"$nor": [{"m": None}]}, {"v": {"$in": [2, 3]}}, {"$expr": {"$gt": ["$v", 1]}}, {"$expr": {"$eq": ["$m.a", 1]}},
    {"v": {"$elemMatch": {"z": 2}}}, {"v": {"$not": {"$gt": 1}}}, {"w": {"$regex": "^x"}}, {"m.1.c.e": 2}, {"_id": {"$gt": 2}, "m": None}, {"control": 1}, {"data": {"$exists": True}}, {"meta": None}, {"$text": {"$search": "x"}},
    {"$where": "1"}, {"t": {"$near": [0, 0]}}, {"$jsonSchema": {"required": ["w"]}}, {"v": {"$foo": 1}},
]
BY_ID = {"$sort": {"_id": 1}}
PIPELINES = [
    [BY_ID], [{"$match": {"m.a": {"$gte": 1}}}, BY_ID], [{"$group": {"_id": "$m", "n": {"$sum": 1}, "last": {"$max": "$t"}}}, BY_ID], [{"$count": "n"}], [{"$sort": {"t": -1}}, {"$limit": 2}, {"$project": {"t": 1}}],
    [BY_ID, {"$project": {"v": 1}}], [BY_ID, {"$project": {"m": 1, "_id": 0}}], [BY_ID, {"$project": {"x": "$m.a"}}], [BY_ID, {"$addFields": {"m": 1}}, {"$project": {"m": 1}}], [BY_ID, {"$unset": ["t", "v", "w"]}],
    [BY_ID, {"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "r", "pipeline": [{"$project": {"v": 1}}]}}, {"$project": {"r": 1}}], [{"$unionWith": "c"}, {"$group": {"_id": "$_id", "n": {"$sum": 1}}}, BY_ID],
    [{"$match": {"t": {"$gte": at(3)}}}, {"$group": {"_id": {"$hour": "$t"}, "n": {"$sum": 1}}}, BY_ID], [{"$facet": {"a": [BY_ID, {"$limit": 1}, {"$project": {"_id": 1}}], "b": [{"$count": "n"}]}}],
    [BY_ID, {"$project": {"m": 1, "_id": 0}}, {"$out": "e"}], [BY_ID, {"$project": {"v": 1}}, {"$merge": "f"}], [{"$sample": {"size": 9}}, {"$count": "n"}], [{"$sortByCount": "$m"}, {"$sort": {"count": 1, "_id": 1}}],
    [{"$setWindowFields": {"sortBy": {"t": 1}, "output": {"n": {"$documentNumber": {}}}}}, {"$project": {"n": 1}}, BY_ID], [{"$indexStats": {}}], [{"$collStats": {"count": {}}}, {"$project": {"count": 1}}],
    [{"$densify": {"field": "t", "range": {"step": 2, "unit": "hour", "bounds": "full"}}}, {"$count": "n"}], [{"$graphLookup": {"from": "c", "startWith": "$_id", "connectFromField": "x", "connectToField": "_id", "as": "r"}}, {"$project": {"n": {"$size": "$r"}}}, BY_ID],
]
UPDATES = [
    *({"q": q, "u": u, "multi": True} for q in ({}, {"m": "y"}, {"m.a": 1}, {"m.a": {"$gt": 0}}, {"m": None}, {"$or": [{"m": "y"}, {"m.a": 2}]}) for u in ({"$set": {"m": "z"}}, {"$set": {"m.a": 9}}, {"$unset": {"m": ""}})),
    {"q": {"m": "y"}, "u": {"$set": {"m": "z"}}}, {"q": {"m": "y"}, "u": {"$set": {"m": "z"}}, "multi": False}, {"q": {"v": 2}, "u": {"$set": {"m": "z"}}, "multi": True}, {"q": {"m": "y"}, "u": {"$set": {"v": 1}}, "multi": True},
    {"q": {"m": "y"}, "u": {"m": "z"}}, {"q": {"m": "y"}, "u": {"m": "z"}, "multi": True}, {"q": {"m": "y"}, "u": [{"$set": {"m": "z"}}], "multi": True}, {"q": {"m": "no"}, "u": {"$set": {"m": "z"}}, "multi": True, "upsert": True},
    {"q": {"t": at(3)}, "u": {"$set": {"m": "z"}}, "multi": True}, {"q": {"_id": 1}, "u": {"$set": {"m": "z"}}, "multi": True}, {"q": {"m": "y"}, "u": {"$set": {"t": at(1)}}, "multi": True}, {"q": {"m": "y"}, "u": {"$rename": {"m": "v"}}, "multi": True},
    {"q": {"m": "y"}, "u": {"$rename": {"v": "m"}}, "multi": True}, {"q": {"m.a": 1}, "u": {"$rename": {"m.a": "m.q"}}, "multi": True}, {"q": {"m.a": 1}, "u": {"$inc": {"m.a": 1}}, "multi": True}, {"q": {"m.a": 1}, "u": {"$push": {"m.p": 1}}, "multi": True},
    {"q": {"$expr": {"$eq": ["$m.a", 1]}}, "u": {"$set": {"m": "z"}}, "multi": True}, {"q": {"$expr": {"$eq": ["$v", 2]}}, "u": {"$set": {"m": "z"}}, "multi": True}, {"q": {"m": "y"}, "u": {"$set": {"m": "z", "v": 1}}, "multi": True}, {"q": {"mm": 1}, "u": {"$set": {"m": 1}}, "multi": True},
    {"q": {"m.a": 1}, "u": {"$set": {"mm": 1}}, "multi": True}, {"q": {"m": "y"}, "u": {}, "multi": True}, {"q": {"m": {"a": 2}}, "u": {"$set": {"m": {"z": 1, "b": 2}}}, "multi": True},
    {"q": {"m.a": 1}, "u": {"$set": {"m.$[x]": 1}}, "multi": True, "arrayFilters": [{"x": 1}]}, {"q": {"$where": "1"}, "u": {"$set": {"m": 1}}, "multi": True}, {"q": {"m": "y"}, "u": {"$set": {"m": "z"}}, "multi": True, "hint": {"m": 1}},
]
DELETES = [
    *({"q": q, "limit": 0} for q in ({}, {"m": "y"}, {"m.a": 1}, {"m": None}, {"m": {"$exists": False}}, {"v": 2}, {"t": at(3)}, {"_id": 1}, {"m.a": 1, "v": 1}, {"$or": [{"m": "y"}, {"m.a": 1}]}, {"$or": [{"m": "y"}, {"v": 1}]}, {"$expr": {"$eq": ["$m.a", 1]}},
        {"$expr": {"$eq": ["$v", 1]}}, {"$expr": {"$eq": ["$$ROOT", 1]}}, {"m": {"$in": ["y", None]}}, {"mm": 1}, {"meta": 1}, {"m": {"$foo": 1}}, {"$nor": [{"m": "y"}]}, {"$jsonSchema": {"required": ["m"]}}, {"m.1.d": 1})),
    {"q": {"m": "y"}, "limit": 1}, {"q": {}, "limit": 1}, {"q": {"v": 2}, "limit": 1}, {"q": {"m": "y"}, "limit": 0, "hint": {"m": 1}},
]
INDEXES = [
    {"m": 1}, {"t": 1}, {"t": -1}, {"m": 1, "t": 1}, {"m.a": 1}, {"m.a": -1, "t": -1}, {"v": 1}, {"m": 1, "v": 1}, {"_id": 1}, {"m": "text"}, {"$**": 1}, {"v": "2dsphere"}, {"t.x": 1}, {"v.x": 1, "t": 1}, {"m": 1, "m.a": 1},
]
KINDS = [{"m": "hashed"}, {"m": "2d"}, {"m": "2dsphere"}, {"m.$**": 1}]
INDEX_OPTIONS = [{"unique": True}, {"sparse": True}, {"expireAfterSeconds": 3600}, {"partialFilterExpression": {"m": 1}}, {"hidden": True}, {"collation": {"locale": "fr"}}, {"background": True}, {"unique": False}, {"v": 1}, {"prepareUnique": True}]
COLL_MODS = [
    *({"timeseries": value} for value in ({"granularity": "minutes"}, {"granularity": "hours"}, {"granularity": "seconds"}, {"granularity": "x"}, {}, 1, None, {"timeField": "x"}, {"bucketMaxSpanSeconds": 1})),
    *({"expireAfterSeconds": value} for value in (1, 0, -1, "off", "x", None, 1.5, Int64(2**40))), {"validator": {"a": 1}}, {"validationLevel": "off"}, {"viewOn": "x", "pipeline": []}, {"pipeline": []}, {"index": {"name": "i", "hidden": True}},
    {"index": {"keyPattern": {"m": 1}, "hidden": True}}, {"index": {"name": "i", "expireAfterSeconds": 5}}, {"changeStreamPreAndPostImages": {"enabled": True}}, {"cappedSize": 100}, {"x": 1}, {},
]
OTHERS = [
    {"validate": "system.buckets.c"}, {"validate": "c"}, {"compact": "c"}, {"reIndex": "c"}, {"convertToCapped": "c", "size": 1000}, {"cloneCollectionAsCapped": "c", "toCollection": "e", "size": 1000}, {"planCacheClear": "c"}, {"planCacheListFilters": "c"},
    admin({"renameCollection": "compat.c", "to": "compat.d"}), admin({"renameCollection": "compat.system.buckets.c", "to": "compat.d"}), admin({"renameCollection": "compat.c", "to": "other.d"}), admin({"renameCollection": "compat.e", "to": "compat.c", "dropTarget": True}), {"create": "c"}, CREATE, {"create": "c", "viewOn": "x"}, {"create": "system.buckets.c"}, {"create": "system.buckets.d"},
    {"createIndexes": "system.buckets.c", "indexes": [{"key": {"meta": 1}, "name": "i"}]}, {"listIndexes": "c"}, {"listIndexes": "system.buckets.c"}, {"dataSize": "compat.c"}, {"findAndModify": "c", "query": {"m": 1}, "update": {"$set": {"m": 2}}}, {"findAndModify": "c", "query": {}, "remove": True},
    {"aggregate": "e", "pipeline": [{"$out": "c"}], "cursor": {}}, {"aggregate": "e", "pipeline": [{"$merge": "c"}], "cursor": {}}, {"aggregate": "e", "pipeline": [{"$merge": {"into": "c", "on": "_id", "whenMatched": "replace"}}], "cursor": {}}, {"aggregate": "e", "pipeline": [{"$out": "system.buckets.c"}], "cursor": {}},
    {"find": "c", "hint": {"$natural": 1}, "sort": {"_id": 1}, "projection": {"v": 1}}, {"find": "c", "hint": {"_id": 1}}, {"find": "c", "hint": {"m": 1}}, {"find": "c", "tailable": True}, {"find": "c", "returnKey": True}, {"find": "c", "showRecordId": True}, {"find": "c", "min": {"t": 1}, "hint": {"t": 1}}, {"find": "c", "projection": {"v.$": 1}, "filter": {"v": 1}},
    {"find": "c", "projection": {"v": {"$slice": 1}}, "sort": {"_id": 1}, "filter": {"_id": 3}}, {"distinct": "c", "key": "m.a", "comment": "in any order"}, {"distinct": "c", "key": "v", "query": {"v": {"$gt": 1}}, "comment": "in any order"}, {"count": "c"}, {"count": "c", "query": {"m.a": {"$gt": 0}}, "limit": 1}, {"count": "c", "query": {"t": {"$gte": at(7)}}}, {"find": "c", "sort": {"t": -1}, "limit": 2, "projection": {"_id": 1}},
    {"find": "c", "skip": 2, "sort": {"t": 1}, "batchSize": 1, "projection": {"_id": 1}}, {"create": "w", "viewOn": "c", "pipeline": [{"$project": {"v": 1}}]}, {"find": "w", "sort": {"_id": 1}}, {"drop": "system.buckets.c"}, {"drop": "c"}, {"drop": "system.views"}, {"insert": "system.buckets.c", "documents": [{"_id": 1}]}, {"update": "system.buckets.c", "updates": [{"q": {"x": 1}, "u": {"$set": {"meta": 1}}}]},
    {"delete": "system.buckets.c", "deletes": [{"q": {"meta": "y"}, "limit": 0}]}, {"dbHash": 1, "collections": ["c"]}, {"explain": {"update": "c", "updates": [{"q": {"m": 1}, "u": {"$set": {"m": 1}}}]}}, {"explain": {"delete": "c", "deletes": [{"q": {"v": 1}, "limit": 0}]}},
]
SEVERAL = [{"_id": 1, "t": at(1)}, {"_id": 2}, {"_id": 3, "t": at(2)}, {"_id": 1, "t": at(3)}]
INSERTS = [
    {"t": at(1), "_id": 1}, {"v": 1}, {"t": None}, {"t": 1}, {"t": "2024-01-01"}, {"t": [at(1)]}, {}, {"t": at(1)}, {"t": at(1), "m": [{"b": 1, "a": 2}]}, {"t": at(1), "_id": [1]}, {"t": at(1), "_id": {"$x": 1}}, {"t": datetime(1960, 1, 1)}, {"t": datetime(2200, 1, 1)}, {"t": at(1), "a.b": 1}, {"t": at(1), "$a": 1}, {"t": at(1), "m.x": 1}, {"t": at(1), "": 1},
    {"t": at(1), "_id": 1, "meta": 1, "data": 2, "control": 3},
]


def inserted(document: dict) -> dict:
    command = {"insert": "c", "documents": [document]}
    return command if isinstance(document.get("t"), datetime) else differs(command, COUNTED)


def of_buckets(key: dict):
    command = {"listIndexes": "system.buckets.c"}
    return differs(command, NO_OWN_SPECIFICATION) if list(key) in (["_id"], ["t.x"]) else command


def created(key: dict):
    command = {"createIndexes": "c", "indexes": [{"key": key, "name": "i"}]}
    return differs(command, NO_PLACES) if key == {"v": "2dsphere"} else command


def anew(*cases):
    for case in cases:
        yield {"dropDatabase": 1}
        yield from case


BLOCKS = [
    script("time-series: create", *anew(*([{"create": "c", "timeseries": options}, LISTED] for options in OPTIONS)), messages=False),
    script("time-series: create with more", *anew(*([{**CREATE, **more}, LISTED] for more in WITH)), messages=False),
    script("time-series: names", *anew(*([{**CREATE, "create": name}, {"listCollections": 1, "nameOnly": True, "filter": {"name": {"$ne": "system.views"}}}] for name in ("system.foo", "a$b", "", 1, "x" * 230, "x.y"))), messages=False),
    script("time-series: buckets", *anew(*([CREATE, {"insert": "c", "documents": [document]}, {**BUCKETS, "projection": {"_id": 0}}] for document in DOCUMENTS)), messages=False),
    *(script(f"time-series: buckets of {granularity}", {"create": "c", "timeseries": {**MEASURED, "granularity": granularity}}, {"insert": "c", "documents": DOCUMENTS[:1]}, {**BUCKETS, "projection": {"_id": 0}}, LISTED) for granularity in ("seconds", "minutes", "hours")),
    script("time-series: inserts", *anew(*([CREATE, inserted(document), FOUND] for document in INSERTS)), messages=False),
    script("time-series: many inserts", CREATE, differs({"insert": "c", "documents": SEVERAL}, COUNTED), {"insert": "c", "ordered": False, "documents": SEVERAL}, FOUND, {"count": "c"}, {"insert": "c", "documents": []}, messages=False),
    script("time-series: filters", *FILLED, *({"find": "c", "filter": query, "sort": {"_id": 1}, "projection": {"t": 0}} for query in FILTERS), *({"count": "c", "query": query} for query in FILTERS if "$text" not in query), messages=False),
    *(script(f"time-series: filters by an index on {' and '.join(key)}", *FILLED, {"createIndexes": "c", "indexes": [{"key": key, "name": "i"}]}, *({"find": "c", "filter": query, "sort": {"_id": 1}, "projection": {"t": 0}} for query in FILTERS), {"find": "c", "filter": {"t": {"$gt": at(4)}}, "hint": key, "sort": {"_id": 1}, "projection": {"_id": 1}}, messages=False)
      for key in ({"m": 1, "t": 1}, {"t": 1}, {"m.a": 1})),
    script("time-series: pipelines", *FILLED, *({"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in PIPELINES), {"find": "e"}, {"find": "f", "sort": {"_id": 1}}, messages=False),
    script("time-series: updates", *anew(*([*FILLED, {"update": "c", "updates": [update]}, FOUND] for update in UPDATES)), messages=False),
    script("time-series: deletes", *anew(*([*FILLED, {"delete": "c", "deletes": [delete]}, FOUND] for delete in DELETES)), messages=False),
    script("time-series: without a meta field", *anew(*([{"create": "c", "timeseries": {"timeField": "t"}}, {"insert": "c", "documents": DOCUMENTS}, case, FOUND] for case in (
        {"find": "c", "sort": {"_id": 1}, "projection": {"m": 1}}, {"delete": "c", "deletes": [{"q": {"m": "y"}, "limit": 0}]}, {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, {"update": "c", "updates": [{"q": {}, "u": {"$set": {"m": 1}}, "multi": True}]}, {"update": "c", "updates": [{"q": {"m": 1}, "u": {"$set": {"m": 1}}, "multi": True}]},
        {"createIndexes": "c", "indexes": [{"key": {"m": 1}, "name": "i"}]}, {"createIndexes": "c", "indexes": [{"key": {"t": 1}, "name": "i"}]}))), messages=False),
    script("time-series: indexes", *anew(*([*FILLED, created(key), {"listIndexes": "c"}, of_buckets(key), FOUND] for key in INDEXES)), messages=False),
    script("time-series: indexes of other kinds", *anew(*([*FILLED, created(key), {"listIndexes": "c"}, of_buckets(key), FOUND] for key in KINDS)), messages=False),
    script("time-series: options of indexes", *anew(*([*FILLED, {"createIndexes": "c", "indexes": [{"key": {"m": 1}, "name": "i", **options}]}, {"listIndexes": "c"}] for options in INDEX_OPTIONS)), messages=False),
    script("time-series: partial indexes", *FILLED, differs({"createIndexes": "c", "indexes": [{"key": {"m": 1}, "name": "i", "partialFilterExpression": {"v": 1}}]}, NO_PARTIAL), messages=False),
    script("time-series: places", *FILLED, differs({"aggregate": "c", "pipeline": [{"$geoNear": {"near": [0, 0], "distanceField": "d"}}], "cursor": {}}, NO_PLACES), messages=False),
    script("time-series: dropped indexes", *anew(*([*FILLED, {"createIndexes": "c", "indexes": [{"key": {"m.a": 1, "t": -1}, "name": "i"}, {"key": {"t": 1}, "name": "j"}]}, {"dropIndexes": "c", "index": which}, {"listIndexes": "c"}] for which in ("i", "*", {"m.a": 1, "t": -1}, {"t": 1}, "no", {"v": 1}, ["i", "j"], "_id_"))), messages=False),
    script("time-series: collMod", *anew(*([CREATE, {"createIndexes": "c", "indexes": [{"key": {"m": 1}, "name": "i"}]}, {"collMod": "c", **change}, LISTED, {"listIndexes": "c"}] for change in COLL_MODS)), messages=False),
    script("time-series: others", *anew(*([*FILLED, {"insert": "e", "documents": [{"_id": 1, "t": at(1)}]}, case, LISTED] for case in OTHERS)), messages=False),
]
