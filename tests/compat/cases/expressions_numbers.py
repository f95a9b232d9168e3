"""Arithmetic, trigonometry, comparison, boolean and conversion expressions."""

from bson import Binary, Regex, Timestamp

from compat.case import MISSING, expressions, over_values
from compat.cases.values import ARRAYS, BROAD, DATES, EVERYTHING, INF, NAN, NUMBERS, OID, STRINGS, D, L, T

PAIRED = [0, 1, -1, 7, 2**31 - 1, -(2**31), L(3), L(2**53 + 1), L(2**63 - 1), L(-(2**63)), 0.0, -0.0, 2.5, -7.5, 1e308, NAN, INF, D("2"),
    D("-2.5"), D("NaN"), D("Infinity"), D("1E+6000")]
PAIRS = [(a, b) for a in PAIRED for b in PAIRED]
FEW = [(a, b) for a in (5, -7, L(9), 2.5, D("7.25"), 0, NAN, None, MISSING, "a", T(5)) for b in (2, L(-3), 0.5, D("1.5"), 0, INF, None,
    MISSING, "b", T(3), True)]
UNARY = ("$abs", "$ceil", "$floor", "$sqrt", "$exp", "$ln", "$log10", "$trunc", "$round")
ROUNDED = [2.5, 3.5, -2.5, 1.15, 12345.678, 0.5, -0.4, 1e300, 5e-324, NAN, INF, 25, -25, 2**31 - 1, L(25), L(2**63 - 1), L(-(2**63)),
    D("2.5"), D("3.5"), D("12345.678"), D("1E+40"), D("NaN"), D("-0.05"), None, "a"]
TRIGONOMETRY = ("$sin", "$cos", "$tan", "$asin", "$acos", "$atan", "$sinh", "$cosh", "$tanh", "$asinh", "$acosh", "$atanh",
    "$degreesToRadians", "$radiansToDegrees")
ANGLES = [0, 1, -1, 0.5, 3.141592653589793, 1e10, 2, L(2), -0.0, NAN, INF, -INF, None, MISSING, "a", True, D("0.5"), D("180"), D("0"),
    D("NaN"), D("-Infinity")]
CONVERTIBLE = [*STRINGS, "+5", " 5", "5 ", "1e400", "-0", "NaN", "Infinity", "-inf", "inf", "0", "false", "2147483648",
    "9223372036854775808", "12abc", "1.", ".5", "1_000", "507f191e810c19729de860ea", "507F191E810C19729DE860EA", "zz",
               "2020-02-29", "2020-02-29T12:30:15.123Z", "2020-02-29 12:30:15", "2020-02-29T12:30:15+0200", "20200229", "Feb 29 2020",
                   "2021-02-29", "12:00", "2020-W10-3", "1582979696789", "1E+2", "0x10", "1,5"]
TARGETS = ("double", "string", "object", "array", "binData", "objectId", "bool", "date", "null", "regex", "javascript", "int", "timestamp",
    "long", "decimal", "minKey", "missing", "undefined")


def of_v(*names):
    return [{name: "$v"} for name in names]


BLOCKS = [
    *(over_values(f"expression {name}", NUMBERS + BROAD, {name: "$v"}) for name in UNARY),
    *(over_values(f"expression {name}", PAIRS, {name: ["$v", "$w"]}) for name in ("$add", "$subtract", "$multiply", "$divide", "$mod")),
    *(over_values(f"expression {name}", FEW, {name: ["$v", "$w"]}) for name in ("$add", "$subtract", "$multiply", "$divide", "$mod", "$pow",
        "$log", "$atan2")),
    over_values("expression $pow", [(a, b) for a in (0, 1, 2, -2, 10, L(3), 2.5, -8, D("2"), D("1.5"), D("0"), NAN, 0.0) for b in (0, 1, 2, 3, -1, -2,
        10, 31, 62, 63, 64, L(2), 0.5, D("2"), D("-1"), 1e3, NAN)], {"$pow": ["$v", "$w"]}),
    over_values("expression $log", [(a, b) for a in (1, 8, 100, L(1024), 0.5, D("8"), 0, -1, NAN, INF) for b in (2, 10, L(2), 0.5, D("2"),
        1, 0, -1, NAN)], {"$log": ["$v", "$w"]}),
    over_values("expression $round", ROUNDED, *({"$round": ["$v", place]} for place in (0, 1, 2, -1, -2, 20, -20, 100, 101, -21, 1.0, 1.5,
        L(1), D("1"), None, "a", "$missing")), {"$round": ["$v"]}),
    over_values("expression $trunc", ROUNDED, *({"$trunc": ["$v", place]} for place in (0, 1, 2, -1, -2, 20, -20, 100, 101, 1.0, 1.5,
        None)), {"$trunc": ["$v"]}),
    *(over_values(f"expression {name}", ANGLES, {name: "$v"}) for name in TRIGONOMETRY),
    expressions(
        "expression arithmetic forms", {"$add": []}, {"$add": 1}, {"$add": [1]}, {"$add": [1, 2, 3, L(4)]}, {"$add": [T(0), 1, 2]},
            {"$add": [1, T(0)]}, {"$add": [T(0), T(1)]}, {"$add": [T(0), 1.5]}, {"$add": [T(0), 2.5]},
        {"$add": [T(0), D("1.5")]}, {"$add": [T(0), L(2**62), L(2**62)]}, {"$add": [2**31 - 1, 1]}, {"$add": [L(2**63 - 1), 1]},
            {"$add": [L(2**63 - 1), 1, -1]}, {"$add": ["a", None]}, {"$add": [None, "a"]}, {"$add": ["$missing", "a"]},
        {"$add": [1, "$missing"]}, {"$add": [1, [2]]}, {"$add": {"a": 1}}, {"$add": [0.1, 0.2]}, {"$add": [D("0.1"), 0.2]},
            {"$add": [1, 1.0]}, {"$add": [L(1), 1.0]}, {"$subtract": [1]}, {"$subtract": [1, 2, 3]}, {"$subtract": 1},
        {"$subtract": [T(1000), T(1)]}, {"$subtract": [T(1000), 1]}, {"$subtract": [1, T(1000)]}, {"$subtract": [T(5), 1.7]},
            {"$subtract": ["a", 1]}, {"$subtract": [None, "a"]}, {"$subtract": [T(1), D("2.5")]}, {"$multiply": []}, {"$multiply": 2},
        {"$multiply": [2, 3, L(4), 0.5]}, {"$multiply": [2**31 - 1, 2]}, {"$multiply": [L(2**62), 2]}, {"$multiply": [L(2**62), 4]},
            {"$multiply": ["a", 1]}, {"$multiply": [None, "a"]}, {"$multiply": [T(0), 1]}, {"$divide": [1]}, {"$divide": [1, 2, 3]},
        {"$divide": [1, 0]}, {"$divide": [1.0, 0.0]}, {"$divide": [D("1"), D("0")]}, {"$divide": [0, 0]}, {"$divide": [6, 3]},
            {"$divide": [L(6), L(4)]}, {"$divide": ["a", 2]}, {"$mod": [5, 0]}, {"$mod": [5.5, 0]}, {"$mod": [-7, 3]}, {"$mod": [7, -3]},
        {"$mod": [-7.5, 2]}, {"$mod": [2**31 - 1, L(5)]}, {"$mod": [D("7.5"), 2]}, {"$mod": [5, D("0")]}, {"$mod": [INF, 2]},
            {"$mod": ["a", 1]}, {"$abs": []}, {"$abs": [1, 2]}, {"$abs": [-5]}, {"$abs": L(-(2**63))}, {"$abs": -(2**31)},
        {"$sqrt": -1}, {"$sqrt": D("2")}, {"$sqrt": 16}, {"$ln": 0}, {"$ln": -1}, {"$log10": 1000}, {"$log10": D("100")}, {"$log": [8]},
            {"$log": [8, 2, 2]}, {"$exp": 710}, {"$exp": D("0")}, {"$pow": [0, -1]}, {"$pow": [2, 0.5]}, {"$pow": [2]}, {"$pow": ["a", 1]},
            {"$pow": [1, "a"]},
        {"$round": []}, {"$round": [1, 2, 3]}, {"$trunc": []}, {"$rand": 1}, {"$rand": [1]}, {"$rand": {"a": 1}},
            {"$lt": [{"$rand": {}}, 1]}, {"$lt": [{"$rand": []}, 1]}, {"$atan2": [1]}, {"$asin": 2}, {"$acos": -1.5}, {"$acosh": 0},
            {"$atanh": 1}, {"$atanh": -1}, {"$atanh": 2}, {"$sin": INF}, {"$cos": -INF},
        {"$bitAnd": [1, 3]}, {"$bitNot": 1}, {"$sigmoid": 1}, {"$nope": 1}, {"$add": [{"$nope": 1}]},
    ),
    over_values("expression $cmp", EVERYTHING,
        *({"$cmp": ["$v", value]} for value in (1, L(2**53 + 1), D("0.1"), "abc", None, [], {"$literal": {}}, T(0), NAN, True,
        "$missing"))),
    *(over_values(f"expression {name}", EVERYTHING,
        *({name: ["$v", value]} for value in (1, "a", None, "$missing", {"$literal": {"a": 1}}, [1, 2, 3]))) for name in ("$eq", "$ne",
        "$gt", "$gte", "$lt", "$lte")),
    expressions("expression comparison forms",
        *({name: value} for name in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp") for value in ([], [1], [1, 2, 3], 1, "a", {},
        [1, 1.0], [NAN, NAN], [None, "$missing"]))),
    over_values("expression boolean", EVERYTHING, {"$and": ["$v"]}, {"$or": ["$v"]}, {"$not": "$v"}, {"$not": ["$v"]},
        {"$and": ["$v", True]}, {"$or": ["$v", False]}, {"$cond": ["$v", 1, 2]}),
    expressions(
        "expression boolean", {"$and": []}, {"$or": []}, {"$and": 1}, {"$or": 0}, {"$and": [1, 0]}, {"$and": [0, {"$divide": [1, "$_id"]}]},
            {"$or": [1, {"$divide": [1, "$_id"]}]}, {"$and": [1, {"$divide": [1, "$_id"]}]}, {"$not": []}, {"$not": [1, 2]}, {"$not": [[]]},
        {"$and": [True, None]}, {"$or": [None, "$missing"]}, {"$and": ["", []]}, {"$and": {}}, {"$not": {}},
    ),
    over_values("expression $convert", [*CONVERTIBLE, *NUMBERS],
        *({"$convert": {"input": "$v", "to": to, "onError": "error"}} for to in ("double", "int", "long", "decimal", "bool", "string",
        "date", "objectId"))),
    over_values("expression $convert", BROAD, *({"$convert": {"input": "$v", "to": to}} for to in TARGETS)),
    over_values("expression $convert", [1, None],
        *({"$convert": {"input": "$v", "to": to, "onNull": "null"}} for to in (1, 2, 3, 16, 18, 19, 1.0, 1.5, -1, 0, 100, 127, "Int", "",
        None, "$missing", True, {}, "$v", L(16), D("16")))),
    *(over_values(f"expression {name}", EVERYTHING, {name: "$v"}) for name in ("$toBool", "$toInt", "$toLong", "$toDouble", "$toDecimal",
        "$toString", "$toDate", "$toObjectId")),
    over_values("expression $convert of numbers in text", ["-0x1p0", "0x1p0", "0X1P3", "+0x1.8p1", "-0x", "0X.8", "0X1P99999", "-0x1p-1080", "1E6145", "-1E6144",
        "1E-6176", "1E-6177", "0.5E-6176", "1.5E-6176", "1.23456789012345678901234567890123456789", "-99999999999999999999999999999999999999E6100",
        "1e99999999999999999999", "0E7000", "0e-7000", "10E-6177", "1000000000000000000000000000000000E6111", "nan(1)", "-inf"],
        {"$toDouble": "$v"}, {"$toDecimal": "$v"}, {"$toInt": "$v"}),
    *(over_values(f"expression {name}", CONVERTIBLE, {name: "$v"}) for name in ("$toInt", "$toLong", "$toDouble", "$toDecimal", "$toDate",
        "$toObjectId")),
    *(over_values(f"expression {name}", EVERYTHING, {name: "$v"}) for name in ("$type", "$isNumber", "$isArray")),
    expressions(
        "expression $convert", {"$convert": {}}, {"$convert": 1}, {"$convert": {"input": 1}}, {"$convert": {"to": "int"}},
            {"$convert": {"input": 1, "to": "int", "x": 1}}, {"$convert": {"input": "a", "to": "int", "onError": {"$divide": [1, 0]}}},
        {"$convert": {"input": None, "to": "nope"}}, {"$convert": {"input": "$missing", "to": "int", "onNull": 5}},
            {"$convert": {"input": "1", "to": {"$concat": ["in", "t"]}}}, {"$toInt": []}, {"$toInt": [1, 2]}, {"$toInt": ["5"]},
            {"$toString": {}}, {"$toString": [[1]]},
        {"$toBool": [[]]}, {"$toDate": ["2020-01-01"]}, {"$type": []}, {"$type": [1, 2]}, {"$type": ["a"]}, {"$type": [[1]]},
            {"$isNumber": []}, {"$isNumber": [1, 2]}, {"$isArray": []}, {"$isArray": [1, 2]}, {"$isArray": [[1]]}, {"$isArray": {}},
        {"$type": Regex("a")}, {"$type": Binary(b"a")}, {"$type": Timestamp(1, 1)}, {"$type": OID}, {"$type": {"$literal": {"a": 1}}},
    ),
    over_values("expression sums of lists", [*ARRAYS, *BROAD],
        *({name: "$v"} for name in ("$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"))),
    over_values("expression sums of lists", [(a, b) for a in (1, 2.5, L(5), D("1.5"), "a", None, [1, 2], NAN) for b in (2**31 - 1,
        L(2**63 - 1), 0.1, D("0.1"), MISSING, [5])], *({name: ["$v", "$w"]} for name in ("$sum", "$avg", "$min", "$max", "$stdDevPop"))),
    expressions("expression sums of lists", *({name: value} for name in ("$sum", "$avg", "$min", "$max", "$stdDevPop",
        "$stdDevSamp") for value in ([], [[]], [1, 2, 3], [[1, 2, 3]], [1, [2, 3]], [1, "a", None], [L(2**63 - 1), 1], [2**31 - 1, 1],
        [D("1"), 0.5], [1.0, 2], [INF, -INF], [NAN], [5]))),
    expressions("expression dates as numbers", {"$add": ["$d", 1]}, {"$subtract": ["$d", "$d"]}, {"$toLong": "$d"}, {"$toDouble": "$d"},
        {"$toInt": "$d"}, {"$toString": "$d"}, {"$toBool": "$d"},
        documents=[{"_id": number, "d": date} for number, date in enumerate(DATES)]),
]
