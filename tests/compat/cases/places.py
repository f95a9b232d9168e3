"""Geo indexes: their values, `$near` and `$nearSphere`, `$geoNear`, and areas served by an index.
"""

import math
import random

from bson import Int64

from compat.case import commands, differs, script
from compat.cases.geometry import NAN, QUESTIONS, RANDOM, STRICT, point

RING = [[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]


def polygon(*rings, **more):
    return {"type": "Polygon", "coordinates": list(rings), **more}


def line(*points):
    return {"type": "LineString", "coordinates": list(points)}


PLACES = [
    None, 5, "x", {}, [], True, [1], [1, 2], [1, 2, 3], ["x", 1], [[1, 2], [3, 4]], [[1, 2], 5], [{"x": 1, "y": 2}, [3, 4]], {"x": 1}, {"x": 1, "y": 2},
    {"x": 1, "y": 2, "z": 3}, {"x": "a", "y": 2}, {"a": {"x": 1, "y": 2}}, point(1, 2), {"type": "Point", "coordinates": [1, 2, 3]},
    {"type": "Point", "coordinates": [1]}, point("x", 1), point(200, 0), point(0, 100), [200, 0], [0, 100], [180, 90], [-180, -90], [180.0001, 0],
    [point(1, 2), point(3, 4)], {"type": "Foo", "coordinates": [1, 2]}, {"type": "Point"}, {"type": 5, "coordinates": [1, 2]}, {"coordinates": [1, 2]},
    line([0, 0], [1, 1]), line([0, 0]), line([0, 0], [0, 0]), line([0, 0], [1, 1], [1, 1]), polygon(RING), polygon(RING[:-1]),
    polygon([[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]), polygon(RING, [[1, 1], [2, 1], [2, 2], [1, 1]]), polygon(RING, [[9, 9], [10, 9], [10, 10], [9, 9]]),
    polygon(), polygon([[0, 0], [0, 0], [0, 0], [0, 0]]), {"type": "MultiPoint", "coordinates": [[1, 1]]}, {"type": "MultiPoint", "coordinates": []},
    {"type": "MultiLineString", "coordinates": [[[0, 0], [1, 1]]]}, {"type": "MultiPolygon", "coordinates": [[RING]]},
    {"type": "GeometryCollection", "geometries": [point(1, 1)]}, {"type": "GeometryCollection", "geometries": []}, {**point(1, 1), "crs": STRICT},
    polygon(RING, crs=STRICT), {"lng": 1, "lat": 2, "x": "y"}, [1, "x"], [NAN, 1], [float("inf"), 1], [[1, 2], [3]], [[1, 2]], [[[1, 2]]],
    {"a": 1, "b": [1]}, [None, None], [[]], [{}], {"x": 1, "y": None}, {"loc": [1, 2]}, [[1, 2, 3], [4, 5]],
]  # fmt: skip


def inserted(*keys):
    setup = [{"createIndexes": "c", "indexes": [{"key": key, "name": "i"} for key in keys]}]
    cases = [{"insert": "c", "documents": [{"_id": 1, "a": place}]} for place in PLACES]
    cases += [{"update": "c", "updates": [{"q": {"_id": 0}, "u": {"$set": {"a": place}}}]} for place in PLACES]
    return commands("places in indexes", [{"_id": 0, "a": [9, 9]}], *cases, setup=setup, writes=True)


# Distances are all different, so that there is one order.
SPHERE = [
    {"_id": 1, "a": [0, 0.1], "v": 1}, {"_id": 2, "a": point(1, 1), "v": 2}, {"_id": 3, "a": {"x": 3, "y": 3}, "v": 1}, {"_id": 6}, {"_id": 7, "a": None},
    {"_id": 8, "a": line([-5, -5], [5, -5.5]), "v": 2}, {"_id": 9, "a": polygon([[-1, -1], [1, -1], [1, 0.01], [-1, 0.01], [-1, -1]])}, {"_id": 11, "a": []},
    {"_id": 12, "a": [170, -80], "v": 1}, {"_id": 13, "a": polygon([[20, 20], [30, 20], [30, 30], [20, 30], [20, 20]], [[22, 22], [28, 22], [28, 28], [22, 22]])},
]  # fmt: skip
FLAT = [
    {"_id": 1, "a": [0, 0], "v": 1}, {"_id": 2, "a": [1, 1], "v": 2}, {"_id": 3, "a": {"x": 3, "y": 3}, "v": 1}, {"_id": 4, "a": [[10, 10], [0.5, 0.5]], "v": 2},
    {"_id": 6}, {"_id": 7, "a": None}, {"_id": 11, "a": []}, {"_id": 12, "a": [-170, 150], "v": 1}, {"_id": 13, "a": [[[9, 9], [5, 6]]][0], "v": 5},
]  # fmt: skip

ORIGIN = point(0, 0)
NEAR = [
    *({operator: near} for operator in ("$near", "$nearSphere", "$geoNear") for near in (
        [0, 0], {"$geometry": ORIGIN}, ORIGIN, {"$geometry": ORIGIN, "$maxDistance": 200000}, [0, 0, 1.5], {"x": 0, "y": 0}, [12.5, 40], point(12.5, 40),
        {"$geometry": ORIGIN, "$minDistance": 100000, "$maxDistance": 400000}, {"$geometry": point(25, 25)}, {"$geometry": point(23, 26)},
    )),
    *({operator: [0, 0], **distances} for operator in ("$near", "$nearSphere") for distances in (
        {"$maxDistance": 2}, {"$maxDistance": 0.02}, {"$maxDistance": 0.05, "$minDistance": 0.01}, {"$maxDistance": 1e300}, {"$minDistance": 3},
        {"$maxDistance": math.sqrt(2)}, {"$uniqueDocs": 1}, {"$maxDistance": Int64(2)}, {"$maxDistance": float("inf")},
    )),
    {"$near": {"$geometry": ORIGIN}, "$maxDistance": 200000}, {"$near": []}, {"$near": [1]}, {"$near": ["x", 1]}, {"$near": 1}, {"$near": {}}, {"$near": None},
    {"$near": {"$geometry": 1}}, {"$near": {"$geometry": {}}}, {"$near": {"$geometry": line([0, 0], [1, 1])}}, {"$near": {"$geometry": [0, 0]}},
    {"$near": {"$geometry": {"coordinates": [0, 0]}}}, {"$near": {"$geometry": {"x": 1, "y": 2}}}, {"$near": {"$geometry": point(200, 0)}},
    {"$near": {"$geometry": point(0, 100)}}, {"$near": [200, 0]}, {"$nearSphere": [200, 0]}, {"$near": [0, 0], "$maxDistance": -1}, {"$near": [NAN, 0]},
    {"$near": [0, 0], "$maxDistance": "x"}, {"$near": [0, 0], "$minDistance": -1}, {"$near": [0, 0], "$minDistance": "x"}, {"$near": [0, 0, -1]},
    {"$near": [0, 0], "$maxDistance": NAN}, {"$near": {"$geometry": ORIGIN, "$maxDistance": -1}}, {"$near": {"$geometry": ORIGIN, "$maxDistance": "x"}},
    {"$near": {"$geometry": ORIGIN, "$foo": 1}}, {"$near": {"$geometry": ORIGIN}, "$foo": 1}, {"$near": [0, 0], "$foo": 1}, {"$near": [0, 0, 1, 2]},
    {"$near": {"x": 1}}, {"$near": {"x": 0, "y": 0, "z": 1}}, {"$maxDistance": 1}, {"$maxDistance": 1, "$near": [0, 0]}, {"$near": {"$maxDistance": 1}},
    {"$near": {"$geometry": {**ORIGIN, "crs": STRICT}}}, {"$near": {"$geometry": ORIGIN, "$minDistance": 5, "$maxDistance": 1}}, {"$near": [0, 0], "$gt": 1},
    {"$near": {"$geometry": ORIGIN, "$maxDistance": float("inf")}}, {"$near": [0, 0], "$geoWithin": {"$center": [[0, 0], 3]}}, {"$not": {"$near": [0, 0]}},
    {"$elemMatch": {"$near": [0, 0]}}, {"$near": [0, 0], "$exists": True},
]  # fmt: skip
PLAIN = {"$near": [0, 0]}
ROUND = {"$near": {"$geometry": ORIGIN}}


def around(condition):
    """A condition on the distance in all positions, valid and invalid."""
    near = {"a": condition}
    find = {"find": "c", "filter": near}
    queries = [
        {"$and": [near, {"v": 1}]}, {"$or": [near, {"v": 1}]}, {"$or": [near]}, {"$nor": [near]}, {"$and": [{"$and": [near]}]}, {"$and": [near, near]},
        {**near, "b": condition}, {**near, "v": 2}, {**near, "$or": [{"v": 2}, {"v": 1}]}, {**near, "$expr": {"$gt": ["$v", 1]}}, {"b": {"$elemMatch": near}},
        {**near, "v": {"$exists": False}}, {"v": 1, **near},
    ]  # fmt: skip
    return [
        *({"find": "c", "filter": query} for query in queries), {**find, "sort": {"_id": -1}}, {**find, "sort": {"v": 1, "_id": 1}}, {**find, "limit": 2},
        {**find, "skip": 1, "limit": 2}, {**find, "skip": 3}, {**find, "projection": {"_id": 1, "d": {"$meta": "geoNearDistance"}, "p": {"$meta": "geoNearPoint"}}},
        {**find, "sort": {"d": {"$meta": "geoNearDistance"}}}, {**find, "hint": {"_id": 1}}, {**find, "hint": {"$natural": 1}}, {**find, "sort": {"$natural": 1}},
        {**find, "hint": "i"}, {**find, "projection": {"a.$": 1}}, {**find, "tailable": True}, {"count": "c", "query": near}, {"count": "c", "query": near, "limit": 2},
        {"distinct": "c", "key": "v", "query": near}, {"aggregate": "c", "pipeline": [{"$match": near}], "cursor": {}}, {"find": "nowhere", "filter": near},
        {"aggregate": "c", "pipeline": [{"$lookup": {"from": "c", "pipeline": [{"$match": near}], "as": "x"}}], "cursor": {}}, {"count": "nowhere", "query": near},
        {"create": "x", "validator": near}, {"find": "c", "projection": {"a": {"$elemMatch": condition}}},
    ]  # fmt: skip


def changes(condition):
    near = {"a": condition}
    return [
        {"update": "c", "updates": [{"q": near, "u": {"$set": {"w": 1}}}]}, {"update": "c", "updates": [{"q": near, "u": {"$set": {"w": 1}}, "multi": True}]},
        {"update": "c", "updates": [{"q": {**near, "v": 2}, "u": {"$inc": {"v": 5}}}]}, {"delete": "c", "deletes": [{"q": near, "limit": 1}]},
        {"delete": "c", "deletes": [{"q": near, "limit": 0}]}, {"findAndModify": "c", "query": near, "update": {"$set": {"z": 1}}},
        {"findAndModify": "c", "query": near, "sort": {"_id": -1}, "remove": True}, {"findAndModify": "c", "query": near, "remove": True},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$pull": {"a": condition}}}]},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a.$[x]": 1}}, "arrayFilters": [{"x": condition}]}]},
    ]  # fmt: skip


STAGE = {"near": ORIGIN, "distanceField": "dist"}
LEGACY = {"near": [0, 0], "distanceField": "dist"}
STAGES = [
    STAGE, LEGACY, *({**stage, "spherical": flag} for stage in (STAGE, LEGACY) for flag in (True, False, "x", 1, None)),
    *({**STAGE, "key": key} for key in ("a", "b", 5, "", "$a")), {**LEGACY, "includeLocs": "l.m", "spherical": True},
    *({**STAGE, **fields} for fields in (
        {"includeLocs": "l"}, {"distanceField": "d.e"}, {"distanceField": "d"}, {"distanceField": "x.y"}, {"distanceField": "d.e", "includeLocs": "d.f"},
        {"distanceField": "d", "includeLocs": "d.f"}, {"distanceField": "x", "includeLocs": "x"}, {"distanceField": 5}, {"distanceField": ""},
        {"distanceField": "$x"}, {"distanceField": None}, {"includeLocs": 5}, {"includeLocs": ""}, {"includeLocs": "$x"}, {"maxDistance": 200000},
        {"maxDistance": -1}, {"maxDistance": "x"}, {"maxDistance": None}, {"maxDistance": NAN}, {"maxDistance": float("inf")}, {"minDistance": -1},
        {"minDistance": 200000, "maxDistance": 400000}, {"minDistance": "x"}, {"distanceMultiplier": 0.001}, {"distanceMultiplier": -1},
        {"distanceMultiplier": "x"}, {"distanceMultiplier": 0}, {"distanceMultiplier": None}, {"query": {"v": 1}}, {"query": 5}, {"query": {}},
        {"query": {"a": PLAIN}}, {"query": {"$or": [{"v": 1}, {"v": 2}]}}, {"query": {"v": {"$foo": 1}}}, {"num": 2}, {"limit": 2}, {"uniqueDocs": True},
        {"start": 1}, {"foo": 1}, {"maxDistance": Int64(200000)},
    )),
    *({**STAGE, "near": near} for near in (
        5, "x", [], [1], ["x", 1], {}, point(200, 0), line([0, 0], [1, 1]), [0, 0, 5], {"x": 1, "y": 1}, "$a", {"$add": [1, 2]}, [200, 0],
    )),
    {"near": ORIGIN}, {"distanceField": "x"}, {}, 5, {**LEGACY, "near": [200, 0], "spherical": True}, {**LEGACY, "maxDistance": 2},
    {**LEGACY, "maxDistance": 0.03, "spherical": True}, {**LEGACY, "distanceMultiplier": 2}, {**LEGACY, "distanceMultiplier": 6378.1, "spherical": True},
]  # fmt: skip
BEHIND = [
    [{"$limit": 2}], [{"$match": {"v": 1}}], [{"$match": {"dist": {"$gt": 1}}}], [{"$sort": {"_id": -1}}, {"$limit": 2}], [{"$project": {"dist": 1}}],
    [{"$group": {"_id": None, "n": {"$sum": 1}, "d": {"$max": "$dist"}}}], [{"$project": {"x": {"$meta": "geoNearDistance"}, "p": {"$meta": "geoNearPoint"}}}],
    [{"$count": "n"}], [{"$skip": 1}, {"$limit": 1}], [{"$geoNear": STAGE}],
]  # fmt: skip


def sources(stage):
    pipelines = [*([{"$geoNear": spec}] for spec in STAGES), *([{"$geoNear": stage}, *rest] for rest in BEHIND)]
    pipelines += [
        [{"$match": {"v": 1}}, {"$geoNear": stage}], [{"$facet": {"x": [{"$geoNear": stage}]}}],
        [{"$lookup": {"from": "c", "pipeline": [{"$geoNear": stage}, {"$project": {"dist": 1}}], "as": "x"}}, {"$limit": 1}],
    ]  # fmt: skip
    cases = [{"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in pipelines]
    return [*cases, {"aggregate": "nowhere", "pipeline": [{"$geoNear": stage}], "cursor": {}}]


def keyless():
    """The index that is used if the stage does not name one."""
    stages = [STAGE, LEGACY, {**LEGACY, "spherical": True}, *({**stage, "key": key, "spherical": True} for stage in (STAGE, LEGACY) for key in "ab")]
    return [{"aggregate": "c", "pipeline": [{"$geoNear": stage}], "cursor": {}} for stage in stages]


def made(*keys):
    indexes = [{"key": key, "name": f"i{number}" if number else "i"} for number, key in enumerate(keys)]
    return [{"createIndexes": "c", "indexes": indexes}] if indexes else []


def near(documents, setup, *cases, family="near", **options):
    return commands(family, documents, *cases, setup=setup, **options)


GENERATOR = random.Random(11)
SCATTERED = [{"_id": number, "a": [GENERATOR.uniform(-170, 170), GENERATOR.uniform(-85, 85)], "v": number % 7} for number in range(700)]
CROWDED = [{"_id": number + 700, "a": [GENERATOR.gauss(8, 0.02), GENERATOR.gauss(47, 0.02)], "v": number % 7} for number in range(300)]
CENTERS = [[GENERATOR.uniform(-179, 179), GENERATOR.uniform(-89, 89)] for _ in range(25)] + [[8, 47], [180, 0], [-180, 10], [0, 90], [7.5, 47.3]]
# MongoDB's 2d index ends at the 180th meridian and at the poles, and finds nothing beyond them.
INNER = [center for center in CENTERS if abs(center[0]) < 120 and abs(center[1]) < 50]
ENDS = "MongoDB's 2d index does not look across the 180th meridian"


def by_distance(centers):
    return [
        *({"a": {"$nearSphere": center}} for center in centers), *({"a": {"$nearSphere": center, "$maxDistance": 0.5}, "v": 3} for center in centers),
        *({"a": {"$nearSphere": center, "$minDistance": 0.3, "$maxDistance": 0.6}} for center in centers),
    ]  # fmt: skip


def caps(centers):
    return [{"a": {"$geoWithin": {"$centerSphere": [center, radius]}}} for center in centers for radius in (0.001, 0.4)]


AREAS = [{"a": {"$geoWithin": {"$geometry": area}}} for area in QUESTIONS]
FLAT_AREAS = [
    *({"a": {"$geoWithin": {"$box": [center, [center[0] + 20, center[1] - 10]]}}} for center in CENTERS),
    *({"a": {"$geoWithin": {"$center": [center, 15]}}, "v": {"$lt": 5}} for center in CENTERS),
    *({"a": {"$geoWithin": {"$polygon": area["coordinates"][0]}}} for area in QUESTIONS),
]  # fmt: skip


def found(filters, **options):
    return [{"find": "c", "filter": query, "batchSize": 1000, **options} for query in filters]


BLOCKS = [
    inserted({"a": "2dsphere"}),
    inserted({"a": "2d"}),
    inserted({"a": "2dsphere", "b": 1}),
    inserted({"a": "2dsphere", "b": "2dsphere"}),
    near(SPHERE, [], *found([{"a": condition} for condition in NEAR])),
    near(SPHERE, made({"a": "2dsphere"}), *found([{"a": condition} for condition in NEAR])),
    near(FLAT, made({"a": "2d"}), *found([{"a": condition} for condition in NEAR])),
    near(FLAT[:3], made({"a": "2d"}, {"a": "2dsphere"}), *found([{"a": condition} for condition in NEAR])),
    near(SPHERE, made({"a": "2dsphere"}), *around(ROUND), *around(PLAIN)),
    near(FLAT, made({"a": "2d"}), *around(PLAIN)),
    near(SPHERE, made({"v": 1, "a": "2dsphere"}), *found([{"a": ROUND}, {"a": ROUND, "v": 2}, {"$and": [{"v": 1}, {"a": ROUND}]}, {"v": {"$gt": 1}, "a": ROUND}])),
    near(SPHERE, made({"a": "2dsphere", "v": 1}), *around(ROUND)),
    near(SPHERE, made({"a": "2dsphere"}), *changes(ROUND), writes=True),
    near(FLAT, made({"a": "2d"}), *changes(PLAIN), writes=True),
    near(SPHERE, made({"a": "2dsphere"}), *sources(STAGE), family="geoNear"),
    near(FLAT, made({"a": "2d"}), *sources(LEGACY), family="geoNear"),
    *(near(FLAT[:3], made(*keys), *keyless(), family="geoNear") for keys in (
        [], [{"a": "2d"}, {"b": "2d"}], [{"a": "2d"}, {"b": "2dsphere"}], [{"a": "2dsphere"}, {"b": "2dsphere"}], [{"b": 1, "a": "2dsphere"}],
        [{"a": "2dsphere", "b": "2dsphere"}],
    )),
    near(SCATTERED + CROWDED, made({"a": "2dsphere"}), *found(by_distance(CENTERS)), *found(by_distance(CENTERS), limit=5), family="near at random"),
    near(SCATTERED + CROWDED, made({"a": "2d"}), *found(by_distance(INNER), limit=40), family="near at random"),
    near(SCATTERED, made({"a": "2d"}), *(differs(case, ENDS) for case in found([{"a": {"$nearSphere": [180, 0]}}])), family="near at random"),
    near(SCATTERED + CROWDED, made({"a": "2d"}), *found([{"a": {"$near": center}} for center in CENTERS]), family="near at random"),
    near(SCATTERED + CROWDED, made({"a": "2dsphere"}), *found(caps(CENTERS) + AREAS, sort={"_id": 1}), family="areas by index"),
    near(SCATTERED + CROWDED, made({"a": "2d"}), *found(caps(INNER) + AREAS + FLAT_AREAS, sort={"_id": 1}), family="areas by index"),
    near(
        [{"_id": document["_id"], "a": document["g"]} for document in RANDOM],
        made({"a": "2dsphere"}),
        *found([{"a": {operator: {"$geometry": area}}} for operator in ("$geoWithin", "$geoIntersects") for area in QUESTIONS], sort={"_id": 1}),
        *found([{"a": {"$near": {"$geometry": point(*center), "$maxDistance": 3000000}}} for center in CENTERS if abs(center[1]) < 89]),
        family="areas by index",
    ),
    script(
        "near in batches",
        {"insert": "c", "documents": SCATTERED},
        {"createIndexes": "c", "indexes": [{"key": {"a": "2dsphere"}, "name": "i"}]},
        {"find": "c", "filter": {"a": {"$nearSphere": [1, 2]}}, "batchSize": 200},
        *[{"getMore": Int64(-1), "collection": "c", "batchSize": 200}] * 3,
        {"distinct": "c", "key": "a"},
    ),
]  # fmt: skip
