"""The types of every option of a command: each gets values of all types, including null, and
unknown options are added."""

import datetime

from bson import Binary, Code, Decimal128, Int64, MinKey, ObjectId, Regex, Timestamp

from compat.case import Block, commands

NAN = float("nan")
DOCUMENTS = [{"_id": number, "x": number % 3, "a": [number, {"b": number}]} for number in range(4)]
ANY = [1, Int64(1), 1.5, Decimal128("1"), -1, 0, NAN, "x", "", True, False, None, {}, {"a": 1}, [], [1], [{}], ["x"], MinKey(),
    ObjectId("5f0000000000000000000001"), datetime.datetime(2020, 2, 29), Regex("a"), Timestamp(1, 2), Binary(b"ab"), Code("x")]
SHARED = ["comment", "readConcern", "writeConcern", "$readPreference", "lsid", "txnNumber", "autocommit", "startTransaction",
    "apiVersion", "apiStrict", "apiDeprecationErrors", "maxTimeMSOpOnly"]
UPDATE = {"q": {"_id": 1}, "u": {"$set": {"z": 1}}}


def each(family: str, command: dict, options: list[str], without=(), **block) -> Block:
    """The command with each option in turn, in each form."""
    return commands(family, DOCUMENTS, *({**command, option: value} for option in options for value in ANY if value not in without), **block)


def each_of_statement(family: str, name: str, list_name: str, statement: dict, options: list[str]) -> Block:
    cases = ({name: "c", list_name: [{**statement, option: value}]} for option in options for value in ANY)
    return commands(family, DOCUMENTS, *cases, writes=True)


BLOCKS = [
    each("options: find", {"find": "c"}, ["filter", "projection", "sort", "hint", "skip", "limit", "batchSize", "singleBatch", "min", "max",
        "tailable", "awaitData", "oplogReplay", "noCursorTimeout", "allowPartialResults", "collation", "let", "allowDiskUse", "readOnce", "foo"]),
    each("options: find", {"find": "c"}, SHARED),
    each("options: count", {"count": "c"}, ["query", "limit", "skip", "hint", "collation", "fields", "let", "sort", *SHARED]),
    each("options: distinct", {"distinct": "c", "key": "x"}, ["key", "query", "collation", "hint", "sort", "let", *SHARED]),
    # An explanation is another matter.
    each("options: aggregate", {"aggregate": "c", "pipeline": [], "cursor": {}}, ["pipeline", "cursor", "allowDiskUse",
        "bypassDocumentValidation", "hint", "collation", "let", "foo"]),
    each("options: aggregate", {"aggregate": "c", "pipeline": [], "cursor": {}}, ["explain"], without=(True,)),
    each("options: aggregate", {"aggregate": "c", "pipeline": [], "cursor": {}}, ["maxTimeMS"], without=(1, Int64(1), Decimal128("1"))),
    each("options: getMore", {"getMore": Int64(17), "collection": "c"}, ["getMore", "collection", "batchSize", "foo"]),
    each("options: insert", {"insert": "c", "documents": [{"_id": 99}]}, ["documents", "ordered", "bypassDocumentValidation", "let", "foo",
        *SHARED], writes=True),
    each("options: update", {"update": "c", "updates": [UPDATE]}, ["updates", "ordered", "bypassDocumentValidation", "let", "foo"], writes=True),
    each_of_statement("options: update", "update", "updates", UPDATE, ["q", "u", "c", "multi", "upsert", "arrayFilters", "collation", "hint",
        "upsertSupplied", "sort"]),
    each("options: delete", {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}, ["deletes", "ordered", "let", "foo",
        "bypassDocumentValidation"], writes=True),
    each_of_statement("options: delete", "delete", "deletes", {"q": {"_id": 1}, "limit": 1}, ["q", "limit", "collation", "hint", "let"]),
    each("options: findAndModify", {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"z": 1}}}, ["query", "update", "sort",
        "remove", "new", "fields", "upsert", "bypassDocumentValidation", "collation", "arrayFilters", "hint", "let", "foo"], writes=True),
    each("options: findAndModify", {"findAndModify": "c", "query": {"_id": 1}, "remove": True}, ["sort", "new", "fields", "upsert",
        "arrayFilters", "hint", "let"], writes=True),
    each("options: listCollections", {"listCollections": 1, "filter": {"name": "c"}, "nameOnly": True}, ["nameOnly", "cursor",
        "authorizedCollections", "foo"], without=(False, None, {})),
    each("options: listDatabases", {"listDatabases": 1, "filter": {"name": "compat"}, "nameOnly": True, "$db": "admin"},
        ["authorizedDatabases", "foo"]),
    each("options: renameCollection", {"renameCollection": "compat.nope", "to": "compat.c", "$db": "admin"},
        ["renameCollection", "to", "dropTarget", "stayTemp", "foo"]),
    each("options: dropDatabase", {"dropDatabase": 1, "$db": "compat_nothing"}, ["dropDatabase", "foo"], without=(1.5,)),
]
