"""Arrays that keep their latest elements, pushed to by `_id`: the form that stores have a fast path
for, and similar updates."""

from compat.case import commands, updates
from compat.cases.values import D, L, T

COMMENT = {"author": "b", "at": T(1_600_000_000_000), "n": L(5), "text": "a \"quoted\" \\ text, [1, 2]: {é}"}
POSTS = [
    {"_id": 1, "title": "t", "latest": [{"n": number, "x": [1.0, D("1.50"), L(7)]} for number in range(10)], "behind": L(1)},
    {"_id": 2, "latest": []}, {"_id": 3}, {"_id": 4, "latest": 5}, {"_id": 5, "latest": None}, {"_id": 6, "latest": {"0": 1}},
    {"_id": 7, "latest": [1, L(1), 1.0, D("1"), "1"]}, {"_id": "s", "latest": ["a\\", "\"", "é", "\u0000", ""]}, {"_id": L(9), "latest": [[1], []]},
    {"_id": 10.0, "latest": [{"$each": 1}], "in": {"latest": [1, 2, 3]}},
]
IDS = [post["_id"] for post in POSTS] + [99]


def pushes(values, *clauses, path="latest"):
    return [{"$push": {path: {"$each": values, **rest}}} for rest in clauses]


def of_each(*changes):
    return [({"_id": one}, change) for change in changes for one in IDS]


SLICES = [{"$slice": number} for number in (-10, -3, -1, 0, 1, 3, 10, L(-3), -3.0, 2**31, -(2**63), 2**63 - 1)]
POSITIONS = [{"$position": number} for number in (0, 1, 3, 20, -1, -3, -20, L(2), 2.0, 2**31, -(2**63))]
BOTH = [{**slice, **position} for slice in SLICES[:7] for position in ({"$position": 0}, {"$position": 2}, {"$position": -2})]

BLOCKS = [
    updates("slice cache", POSTS, *of_each(*pushes([COMMENT], {"$slice": -10}, {}), {"$push": {"latest": COMMENT}}, {"$push": {"latest": [1]}})),
    updates("slice cache $slice", POSTS, *({"q": {"_id": one}, "u": change} for one in (1, 2, 3, 7) for values in ([COMMENT], [1, 2.0, L(3)], [])
        for change in pushes(values, *SLICES))),
    updates("slice cache $position", POSTS, *({"q": {"_id": one}, "u": change} for one in (1, 2, 3, 7) for values in ([COMMENT], [1, L(2)], [])
        for change in pushes(values, *POSITIONS, *BOTH))),
    updates("slice cache $sort", POSTS, *({"q": {"_id": one}, "u": change} for one in (1, 2, 3, 7) for change in pushes([COMMENT, {"n": 3}],
        {"$sort": {"n": -1}, "$slice": 5}, {"$sort": {"n": 1}, "$slice": -5}, {"$sort": -1, "$slice": 0}, {"$sort": {"x.0": 1, "n": -1}},
        {"$sort": {"n": 1}, "$position": 0, "$slice": 3}))),
    updates("slice cache elsewhere", POSTS, *(({"_id": 10}, change) for path in ("in.latest", "in", "in.latest.0", "new.latest", "_id", "latest.0")
        for change in pushes([COMMENT], {"$slice": -2}, {"$slice": 2, "$position": 0}, path=path))),
    updates("slice cache upserts", POSTS, *({"q": {"_id": one}, "u": change, "upsert": True} for one in (1, 3, 77) for change in pushes(
        [1, 2, 3], {"$slice": -2}, {"$slice": 0}, {"$position": 1}))),
    commands("slice cache images", POSTS, *({"findAndModify": "c", "query": {"_id": one}, "update": change, "new": new} for one in (1, 2, 4)
        for new in (False, True) for change in pushes([COMMENT], {"$slice": -3})), writes=True),
    # Without the operator, or with the deprecated one: replacements and errors.
    updates("slice cache mistakes", POSTS, *(({"_id": 1}, change) for change in (
        {"latest": {"$each": [COMMENT], "$slice": -10}}, {"$pushAll": {"latest": [COMMENT]}}, {"$pushAll": {"latest": 1}},
        {"title": "x", "$push": {"latest": COMMENT}}, {"$push": {"latest": COMMENT}, "title": "x"},
        {"title": "x", "latest": {"$each": [COMMENT], "$slice": -10}}, {"$each": [COMMENT], "$slice": -10},
        {"$push": {"latest": {"$slice": -10}}}, {"$push": {"latest": {"$slice": -10, "$each": [COMMENT]}}},
        {"$push": {"latest": {"$each": [COMMENT], "slice": -10}}}, {"$push": {"latest": {"$each": COMMENT, "$slice": -10}}},
        {"$push": {"latest": {"$each": [COMMENT], "$slice": "10"}}}, {"$push": {"latest": {"$each": [COMMENT], "$slice": -1.5}}},
        {"$push": {"latest": {"$each": [COMMENT], "$position": 0.5}}}, {"$push": {"latest": {"$each": [COMMENT], "$trim": 1}}},
        {"$push": {"latest": COMMENT, "latest.0": 1}}, {"$push": {"latest": COMMENT}, "$inc": {"count": 1}},
        {"$push": {"latest": COMMENT}, "$set": {"latest": []}}, {"$addToSet": {"latest": {"$each": [COMMENT], "$slice": -10}}}))),
]
