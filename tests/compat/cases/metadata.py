"""`$meta`: what is known about a document beside its fields."""

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
