"""Definitions of indexes: every option with values of all types, on key patterns of all kinds.
Scripts, each case on nothing."""

from bson import Decimal128, Int64

from compat.case import differs, script
from compat.cases.options import ANY

OPTIONS = ["key", "name", "unique", "sparse", "hidden", "background", "dropDups", "prepareUnique", "v", "expireAfterSeconds",
    "partialFilterExpression", "collation", "storageEngine", "weights", "default_language", "language_override", "textIndexVersion",
    "2dsphereIndexVersion", "bits", "min", "max", "coarsestIndexedLevel", "finestIndexedLevel", "ns", "wildcardProjection", "bucketSize",
    "clustered", "originalSpec", "foo", "_id"]
FEW = [1, 1.5, 0, -1, "x", True, None, {}, {"a": 1}, {"locale": "fr"}, [], [{}]]
LEVELS = "MongoDB keeps what its own listIndexes does not take afterwards"
EMBEDDED = ("embedded", "on MariaDB, indexes over words and places have fewer options")
WIDTH = ("embedded", "an index in MariaDB has 16 fields at most")


def indexes(*specs, **options):
    return {"createIndexes": "c", "indexes": list(specs), **options}


def anew(*cases):
    """Each case on an empty database, and the indexes afterwards."""
    for case in cases:
        yield {"drop": "c"}
        yield from case if isinstance(case, (list, tuple)) else (case, {"listIndexes": "c"})


def option(key: dict, name: str, value):
    create, listed = indexes({"key": key, "name": "a_1", name: value}), {"listIndexes": "c"}
    if name in ("coarsestIndexedLevel", "finestIndexedLevel") and isinstance(value, bool) and "_id" not in key and key != {"a": "2dsphere"}:
        listed = differs(listed, LEVELS)
    return [create, listed]


def options(key: dict, values, *without: str):
    """Every option on a key pattern."""
    return anew(*(option(key, name, value) for name in OPTIONS if name not in without for value in values))


DIRECTIONS = [*ANY, Decimal128("-1"), Decimal128("0"), Decimal128("NaN"), -1.5, 0.5, -0.5, 1e-300, Int64(-1), Int64(0), "2d", "text", "hashed",
    "2dsphere", "geoHaystack", "columnstore", "btree"]
PATHS = ["a", "", "a.", "..", ".a", "a..b", "$a", "a.$b", "a.$id", "a.$ref", "a.$db", "$id", "a.$id.b", "_fts", "_ftsx", "a.0", "0", "_id.a", "x" * 200]
SECONDS = [*ANY, 0.5, Decimal128("0.5"), Decimal128("1.5"), Decimal128("2.5"), Decimal128("-0.5"), 2**31 - 1, 2**31, Int64(2**62), -5, 1e18, -1e30,
    float("inf"), Decimal128("NaN")]
A, B = {"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b"}
ID = {"key": {"_id": 1}, "name": "_id_"}


def fields(count: int, **more) -> dict:
    return {**{f"f{number}": 1 for number in range(count)}, **more}


# Definitions with several errors at once.
ORDER = [
    [{"key": {"a": 0}}], [{"key": {"a": 0}, "foo": 1}], [{"foo": 1, "key": {"a": 0}}], [{"name": 1, "key": {"a": 0}}],
    [{"key": {"a": 0}, "name": 1}], [{"key": {"a": 1}}], [{"name": "x"}], [{}], [{"name": ""}], [{"key": {}}], [{"key": {}, "name": "x"}],
    [{"key": {"a": 1}, "name": ""}], [{"key": {"a": 0}, "name": ""}], [{"key": {"a": 1}, "name": "*"}], [{"key": {"a": 1}, "name": "a\0b"}],
    [{"key": {"a": 1, "b": 1}, "name": "x", "expireAfterSeconds": 1}, {"key": {"a": 0}}],
    [{"key": {"a": 1, "b": 1}, "name": "x", "expireAfterSeconds": 1}, {"key": {"a": 1}, "name": "x", "foo": 1}],
    [{"key": {"a": 1}, "name": "x", "expireAfterSeconds": -1, "foo": 1}], [{"key": {"a": 1}, "name": "x", "expireAfterSeconds": -1, "sparse": "x"}],
    [{"key": {"a": 1}, "expireAfterSeconds": -1}], [{"key": {"a": 1}, "name": "x", "sparse": "x", "foo": 1}], [{"key": {"a": 1}, "sparse": "x"}],
    [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"$foo": 1}, "sparse": "x"}],
    [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"$foo": 1}, "sparse": True}],
    [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"a": {"$ne": 1}}, "sparse": "x"}],
    [{"key": {"a": 1}, "name": "x", "collation": {"locale": "zz"}, "sparse": "x"}],
    [{"key": {"a": 1}, "name": "x", "collation": {"locale": "zz"}, "expireAfterSeconds": -1}], [{"key": {"a": 1}, "collation": {"locale": "zz"}}],
    [{"key": {"a": 1}, "name": "", "collation": {"locale": "zz"}}],
    [{"key": {"a": 1}, "name": "x", "collation": {"locale": "zz"}, "partialFilterExpression": {"$foo": 1}}],
    [{"key": {"a": 1}, "name": "x", "collation": {"locale": "fr"}, "v": 1}], [{"key": {"a": 1}, "name": "x", "v": 0, "foo": 1}],
    [{"key": {"$**": 1}, "name": "x", "v": 1}], [{"key": {"a": Decimal128("1")}, "name": "x", "v": 1}],
    [ID, {"key": {"a": 0}, "name": "x"}], [{**ID, "sparse": True}, {"key": {"a": 0}, "name": "x"}], [{"key": {"a": 0}, "name": "x"}, {**ID, "sparse": True}],
    [{"key": {"a": 1}, "name": "_id_"}], [{"key": {"a": 1}, "name": "_id_", "unique": "x"}], [{"key": {"_id": -1}, "name": "_id_"}],
    [{"key": {"_id": -1}, "name": "x"}], [{"key": {"_id": 1}, "name": "x"}], [{"key": {"_id": 1.0}, "name": "_id_"}], [{"key": {"_id": 2}, "name": "x"}],
    [{"key": {"_id": -1.0}, "name": "x"}], [{"key": {"_id": "hashed"}, "name": "x"}], [{"key": {"_id": 1, "a": 1}, "name": "x"}],
    [A, A], [A, {"key": {"a": 1}, "name": "b"}], [A, {"key": {"b": 1}, "name": "a"}], [ID, A], [ID, ID],
    [{**A, "clustered": True, "unique": True}], [{**ID, "clustered": True, "unique": True}], [{"key": {"_id": 1}, "clustered": True, "unique": True}],
    [{**ID, "clustered": True, "unique": False}], [{**ID, "clustered": True}], [{"key": {"_id": -1}, "name": "x", "clustered": True, "unique": True}],
    [{**A, "clustered": True, "unique": True, "sparse": True}],
]
ONE_DOCUMENT, EMPTY = {"insert": "c", "documents": [{"_id": 1, "a": 5}]}, {"create": "c"}
IN_TURN = [
    [EMPTY, indexes(A, A)], [ONE_DOCUMENT, indexes(A, A)], [ONE_DOCUMENT, indexes(A), indexes(A, A)], [ONE_DOCUMENT, indexes(A, B, A)],
    [EMPTY, indexes(B), indexes(A, B)], [EMPTY, indexes(B), indexes(A, B, A)], [EMPTY, indexes(ID, ID)], [EMPTY, indexes(ID)],
    [EMPTY, indexes({"key": {"_id": 2}, "name": "x"}), {"listIndexes": "c"}], [EMPTY, indexes({"key": fields(33), "name": "m"})],
    [indexes(A), indexes({"key": fields(33), "name": "a"})], [indexes({"key": fields(33), "name": "m", "collation": {"locale": "zz"}})],
    [EMPTY, indexes({**A, "clustered": True, "unique": True})], [EMPTY, indexes({**ID, "clustered": True, "unique": True})],
]
MANY = [fields(count) for count in (31, 32, 33, 40)] + [fields(count, t="text") for count in (30, 31, 33)] + [{f"f{number}": "text" for number in range(33)}]
WHOLE = ["indexes", "ignoreUnknownIndexOptions", "foo", "v", "collation", "background", "isTimeseriesNamespace"]
NAMES = ["system.views", "system.js", "system.users", "system.profile", "system.foo", "a$b", "$x", ".x", "x..y", "x" * 240, "system."]

BLOCKS = [
    script("definitions: options", *options({"a": 1}, ANY), messages=False),
    script("definitions: options, version 1", *options({"a": 1}, FEW, "key", "name", "v"), messages=False),
    script("definitions: options of text", *options({"a": "text"}, FEW, "key", "name", "textIndexVersion"), messages=False, only=EMBEDDED),
    script("definitions: options of places", *options({"a": "2d"}, FEW, "key", "name"), *options({"a": "2dsphere"}, FEW, "key", "name",
        "2dsphereIndexVersion"), messages=False, only=EMBEDDED),
    script("definitions: options of hashes", *options({"a": "hashed"}, FEW, "key", "name"), messages=False),
    script("definitions: options of several fields", *options({"a": 1, "b": -1}, FEW, "key", "name"), messages=False),
    script("definitions: options of _id", *options({"_id": 1}, FEW, "key", "name"), messages=False),
    script("definitions: directions", *anew(*(indexes({"key": {name: value}, "name": "a_1"}) for name in ("a", "_id") for value in DIRECTIONS))),
    script("definitions: paths", *anew(*(indexes({"key": {path: kind}, "name": "a_1"}) for kind in (1, "text", "hashed", "2d") for path in PATHS))),
    script("definitions: numbers of fields", *anew(*(indexes({"key": key, "name": "m"}) for key in MANY)), only=WIDTH),
    script("definitions: seconds", *anew(*(indexes({**A, "expireAfterSeconds": value}) for value in SECONDS))),
    script("definitions: the command", *anew(*(indexes(A, **{name: value}) for name in WHOLE for value in ANY))),
    script("definitions: elements", *anew(*(indexes(*specs) for value in ANY for specs in ([value], [A, value])))),
    script("definitions: several mistakes", *anew(*(indexes(*specs) for specs in ORDER))),
    script("definitions: one after the other", *anew(*IN_TURN), messages=False),
    script("definitions: unknown options", *anew(*(indexes(spec, ignoreUnknownIndexOptions=flag) for flag in (True, False, 1, 0)
        for spec in ({**A, "foo": 1}, {**A, "foo": 1, "sparse": "x"}, {**A, "unique": True, "x": None}, {"key": {"a": "text"}, "name": "x", "bar": 1})))),
    script("definitions: names of collections", *({"createIndexes": name, "indexes": [A]} for name in NAMES)),
    script("definitions: levels of cells", *anew(*(indexes({"key": {"a": "2dsphere"}, "name": "a", name: level, "2dsphereIndexVersion": version})
        for version in (1, 2, 3) for name in ("finestIndexedLevel", "coarsestIndexedLevel") for level in (0, 1, 2, 6, 7, 14, 15, 16, 17, 30, 31))),
        only=EMBEDDED),
]
