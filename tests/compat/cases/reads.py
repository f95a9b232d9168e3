"""Projections, sorts, and what the commands that read take besides a filter."""

from itertools import combinations, permutations

from bson import Regex, Timestamp

from compat.case import MISSING, commands, differs, projections, sorts
from compat.cases.values import ARRAYS, BROAD, EVERYTHING, NAN, D, L, T, numbered

TWO_NANS = "the JSON texts of the two types' NaN are two ids"
SHAPES = [
    {"_id": 1, "a": 1, "b": {"c": 1, "d": {"e": 2}}, "l": [1, 2, 3, 4, 5]},
        {"_id": 2, "a": [1, 2], "b": [{"c": 1, "d": 2}, {"c": 3}, 5], "l": []},
        {"_id": 3, "b": {"c": [{"x": 1}, {"x": 2}]}, "l": [{"x": 1}, {"x": 2}, {"y": 1}]},
    {"_id": 4, "a": None, "b": 5}, {"_id": 5, "a": {"b": {"c": [1, [2, {"d": 1}]]}}, "l": [[1, 2], [3]]}, {"_id": 6},
]
SORTED = numbered([*EVERYTHING, [5, 1], [0], [9], {"b": 1}, {"b": [3, 0]}])
PAIRS = [{"_id": number, "a": a, "b": b} for number,
    (a, b) in enumerate((a, b) for a in (2, 1, None, "x", 1.0) for b in ("y", 3, [1], None))]

BLOCKS = [
    projections(
        "projection inclusion", SHAPES, {}, {"a": 1}, {"a": True}, {"a": 1.5}, {"a": L(1)}, {"a": D("1")}, {"a": 1, "_id": 0}, {"_id": 1},
            {"_id": 1, "a": 1}, {"b.c": 1}, {"b": {"c": 1}}, {"b": {"c": 1, "d": {"e": 1}}}, {"b.d.e": 1}, {"x": 1}, {"l.x": 1},
            {"a.b.c.d": 1}, {"b.c": 1, "b.d": 1}, {"b.c": 1, "l": 1}, {"b": 1, "b.c": 1}, {"b.c": 1, "b": 1}, {"b": 1, "b.c.x": 1},
            {"l": 1, "a": 1}, {"l.0": 1},
        {"": 1}, {"a.": 1}, {".a": 1}, {"a..b": 1}, {"$a": 1}, {"a.$b": 1}, {"_id.x": 1}, {"a": 1, "b": 0}, {"a": 0, "b": 1},
            {"_id": 0, "a": 1, "b": 0}, {"a": NAN}, {"b.c": 1, "_id": 0}, {"a": 1, "a": 1},
    ),
    projections("projection exclusion", SHAPES, {"a": 0}, {"a": False}, {"a": 0.0}, {"a": L(0)}, {"a": D("0")}, {"_id": 0},
        {"_id": 0, "a": 0}, {"b.c": 0}, {"b": {"c": 0}}, {"b.d.e": 0}, {"l.x": 0}, {"a.b.c.d": 0}, {"x": 0}, {"b.c": 0, "b.d": 0},
        {"b": 0, "b.c": 0}, {"_id": 1, "a": 0}, {"a": 0, "_id": 1}, {"b": {"c": 0, "d": 1}}, {"l.0": 0}, {"a": -0.0}),
    projections(
        "projection expressions", SHAPES, {"x": "$a"}, {"x": "$b.c"}, {"x": "text"}, {"x": {"$add": [1, 2]}}, {"x": {"$literal": 1}},
            {"a": 1, "x": "$l"}, {"x": {"y": "$a"}}, {"b": {"x": "$a"}}, {"x": None}, {"x": T(0)}, {"x": [1, "$a"]}, {"x": []}, {"x": {}},
            {"a": 0, "x": "$a"}, {"x": {"$foo": 1}}, {"x": "$$ROOT"}, {"x": "$$nope"}, {"x": {"$divide": [1, 0]}}, {"a": {"$size": "$l"}},
            {"_id": "$a"}, {"_id": {"$add": [1, "$_id"]}}, {"x.y": "$a"}, {"b.q": "$a"}, {"l.q": "$a"},
            {"x": {"$cond": ["$a", 1, "$$REMOVE"]}},
        {"x": Regex("a")}, {"x": {"$add": [1, 2], "y": 1}}, {"x": {"y": 1, "$add": [1]}}, {"x": "$"}, {"x": "$a."},
            {"x": {"$meta": "textScore"}}, {"x": {"$meta": "nope"}}, {"x": Timestamp(1, 1)}, {"x": {"$rand": {}}, "_id": 0, "a": 0},
    ),
    projections("projection $slice", SHAPES, *({"l": {"$slice": value}} for value in (1, -1, 2, 0, 10, -10, [1, 2], [-2, 1], [0, 0],
        [1, -1], [10, 1], [1], [1, 2, 3], "a", None, 1.5, L(2), [1.0, 2.0], ["a", 1], [1, "a"], {}, NAN, 2**31, L(2**40))),
        {"b.c": {"$slice": 1}}, {"l": {"$slice": 1}, "a": 1}, {"l": {"$slice": 1}, "a": 0}, {"l.x": {"$slice": 1}}, {"a": {"$slice": 1}},
        {"l": {"$slice": 1}, "_id": 0}, {"l": {"$slice": 1}, "b": {"$slice": 1}}, {"l": {"$slice": ["$l", 1]}},
        {"l": {"$slice": ["$l", 1, 2]}}, {"_id": {"$slice": 1}}),
    projections("projection $elemMatch", SHAPES,
        *({"l": {"$elemMatch": value}} for value in ({"$gt": 2}, {"x": 2}, {"x": {"$gt": 0}}, {"y": 1}, {}, 1, None, {"$foo": 1},
        {"$elemMatch": {"$gt": 1}}, {"$in": [3, 4]}, {"$expr": 1}, {"$where": "1"}, {"$eq": {"x": 1}})), {"b.c": {"$elemMatch": {"x": 1}}},
        {"l": {"$elemMatch": {"$gt": 2}}, "a": 1}, {"l": {"$elemMatch": {"$gt": 2}}, "a": 0},
        {"l": {"$elemMatch": {"$gt": 2}}, "b": {"$slice": 1}}, {"b": {"$elemMatch": {"c": 3}}},
        {"l": {"$elemMatch": {"$gt": 2}}, "_id": 0}),
    projections("projection positional", SHAPES,
        *(({"l": 3}, projection) for projection in ({"l.$": 1}, {"l.$": 0}, {"l.$": "x"}, {"x.$": 1}, {"l.$": 1, "a": 1},
        {"l.$": 1, "b.$": 1}, {"l.$": 1, "l": 1}, {"l.$.x": 1}, {"$": 1}, {"l.$": 1, "b": {"$slice": 1}},
        {"l.$": 1, "b": {"$elemMatch": {"c": 1}}}, {"l.$": 1, "_id": 0}, {"l.$": 1, "a": 0})),
                ({"l.x": 2}, {"l.$": 1}), ({"l": {"$elemMatch": {"x": 2}}}, {"l.$": 1}), ({"b.c": 3}, {"b.$": 1}),
                    ({"b.c.x": 2}, {"b.c.$": 1}), ({}, {"l.$": 1}), ({"a": 1}, {"l.$": 1}), ({"l": {"$gt": 1}}, {"l.$": 1}),
                    ({"l": {"$in": [4, 5]}}, {"l.$": 1}), ({"$or": [{"l": 2}]}, {"l.$": 1}), ({"l": {"$all": [2, 4]}}, {"l.$": 1}),
                    ({"l": {"$not": {"$gt": 9}}}, {"l.$": 1})),
    # Of several conditions that match an array, the last one in the filter's order determines the
    # element.
    *(
        commands(
            "projection positional: which of several conditions", [{"_id": 1, "l": [0, 1, 2, 3], "b": ["b", D("7"), "", 3], "c": [{"x": 1}, {"x": 2, "y": 1}, {"y": 2}]}],
            *(
                {**command, place: {"l.$": 1}, query: {**condition, **beside}}
                for command, query, place in [
                    ({"find": "c"}, "filter", "projection"),
                    ({"find": "c", "sort": {"l": 1}}, "filter", "projection"),
                    ({"findAndModify": "c", "update": {"$set": {"z": 1}}}, "query", "fields"),
                ]
                for condition in [
                    *({"b": dict(pair)} for one in combinations([("$gt", D("2")), ("$lte", ""), ("$gte", "b"), ("$in", [3, "b"]), ("$ne", 5), ("$exists", True)], 2)
                      for pair in (one, one[::-1])),
                    *({"$and": [{"b": a}, {"b": b}]} for a, b in permutations(["b", "", D("7")], 2)),
                    *({"$or": [{"b": a}, {"c.x": b}]} for a in ("b", "nothing") for b in (1, 2)),
                    {"b": "", "c.x": 1}, {"c.x": 1, "b": ""}, {"c.y": 2, "c.x": 1}, {"c.x": 1, "c.y": 2}, {"c": {"$elemMatch": {"x": 2}}, "b": "b"},
                    {"$nor": [{"b": "x"}], "c.y": 1}, {"$jsonSchema": {}}, {"$or": [{"b": 3}, {"$jsonSchema": {}}]}, {"$expr": True}, {"b": 3, "$expr": True}, {"$text": {"$search": "a"}},
                    {"c": {"$near": [0, 0]}}, {"b": 3, "$comment": "x"},
                ]
                for beside in ({}, {"_id": 1})
            ),
            setup=setup, writes=True,
        )
        for setup in ([], [{"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b"}, {"key": {"t": "text"}, "name": "t"}]}])
    ),
    sorts("sort", SORTED, {"a": 1}, {"a": -1}, {"a": 1, "_id": -1}, {"_id": -1}, {"a.b": 1, "_id": 1}, {"a.0": 1, "_id": 1},
        {"a.a": -1, "_id": 1}, {"x": 1}, {"x": -1, "_id": 1}, {"a": L(1)}, {"a": 1.0}, {"a": D("-1")}, {"$natural": 1}, {"$natural": -1}),
    sorts("sort", PAIRS, {"a": 1, "b": 1, "_id": 1}, {"a": -1, "b": 1, "_id": 1}, {"b": 1, "a": -1, "_id": 1}, {"b": -1, "_id": -1},
        {"a": 1}, {"b": 1}, {"b": -1}, {}, {"a": 0}, {"a": 2}, {"a": "x"}, {"a": None}, {"a": True}, {"a": {}}, {"a": {"$meta": "x"}},
        {"a": {"$meta": "textScore"}}, {"": 1}, {"a.": 1}, {".a": 1}, {"a..b": 1}, {"$a": 1}, {"a.$b": 1}, {"$natural": 1, "a": 1},
        {"$natural": 0}, {"a": [1]}, {"a": 1.5}, {"a": NAN}, {"a": -1.0}, {"a.$": 1}, {f"f{number}": 1 for number in range(33)},
        {f"f{number}": 1 for number in range(32)}),
    sorts("sort parallel arrays", [{"_id": 1, "a": [1], "b": [1]}, {"_id": 2, "a": [1, 2], "b": 1}], {"a": 1, "b": 1}, {"a": 1},
        {"b": 1, "a": 1}),
    commands(
        "find options", numbered(list(range(20))), *({"find": "c", **options} for options in (
            {"limit": 5}, {"limit": 0}, {"limit": -5}, {"limit": 5.0}, {"limit": "x"}, {"skip": 15}, {"skip": 100}, {"skip": -1},
                {"skip": 5, "limit": 2, "sort": {"_id": -1}}, {"batchSize": 0}, {"batchSize": 5, "singleBatch": True}, {"batchSize": -5},
                {"limit": 5, "batchSize": 2, "singleBatch": True}, {"singleBatch": 1},
                {"filter": {"a": {"$gte": 18}}, "projection": {"_id": 0}}, {"sort": {"a": -1}, "limit": 3},
                {"hint": {"_id": 1}, "limit": 2}, {"hint": {"_id": -1}, "limit": 2}, {"hint": "_id_", "limit": 2}, {"hint": "nope"},
                {"hint": {"a": 1}}, {"hint": {"$natural": -1}, "limit": 2}, {"hint": {"$natural": 1}, "limit": 2},
            {"hint": 1}, {"let": {"v": 5}, "filter": {"$expr": {"$eq": ["$a", "$$v"]}}},
                {"let": {"v": {"$add": [2, 3]}}, "filter": {"$expr": {"$eq": ["$a", "$$v"]}}}, {"let": {"V": 5}}, {"let": {"v": "$a"}},
                {"let": {"v": 1, "w": "$$v"}, "filter": {"$expr": {"$eq": ["$a", "$$w"]}}}, {"let": 1},
                {"let": {"v": 1}, "projection": {"x": "$$v"}, "limit": 1}, {"comment": {"x": 1}, "limit": 1},
                {"maxTimeMS": 10000, "limit": 1}, {"maxTimeMS": -1}, {"maxTimeMS": "x"}, {"readConcern": {"level": "local"}, "limit": 1},
                {"allowDiskUse": True, "limit": 1}, {"allowDiskUse": 1}, {"tailable": True}, {"awaitData": True}, {"nope": 1},
                {"filter": []}, {"sort": []}, {"projection": []}, {"min": {"a": 1}}, {"max": {"_id": 5}}, {"returnKey": "x"},
                {"showRecordId": "x"}, {"allowPartialResults": True, "limit": 1}, {"noCursorTimeout": True, "limit": 1},
            {"collation": {"locale": "simple"}, "limit": 1}, {"collation": {"locale": "nope"}}, {"collation": {"strength": 2}},
                {"collation": 1}, {"filter": {"_id": 5}, "limit": 1}, {"filter": {"_id": {"$in": [3, 1, 2]}}},
                {"filter": {"_id": {"$gt": 17}}, "sort": {"_id": -1}}, {"filter": {"_id": 5, "a": 6}})),
    ),
    commands(
        "count", numbered(BROAD), *({"count": "c", **options} for options in ({}, {"query": {}}, {"query": {"a": 1}},
            {"query": {"a": {"$type": "number"}}}, {"limit": 3}, {"limit": -3}, {"limit": 0}, {"skip": 3}, {"skip": -3},
            {"skip": 3, "limit": 3}, {"skip": 100}, {"query": {"a": None}}, {"query": {"$foo": 1}}, {"query": 1}, {"query": None},
            {"limit": "x"}, {"skip": "x"}, {"hint": "_id_"}, {"hint": "nope"}, {"fields": {}}, {"nope": 1}, {"limit": 2.5},
            {"query": {"$expr": {"$gt": ["$_id", 5]}}}, {"collation": {"locale": "simple"}}, {"maxTimeMS": 10000},
            {"query": {"a": {"$exists": True}}, "limit": 5, "skip": 2})),
        {"count": "none"}, {"count": ""}, {"count": 1}, {"count": "none", "query": {"$foo": 1}}, {"count": "a..b"}, {"count": "$c"},
    ),
    commands("distinct", numbered([*EVERYTHING, [1, 2], {"b": [1, {"c": 5}]}, [{"b": 7}, {"b": 8}]]),
        *({"distinct": "c", **options} for options in ({"key": "a"}, {"key": "a.b"}, {"key": "a.0"}, {"key": "a.b.c"},
        {"key": "_id", "query": {"_id": {"$lt": 5}}}, {"key": "x"}, {"key": "a", "query": {"a": {"$type": "array"}}},
        {"key": "a", "query": {"a": {"$gt": 1}}}, {"key": ""}, {"key": "a."}, {"key": ".a"}, {"key": "$a"}, {"key": 1}, {},
        {"key": "a", "query": 1}, {"key": "a", "query": {"$foo": 1}}, {"key": "a", "nope": 1}, {"key": "a.k"}, {"key": "a.1"},
        {"key": "a", "query": {"a": None}}, {"key": "a", "query": {"x": 1}}, {"key": "a", "hint": "_id_"}, {"key": "a.0.b"})),
        {"distinct": "none", "key": "a"}, {"distinct": 1, "key": "a"}),
    commands("insert", [{"_id": 1}], *({"insert": "c", **options} for options in (
        {"documents": [{"_id": 2}]}, {"documents": [{"_id": 1}]}, {"documents": [{"_id": 2}, {"_id": 1}, {"_id": 3}]},
            {"documents": [{"_id": 2}, {"_id": 1}, {"_id": 3}], "ordered": False}, {"documents": [{"_id": 1.0}]}, {"documents": [{"a": 1}]},
            {"documents": [{"a": 1, "_id": 5}]}, {"documents": []}, {"documents": [{"_id": [1]}]}, {"documents": [{"_id": Regex("a")}]},
            {"documents": [{"_id": {"$a": 1}}]}, {"documents": [{"_id": {"a": 1}}]}, {"documents": [{"_id": None}]},
            {"documents": [{"$a": 1}]}, {"documents": [{"a.b": 1}]}, {"documents": [{"a": {"$b": 1}}]},
            {"documents": [{"_id": 2, "t": [Timestamp(0, 0)]}]}, {"documents": [1]}, {"documents": 1}, {},
        {"documents": [{"_id": 2}, {"_id": [1]}, {"_id": 3}]}, {"documents": [{"_id": 2}, {"_id": 2}], "ordered": False},
            {"documents": [{"": 1, "_id": 7}]})), differs({"insert": "c", "documents": [{"_id": NAN}, {"_id": D("NaN")}]}, TWO_NANS,
            store="mariadb"), writes=True),
    commands("explain", numbered(list(range(5))), {"explain": {"find": "c", "filter": {"$foo": 1}}}, {"explain": {"nope": 1}},
        {"explain": {}}, {"explain": {"find": "c"}, "verbosity": "x"},
        {"explain": {"aggregate": "c", "pipeline": [{"$nope": 1}], "cursor": {}}}, {"explain": {"insert": "c", "documents": [{}]}},
        {"explain": {"ping": 1}}),
]
