"""The types of every option of other commands than reads and writes: a value of each type, no
value, and an unknown option."""

import datetime

from bson import Binary, Decimal128, Int64, ObjectId

from compat.case import Block

ID = Binary(b"0" * 16, 4)
ADMIN = {"$db": "admin"}
# A value of each type that errors are likely to have, and values out of range.
VALUES = [1, Int64(2**40), 1.5, Decimal128("1"), -1, float("nan"), "x", "", True, False, None, {}, {"a": 1}, [], [1], [{}], ObjectId("5f0000000000000000000001"), datetime.datetime(2020, 2, 29), ID]
# Fields of every command, sent with a strict command and with one that is not strict.
SHARED = ["coordinator", "allowImplicitCollectionCreation", "tracking_info", "$client", "maxTimeMSOpOnly"]
DOCUMENTS = {"c": [{"_id": 1, "a": 1, "x": [1, 2]}, {"_id": 2, "a": 2}]}
INDEXED = [{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}]


def each(command: dict, *options: str, inside: str | None = None, without=(), first: bool = True) -> list[dict]:
    """Returns the command with each option in turn, and its own value, in each form; `inside` is
    the field of the options."""
    name = next(iter(command))
    cases = [{**command, name: value} for value in VALUES if first and not any(value is other for other in without)]
    for option in (*options, "foo"):
        for value in VALUES:
            cases.append({**command, inside: {**command[inside], option: value}} if inside else {**command, option: value})
        cases += [{key: value for key, value in command.items() if key != option}] if option in command else []
    return cases


def block(family: str, *cases: list[dict], setup=(), **options) -> Block:
    return Block(f"options: {family}", [case for some in cases for case in some], DOCUMENTS, list(setup), **options)


BLOCKS = [
    block("any command", *(each(command, *SHARED, first=False) for command in ({"ping": 1}, {"whatsmyuri": 1}, {"count": "c"}))),
    block(
        "read preferences",
        *(each({"find": "c", "filter": {"_id": 1}, "$readPreference": {"mode": mode}}, "mode", "tags", "hedge", "maxStalenessSeconds", inside="$readPreference", first=False) for mode in ("primary", "nearest")),
        [{"count": "c", "$readPreference": {"mode": mode, **part}} for mode in ("primary", "secondary") for part in (
            {"tags": [{"a": "b"}]}, {"hedge": {"enabled": True}}, {"hedge": {"enabled": False}}, {"hedge": {"enabled": 1}}, {"maxStalenessSeconds": 90}, {"maxStalenessSeconds": 89},
            {"hedge": {"enabled": True}, "maxStalenessSeconds": 1, "tags": 1},
        )],
    ),
    block(
        "write concerns",
        # The client expects no answer to what need not be acknowledged.
        [case for case in each({"insert": "c", "documents": [{"_id": 9}], "writeConcern": {"w": 1}}, "w", "j", "fsync", "wtimeout", "provenance", inside="writeConcern", first=False)
            if case["writeConcern"]["w"] == case["writeConcern"]["w"] != 0],
        [{"insert": "c", "documents": [{"_id": 9}], "writeConcern": concern} for concern in (
            {"w": {"a": "x"}}, {"w": {"a": 1, "b": None}}, {"w": 1, "provenance": "clientSupplied"}, {"w": "majority", "j": False}, {"j": True, "fsync": True},
        )],
        writes=True,
    ),
    block(
        "sessions", each({"endSessions": []}), each({"refreshSessions": []}), each({"killSessions": [{"id": ID}]}), each({"killAllSessionsByPattern": [{"users": []}]}),
        each({"killAllSessions": []}), [{"killAllSessions": [user]} for user in ({"user": "a"}, {"db": "b"}, {"user": "a", "db": "b"}, {"user": 1, "db": "b"}, {"user": "a", "db": "b", "x": 1})],
        each({"abortTransaction": 1, **ADMIN}), each({"commitTransaction": 1, **ADMIN}), each({"logout": 1}),
    ),
    block(
        "users and roles", each({"usersInfo": 1}, "showCredentials", "showPrivileges", "showCustomData", "showAuthenticationRestrictions", "filter"),
        # Built-in roles are listed by the servers that have them.
        [case for case in each({"rolesInfo": 1}, "showPrivileges", "showBuiltinRoles", "showAuthenticationRestrictions") if not case.get("showBuiltinRoles") or isinstance(case["showBuiltinRoles"], (str, dict, list))],
        [{command: name} for command in ("usersInfo", "rolesInfo") for name in (
            {"user": "x", "db": "y"}, {"role": "x", "db": "y"}, {"user": "x"}, {"role": "x"}, {"user": 1, "db": "y"}, {"role": 1, "db": "y"}, {"forAllDBs": True}, ["x", {"user": "a", "db": "b"}],
            ["x", {"role": "a", "db": "b"}],
        )],
        each({"connectionStatus": 1}, "showPrivileges"), each({"dropAllUsersFromDatabase": 1}), each({"invalidateUserCache": 1, **ADMIN}),
    ),
    block(
        "the server", each({"getDefaultRWConcern": 1, **ADMIN}, "inMemory"),
        each({"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}, **ADMIN}, "defaultReadConcern", "defaultWriteConcern"),
        [{"logRotate": value, **ADMIN} for value in (None, {}, [], "nope", ID)], [{"getLog": value, **ADMIN} for value in (1, None, {}, "nope")],
        [{command: 1, "foo": 1, **ADMIN} for command in ("hostInfo", "features", "getCmdLineOpts", "getLog", "getFreeMonitoringStatus")],
        each({"killOp": 1, "op": 7, **ADMIN}, "op"), each({"setFeatureCompatibilityVersion": "6.0", **ADMIN}, "downgradeOnDiskChanges", "fromConfigServer"),
    ),
    block(
        "estimated sizes", each({"dataSize": "compat.c"}, "estimate"), setup=INDEXED, only=("embedded", "MariaDB reckons by the length of rows"),
    ),
    block(
        "figures", each({"dataSize": "compat.c"}, "keyPattern", "min", "max", "maxSize", "maxObjects"),
        each({"dataSize": "compat.c", "keyPattern": {"a": 1}, "min": {"a": 1}, "max": {"a": 2}}, "min", "max", "maxObjects", first=False),
        [{"dataSize": "compat.c", **bounds} for bounds in (
            {"min": {"_id": 2}, "max": {"_id": 2}}, {"min": {"_id": 3}, "max": {"_id": 2}}, {"min": {"_id": 1}, "max": {"a": 9}}, {"min": {"_id": 1}, "max": {"_id": 9}, "maxSize": 40},
        )],
        [case for case in each({"collStats": "nothing"}, "scale", "waitForLock", "numericOnly") if case.get("scale") == case.get("scale")],
        [{"dbStats": 1, "scale": scale} for scale in ("x", {}, [], -1, 0, 0.5, Int64(2**40))], [{"dbStats": name} for name in ("x", "")],
        [{"validate": "c", **dict.fromkeys(pair, value)} for value in (True, "x") for pair in (
            ("metadata",), ("metadata", "full"), ("metadata", "repair"), ("metadata", "checkBSONConformance"), ("background", "full"), ("background", "repair"), ("background", "enforceFastCount"),
            ("enforceFastCount", "repair"),
        )],
        setup=INDEXED,
    ),
    block(
        "plans and indexes", each({"planCacheClear": "c"}, "query", "sort", "projection", "collation"), each({"planCacheClearFilters": "c"}, "query", "sort", "projection", "collation"),
        each({"planCacheListFilters": "c"}), each({"getMore": Int64(5), "collection": "c"}, "batchSize", "term", "lastKnownCommittedOpTime"),
        each({"listIndexes": "nothing"}, "cursor", first=False), each({"listCollections": 1, "filter": {"name": "c"}, "nameOnly": True}, "nameOnly", "includePendingDrops"),
        each({"killCursors": "c", "cursors": [Int64(5)]}, "cursors"),
        # Without a collection there is nothing to be done.
        each({"mapReduce": "nothing", "map": "x", "reduce": "x", "out": {"inline": 1}}, "map", "reduce", "query", "sort", "limit", "finalize", "scope", "jsMode", "verbose", "bypassDocumentValidation",
            "collation", first=False),
    ),
    block(
        "stages of the server",
        *([{"aggregate": of, "pipeline": [{stage: options}, {"$match": {"never": 1}}], "cursor": {}, "$db": database} for options in (
            *VALUES, {"allUsers": True}, {"allUsers": 1}, {"users": []}, {"users": [{"user": "a", "db": "b"}]}, {"users": 1}, {"users": [{"user": "a"}]},
            {"allUsers": True, "users": [{"user": "a", "db": "b"}]},
        )] for stage, of, database in (("$listSessions", "system.sessions", "config"), ("$listLocalSessions", 1, "admin"), ("$indexStats", "c", "compat"))),
    ),
    Block(
        "options: kinds of offsets",
        [{"aggregate": "one", "pipeline": [{"$project": {"r": {"$dateFromString": {"dateString": f"2020-01-01 {offset}", "format": f"%Y-%m-%d {letter}"}}}}], "cursor": {}}
            for letter in ("%z", "%Z") for offset in (
                "+1", "+12", "+123", "-930", "+1234", "+1:3", "+1:30", "+01:3", "+01:30", "+12345", "+", "+:1", "+1:", "+99", "GMT+1", "GMT-0130", "UTC+1", "UTC", "Z", "+60", "-060", "+0060", "60",
            )]
        + [{"aggregate": "one", "pipeline": [{"$project": {"r": {"$dateTrunc": {"date": datetime.datetime(2020, 5, 5), "unit": unit, "binSize": Int64(size)}}}}], "cursor": {}}
            for unit in ("day", "hour", "second", "millisecond") for size in (10**11, 10**11 + 1, 10**12, 2**62)]
        + [{"aggregate": "one", "pipeline": [{"$project": {"r": {"$convert": {"input": text, "to": to}}}}], "cursor": {}}
            for text in ("nan(1)", "nan(abc)", "nan()", "nan(", "nan(+)", "nan") for to in ("double", "decimal")],
        {"one": [{"_id": 1}]},
    ),
]  # fmt: skip
