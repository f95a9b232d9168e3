"""Stages of MongoDB's second engine: `$group` at the front of a pipeline, whose expressions fail
with different codes."""

from bson import Binary, DatetimeMS, Decimal128, Int64, MinKey, Regex, Timestamp

from compat.case import MISSING, commands, pipelines

VALUES = [
    MISSING, None, 3, 0, -1, Int64(2**63 - 1), 2.5, Decimal128("0"), "abc", "", "day", "Europe/Berlin", True, DatetimeMS(1_577_836_800_000), [1], [], {"a": 1},
    Timestamp(5, 1), Regex("a"), MinKey(), Binary(b"ab"),
]  # fmt: skip
ONE_ARGUMENT = (
    "abs ceil floor sqrt exp ln log10 reverseArray anyElementTrue bsonSize dayOfMonth dayOfYear dayOfWeek sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh degreesToRadians radiansToDegrees first last tsSecond tsIncrement setUnion concat add multiply year toInt size strLenCP"
).split()
TWO_ARGUMENTS = "add multiply divide mod atan2 concat concatArrays arrayElemAt setIntersection setDifference cmp gt lte range indexOfCP indexOfBytes subtract pow".split()
FORMS = [
    {"$dayOfMonth": {"date": "$v", "timezone": "$w"}}, {"$dateToParts": {"date": "$v", "timezone": "$w"}}, {"$dateToParts": {"date": "$v", "iso8601": "$w"}},
    {"$dateFromParts": {"year": "$v"}}, {"$dateFromParts": {"year": 2020, "day": "$v"}}, {"$dateFromParts": {"isoWeekYear": "$v"}},
    {"$dateAdd": {"startDate": "$v", "unit": "day", "amount": "$w"}}, {"$dateAdd": {"startDate": "$v", "unit": "$w", "amount": 1}}, {"$dateSubtract": {"startDate": "$v", "unit": "day", "amount": 1, "timezone": "$w"}},
    {"$dateDiff": {"startDate": "$v", "endDate": "$w", "unit": "day"}}, {"$dateDiff": {"startDate": "$v", "endDate": "$v", "unit": "$w"}}, {"$dateDiff": {"startDate": "$v", "endDate": "$v", "unit": "week", "startOfWeek": "$w"}},
    {"$regexMatch": {"input": "$v", "regex": "$w"}}, {"$regexFind": {"input": "$v", "regex": "a"}}, {"$regexFindAll": {"input": "$v", "regex": "$w", "options": "i"}},
    {"$replaceOne": {"input": "$v", "find": "$w", "replacement": "q"}}, {"$replaceOne": {"input": "abc", "find": "a", "replacement": "$w"}},
    {"$filter": {"input": "$v", "cond": True}}, {"$sortArray": {"input": "$v", "sortBy": 1}}, {"$switch": {"branches": [{"case": "$v", "then": "$w"}]}},
    {"$let": {"vars": {"x": "$v"}, "in": {"$abs": "$$x"}}}, {"$cond": ["$v", {"$abs": "$w"}, {"$ceil": "$w"}]}, {"$add": ["$v", "$w", 1]}, {"$multiply": ["$v", "$w", 2]}, {"a": "$v", "b": {"$abs": "$w"}},
    {"$indexOfCP": ["$v", "b", "$w"]}, {"$range": ["$v", 5, "$w"]}, {"$ifNull": ["$v", {"$abs": "$w"}]},
]  # fmt: skip

SET = {"$setUnion": ["$l", "$n"]}


def held(v, w) -> dict:
    return {name: value for name, value in (("v", v), ("w", w)) if value is not MISSING}


def aggregate(*stages, collection="c", **options):
    return {"aggregate": collection, "pipeline": list(stages), "cursor": {}, **options}


def grouped(number, expression):
    return aggregate({"$match": {"_id": number}}, {"$group": {"_id": None, "r": {"$push": expression}}})


PAIRS = [{"_id": len(VALUES) * at + other, **held(v, w)} for at, v in enumerate(VALUES) for other, w in enumerate(VALUES)]
# Those with one value in `w`; and a fifth of all.
SINGLE = [number for number in range(VALUES.index(3), len(PAIRS), len(VALUES))]


def some(step: int) -> range:
    return range(step % 5, len(PAIRS), 5)


BAD = {"$abs": "$t"}
PUSHED = {"$group": {"_id": None, "r": {"$push": BAD}}}
LOOKUP = {"from": "c", "localField": "t", "foreignField": "t", "as": "l"}

BLOCKS = [
    commands("second-engine/one-argument", PAIRS, *(grouped(number, {f"${name}": ["$v"]}) for name in ONE_ARGUMENT for number in SINGLE)),
    commands("second-engine/two-arguments", PAIRS, *(grouped(number, {f"${name}": ["$v", "$w"]}) for at, name in enumerate(TWO_ARGUMENTS) for number in some(at))),
    commands("second-engine/forms", PAIRS, *(grouped(number, form) for at, form in enumerate(FORMS) for number in some(at))),
    commands("second-engine/keys", PAIRS, *(aggregate({"$match": {"_id": number}}, {"$group": {"_id": {"k": {"$concat": ["$v", "$w"]}}}}) for number in some(0))),
    pipelines(
        "second-engine/accumulators",
        [{"_id": i, "g": i % 3, "v": v, "n": i % 2} for i, v in enumerate([3, 3.0, Int64(3), 1, Decimal128("1"), {"a": 1}, {"b": 2}, None, 2])],
        *([{"$match": {"g": g}}, {"$group": {"_id": None, "r": {f"${name}": "$v"}}}] for g in range(3) for name in ("min", "max", "mergeObjects", "sum", "avg")),
        *([{"$limit": 9}, {"$match": {"g": g}}, {"$group": {"_id": None, "r": {f"${name}": "$v"}}}] for g in range(3) for name in ("min", "max", "mergeObjects")),
        [{"$bucket": {"groupBy": "$n", "boundaries": [5, 6]}}],
        [{"$limit": 9}, {"$match": {}}, {"$bucket": {"groupBy": "$n", "boundaries": [5, 6]}}],
    ),
    commands(
        "second-engine/which",
        {"c": [{"_id": 1, "t": "a", "n": 1, "l": [1]}], "other": [{"_id": 1, "t": "a"}]},
        *(
            aggregate(*stages, PUSHED)
            for stages in (
                [], [{"$_internalInhibitOptimization": {}}], [{"$match": {"n": 1}}], [{"$match": {"n": {"$gt": 0}, "t": {"$type": "string"}}}], [{"$match": {"l": {"$elemMatch": {"$gt": 0}}}}],
                [{"$match": {"l.0": 1}}], [{"$match": {"$expr": {"$gt": ["$n", 0]}}}], [{"$match": {"$expr": {"$gt": [{"$toInt": "$n"}, 0]}}}], [{"$match": {"$expr": {"$ne": [BAD, 0]}}}],
                [{"$match": {"$jsonSchema": {"required": ["t"]}}}], [{"$match": {"$or": [{"n": 1}, {"l": {"$size": 1}}]}}], [{"$match": {"n": {"$mod": [1, 0]}}}], [{"$match": {"n": {"$not": {"$in": [5]}}}}],
                [{"$sort": {"n": 1}}], [{"$sort": {"l.0": 1}}], [{"$sort": {"n": 1}}, {"$limit": 3}], [{"$limit": 3}], [{"$skip": 0}], [{"$limit": 3}, {"$match": {"n": 1}}], [{"$limit": 3}, {"$sort": {"n": 1}}],
                [{"$project": {"t": 1}}], [{"$project": {"n": 0}}], [{"$project": {"t": "$t"}}], [{"$project": {"t": {"$concat": ["$t", "b"]}}}], [{"$project": {"t": {"$toString": "$t"}}}], [{"$project": {"x": BAD}}],
                [{"$project": {"t": 1}}, {"$project": {"t": 1}}], [{"$project": {"_id": 0, "t": 1}}], [{"$limit": 3}, {"$project": {"t": 1}}], [{"$project": {"t": 1}}, {"$limit": 3}], [{"$project": {"t": 1}}, {"$sort": {"t": 1}}],
                [{"$set": {"x": 1}}], [{"$unset": "x"}], [{"$unwind": "$l"}], [{"$sample": {"size": 1}}], [{"$replaceRoot": {"newRoot": "$$ROOT"}}], [{"$lookup": LOOKUP}], [{"$lookup": {**LOOKUP, "pipeline": []}}],
                [{"$lookup": {**LOOKUP, "localField": "t.0"}}], [{"$lookup": LOOKUP}, {"$unwind": "$l"}], [{"$lookup": LOOKUP}, {"$match": {"n": 1}}], [{"$lookup": {**LOOKUP, "from": "other"}}], [{"$match": {"n": 1}}, {"$lookup": LOOKUP}],
            )
        ),
        *(
            aggregate(*stages)
            for stages in (
                [{"$group": {"_id": BAD}}], [{"$group": {"_id": {"a": BAD, "b": "$n"}}}], [{"$sortByCount": BAD}], [{"$bucket": {"groupBy": BAD, "boundaries": [0, 1]}}], [PUSHED, {"$out": "o"}],
                [{"$group": {"_id": "$t"}}, {"$group": {"_id": {"$abs": "$_id"}}}], [{"$group": {"_id": "$t"}}, {"$sort": {"_id": 1}}, {"$group": {"_id": {"$abs": "$_id"}}}],
                [{"$group": {"_id": "$t"}}, {"$match": {"_id": "a"}}, {"$group": {"_id": {"$abs": "$_id"}}}], [{"$group": {"_id": "$t"}}, {"$set": {"x": {"$abs": "$_id"}}}], [{"$facet": {"a": [PUSHED]}}],
                [{"$unionWith": {"coll": "c", "pipeline": [PUSHED]}}], [{"$lookup": {"from": "c", "pipeline": [PUSHED], "as": "x"}}], [{"$documents": [{"t": "a"}]}, PUSHED],
                *(
                    [{"$group": {"_id": None, "r": {"$push": BAD}, "x": x}}]
                    for x in (
                        {"$firstN": {"n": 1, "input": "$t"}}, {"$top": {"sortBy": {"n": 1}, "output": "$t"}}, {"$push": {"$toString": "$n"}}, {"$push": {"$map": {"input": "$l", "in": "$$this"}}}, {"$push": {"$rand": {}}},
                        {"$push": {"$getField": "t"}}, {"$push": "$$NOW"}, {"$push": "$$ROOT"}, {"$push": {"$literal": 1}}, {"$sum": 1}, {"$count": {}}, {"$addToSet": {"$in": [1, "$l"]}}, {"$stdDevPop": "$n"}, {"$max": {"$subtract": ["$n", 1]}},
                    )
                ),
            )
        ),
        aggregate({"$group": {"_id": None, "r": {"$push": {"$add": ["$t", "$$x"]}}}}, let={"x": 1}),
        aggregate(PUSHED, collation={"locale": "en", "strength": 2}),
        aggregate(PUSHED, hint={"_id": 1}),
    ),
    pipelines(
        "second-engine/not for lists as they are written",
        [{"_id": 1, "l": 1, "n": 2}],
        *([{"$group": {"_id": key}}] for key in (
            {"$setIntersection": [[], "$l"]}, {"$setIntersection": ["$l", ["$n"]]}, {"$setIntersection": ["$n", {"$literal": []}]}, {"$setDifference": ["$n", [1]]},
            {"$concatArrays": ["$l", []]}, {"$setUnion": ["$l", [1]]}, {"a": [1], "b": SET}, {"a": {"$literal": []}, "b": SET}, {"a": ["$n"], "b": SET},
        )),
        *([{"$group": {"_id": key, "r": {"$mergeObjects": value}}}] for key in (None, [], [1], "$n") for value in (2.5, "$l", {"$literal": 1})),
        *([{"$group": {"_id": 1, "r": first, "s": {"$sum": SET}}}] for first in (
            {"$sum": [1]}, {"$sum": {"$size": [[1]]}}, {"$sum": 1}, {"$push": {"$map": {"input": [1], "in": "$$this"}}}, {"$mergeObjects": {"a": 1}},
        )),
        *([*before, {"$group": {"_id": SET}}] for before in (
            [{"$match": {"$expr": {"$ne": ["$x", [1]]}}}], [{"$match": {"$expr": {"$ne": ["$x", 1]}}}], [{"$match": {"l": {"$in": [1, 2]}}}],
            [{"$project": {"l": 1, "n": 1, "z": [1]}}], [{"$project": {"l": 1, "n": 1, "z": {"$literal": [1]}}}],
        )),
        [{"$bucket": {"groupBy": "$_id", "boundaries": [0, 5], "output": {"n": {"$push": {"$concatArrays": ["$l", []]}}}}}],
    ),
    pipelines(
        "second-engine/not for groups that read nothing",
        [{"_id": 1, "l": 1, "n": 2}],
        *([*before, {"$group": {"_id": None, "n": first}}, {"$group": {"_id": {"$setUnion": ["$n", "$n"]}}}]
            for before in ([], [{"$match": {"l": 1}}], [{"$sort": {"l": 1}}], [{"$limit": 1}], [{"$project": {"l": 1}}], [{"$match": {"$expr": {"$eq": ["$l", 1]}}}],
                [{"$lookup": {"from": "o", "as": "b", "localField": "c", "foreignField": "n"}}])
            for first in ({"$sum": 1}, {"$first": "$l"}, {"$first": "$$ROOT"}, {"$max": "$$NOW"})),
    ),
    pipelines(
        "second-engine/joins",
        [{"_id": 1, "x": 1, "d": {"p": 1, "q": 2}, "e": [{"p": 1}], "z": 1}, {"_id": 2, "d": 3, "x": 5}, {"d": {"p": 1, "n": 2}, "_id": 3}],
        *(
            [*before, {"$lookup": {"from": "c", "localField": "x", "foreignField": "z", "as": name, **more}}, {"$project": {"f": "$$ROOT"}}]
            for name in ("x", "d", "d.p", "d.p.n", "e.p", "_id", "n", "z.k", "d.new")
            for before, more in (([], {}), ([{"$sort": {"_id": -1}}], {}), ([{"$limit": 5}, {"$match": {"_id": 1}}], {}), ([], {"pipeline": []}))
        ),
    ),
]  # fmt: skip
