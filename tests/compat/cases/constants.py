"""Variables of `let`, including `$$CURRENT`; the order of errors of `$merge`; stages that only
other servers support."""

from compat.case import COLLECTION, commands, pipelines

BOUND = [{"CURRENT": {"a": 5}}, {"CURRENT": 1}, {"ROOT": 1}, {"NOW": 1}, {"CLUSTER_TIME": 1}, {"a": "$$CURRENT"}, {"a": "$$ROOT"}, {"a": "$b"}, {"a": {"$add": [1, 2]}},
    {"A": 1}, {"": 1}, {"a.b": 1}, {"a": "$$a"}, {"a": 1, "b": "$$a"}]
READ = {"x": "$$CURRENT.a", "y": "$a", "z": "$$ROOT.a"}
MERGES = [{"let": 1, "on": 1}, {"on": 1, "let": 1}, {"on": [], "let": 1}, {"let": 1, "into": 1}, {"on": 1, "into": 1}, {"on": ["a", "a"], "let": {"x": 1}, "whenMatched": "merge"},
    {"on": ["a", "a"], "whenMatched": [1]}, {"whenNotMatched": "x", "on": 1}, {"on": ["nope"], "let": {"new": 1}, "whenMatched": "merge"},
    {"on": ["nope"], "let": {"new": 1}, "whenMatched": [{"$set": {"a": 1}}]}, {"on": ["nope"], "let": {"a": "$$zz"}, "whenMatched": [{"$set": {"a": 1}}]},
    {"on": ["nope"], "let": {"a": 1}, "whenMatched": [{"$match": {}}]}, {"let": {"a": "$$zz"}, "on": "_id", "whenMatched": [{"$match": {}}]},
    {"whenMatched": "fail", "whenNotMatched": "fail", "on": "nope"}, {"whenMatched": "keepExisting", "whenNotMatched": "discard", "let": {"a": 1}}, {"foo": 1, "on": 1},
    {"whenMatched": "fail", "let": {"a": 1}}, {"whenMatched": "x", "on": 1}]
NOT_HERE = [{"$shardedDataDistribution": operand} for operand in ({}, 1, {"a": 1}, None)]

BLOCKS = [
    commands("let: what commands bind", [{"_id": 1, "a": 1}], *(command for bound in BOUND for command in (
        {"find": COLLECTION, "let": bound, "projection": READ}, {"find": COLLECTION, "let": bound, "filter": {"$expr": {"$eq": ["$a", 1]}}},
        {"find": COLLECTION, "let": bound, "filter": {"$expr": {"$eq": ["$$CURRENT.a", 5]}}},
        {"aggregate": COLLECTION, "let": bound, "pipeline": [{"$project": READ}], "cursor": {}},
        {"aggregate": COLLECTION, "let": bound, "pipeline": [{"$match": {"$expr": {"$gt": ["$a", 2]}}}, {"$group": {"_id": "$a", "n": {"$sum": "$a"}}}], "cursor": {}},
        {"aggregate": COLLECTION, "pipeline": [{"$lookup": {"from": COLLECTION, "let": bound, "pipeline": [{"$project": READ}], "as": "z"}}], "cursor": {}}))),
    commands("let: of writes", [{"_id": 1, "a": 1}], *(command for bound in BOUND for command in (
        {"update": COLLECTION, "updates": [{"q": {"$expr": {"$eq": ["$a", 1]}}, "u": [{"$set": {"z": "$a"}}]}, {"q": {}, "u": {"$set": {"w": 1}}}], "let": bound},
        {"update": COLLECTION, "updates": [{"q": {}, "u": {"$set": {"z": 1}}}, {"q": {}, "u": {"$set": {"w": 1}}}], "let": bound, "ordered": False},
        {"delete": COLLECTION, "deletes": [{"q": {"$expr": {"$eq": ["$a", 5]}}, "limit": 1}], "let": bound},
        {"findAndModify": COLLECTION, "query": {"_id": 1}, "update": [{"$set": {"z": "$a"}}], "let": bound})), writes=True),
    pipelines("stage $merge: what is told first", [{"_id": 1, "a": 1}], *([{"$merge": {"into": "o", **merge}}] for merge in MERGES)),
    commands("stages of others", [{"_id": 1}], *(command for stage in NOT_HERE for command in (
        {"aggregate": COLLECTION, "pipeline": [stage], "cursor": {}}, {"aggregate": 1, "pipeline": [stage], "cursor": {}, "$db": "admin"},
        {"aggregate": COLLECTION, "pipeline": [{"$match": {}}, stage], "cursor": {}})),
        *({"aggregate": "a$x", "pipeline": stages, "cursor": {}} for stages in ([], [{"$match": {"a": 1}}], [{"$group": {"_id": None, "n": {"$sum": 1}}}]))),
]
