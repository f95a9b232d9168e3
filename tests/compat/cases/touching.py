"""Shapes on a grid that touch, overlap and contain one another in every way: shared corners and
edges, rings that are not polygons, areas larger than half of the sphere, points on borders of the
plane. Random ones from a seed."""

import math
import random

from compat.case import commands, filters

STRICT = {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}


def polygon(*rings, **more):
    return {"type": "Polygon", "coordinates": list(rings), **more}


def rectangle(west, south, east, north):
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def point(x, y):
    return {"type": "Point", "coordinates": [x, y]}


class Grid:
    """Random shapes with corners on a grid; `place` says where a corner is."""

    def __init__(self, seed, place):
        self.random = random.Random(seed)
        self.place = place

    def corner(self):
        x, y = self.random.randint(0, 8), self.random.randint(0, 8)
        return self.place(x + 0.5 if self.random.random() < 0.1 else x, y)

    def ring(self):
        kind = self.random.random()
        (a, b), (c, d) = self.corner(), self.corner()
        if kind < 0.6 and a != c and b != d:
            return rectangle(a, b, c, d)[:: self.random.choice((1, -1))]
        corners = [self.corner() for _ in range(self.random.choice((3, 3, 3, 5, 6)))]
        return [*corners, corners[0]]

    def rings(self):
        return [self.ring() for _ in range(self.random.choice((1, 1, 1, 2, 2, 3)))]

    def line(self):
        return [self.corner() for _ in range(self.random.randint(2, 4))]

    def area(self):
        kind = self.random.random()
        if kind < 0.2:
            return polygon(self.ring(), crs=STRICT)
        if kind < 0.75:
            return polygon(*self.rings())
        return {"type": "MultiPolygon", "coordinates": [self.rings() for _ in range(self.random.randint(1, 2))]}

    def shape(self):
        kind = self.random.random()
        if kind < 0.2:
            return point(*self.corner())
        if kind < 0.4:
            return {"type": "LineString", "coordinates": self.line()}
        if kind < 0.75:
            return polygon(*self.rings())
        if kind < 0.85:
            return {"type": "MultiPolygon", "coordinates": [self.rings() for _ in range(2)]}
        if kind < 0.92:
            return {"type": "MultiLineString", "coordinates": [self.line() for _ in range(2)]}
        if kind < 0.96:
            return {"type": "GeometryCollection", "geometries": [polygon(self.ring()), point(*self.corner())]}
        return self.corner()

    def question(self):
        kind = self.random.random()
        if kind < 0.4:
            area = self.area() if self.random.random() < 0.5 else self.shape()
            return {"$geoIntersects": {"$geometry": area}}
        if kind < 0.75:
            return {"$geoWithin": {"$geometry": self.area()}}
        if kind < 0.85:
            return {"$geoWithin": {"$centerSphere": [self.corner(), self.random.choice((0, 0.05, 0.1, 1, 1.6, 2, 3, 3.2))]}}
        if kind < 0.95:
            return {"$geoWithin": {"$polygon": self.ring()[:-1]}}
        return {"$geoWithin": {"$center": [self.corner(), self.random.choice((0, 1, 2, 5, math.sqrt(2), math.sqrt(8)))]}}


def on_grid(family, seed, place):
    grid = Grid(seed, place)
    documents = [{"_id": number, "g": grid.shape()} for number in range(150)]
    return filters(family, documents, *({"g": grid.question()} for _ in range(90)))


SQUARE = rectangle(0, 0, 8, 8)
WORLD = rectangle(-180, -90, 180, 90)

RINGS = {
    "overlapping holes": polygon(SQUARE, rectangle(1, 1, 4, 4), rectangle(3, 3, 6, 6)),
    "nested holes": polygon(SQUARE, rectangle(1, 1, 6, 6), rectangle(2, 2, 4, 4)),
    "a hole along the outline": polygon(SQUARE, rectangle(0, 0, 4, 4)),
    "a hole that touches two corners": polygon(SQUARE, [[0, 0], [4, 3], [8, 8], [3, 4], [0, 0]]),
    "a hole that touches a corner": polygon(SQUARE, [[0, 0], [1, 2], [2, 1], [0, 0]]),
    "a hole outside": polygon(SQUARE, rectangle(10, 10, 12, 12)),
    "a hole that leaves": polygon(SQUARE, rectangle(4, 4, 12, 7)),
    "a hole like the outline": polygon(SQUARE, SQUARE),
    "holes with a common edge": polygon(SQUARE, rectangle(1, 1, 3, 3), rectangle(3, 1, 5, 3)),
    "holes with a common corner": polygon(SQUARE, rectangle(1, 1, 3, 3), rectangle(3, 3, 5, 5)),
    "a corner on an edge": polygon([[0, 0], [4, 0], [4, 4], [2, 0], [0, 4], [0, 0]]),
    "a corner twice": polygon([[0, 0], [2, 1], [4, 0], [4, 4], [2, 1], [0, 4], [0, 0]]),
    "crossing": polygon([[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]),
    "two corners": polygon([[0, 0], [4, 4], [0, 0]]),
    "one corner": polygon([[0, 0]]),
    "an empty ring": polygon([]),
    "no ring": polygon(),
    "an open ring": polygon(SQUARE[:-1]),
    "the world": polygon(WORLD),
    "a hemisphere": polygon(rectangle(0, -90, 180, 90)),
    "the western hemisphere": polygon(rectangle(-180, -90, 0, 90)),
    "edges of 180 degrees": polygon(rectangle(-90, -45, 90, 45)),
    "as wound": polygon(SQUARE, crs=STRICT),
    "the other way round": polygon(SQUARE[::-1], crs=STRICT),
    "as wound, with a hole": polygon(SQUARE, rectangle(1, 1, 2, 2), crs=STRICT),
    "as wound, crossing": polygon([[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]], crs=STRICT),
    "a point as wound": {**point(1, 1), "crs": STRICT},
    "a line as wound": {"type": "LineString", "coordinates": [[1, 1], [2, 2]], "crs": STRICT},
    "polygons as wound": {"type": "MultiPolygon", "coordinates": [[SQUARE]], "crs": STRICT},
    "opposite ends": {"type": "LineString", "coordinates": [[0, 0], [180, 0]]},
    "the same ends": {"type": "LineString", "coordinates": [[0, 0], [0, 0]]},
    "a nested collection": {"type": "GeometryCollection", "geometries": [{"type": "GeometryCollection", "geometries": [point(1, 1)]}]},
    "an empty collection": {"type": "GeometryCollection", "geometries": []},
    "coordinates as a document": {"type": "Point", "coordinates": {"a": 1, "b": 2}},
    "a line of documents": {"type": "LineString", "coordinates": [{"a": 1, "b": 2}, {"a": 2, "b": 2}]},
    "a ring of documents": polygon([{"a": 0, "b": 0}, {"a": 2, "b": 0}, {"a": 2, "b": 2}, {"a": 0, "b": 0}]),
    "rings as a document": {"type": "Polygon", "coordinates": {"a": SQUARE}},
    "a ring as a document": polygon({"a": [0, 0], "b": [1, 0], "c": [1, 1], "d": [0, 0]}),
    "a line as a document": {"type": "LineString", "coordinates": {"a": [1, 1], "b": [2, 2]}},
    "a collection in a system of its own": {"type": "GeometryCollection", "geometries": [point(1, 1), polygon(SQUARE)], "crs": 180},
    "a collection without areas": {"type": "GeometryCollection", "geometries": [point(1, 1), {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}]},
    "a part of no type": {"type": "GeometryCollection", "geometries": [{"coordinates": [1, 1]}]},
    "a system that is a list": {**point(1, 1), "crs": [1]},
    "a system without properties": {**point(1, 1), "crs": {"type": "name"}},
    "no number": point(float("nan"), 1),
    "no finite number": {"type": "LineString", "coordinates": [[0, 0], [1, float("inf")]]},
    "a type that is a list": {"type": [[1]], "coordinates": [1, 1]},
    "no reference system": {**point(1, 1), "crs": None},
}  # fmt: skip

PAIRS = [
    [1, 1], {"a": 1, "b": 1}, {"x": 1, "y": 1}, [1, 1, 1], [1, "a"], [200, 1], 5, {}, [], {"type": 5}, {"type": "Foo"}, {"coordinates": [1, 1]},
]  # fmt: skip

THINGS = [
    [1, 1], point(1, 1), {"type": "LineString", "coordinates": [[0, 1], [1, 1]]}, polygon(rectangle(-2, -2, 2, 2)), [1, 1, 1], point(200, 1),
    polygon(rectangle(2, 2, 6, 8)), point(100, 50), {"type": "LineString", "coordinates": [[170, 0], [-170, 0]]}, *RINGS.values(),
]  # fmt: skip

CIRCLE_POINTS = [[5.0001, 52], [4.9999, 52], [5, 52.0001], [5, 51.9999], [19.2946, -25.464], [22.122, -22.6366], [5.6, 52.8], [5.6, 52.80000000000001]]
DATELINE = [[x, y] for x in (177, 178, 179, 180, -180, -179, -178, -177) for y in (-1, 0, 1e-9, 1)]
NEAR = {"$geoNear": {"near": point(0, 0), "distanceField": "d", "key": "g", "spherical": True}}
BEHIND = [{"_id": number, "g": point(number % 40 * 0.1, number // 40 * 0.1), "n": number if number % 7 else [number, 5], "p": number % 2} for number in range(400)]
AROUND = {"$geoWithin": {"$centerSphere": [[2, 0.5], 0.03]}}

BLOCKS = [
    on_grid("touching on a grid", 11, lambda x, y: [x, y]),
    on_grid("touching across the date line", 12, lambda x, y: [x + 176 if x <= 4 else x - 184, y - 4]),
    on_grid("touching at the pole", 13, lambda x, y: [x * 45 - 180, 90 - y]),
    on_grid("touching in the large", 14, lambda x, y: [(x - 4) * 45.0 if x != 8.5 else 179.9, (y - 4) * 22.5]),
    commands(
        "rings that are good and bad",
        [{"_id": number, "g": shape} for number, shape in enumerate(THINGS)],
        *({"find": "c", "filter": {"g": {operator: {"$geometry": shape}}}} for operator in ("$geoWithin", "$geoIntersects") for shape in [*RINGS.values(), *PAIRS]),
        messages=True,
    ),
    commands(
        "rings that are good and bad, stored under an index",
        [],
        *({"insert": "c", "documents": [{"_id": 1, "g": shape}]} for shape in RINGS.values()),
        setup=[{"createIndexes": "c", "indexes": [{"key": {"g": "2dsphere"}, "name": "g"}]}],
        writes=True,
    ),
    filters(
        "points of the plane in systems of the sphere",
        [{"_id": number, "g": shape} for number, shape in enumerate(THINGS)],
        *({"g": {"$geoWithin": area}} for area in (
            {"$box": [[0, 0], [3, 3]]}, {"$polygon": [[0, 0], [3, 0], [3, 3]]}, {"$center": [[1, 1], 3]}, {"$center": [[1, 1], float("inf")]},
            {"$centerSphere": [[1, 1], 0.5]}, {"$centerSphere": [[1, 1], float("inf")]}, {"$box": [[0, 0], [1, float("nan")]]},
        )),
    ),  # fmt: skip
    filters(
        "circles that reach their radius",
        [{"_id": number, "g": place} for number, place in enumerate(CIRCLE_POINTS)],
        *({"g": {"$geoWithin": {"$center": circle}}} for circle in ([[5, 52], 0.0001], [[22.122, -25.464], 2.8274], [[5, 52], 1])),
    ),
    filters(
        "points on a line across the date line",
        [{"_id": number, "g": place} for number, place in enumerate(DATELINE)],
        {"g": {"$geoIntersects": {"$geometry": {"type": "LineString", "coordinates": [[178, 0], [-178, 0]]}}}},
        {"g": {"$geoIntersects": {"$geometry": polygon(rectangle(178, -1, -178, 0))}}},
        {"g": {"$geoWithin": {"$geometry": polygon(rectangle(178, -1, -178, 0))}}},
        {"g": {"$geoWithin": {"$polygon": [[178, -1], [-178, 0], [178, 1]]}}},
    ),
    commands(
        "stages in front of $geoNear",
        [{"_id": number, "g": [number, 1], "n": number} for number in range(4)],
        *(
            {"aggregate": "c", "pipeline": [*stages, NEAR], "cursor": {}}
            for stages in (
                [{"$match": {}}], [{"$match": {}}, {"$match": {}}], [{"$match": {"n": 1}}], [{"$skip": 0}], [{"$skip": 0}, {"$match": {}}],
                [{"$match": {}}, {"$skip": 0}, {"$match": {}}], [{"$match": {}}, {"$limit": 3}], [{"$skip": 1}], [{"$match": {"$and": [{}]}}],
                [{"$sort": {"n": 1}}], [NEAR],
            )
        ),
        {"aggregate": "c", "pipeline": [{"$match": {}}, NEAR, {"$match": {}}, {"$limit": 2}], "cursor": {}},
        setup=[{"createIndexes": "c", "indexes": [{"key": {"g": "2dsphere"}, "name": "g"}]}],
    ),  # fmt: skip
    commands(
        "conditions behind places of an index",
        BEHIND,
        *(
            {"find": "c", "filter": {**front, "g": AROUND, "n": condition}, "hint": "p" if front else "n", "sort": {"_id": 1}, "batchSize": 1000}
            for front in ({}, {"p": 1})
            for condition in (5, {"$gt": 390}, {"$in": [4, 7, 200]}, {"$ne": 5}, None, {"$exists": True}, {"$type": "array"}, {"$all": [5, 7]})
        ),
        *({"find": "c", "filter": {"g": {"$near": {"$geometry": point(-0.013, -0.027)}}, "n": condition}} for condition in (5, {"$lt": 9}, {"$in": [3, 300]})),
        setup=[{"createIndexes": "c", "indexes": [
            {"key": {"g": "2dsphere", "n": 1}, "name": "n"}, {"key": {"p": 1, "g": "2dsphere", "n": -1}, "name": "p"},
        ]}],
    ),  # fmt: skip
]
