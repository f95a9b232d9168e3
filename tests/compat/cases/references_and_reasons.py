"""DBRefs in filters, overflows of conversions, distinct by positions, and the reasons of
validators."""

from bson import DBRef, Decimal128, Regex

from compat.case import commands, expressions, filters, pipelines, script, updates

ONE, TWO = DBRef("u", 1), DBRef("u", 2, "d")
REFERENCES = (
    {"$ref": "u", "$id": 1}, {"$ref": "u"}, {"$id": 1}, {"$id": 2}, {"$db": "d"}, {"$id": 1, "$ref": "u"}, {"$ref": "u", "$id": 1, "$db": "d"}, {"$id": {"$gt": 1}}, {"$ref": "u", "x": 1}, {"$id": 1, "$gt": 2},
    {"$gt": 2, "$id": 1}, {"x": 1, "$id": 1}, {"$ref": Regex("u")}, {"$or": [{"$id": 1}]}, {"$and": [{"$id": 2}]},
)  # fmt: skip
TEXTS = ("1e-400", "1e-310", "4.9e-324", "0e-400", "-0.0e5", "2.3e-308", "1e308", "2e308", Decimal128("1E-400"), Decimal128("1E-310"), Decimal128("0E-400"))
WHOLE = (2147483647.5, -2147483648.5, 2147483646.5, 2147483647.0, Decimal128("2147483647.5"), Decimal128("-2147483648.5"))
NESTED = [[{"0": 5}, 6], [7, {"0": 8}], [[{"0": 9}]], [{"0": [10]}], {"0": [{"0": 11}]}, [{"a": [1, 2]}, {"a": 3}], [{"0": {"a": 12}}], [[1, 2], [3]], [{"1": 4}]]
VALUES = [[], [1], [1, 2], [1, "x"], "x", 5, {"b": 1}, None, [None], [[1]]]
TESTS = (
    {"$type": "string"}, {"$type": ["string", "bool"]}, {"$elemMatch": {"$gt": 10}}, {"$size": 7}, {"$mod": [100, 99]}, {"$bitsAllSet": 1024}, {"$regex": "^zz"}, {"$all": [77]}, {"$in": ["q"]},
    {"$geoWithin": {"$center": [[0, 0], 1]}}, {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}, {"$not": {"$regex": "x"}}, {"$not": {"$size": 1}}, {"$not": {"$type": "int"}}, {"$not": {"$mod": [1, 0]}},
)  # fmt: skip


def modify(query, **more):
    return {"findAndModify": "c", "query": query, "update": {"$set": {"x": 1}}, **more}


def refused(test):
    """The reply of a validator to each of the values, on its own path and inside of a `$nor`."""
    for validator in ({"a": test}, {"$nor": [{"a": {"$not": test}}]} if "$not" not in test else {"$nor": [{"a": test}]}):
        yield {"collMod": "c", "validator": validator}
        yield from ({"insert": "c", "documents": [{"a": value}]} for value in VALUES)


BLOCKS = [
    filters("filters: parts of DBRefs", [{"_id": 1, "v": [ONE, TWO]}, {"_id": 2, "v": [{"a": 1}]}, {"_id": 3, "v": ONE}, {"_id": 4, "v": [[ONE]]}],
            *({"v": {"$elemMatch": test}} for test in REFERENCES), *REFERENCES, {"v.$id": 1}, {"v.$ref": "u"}, {"v": ONE}, {"v": {"$ref": "u"}}, {"v": {"$in": [ONE]}}, {"v": {"$not": {"$ref": "u", "$id": 1}}}),
    expressions("conversions: beyond the smallest and the largest", *({"$toDouble": text} for text in TEXTS), *({name: value} for name in ("$toInt", "$toLong") for value in WHOLE)),
    commands("distinct by positions", [{"_id": number, "v": value} for number, value in enumerate(NESTED)], *({"distinct": "c", "key": key} for key in ("v", "v.0", "v.1", "v.0.0", "v.0.a", "v.a", "v.a.0", "v.1.a", "v.0.1", "v.2", "v.00"))),
    updates("updates: what $pull and replacements may hold", [{"_id": 1, "a": [1, {"b": 2}], "x": 0}],
            {"$pull": {"a": {"$expr": 1}}}, {"$pull": {"a": {"b": {"$gt": 1}}}}, {"$pull": {"z": {"$and": [{"$expr": 1}]}}},
            *({"q": {"_id": number}, "u": {"x": 1, "$foo": {"y": 1}}, "upsert": True} for number in (1, 2))),
    commands("findAndModify: sorting what is one", [{"_id": 1, "a": [1]}, {"_id": 2}],
             *(modify(query, sort=sort, **more) for query in ({"_id": 1}, {"_id": {"$eq": 1}}, {"_id": 1, "a": 1}, {"_id": 9}, {"_id": None}, {"_id": Regex("a")}) for sort in ({"a": 5}, {"": 1}, {"a": {"$meta": "textScore"}}, {"a": 1})
               for more in ({}, {"fields": {"a": 1, "b": 0}}, {"new": True, "fields": {"a.$": 1}}, {"collation": {"locale": "en"}}, {"hint": {"_id": 1}})), writes=True),
    pipelines("accumulators: $top and its order of checks", [{"_id": 1, "n": 1}],
              *([{"$group": {"_id": None, "r": {name: {"sortBy": sort, "output": "$n", **count}}}}] for name in ("$top", "$bottom", "$topN", "$bottomN") for sort in ({"n": 0}, {"$n": 1}, {"n": {"$meta": "x"}}, {}) for count in ({}, {"n": 1}, {"n": "x"})),
              *([{"$bucketAuto": {"groupBy": "$n", "buckets": count, "granularity": "x"}}] for count in (0, -1, 1, "x")), [{"$unionWith": ""}]),
    script("validators: reasons by type", {"create": "c"}, *(command for test in TESTS for command in refused(test)), messages=False),
]  # fmt: skip
