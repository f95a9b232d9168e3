"""What is seldom asked, and answered wrongly once: a `$merge`'s order of fields, `$or` and the positional operator, arguments that
two parts of a stage disagree about."""

import datetime

from bson import Decimal128, Int64

from compat.case import commands, expressions, pipelines, script, updates

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
    return [{"$merge": {"into": "t", **options}}]


BLOCKS = [
    pipelines(
        "stages: $merge", {"c": MIXED, "t": OTHERS}, [{"$merge": "t"}], merge(), merge(whenMatched="merge"), merge(whenMatched="replace"),
        merge(whenMatched="merge", whenNotMatched="discard"), merge(whenMatched="merge", whenNotMatched="fail"), merge(on="_id"),
        merge(whenMatched=[{"$set": {"z": "$$new.n"}}]), merge(let=None), merge(whenNotMatched=None), merge(whenMatched="merge", let=None),
        [{"$project": {"_id": 0, "z": "$n", "b": "$s"}}, {"$sort": {"z": 1}}, {"$limit": 0 + 1}, {"$addFields": {"_id": 9}}, {"$merge": "t"}],
        [{"$merge": {"into": {"db": "compat"}}}], [{"$merge": {"into": {}}}], [{"$merge": {"into": {"coll": ""}}}],
        writes=True,
    ),
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
