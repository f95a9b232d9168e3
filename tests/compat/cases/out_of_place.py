"""Stages and operators in invalid positions, and two errors at once: which is reported. Corner
cases of paths and of text search."""

from bson import Code, Regex

from compat.case import commands, filters, pipelines, script, updates

SOME = [{"_id": 1, "a": 1, "b": [1, 2]}, {"_id": 2, "a": [1, 2, 3]}, {"_id": 3, "a": {"": 1}}, {"_id": 4, "a": [[1], 2]}, {"_id": 5, "a": [{"": 1}]},
        {"_id": 6, "": 1}, {"_id": 7, "": [1]}, {"_id": 8, "": {"": 1}}, {"_id": 9, "a": [{"b": [1, 2]}]}, {"_id": 10, "a": {"b": [1, [5]]}}, {"_id": 11, "a": None},
        {"_id": 12, "a": []}, {"_id": 13, "a": [[]]}, {"_id": 14, "a": [{"b": {"": [1]}}]}]
WORDS = [{"_id": 1, "t": "red fox", "n": 1}, {"_id": 2, "t": "red dog", "n": 2}, {"_id": 3, "t": "fox"}]
NEAR = ({"$near": 1}, {"$near": [0, 0]}, {"$geoNear": 1}, {"$nearSphere": 1}, {"$near": {"$geometry": {"type": "Point", "coordinates": [1, 2]}}})
TEXT = {"$text": {"$search": "fox"}}
IDS = ([1], [], Regex("x"), {"$x": 1}, 9, None, {"x": [1]})
LIMITED = {"$facet": {"z": [{"$limit": 1}]}}
WITHIN = ({"$lookup": {"from": "c", "as": "x", "pipeline": [LIMITED]}}, {"$unionWith": {"coll": "c", "pipeline": [LIMITED]}},
          {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [LIMITED]}}]}}, {"$lookup": {"pipeline": [{"$documents": []}], "as": "x"}},
          {"$unionWith": {"pipeline": [{"$documents": []}]}}, {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$indexStats": {}}]}},
          {"$facet": 1}, {"$facet": {}}, {"$facet": {"x": 1}}, {"$facet": {"$x": []}}, {"$facet": {"x": [1]}}, {"$facet": {"x": [{}]}}, {"$facet": {"x.y": []}}, {"$geoNear": {}}, {"$geoNear": 1},
          {"$out": 1}, {"$merge": 1}, {"$out": "x"}, {"$merge": {"into": "x", "on": ["_id", "_id"]}}, {"$collStats": {}}, {"$indexStats": {}})
STRICT = {"apiVersion": "1", "apiStrict": True}
FILL = {"$fill": {"output": {"x": {"value": 1}}}}


def strictly(*stages):
    return ({"aggregate": "c", "pipeline": [stage], "cursor": {}, **STRICT} for stage in stages)


BLOCKS = [
    filters("paths ending in a dot", SOME,
        *({path: test} for path in ("a.", "a..", ".", "a.b.", "a.0.", "a.b..") for test in (1, 5, None, [1, 2, 3], [], {"$exists": True}, {"$exists": False}, {"$size": 2}, {"$type": "array"},
            {"$gt": 1}, {"$ne": 1}, {"$in": [1, None]}, {"$not": {"$gt": 2}}, {"$elemMatch": {"$gt": 2}}, {"$all": [1]}))),
    commands("scripts refused", SOME,
        {"find": "c", "filter": {"$where": "1"}}, {"find": "c", "filter": {"$where": Code("1")}}, {"find": "c", "filter": {"$where": 1}}, {"find": "c", "filter": {"$or": [{"$where": "1"}]}},
        {"count": "c", "query": {"$where": "1"}}, {"distinct": "c", "key": "a", "query": {"$where": "1"}}, {"delete": "c", "deletes": [{"q": {"$where": "1"}, "limit": 0}]},
        {"update": "c", "updates": [{"q": {"$where": "1"}, "u": {"$set": {"a": 1}}}]}, {"findAndModify": "c", "query": {"$where": "1"}, "remove": True},
        {"aggregate": "c", "pipeline": [{"$match": {"$where": "1"}}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$match": {"$where": 1}}], "cursor": {}},
        {"create": "d", "validator": {"$where": "1"}}, {"find": "c", "projection": {"a": {"$elemMatch": {"$where": "1"}}}}),
    commands("by distance where none can be", SOME, *(case for near in NEAR for case in (
        {"find": "c", "filter": near}, {"aggregate": "c", "pipeline": [{"$match": {"a": near}}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$match": near}], "cursor": {}},
        {"create": "d", "validator": near}, {"create": "d", "validator": {"a": near}}, {"find": "c", "projection": {"b": {"$elemMatch": near}}},
        {"find": "c", "projection": {"b": {"$elemMatch": {"x": near}}}}, {"update": "c", "updates": [{"q": {}, "u": {"$pull": {"b": near}}}]},
        {"update": "c", "updates": [{"q": {}, "u": {"$pull": {"b": {"x": near}}}}]},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"b.$[x]": 1}}, "arrayFilters": [{"x": near}]}]}))),
    commands("by words where none can be", SOME,
        *({"update": "c", "updates": [{"q": {"_id": 1}, "u": update, "arrayFilters": [TEXT]}]} for update in ({"$set": {"b.$[x]": 1}}, {"$set": {"a": 1}}, {"a": 1})),
        *({"aggregate": "c", "pipeline": stages, "cursor": {}} for stages in ([{"$match": TEXT}], [{"$limit": 1}, {"$match": TEXT}], [{"$limit": 1}, {"$match": {"$and": [TEXT]}}],
            [{"$facet": {"x": [{"$match": TEXT}]}}], [{"$facet": {"x": [{"$limit": 1}, {"$match": TEXT}]}}], [{"$limit": 1}, {"$match": {"$text": 1}}]))),
    commands("a partial index of words", WORDS,
        *({"find": "c", "filter": query} for query in (TEXT, {**TEXT, "n": 1}, {**TEXT, "n": 2}, {**TEXT, "n": {"$in": [1]}}, {**TEXT, "_id": 1}, {"$and": [TEXT, {"n": 1}]})),
        {"aggregate": "c", "pipeline": [{"$match": TEXT}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$match": {**TEXT, "n": 1}}], "cursor": {}}, {"count": "c", "query": TEXT},
        setup=[{"createIndexes": "c", "indexes": [{"key": {"t": "text"}, "name": "t", "partialFilterExpression": {"n": 1}}]}]),
    updates("upserts with an _id that cannot be", SOME,
        *({"q": {**query, "nope": 1}, "u": update, "upsert": True} for query in ({}, {"_id": 70}, {"_id": {"$gt": 50}}) for id in IDS
            for update in ({"_id": id}, [{"$set": {"_id": {"$literal": id}}}], {"$set": {"_id": id}}))),
    updates("pipelines that are none", SOME,
        *({"q": {"_id": 1}, "u": stages} for stages in ([{"$foo": 1}], [{"$set": {"a": 1}}, {"$foo": 1}], [{"foo": 1}], [{"$facet": {}}], [{"$facet": {"x": [1]}}], [{"$search": {}}], [{"$match": {}}])),
        {"q": {"_id": 1}, "u": [{"$unset": "a"}, {"$unset": 1}]}),
    pipelines("what a facet cannot have", SOME, *([{"$facet": {"q": stages}}] for stage in WITHIN for stages in ([stage], [{"$limit": 1}, stage])), [{"$facet": {"q": [LIMITED, {"$limit": 0}]}}], [{"$facet": {"x": ["a"]}}],
        [{"$limit": 1}, {"$facet": {"x": [[]]}}]),
    pipelines("keys of several operators", SOME,
        *([{stage: key}] if stage == "$sortByCount" else [{stage: {"_id": key}}] for stage in ("$group", "$sortByCount")
            for key in ({"$add": [1, "$a"], "x": 1}, {"x": 1, "$add": [1]}, {"$foo": 1, "x": 1}, {"$literal": 1, "x": 1}, {"$add": [1], "$abs": 1}, {"x": "$a", "$add": [1]}))),
    pipelines("positional in the middle", SOME, *([{"$project": project}] for project in ({"b.$.c": 1}, {"b.$.c": 0}, {"b.$": 1}, {"x": {"b.$.c": 1}}, {"b.$.c": "$a"}, {"a.$.": 1}, {"$.b": 1}))),
    script("outside the stable interface", {"insert": "c", "documents": [{"_id": 1}]},
        *strictly(FILL, {"$facet": {"a": [FILL]}}, {"$unionWith": {"coll": "c", "pipeline": [FILL]}}, {"$collStats": {"latencyStats": {}}}, {"$collStats": {"count": {}, "storageStats": {}}},
            {"$collStats": {"count": {}}}, {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$collStats": {"latencyStats": {}}}]}}, {"$_internalInhibitOptimization": {}}),
        {"create": "d", "storageEngine": {}, **STRICT}, {"create": "d", "indexOptionDefaults": {}, **STRICT}, {"create": "d", "changeStreamPreAndPostImages": {"enabled": False}, **STRICT}),
    commands("a hint and the natural order", SOME,
        *({"find": "c", "hint": hint, "sort": {"$natural": direction}} for hint in ("_id_", {"_id": 1}, {"$natural": 1}, {"$natural": -1}, {}, "nope") for direction in (1, -1)),
        {"find": "c", "hint": "_id_", "sort": {"$natural": 1}, "filter": {"_id": 1}}, {"find": "c", "options": 1}, {"find": "c", "options": {}}),
    script("explanations refused", {"insert": "c", "documents": [{"_id": 1}]},
        *({"explain": {"aggregate": "c", "pipeline": [], **more}} for more in ({}, {"explain": True}, {"cursor": {}, "explain": True}, {"cursor": {}, "explain": False})),
        {"create": "v", "viewOn": "c", "pipeline": []}, {"mapReduce": "v", "map": "f", "reduce": "f", "out": {"inline": 1}},
        *({"findAndModify": "c", "query": {"_id": 9}, "remove": True, "batchSize": size} for size in (None, 1, -1, 1.5, "x")),
        {"drop": ".x"}, {"create": "system.js"}, {"drop": "system.js"}, {"create": "system.users"}, {"drop": "system.users"}),
]
