"""Differences that random commands have found: order of errors, constants in calls, paths of joins,
conditions that move."""

from bson import DatetimeMS, Decimal128, Int64

from compat.case import COLLECTION, commands, differs, expressions, filters, over_values, pipelines, updates

LEAST, MOST = Int64(-(2**63)), Int64(2**63 - 1)
FAR = [1e300, float("-inf"), float("nan"), 2.0**63, -(2.0**63), 9.3e18, Decimal128("1E+30"), Decimal128("NaN")]
JOINED = [[{}, {"a": "1"}], [{}], [], {}, None, [1], {"a": []}, [{"a": []}], [{"a": None}], [{}, {"a": None}], [[]], [[{"a": "1"}]],
    [{"a": [{}]}], [{"a": [None, 1]}], [{"a": []}, {"a": "1"}], [5, 6], [[5], [6]], {"0": 1}, [{"0": 1}, 2]]
PARTNERS = [{"_id": 1}, {"_id": 2, "s": None}, {"_id": 3, "s": "1"}, {"_id": 4, "s": []}, {"_id": 5, "s": {}}, {"_id": 6, "s": [1, None]}]
NUMBERS = [{"_id": 1, "n": [1, 2]}, {"_id": 2}, {"_id": 3, "n": None}, {"_id": 4, "n": 1}]
TESTS = [{"$exists": True}, {"$exists": False}, {"$type": 10}, None, {"$ne": None}, {"$gte": None}, {"$elemMatch": {"$gt": 0}}, 1, {"$gt": 1}]
# The second document fails in every stage that reads it.
FAILING = [{"_id": 1, "n": 1}, {"_id": 2, "n": "x"}]
# Expressions that fail for each document.
FAIL = {"$expr": {"$toDate": "$a"}}


def join(local: str, number: int) -> list:
    return [{"$match": {"_id": number}}, {"$lookup": {"from": "o", "as": "x", "localField": local, "foreignField": "s"}},
        {"$match": {"_id": {"$exists": True}}}]


def dense(documents: list, *cases) -> object:
    """`$densify` over documents of these partitions and values."""
    found = [{"_id": number, **({"s": s} if s else {}), "n": n} for number, (s, n) in enumerate(documents)]
    spec = lambda case: {"field": "n", "range": {"step": 1, "bounds": case[0]}, **({"partitionByFields": case[1]} if case[1] else {})}
    return pipelines("stages: $densify from values of several types", found, *(
        differs([{"$densify": spec(case)}], case[2]) if len(case) > 2 else [{"$densify": spec(case)}] for case in cases))


BELOW = "of the partitions that end below the bounds MongoDB fills up the first one alone"
ZERO, DENSE = Decimal128("-3"), [("full", None), ("full", ["s"]), ("partition", ["s"]), ([1, 1], None), ([-3, 2], None), ([-3, 2], ["s"])]


BLOCKS = [
    dense([("", ZERO), ("b", -3), ("c", 1.0)], *DENSE), dense([("", -3), ("b", ZERO), ("b", 2.0)], *DENSE), dense([], *DENSE),
    dense([("", ZERO), ("b", -1), ("b", 1.0)], *DENSE), dense([("A", 0)], ([1, 1], None), ([1, 1], ["s"])),
    dense([("A", 1), ("A", 5)], ([1, 1], None), ([5, 5], None)), dense([([], 1), (None, 3), ({"a": 1}, 2)], ("full", ["s.a"])),
    dense([("A", -3), ("B", -3), ("C", -2), ("D", 1)], ([0, 2], ["s"], BELOW), ([0, 2], None), ([-3, 2], ["s"])),
    pipelines("stages: $densify by units before 1970", [{"_id": 0, "d": DatetimeMS(-236106539590)}, {"_id": 1, "d": DatetimeMS(-18297266696)}], *(
        [{"$densify": {"field": "d", "range": {"step": step, "unit": unit, "bounds": "full"}}}] for unit, step in (("year", 1), ("month", 7),
            ("week", 50), ("hour", 9000), ("millisecond", 10**10)))),
    pipelines("stages: windows", [{"_id": 1, "n": 2.0, "d": DatetimeMS(0)}, {"_id": 2, "n": Decimal128("0")}, {"_id": 3, "n": 1,
        "d": DatetimeMS(0)}, {"_id": 4}], *([{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"w": {name: ["$n", 1]}}}}]
            for name in ("$covariancePop", "$covarianceSamp")), *([{"$sort": {"_id": -1}}, {"$setWindowFields": {**spec, "output": {"w": {"$push":
            "$_id", "window": {"documents": [-1, 0]}}}}}] for spec in ({"sortBy": {"d": 1}}, {"partitionBy": "$d"}, {"partitionBy": "$d.a"},
            {"partitionBy": {"$type": "$d"}}, {"partitionBy": "$d", "sortBy": {"n": 1}}, {}, {"partitionBy": "$$ROOT"})),
        [{"$lookup": {"from": "c", "as": "j", "pipeline": [{"$setWindowFields": {"partitionBy": {"$ifNull": 1}, "output": {"w": {"$sum": 1,
            "window": {"range": [1, 1]}}}}}]}}], [{"$sort": {"_id": -1}}, {"$densify": {"field": "d", "range": {"step": 1, "unit": "day",
            "bounds": "full"}}}]),
    pipelines("stages: $lookup whose pipeline fails", {COLLECTION: [{"_id": 1, "l": [1]}, {"_id": 2}], "o": []}, *([{"$lookup": {"from": source,
        "as": "x", **spec}}] for source in (COLLECTION, "o", "none") for spec in ({"let": {"v": {"$toString": "$$ROOT"}}, "pipeline": []},
            {"let": {"v": "$l"}, "pipeline": [{"$match": {"$expr": {"$size": "$$v"}}}]}, {"pipeline": [{"$match": {"$expr": {"$toDate": "x"}}}]},
            {"let": {"v": {"$setEquals": [1, 1]}}, "pipeline": []}, {"pipeline": [{"$match": {"$expr": {"$toDate": "x"}}}], "localField": "q",
            "foreignField": "l"}, {"let": {"v": "$q"}, "pipeline": [{"$addFields": {"r": {"$size": "$$v"}}}]}))),
    pipelines("accumulators: what sums of doubles lose", [{"_id": number, "a": a, "b": b, "c": c} for number, (a, b, c) in enumerate((
            (1e16, 3.1, 1e100), (3.0, 12, Int64(2**53 + 1)), (-1e16, Decimal128("1E+3"), -1e100), (0.1, 2, 0.7)))], *(
        [{"$group": {"_id": None, "r": {name: field}}}] for name in ("$sum", "$avg") for field in ("$a", "$b", "$c",
            {"$multiply": [3.9, "$a", 4.7]}, {"$multiply": [3.9, "$b", 4.7]})), *([{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {
            name: field, "window": {"documents": [-1, 0]}}}}}] for name in ("$sum", "$avg") for field in ("$a", "$b", "$c"))),
    expressions("expressions: what sums of doubles lose", *({name: numbers} for name in ("$sum", "$avg", "$add") for numbers in (
        [1e16, 1.0, -1e16], [1.0, 1e16, -1e16], [1e16, 3.0, -1e16], [0.1] * 10, [Int64(2**62 + 1), 0.5, Int64(-(2**62))], [-14.1, -42.3, -128.31], [0.8, -3], [-3, 0.8], [0.8, Int64(-(2**40) - 1)]))),
    filters("predicates: what nothing meets beside others", [{"_id": 0, "n": 1}], {"$or": [{"d": {"$all": []}}, {"$expr": {"$toDate": "$n"}}],
        "o": 1}, {"$or": [{"d": {"$all": []}}, {"n": 1}]}, {"$or": [{"d": {"$all": []}}]}, {"$expr": {"$setIsSubset": ["$n", []]}}),
    commands("stages: $merge on an array", {COLLECTION: [{"_id": 1, "s": []}], "o": []}, *({"aggregate": COLLECTION, "cursor": {}, "pipeline": [
        {"$addFields": {"_id": key}}, {"$merge": "o"}]} for key in ("$s", None)), writes=True),
    expressions("expressions: which error comes first", {"$sortArray": {"input": {"$hour": [1, 1]}, "sortBy": 0}},
        {"$sortArray": {"input": {"$cond": "$o.a"}, "sortBy": "x"}}),
    over_values("expressions: numbers out of range", FAR, {"$firstN": {"n": "$v", "input": [1, 2]}}, {"$trunc": [3, "$v"]},
        {"$round": [3, "$v"]}, {"$substrBytes": ["abc", -3, "$v"]}, {"$substrBytes": ["abc", "$v", 1]}, {"$slice": [[1], "$v"]}),
    over_values("expressions: dates out of range", [(DatetimeMS(1), MOST), (DatetimeMS(-10), MOST), (DatetimeMS(-10), LEAST),
        (DatetimeMS(1), LEAST), (DatetimeMS(0), LEAST)], {"$subtract": ["$v", "$w"]}, {"$add": ["$v", "$w"]},
        {"$subtract": ["$v", {"$toDate": "$w"}]}, {"$subtract": [{"$add": ["$v", "$w"]}, 1]}),
    over_values("expressions: constants among arguments", [Decimal128("0"), 0, [0.0, 2], 7], {"$min": [0, "$v"]}, {"$max": [0, "$v"]},
        {"$min": [0, "$v", Decimal128("0.0")]}, {"$max": [Int64(1), "$v", 1.0, {"$max": [1, "$v"]}]}, {"$sum": [1, "$v", {"$sum": [2.5, "$v"]}]},
        {"$sum": [{"$sum": ["$v"]}, 1]}, {"$min": [{"$min": ["$v"]}, 1]}, {"$min": [[5], "$v", [3]]}, {"$sum": [0.1, "$v", 0.2, 0.7]},
        {"$mergeObjects": [{"$mergeObjects": [{"a": 1}, "$o"]}, {"a": 2}]}, {"$avg": [0.1, "$v", 0.2]}),
    filters("predicates: constants that cannot be computed", [], {"$expr": {"$toDate": {"$setEquals": [[], []]}}},
        {"$expr": {"$toDate": {"$setIsSubset": [[], []]}}}, {"$expr": {"$toDate": {"$eq": [1, 1]}}}, {"$expr": {"$setEquals": [[1], 1]}}),
    filters("predicates: order of conditions", [{"_id": 2, "l": [3], "d": 1}],
        {"$or": [{"l": 7}, {"b": 1}], "$and": [{"$or": [{"$expr": {"$toDate": "x"}, "l": 3.0}, {"l": ""}]}]},
        {"$or": [{"l": 7}, {"b": 1}], "$and": [{"$or": [{"$expr": {"$toDate": "$l"}, "l": 3.0}, {"l": ""}]}]},
        {"$nor": [{}], "$expr": {"$toDate": "$l"}}, {"$nor": [{"q": 1}, {}], "d": 1}),
    pipelines("stages: $match that nothing meets", FAILING, *([stage, {"$match": test}] for stage in (
            {"$bucket": {"groupBy": "$n", "boundaries": [5, 6]}}, {"$group": {"_id": {"$first": "$n"}}})
        for test in ({"$expr": None}, {"$nor": [{}]}, {"$nor": [{}], "$expr": {"$setUnion": "$n"}}))),
    pipelines("stages: $match on a group's key", NUMBERS, *([{"$group": {"_id": "$n", "x": {"$sum": 1}}}, {"$match": {"_id": test}}]
            for test in TESTS), *([{"$group": {"_id": {"q": "$n", "r": "$m"}}}, {"$match": {"_id.q": test}}] for test in TESTS),
        *([{"$sortByCount": "$n"}, {"$match": {"_id": test}}, {"$sort": {"count": 1, "_id": 1}}] for test in TESTS),
        *([{"$group": {"_id": "$n", "x": {"$sum": 1}}}, {"$match": test}] for test in ({"$expr": {"$eq": ["$_id", None]}},
            {"$expr": {"$eq": [{"$type": "$_id"}, "missing"]}}, {"$or": [{"x": 1}, {"_id": 1}]}, {"x": 1, "_id": 1}, {"_id.0": 1}))),
    pipelines("stages: $match behind $match and $redact", [{"_id": 2, "a": "zz", "n": 1, "o": {"x": 1}, "l": [{"x": 1}, {"b": 1}]}], *(
        [before, *({"$match": test} for test in tests)] for before in ({"$limit": 5}, {"$redact": "$$KEEP"},
            {"$redact": {"$cond": [{"$eq": ["$x", 1]}, "$$PRUNE", "$$DESCEND"]}}) for tests in (
            [{"$nor": [{"s": 0}], "d": 0}, FAIL], [{"d": 0}, FAIL], [FAIL, {"d": 0}], [FAIL, {"d": 0, "e": 0}], [{"$and": [{"n": 1}, {"e": 0}],
            **FAIL}], [{"$and": [{"n": 1}, {"e": 0}]}, FAIL], [{"$and": [{"n": 1, "e": 0}, FAIL]}], [{"n": 1}, {"e": 0}, FAIL], [{"n": 1}, {"e": 0,
            **FAIL}], [{"l.0.b": 1}], [{"o.x": 1}], [{"o.x": None}], [{"o": None}], [{"l": {"$size": 1}}], [{"l": {"$elemMatch": {"b": 1}}}],
            [FAIL, {"n": {"$gt": 3}}], [FAIL, {"n": {"$not": {"$gt": 0}}}], [FAIL, {"$or": [{"n": 3}, {"n": {"$in": [4]}}]}], [FAIL, {"$or": [{"n": 3},
            {"q": None, "n": None}]}], [FAIL, {"n": {"$in": [3, None]}}], [FAIL, {"n": {"$type": "string"}}], [FAIL, {"$nor": [{"n": 1}]}]))),
    pipelines("accumulators: no more than wanted", FAILING, *([{"$group": {"_id": None, "r": {name: {"input": {"$add": ["$n", 1]}, "n": 1}}}}]
        for name in ("$firstN", "$minN")), [{"$bucketAuto": {"groupBy": "$_id", "buckets": 1,
            "output": {"r": {"$firstN": {"input": {"$add": ["$n", 1]}, "n": 1}}}}}]),
    pipelines("stages: nothing is asked for ahead", {COLLECTION: FAILING, "o": []}, *([{"$addFields": {"r": {"$cos": "$n"}}},
            {"$lookup": {"from": "o", "as": "a", "localField": "a", "foreignField": "b"}}, *rest] for rest in ([{"$limit": 1}], [])),
        [{"$lookup": {"from": "o", "as": "a", "localField": "a", "foreignField": "b"}}, {"$addFields": {"r": {"$cos": "$n"}}}, {"$limit": 1}],
        [{"$lookup": {"from": "o", "as": "a", "localField": "a", "foreignField": "b"}}, {"$addFields": {"r": {"$cos": "$n"}}},
            {"$unionWith": "o"}, {"$limit": 1}]),
    pipelines("stages: $lookup by a path through arrays", {COLLECTION: [{"_id": number, "b": value} for number, value in enumerate(JOINED)],
        "o": PARTNERS}, *(join(path, number) for path in ("b.a", "b", "b.a.0", "b.0.a", "b.0") for number in range(len(JOINED)))),
    commands("stages: $graphLookup by a path through arrays", {COLLECTION: [{"_id": number, "b": value} for number, value in enumerate(JOINED)]},
        *({"aggregate": COLLECTION, "pipeline": [{"$match": {"_id": number}}, {"$graphLookup": {"from": COLLECTION, "as": "x",
            "startWith": "$_id", "connectFromField": path, "connectToField": "_id"}}], "cursor": {}}
            for path in ("b.a", "b", "b.a.0", "b.0.a", "b.0") for number in range(len(JOINED)))),
    updates("updates: arrayFilters that nothing meets", [{"_id": 1, "a": [1]}], *({"q": {}, "u": update, "arrayFilters": [one]}
        for update in ({}, {"$set": {"a.$[e]": 2}}) for one in ({"e.a": {"$all": []}}, {"e": {"$all": [], "$gt": 0}}, {"e": {"$in": []}},
            {"e": {"$not": {"$all": []}}}, {"e": {"$all": []}, "f": 1}, {"$or": [{"e": {"$all": []}}, {"e": 1}]}))),
    commands("updates: a replacement of several, and a filter that is wrong", [], *({"update": COLLECTION, "updates": [{"q": query, "u": {}, "multi": True,
        **more}]} for query in ({"$gte": 1}, {"$expr": 1}, {"$and": 1}, {}) for more in ({}, {"upsert": True}))),
    commands("stages: $merge that inserts what has no identity", {COLLECTION: [{"_id": 1, "s": 3}, {"_id": 2, "s": []}, {"_id": 3, "s": [1]}, {"_id": 4,
        "s": None}, {"_id": 5}], "o": []}, *({"aggregate": COLLECTION, "pipeline": [{"$match": {"_id": {"$in": numbers}}}, {"$addFields": {on: "$s"}},
        {"$merge": {"into": "o", "on": on, "whenMatched": matched}}], "cursor": {}} for on in ("_id", "a") for matched in ("fail", "merge")
        for numbers in ([1], [2], [3], [4], [5], [1, 2], [1, 4])), setup=[{"createIndexes": "o", "indexes": [{"key": {"a": 1}, "name": "a",
        "unique": True}]}], writes=True),
    commands("finds: by several ids, in which order", [{"_id": "b"}, {"_id": "a"}, {"_id": 3}, {"_id": "c"}, {"_id": 1.5}], *({"find": COLLECTION,
        "filter": test, **more} for test in ({"_id": {"$in": ["c", "a", 3, "b", 9]}}, {"_id": {"$in": ["b", 1.5]}, "x": None},
        {"$and": [{"_id": {"$in": ["c", "a"]}}, {"x": {"$exists": False}}]}, {"_id": {"$in": ["a"]}})
        for more in ({}, {"limit": 2}, {"skip": 1}, {"batchSize": 1}, {"sort": {"$natural": 1}}, {"sort": {"$natural": -1}},
            {"hint": {"$natural": 1}}, {"sort": {"_id": -1}}, {"sort": {"x": 1, "_id": 1}}, {"projection": {"x": 1}}))),
]
