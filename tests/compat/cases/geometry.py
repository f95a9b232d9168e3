"""`$geoWithin` and `$geoIntersects`: shapes of all kinds and areas of all kinds, valid and invalid,
and random ones from a seed."""

import math
import random

from compat.case import filters

NAN = float("nan")
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]]}
DISTANT = [[[8, 8], [10, 8], [10, 10], [8, 10], [8, 8]]]
STRICT = {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}


def point(x, y):
    return {"type": "Point", "coordinates": [x, y]}


SHAPES = [
    [1, 1], {"x": 1, "y": 1}, {"lng": 2, "lat": 2, "z": 5}, point(1, 1), {"type": "LineString", "coordinates": [[0, 0], [2, 2]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}, {"type": "MultiPoint", "coordinates": [[1, 1], [9, 9]]},
    {"type": "GeometryCollection", "geometries": [point(1, 1)]}, [[1, 1], [9, 9]], 5, None, point("x", 1), [1], [1, 1, 5], {"x": 1},
    {"type": "Foo", "coordinates": [1, 1]}, [200, 200], point(200, 1), [point(1, 1), point(50, 50)],
    {"type": "Polygon", "coordinates": [SQUARE["coordinates"][0], [[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}, [0, 0], [5, 5], [0, 2],
    point(2.5, 2.5), {"loc": [1, 1]}, {"a": "x", "b": 1},
]  # fmt: skip

AREAS = [
    {"$geometry": SQUARE}, {"$box": [[0, 0], [5, 5]]}, {"$polygon": [[0, 0], [5, 0], [5, 5], [0, 5]]}, {"$center": [[1, 1], 2]},
    {"$centerSphere": [[1, 1], 0.05]}, {"$geometry": point(1, 1)}, {"$geometry": {"type": "LineString", "coordinates": [[0, 0], [2, 2]]}},
    {"$geometry": {"type": "MultiPolygon", "coordinates": [SQUARE["coordinates"], DISTANT]}},
    {"$geometry": {"type": "GeometryCollection", "geometries": [SQUARE]}}, {"$geometry": {**SQUARE, "crs": STRICT}},
    1, {}, {"$foo": 1}, {"$geometry": 1}, {"$geometry": {}}, {"$geometry": {"type": "Foo"}}, {"$geometry": {"type": "Polygon"}},
    {"$geometry": {"type": "Polygon", "coordinates": []}}, {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}},
    {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 0], [3, 3]]]}},
    {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}},
    {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [200, 0], [2, 0], [0, 2], [0, 0]]]}},
    {"$box": 1}, {"$box": [[0, 0]]}, {"$box": [[0, 0], [0, 0]]}, {"$box": [[0, 0], [1, "x"]]}, {"$box": [[0, 0], [1, 1], [2, 2]]},
    {"$polygon": [[0, 0], [1, 1]]}, {"$polygon": 1}, {"$center": [[0, 0]]}, {"$center": [[0, 0], -1]}, {"$center": [[0, 0], "x"]},
    {"$center": [[0, 0], NAN]}, {"$center": [[0, 0], 1, 2]}, {"$centerSphere": [[0, 0], -1]}, {"$centerSphere": [[200, 0], 1]},
    {"$centerSphere": [[0, 0], 10]}, {"$geometry": SQUARE, "$box": [[0, 0], [1, 1]]}, {"$geometry": SQUARE, "$foo": 1},
    {"$geometry": SQUARE, "$maxDistance": 1}, {"$uniqueDocs": True, "$box": [[0, 0], [1, 1]]}, {"$box": {"a": [0, 0], "b": [1, 1]}},
    {"$box": [[5, 5], [0, 0]]}, [1, 1], point(1, 1), SQUARE,
]  # fmt: skip


def around(generator, radius):
    """A ring of random corners around a random center, which no edge crosses."""
    x, y = generator.uniform(-60, 60), generator.uniform(-50, 50)
    angles = sorted(generator.uniform(0, 360) for _ in range(generator.randint(3, 7)))
    corners = [[x + generator.uniform(0.3, 1) * radius * math.cos(math.radians(a)), y + generator.uniform(0.3, 1) * radius * math.sin(math.radians(a))] for a in angles]
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}


GENERATOR = random.Random(7)
RANDOM = [{"_id": number, "g": shape} for number, shape in enumerate(
    [point(GENERATOR.uniform(-90, 90), GENERATOR.uniform(-70, 70)) for _ in range(300)]
    + [{"type": "LineString", "coordinates": [[GENERATOR.uniform(-80, 80), GENERATOR.uniform(-70, 70)] for _ in range(GENERATOR.randint(2, 4))]} for _ in range(60)]
    + [around(GENERATOR, 15) for _ in range(60)]
)]  # fmt: skip
QUESTIONS = [around(GENERATOR, 35) for _ in range(60)]

BLOCKS = [
    filters(
        "geometry",
        [{"_id": number, "g": shape} for number, shape in enumerate(SHAPES)],
        *({"g": {operator: area}} for operator in ("$geoWithin", "$within", "$geoIntersects") for area in AREAS),
    ),
    filters(
        "geometry at random",
        RANDOM,
        *({"g": {operator: {"$geometry": area}}} for operator in ("$geoWithin", "$geoIntersects") for area in QUESTIONS),
        *({"g": {"$geoWithin": {"$centerSphere": [area["coordinates"][0][0], 0.5]}}} for area in QUESTIONS),
        *({"g": {"$geoWithin": {"$polygon": area["coordinates"][0]}}} for area in QUESTIONS),
        *({"g": {"$geoIntersects": {"$geometry": {"type": "LineString", "coordinates": area["coordinates"][0]}}}} for area in QUESTIONS[:20]),
    ),
]
