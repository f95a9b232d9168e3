"""Rare cases that once had wrong results: a `$merge`'s order of fields, `$or` and the positional
operator, arguments that two parts of a stage disagree about."""

import datetime

from bson import Decimal128, Int64

from compat.case import commands, expressions, pipelines, projections, script, updates

INF, NAN = float("inf"), float("nan")
MIXED = [{"_id": number, "n": number, "x": number % 3, "a": [number, number + 1], "s": f"s{number}", **({"m": number} if number % 2 else {})}
    for number in range(6)]
OTHERS = [{"_id": 1, "q": 1}, {"_id": 2, "n": 77}, {"_id": 9}]
ARRAYS = [{"_id": 1, "n": 5, "a": [1, 5, 3, 5], "o": [{"k": 1}, {"k": 2}]}, {"_id": 2}, {"_id": 3, "a": 5, "o": {"k": 1}}]
FILTERS = [{"a": 5}, {"$or": [{"a": 5}, {"o.k": 2}]}, {"$or": [{"a": 5}]}, {"$and": [{"a": 5}, {"$or": [{"o.k": 2}, {"n": 1}]}]},
    {"$nor": [{"a": 77}]}, {"$and": [{"a": 5}, {"o.k": 2}]}, {"a": 5, "$or": [{"o.k": 2}, {"n": 5}]}]
ARRAY_FILTERS = [[], [{"x": 5}], [{"x": 5}, {"x": 1}], [{"x": 5, "y": 1}], [{}], [{"X": 5}], [{"": 1}], [{"1": 5}], [{"x": {"$foo": 1}}],
    [{"$expr": {"$eq": [1, 1]}}]]
DAY = datetime.datetime(2020, 1, 1)


def merge(**options):
    return [{"$merge": {"into": "t"} | options}]


BLOCKS = [
    pipelines(
        "stages: $merge", {"c": MIXED, "t": OTHERS}, [{"$merge": "t"}], merge(), merge(whenMatched="merge"), merge(whenMatched="replace"),
        merge(whenMatched="merge", whenNotMatched="discard"), merge(whenMatched="merge", whenNotMatched="fail"), merge(on="_id"),
        merge(whenMatched=[{"$set": {"z": "$$new.n"}}]), merge(let=None), merge(whenNotMatched=None), merge(whenMatched="merge", let=None),
        [{"$project": {"_id": 0, "z": "$n", "b": "$s"}}, {"$sort": {"z": 1}}, {"$limit": 0 + 1}, {"$addFields": {"_id": 9}}, {"$merge": "t"}],
        [{"$merge": {"into": {"db": "compat"}}}], [{"$merge": {"into": {}}}], [{"$merge": {"into": {"coll": ""}}}],
        writes=True,
    ),
    # A variable without a value is none, and does not hide one of the command.
    commands(
        "stages: $merge, its variables", {"c": [{"_id": 1, "n": 1}, {"_id": 2}], "t": []},
        *({"aggregate": "c", "pipeline": [{"$limit": limit}, *merge(into="c", whenMatched=[{"$set": {"r": value}}], **options)], "cursor": {}, **more}
            for limit in (1, 2) for value in ("$$x", "$$new.n", {"$cond": [True, 1, "$$x"]}) for more in ({}, {"let": {"x": 7, "new": {"n": 8}}})
            for options in ({}, {"let": {"x": "$_id"}}, {"let": {"x": "$nope"}}, {"let": {"x": "$nope"}, "whenNotMatched": "discard"},
                {"let": {"x": 1, "new": "$$ROOT"}, "whenNotMatched": "fail"})),
        *({"aggregate": "c", "pipeline": [{"$set": {"_id": 9}}, *merge(into="c", whenMatched=[{"$set": {"r": "$$x"}}], let={"x": "$nope"}, whenNotMatched=mode)],
            "cursor": {}} for mode in ("insert", "discard", "fail")),
        *({"aggregate": "c", "pipeline": merge(whenMatched=mode, let=let), "cursor": {}} for mode in ([{"$set": {"r": 1}}], "merge") for let in (
            {"new": 1}, {"new": "$$CURRENT"}, {"new": "$$nope"}, {"new": "$$ROOT"}, {"new": 1, "9": 1}, {"9": 1}, {"": 1}, {"NOW": 1}, {"a b": 1})),
        writes=True,
    ),
    # A condition on a path that was renamed from a field is tested on that field before; one on its
    # parent is tested after.
    pipelines("renames below a field", [{"_id": 1}, {"_id": 2, "o": 5}, {"_id": 3, "a": [{"c": 1}], "o": 5}, {"_id": 4, "a": {"c": 7}, "o": 6}, {"_id": 5, "a": [], "o": 5}],
        *([{stage: {"a.c": "$o"}}, {"$match": condition}] for stage in ("$addFields", "$project") for condition in (
            {"a.c": 5}, {"a.c": None}, {"a": {}}, {"a.c": 7}, {"a": []}, {"a": None}, {"a.c.d": None}, {"$expr": {"$eq": ["$a.c", 5]}},
            {"$expr": {"$eq": ["$a", []]}}, {"a.c": {"$gt": 5}, "o": 6}, {"$or": [{"a.c": 5}, {"_id": 1}]}))),
    projections("projection positional, leading nowhere", [{"_id": 1, "l": [1, {"x": 1}, [{"x": 2}, 3], {"y": 1}], "d": {"l": [3, {"x": 4}]}}],
        *(({path: value}, {projection: 1}) for path, value in (("l", 1), ("l.x", 1), ("l", [{"x": 2}, 3]), ("l.y", 1), ("d.l", 3), ("d.l.x", 4))
            for projection in ("l.$", "l.x.$", "d.l.$", "d.l.x.$", "d.x.$", "x.l.$")),
        *(({"l": 1}, {"l.x.$": 1, name: {"$literal": 1}}) for name in ("z", "l.z"))),
    updates("updates: what is no number", [{"_id": 1, "n": NAN, "d": Decimal128("NaN"), "l": [NAN, 1], "i": INF}],
        *({operator: {path: by}} for operator in ("$inc", "$mul") for path in ("n", "d", "l.0", "i") for by in (0, 1, 1.5, Decimal128("1"), NAN)),
        {"$set": {"n": NAN}}, {"$min": {"n": NAN}}, {"$max": {"d": 1}}, {"$inc": {"n": 1, "l.1": 0}}, [{"$set": {"n": {"$add": ["$n", 1]}}}]),
    updates("updates: upsert by the empty name", [],
        *({"q": query, "u": update, "upsert": True} for query in ({"": 1}, {"": {"$eq": 1}}, {"": {"$gt": 1}}, {"": 1, "_id": 5}, {"": {"$in": [1]}},
            {"": 1, "$and": [{"": 2}]}, {".": 1}, {".a": 1}) for update in ({"$set": {"b": 1}}, {"_id": 5, "b": 1}, [{"$set": {"_id": 5, "b": 1}}]))),
    pipelines("windows $derivative over one document", [{"_id": 1, "n": 1, "s": "x", "d": DAY}],
        *([{"$setWindowFields": {"sortBy": {by: 1}, "output": {"r": {"$derivative": {"input": of, **unit}, "window": {"documents": window}}}}}]
            for by in ("n", "s", "d", "nope") for of in ("$n", "$nope") for unit in ({}, {"unit": "hour"}) for window in ([0, 0], [-1, 0], [1, 2], ["unbounded", "current"]))),
    updates("updates: positional after $or", ARRAYS, *((query, {"$set": {"a.$": 0}}) for query in FILTERS),
        *((query, {"$set": {"o.$.k": 0}}) for query in FILTERS), *({"q": query, "u": {"$inc": {"a.$": 1}}, "multi": True} for query in FILTERS)),
    commands("projection positional after $or", ARRAYS, *({"find": "c", "filter": query, "projection": {"a.$": 1}} for query in FILTERS)),
    updates("updates: arrayFilters", ARRAYS, *({"q": {"_id": 1}, "u": update, "arrayFilters": filters}
        for update in ({"a": 1}, [{"$set": {"a": 1}}], {"$set": {"a.$[x]": 0}}) for filters in ARRAY_FILTERS)),
    updates("updates: upsertSupplied", ARRAYS, *({"q": {"_id": 1}, "u": {"$set": {"z": 1}}, "upsert": upsert, "upsertSupplied": supplied}
        for upsert in (True, False) for supplied in (True, False, None, 1))),
    pipelines("stages: $lookup", {"c": MIXED, "f": OTHERS},
        *([{"$lookup": {"from": "f", "localField": "x", "foreignField": "q", "as": "r", "let": let}}] for let in ({}, {"v": 1})),
        [{"$lookup": {"from": "", "localField": "x", "foreignField": "q", "as": "r"}}], [{"$lookup": {"from": "", "as": "r", "pipeline": []}}],
        [{"$lookup": {"from": "", "as": "r", "pipeline": [{"$documents": [{"a": 1}]}]}}], [{"$unionWith": {"coll": None, "pipeline": []}}],
        [{"$unionWith": {"coll": "f", "pipeline": None}}],
        [{"$graphLookup": {"from": "f", "startWith": "$n", "connectFromField": "", "connectToField": "_id", "as": "r"}}]),
    pipelines("stages: $densify", MIXED, *([{"$densify": {"field": "n", "range": {"step": step, "bounds": bounds, "unit": unit}}}]
        for step in (0.5, 1, 1.0, 0, None) for bounds in ("full", "foo", [0, 3], [3, 0], [DAY, DAY + datetime.timedelta(2)], None)
        for unit in ("day", "foo"))),
    pipelines("stages: $densify", MIXED, [{"$densify": {"field": None, "range": {"step": 1, "bounds": "full"}}}],
        [{"$densify": {"field": "n", "range": None}}], [{"$densify": {"field": "n", "partitionByFields": None, "range": {"step": 1,
        "bounds": "full"}}}]),
    pipelines("stages: $fill", MIXED, *([{"$fill": {"sortBy": {"n": 1}, "output": {"m": {"method": "locf"}}, name: None}}]
        for name in ("sortBy", "partitionBy", "partitionByFields", "output"))),
    pipelines("stages: $bucketAuto", MIXED, [{"$bucketAuto": {"groupBy": "$n", "buckets": 2, "output": {}}}]),
    expressions("expression $cond", {"$cond": {"$add": [1, 2]}}, {"$cond": {"$nope": 1}}, {"$cond": {}}, {"$cond": {"if": 1, "$then": 1}}),
    expressions("expression $getField", *({"$getField": path} for path in ("$$nope", "$$", "$", "$a.", "$a..b", "$.a", "$a", "$$ROOT", "a.b"))),
    expressions("expression $round", *({name: [number, places]} for name in ("$round", "$trunc") for number in (1, 2.5, Decimal128("1.25"))
        for places in (Int64(2**62), NAN, INF, -INF, 1.5, 101, -21, Decimal128("NaN"), Decimal128("1")))),
    expressions("expression $pow", {"$pow": [0, Int64(2**62)]}, {"$pow": [1, Int64(2**62)]}, {"$pow": [-1, Int64(2**62)]}),
    script("commands: indexes, spelled oddly", {"insert": "c", "documents": [{"_id": 1}]},
        {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "unique": 1}, {"key": {"b": 1}, "name": "b", "unique": 0}]},
        {"listIndexes": "c"}, {"dropIndexes": "c", "index": ["*"]}, {"listIndexes": "c"}, messages=False),
    script("commands: transactions' fields", *({"find": "c", "lsid": lsid, "txnNumber": number, "autocommit": auto, "startTransaction": start}
        for lsid in (None,) for number in (None,) for auto in (None, True, False, 1) for start in (None, True, False, 1)), messages=False),
]
