"""Filters, by operator."""

from bson import Binary, Code, DBRef, MaxKey, MinKey, Regex, Timestamp

from compat.case import MISSING, filters
from compat.cases.values import ARRAYS, BROAD, EVERYTHING, INF, NAN, NUMBERS, OBJECTS, OID, OTHERS, STRINGS, D, L, T, numbered


ALL = numbered(EVERYTHING)
SOME = numbered(BROAD)
COMPARED = [
    0, 1, 1.0, L(1), D("1"), -0.0, 1.5, NAN, D("NaN"), INF, -INF, L(2**53 + 1), float(2**53), L(2**63 - 1), 9223372036854775808.0, D("0.1"),
        0.1, "", "a", "abc",
    "é", None, True, False, OID, T(0), T(1_582_979_696_789), Timestamp(5, 1), Timestamp(0, 0), Binary(b"abc"), Binary(bytes(16), 4), [],
        [1], [1, 2, 3], [[1, 2], [3]], [[]], [None],
    {}, {"a": 1}, {"b": 1, "a": 2}, {"a": {"b": 2}}, MinKey(), MaxKey(), Code("f()"), Code("f()", {"x": 1}),
]
PATHS = [
    {"_id": 0, "a": {"b": 1}}, {"_id": 1, "a": {"b": [1, 2]}}, {"_id": 2, "a": [{"b": 1}, {"b": 2}]},
        {"_id": 3, "a": [{"b": [1, 2]}, {"b": 3}]},
    {"_id": 4, "a": [[{"b": 1}]]}, {"_id": 5, "a": 1}, {"_id": 6, "a": []}, {"_id": 7}, {"_id": 8, "a": None}, {"_id": 9, "a": {"b": None}},
        {"_id": 10, "a": [{}]},
    {"_id": 11, "a": [{"b": None}, 1]}, {"_id": 12, "a": {"0": {"b": 1}}}, {"_id": 13, "a": [1, [2, {"b": 1}]]},
        {"_id": 14, "a": {"b": {"c": 1}}},
    {"_id": 15, "a": [{"b": {"c": 1}}, {"b": {"c": [2]}}]}, {"_id": 16, "a": [[1, 2], [3, 4]]}, {"_id": 17, "a": [{"0": 5}]},
        {"_id": 18, "a": {"b": []}},
    {"_id": 19, "a": [None]}, {"_id": 20, "a": [[]]}, {"_id": 21, "a": {"": 1}}, {"_id": 22, "": 1}, {"_id": 23, "a": "b"},
        {"_id": 24, "a": [1, 2, 3]},
]
PATH_NAMES = ["a", "a.b", "a.b.c", "a.0", "a.1", "a.0.b", "a.0.0", "a.1.b", "a.00", "a.-1", "", ".a", "a..b", "a.b.0", "a.0.b.0", "x",
    "a.length"]
LISTS = numbered(ARRAYS + [1, "a", None, MISSING, {"0": 1}, {"a": [1, 2]}, [[1, 2]], [[[1]]], [1, [1]], [{"a": [1, 2]}],
    [{"a": 1, "b": 2}, {"a": 2, "b": 1}], [5, 12], [0, 20]])
BITS = numbered([*NUMBERS, Binary(b""), Binary(b"\x01"), Binary(b"\xff\x00\x80"), Binary(bytes(16), 4), "1", None, [1, 2], [], True, 54,
    L(54), 54.0, D("54"), [54]])
TEXTS = numbered([*STRINGS, "Abc\ndef", "a.b", "a b", "x\ny", Regex("abc"), Regex("^a", "i"), Regex("abc", "i"), 1, None, ["abc", "x"],
    [["abc"]], "ÀÉ", "(abc)", "line1\nabc", "tab\tx", "foo/bar"])

BLOCKS = [
    *(filters(f"predicate {name}", ALL, *({"a": {name: value}} for value in COMPARED)) for name in ("$eq", "$ne", "$gt", "$gte", "$lt",
        "$lte")),
    filters("predicate implicit equality", ALL,
        *({"a": value} for value in [*COMPARED, Regex("^a"), Regex("abc", "i"), {"$ref": "x", "$id": 1}, DBRef("c", 1)])),
    filters(
        "predicate $eq", SOME, {"a": {"$eq": Regex("a")}}, {"a": {"$eq": {"$a": 1}}}, {"a": {"$eq": 1, "$ne": 2}},
            {"a": {"$eq": 1, "b": 2}}, {"a": {"b": 2, "$eq": 1}},
        {"$eq": 1}, {"a": {"$eq": {"$gt": 1}}}, {"_id": {"$eq": 3}}, {"_id": 3, "a": 1},
    ),
    filters("predicate $ne", SOME, {"a": {"$ne": Regex("a")}}, {"a": {"$ne": {"$a": 1}}}, {"_id": {"$ne": 3}}, {"$ne": 1}),
    *(filters(f"predicate {name}", SOME, {"a": {name: Regex("a")}}, {"a": {name: {"$a": 1}}}, {name: 1},
        {"_id": {name: 3}}) for name in ("$gt", "$gte", "$lt", "$lte")),
    filters(
        "predicate $in", ALL, {"a": {"$in": []}}, {"a": {"$in": [1]}}, {"a": {"$in": [1, "a", None]}}, {"a": {"$in": [None]}},
            {"a": {"$in": [[]]}}, {"a": {"$in": [[1, 2, 3]]}},
        {"a": {"$in": [Regex("^a")]}}, {"a": {"$in": [Regex("^A", "i"), 1]}}, {"a": {"$in": [Regex("^a", "i"), None]}},
            {"a": {"$in": [NAN]}}, {"a": {"$in": [{"a": 1}]}},
        {"a": {"$in": [{"$gt": 1}]}}, {"a": {"$in": 1}}, {"a": {"$in": None}}, {"a": {"$in": {}}}, {"a": {"$in": [MinKey(), MaxKey()]}},
            {"a": {"$in": [L(1), 2.0, D("7")]}},
        {"a": {"$in": [1, 1, 1.0]}}, {"a": {"$in": [T(0), OID, True]}}, {"a": {"$in": [[1, 2], [3]]}}, {"_id": {"$in": [1, 2, 500]}},
            {"$in": [1]}, {"a": {"$in": [{}]}},
        {"a": {"$in": ["", "é"]}}, {"a": {"$in": [Regex("(")]}}, {"a": {"$in": list(range(200))}},
            {"a": {"$in": [{"$ref": "c", "$id": 1}]}},
    ),
    filters(
        "predicate $nin", ALL, {"a": {"$nin": []}}, {"a": {"$nin": [1]}}, {"a": {"$nin": [1, "a", None]}}, {"a": {"$nin": [None]}},
            {"a": {"$nin": [[]]}}, {"a": {"$nin": [Regex("^a")]}},
        {"a": {"$nin": 1}}, {"a": {"$nin": [{"$gt": 1}]}}, {"a": {"$nin": [NAN]}}, {"a": {"$nin": [{}, []]}}, {"_id": {"$nin": [1, 2]}},
    ),
    filters(
        "predicate $exists", ALL, *({"a": {"$exists": value}} for value in (True, False, 1, 0, None, "x", "", [], {}, 0.0, NAN, D("0"))),
            {"b": {"$exists": False}}, {"$exists": True},
        {"_id": {"$exists": False}},
    ),
    filters("predicate paths", PATHS, *({name: {"$exists": True}} for name in PATH_NAMES),
        *({name: {"$exists": False}} for name in PATH_NAMES)),
    filters("predicate paths", PATHS, *({name: None} for name in PATH_NAMES), *({name: {"$ne": None}} for name in PATH_NAMES)),
    filters("predicate paths", PATHS, *({name: 1} for name in PATH_NAMES), *({name: {"$gt": 1}} for name in PATH_NAMES),
        *({name: {"$not": {"$gt": 1}}} for name in PATH_NAMES)),
    filters("predicate paths", PATHS, *({name: {"$type": "array"}} for name in PATH_NAMES),
        *({name: {"$in": [None, 2]}} for name in PATH_NAMES), *({name: {"$lte": None}} for name in PATH_NAMES)),
    filters("predicate paths", PATHS, *({name: {"$size": 2}} for name in PATH_NAMES), *({name: [1, 2]} for name in PATH_NAMES),
        *({name: {"$elemMatch": {"$gte": 1}}} for name in PATH_NAMES)),
    filters("predicate paths", PATHS, *({"a.": value} for value in (1, None, {"$exists": True}, {"$type": "array"}))),
    filters(
        "predicate $type", ALL, *({"a": {"$type": value}} for value in [*range(-2, 22), 127, 255, 18.0, L(16), D("2"), 1.5, NAN]),
        *({"a": {"$type": value}} for value in (
            "double", "string", "object", "array", "binData", "undefined", "objectId", "bool", "date", "null", "regex", "dbPointer",
                "javascript", "symbol", "javascriptWithScope",
            "int", "timestamp", "long", "decimal", "minKey", "maxKey", "number", "missing", "String", "", "nope")),
        {"a": {"$type": ["int", "string"]}}, {"a": {"$type": ["number", 2]}}, {"a": {"$type": []}}, {"a": {"$type": [[1]]}},
            {"a": {"$type": None}}, {"a": {"$type": True}}, {"a": {"$type": {}}},
        {"a": {"$type": ["int", "nope"]}}, {"a": {"$not": {"$type": "number"}}},
    ),
    filters(
        "predicate $mod", ALL, *({"a": {"$mod": value}} for value in (
            [2, 0], [2, 1], [3, 1], [-2, 1], [2, -1], [2.5, 0], [2, 1.9], [L(2), L(1)], [D("2"), D("1")], [1, 0], [0, 0], [0.5, 0],
                [NAN, 1], [2, NAN], [INF, 0], [2], [], [2, 1, 0], 2,
            ["a", 1], [2, "a"], [None, 1], [2, None], [2**40, 1], [1e30, 1], [D("1E+30"), 1], [D("NaN"), 1], {"0": 2}, None, [-1, 0],
                [L(-(2**63)), 0])),
        {"a": {"$not": {"$mod": [2, 0]}}}, {"$mod": [2, 0]},
    ),
    filters(
        "predicate $size", LISTS, *({"a": {"$size": value}} for value in (0, 1, 2, 3, 4, 1.0, L(2), D("2"), -1, 1.5, "1", None, NAN, [],
            {"$gt": 1}, 2**31, L(2**40), True)),
        {"a.a": {"$size": 2}}, {"a.0": {"$size": 2}}, {"a": {"$not": {"$size": 1}}}, {"$size": 1},
    ),
    filters(
        "predicate $all", LISTS, *({"a": {"$all": value}} for value in (
            [], [1], [1, 2], [1, 1], [None], [[]], [[1, 2]], [[1, 2], [3]], ["a", "b"], [Regex("^a")], [{"a": 1}],
                [{"$elemMatch": {"a": 1}}], [{"$elemMatch": {"a": 1}}, {"$elemMatch": {"b": 1}}],
            [{"$elemMatch": {"$gt": 1, "$lt": 3}}], [{"$elemMatch": {"a": 1}}, 1], [1, {"$elemMatch": {"a": 1}}], [{"$gt": 1}], 1, None, {},
                [NAN], [True, False], [1, [1]], [{}])),
        {"a.a": {"$all": [1, 2]}}, {"a.0": {"$all": [1]}}, {"a": {"$not": {"$all": [1]}}}, {"a": {"$all": [1], "$size": 1}}, {"$all": [1]},
    ),
    filters(
        "predicate $elemMatch", LISTS, *({"a": {"$elemMatch": value}} for value in (
            {}, {"$gt": 1}, {"$gt": 1, "$lt": 3}, {"$eq": 1}, {"$in": [1, "a"]}, {"$ne": 1}, {"$nin": [1]}, {"a": 1}, {"a": 1, "b": 2},
                {"a": {"$gt": 1}}, {"$elemMatch": {"$gt": 1}},
            {"$elemMatch": {"$elemMatch": {"$eq": 1}}}, {"$not": {"$gt": 1}}, {"$exists": True}, {"$type": "int"}, {"$type": "array"},
                {"$size": 2}, {"$regex": "a"}, {"0": 1}, {"k": "x"},
            {"$and": [{"a": 1}, {"b": 2}]}, {"$or": [{"a": 1}, {"k": "y"}]}, {"$nor": [{"a": 1}]}, {"$gt": 1, "a": 1}, {"a": 1, "$gt": 1},
                {"$where": "1"}, {"$expr": {"$eq": [1, 1]}}, {"$all": [1]},
            {"$mod": [2, 0]}, {"$eq": None}, {"a": None}, {"a.b": 1}, {"a": [1, 2]}, {"a": {"$elemMatch": {"$eq": 1}}},
                {"$text": {"$search": "a"}}, {"$foo": 1}, {"$comment": "x", "a": 1},
            1, "a", None, [], [1])),
        {"a": {"$not": {"$elemMatch": {"$gt": 1}}}}, {"a.0": {"$elemMatch": {"$eq": 1}}}, {"a.a": {"$elemMatch": {"$eq": 1}}},
            {"$elemMatch": {"a": 1}}, {"a": {"$elemMatch": {"$gte": 5, "$lte": 10}}},
        {"a": {"$gte": 5, "$lte": 10}},
    ),
    filters(
        "predicate $not", SOME, *({"a": {"$not": value}} for value in (
            {"$gt": 1}, {"$gt": 1, "$lt": 5}, {"$eq": 1}, {"$not": {"$gt": 1}}, {"$exists": True}, {"$in": [1, None]}, {"$regex": "a"},
                Regex("a"), {}, 1, None, [], {"a": 1}, {"$foo": 1},
            {"$type": "number"}, {"$mod": [2, 0]}, {"$size": 2}, {"$elemMatch": {"$gt": 1}}, {"$all": [1, 2]}, {"$ne": 1}, {"$nin": [1]},
                {"$and": [{"a": 1}]}, {"$not": 1}, {"$regex": "a", "$options": "i"},
            {"$options": "i"})),
        {"$not": {"a": 1}}, {"a": {"$not": {"$gt": 1}, "$lt": 5}},
    ),
    filters(
        "predicate $and $or $nor", SOME, {"$and": [{"a": {"$gt": 1}}, {"a": {"$lt": 5}}]}, {"$or": [{"a": 1}, {"a": "abc"}]},
            {"$nor": [{"a": 1}, {"a": None}]}, {"$and": []}, {"$or": []}, {"$nor": []},
        {"$and": 1}, {"$or": {}}, {"$nor": "x"}, {"$and": [1]}, {"$or": [{}]}, {"$nor": [{}]}, {"$and": [{}]}, {"$or": [{"a": 1}, 1]},
            {"$and": [{"$or": [{"a": 1}, {"a": 2}]}, {"_id": {"$gt": 1}}]},
        {"$or": [{"$and": [{"a": 1}, {"_id": 3}]}, {"a": "abc"}]}, {"a": 1, "$or": [{"_id": 3}, {"_id": 4}]}, {"a": {"$and": [{"$gt": 1}]}},
            {"a": {"$or": [1]}}, {"$and": [{"a": {"$foo": 1}}]},
        {"$or": [{"a": 1}], "$and": [{"_id": 3}]}, {"$or": None}, {"$and": [None]}, {"$foo": []}, {"$xor": []},
            {"a": {"$gt": 1}, "b": None}, {"$nor": [{"$nor": [{"a": 1}]}]},
        {"$or": [{"a": {"$in": [1]}}, {"a": {"$in": ["abc"]}}]}, {"$alwaysTrue": 1}, {"$alwaysFalse": 1}, {"$alwaysTrue": 2},
            {"$comment": "x"}, {"$comment": 1, "a": 1}, {"a": {"$comment": "x"}},
    ),
    filters(
        "predicate bits", BITS, *({"a": {name: value}} for name in ("$bitsAllSet", "$bitsAllClear", "$bitsAnySet",
            "$bitsAnyClear") for value in (
            0, 1, 54, [], [0], [1, 2], [1, 5], [63], [64], [200], Binary(b""), Binary(b"\x36"), Binary(b"\x00\x01"), L(2**40), 2.0,
                D("3"))),
        *({"a": {"$bitsAllSet": value}} for value in (-1, 1.5, "1", None, [-1], [1.5], ["a"], {}, True, NAN, L(-(2**63)), 2.0**64, [2**31],
            D("1.5"), Binary(b"a", 4), [None])),
    ),
    filters(
        "predicate $regex", TEXTS, *({"a": {"$regex": value}} for value in (
            "a", "^a", "c$", "^abc$", "A", "", "b.c", "a|x", "[a-c]+", "é", "^.$", "^..$", "\\d", "\\w+", "\\bX", "(?i)ABC", "(?s)a.*f",
                "(?m)^abc", "(a)(b)\\2", "a{2}", "日", "\\p{L}", "^\\s", "(?:a)b", "(?=a)",
            "(?<!a)b", "\\Aabc", "abc\\z", "x*", "[", "(", "*", "a**", "\\", "(?P<n>a)", "\\x{e9}", "\\Qa.b\\E", Regex("ABC", "i"),
                Regex("^a", "m"), Regex("a b", "x"), Regex("a.*f", "s"), Regex("a", "u"), 1, None, {}, ["a"])),
        *({"a": {"$regex": "ABC", "$options": value}} for value in ("i", "m", "x", "s", "im", "ix", "", "u", "g", "l", "z", "ii", 1, None)),
        {"a": {"$options": "i"}}, {"a": {"$options": "i", "$regex": "ABC"}}, {"a": {"$regex": Regex("ABC"), "$options": "i"}},
            {"a": {"$regex": Regex("ABC", "i"), "$options": ""}}, {"a": {"$regex": Regex("ABC", "i"), "$options": "m"}},
        {"a": {"$regex": "^a", "$gt": "b"}}, {"a": {"$regex": "a b # comment", "$options": "x"}}, {"a": Regex("ABC", "i")},
            {"a": Regex("^a", "m")}, {"a": Regex("[")}, {"a": Regex("a", "g")}, {"$regex": "a"},
        {"a": {"$not": Regex("a")}}, {"a": {"$not": {"$regex": "a"}}}, {"a": {"$regex": "a\0b"}}, {"a": {"$regex": "foo/bar"}},
            {"_id": {"$regex": "1"}}, {"a": {"$in": [Regex("abc")]}}, {"a": {"$eq": Regex("abc")}},
    ),
    filters(
        "predicate $expr", SOME, *({"$expr": value} for value in (
            {"$gt": ["$a", 1]}, {"$eq": ["$a", None]}, {"$eq": ["$a", "$missing"]}, "$a", 1, 0, None, True, "x", [], {},
                {"$lt": ["$a", "$_id"]}, {"$and": ["$a", True]}, {"$foo": 1}, {"$add": ["$a", 1]}, {"$divide": [1, 0]},
            {"$gt": ["$_id", 3]}, {"$in": ["$_id", [1, 2, 3]]}, {"$eq": [{"$type": "$a"}, "missing"]}, {"$eq": ["$a", []]},
                {"$ne": ["$a", {}]}, {"$gte": ["$a", "a"]}, {"$lte": ["$a", None]}, "$$ROOT", "$$x", {"$literal": 0}, {"$rand": {}},
            {"$regexMatch": {"input": {"$ifNull": [{"$convert": {"input": "$a", "to": "string", "onError": ""}}, ""]}, "regex": "b"}},
                {"$cond": ["$a", 1, 0]}, {"$not": ["$a"]}, {"$eq": ["$a", "$a"]}, {"$gt": ["$a", {"$literal": {}}]})),
        {"$expr": {"$gt": ["$a", 1]}, "a": {"$lt": 5}}, {"$or": [{"$expr": {"$eq": ["$_id", 1]}}, {"a": "abc"}]},
            {"$and": [{"$expr": {"$eq": ["$a", 1]}}]}, {"$nor": [{"$expr": {"$gt": ["$_id", 3]}}]}, {"a": {"$expr": 1}},
    ),
    filters(
        "predicate refused", SOME, {"$where": "1"}, {"$where": 1}, {"$where": {}}, {"a": {"$where": "1"}},
            {"$text": {"$search": "a"}}, {"$text": 1}, {"$jsonSchema": 1}, {"$foo": 1}, {"a": {"$foo": 1}}, {"a": {"$gt": 1, "$foo": 1}},
        {"a": {"$gt": 1, "b": 1}}, {"$": 1}, {"a": {"$": 1}}, {"a": {"$prefix": "x"}}, {"a": {"$maxDistance": 1}}, {"$and": {"a": 1}},
            {"$gt": 1}, {"a.$": 1}, {"$a.b": 1}, {"a.$b": 1}, {"$or": [{"$where": "1"}]},
            {"$nor": [{"$text": {"$search": "x"}}]},
        {"a": {"$near": [0, 0]}}, {"a": {"$geoIntersects": 1}}, {"$sampleRate": 2}, {"$sampleRate": "x"}, {"$sampleRate": -1},
            {"$sampleRate": 0}, {"$sampleRate": 1},
    ),
    filters("predicate types of objects", numbered(OBJECTS + [[{"a": 1}], [{"a": {"b": 2}}]]), {"a": {}}, {"a": {"a": 1}}, {"a.a": 1},
        {"a.a.b": 2}, {"a": {"a": 2, "b": 1}}, {"a": {"b": 1, "a": 2}}, {"a": {"$eq": {}}}, {"a": {"$gt": {}}}, {"a": {"$lt": {"a": 2}}},
            {"a": {"$gte": {"a": 1}}}, {"a": {"$type": "object"}}, {"a": {"a": [1, {"b": 2}]}}, {"a.a.1.b": 2}, {"a.": 1},
                {"a.a.b": {"$exists": True}}, {"a": {"a": 1.0}}, {"a": {"a": L(1)}}),
    filters("predicate ranges over types", numbered([*OTHERS, 1, "a", [1], [5], [1, 5], [[1]], {}, NAN, [NAN], [None], [[None]]]),
        *({"a": {low: x, high: y}} for low, high in (("$gt", "$lt"), ("$gte", "$lte"))
            for x, y in ((0, 4), (1, 1), (None, None), (MinKey(), MaxKey()), ("", {}), (NAN, NAN), ([], [3]), (False, True), (4, 2),
                ({}, {"z": 1}), (0, "z")))),
]
