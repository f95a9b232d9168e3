"""When and in which order things are evaluated: constants, arguments, conditions, stages."""

from bson import DatetimeMS, Decimal128

from compat.case import commands, filters, pipelines, projections, updates
from compat.cases.values import NAN, L

FAILS, FAILS_TOO = {"$divide": ["$one", "$zero"]}, {"$mod": ["$one", "$zero"]}
NEVER, NEVER_TOO = {"$divide": [1, 0]}, {"$mod": [1, 0]}
DOCUMENT = {"_id": 1, "one": 1, "zero": 0, "null": None, "s": "x", "n": 3, "l": [1, 2], "d": DatetimeMS(10**12), "z": "UTC"}
WRONG = ("$null", "$missing", "$s", "$n", "$l")

# Operators of two arguments, and of arguments with names.
PAIRS = ("$add", "$subtract", "$multiply", "$divide", "$mod", "$pow", "$log", "$atan2", "$concat", "$concatArrays", "$arrayElemAt", "$slice",
    "$in", "$split", "$setUnion", "$setDifference", "$setEquals", "$setIsSubset", "$mergeObjects", "$range", "$round", "$indexOfArray",
    "$indexOfCP", "$strcasecmp", "$eq", "$and", "$or", "$ifNull")
NAMED = {
    "$convert": ("input", "to"), "$dateToString": ("date", "timezone"), "$dateToParts": ("date", "timezone"), "$year": ("date", "timezone"),
    "$firstN": ("n", "input"), "$maxN": ("n", "input"), "$trim": ("input", "chars"), "$regexFind": ("input", "regex"),
    "$dateFromParts": ("year", "hour"), "$filter": ("input", "cond"), "$map": ("input", "in"),
}


def calls(first, second) -> list[dict]:
    return [*({name: [first, second]} for name in PAIRS), *({name: dict(zip(names, (first, second)))} for name, names in NAMED.items())]


def each(*arguments) -> list[dict]:
    return [{"r": call} for first, second in arguments for call in calls(first, second)]


PARALLEL = [{"_id": 1, "a": [0, 1], "b": [0, 0, 1]}]

BLOCKS = [
    projections("evaluation: which failure", [DOCUMENT], *each((FAILS, FAILS_TOO), *((wrong, FAILS) for wrong in WRONG), *(
        (FAILS, wrong) for wrong in WRONG))),
    projections("evaluation: constants without a document", [], *each((NEVER, NEVER_TOO), ("$n", NEVER), (NEVER, "$n"), ("x", 5), (5, [1])),
        {"r": {"$switch": {"branches": [{"case": True, "then": 1}, {"case": NEVER, "then": 2}]}}}, {"r": {"$cond": [True, 1, NEVER]}},
        {"r": {"$getField": {"field": "a", "input": NEVER}}}, {"r": {"$setField": {"field": "a", "input": 5, "value": NEVER}}},
        {"r": {"$concatArrays": [[1], "x", "$l"]}}, {"r": {"$indexOfArray": ["x", "$l"]}}),
    updates("evaluation: constants in updates", [], *([{"$set": {"r": call}}] for call in calls(NEVER, 1)), [{"$project": {"r": NEVER}}]),
    filters("evaluation: the filter is read first", [], {"$expr": NEVER, "a": {"$foo": 1}}, {"$nor": [{"$expr": NEVER}], "a": {"$mod": 0}},
        {"a": {"$all": []}, "$expr": NEVER}),
    filters("evaluation: conditions", [DOCUMENT], {"a": {"$all": []}, "$expr": FAILS}, {"$nor": [{"$expr": FAILS}, {}]},
        {"$nor": [{"$expr": FAILS}, {"n": 3}]}, {"$expr": FAILS, "n": 4}, {"$and": [{"$expr": {"$and": [FAILS, False]}}]}),
    pipelines("evaluation: stages", [DOCUMENT, {"_id": 2, "l": []}],
        [{"$set": {"r": NEVER}}, {"$foo": 1}], [{"$set": {"r.q": FAILS}}, {"$match": {"n": 5}}], [{"$set": {"r": FAILS}}, {"$skip": 2}],
        [{"$set": {"n": "$s"}}, {"$match": {"n": "x"}}], [{"$set": {"r": FAILS}}, {"$limit": 1}, {"$match": {"n": 4}}],
        [{"$project": {"n": 1, "r": FAILS}}, {"$match": {"n": 5, "r": 1}}], [{"$sort": {"l": 1, "s": 1}}, {"$sort": {"_id": -1}}],
        [{"$set": {"r": FAILS}}, {"$unionWith": "nothing"}, {"$match": {"n": 5}}], [{"$addFields": {"d": {"$substrCP": "$s"}, "d.a": 1}}],
        [{"$set": {"r": {"$toInt": "$null"}}}, {"$facet": {"p": [{"$set": {"q": FAILS_TOO}}], "q": [{"$set": {"q": FAILS}}]}}],
        [{"$group": {"_id": "$l"}}, {"$sort": {"_id": 1}}], [{"$unwind": {"path": "$l", "preserveNullAndEmptyArrays": True,
            "includeArrayIndex": "l"}}]),
    projections("evaluation: dates and 64 bits", [DOCUMENT],
        *({"r": {"$add": ["$d", value]}} for value in (Decimal128("NaN"), Decimal128("1E+30"), Decimal128("2.5"), Decimal128("3.5"), NAN)),
        *({"r": {"$subtract": ["$d", value]}} for value in (Decimal128("Infinity"), L(-(2**63)), Decimal128("3.5"), NAN)),
        *({"r": {"$substrBytes": ["abcdef", value, 2]}} for value in (Decimal128("2.5"), Decimal128("3.5"), NAN, Decimal128("NaN"))),
        *({"r": {name: {"$add": ["$d", L(10**15)]}}} for name in ("$toString", "$toUpper")),
        {"r": {"$dateToString": {"date": "$null", "timezone": "$null", "onNull": 1}}},
        {"r": {"$dateToString": {"date": "$null", "format": "$null", "onNull": 1}}},
        {"r": {"$dateDiff": {"startDate": "$d", "endDate": "$d", "unit": "day", "startOfWeek": "$null"}}},
        {"r": {"$zip": {"inputs": ["$l", [1]], "useLongestLength": True, "defaults": [1, "$missing"]}}}, {"r": {"$cond": {"$add": 1}}}),
    updates("evaluation: positions in branches", PARALLEL, *((query, {"$set": {"b.$": 9}}) for query in (
        {"$or": [{"a": 1}, {"b": 1}]}, {"$or": [{"b": 1}]}, {"$or": [{"b": 1}, {"b": 2}]}, {"a": 1, "$or": [{"b": 1}, {"q": 1}]},
        {"$nor": [{"b": 7}], "b": 1}))),
    projections("evaluation: positions in branches", PARALLEL, ({"$or": [{"a": 1}, {"b": 1}]}, {"b.$": 1}),
        ({"$or": [{"b": 1}, {"b": 2}]}, {"b.$": 1})),
    commands("findAndModify", PARALLEL, {"findAndModify": "c", "query": {"b": 1}, "update": {"$set": {"q": 1}}, "new": True,
        "fields": {"b.$": 1}}, writes=True),
]
