"""`create` with every option, and collections clustered by `_id`. Scripts, each case on nothing."""

from datetime import datetime

from bson import Binary, Decimal128, Int64, MaxKey, MinKey, Timestamp

from compat.case import differs, script
from compat.cases.options import ANY

FEW = [1, 1.5, 0, -1, "x", True, None, {}, {"a": 1}, [], [{}]]
INDEX = {"key": {"_id": 1}, "unique": True}
LISTED = {"listCollections": 1, "filter": {"name": {"$in": ["c", "d"]}}}
INDEXES = {"listIndexes": "c"}
OPTIONS = ["capped", "autoIndexId", "idIndex", "size", "max", "storageEngine", "validator", "validationLevel", "validationAction",
    "indexOptionDefaults", "viewOn", "pipeline", "collation", "flags", "temp", "clusteredIndex", "expireAfterSeconds",
    "changeStreamPreAndPostImages", "recordPreImages", "encryptedFields", "comment", "foo"]
NAMES = ["system.js", "system.users", "system.foo", "system.profile", "system.buckets.", "a$b", "$x", ".x", "x..y", "system.", "", 1, None]


def clustered(**more) -> dict:
    return {"create": "c", "clusteredIndex": {**INDEX, **more}}


def anew(*cases):
    for case in cases:
        yield {"drop": "c"}
        yield {"drop": "d"}
        yield from case if isinstance(case, list) else [case, LISTED, INDEXES]


def options(base: dict, *without: str):
    return anew(*({**base, option: value} for option in OPTIONS if option not in without for value in FEW))


def index(**spec) -> dict:
    return {"createIndexes": "c", "indexes": [spec]}


# Ids of which no index of MariaDB has the order, among those of which it has.
ODD_IDS = [7, {"a": 2}, Decimal128("1.25"), "x", {"a": 1, "b": 1}, datetime(9000, 1, 1), 2, {"a": 1}, datetime(2020, 1, 1), Decimal128("-7"), MaxKey(),
    Binary(b"ab"), True, MinKey(), Binary(b"b"), Timestamp(5, 1), datetime(1960, 1, 1), 1.5, "", Decimal128("1E+40"), "B", "a", {}, Timestamp(4, 9), None]
ODD_READS = [{"find": "c"}, {"find": "c", "batchSize": 3}, {"find": "c", "sort": {"$natural": -1}}, {"find": "c", "hint": {"$natural": -1}},
    {"find": "c", "hint": {"$natural": 1}, "skip": 5, "limit": 4}, {"find": "c", "limit": 3}, {"find": "c", "filter": {"n": {"$gt": 3}}},
    {"find": "c", "filter": {"n": {"$gt": 3}}, "sort": {"n": -1}}, {"find": "c", "filter": {"_id": {"$in": [7, {"a": 1}, 2, Decimal128("-7")]}}},
    differs({"find": "c", "filter": {"_id": {"$gt": 1}}}, "ids without a place in an index's order come behind the others of a range", "mariadb"),
    {"find": "c", "sort": {"_id": -1}}, {"find": "c", "projection": {"_id": 1}, "singleBatch": True, "batchSize": 7},
    {"aggregate": "c", "pipeline": [{"$limit": 5}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$match": {"n": {"$lt": 9}}}, {"$skip": 1}], "cursor": {}}, {"count": "c"}]
ODD_FILL = {"insert": "c", "documents": [{"_id": odd, "n": number} for number, odd in enumerate(ODD_IDS)]}
IN_ENGLISH = {"collation": {"locale": "en", "strength": 2}}

ID, ANOTHER = {"key": {"_id": 1}, "name": "_id_"}, {"key": {"a": 1}, "name": "a"}
FILL = {"insert": "c", "documents": [{"_id": 5}, {"_id": 2}, {"_id": "x"}, {"_id": 1, "a": 9}]}
READS = [{"find": "c"}, {"find": "c", "sort": {"$natural": -1}}, {"find": "c", "hint": {"_id": 1}}, {"find": "c", "hint": "_id_"},
    {"find": "c", "hint": {"$natural": 1}}, {"find": "c", "hint": {"$natural": -1}}, {"find": "c", "filter": {"a": {"$exists": 0}}},
    {"find": "c", "limit": 2}, {"find": "c", "batchSize": 1}, {"aggregate": "c", "pipeline": [{"$limit": 2}], "cursor": {}},
    {"distinct": "c", "key": "_id"}, {"count": "c"}, {"delete": "c", "deletes": [{"q": {"a": None}, "limit": 1}]},
    {"findAndModify": "c", "query": {}, "remove": True}, {"find": "c", "min": {"_id": 2}, "hint": {"_id": 1}},
    {"update": "c", "updates": [{"q": {"_id": 9}, "u": {"$set": {"b": 1}}, "upsert": True}]}, {"find": "c", "filter": {"_id": {"$gt": 1}}},
    {"find": "c", "filter": {"_id": {"$in": [5, 2]}}}, {"find": "c", "filter": {"a": {"$gt": 1}}, "sort": {"$natural": -1}},
    {"find": "c", "filter": {"$or": [{"a": 9}, {"_id": 2}]}}, {"insert": "c", "documents": [{"_id": 5}]}]
CASES = [
    *([create, ODD_FILL, *ODD_READS] for create in (clustered(), {**clustered(), **IN_ENGLISH})),
    [clustered(), index(**ID)], [clustered(), index(**ID, clustered=True, unique=True)],
    [clustered(), index(key={"_id": 1}, name="x", clustered=True, unique=True)], [clustered(), index(**ANOTHER), INDEXES, {"dropIndexes": "c", "index": "a"}, INDEXES],
    [clustered(), index(key={"a": 1}, name="b", clustered=True, unique=True)], *([clustered(), FILL, read, {"find": "c"}] for read in READS),
    *([clustered(), {"dropIndexes": "c", "index": which}] for which in ("_id_", {"_id": 1}, "*", "a")),
    *([create, {"collMod": "c", "expireAfterSeconds": value}, LISTED] for create in (clustered(), {"create": "c"}) for value in [*ANY, "off"]),
    [{**clustered(), "expireAfterSeconds": 7}, LISTED, {"collMod": "c", "expireAfterSeconds": "off"}, LISTED],
    *([{**clustered(), "expireAfterSeconds": value}, LISTED] for value in [*ANY, Int64(2**40)]),
    [clustered(), {"collMod": "c", "index": {"name": "_id_", "hidden": True}}], [clustered(), {"collMod": "c", "index": {"name": "_id_", "expireAfterSeconds": 4}}],
    [clustered(), {"collMod": "c", "index": {"keyPattern": {"_id": 1}, "hidden": True}}], [clustered(), {"collMod": "c", "validator": {"a": 1}}, LISTED],
    [clustered(), FILL, {"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}, {"$out": "c"}], "cursor": {}}, LISTED, INDEXES, {"find": "c"}],
    [clustered(), FILL, {"renameCollection": "compat.c", "to": "compat.d", "$db": "admin"}, {"listIndexes": "d"}, {"find": "d"}, LISTED],
    [clustered(name="foo"), LISTED, INDEXES, {"dropIndexes": "c", "index": "foo"}, index(**ID)], [clustered(name="foo"), {"dropIndexes": "c", "index": "_id_"}],
    [clustered(name="foo"), index(key={"_id": 1}, name="foo", clustered=True, unique=True)], [clustered(name="foo"), index(key={"a": 1}, name="foo")],
    [clustered(name="foo"), differs({"find": "c", "hint": "foo"}, "the index on _id is hinted at by its usual name")],
    [{**clustered(), "collation": {"locale": "fr"}}, LISTED, INDEXES, index(**ID)], [clustered(), clustered()], [clustered(), {"create": "c"}], [clustered(), {"drop": "c"}],
    [clustered(), {"convertToCapped": "c", "size": 1000}, differs(LISTED, "what becomes capped is clustered no longer")],
]

BLOCKS = [
    script("definitions: create", *options({"create": "c"}), messages=False),
    script("definitions: create capped", *options({"create": "c", "capped": True, "size": 4096}), messages=False),
    script("definitions: create clustered", *options(clustered(), "clusteredIndex"), messages=False),
    script("definitions: create views", *options({"create": "c", "viewOn": "d"}, "storageEngine"), messages=False),
    script("definitions: names of what is created", *anew(*([{"create": name, **more}] for name in NAMES for more in ({}, {"capped": True, "size": 1000}, {"viewOn": "d"})))),
    script("definitions: clustered indexes", *anew(*(clustered(**{name: value}) for name in ("key", "unique", "name", "v", "foo", "hidden") for value in ANY))),
    script("definitions: clustered collections", *anew(*CASES), messages=False),
]
