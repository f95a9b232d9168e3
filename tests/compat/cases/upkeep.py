"""Commands for maintenance and hashes, and commands that a server without replication and shards
refuses."""

from bson import Binary, ObjectId

from compat.case import differs, script
from compat.cases.scripts import admin

LENIENT = "files without an index on their chunks are read as well"
ONLY_NEWEST = "no older version's format can be kept"
STATE = "what MongoDB gives as the state is its process's memory"
CHUNKS = [
    (1, 0, Binary(b"hel")), (1, 1, Binary(b"lo")), (2, 0, Binary(b"x")), (2, 2, Binary(b"x")), (3, 0, "text"), (5, 1, Binary(b"x")),
    (6, 0, Binary(b"x")), (6, 0, Binary(b"y")), (7, 0, Binary(b"a")), (7, 1, 1), (8, "a", Binary(b"a")), (9, 1.0, Binary(b"b")),
    (9, 0.0, Binary(b"a")), (10, 0.5, Binary(b"a")), (11, 0, Binary(b"a", 5)), (12, 0, None),
]
OF_REPLICA_SETS = [
    "appendOplogNote", "replSetAbortPrimaryCatchUp", "replSetFreeze", "replSetGetRBID", "replSetHeartbeat", "replSetInitiate",
    "replSetMaintenance", "replSetReconfig", "replSetRequestVotes", "replSetResizeOplog", "replSetStepDown", "replSetStepUp",
    "replSetSyncFrom", "replSetUpdatePosition",
]
OF_SHARDS = [
    "flushRouterConfig", "setShardVersion", "shardingState", "getShardVersion", "mergeChunks", "splitChunk", "getClusterParameter",
    "setClusterParameter",
]
OF_ROUTERS = ["addShard", "balancerStart", "enableSharding", "movePrimary", "removeShard", "shardCollection", "split"]


def everyhow(name):
    """A command's arguments of every kind, and on another database."""
    values = (1, "", "a", "a.b", {}, [], ["a"], [1], None)
    majority = admin({name: "a.b", "readConcern": {"level": "majority"}})
    return [
        {name: 1}, *(admin({name: value}) for value in values), admin({name: "a.b", "x": 1}), admin({name: {}, "x": 1}),
        admin({name: "a.b", "writeConcern": {"w": 1}}),
        differs(majority, "the command's own fields are read behind its concerns") if name == "setClusterParameter" else majority,
    ]


def of_collections(name):
    names = ("c", "none", "v", "cap", "cl", "k", "system.js", "system.views", "", ".x", "a$b", "$x", "a\0b", 1, None, {}, True)
    options = {"x": 1}, {"force": True}, {"force": "x"}, {"writeConcern": {"w": 1}}, {"readConcern": {"level": "local"}}, {"comment": 1}
    return [*({name: value} for value in names), *({name: "c", **more} for more in options)]


BLOCKS = [
    script(
        "commands: upkeep",
        {"insert": "c", "documents": [{"_id": 1, "a": 1}]},
        {"createIndexes": "c", "indexes": [
            {"key": {"a": 1}, "name": "one", "unique": True}, {"key": {"b": -1, "a": 1}, "name": "two", "sparse": True},
            {"key": {"d": "2dsphere"}, "name": "three"}]},
        {"create": "v", "viewOn": "c", "pipeline": []}, {"create": "cap", "capped": True, "size": 4096},
        {"create": "cl", "clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"create": "k", "collation": {"locale": "de"}},
        *of_collections("reIndex"), *of_collections("compact"),
        {"find": "c"}, {"listIndexes": "c"},
    ),
    script(
        "commands: dbHash",
        {"dbHash": 1},
        {"insert": "a", "documents": [{"_id": 2, "x": "y"}, {"_id": 1}, {"_id": "s", "z": [1, {"q": None}]}, {"_id": None}]},
        {"insert": "b", "documents": [{"_id": number, "x": "x" * 100} for number in range(1200, 0, -1)]},
        {"create": "cap", "capped": True, "size": 4096}, {"insert": "cap", "documents": [{"_id": 2}, {"_id": 1}]},
        {"insert": "system.js", "documents": [{"_id": "f", "value": 1}]}, {"create": "empty"},
        *({"dbHash": value} for value in (1, 0, True, None, {}, "", "a", "a.b")), {"dbhash": 1},
        *({"dbHash": 1, "collections": value} for value in (["a"], ["a", "b"], ["none"], [], "a", [1], ["a", 1], None, {})),
        *({"dbHash": 1, **more} for more in (
            {"x": 1}, {"skipTempCollections": True}, {"skipTempCollections": "x"}, {"$_internalReadAtClusterTime": 1},
            {"writeConcern": {"w": 1}}, {"readConcern": {"level": "local"}}, {"readConcern": {"level": "majority"}})),
    ),
    script(
        "commands: filemd5",
        {"filemd5": 1},
        {"insert": "fs.chunks", "documents": [
            {"_id": at, "files_id": file, "n": n, "data": data} for at, (file, n, data) in enumerate(CHUNKS)]},
        {"insert": "fs.chunks", "documents": [{"_id": "none", "files_id": 4, "n": 0}]},
        differs({"filemd5": 1, "root": "fs"}, LENIENT),
        {"createIndexes": "fs.chunks", "indexes": [{"key": {"files_id": 1, "n": 1}, "name": "i"}]},
        *({"filemd5": file} for file in (*range(1, 13), 99, None, "x", {"a": 1}, {"$gt": 20})),
        *({"filemd5": 1, "root": root} for root in ("fs", "none", "", 1, None)),
        *({"filemd5": 1, **more} for more in (
            {"x": 1}, {"partialOk": False}, {"startAt": 1}, {"md5state": 1}, {"writeConcern": {"w": 1}})),
        differs({"filemd5": 1, "partialOk": True}, STATE),
    ),
    script(
        "commands: versions and users",
        *(admin({"setFeatureCompatibilityVersion": value}) for value in ("6.0", "4.4", "7.0", "6.1", "latest", "", 6, 6.0, None, {})),
        {"setFeatureCompatibilityVersion": "6.0"},
        *(admin({"setFeatureCompatibilityVersion": "6.0", **more}) for more in (
            {"x": 1}, {"writeConcern": {"w": 1}}, {"fromConfigServer": True}, {"downgradeOnDiskChanges": True},
            {"downgradeOnDiskChanges": False})),
        differs(admin({"setFeatureCompatibilityVersion": "5.0"}), ONLY_NEWEST),
        admin({"setFeatureCompatibilityVersion": "6.0"}),
        *(case for name in (
            "availableQueryOptions", "connPoolSync", "driverOIDTest", "dropAllRolesFromDatabase", "dropAllUsersFromDatabase",
            "invalidateUserCache") for case in (
                {name: 1}, {name: "x"}, {name: None}, {name: 1, "x": 1}, {name: 1, "comment": 1}, {name: 1, "writeConcern": {"w": 1}},
                {name: 1, "readConcern": {"level": "local"}}, {name: 1, "readConcern": {"level": "majority"}}, admin({name: 1}))),
        {"driverOIDTest": ObjectId("0123456789abcdef01234567")},
    ),
    script("commands: of replica sets", *(case for name in OF_REPLICA_SETS for case in everyhow(name))),
    script("commands: of shards", *(case for name in OF_SHARDS for case in everyhow(name))),
    script("commands: of routers", *(case for name in OF_ROUTERS for case in everyhow(name)[:3])),
]
