"""The first error of a pipeline: MongoDB checks all stages' names and targets before it parses any
of them."""

from bson import Decimal128, Int64

from compat.case import commands, expressions, filters, pipelines

BROKEN = {"$match": 1}
LOOKUP = {"from": "few", "localField": "n", "foreignField": "_id", "let": {"x": "$n"}, "pipeline": [{"$project": {"d": 1}}], "as": "r"}
GRAPH = {"from": "c", "startWith": "$n", "connectFromField": "n", "connectToField": "_id", "as": "r", "maxDepth": 2, "depthField": "d", "restrictSearchWithMatch": {"n": 1}}
MERGE = {"into": "out", "on": "_id", "whenMatched": "merge", "whenNotMatched": "insert"}
NEAR = {"near": [0, 0], "distanceField": "d", "key": "p", "query": {}, "includeLocs": "l", "maxDistance": 1, "distanceMultiplier": 1}
STATS = ("count", "latencyStats", "queryExecStats", "storageStats")


def without(spec, *names):
    return {name: value for name, value in spec.items() if name not in names}


BLOCKS = [
    pipelines(
        "mistakes behind a broken stage", {"c": [{"_id": 1, "n": 1}], "few": [{"_id": 1, "d": 1}]},
        *([BROKEN, stage] for stage in (
            {"$foo": 1}, {"$_internalFoo": 1}, {"$a": 1, "b": 2}, {}, {"$lookup": {"from": ""}}, {"$lookup": {"from": "few", "pipeline": 1}}, {"$lookup": {"from": "few", "pipeline": [{"$foo": 1}]}},
            {"$graphLookup": {"from": ""}}, {"$unionWith": {"coll": "a", "pipeline": [{"$foo": 1}]}}, {"$unionWith": {"pipeline": [1]}}, {"$facet": {"a": [BROKEN, {"$foo": 1}]}}, {"$out": 1},
            {"$out": {"db": 1, "coll": "x"}}, {"$out": {"db": "x", "coll": []}}, {"$merge": 1}, {"$merge": {"into": ""}}, {"$currentOp": 1}, {"$collStats": 1}, {"$changeStream": 1}, {"$limit": -1},
        )),
        [BROKEN, 1], [BROKEN, {"$out": "x"}, {"$limit": 1}], [{"$facet": {"a": [BROKEN, {"$foo": 1}]}}], [BROKEN, {"$facet": {"a": [{"$out": "x"}]}}],
        messages=False,
    ),
    pipelines(
        "mistakes in $lookup and its like", {"c": [{"_id": 1, "n": 1}], "few": [{"_id": 1, "d": 1}]},
        *([{"$lookup": {**LOOKUP, **changed}}] for changed in (
            {"let": None, "pipeline": ""}, {"let": None}, {"let": 1, "pipeline": [{"$foo": 1}]}, {"from": "", "localField": 0}, {"from": "", "pipeline": None}, {"foreignField": ""}, {"localField": ""},
            {"localField": "", "foreignField": ""}, {"localField": "", "as": "$x"}, {"localField": "$a", "foreignField": ""}, {"localField": 1, "pipeline": 1}, {"localField": 1, "pipeline": [1]},
            {"as": "", "pipeline": 1}, {"from": 1, "pipeline": 1}, {"let": {"X": 1}, "pipeline": [{"$foo": 1}]}, {"as": 1, "foreignField": 2}, {"as": "$a", "localField": "$b"},
        )),
        *([{"$lookup": spec}] for spec in ({"from": "", "as": 1}, {"foo": 1}, {"from": "few", "foo": "x"}, {"from": "few", "pipeline": 1, "foo": "x"})),
        *([{"$graphLookup": {**changed, **without(GRAPH, *changed)}}] for changed in (
            {"from": "", "as": 1}, {"as": 1, "from": ""}, {"depthField": "", "maxDepth": "x"}, {"maxDepth": "x", "depthField": ""}, {"depthField": ""}, {"restrictSearchWithMatch": 1, "depthField": "$n"},
            {"startWith": {"$foo": 1}, "from": ""}, {"as": "", "connectToField": ""},
        )),
        [{"$graphLookup": {"from": ""}}], [{"$graphLookup": {"as": "", "depthField": ""}}], [{"$unionWith": {"coll": "few", "pipeline": [1]}}], [{"$unionWith": {"pipeline": [{"$foo": 1}]}}],
        *([{"$merge": {**MERGE, **changed}}] for changed in (
            {"on": "", "let": "x"}, {"on": "$n", "whenNotMatched": 1}, {"on": "$n", "whenNotMatched": "x"}, {"on": "", "whenMatched": "x"}, {"on": "", "whenMatched": 1}, {"on": ["$a"], "foo": 1},
            {"into": {"db": 1}, "foo": 1}, {"on": "$x", "whenMatched": [{"$foo": 1}]}, {"on": "$x", "whenMatched": "fail", "whenNotMatched": "fail"}, {"on": "$x"}, {"on": ["$x"]},
        )),
        [{"$merge": {"on": "$x"}}], [{"$merge": {"let": {"x": 1}}}],
        *([{"$geoNear": {**NEAR, **changed}}] for changed in (
            {"near": 0, "query": 1}, {"near": -1, "distanceField": 0}, {"near": "$n", "distanceMultiplier": None}, {"key": "", "query": [1]}, {"key": "$n", "maxDistance": [1]}, {"key": 0, "includeLocs": 1},
            {"near": "", "key": ""}, {"near": ""}, {"key": "$n"}, {"near": 0, "includeLocs": ""},
        )),
    ),
    pipelines(
        "mistakes in stages that come first", [{"_id": 1}],
        *([{"$collStats": {name: value}}] for name in STATS for value in (1, [], "x", {"a": {"b": 1}} if name != "storageStats" else 2)),
        *([{"$collStats": {"latencyStats": value}}] for value in ({"histograms": 1}, {"a": 1})),
        *([{"$collStats": {"storageStats": {name: value}}}] for name in ("scale", "verbose") for value in (0, -1, "x", [])),
        *([{"$collStats": {name: None for name in names}}] for names in (STATS[:3], STATS[:1])), [{"$collStats": {"foo": 1}}], [{"$collStats": 1}],
        *([{"$changeStream": spec}] for spec in (1, {}, {"foo": 1}, {"fullDocument": "x"}, {"fullDocument": 1}, {"fullDocumentBeforeChange": "x"}, {"resumeAfter": 1}, {"allChangesForCluster": 1})),
        *([{"$limit": 1}, {name: spec}] for name in ("$indexStats", "$collStats", "$changeStream", "$planCacheStats", "$listCatalog") for spec in (1, {}, {"a": 1})),
        *([{"$currentOp": {"allUsers": value}}] for value in (1, True)), [{"$currentOp": {"idleConnections": 1}}], [{"$listLocalSessions": 1}], [{"$indexStats": {}, "$limit": 1}],
    ),
    pipelines(
        "keys of $group made of constants", [{"_id": 1, "v": 2}, {"_id": 2, "v": 3}],
        *([{"$group": {"_id": key}}, {"$sort": {"_id": 1}}] for key in (
            {"a": {"b": 1}}, {"a": {"b": True}}, {"a": {"b": "$v", "c": 1}}, {"a": {"b": {"c": 0}}}, {"a": {"b": [1, {"c": 1}]}}, {"a": 1}, {"a": True}, {"a": "$v", "b": 1}, {"a": {"$literal": 1}},
        )),
        *([{"$group": {"_id": 1, "r": {name: {"output": "$v", "sortBy": order}}}}] for name in ("$top", "$bottom") for order in ([], [1], [1, 2], ["a"], [None], [{"a": 1}])),
    ),
    expressions(
        "numbers beyond reach",
        *({name: value} for name in ("$asinh", "$acosh") for value in (Int64(2**62), 1e300, 1e9, 2.5e8, 3.0, 1.5, Decimal128("12"))), *({"$asinh": value} for value in (-1e300, -0.0, 1e-9, -1.5)),
        *({"$toLong": {"$dateFromParts": {"year": 2020, name: Int64(value)}}} for name in ("second", "millisecond") for value in (
            2**53, 2**54, -(2**54), 9223372036854775, 9223372036854776, 9223372036854,
        )),
    ),
    filters("elements of $all", [{"_id": 1, "a": [{"$not": 1}, 2]}], *({"a": {"$all": [element]}} for element in ({"$not": 1}, {"$not": {}}, {"$gt": 1}, {"$foo": 1}))),
    commands(
        "exclusions with expressions", [{"_id": 1, "a": {"b": 1}}],
        *({"find": "c", "projection": projection} for projection in (
            {"b": 0, "a": {"$foo": 1}}, {"a": 0, "a.b": {"x": {"$add": [1, 2]}}}, {"b": 0, "a": {"$literal": 1}}, {"b": 0, "a": {"$add": ["x"]}}, {"b": 0, "a": {"$add": [1, 2]}}, {"a": 0, "a.b.c": {"$literal": {}}}, {"a": 0, "a.b.c": {"x": 1}},
        )),
        *({"aggregate": "c", "pipeline": [{"$project": projection}], "cursor": {}} for projection in ({"b": 0, "a": {"$elemMatch": {"x": 1}}}, {"b": 0, "a": {"$foo": 1}}, {"b": 0, "a": {"$add": [1]}})),
    ),
]  # fmt: skip
