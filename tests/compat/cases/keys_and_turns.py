"""Array elements selected by numbers in paths, the representative of equal values, and the order of
conditions."""

import random

from bson import DatetimeMS, Decimal128, Int64, ObjectId

from compat.case import commands, filters, over_values, pipelines, sorts

NESTED = [[], [[]], [[], []], [[], 1], [[1], [2]], [[1, 2], [3]], [[1], 2], [1, [2]], [1, 2], [[], {}], [[], {"b": 2}], [{"b": [1, 2]}, {"b": [3]}], [{"b": [1, 2]}], [{"1": 2}, 5], {"0": [1, 2], "1": 3}]
BY_POSITIONS = [{"a.0": 1}, {"a.0": 1, "a.1": 1}, {"a.1": -1, "a.0": 1}, {"a.0.b": 1, "a": 1}, {"a.0.b": 1, "a.1.b": 1}, {"a.5": 1}]
LISTS = [[], [1], [1, 2], 1, {"1": 2}, {"1": [2]}, [[1, 2]], [[1], [2]], [{"1": 7}], [5, {"1": 7}]]
TWINS = [
    {"_id": 0, "a": [[3]], "b": 1}, {"_id": 1, "a": Decimal128("3"), "b": 2}, {"_id": 2, "a": [3.0, 4.0], "b": 0}, {"_id": 3, "a": 4, "b": 9}, {"_id": 4, "a": Int64(4), "b": 3},
    {"_id": 5, "a": [Decimal128("-0"), 0], "b": 4}, {"_id": 6, "a": {"x": 1.0}}, {"_id": 7, "a": {"x": 1}, "b": 2}, {"_id": 8, "a": -1.0}, {"_id": 9, "a": Decimal128("-1"), "b": 1}, {"_id": 10},
]
ZEROS = [0, 0.0, -0.0, Int64(0), Decimal128("0"), Decimal128("-0")]
EXPONENTS = [0, -0.0, -1, Decimal128("0"), Decimal128("-0"), Decimal128("NaN"), Decimal128("-NaN"), Decimal128("-Infinity")]
FAILS = {"$arrayToObject": "$l"}
LISTED = [{"_id": 1, "l": [1]}]
INDEXED = [{"_id": 1, "c": [0, 0], "n": 2, "l": [-2.0], "d": 3, "s": "x"}]
GROUPED = {"$group": {"_id": 1, "f": {"$last": {"$in": ["$l", 2]}}}}


def keyed(key: dict, *documents, **options):
    inserts = [{"insert": "c", "documents": [{"_id": 1, **document}]} for document in documents]
    setup = [{"createIndexes": "c", "indexes": [{"key": key, "name": "by", **options}]}]
    return commands("indexes: keys at positions", [], *inserts, setup=setup, writes=True, messages=True)


ELEMENTS = [1, 2, 2.0, "a", "b", None, [], [1], [1, 2], [2, "b"], ["a", "a"], [None], [[1]], [[1], [1]], [[1.0]], {"x": 1}, [{"x": 1}], [{"x": 1.0}, 3], Decimal128("2"), True, [True, False],
            ["x" * 600], "x" * 600, [[]], ObjectId("0" * 24), [ObjectId("0" * 24)], [DatetimeMS(5)], DatetimeMS(5), [2**60, -1.5], [-1.5]]  # fmt: skip


def unique(number: int):
    """Documents for a unique index over arrays, all together, and the accepted ones, one by one.
    MariaDB does not support nested arrays."""
    rng = random.Random(number)
    nested = lambda: rng.choice([{"b": rng.choice(ELEMENTS[:6])}, {"c": 1}, 5, {"b": rng.choice([1, 2, 3]), "c": rng.choice([1, 2])}, {}])
    key = rng.choice([{"a": 1}, {"a": -1}, {"a.b": 1}, {"a.b": 1}, {"a.b": 1, "a.c": -1}, {"a": -1, "z": 1}, {"a.b": 1, "z": 1}, {"z": 1, "a": 1}])
    held = [lambda: rng.choice(ELEMENTS), lambda: [rng.choice(ELEMENTS[:6]) for _ in range(rng.randrange(3))], nested, lambda: [nested() for _ in range(rng.randrange(4))]]
    documents = [{"_id": number, **({"a": rng.choice(held)()} if rng.random() < 0.9 else {}), **({"z": rng.choice([1, 2, 3])} if rng.random() < 0.5 else {})} for number in range(8)]
    index = {"createIndexes": "c", "indexes": [{"key": key, "name": "by", "unique": True, **rng.choice([{}, {}, {"sparse": True}, {"partialFilterExpression": {"z": {"$gt": 1}}}])}]}
    updates = [{"q": {"_id": rng.randrange(8)}, "u": {"$set": {"a": rng.choice(held)()}}} for _ in range(8)]
    pushes = [{"q": {"_id": rng.randrange(8), "a": {"$type": "array"}}, "u": {"$push": {"a": rng.choice([1, "a", nested()])}}} for _ in range(8)]
    after = [commands("indexes: unique over arrays", documents[:count], index, {"listIndexes": "c"}, messages=True) for count in (3, 8)]
    return [*after, commands("indexes: unique over arrays", [], {"insert": "c", "documents": documents, "ordered": False}, setup=[index], writes=True, messages=True),
            commands("indexes: unique over arrays", documents[:4], {"update": "c", "updates": updates, "ordered": False}, {"update": "c", "updates": pushes, "ordered": False}, setup=[index], writes=True, messages=True)]


def values(key: dict):
    setup = [{"createIndexes": "c", "indexes": [{"key": key, "name": "by"}]}]
    return commands("distinct: one of equal values", TWINS, {"distinct": "c", "key": "a"}, setup=setup)


def beside_index():
    conditions = [
        {"c": 0, "n": 1}, {"c": {"$type": 16}, "n": 1}, {"c": 0, "n": {"$ne": 2}}, {"c": 0, "n": {"$size": 5}}, {"c": 0, "n": {"$exists": False}}, {"c": 0, "$nor": [{"n": 2}]},
        {"c": 0, "n": {"$elemMatch": {"$gt": 1}}}, {"c": 0, "n": {"$not": {"$gt": 1}}}, {"c": 5}, {"n": 5}, {"_id": {"$gt": 0}, "n": 1}, {"_id": 1, "n": 1},
    ]
    for condition in [*({**condition, "$expr": FAILS} for condition in conditions), {"c": 0, "$or": [{"n": 1, "$expr": FAILS}, {"s": 1}]}]:
        yield from ({"find": "c", "filter": condition}, {"count": "c", "query": condition})


ALONE = [{"n": {"$all": [1, 2]}}, {"n": {"$all": [1]}}, {"n": {"$all": [{"$elemMatch": {"a": 1}}, {"$elemMatch": {"b": 1}}]}}, {"n": {"$gt": 1, "$lt": 2}}, {"n": 1},
         {"n": 1, "z": 1}, {"z": 1, "n": {"$gt": 1, "$lt": 2}}, {"z": 1, "n": {"$all": [1, 2]}}, {"$and": [{"n": 1}, {"z": 1}]}]
ALWAYS = [{"$expr": 1}, {"$expr": -0.9}, {"$expr": {}}, {"$expr": 0}, {}, {"l": [1]}, {"n": 7}]
PARALLEL = [{"_id": 1, "b": [], "l": []}, {"_id": 2, "b": [1], "l": 1}]
ONE = [{"_id": 1}, {"_id": 1, "b": []}, {"_id": 1, "l": {"$exists": True}}, {"_id": 3}, {"_id": {"$in": []}}, {"_id": {"$in": [1, 3]}}]
TWO_ARRAYS = {"b": 1, "l": -1}


def sorted_by_two_arrays(**options):
    """A lookup by `_id` alone ignores the sort, unless the command has a collation."""
    for one in ONE:
        yield {"findAndModify": "c", "query": one, "sort": TWO_ARRAYS, "remove": True, **options}
        yield {"findAndModify": "c", "query": one, "sort": TWO_ARRAYS, "update": {"$set": {"x": 1}}, **options}
        yield {"find": "c", "filter": one, "sort": TWO_ARRAYS, **options}
        yield {"aggregate": "c", "pipeline": [{"$match": one}, {"$sort": TWO_ARRAYS}], "cursor": {}, **options}


BLOCKS = [
    commands("sort: of one document", PARALLEL, *sorted_by_two_arrays(), *sorted_by_two_arrays(collation={"locale": "en"}), writes=True),
    filters("filters: $nor in turn", LISTED, *({"$nor": [{"$expr": FAILS}, always]} for always in ALWAYS), *({"$nor": [always, {"$expr": FAILS}]} for always in ALWAYS)),
    pipelines(
        "order of stages: $nor in turn", LISTED,
        *([before, {"$match": {"$nor": branches}}] for before in ({"$limit": 5}, {"$group": {"_id": "$_id", "l": {"$first": "$l"}}}, GROUPED, {"$set": {"x": 1}})
          for always in [*ALWAYS, {"_id": 1}] for branches in ([{"$expr": FAILS}, always], [always, {"$expr": FAILS}], [always, {"f": 1}], [{"f": 1}, always])),
    ),
    pipelines(
        "order of stages: conditions of one field", LISTED,
        *([before, *behind] for before in ({"$limit": 5}, {"$group": {"_id": "$_id", "l": {"$first": "$l"}}}) for one in ALONE
          for behind in ([{"$match": one}, {"$match": {"$expr": FAILS}}], [{"$match": {**one, "$expr": FAILS}}], [{"$match": {"$expr": FAILS}}, {"$match": one}])),
    ),
    *(sorts("sort: arrays picked by positions", [{"_id": 1, "a": nested}], *BY_POSITIONS) for nested in NESTED),
    *(block for number in range(60) for block in unique(number)),
    keyed({"a": -1, "l.1": 1}, *({"a": a, "l": one} for one in LISTS for a in (1, [], [1]))),
    *(keyed(key, *({"a": nested} for nested in NESTED)) for key in BY_POSITIONS),
    *(values(key) for key in ({"a": 1}, {"a": -1})),
    commands(
        "sets: constants under a collation", [{"_id": 0}, {"_id": 1, "l": ["b"]}],
        *({"find": "c", "filter": {"$expr": {"$eq": [1, {operator: operands}]}}, **options} for operator in ("$setUnion", "$setIntersection") for options in ({}, {"collation": {"locale": "fr"}})
          for operands in ([-1, "$l"], ["$l", -1], [["a"], "$l", ["A"]])),
    ),
    *(
        pipelines("$sum of integers among doubles", [{"_id": at, "n": number} for at, number in enumerate(numbers)], [{"$group": {"_id": 1, "s": {"$sum": "$n"}, "a": {"$avg": "$n"}}}],
                  [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"s": {"$sum": "$n"}, "r": {"$sum": "$n", "window": {"documents": [-1, 0]}}}}}])
        for numbers in ([1e-7, Int64(-2), Int64(2)], [-2, 1e-7, 2], [-2, 1e-7, Int64(2)], [0.1, Int64(2), Int64(-2), 2], [1e-7, Int64(2), Int64(-2), Int64(2**40)], [0.1, Int64(2**62), Int64(-(2**62)), 3], [0.1, Int64(-(2**40) - 1), Int64(2**33 + 5), 0.7])
    ),
    over_values("$pow of zero", [(base, exponent) for base in ZEROS for exponent in EXPONENTS], {"$pow": ["$v", "$w"]}),
    pipelines(
        "$group of constants", [{"_id": 1, "n": 5}],
        *([{"$group": {"_id": key, "r": {"$last": expression}}}] for key in (1, "$n") for expression in (
            {"$regexMatch": {"input": 1, "regex": "^"}}, {"$regexFind": {"input": 1, "regex": None}}, {"$regexFindAll": {"input": {"$literal": 1}, "regex": "b"}},
            {"$replaceOne": {"input": 1, "find": "a", "replacement": "b"}}, {"$replaceAll": {"input": 1, "find": "a", "replacement": "b"}}, {"$sortArray": {"input": 1, "sortBy": 1}},
            {"$zip": {"inputs": [1]}}, {"$regexMatch": {"input": "x", "regex": "^"}},
        )),
    ),
    pipelines(
        "order of stages: what stays behind a sort", LISTED,
        *([{"$sort": order}, {"$match": {"$expr": FAILS, **condition}}] for order in ({"_id": 1}, {"n": 1}) for condition in (
            {"n": {"$size": 0}}, {"n": {"$elemMatch": {"a": 1}}}, {"l": {"$size": 0}}, {"n": 5}, {"n": {"$not": {"$elemMatch": {"$gt": 1}}}}, {"n": {"$type": "array"}},
            {"$or": [{"n": {"$size": 0}}, {"n": 4}]},
        )),
    ),
    pipelines(
        "order of stages: nothing that nothing meets", LISTED,
        *([GROUPED, {"$match": condition}] for condition in (
            {"$nor": [{"$expr": 1}, {"n": 1}]}, {"$nor": [{"_id": 1}, {"$expr": {}}]}, {"$nor": [{"$expr": 0}, {"n": 1}]}, {"$or": [{"$expr": 1}, {"n": 1}]},
            {"$nor": [{"n": 1}, {"$expr": {"$toDate": {"$literal": ObjectId("5f5b2f1e1c9d440000a1b2c3")}}}]}, {"f": 1, "$nor": [{"$expr": 1}, {"f": 2}]},
        )),
    ),
    filters(
        "filters: what fails beside what does not match", [{"_id": 1, "o": "x", "d": 2, "l": [1]}],
        *({**condition, **beside} for condition in ({"o": 10}, {"d": 1}, {"d": {"$gt": 5}}, {"_id": 7}) for beside in (
            {"$expr": FAILS}, {"$or": [{"$expr": FAILS}, {"c": 1}]}, {"$or": [{"d": 1, "$expr": FAILS}, {"c": 1}]}, {"$nor": [{"$expr": FAILS}, {"c": 1}]},
            {"$or": [{"$expr": {"$gt": ["$d", 5]}}, {"c": 1}]}, {"$and": [{"$or": [{"$expr": FAILS}]}, {"c": 1}]},
        )),
    ),
    *(
        commands("filters: what is tested first by an index", INDEXED, *beside_index(), setup=[{"createIndexes": "c", "indexes": [{"key": key, "name": "by"}]}])
        for key in ({"c": 1}, {"c": 1, "n": 1}, {"d": 1})
    ),
    pipelines(
        "order of stages: $limit and $skip", [{"_id": 1, "b": 1}],
        *([*before, fails, *behind] for before in ([], [{"$match": {"b": 1}}], [{"$sort": {"b": 1}}], [{"$unwind": "$b"}], [{"$group": {"_id": 1, "b": {"$first": "$b"}}}], [{"$redact": "$$KEEP"}])
          for fails in ({"$replaceRoot": {"newRoot": "$o"}}, {"$set": {"x": {"$arrayElemAt": ["$b", 1]}}})
          for behind in ([{"$limit": 1}, {"$skip": 1}], [{"$limit": 2}, {"$skip": 1}], [{"$skip": 1}, {"$limit": 1}], [{"$skip": 1}], [{"$limit": 1}, {"$set": {"q": 1}}, {"$skip": 1}])),
    ),
    *(
        pipelines("$set within arrays: how often", [{"_id": 1, "b": held, "l": True}, {"_id": 2, "l": [3]}], *([stage, *behind] for stage in (
            {"$set": {"b.c": {"$arrayElemAt": ["$l", 0]}}}, {"$set": {"b": {"c": {"$arrayElemAt": ["$l", 0]}}}},
        ) for behind in ([{"$bucketAuto": {"groupBy": "$l", "buckets": 1}}], [{"$group": {"_id": "$l"}}], [{"$count": "n"}])))
        for held in ([], [1, 2], 1, {})
    ),
    *(
        commands(
            "$merge: a mistake in its turn", {"c": documents, "o": held},
            *(
                {"aggregate": "c", "pipeline": [{"$addFields": {"_id": "$n"}}, {"$merge": {"into": "o", **options}}], "cursor": {}}
                for options in ({}, {"whenMatched": "keepExisting"}, {"whenMatched": "replace"})
            ),
            writes=True,
        )
        for held in ([], [{"_id": Decimal128("3")}])
        for documents in (
            [{"_id": 0, "n": Decimal128("3")}, {"_id": 1, "n": 3}, {"_id": 2, "": 1}], [{"_id": 0, "": 1, "n": 5}, {"_id": 1, "n": Decimal128("3")}, {"_id": 2, "n": 4}],
        )
    ),
]
