"""`$meta`: metadata of a document."""

from compat.case import commands, differs

DOCUMENTS = [
    {"_id": 1, "a": 3, "b": "x", "list": [1, 5]},
    {"_id": 2, "a": 1, "b": "y", "list": [2, 0]},
    {"_id": 3, "a": 2, "b": "x", "list": []},
]
KINDS = ("textScore", "geoNearDistance", "geoNearPoint", "sortKey", "randVal", "searchScore", "searchHighlights",
         "searchScoreDetails", "timeseriesBucketMinTime", "timeseriesBucketMaxTime", "nope", 1, ["textScore"])


def find(**options):
    return {"find": "c", **options}


def aggregate(*stages, **options):
    return {"aggregate": "c", "pipeline": list(stages), "cursor": {}, **options}


def of(kind):
    return {"$meta": kind}


def each_kind(kind):
    shown = {"z": of(kind)}
    order = {"$sort": {"_id": 1}}
    return (
        find(projection=shown),
        find(projection={**shown, "_id": 1}),
        find(projection={**shown, "b": 0}),
        find(projection=shown, sort={"a": 1}),
        find(sort=shown),
        aggregate({"$project": shown}),
        aggregate({"$project": {**shown, "_id": 0}}),
        aggregate({"$project": {**shown, "b": 0}}),
        aggregate({"$addFields": shown}),
        aggregate({"$sort": shown}),
        aggregate({"$sort": {"a": 1}}, {"$project": shown}),
        aggregate({"$group": {"_id": of(kind)}}),
        aggregate({"$group": {"_id": "$_id"}}, order, {"$project": {"z": {"$type": of(kind)}}}),
        aggregate({"$match": {"$expr": {"$eq": [of(kind), 1]}}}),
        aggregate({"$limit": 5}, {"$match": {"$expr": {"$eq": [of(kind), 1]}}}),
        find(filter={"$expr": {"$eq": [of(kind), 1]}}),
        {"count": "c", "query": {"$expr": {"$eq": [of(kind), 1]}}},
        {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 3}}, "fields": shown},
        {"findAndModify": "c", "query": {"_id": 1}, "update": [{"$set": shown}], "fields": {"z": 1}, "new": True},
    )


BLOCKS = [
    commands("$meta", DOCUMENTS, *(case for kind in KINDS for case in each_kind(kind)), writes=True),
    commands(
        "$meta sort", DOCUMENTS,
        find(sort={"a": {"$meta": "textScore", "b": 1}}), find(sort={"a": {}}), find(sort={"a": {"$foo": "textScore"}}),
        find(sort={"z": of("randVal"), "a": 1}), aggregate({"$sort": {"z": of("randVal")}}, {"$sort": {"a": 1}}),
        aggregate({"$sample": {"size": 5}}, {"$sort": {"_id": 1}}, {"$project": {"z": {"$gt": [of("randVal"), 0]}}}),
        aggregate({"$sample": {"size": 5}}, {"$sort": {"_id": 1}}, {"$addFields": {"z": {"$lte": [of("randVal"), 1]}}}),
    ),
    commands(
        "$meta sortKey", DOCUMENTS,
        *(find(sort=sort, projection={"_id": 1, "z": of("sortKey")}) for sort in (
            {"_id": 1}, {"_id": -1}, {"a": 1}, {"list": 1}, {"list": -1}, {"a": 1, "b": -1}, {"b": 1, "list": -1},
            {"x.y": -1, "_id": 1}, {"$natural": 1}, {"$natural": -1})),
        differs(find(sort={"b": 1, "_id": 1}, projection={"z": of("sortKey")}, collation={"locale": "en", "strength": 1}),
                "the keys of collations are those of a newer ICU"),
        find(sort={"a": 1}, projection={"z": of("sortKey")}, limit=1),
        find(sort={"a": 1}, projection={"z": of("sortKey")}, skip=1),
        find(sort={"a": 1}, projection={"b": of("sortKey"), "a": 1}),
        find(sort={"a": 1}, projection={"b.c": of("sortKey")}),
        find(sort={"a": 1}, projection={"q": {"r": of("sortKey")}}),
        find(sort={"a": 1}, projection={"list": {"$slice": 1}, "z": of("sortKey")}),
        find(sort={"a": 1}, projection={"list": {"$elemMatch": {"$gt": 1}}, "z": of("sortKey")}),
        find(sort={"a": 1}, projection={"z": of("sortKey"), "a": 1, "b": 0}),
        find(sort={"a": 1}, projection={"z": {"$size": of("sortKey")}}),
        *(aggregate({"$sort": {"a": 1}}, *between, {"$project": {"z": of("sortKey")}}) for between in (
            [{"$match": {"a": {"$gt": 1}}}], [{"$addFields": {"q": 1}}], [{"$project": {"a": 1}}], [{"$unset": "a"}],
            [{"$unwind": "$list"}], [{"$replaceRoot": {"newRoot": {"_id": "$a"}}}], [{"$redact": "$$KEEP"}],
            [{"$redact": "$$DESCEND"}], [{"$skip": 1}], [{"$limit": 2}], [{"$group": {"_id": None}}], [{"$count": "n"}],
            [{"$sort": {"b": 1, "_id": 1}}], [{"$bucketAuto": {"groupBy": "$a", "buckets": 1}}],
            [{"$limit": 3}] * 60)),
        differs(aggregate({"$sort": {"a": 1}}, {"$setWindowFields": {
            "sortBy": {"_id": 1}, "output": {"r": {"$documentNumber": {}}}}}, {"$project": {"z": of("sortKey")}}),
            "what $setWindowFields sorts by is not shown; documents keep the key of the $sort before"),
        aggregate({"$sort": {"a": 1}}, {"$group": {"_id": None, "z": {"$push": of("sortKey")}}}),
        aggregate({"$sort": {"a": 1}}, {"$facet": {"x": [{"$project": {"z": of("sortKey")}}], "y": [{"$limit": 1}]}}),
        aggregate({"$facet": {"x": [{"$sort": {"a": 1}}, {"$project": {"z": of("sortKey")}}]}}),
        aggregate({"$sort": {"a": 1}}, {"$match": {"$expr": {"$eq": [of("sortKey"), [1]]}}}),
    ),
]

BOUNDED = [{"_id": i, "a": i % 4, "b": 5 - i, "list": [i, -i], "s": "xyzXYZ"[i]} for i in range(6)]
INDEXES = {"createIndexes": "c", "indexes": [
    {"key": {"a": 1, "b": -1}, "name": "a_b"},
    {"key": {"a": 1}, "name": "a_1"},
    {"key": {"list": 1}, "name": "list_1"},
    {"key": {"s": 1}, "name": "s_en", "collation": {"locale": "en"}},
]}
ON_A = {"hint": {"a": 1}}
KEYS = {"projection": {"_id": 1}}
# Arrays are in no order that an index of MariaDB has.
SORTED_LIST = {"hint": {"list": 1}, "sort": {"_id": 1}, **KEYS}

BLOCKS += [
    commands(
        "find min and max", BOUNDED,
        find(min={"a": 1}), find(max={"a": 1}), find(min={"a": 1}, **ON_A, **KEYS), find(max={"a": 2}, **ON_A, **KEYS),
        find(min={"a": 1}, max={"a": 2}, **ON_A, **KEYS), find(min={"a": 1}, max={"a": 2}, hint="a_1", **KEYS),
        find(min={"a": 3}, max={"a": 2}, **ON_A), find(min={"a": 2}, max={"a": 2}, **ON_A), find(min={"b": 1}, **ON_A),
        find(min={"a": 1, "b": 1}, **ON_A), find(min={"a": 1}, max={"b": 1}, **ON_A),
        find(min={"a": 1, "b": 4}, hint="a_b", **KEYS), find(min={"a": 1, "b": 4}, max={"a": 3, "b": 9}, hint="a_b", **KEYS),
        find(min={"a": 1}, hint="a_b"), find(min={"b": 4, "a": 1}, hint="a_b"), find(min={"a": 1}, hint={"x": 1}),
        find(min={"a": 1}, hint="nope"), find(min={"a": 1}, hint={"$natural": 1}), find(min={"a": {"$gt": 1}}, **ON_A),
        find(min={"a": "x"}, **ON_A), find(max={"a": "x"}, sort={"_id": 1}, **ON_A, **KEYS),
        find(min={"a": 1}, filter={"b": {"$gt": 1}}, sort={"b": 1}, **ON_A, **KEYS),
        find(min={"a": 1}, sort={"a": -1, "_id": 1}, **ON_A, **KEYS), find(min={"_id": 2}, hint={"_id": 1}, **KEYS),
        find(max={"_id": 2}, hint="_id_", **KEYS), find(min={"_id": 2}, max={"_id": 4}, hint={"_id": 1}, sort={"_id": -1}, **KEYS),
        find(min={"list": 2}, **SORTED_LIST), find(min={"list": -2}, max={"list": 3}, **SORTED_LIST),
        find(min={"s": "y"}, hint="s_en"), find(min={"s": "y"}, hint="s_en", collation={"locale": "en"}, **KEYS),
        find(min={"s": 1}, hint="s_en", sort={"_id": 1}, **KEYS), find(min={}, **ON_A, sort={"_id": 1}, **KEYS),
        find(min={}, max={}, sort={"_id": 1}), find(min={"a": 1}, max={}, sort={"_id": 1}, **ON_A), find(min=1), find(max=None),
        find(min={"a": 0}, skip=1, limit=2, **ON_A, **KEYS), find(min={"a": 1}, limit=2, batchSize=1, **ON_A, **KEYS),
        {"find": "none", "min": {"a": 1}}, {"find": "none", "min": {"a": 1}, "max": {"b": 1}},
        setup=[INDEXES],
    ),
    commands(
        "find returnKey and showRecordId", BOUNDED,
        find(returnKey=True), find(returnKey=True, **ON_A), find(returnKey=True, hint="a_b"), find(returnKey=True, filter={"_id": 3}),
        find(returnKey=True, filter={"_id": {"$gt": 3}}), find(returnKey=True, projection={"a": 1}, **ON_A),
        find(returnKey=True, projection={"a": 0}, **ON_A), find(returnKey=True, sort={"b": 1}, **ON_A),
        find(returnKey=True, sort={"a": 1}, projection={"z": of("sortKey")}, **ON_A), find(returnKey=True, min={"a": 2}, **ON_A),
        find(returnKey=True, showRecordId=True, **ON_A), find(returnKey="x"), find(showRecordId=1), find(returnKey=False),
        find(showRecordId=True), find(showRecordId=True, projection={"a": 1}), find(showRecordId=True, projection={"a": 0}),
        find(showRecordId=True, filter={"_id": 3}), find(showRecordId=True, sort={"b": 1}, limit=2),
        find(showRecordId=True, skip=1, limit=1, projection={"_id": 0, "a": 1}), find(showRecordId=True, batchSize=2),
        {"find": "none", "showRecordId": True}, {"find": "none", "returnKey": True},
        setup=[INDEXES],
    ),
    commands(
        "$meta recordId and indexKey", BOUNDED,
        *(case for kind in ("recordId", "indexKey") for case in (
            find(projection={"z": of(kind)}), find(projection={"z": of(kind), "a": 1}), find(projection={"z": of(kind), "a": 0}),
            find(projection={"z": of(kind)}, sort={"b": 1}), find(projection={"z": of(kind), "a": 1}, **ON_A),
            find(filter={"_id": 3}, projection={"z": of(kind)}), find(filter={"_id": {"$gt": 3}}, projection={"z": of(kind)}),
            find(sort={"z": of(kind)}), find(filter={"$expr": {"$eq": [of(kind), 1]}}),
            aggregate({"$project": {"z": of(kind)}}), aggregate({"$match": {"b": 3}}, {"$project": {"z": of(kind)}}),
            aggregate({"$match": {"b": 3}}, {"$project": {"z": of(kind)}}, {"$addFields": {"y": of(kind)}}),
            aggregate({"$match": {"b": 3}}, {"$addFields": {"z": of(kind)}}), aggregate({"$project": {"z": of(kind), "a": 0}}),
            aggregate({"$project": {"_id": 0, "z": of(kind)}}), aggregate({"$project": {"z": {"y": of(kind)}}}),
            aggregate({"$sort": {"b": 1}}, {"$project": {"z": of(kind)}}), aggregate({"$limit": 1}, {"$project": {"z": of(kind)}}),
            aggregate({"$group": {"_id": of(kind)}}), aggregate({"$match": {"$expr": {"$eq": [of(kind), 1]}}}),
            {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}, "fields": {"z": of(kind)}})),
        aggregate({"$match": {"b": 3}}, {"$project": {"z": {"$add": [1, of("recordId")]}}}),
        setup=[INDEXES],
    ),
]
