"""Fields that every command may have, and the fields that MongoDB's strict API excludes."""

from bson import Binary, Timestamp

from compat.case import commands, script

DOCUMENTS = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]
COMMANDS = [
    {"find": "c"}, {"aggregate": "c", "pipeline": [], "cursor": {}}, {"count": "c"}, {"distinct": "c", "key": "a"},
    {"insert": "c", "documents": [{"_id": 9}]}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"b": 1}}}]},
    {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}, {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"b": 1}}},
    {"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}, {"listIndexes": "c"}, {"ping": 1},
    {"listCollections": 1, "nameOnly": True, "filter": {"name": "c"}},
]
LEVELS = [{"level": level} for level in ("local", "majority", "available", "linearizable", "x", None)]
CONCERNS = [{}, *LEVELS, {"foo": 1}, {"atClusterTime": Timestamp(1, 1)}]
WRITE_CONCERNS = [{}, {"w": 1}, {"w": 2}, {"w": "majority"}, {"w": "x"}, {"j": True}, {"j": True, "fsync": True}, {"j": False, "fsync": True},
    {"w": 1, "wtimeout": "x"}, {"foo": 1}]
VERSIONS = [("shardVersion", value) for value in ({}, [], 1, "x", None)] + [("databaseVersion", value) for value in ({}, 1, "x", None)]
STRICT = {"apiVersion": "1", "apiStrict": True}
NOT_IN_THE_API = [{"collStats": "c"}, {"dbStats": 1}, {"validate": "c"}, {"buildInfo": 1}, {"isMaster": 1}, {"connectionStatus": 1}, {"usersInfo": 1},
    {"whatsmyuri": 1}, {"serverStatus": 1}, {"renameCollection": "compat.c", "to": "compat.e", "$db": "admin"}, {"getParameter": 1, "$db": "admin"}]
STAGES = [{"$indexStats": {}}, {"$listCatalog": {}}, {"$currentOp": {}}, {"$listSessions": {}}, {"$listLocalSessions": {}}, {"$planCacheStats": {}}, {"$match": {}},
    {"$lookup": {"from": "x", "pipeline": [{"$indexStats": {}}], "as": "y"}}]
OF_FIND = [{"tailable": True}, {"awaitData": True}, {"oplogReplay": True}, {"max": {"_id": 1}, "hint": {"_id": 1}}, {"returnKey": True},
    {"showRecordId": True}, {"noCursorTimeout": True}, {"limit": 1}, {"hint": "_id_"}]
OF_CREATE = [{"autoIndexId": True}, {"capped": True, "size": 1000}, {"temp": True}, {"validator": {}}, {"collation": {"locale": "fr"}}]
OTHER = Binary(b"0" * 16, 4)
IN_THE_API = [*COMMANDS, *NOT_IN_THE_API, *({"aggregate": "c", "pipeline": [stage], "cursor": {}} for stage in STAGES),
    *({"find": "c", **more} for more in OF_FIND), *({"create": "e", **more} for more in OF_CREATE),
    {"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "x"}]}, {"aggregate": "c", "pipeline": [], "cursor": {}, "explain": True}]


def nested(levels: int, within=lambda inner: {"a": inner}):
    value = 1
    for _ in range(levels):
        value = within(value)
    return value


def each(name: str, values):
    return [{**command, name: value} for value in values for command in COMMANDS]


BLOCKS = [
    commands("envelopes: readConcern", DOCUMENTS, *each("readConcern", CONCERNS), writes=True),
    commands("envelopes: writeConcern", DOCUMENTS, *each("writeConcern", WRITE_CONCERNS), writes=True),
    commands("envelopes: versions", DOCUMENTS, *({**command, name: value} for name, value in VERSIONS for command in COMMANDS), writes=True),
    commands("envelopes: the API", DOCUMENTS, *({**command, **STRICT} for command in IN_THE_API if "$currentOp" not in str(command))),
    script("envelopes: collectionUUID", {"insert": "c", "documents": DOCUMENTS}, *(
        {**command, "collectionUUID": value} for value in (OTHER, "x", None, Binary(b"ab"), 1) for command in (
            {"find": "c"}, {"find": "nope"}, {"aggregate": "c", "pipeline": [], "cursor": {}}, {"collMod": "c"}, {"dropIndexes": "c", "index": "x"},
            {"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}, {"count": "c"}, {"drop": "nope"})),
        {"drop": "c", "collectionUUID": OTHER}, {"drop": "c", "collectionUUID": "x"}, {"find": "c"}),
    script("envelopes: nesting", *(
        {**command, "comment": nested(levels, within)} for levels in (199, 200, 201, 202) for within in (lambda inner: {"a": inner}, lambda inner: [inner])
        for command in ({"ping": 1}, {"find": "c", "filter": {"a": 1}}, {"nope": 1}))),
]
