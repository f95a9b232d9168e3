"""Values that the cases share. No cases here: `BLOCKS` is empty."""

from bson import Binary, Code, DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from compat.case import MISSING

D, L, T = Decimal128, Int64, DatetimeMS
NAN, INF = float("nan"), float("inf")
OID = ObjectId("507f191e810c19729de860ea")

BLOCKS = []

# One value or more of every type, with the corners of each.
NUMBERS = [
    0, 1, -1, 2, 7, 100, 2**31 - 1, -(2**31), L(0), L(1), L(-5), L(2**31), L(2**53 + 1), L(2**63 - 1), L(-(2**63)), 0.0, -0.0, 1.0, -1.0,
        1.5, 2.5, -2.5, 0.1,
    3.7, 1e10, 1e20, 1e308, 5e-324, float(2**53), 9223372036854775808.0, NAN, INF, -INF, D("0"), D("-0"), D("1"), D("1.0"), D("1.50"),
        D("-2.5"), D("NaN"),
    D("Infinity"), D("-Infinity"), D("9223372036854775807"), D("9223372036854775808"), D("1E+30"), D("1E-30"), D("0.1"),
]
STRINGS = ["", "a", "abc", "ABC", "aXbXc", " pad\t\n", "1", "-12", "1.5", "0x1F", "1e3", "é", "€uro", "日本語", "\U0001f600!", "a\0b", "true",
    "2020-02-29T12:00:00Z"]
DATES = [
    T(0), T(-1), T(1_582_979_696_789), T(1_577_836_799_999), T(1_609_459_200_000), T(-62_135_596_800_000), T(253_402_300_799_999),
        T(951_782_400_000),
    T(1_585_443_600_000), T(-2_208_988_800_000),
]
ARRAYS = [
    [], [1], [1, 2, 3], [3, 1, 2], [None], [[]], [[1, 2], [3]], ["a", "b", "a"], [1, "a", None, True], [{"a": 1}, {"a": 2}],
        [{"k": "x", "v": 1}, {"k": "y", "v": 2}],
    [["x", 1], ["y", 2]], [1.5, D("2.5"), L(3)], [True, False], [NAN, 1], [1, 1.0, L(1), D("1")],
]
OBJECTS = [{}, {"a": 1}, {"a": {"b": 2}}, {"b": 1, "a": 2}, {"a": [1, {"b": 2}]}, {"$numberInt": "1"}, {"": 1}, {"a.b": 1}]
OTHERS = [
    None, MISSING, True, False, OID, MinKey(), MaxKey(), Regex("^a", "i"), Binary(b"abc"), Binary(bytes(16), 4), Timestamp(5, 1),
        Timestamp(0, 0), Code("f()"),
    Code("f()", {"x": 1}),
]
# A few values of each type, for operators that refuse most.
BROAD = [
    None, MISSING, True, 1, -3, L(5), 2.5, D("2.5"), NAN, "abc", "", T(1_582_979_696_789), OID, [], [1, 2], ["a", "b"], {}, {"a": 1},
        Regex("a"), Binary(b"ab"),
    Timestamp(5, 1), MinKey(), MaxKey(), Code("f"),
]
EVERYTHING = NUMBERS + STRINGS + DATES + ARRAYS + OBJECTS + OTHERS


def numbered(values: list, field: str = "a") -> list[dict]:
    """A document for each value, with the number of its place as `_id`."""
    return [{"_id": number, **({} if value is MISSING else {field: value})} for number, value in enumerate(values)]
