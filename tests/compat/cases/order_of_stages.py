"""The order of stages after MongoDB's optimization, indicated by which of two errors occurs; and
statistics over moving windows."""

from bson import Decimal128, Int64

from compat.case import commands, pipelines

POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
# One document, of which this fails.
DOCUMENT = {"_id": 1, "l": [0], "s": [1], "b": [2], "o": {"a": 1}}
FAILS = {"$arrayToObject": "$l"}
BAD = {"$add": [1, "x"]}
IMPOSSIBLE = [{"$expr": BAD}, {"$or": [{"$expr": BAD}, {"a": 1}]}, {"$and": [{"a": 1}, {"$expr": BAD}]}, {"a": 1, "$nor": [{"$expr": {"$and": ["$a", BAD]}}]}]
SEARCH = {"from": "c", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "g"}

# Matches nothing: before a failing stage there is no error.
CONDITIONS = [
    *({"$jsonSchema": schema} for schema in (
        {"required": ["x"]}, {"required": ["s", "x"]}, {"not": {}}, {"not": {"required": ["_id"]}}, {"allOf": [{"required": ["x"]}]}, {"anyOf": [{"required": ["x"]}]},
        {"properties": {"l": {"bsonType": "string"}}}, {"minProperties": 9},
    )),
    {"z": {"$geoWithin": {"$center": [[0, 0], 1]}}}, {"z": {"$geoIntersects": {"$geometry": POLYGON}}}, {"z": {"$size": 1}}, {"z": 1}, {"q.0.b": 1}, {"q.b": 1},
    *({"$expr": {"$eq": ["x", expression]}} for expression in (
        {"$setField": {"field": "x", "input": "$o", "value": 1}}, {"$unsetField": {"field": "x", "input": "$o"}}, {"$getField": {"field": "x", "input": "$o"}}, {"$rand": {}},
        {"$firstN": {"input": "$s", "n": 1}},
    )),
]
WINDOW = {"documents": [-1, "current"]}
PAIRS = [["$n", "$y"], ["$n", "$n"], ["$n", 0.0], ["$n", Decimal128("1")], ["$n", float("nan")]]


def moving(figure, **window):
    return [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {**figure, **window}}}}, {"$project": {"r": 1}}]


def numbers(*values):
    return [{"_id": at, "n": value, "y": at % 2} for at, value in enumerate(values)]


BLOCKS = [
    pipelines(
        "order of stages", [DOCUMENT],
        *([stage, {"$match": condition}] for condition in CONDITIONS for stage in ({"$set": {"q.c": FAILS}}, {"$project": {"q.c": FAILS, "o": 1, "s": 1}})),
        *([{"$set": {"a.c": FAILS}}, {"$redact": "$$KEEP"}, {"$match": {"a.b": {operator: 1}}}] for operator in ("$bitsAnyClear", "$bitsAllSet", "$gt", "$exists")),
        *([{"$unwind": unwind}, {"$sort": sort}, *limit] for unwind in ("$a", {"path": "$a", "preserveNullAndEmptyArrays": True}) for limit in ([], [{"$limit": 1}]) for sort in (
            {"s": 1, "b": 1}, {"a.b": 1, "s": 1, "b": 1},
        )),
        [{"$unwind": "$a"}, {"$unwind": "$x"}, {"$sort": {"s": 1, "b": 1}}], [{"$graphLookup": {**SEARCH, "startWith": FAILS}}, {"$skip": 1}],
        [{"$set": {"q": FAILS}}, {"$graphLookup": SEARCH}, {"$skip": 1}], [{"$set": {"q": FAILS}}, {"$skip": 1}], [{"$skip": 0}, {"$match": {"x": 1, "$expr": FAILS}}],
        *([{"$setWindowFields": {"partitionBy": partition, "sortBy": sort, "output": {}}}] for partition, sort in (
            ("$s.a", {"s.b": 1}), ("$s.a", {"b": 1}), ("$s", {"b": 1}), ("$s", {"s.a": 1}), ("$x", {"s": 1, "b": 1}), (FAILS, {"s": 1, "b": 1}),
        )),
        *([{"$skip": 0}, {"$project": {"r": expression}}] for expression in (
            [FAILS, {"$ifNull": ["$$REMOVE", {"$unsetField": {"field": "c", "input": "x"}}]}], {"$ifNull": [None, {"$setField": {"field": "c", "input": "x", "value": 1}}]},
            {"$cond": [True, {"$unsetField": {"field": "c", "input": "x"}}, 1]},
        )),
    ),
    pipelines(
        "figures of moving windows: the least integers", numbers(Int64(-(2**63)), -3, -1, 2),
        *(moving(figure, window=WINDOW) for figure in ({"$sum": "$n"}, {"$avg": "$n"}, {"$stdDevPop": "$n"}, {"$stdDevSamp": "$n"}, *({"$covarianceSamp": pair} for pair in PAIRS))),
    ),
    pipelines(
        "figures of moving windows: digits", numbers(20, -3, -2, 1.0, 0.1, 1e9, 7, 7.25),
        *(moving({name: "$n"}, window={"documents": [-2, "current"]}) for name in ("$stdDevPop", "$stdDevSamp", "$avg", "$sum")),
        *(moving({name: pair}, window=WINDOW) for name in ("$covariancePop", "$covarianceSamp") for pair in PAIRS),
    ),
    pipelines(
        "figures of moving windows: no numbers", numbers(-1.0, float("inf"), 3, float("nan"), 5, Decimal128("-Infinity"), 6),
        *(moving({name: pair}, **window) for name in ("$covariancePop", "$covarianceSamp") for pair in PAIRS for window in ({}, {"window": WINDOW})),
    ),
    commands(
        "partitions of $densify spelled in several ways", [{"_id": at, "n": n, "s": s} for at, (n, s) in enumerate([(1, "a"), (3, "A"), (6, "a"), (-4, "B"), (9, "b")])],
        *({
            "aggregate": "c", "cursor": {}, "collation": {"locale": "en", "strength": 2},
            "pipeline": [{"$densify": {"field": "n", "range": {"step": 1, "bounds": bounds}, "partitionByFields": ["s"]}}],
        } for bounds in ("full", "partition", [-2, 12], [-5, 0])),
    ),
    commands(
        "constants that cannot be computed", {"c": [{"_id": 1}], "d": []},
        *({"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in (
            *([stage] for stage in (
                {"$project": {"a": BAD}}, {"$set": {"a": BAD}}, {"$group": {"_id": BAD}}, {"$group": {"_id": 1, "x": {"$sum": BAD}}}, {"$replaceRoot": {"newRoot": BAD}}, {"$redact": BAD},
                {"$bucket": {"groupBy": BAD, "boundaries": [1, 2]}}, {"$sortByCount": BAD}, {"$setWindowFields": {"output": {"a": {"$sum": BAD}}}}, {"$setWindowFields": {"partitionBy": BAD, "output": {}}},
                {"$facet": {"x": [{"$project": {"a": BAD}}]}}, {"$unionWith": {"coll": "d", "pipeline": [{"$project": {"a": BAD}}]}},
                {"$lookup": {"from": "d", "pipeline": [{"$project": {"a": BAD}}], "as": "x"}},
            )),
            *([{"$match": condition}] for condition in IMPOSSIBLE),
        )),
        *({name: "c", place: condition, **more} for condition in IMPOSSIBLE for name, place, more in (
            ("find", "filter", {}), ("count", "query", {}), ("distinct", "query", {"key": "a"}), ("findAndModify", "query", {"update": {"a": 1}}),
        )),
        {"find": "c", "projection": {"a": BAD}}, {"update": "c", "updates": [{"q": {"$expr": BAD}, "u": {"a": 1}}]}, {"delete": "c", "deletes": [{"q": {"$or": [{"$expr": BAD}]}, "limit": 1}]},
        {"update": "c", "updates": [{"q": {}, "u": [{"$set": {"a": BAD}}]}]},
        messages=True,
    ),
    commands(
        "projections: which mistake is told first", [],
        *({"find": "c", "filter": {"$expr": "$a"}, "projection": projection} for projection in ({"s": {"$elemMatch": {"a": 1}}, "_id.$": 1}, {"a.$": 1, "b.$": 1}, {"a.$": 1})),
    ),
    commands(
        "duplicate keys of an index with a collation", [{"_id": 1, "a": 5, "b": None}],
        {"insert": "c", "documents": [{"_id": 2, "a": 5, "b": None}]}, {"findAndModify": "c", "query": {"_id": 2}, "update": {"_id": 2, "a": 5.0}, "upsert": True},
        {"insert": "c", "documents": [{"_id": 2, "a": "x", "b": {"c": "y"}}, {"_id": 3, "a": "X", "b": {"c": "Y"}}]},
        setup=[{"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "i", "unique": True, "collation": {"locale": "en", "strength": 2}}]}],
        writes=True, messages=True,
    ),
]  # fmt: skip
