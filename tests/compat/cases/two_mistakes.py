"""Commands with two errors at once: which is reported. Fields of all commands have a fixed position
among a command's own fields."""

import itertools

from bson import Binary, Int64

from compat.case import commands

OTHER = Binary(b"0" * 16, 4)
ZZ = {"locale": "zz"}
UNKNOWN = [{"$foo": 1}]

# Errors in fields of all commands, and `unknownField`, which no command has.
SHARED = {
    "maxTimeMS": ["x", -1, 1.5], "writeConcern": ["x", {"w": 9}, {"foo": 1}], "readConcern": ["x", {"level": "zz"}, {"foo": 1}, {"level": "snapshot"}],
    "lsid": [1, {"id": 1}], "txnNumber": ["x", Int64(1)], "$readPreference": [1, {"mode": "x"}], "apiVersion": ["9", 1], "apiStrict": [True, 1],
    "autocommit": [1, False], "stmtId": ["x"], "$db": ["a.b", ""], "collectionUUID": [1, OTHER], "shardVersion": [1], "maxTimeMSOpOnly": [1],
    "$maxTimeMS": [1], "help": [1], "$client": [1], "unknownField": [1],
}
WRITING = {"ordered": ["x"], "bypassDocumentValidation": ["x"]}
NAME = ["", 1, {"a": 1}]

# Valid commands, and errors in their own fields. `NAMED` stands for the command's first field.
NAMED = "<first>"
OWN = [
    ({"find": "c"}, {"filter": [1], "sort": [1], "projection": [1], "limit": ["x", -1], "skip": ["x"], "batchSize": [-1], "hint": [1], "singleBatch": [1],
        "min": [1], "let": [1], "collation": [1, ZZ], "returnKey": [1], "tailable": [1], NAMED: ["$x", *NAME]}),
    ({"aggregate": "c", "pipeline": [], "cursor": {}}, {"pipeline": [1, [1], UNKNOWN], "cursor": [1, {"batchSize": -1}, {"x": 1}], "hint": [1], "let": [1],
        "collation": [1], "explain": [1], "allowDiskUse": [1], "bypassDocumentValidation": ["x"], NAMED: NAME}),
    ({"count": "c"}, {"query": [1, *UNKNOWN], "limit": ["x"], "skip": ["x", -1], "hint": [1], "collation": [1, ZZ], NAMED: ["$x", *NAME]}),
    ({"distinct": "c", "key": "a"}, {"key": [1, ""], "query": [1, *UNKNOWN], "collation": [1, ZZ], NAMED: ["$x", *NAME]}),
    ({"insert": "c", "documents": [{"_id": 1}]}, {"documents": [1, [1], []], NAMED: ["$x", *NAME], **WRITING}),
    ({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}, {"updates": [1, [1], [], [{"q": 1}]], "let": [1], NAMED: ["$x", *NAME], **WRITING}),
    ({"delete": "c", "deletes": [{"q": {}, "limit": 1}]}, {"deletes": [1, [1], [], [{"q": 1}], [{"q": {}, "limit": 5}]], "let": [1], NAMED: ["$x", *NAME], **WRITING}),
    ({"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}}, {"query": [1, *UNKNOWN], "update": [1, *UNKNOWN], "remove": ["x", True], "upsert": ["x"],
        "new": ["x"], "fields": [1], "sort": [1], "arrayFilters": [1, [1]], "hint": [1], "collation": [1, ZZ], "let": [1], NAMED: ["$x", *NAME]}),
    ({"getMore": Int64(5), "collection": "c"}, {"collection": [1, ""], "batchSize": ["x", -1], "term": ["x"], NAMED: ["x", {"a": 1}]}),
    ({"killCursors": "c", "cursors": [Int64(5)]}, {"cursors": [1, [1], ["x"]], NAMED: NAME}),
    ({"create": "c2"}, {"capped": ["x"], "size": ["x", -1], "max": ["x"], "viewOn": [1], "pipeline": [1, [1]], "validator": [1], "validationLevel": [1, "x"],
        "validationAction": [1, "x"], "collation": [1], "timeseries": [1], "storageEngine": [1], "expireAfterSeconds": ["x"], NAMED: ["$x", *NAME]}),
    ({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}, {"indexes": [1, [1], [], [{"key": 1}]], "commitQuorum": [{}, "x"],
        "ignoreUnknownIndexOptions": ["x"], NAMED: ["$x", *NAME]}),
    ({"dropIndexes": "c", "index": "x"}, {"index": [1, "zz", [1]], NAMED: ["$x", *NAME]}),
    ({"listIndexes": "c"}, {"cursor": [1, {"batchSize": -1}, {"x": 1}], NAMED: NAME}),
    ({"listCollections": 1}, {"filter": [1, *UNKNOWN], "nameOnly": ["x"], "authorizedCollections": ["x"], "cursor": [1, {"batchSize": -1}]}),
    ({"listDatabases": 1, "$db": "admin"}, {"filter": [1, *UNKNOWN], "nameOnly": ["x"], "authorizedDatabases": ["x"]}),
    ({"drop": "nope"}, {NAMED: NAME}), ({"dropDatabase": 1, "$db": "compat_nope"}, {NAMED: ["x", {"a": 1}]}),
    ({"collMod": "c"}, {"index": [1, {"x": 1}], "validator": [1], "validationLevel": [1, "x"], "viewOn": [1], "pipeline": [1], "timeseries": [1], NAMED: ["$x", *NAME]}),
    ({"collStats": "c"}, {"scale": ["x", 0], "verbose": ["x"], NAMED: NAME}),
    ({"renameCollection": "compat.c", "to": "compat.c", "$db": "admin"}, {"to": [1, "x"], "dropTarget": ["x"], "stayTemp": ["x"], NAMED: NAME}),
    ({"validate": "nope"}, {"metadata": [True], NAMED: NAME}), ({"explain": {"find": "c"}}, {"verbosity": [1, "x"], NAMED: ["x", {"a": 1}]}),
    ({"connectionStatus": 1}, {"showPrivileges": ["x"]}), ({"getLog": "zz", "$db": "admin"}, {NAMED: NAME}), ({"killOp": 1, "op": 1, "$db": "admin"}, {"op": ["x"]}),
    *(({name: [{"id": OTHER}]}, {NAMED: ["x", {"a": 1}]}) for name in ("endSessions", "refreshSessions")),
    *(({name: []}, {NAMED: ["x", {"a": 1}]}) for name in ("killSessions", "killAllSessions", "killAllSessionsByPattern")),
    ({"dataSize": "compat.c"}, {NAMED: NAME}), ({"compact": "nope"}, {NAMED: NAME}), ({"filemd5": 1, "root": "fs"}, {"root": [1]}),
    ({"usersInfo": 1}, {"showPrivileges": ["x"], "filter": [1], NAMED: [{"a": 1}]}), ({"rolesInfo": 1}, {"showPrivileges": ["x"], "showBuiltinRoles": ["x"], NAMED: [{"a": 1}]}),
    ({"logRotate": 1, "$db": "admin"}, {NAMED: ["x", {"a": 1}]}), ({"abortTransaction": 1, "$db": "admin"}, {}), ({"commitTransaction": 1, "$db": "admin"}, {}),
    *(({name: 1}, {}) for name in ("ping", "buildInfo", "startSession", "logout", "whatsmyuri", "dropAllUsersFromDatabase", "features")),
    ({"dropAllRolesFromDatabase": 1}, {}), ({"dropUser": "nobody"}, {}), ({"dropRole": "none"}, {}),
    ({"grantRolesToUser": "nobody", "roles": ["read"]}, {"roles": ["read", 1]}),
    ({"grantPrivilegesToRole": "none", "privileges": []}, {"privileges": [1, [1]]}), ({"updateRole": "none", "roles": []}, {"roles": [1]}),
    *(({name: 1, "$db": "admin"}, {}) for name in ("hostInfo", "getCmdLineOpts", "getDefaultRWConcern", "invalidateUserCache", "shardingState", "replSetGetStatus")),
]

# One of so many pairs is sent; the number is coprime to the numbers of errors.
STRIDE = 13


def spoiled(command: dict, *mistakes) -> dict:
    """The command with these fields at its end, or in its beginning."""
    spoiled = dict(command)
    for name, value in mistakes:
        if name == NAMED:
            spoiled[next(iter(spoiled))] = value
        else:
            spoiled.pop(name, None)
            spoiled[name] = value
    return spoiled


def pairs(command: dict, own: dict):
    each = [(name, value) for fields in (own, SHARED) for name, values in fields.items() for value in values]
    both = [(one, other) for one, other in itertools.permutations(each, 2) if one[0] != other[0]]
    return [spoiled(command, *mistakes) for mistakes in both[::STRIDE]]


BLOCKS = [
    *(commands(f"two mistakes: {next(iter(command))}", [{"_id": 1, "a": 1}], *pairs(command, own)) for command, own in OWN),
    commands("two mistakes: no such command", [], {"nosuchcommand": 1, "$db": "a.b"}, {"nosuchcommand": 1, "$db": ""}, {"nosuchcommand": 1, "$db": 1}),
]
