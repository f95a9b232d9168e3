"""Corner cases of pipelines: system variables rebound, scripts that are switched off, internal
names, cursors and operations."""

from bson import Int64

from compat.ask import CURSOR
from compat.case import commands, pipelines, script

DOCUMENTS = [{"_id": i, "a": i, "b": {"a": 10 * i, "c": [i, -i]}, "l": [{"a": 1}, {"a": 2}]} for i in range(3)]
SORTED = {"$sort": {"_id": 1}}


def project(expression):
    return [SORTED, {"$project": {"r": expression}}]


def let(variables, inside):
    return {"$let": {"vars": variables, "in": inside}}


# Stages for internal use, or for later versions. Stages that MongoDB permits but does not document
# are left out.
INTERNAL_STAGES = (
    "$_internalInhibitOptimization", "$_internalSplitPipeline", "$_internalBoundedSort", "$_internalFindAndModifyImageLookup", "$_internalReshardingIterateTransaction", "$_internalReshardingAddResumeId",
    "$_internalDensify", "$_internalChangeStreamUnwindTransaction", "$_internalShardServerInfo", "$_addReshardingResumeId", "$search", "$searchMeta", "$searchBeta", "$listSearchIndexes", "$vectorSearch",
    "$_internalSearchIdLookup", "$_internalSearchMongotRemote", "$_internalStreamingGroup", "$queue", "$backupCursor", "$backupCursorExtend", "$setVariableFromSubPipeline", "$_internalListCollections",
    "$operationMetrics", "$listSampledQueries", "$querySettings", "$score", "$rankFusion", "$changeStreamSplitLargeEvent", "$listClusterCatalog", "$listCachedAndActiveUsers", "$planCacheStats",
)  # fmt: skip
INTERNAL_EXPRESSIONS = (
    "$_testApiVersion", "$_internalFindPositional", "$_internalFindSlice", "$_internalFindElemMatch", "$_internalKeyStringValue", "$_internalOwningShard", "$_internalIndexKey", "$_internalFleBetween",
    "$_internalSchemaType", "$_internalExprEq", "$median", "$percentile", "$bitAnd", "$bitOr", "$createUUID", "$toUUID", "$encStrContains", "$_internalSortKey",
)  # fmt: skip
INTERNAL_FILTERS = ("$_internalSchemaRootDocEq", "$_internalPath", "$_internalSchemaXor", "$_internalEqHash", "$_internalSchemaCond", "$alwaysTrue", "$alwaysFalse", "$sampleRate", "$isFinite")
FUNCTION = {"body": "function(a) { return a; }", "args": ["$a"], "lang": "js"}
ACCUMULATOR = {"init": "function() { return 0; }", "accumulate": "function(s, a) { return s + a; }", "accumulateArgs": ["$a"], "merge": "function(a, b) { return a + b; }", "lang": "js"}


def without(spec, *names, **more):
    return {**{name: value for name, value in spec.items() if name not in names}, **more}


BLOCKS = [
    pipelines(
        "variables rebound", DOCUMENTS,
        *(project(expression) for expression in (
            let({"CURRENT": "$b"}, "$a"), let({"CURRENT": "$b"}, "$$CURRENT.a"), let({"CURRENT": "$b"}, "$$ROOT.a"), let({"CURRENT": "$b.c"}, "$a"), let({"CURRENT": 5}, "$a"), let({"CURRENT": "$l"}, "$a"),
            let({"CURRENT": "$b"}, let({"CURRENT": "$c"}, "$$CURRENT")), let({"CURRENT": "$b", "x": "$a"}, ["$$x", "$a"]), let({"ROOT": "$b"}, "$a"), let({"NOW": 1}, "$$NOW"), let({"REMOVE": 1}, "$$REMOVE"), let({"X": 1}, "$$X"),
            let({"x": "$$ROOT"}, "$$x.b.a"), let({"x": "$$CURRENT"}, "$$x.b.a"), let({"x": "$$REMOVE"}, {"z": "$$x"}), {"$map": {"input": "$l", "as": "CURRENT", "in": "$a"}}, {"$filter": {"input": "$l", "as": "CURRENT", "cond": {"$eq": ["$a", 1]}}},
            {"$reduce": {"input": "$b.c", "initialValue": "$$ROOT.a", "in": {"$add": ["$$value", "$$this", "$a"]}}}, "$$SEARCH_META", "$$SEARCH_META.count", {"$type": "$$SEARCH_META"}, {"$ifNull": ["$$SEARCH_META", 0]}, "$$USER_ROLES", "$$JS_SCOPE", "$$IS_MR",
            "$$PRUNE", "$$KEEP", "$$DESCEND", {"$eq": ["$$DESCEND", "descend"]}, "$$", "$$.", "$$ROOT.", "$$9", "$$_a", "$$äb", let({"ä": 1}, "$$ä"), let({"a.b": 1}, 1), let({"": 1}, 1), let({"_a": 1}, "$$_a"), let({"this": 1}, "$$this"), "$$this", "$$value", {"$type": "$$NOW"})),
        [SORTED, {"$group": {"_id": None, "r": {"$push": let({"CURRENT": "$b"}, "$a")}}}], [{"$redact": let({"CURRENT": "$b"}, {"$cond": [{"$gt": ["$a", 5]}, "$$KEEP", "$$PRUNE"]})}, SORTED],
        [{"$match": {"$expr": let({"CURRENT": "$b"}, {"$eq": ["$a", 10]})}}], [SORTED, {"$replaceRoot": {"newRoot": let({"CURRENT": "$b"}, "$$CURRENT")}}], [{"$match": {"$expr": "$$SEARCH_META"}}],
        [{"$lookup": {"from": "c", "let": {"x": "$$ROOT"}, "pipeline": [{"$match": {"_id": 0}}, {"$project": {"v": "$$x.a", "w": "$$ROOT.a", "s": "$$SEARCH_META"}}], "as": "x"}}, SORTED],
        [SORTED, {"$facet": {"x": [{"$project": {"r": "$$SEARCH_META"}}]}}],
    ),
    pipelines(
        "scripts that are none", DOCUMENTS,
        *(project({"$function": spec}) for spec in (without(FUNCTION, "body"), without(FUNCTION, "args"), without(FUNCTION, "lang"), without(FUNCTION, lang="py"), without(FUNCTION, lang=1), without(FUNCTION, body=1), {}, 1, [], None)),
        *([{"$group": {"_id": None, "r": {"$accumulator": spec}}}] for spec in (*(without(ACCUMULATOR, name) for name in ("init", "accumulate", "accumulateArgs", "merge")), without(ACCUMULATOR, init=1), without(ACCUMULATOR, lang="py"), without(ACCUMULATOR, finalize=1), without(ACCUMULATOR, extra=1), {}, 1, [])),
        [{"$setWindowFields": {"output": {"r": {"$accumulator": ACCUMULATOR}}}}], project({"$accumulator": ACCUMULATOR}), [{"$match": {"_id": 99}}, {"$project": {"r": {"$function": FUNCTION}}}],
    ),
    pipelines(
        "internal names", DOCUMENTS,
        *([{name: spec}] for name in INTERNAL_STAGES for spec in ({}, 1)), *([SORTED, {name: {}}] for name in INTERNAL_STAGES), *(project({name: "$a"}) for name in INTERNAL_EXPRESSIONS),
        *([{"$match": {"a": {name: 1}}}, SORTED] for name in INTERNAL_FILTERS), *([{"$group": {"_id": None, "r": {name: "$a"}}}] for name in INTERNAL_EXPRESSIONS[:6]),
    ),
]


def cursor(batch=2, **options):
    return {"aggregate": "c", "pipeline": [SORTED], "cursor": {"batchSize": batch}, **options}


def more(**options):
    return {"getMore": CURSOR, "collection": "c", **options}


BLOCKS += [
    script(
        "cursors of pipelines",
        {"insert": "c", "documents": [{"_id": i} for i in range(7)]}, {"insert": "d", "documents": [{"_id": 1}]},
        cursor(0), more(batchSize=0), more(batchSize=3), more(batchSize=-1), more(batchSize="x"), more(maxTimeMS=100), more(comment=1), more(nope=1), {"getMore": CURSOR, "collection": "d"}, {"getMore": CURSOR, "collection": ""}, {"getMore": CURSOR}, {"getMore": 1, "collection": "c"},
        {"getMore": "x", "collection": "c"}, {"getMore": Int64(0), "collection": "c"}, {"getMore": Int64(12345), "collection": "c"}, more(term=1), more(), more(),
        cursor(2, noCursorTimeout=True), cursor(2, maxTimeMS=60000), more(), cursor(2), {"killCursors": "c", "cursors": [CURSOR]}, {"killCursors": "c", "cursors": [CURSOR]}, more(), {"killCursors": "d", "cursors": [CURSOR]}, {"killCursors": "c", "cursors": []}, {"killCursors": "c", "cursors": [1]},
        {"killCursors": "c"}, {"killCursors": 1, "cursors": [Int64(1)]}, {"killCursors": "c", "cursors": 1}, {"killCursors": "c", "cursors": [Int64(7), Int64(8)]},
        {"find": "c", "sort": {"_id": 1}, "batchSize": 1, "noCursorTimeout": True}, more(batchSize=2), {"find": "c", "noCursorTimeout": "x"}, {"find": "c", "noCursorTimeout": 1}, {"find": "c", "batchSize": 1, "singleBatch": True}, {"find": "c", "batchSize": 0}, {"drop": "c"}, more(),
        {"insert": "c", "documents": [{"_id": i} for i in range(7)]}, cursor(2), {"dropDatabase": 1}, more(), {"aggregate": 1, "pipeline": [{"$documents": [{"a": i} for i in range(5)]}], "cursor": {"batchSize": 2}}, {"getMore": CURSOR, "collection": "$cmd.aggregate"},
        {"insert": "c", "documents": [{"_id": i} for i in range(7)]}, {"aggregate": "c", "pipeline": [{"$out": "t"}], "cursor": {"batchSize": 0}}, {"aggregate": "c", "pipeline": [], "cursor": {"batchSize": -1}}, {"aggregate": "c", "pipeline": [], "cursor": {"x": 1}}, {"aggregate": "c", "pipeline": [], "cursor": 1},
        messages=False,
    ),
    commands(
        "operations seen by pipelines", DOCUMENTS,
        *({"aggregate": 1, "pipeline": [{"$currentOp": spec}, {"$match": {"never": 1}}], "cursor": {}, "$db": "admin"} for spec in (
            {}, {"allUsers": True}, {"allUsers": 1}, {"idleConnections": True}, {"idleConnections": "x"}, {"idleCursors": True}, {"idleSessions": False}, {"localOps": True}, {"truncateOps": True}, {"backtrace": True}, {"targetAllNodes": True}, {"nope": 1}, 1, [])),
        {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$currentOp": {}}], "cursor": {}, "$db": "admin"}, {"aggregate": 1, "pipeline": [{"$limit": 1}, {"$currentOp": {}}], "cursor": {}, "$db": "admin"},
        {"currentOp": 1}, {"currentOp": 1, "op": "none-such", "$db": "admin"}, {"killOp": 1, "op": "x", "$db": "admin"}, {"killOp": 1, "$db": "admin"}, {"killOp": 1, "op": 99999999, "$db": "admin"}, {"killOp": 1, "op": 1},
    ),
]
