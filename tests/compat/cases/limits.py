"""Limits of paths, texts and levels."""

from compat.case import commands, script
from compat.cases.values import numbered


def path(parts: int) -> str:
    return ".".join(["a"] * parts)


def called(levels: int, expression="$a"):
    for _ in range(levels):
        expression = {"$abs": expression}
    return expression


def nested(levels: int):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def aggregate(*stages):
    return {"aggregate": "c", "pipeline": list(stages), "cursor": {}}


def view(name: str, on: str, *stages):
    return {"create": name, "viewOn": on, "pipeline": list(stages)}


def above(level: int):
    """A view that reads the one below three times."""
    below = f"v{level - 1}"
    return view(f"v{level}", below, {"$unionWith": below}, {"$unionWith": {"coll": below, "pipeline": []}})


def large(size: int):
    return {"$match": {"v": "a" * size}}


NOW = {"$expr": {"$lt": ["$v", "$$NOW"]}}
DOCUMENTS = numbered([1, 2, None])

BLOCKS = [
    commands("limits: names in a path", DOCUMENTS, *(command for parts in (180, 181, 199, 200, 201) for command in (
        {"find": "c", "filter": {path(parts): 1}}, {"find": "c", "filter": {path(parts): {"$not": {"$exists": True}}}},
        {"find": "c", "filter": {"v": {"$elemMatch": {path(parts): 1}}}}, {"count": "c", "query": {path(parts): 1}}, {"distinct": "c", "key": path(parts)},
        {"find": "c", "sort": {path(parts): 1}}, aggregate({"$match": {path(parts): 1}}), aggregate({"$sort": {path(parts): 1}}),
        aggregate({"$group": {"_id": "$" + path(parts)}}), {"find": "c", "filter": {"$expr": {"$gt": ["$" + path(parts), 1]}}},
        aggregate({"$project": {"x": "$$ROOT." + path(parts)}})))),
    commands("limits: names in a path", DOCUMENTS, *(command for parts in (180, 181) for command in (
        {"delete": "c", "deletes": [{"q": {path(parts): 1}, "limit": 0}]}, {"update": "c", "updates": [{"q": {path(parts): 1}, "u": {"$set": {"x": 1}}}]},
        {"create": "d", "validator": {path(parts): 1}})), writes=True),
    commands("limits: levels of expressions and messages", DOCUMENTS, *(aggregate({"$project": {"x": called(levels, leaf)}}) for levels in (98, 99, 100, 150)
        for leaf in ("$v", -1, ["$v"])), *(aggregate({"$project": {"x": {"y": called(levels)}}}) for levels in (99, 100)),
        *({"find": "c", "filter": {}, "comment": nested(levels)} for levels in (198, 199, 200, 201, 250)),
        *({"insert": "c", "documents": [{"_id": 9, "a": nested(levels)}]} for levels in (201, 250))),
    commands("limits: the clock in count and distinct", {"c": DOCUMENTS, "d": []}, *(command for name in ("c", "d", "e") for condition in (NOW,
        {"$expr": {"$eq": ["$$NOW", "$$NOW"]}}, {"$expr": {"$lt": ["$v", "$$CLUSTER_TIME"]}}, {"v": 7, **NOW}) for command in (
        {"distinct": name, "key": "v", "query": condition}, {"count": name, "query": condition})), {"find": "c", "filter": NOW}),
    commands("limits: texts of 16 MiB", DOCUMENTS, *(command for length in (16 * 2**20 - 1, 16 * 2**20) for command in (
        {"find": "c", "filter": {"v": "a" * length}}, {"find": "c", "filter": {"v": ["a" * length]}}, {"find": "c", "filter": {"v": {"$gt": "a" * length}}},
        aggregate({"$project": {"x": {"$strLenCP": "a" * length}}}), {"find": "c", "filter": {"$expr": {"$eq": ["$v", "a" * length]}}}))),
    script("limits: how deep views may stand",
        *(above(level) for level in range(1, 23)),
        {"collMod": "v1", "viewOn": "v20", "pipeline": []}, {"collMod": "v20", "viewOn": "c", "pipeline": []}),
    script("limits: how large views may be",
        view("alone", "c", large(15_999_973)), view("too_large", "c", large(16_000_100)),
        view("two", "c", large(6_000_000), large(6_000_000)), view("on_two", "two", large(3_000_000)),
        view("too_large", "on_two", large(2_000_000)), view("empty", "alone"), view("too_large", "alone", {"$match": {}}),
        {"collMod": "on_two", "viewOn": "two", "pipeline": [large(5_000_000)]}),
]
