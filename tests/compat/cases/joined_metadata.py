"""`$meta` behind stages that read other collections, and within their pipelines."""

from compat.case import commands

PLAIN = [{"_id": i, "a": i % 3, "t": ("cat " * (4 - i) + "dog " * i).strip(), "p": [i, i]} for i in range(4)]
OTHER = [{"_id": 10 + i, "k": i, "t": ("dog " * (3 - i) + "fish").strip(), "p": [i, -i]} for i in range(3)]
INDEXES = [
    {"createIndexes": "c", "indexes": [{"key": {"t": "text"}, "name": "t"}, {"key": {"p": "2d"}, "name": "p"}]},
    {"createIndexes": "o", "indexes": [{"key": {"t": "text"}, "name": "t"}, {"key": {"p": "2dsphere"}, "name": "p"}]},
]
VIEWS = [
    {"create": "near", "viewOn": "c", "pipeline": [{"$geoNear": {"near": [1, 1], "distanceField": "d"}}]},
    {"create": "places", "viewOn": "c", "pipeline": [{"$match": {"a": {"$gt": 0}}}]},
    {"create": "all", "viewOn": "c", "pipeline": []},
    {"create": "found", "viewOn": "c", "pipeline": [{"$match": {"$text": {"$search": "cat"}}}]},
    {"create": "scored", "viewOn": "c", "pipeline": [{"$match": {"$text": {"$search": "cat"}}}, {"$addFields": {"s": {"$meta": "textScore"}}}]},
]

SEARCH = {"$match": {"$text": {"$search": "cat"}}}
SEARCH_OTHER = {"$match": {"$text": {"$search": "dog"}}}
NEAR = {"$geoNear": {"near": [2, 2], "distanceField": "d"}}
NEAR_SPHERE = {"$geoNear": {"near": {"type": "Point", "coordinates": [1, 1]}, "distanceField": "d"}}
SCORE, DISTANCE, POINT, KEY = ({"$meta": kind} for kind in ("textScore", "geoNearDistance", "geoNearPoint", "sortKey"))
BY_ID = {"$sort": {"_id": 1}}

LOOKUP = {"$lookup": {"from": "o", "localField": "a", "foreignField": "k", "as": "o"}}
LOOKUP_ALL = {"$lookup": {"from": "o", "pipeline": [{"$project": {"_id": 1}}, BY_ID], "as": "o"}}
GRAPH = {"$graphLookup": {"from": "o", "startWith": "$a", "connectFromField": "k", "connectToField": "k", "as": "o"}}
UNION = {"$unionWith": "o"}
UNWIND = {"$unwind": "$o"}
FACET = {"$facet": {"x": [LOOKUP]}}
BETWEEN = ([LOOKUP], [LOOKUP_ALL], [GRAPH], [UNION], [LOOKUP, UNWIND], [LOOKUP, LOOKUP_ALL], [LOOKUP, {"$group": {"_id": "$a"}}],
           [LOOKUP, {"$match": {"o": {"$ne": []}}}], [LOOKUP, {"$addFields": {"q": 1}}], [LOOKUP, BY_ID, {"$limit": 2}], [BY_ID, {"$limit": 3}, LOOKUP])


def aggregate(*stages, coll="c", **options):
    return {"aggregate": coll, "pipeline": list(stages), "cursor": {}, **options}


def show(*kinds):
    return {"$addFields": {f"m{i}": kind for i, kind in enumerate(kinds)}}


BLOCKS = [
    commands(
        "$meta behind joins", {"c": PLAIN, "o": OTHER},
        *(aggregate(SEARCH, *between, show(SCORE), BY_ID) for between in BETWEEN),
        *(aggregate(SEARCH, *between, {"$sort": {"z": SCORE, "_id": 1}}, {"$project": {"t": 1, "z": SCORE}}) for between in BETWEEN),
        *(aggregate(SEARCH, *between, {"$sort": {"z": SCORE, "_id": 1}}, {"$limit": 2}, {"$project": {"_id": 1}}) for between in BETWEEN),
        *(aggregate(NEAR, *between, show(DISTANCE, POINT), BY_ID) for between in BETWEEN),
        *(aggregate(NEAR, *between, {"$sort": {"z": DISTANCE, "_id": 1}}, show(DISTANCE)) for between in BETWEEN),
        *(aggregate({"$sort": {"a": 1, "_id": -1}}, *between, show(KEY), BY_ID) for between in BETWEEN),
        aggregate(SEARCH, LOOKUP, {"$group": {"_id": SCORE, "n": {"$sum": 1}}}, BY_ID),
        aggregate(SEARCH, LOOKUP, {"$facet": {"x": [BY_ID, show(SCORE)], "y": [{"$sort": {"z": SCORE}}, {"$project": {"_id": 1}}]}}),
        aggregate(SEARCH, {"$facet": {"x": [LOOKUP, BY_ID, show(SCORE)], "y": [BY_ID, {"$project": {"z": SCORE}}]}}),
        aggregate(SEARCH, LOOKUP, {"$redact": {"$cond": [{"$gt": [SCORE, 1]}, "$$KEEP", "$$PRUNE"]}}, BY_ID),
        aggregate(SEARCH, LOOKUP, {"$replaceRoot": {"newRoot": {"_id": "$_id", "s": SCORE}}}, BY_ID),
        aggregate(SEARCH, {"$lookup": {"from": "o", "let": {"s": SCORE}, "pipeline": [{"$project": {"s": "$$s"}}, BY_ID], "as": "o"}}, BY_ID),
        aggregate(SEARCH, {"$lookup": {"from": "o", "pipeline": [SEARCH_OTHER, {"$project": {"s": SCORE}}, BY_ID], "as": "o"}}, BY_ID),
        aggregate(SEARCH, {"$lookup": {"from": "o", "pipeline": [SEARCH_OTHER, LOOKUP_ALL, {"$project": {"s": SCORE}}, BY_ID], "as": "o"}}, show(SCORE), BY_ID),
        aggregate({"$lookup": {"from": "o", "pipeline": [SEARCH_OTHER, {"$sort": {"z": SCORE}}, {"$limit": 1}], "as": "o"}}, BY_ID),
        aggregate({"$lookup": {"from": "o", "localField": "a", "foreignField": "k", "pipeline": [SEARCH_OTHER, {"$project": {"s": SCORE}}], "as": "o"}}, BY_ID),
        aggregate({"$lookup": {"from": "o", "pipeline": [NEAR_SPHERE, {"$project": {"s": DISTANCE}}, BY_ID], "as": "o"}}, BY_ID),
        aggregate({"$lookup": {"from": "o", "let": {"a": "$a"}, "pipeline": [NEAR_SPHERE, {"$match": {"$expr": {"$eq": ["$k", "$$a"]}}}, {"$project": {"s": DISTANCE}}], "as": "o"}}, BY_ID),
        aggregate({"$lookup": {"from": "o", "pipeline": [{"$project": {"s": SCORE}}], "as": "o"}}, BY_ID),
        aggregate(SEARCH, {"$lookup": {"from": "o", "pipeline": [{"$project": {"s": SCORE}}], "as": "o"}}, BY_ID),
        aggregate({"$lookup": {"from": "o", "pipeline": [{"$sort": {"k": 1}}, {"$project": {"s": KEY}}], "as": "o"}}, BY_ID),
        aggregate(LOOKUP, show(SCORE), BY_ID), aggregate(UNION, show(SCORE), BY_ID), aggregate(UNION, show(DISTANCE), BY_ID),
        aggregate({"$unionWith": {"coll": "o", "pipeline": [SEARCH_OTHER]}}, show(SCORE), BY_ID),
        aggregate(SEARCH, {"$unionWith": {"coll": "o", "pipeline": [SEARCH_OTHER]}}, show(SCORE), BY_ID),
        aggregate(SEARCH, {"$unionWith": {"coll": "o", "pipeline": [SEARCH_OTHER]}}, {"$sort": {"z": SCORE, "_id": 1}}, {"$project": {"_id": 1}}),
        aggregate(SEARCH, {"$unionWith": {"coll": "o", "pipeline": [SEARCH_OTHER, show(SCORE)]}}, BY_ID),
        aggregate(NEAR, {"$unionWith": {"coll": "o", "pipeline": [NEAR_SPHERE]}}, show(DISTANCE, POINT), BY_ID),
        aggregate({"$sort": {"_id": 1}}, {"$unionWith": {"coll": "o", "pipeline": [{"$sort": {"k": -1}}]}}, show(KEY), BY_ID),
        aggregate({"$unionWith": {"coll": "o", "pipeline": [{"$project": {"s": SCORE}}]}}, BY_ID),
        aggregate(UNION, SEARCH, BY_ID), aggregate(LOOKUP, SEARCH, BY_ID), aggregate(LOOKUP, NEAR),
        aggregate({"$sample": {"size": 5}}, LOOKUP, {"$match": {"a": 1}}, {"$project": {"r": {"$lte": [{"$meta": "randVal"}, 1]}}}),
        aggregate({"$sort": {"a": 1, "_id": 1}}, FACET, show(KEY)),
        *(aggregate(SEARCH, LOOKUP, show({"$meta": kind}), BY_ID) for kind in ("searchScore", "searchHighlights", "searchScoreDetails", "recordId", "indexKey", "randVal")),
        aggregate(SEARCH, LOOKUP, {"$project": {"s": SCORE}}, BY_ID, batchSize=1) | {"cursor": {"batchSize": 10}},
        setup=INDEXES,
    ),
    commands(
        "$geoNear and $text on views", {"c": PLAIN, "o": OTHER},
        *(aggregate(*stages, coll=view) for view in ("near", "places", "all", "found", "scored") for stages in (
            [BY_ID], [NEAR, BY_ID], [NEAR, show(DISTANCE)], [BY_ID, {"$limit": 2}], [SEARCH, BY_ID], [show(DISTANCE), BY_ID], [show(SCORE), BY_ID],
            [LOOKUP, BY_ID], [{"$sort": {"z": SCORE, "_id": 1}}], [{"$geoNear": {"near": [1, 1], "distanceField": "d", "key": "p"}}],
            [{"$geoNear": {"near": [1, 1], "distanceField": "d", "query": {"a": 1}}}], [{"$count": "n"}],
            [NEAR, LOOKUP, show(DISTANCE)], [SEARCH, LOOKUP, show(SCORE), BY_ID])),
        *({"find": view, **options} for view in ("near", "places", "found", "scored") for options in (
            {"sort": {"_id": 1}}, {"projection": {"z": SCORE}}, {"filter": {"$text": {"$search": "cat"}}, "sort": {"_id": 1}},
            {"filter": {"p": {"$near": [1, 1]}}}, {"filter": {"p": {"$geoWithin": {"$center": [[1, 1], 2]}}}, "sort": {"_id": 1}},
            {"sort": {"z": SCORE, "_id": 1}}, {"projection": {"z": DISTANCE}})),
        *({"count": view, "query": query} for view in ("near", "places", "found") for query in ({"$text": {"$search": "cat"}}, {"p": {"$near": [1, 1]}})),
        *(aggregate({"$lookup": {"from": view, "localField": "_id", "foreignField": "_id", "as": "o"}}, BY_ID) for view in ("near", "places", "found", "scored")),
        *(aggregate({"$lookup": {"from": view, "pipeline": [stage, BY_ID], "as": "o"}}, BY_ID) for view in ("near", "places", "found", "scored") for stage in (NEAR, SEARCH, show(SCORE), show(DISTANCE), {"$match": {"a": 1}})),
        *(aggregate({"$unionWith": {"coll": view, "pipeline": [stage]}}, BY_ID) for view in ("near", "places", "found", "scored") for stage in (NEAR, SEARCH, show(SCORE), show(DISTANCE), {"$sort": {"_id": 1}})),
        *(aggregate({"$unionWith": view}, BY_ID) for view in ("near", "places", "found", "scored")),
        *(aggregate({"$graphLookup": {"from": view, "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "o"}}, BY_ID) for view in ("near", "places", "found", "scored")),
        setup=INDEXES + VIEWS,
    ),
]
