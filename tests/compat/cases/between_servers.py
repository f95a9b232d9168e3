"""Fields that MongoDB's servers add to commands among themselves, sent by a client: valid or not,
to a standalone server."""

from datetime import datetime

from bson import Binary, Int64, Timestamp

from compat.case import commands

TIME, NOW, OTHER = Timestamp(1, 1), datetime(2024, 1, 1), Binary(b"0" * 16, 4)
DOCUMENTS = [{"_id": 1, "x": 1}]
INSERT = {"insert": "c", "documents": [{"_id": 9}]}
UPDATE = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"z": 1}}}]}
DELETE = {"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}]}
MODIFY = {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"z": 1}}}
FIND, AGGREGATE, COUNT = {"find": "c"}, {"aggregate": "c", "pipeline": [], "cursor": {}}, {"count": "c"}
WRITES = [INSERT, UPDATE, DELETE, MODIFY]
OTHERS = [FIND, AGGREGATE, COUNT, {"distinct": "c", "key": "x"}, {"listIndexes": "c"}, {"ping": 1}, {"collMod": "c"}, {"collStats": "nope"},
    {"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}, {"getMore": Int64(5), "collection": "c"}]
CONSTANTS = {"localNow": NOW, "clusterTime": TIME}
FIELDS = {
    "stmtIds": [1, None, [], [0, 1], [None], [1.0], ["a"], [0]], "stmtId": [0, "x", [1], None, Int64(1)],
    "encryptionInformation": [1, None, {}, {"schema": 1}, {"type": 1}, {"type": 1, "schema": {}}, {"schema": {"compat.c": {}}}, {"x": 1}],
    "isTimeseriesNamespace": [True, False, None, 1],
    "runtimeConstants": [1, None, {}, {"localNow": 1}, {"localNow": NOW}, {"localNow": NOW, "clusterTime": 1}, CONSTANTS, {**CONSTANTS, "x": 1},
        {**CONSTANTS, "jsScope": 1}, {**CONSTANTS, "jsScope": {}}, {**CONSTANTS, "isMapReduce": 1}, {**CONSTANTS, "userRoles": []}],
    "$client": [1, None, {}, {"driver": 1}, {"driver": {}}, {"driver": {"name": "a"}}, {"driver": {"name": "a", "version": "1"}},
        {"driver": {"name": "a", "version": "1"}, "os": 1}, {"driver": {"name": "a", "version": "1"}, "os": {}},
        {"driver": {"name": "a", "version": "1"}, "os": {"type": "x"}}, {"driver": {"name": 1, "version": "1"}, "os": {"type": "x"}}],
    "$audit": [None, {}, {"x": 1}, {"$impersonatedUsers": []}], "mayBypassWriteBlocking": [1, None, "x"], "$tenant": [1, None], "$maxTimeMS": [1],
    "allowSpeculativeMajorityRead": [True, 1, None], "term": [1, Int64(1), "x", None, True],
    "exchange": [1, None, {}, {"policy": "x"}, {"policy": "roundrobin"}, {"policy": "roundrobin", "consumers": 1},
        {"policy": "roundrobin", "consumers": "x"}, {"policy": 1, "consumers": 1}, {"policy": "roundrobin", "consumers": 1, "x": 1}],
    "needsMerge": [True, False, 1, None], "fromMongos": [True, 1, None], "isMapReduceCommand": [True, 1, None], "requestReshardingResumeToken": [True, 1],
}
CONCERNS = [{"afterClusterTime": value} for value in (TIME, Timestamp(0, 0), None, 1)] + [
    {"afterOpTime": value} for value in ({}, 1, None, {"ts": TIME}, {"ts": TIME, "t": Int64(1)})] + [
    {"provenance": value} for value in (1, "x", None, "clientSupplied", "implicitDefault", "customDefault")] + [
    {"level": level, "afterClusterTime": TIME} for level in ("local", "majority", "linearizable", "available")] + [
    {"atClusterTime": TIME, "afterClusterTime": TIME}, {"afterClusterTime": TIME, "afterOpTime": {"ts": TIME, "t": Int64(1)}},
    {"allowTransactionTableSnapshot": True}]
SOURCES = [{"$collStats": {"count": {}}}, {"$currentOp": {}}, {"$listSessions": {}}, {"$listLocalSessions": {}}, {"$planCacheStats": {}},
    {"$indexStats": {}}, {"$listCatalog": {}}, {"$changeStream": {}}]
INTERNAL = ["AddPostImage", "AddPreImage", "CheckInvalidate", "CheckResumability", "CheckTopologyChange", "HandleTopologyChange", "OplogMatch",
    "Transform", "UnwindTransaction"]


def within(stage: dict) -> list[dict]:
    stages = [[{"$lookup": {"from": name, "pipeline": [stage, {"$project": {"name": 1, "count": 1}}], "as": "r"}}] for name in ("c", "v", "w", "nope")]
    stages += [[{"$unionWith": {"coll": name, "pipeline": [stage, {"$project": {"name": 1, "count": 1}}]}}] for name in ("c", "v", "w", "nope")]
    stages += [[{"$lookup": {"from": "c", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [stage, {"$project": {"name": 1}}]}}], "as": "r"}}]]
    stages += [[{"$facet": {"r": [stage]}}], [{"$unionWith": {"coll": "c", "pipeline": [{"$match": {}}, stage]}}]]
    return [{"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in stages]


BLOCKS = [
    *(commands(f"between servers: {name}", DOCUMENTS, *({**command, name: value} for value in values for command in [*WRITES, *OTHERS]), writes=True)
      for name, values in FIELDS.items()),
    commands("between servers: readConcern", DOCUMENTS, *({**command, "readConcern": value} for value in CONCERNS for command in [*WRITES, *OTHERS]),
        writes=True, messages=True),
    commands("between servers: collectionUUID of writes", DOCUMENTS, *({**command, "ordered": ordered, "collectionUUID": value}
        for value in (OTHER, 1, None) for ordered in (True, False) for command in (
            INSERT, UPDATE, DELETE, {"insert": "c", "documents": [{"_id": 5}, {"_id": 6}]}, {"insert": "c", "documents": [{"_id": []}]},
            {"insert": "nope", "documents": [{"_id": 5}]})), writes=True, messages=True),
    commands("between servers: stages", DOCUMENTS, *(case for stage in SOURCES for case in within(stage)),
        *({"aggregate": name, "pipeline": [stage, {"$project": {"name": 1}}], "cursor": {}} for stage in SOURCES[2:] for name in ("nope", "c")),
        *({"aggregate": "c", "pipeline": [{f"$_internalChangeStream{name}": value}], "cursor": {}} for name in INTERNAL for value in ({}, 1)),
        {"aggregate": "c", "pipeline": [{"$_internalReshardingOwnershipMatch": {}}], "cursor": {}},
        setup=[{"create": "v", "viewOn": "c"}, {"create": "w", "viewOn": "c", "pipeline": [{"$match": {}}]}]),
]
