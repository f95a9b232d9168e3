"""`min` and `max`: a stretch of an index, among values of all types."""

from datetime import datetime
from itertools import combinations

from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from compat.case import commands

# In MongoDB's order, but for arrays, which have several keys.
VALUES = [
    MinKey(),
    None,
    float("nan"),
    float("-inf"),
    -1e19,
    Int64(-(2**63)),
    -5,
    0,
    1e-20,
    Decimal128("1E-15"),
    Decimal128("0.5"),
    3.25,
    7,
    Int64(2**53 + 1),
    1e19,
    float("inf"),
    "",
    "a",
    "a" * 2000,
    "b",
    {},
    {"x": 1},
    Binary(b"x"),
    ObjectId("0123456789abcdef01234567"),
    False,
    True,
    datetime(1960, 1, 1),
    datetime(2020, 1, 1),
    datetime(3500, 1, 1),
    Timestamp(5, 1),
    Regex("a"),
    MaxKey(),
]
FEW = VALUES[::3]


def found(hint: dict, low: dict | None, high: dict | None, **options) -> dict:
    ends = {name: end for name, end in (("min", low), ("max", high)) if end is not None}
    return {"find": "c", "hint": hint, "batchSize": 1000, **ends, **options}


def of_one_field(direction: int, values: list) -> list[dict]:
    pattern = {"v": direction}
    pairs = [(low, high) if direction > 0 else (high, low) for low, high in combinations(values, 2)]
    return (
        [found(pattern, {"v": value}, None) for value in VALUES]
        + [found(pattern, None, {"v": value}) for value in VALUES]
        + [found(pattern, {"v": low}, {"v": high}) for low, high in pairs]
    )


def of_two_fields() -> list[dict]:
    pattern = {"g": 1, "v": -1}
    ends = [{"g": group, "v": value} for group in (0, 1, None) for value in FEW]
    return [found(pattern, low, high) for low, high in combinations(ends, 2)] + [found(pattern, end, None) for end in ends]


PLACED = [{"_id": number, "g": number % 2, "v": value} for number, value in enumerate(VALUES)] + [{"_id": 100}]
PLAIN = [{"_id": number, "g": number % 3, "v": number * 7 % 40, "w": number % 2} for number in range(40)]
ARRAYS = [{"_id": 200, "g": 0, "v": []}, {"_id": 201, "g": 1, "v": [1, 9]}, {"_id": 202, "g": 0, "v": ["a", None]}]
SETUP = [
    {"createIndexes": "c", "indexes": [
        {"key": {"v": 1}, "name": "up"}, {"key": {"v": -1}, "name": "down"}, {"key": {"g": 1, "v": -1}, "name": "both"},
    ]}
]

BLOCKS = [
    commands("min and max: all types", PLACED, *of_one_field(1, FEW), *of_one_field(-1, FEW), setup=SETUP),
    commands("min and max: two fields", PLACED, *of_two_fields(), setup=SETUP),
    commands("min and max: arrays", PLACED + ARRAYS, *of_one_field(1, FEW), *of_two_fields(), setup=SETUP),
    commands(
        "min and max: besides a filter and another order",
        PLAIN,
        found({"v": 1}, {"v": 5}, {"v": 20}, filter={"w": 1}),
        found({"v": 1}, {"v": 5}, {"v": 20}, filter={"v": {"$gt": 10}}),
        found({"v": 1}, {"v": 5}, {"v": 20}, sort={"v": -1}, limit=3),
        found({"v": 1}, {"v": 5}, {"v": 20}, sort={"g": 1, "_id": 1}),
        found({"g": 1, "v": -1}, {"g": 1, "v": 20}, {"g": 1, "v": 5}),
        found({"g": 1, "v": -1}, {"g": 1, "v": 20}, {"g": 1, "v": 5}, limit=2, skip=1),
        found({"g": 1, "v": -1}, {"g": 1, "v": 20}, {"g": 2, "v": 5}, sort={"g": -1, "v": 1}),
        found({"_id": 1}, {"_id": 3}, {"_id": 9}),
        found({"_id": 1}, {"_id": 3}, {"_id": 9}, sort={"_id": -1}),
        setup=SETUP,
    ),
]
