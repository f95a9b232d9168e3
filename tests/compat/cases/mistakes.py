"""Commands with one error or unusual part, as mutated cases have found them: which are refused, and
with which code."""

import datetime

from bson import Decimal128, Int64

from compat.case import commands, pipelines

NAN, INFINITE, HUGE, LEAST = float("nan"), float("inf"), 1e300, -(2**63)
DAY = datetime.datetime(2020, 1, 1)
DOCUMENTS = [{"_id": 1, "v": 1, "a": [1, 2]}, {"_id": 2, "v": 5, "d": DAY}]


def densify(*bounds, **unit):
    return [{"$densify": {"field": "v", "range": {"step": 1, "bounds": list(bounds), **unit}}}]


def window(kind, *bounds, **unit):
    return [{"$setWindowFields": {"sortBy": {"v": 1}, "output": {"r": {"$sum": 1, "window": {kind: list(bounds), **unit}}}}}]


def moved(unit, amount, operator):
    return [{"$match": {"_id": 2}}, {"$project": {"r": {operator: {"startDate": "$d", "unit": unit, "amount": Int64(amount)}}}}]


# The last amounts within the range of dates, and within the range of amounts.
AMOUNTS = {
    "year": (292276974, -292277074, 584942417), "quarter": (1169107898, -1169108298, 2339769671),
    "month": (3507323695, -3507324895, 7019309015), "week": (15250281843, -15250287061, 30500568904),
    "day": (106751972905, -106752009429, 213503982334), "hour": (2562047349727, -2562048226303, 5124095576039),
    "minute": (153722840983632, -153722893578192, 307445734562399), "second": (9223370459017975, -9223373614691575, 18446744073743999),
    "millisecond": (9223370459017975807, LEAST + 1, 2**63 - 2),
}

BLOCKS = [
    commands(
        "mistakes: writes", DOCUMENTS,
        {"insert": "c", "documents": [None]}, {"insert": "c", "documents": [None, {"_id": 9}]}, {"insert": "c", "documents": [{"_id": 10}, None, None]},
        {"update": "c", "updates": [None]}, {"update": "c", "updates": [None, {"q": {}, "u": {"$set": {"z": 1}}}]}, {"delete": "c", "deletes": [None]},
        {"delete": "c", "deletes": [None, {"q": {"_id": 1}, "limit": 1}]},
        *({"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": limit}]} for limit in [Decimal128("NaN"), NAN, 0.5, Decimal128("0.5"), HUGE, None, "1", Decimal128("1")]),
        *({"update": "c", "updates": [{"q": {}, "u": {"$set": {path: 1}}, "arrayFilters": [None]}]} for path in ["a.0", "a.$[x]"]),
        {"findAndModify": "c", "query": {}, "update": {"$set": {"a.0": 1}}, "arrayFilters": [None]},
        writes=True,
    ),
    commands(
        "mistakes: reads", DOCUMENTS,
        *({"count": "c", "limit": limit} for limit in [INFINITE, NAN, HUGE, Decimal128("1.5"), Decimal128("NaN"), LEAST, 1.5, 2.0]),
        *({"find": "c", "projection": projection} for projection in [
            {"$a": {}}, {"$a": 1}, {"a.": {}}, {"": {}}, {"$a": "$$foo"}, {"$a": "b"}, {"a.$b": {}}, {"$a": {"$foo": 1}}, {"$a": {"x": 1}}, {"$a": {"x": {}}},
            {"$a": []}, {"$a": ["$$foo"]}, {"a": {"c": 1, "$b": {}}},
        ]),
        *({"find": "c", "sort": sort} for sort in [{"$abs": {"a": 1}}, {"$a": 1}, {"$a": {"$meta": "randVal"}}, {"a.": {"x": 1}}]),
        *({"find": "c", "filter": {"a": {"$geoWithin": area}}} for area in [
            {"$box": [[0, 0, 1], [5, 5]]}, {"$center": [[1, 2, 3], 2]}, {"$centerSphere": [[1, 2, 3], 1]}, {"$polygon": [[0, 0], [0, 5, 5], [5, 5]]},
        ]),
        *({"aggregate": "c", "pipeline": [], "cursor": {"batchSize": size}} for size in [None, "1"]),
    ),
    pipelines(
        "mistakes: stages", DOCUMENTS,
        *([{"$group": group}] for group in [
            {"$abs": {"$sum": 1, "$avg": 1}}, {"$abs": {"x": 1}}, {"a.b": {}}, {"a.b": 1}, {"a.b": {"$sum": 1}}, {"_id": 1, "b": {"x": 1, "$sum": 1}}, {"_id": 1, "b": {"$sum": 1, "x": 1}},
            *({"_id": 1, "r": {operator: operand}} for operator in ["$firstN", "$maxN", "$top", "$topN", "$count", "$mergeObjects", "$push"] for operand in [[], [{}], [1, 2]]),
            *({"_id": 1, "r": {"$firstN": {"input": "$a", "n": n}}} for n in [HUGE, NAN, Decimal128("1E+300")]),
            {"_id": 1, "r": {"$topN": {"output": "$a", "sortBy": {"a": 1}, "n": HUGE}}},
        ]),
        *(densify(*bounds) for bounds in [
            ("a", "b"), ("b", "a"), (1, "a"), ("a", 1), (None, None), ([], []), (DAY, "a"), ("a", DAY), (DAY, 1), (1, DAY), (None, 0), (0, None), (None, DAY),
        ]),
        *(densify(*bounds, unit="hour") for bounds in [("a", "b"), (1, "v"), ([None], 0)]),
        *(window("documents", *bounds) for bounds in [
            ("$a", 1), ({"$literal": "current"}, 1), ({"$add": [1, "a"]}, 2), ({"$add": [-1, 0]}, {"$abs": -3}), (None, 1), ("$$NOW", 1), ({"$rand": {}}, 1), ([1], 1),
            ({}, 1), ({"$literal": 1}, 1), ({"$foo": 1}, 1), ({"": 1}, 1), (1.5, 3), (True, 1),
        ]),
        *(window("range", *bounds) for bounds in [("$a", 1), ({"$literal": 1}, 2), ({"$sum": [1, 2]}, 4), (0, {"$rand": {}}), ({"$foo": 1}, 1)]),
        window("range", {"$literal": 1}, 2, unit="day"),
        *([{"$geoNear": spec}] for spec in [[], [{"near": 1}], 1, {"near": [0, 0], "distanceField": "d", "limit": 1}, {"distanceField": 1, "start": 1}]),
        *([{stage: {"from": source, "as": "x", **rest}}]
          for stage, rest in [("$lookup", {"pipeline": []}), ("$graphLookup", {"startWith": "$a", "connectFromField": "a", "connectToField": "b"})]
          for source in [{"a": 1}, {"db": "x", "coll": "y"}, {}, {"coll": "y"}, {"db": 1, "coll": "y"}, 1, None]),
        *([{"$graphLookup": {"from": "c", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "r", name: value}}]
          for name in ["as", "connectFromField", "connectToField", "depthField"] for value in [{"a": 1}, 1, "$x"]),
        *([{"$merge": {"into": target}}] for target in [{"x": 1}, {"coll": 1}, {"coll": "", "x": 1}, {"db": "x"}, {}, {"db": "x", "coll": None}, {"db": "x", "coll": "y", "z": 1}]),
    ),
    pipelines(
        "mistakes: expressions", DOCUMENTS,
        *([{"$project": {"r": expression}}] for expression in [
            *({operator: ["$v", places]} for operator in ["$round", "$trunc"] for places in [HUGE, -HUGE, NAN, INFINITE, Decimal128("1E+300"), Decimal128("NaN"), 2**40, 1.5]),
            *({"$firstN": {"input": "$a", "n": n}} for n in [HUGE, NAN, INFINITE, Decimal128("1E+300"), Decimal128("NaN")]),
            {"$filter": {"input": "$$x"}}, {"$filter": {"input": "$$x", "as": "x", "cond": 1}}, {"$filter": {"input": [1], "as": 1, "cond": "$$z"}}, {"$map": {"input": "$$zz"}},
            {"$map": {"input": "$$zz", "as": "1", "in": 1}}, {"$map": {"in": "$$this", "input": "$$zz"}}, {"$reduce": {"in": "$$zz", "input": 1}},
            {"$reduce": {"in": "$$zz", "input": 1, "x": 1, "initialValue": 1}}, {"$reduce": {"x": 1, "in": "$$zz"}}, {"$reduce": {"in": "$$this", "input": [1]}},
            {"$getField": {"field": {"$a": 1}}}, {"$getField": {"input": "$a.$b"}}, {"$getField": {"input": "$a"}}, {"$getField": {"field": 1, "input": {"$foo": 1}}},
            {"$unsetField": {"field": 1, "input": {"$foo": 1}}}, {"$setField": {"field": 1, "input": {"$foo": 1}, "value": 1}}, {"$setField": {"field": 1, "input": 1, "value": {"$foo": 1}}},
            {"$let": {"vars": [{}], "in": 1}}, {"$let": {"vars": [], "in": 1}}, {"$let": {"vars": 1, "in": 1}},
        ]),
    ),
    pipelines(
        "mistakes: dates moved too far", DOCUMENTS,
        *(moved(unit, amount, operator) for unit, (last, first, most) in AMOUNTS.items() for operator in ["$dateAdd", "$dateSubtract"]
          for amount in [last, last + 1, first, first - 1, most, most + 1, -most, -most - 1, LEAST, 2**63 - 1] if LEAST <= amount < 2**63),
    ),
]
