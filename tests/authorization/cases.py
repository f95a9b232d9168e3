"""The commands of the authorization matrix.

Each case is a command on one database. A permitted command has no effect that another case could
notice: it reads, fails when it runs, or changes nothing.
"""

from bson import Int64, SON, Timestamp
from bson.binary import Binary

UUID_OF_NOTHING = Binary(bytes(range(16)), 4)
SESSION = SON(id=UUID_OF_NOTHING)
EMPTY_OP = {"op": "n", "ns": "", "o": {"msg": "x"}, "ts": Timestamp(1, 1), "t": Int64(1), "v": Int64(2)}
PRIVILEGES = [SON(resource=SON(db="own", collection=""), actions=["find"])]


def without_arguments(*names: str) -> dict:
    return {name: lambda db, name=name: SON([(name, 1)]) for name in names}


def aggregate(*stages: dict, collection: str | int = "c", **fields):
    return lambda db: SON(aggregate=collection, pipeline=list(stages), cursor={}, **fields)


def explained(command):
    return lambda db: SON(explain=command(db), verbosity="queryPlanner")


def find(collection: str, **fields):
    return lambda db: SON(find=collection, filter={}, **fields)


def insert(collection: str, **fields):
    """Inserts a document that exists."""
    return lambda db: SON(insert=collection, documents=[{"_id": 1}], **fields)


def update(collection: str, **fields):
    return lambda db: SON(update=collection, updates=[SON(q={"_id": "none"}, u={"$set": {"a": 1}}, **fields)])


def delete(collection: str):
    return lambda db: SON(delete=collection, deletes=[SON(q={"_id": "none"}, limit=1)])


def apply_ops(*operations: dict, **fields):
    return lambda db: SON(applyOps=[{key: value(db) if callable(value) else value for key, value in operation.items()}
                                    for operation in operations], **fields)


READS = {
    "find": find("c"),
    "find by _id": lambda db: SON(find="c", filter={"_id": 1}, limit=1, singleBatch=True),
    "find on a view": find("v"),
    "find on no collection": find("absent"),
    "find on system.views": find("system.views"),
    "find on system.profile": find("system.profile"),
    "find on system.js": find("system.js"),
    "find on system.users": find("system.users"),
    "find on system.roles": find("system.roles"),
    "find on system.version": find("system.version"),
    "find on system.buckets": find("system.buckets.t"),
    "find on a time-series collection": find("t"),
    "find by UUID": lambda db: SON(find=UUID_OF_NOTHING, filter={}),
    "find with $where": lambda db: SON(find="c", filter={"$expr": {"$eq": ["$a", 1]}}),
    "find with runtimeConstants": find("c", runtimeConstants=SON(localNow=0, clusterTime=Timestamp(0, 0))),
    "find with term": find("c", term=Int64(1)),
    "find with help": find("c", help=True),
    "find with readOnce": find("c", readOnce=True),
    "find with a session": find("c", lsid=SESSION),
    "count": lambda db: SON(count="c", query={}),
    "count on a view": lambda db: SON(count="v", query={}),
    "count by UUID": lambda db: SON(count=UUID_OF_NOTHING),
    "distinct": lambda db: SON(distinct="c", key="a"),
    "distinct on a view": lambda db: SON(distinct="v", key="a"),
    "getMore": lambda db: SON(getMore=Int64(12345), collection="c"),
    "getMore with term": lambda db: SON(getMore=Int64(12345), collection="c", term=Int64(1)),
    "killCursors": lambda db: SON(killCursors="c", cursors=[Int64(12345)]),
    "killCursors of lists": lambda db: SON(killCursors="$cmd.listCollections", cursors=[Int64(12345)]),
    "mapReduce": lambda db: SON(mapReduce="c", map="function(){}", reduce="function(){}", out={"inline": 1}),
    "mapReduce into a collection": lambda db: SON(mapReduce="c", map="function(){", reduce="function(){}", out="d"),
    "mapReduce merging": lambda db: SON(mapReduce="c", map="function(){", reduce="function(){}", out={"merge": "d"}),
    "mapReduce into another database": lambda db: SON(
        mapReduce="c", map="function(){", reduce="function(){}", out=SON(merge="d", db="other")),
    "filemd5": lambda db: SON(filemd5=1, root="c"),
    "dataSize": lambda db: SON(dataSize=f"{db}.c"),
    "dataSize of another database": lambda db: SON(dataSize="other.c"),
}

PIPELINES = {
    "aggregate": aggregate(),
    "aggregate on a view": aggregate(collection="v"),
    "aggregate without a collection": aggregate(SON({"$documents": [{"a": 1}]}), collection=1),
    "aggregate with explain": lambda db: SON(aggregate="c", pipeline=[], explain=True),
    "aggregate with bypassDocumentValidation": aggregate(bypassDocumentValidation=True),
    "$match": aggregate({"$match": {"a": 1}}),
    "$addFields": aggregate({"$addFields": {"x": 1}}),
    "$bucket": aggregate({"$bucket": {"groupBy": "$a", "boundaries": [0, 1], "default": 2}}),
    "$bucketAuto": aggregate({"$bucketAuto": {"groupBy": "$a", "buckets": 1}}),
    "$count": aggregate({"$count": "x"}),
    "$densify": aggregate({"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}}),
    "$fill": aggregate({"$fill": {"output": {"a": {"value": 1}}}}),
    "$geoNear": aggregate({"$geoNear": {"near": [0, 0], "distanceField": "d"}}),
    "$group": aggregate({"$group": {"_id": 1}}),
    "$limit": aggregate({"$limit": 1}),
    "$project": aggregate({"$project": {"a": 1}}),
    "$redact": aggregate({"$redact": "$$KEEP"}),
    "$replaceRoot": aggregate({"$replaceRoot": {"newRoot": "$$ROOT"}}),
    "$replaceWith": aggregate({"$replaceWith": "$$ROOT"}),
    "$sample": aggregate({"$sample": {"size": 1}}),
    "$set": aggregate({"$set": {"x": 1}}),
    "$setWindowFields": aggregate({"$setWindowFields": {"sortBy": {"a": 1}, "output": {"n": {"$sum": 1}}}}),
    "$skip": aggregate({"$skip": 1}),
    "$sort": aggregate({"$sort": {"a": 1}}),
    "$sortByCount": aggregate({"$sortByCount": "$a"}),
    "$unset": aggregate({"$unset": "a"}),
    "$unwind": aggregate({"$unwind": "$a"}),
    "$facet": aggregate({"$facet": {"one": [{"$match": {"a": 1}}]}}),
    "$lookup": aggregate({"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}),
    "$lookup of a system collection": aggregate(
        {"$lookup": {"from": "system.views", "localField": "a", "foreignField": "a", "as": "x"}}),
    "$lookup with a pipeline": aggregate({"$lookup": {"from": "d", "pipeline": [{"$match": {}}], "as": "x"}}),
    "$lookup of $collStats": aggregate(
        {"$lookup": {"from": "d", "pipeline": [{"$collStats": {"count": {}}}], "as": "x"}}),
    "$lookup of $indexStats": aggregate({"$lookup": {"from": "d", "pipeline": [{"$indexStats": {}}], "as": "x"}}),
    "$lookup of $lookup": aggregate({"$lookup": {"from": "d", "as": "x", "pipeline": [
        {"$lookup": {"from": "e", "localField": "a", "foreignField": "a", "as": "y"}}]}}),
    "$lookup of $documents": aggregate({"$lookup": {"pipeline": [{"$documents": [{"a": 1}]}], "as": "x"}}),
    "$lookup in $facet": aggregate({"$facet": {"one": [
        {"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}]}}),
    "$lookup of another database": aggregate(
        {"$lookup": {"from": {"db": "local", "coll": "oplog.rs"}, "pipeline": [], "as": "x"}}),
    "$graphLookup": aggregate({"$graphLookup": {
        "from": "d", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "x"}}),
    "$unionWith": aggregate({"$unionWith": "d"}),
    "$unionWith with a pipeline": aggregate({"$unionWith": {"coll": "d", "pipeline": [{"$unionWith": "e"}]}}),
    "$unionWith of $collStats": aggregate({"$unionWith": {"coll": "d", "pipeline": [{"$collStats": {"count": {}}}]}}),
    "$unionWith of $documents": aggregate({"$unionWith": {"pipeline": [{"$documents": []}]}}),
    "$out": aggregate({"$match": {"$expr": {"$divide": [1, 0]}}}, {"$out": "absent"}),
    "$out into another database": aggregate(
        {"$match": {"$expr": {"$divide": [1, 0]}}}, {"$out": {"db": "other", "coll": "absent"}}),
    "$out with bypassDocumentValidation": aggregate(
        {"$match": {"$expr": {"$divide": [1, 0]}}}, {"$out": "absent"}, bypassDocumentValidation=True),
    "$merge": aggregate({"$match": {"a": "none"}}, {"$merge": "c"}),
    "$merge that replaces": aggregate(
        {"$match": {"a": "none"}}, {"$merge": {"into": "c", "whenMatched": "replace", "whenNotMatched": "discard"}}),
    "$merge that fails": aggregate(
        {"$match": {"a": "none"}}, {"$merge": {"into": "c", "whenMatched": "fail", "whenNotMatched": "insert"}}),
    "$merge that keeps": aggregate(
        {"$match": {"a": "none"}}, {"$merge": {"into": "c", "whenMatched": "keepExisting"}}),
    "$merge by a pipeline": aggregate({"$match": {"a": "none"}}, {"$merge": {
        "into": "c", "whenMatched": [{"$set": {"a": 1}}], "whenNotMatched": "fail"}}),
    "$merge into another database": aggregate(
        {"$match": {"a": "none"}}, {"$merge": {"into": {"db": "other", "coll": "c"}}}),
    "$merge with bypassDocumentValidation": aggregate(
        {"$match": {"a": "none"}}, {"$merge": "c"}, bypassDocumentValidation=True),
    "$collStats": aggregate({"$collStats": {"count": {}}}),
    "$collStats on a view": aggregate({"$collStats": {"count": {}}}, collection="v"),
    "$indexStats": aggregate({"$indexStats": {}}),
    "$planCacheStats": aggregate({"$planCacheStats": {}}),
    "$listCatalog": aggregate({"$listCatalog": {}}),
    "$listCatalog of all": aggregate({"$listCatalog": {}}, collection=1),
    "$changeStream": aggregate({"$changeStream": {}}),
    "$changeStream of a database": aggregate({"$changeStream": {}}, collection=1),
    "$changeStream of all": aggregate({"$changeStream": {"allChangesForCluster": True}}, collection=1),
    "$currentOp": aggregate({"$currentOp": {}}, collection=1),
    "$currentOp of all users": aggregate({"$currentOp": {"allUsers": True}}, collection=1),
    "$currentOp with idle sessions": aggregate({"$currentOp": {"idleSessions": True}}, collection=1),
    "$listSessions": aggregate({"$listSessions": {}}, collection="system.sessions"),
    "$listSessions of all users": aggregate({"$listSessions": {"allUsers": True}}, collection="system.sessions"),
    "$listSessions of a user": aggregate(
        {"$listSessions": {"users": [{"user": "none", "db": "own"}]}}, collection="system.sessions"),
    "$listLocalSessions": aggregate({"$listLocalSessions": {}}, collection=1),
    "$listLocalSessions of all users": aggregate({"$listLocalSessions": {"allUsers": True}}, collection=1),
    "$listLocalSessions of a user": aggregate(
        {"$listLocalSessions": {"users": [{"user": "none", "db": "own"}]}}, collection=1),
    "$listSessions of oneself": aggregate(
        {"$listSessions": {"users": [{"user": "self", "db": "own"}]}}, collection="system.sessions"),
    "$listLocalSessions of oneself": aggregate(
        {"$listLocalSessions": {"users": [{"user": "self", "db": "own"}]}}, collection=1),
    "$shardedDataDistribution": aggregate({"$shardedDataDistribution": {}}, collection=1),
    "$operationMetrics": aggregate({"$operationMetrics": {}}, collection=1),
    "$search": aggregate({"$search": {}}),
    "$queue": aggregate({"$queue": []}, collection=1),
    "$backupCursor": aggregate({"$backupCursor": {}}, collection=1),
    "$_internalInhibitOptimization": aggregate({"$_internalInhibitOptimization": {}}),
    "$_internalUnpackBucket": aggregate(
        {"$_internalUnpackBucket": {"timeField": "t", "bucketMaxSpanSeconds": 3600, "exclude": []}}),
    "$_internalSplitPipeline": aggregate({"$_internalSplitPipeline": {"mergeType": "primary"}}),
    "$_unpackBucket": aggregate({"$_unpackBucket": {"timeField": "t"}}),
    "$_internalConvertBucketIndexStats": aggregate({"$_internalConvertBucketIndexStats": {"timeField": "t"}}),
    "aggregate as a router's": aggregate(fromMongos=True),
    "aggregate of a part": aggregate(needsMerge=True, fromMongos=True),
    "aggregate with runtimeConstants": aggregate(
        runtimeConstants=SON(localNow=0, clusterTime=Timestamp(0, 0))),
    "aggregate with exchange": aggregate(exchange=SON(policy="roundrobin", consumers=2)),
    "aggregate on system.views": aggregate(collection="system.views"),
    "aggregate with $$USER_ROLES": aggregate({"$project": {"x": "$$USER_ROLES"}}),
}

WRITES = {
    "insert": insert("c"),
    "insert with bypassDocumentValidation": insert("c", bypassDocumentValidation=True),
    "insert with a session": insert("c", lsid=SESSION),
    "insert into system.views": insert("system.views"),
    "insert into system.js": lambda db: SON(insert="system.js", documents=[{"_id": {"$bad": 1}}]),
    "insert into system.profile": insert("system.profile"),
    "insert into system.users": lambda db: SON(insert="system.users", documents=[{"_id": {"$bad": 1}}]),
    "insert into system.roles": lambda db: SON(insert="system.roles", documents=[{"_id": {"$bad": 1}}]),
    "insert into buckets": insert("system.buckets.t"),
    "insert into a view": insert("v"),
    "update": update("c"),
    "update that upserts": lambda db: SON(update="c", updates=[SON(q={"_id": 1}, u={"$set": {"a": 1}}, upsert=True)]),
    "update with bypassDocumentValidation": lambda db: SON(
        update="c", updates=[SON(q={"_id": "none"}, u={"$set": {"a": 1}})], bypassDocumentValidation=True),
    "update of two kinds": lambda db: SON(update="c", updates=[
        SON(q={"_id": "none"}, u={"$set": {"a": 1}}), SON(q={"_id": 1}, u={"$set": {"a": 1}}, upsert=True)]),
    "update of system.views": update("system.views"),
    "update of system.users": update("system.users"),
    "delete": delete("c"),
    "delete from system.profile": delete("system.profile"),
    "delete from system.users": delete("system.users"),
    "delete from system.views": delete("system.views"),
    "findAndModify": lambda db: SON(findAndModify="c", query={"_id": "none"}, update={"$set": {"a": 1}}),
    "findAndModify that upserts": lambda db: SON(
        findAndModify="c", query={"_id": 1}, update={"$set": {"a": 1}}, upsert=True),
    "findAndModify that removes": lambda db: SON(findAndModify="c", query={"_id": "none"}, remove=True),
    "findAndModify with bypassDocumentValidation": lambda db: SON(
        findAndModify="c", query={"_id": "none"}, update={"$set": {"a": 1}}, bypassDocumentValidation=True),
}

CATALOG = {
    "collMod": lambda db: SON(collMod="c"),
    "collMod of a view": lambda db: SON(collMod="v", viewOn="c", pipeline=[]),
    "collMod of a view on a view": lambda db: SON(
        collMod="v", viewOn="c", pipeline=[{"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}]),
    "collMod of system.js": lambda db: SON(collMod="system.js"),
    "collStats": lambda db: SON(collStats="c"),
    "collStats of a system collection": lambda db: SON(collStats="system.views"),
    "compact": lambda db: SON(compact="absent"),
    "convertToCapped": lambda db: SON(convertToCapped="absent", size=4096),
    "cloneCollectionAsCapped": lambda db: SON(cloneCollectionAsCapped="absent", toCollection="absent2", size=4096),
    "create": lambda db: SON(create="c"),
    "create a view": lambda db: SON(create="v", viewOn="c", pipeline=[]),
    "create a view with $lookup": lambda db: SON(create="v", viewOn="c", pipeline=[
        {"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}]),
    "create capped": lambda db: SON(create="c", capped=True, size=4096),
    "create with a validator": lambda db: SON(create="c", validator={"a": 1}),
    "create system.js": lambda db: SON(create="system.js", capped=True),
    "create time series": lambda db: SON(create="t", timeseries={"timeField": "t"}),
    "create system.users": lambda db: SON(create="system.users", capped=True),
    "createIndexes": lambda db: SON(createIndexes="c", indexes=[SON(key={"a": 1}, name="a_1")]),
    "createIndexes on a system collection": lambda db: SON(
        createIndexes="system.profile", indexes=[SON(key={"a": "bad"}, name="x")]),
    "dbHash": lambda db: SON(dbHash=1),
    "dbStats": lambda db: SON(dbStats=1),
    "drop": lambda db: SON(drop="absent"),
    "drop system.profile": lambda db: SON(drop="system.profile"),
    "dropDatabase": lambda db: SON(dropDatabase=2),
    "dropIndexes": lambda db: SON(dropIndexes="c", index="absent"),
    "listCollections": lambda db: SON(listCollections=1, nameOnly=False),
    "listCollections nameOnly": lambda db: SON(listCollections=1, nameOnly=True),
    "listCollections authorized": lambda db: SON(listCollections=1, authorizedCollections=True),
    "listCollections authorized nameOnly": lambda db: SON(listCollections=1, nameOnly=True, authorizedCollections=True),
    "listCollections filtered by name": lambda db: SON(listCollections=1, filter={"name": "c"}, nameOnly=True),
    "listDatabases": lambda db: SON(listDatabases=1),
    "listDatabases nameOnly": lambda db: SON(listDatabases=1, nameOnly=True),
    "listDatabases authorized": lambda db: SON(listDatabases=1, authorizedDatabases=True),
    "listDatabases not authorized": lambda db: SON(listDatabases=1, authorizedDatabases=False),
    "listIndexes": lambda db: SON(listIndexes="c"),
    "listIndexes by UUID": lambda db: SON(listIndexes=UUID_OF_NOTHING),
    "listIndexes of a system collection": lambda db: SON(listIndexes="system.views"),
    "planCacheClear": lambda db: SON(planCacheClear="c"),
    "planCacheClearFilters": lambda db: SON(planCacheClearFilters="c"),
    "planCacheListFilters": lambda db: SON(planCacheListFilters="c"),
    "planCacheSetFilter": lambda db: SON(planCacheSetFilter="c", query={"a": 1}, indexes=[]),
    "reIndex": lambda db: SON(reIndex="absent"),
    "renameCollection": lambda db: SON(renameCollection=f"{db}.absent", to=f"{db}.absent2"),
    "renameCollection that drops": lambda db: SON(
        renameCollection=f"{db}.absent", to=f"{db}.absent2", dropTarget=True),
    "renameCollection in own": lambda db: SON(renameCollection="own.absent", to="own.absent2"),
    "renameCollection in own that drops": lambda db: SON(
        renameCollection="own.absent", to="own.absent2", dropTarget=True),
    "renameCollection to another database": lambda db: SON(renameCollection="own.absent", to="other.absent2"),
    "renameCollection from another database": lambda db: SON(renameCollection="other.absent", to="own.absent2"),
    "renameCollection to another that drops": lambda db: SON(
        renameCollection="own.absent", to="other.absent2", dropTarget=True),
    "renameCollection of system.js": lambda db: SON(renameCollection="own.system.js", to="own.absent2"),
    "splitVector": lambda db: SON(splitVector=f"{db}.c", keyPattern={"absent": 1}, maxChunkSizeBytes=1000),
    "splitVector of another database": lambda db: SON(
        splitVector="other.c", keyPattern={"absent": 1}, maxChunkSizeBytes=1000),
    "validate": lambda db: SON(validate="c"),
    "validateDBMetadata": lambda db: SON(validateDBMetadata=1, apiParameters={"version": "1"}),
    "validateDBMetadata of a database": lambda db: SON(
        validateDBMetadata=1, db="own", apiParameters={"version": "1"}),
    "validateDBMetadata of a collection": lambda db: SON(
        validateDBMetadata=1, db="own", collection="c", apiParameters={"version": "1"}),
    "profile": lambda db: SON(profile=7),
    "profile read": lambda db: SON(profile=-1),
    "profile slowms": lambda db: SON(profile=-1, slowms=100),
    "setIndexCommitQuorum": lambda db: SON(setIndexCommitQuorum="c", indexNames=["a_1"], commitQuorum=1),
    "compactStructuredEncryptionData": lambda db: SON(compactStructuredEncryptionData="c", compactionTokens={}),
    "autoSplitVector": lambda db: SON(
        autoSplitVector="c", keyPattern={"a": 1}, min={"a": 0}, max={"a": 1}, maxChunkSizeBytes=1000000),
}

EXPLAIN = {
    "explain find": explained(READS["find"]),
    "explain find on system.views": explained(READS["find on system.views"]),
    "explain count": explained(READS["count"]),
    "explain distinct": explained(READS["distinct"]),
    "explain aggregate": explained(PIPELINES["aggregate"]),
    "explain $lookup": explained(PIPELINES["$lookup"]),
    "explain $out": explained(PIPELINES["$out"]),
    "explain $merge": explained(PIPELINES["$merge"]),
    "explain $collStats": explained(PIPELINES["$collStats"]),
    "explain $currentOp": explained(PIPELINES["$currentOp of all users"]),
    "explain update": explained(WRITES["update"]),
    "explain update that upserts": explained(WRITES["update that upserts"]),
    "explain delete": explained(WRITES["delete"]),
    "explain findAndModify": explained(WRITES["findAndModify"]),
    "explain findAndModify that removes": explained(WRITES["findAndModify that removes"]),
    "explain mapReduce": explained(READS["mapReduce"]),
    "explain insert": explained(WRITES["insert"]),
    "explain nonsense": lambda db: SON(explain=SON(nonsense=1)),
    "explain on another database": lambda db: SON(explain={"find": "c", "$db": "other"}),
}

SESSIONS = {
    "abortTransaction": lambda db: SON(abortTransaction=1, lsid=SESSION, txnNumber=Int64(1), autocommit=False),
    "commitTransaction": lambda db: SON(commitTransaction=1, lsid=SESSION, txnNumber=Int64(1), autocommit=False),
    "endSessions": lambda db: SON(endSessions=[SESSION]),
    "refreshSessions": lambda db: SON(refreshSessions=[SESSION]),
    "startSession": lambda db: SON(startSession=1),
    "killSessions": lambda db: SON(killSessions=[SESSION]),
    "killSessions of all": lambda db: SON(killSessions=[SON(id=UUID_OF_NOTHING, uid=Binary(bytes(32)))]),
    "killAllSessions": lambda db: SON(killAllSessions=[SON(user="none", db="own")]),
    "killAllSessionsByPattern": lambda db: SON(killAllSessionsByPattern=[SON(lsid=SON(id=UUID_OF_NOTHING, uid=Binary(bytes(32))))]),
    "killAllSessionsByPattern of roles": lambda db: SON(
        killAllSessionsByPattern=[SON(users=[SON(user="a", db="own")], roles=[SON(role="read", db="own")])]),
    "find in another's session": find("c", lsid=SON(id=UUID_OF_NOTHING, uid=Binary(bytes(32)))),
}

OPERATIONS = {
    "currentOp": lambda db: SON(currentOp=1),
    "currentOp own": lambda db: SON([("currentOp", 1), ("$ownOps", True)]),
    "currentOp all": lambda db: SON([("currentOp", 1), ("$all", True)]),
    "killOp": lambda db: SON(killOp=1, op=999999999),
    "getParameter": lambda db: SON(getParameter=1, logLevel=1),
    "getParameter of all": lambda db: SON(getParameter="*"),
    "setParameter": lambda db: SON(setParameter=1, noSuchParameter=1),
    "getLog": lambda db: SON(getLog="global"),
    "serverStatus": lambda db: SON(serverStatus=1, metrics=0),
    "killCursors of none": lambda db: SON(killCursors="c", cursors=[Int64(1), Int64(2)]),
    "dropConnections": lambda db: SON(dropConnections=1, hostAndPort=[]),
    "getClusterParameter": lambda db: SON(getClusterParameter="*"),
    "setClusterParameter": lambda db: SON(setClusterParameter={"changeStreamOptions": {}}),
    "setDefaultRWConcern": lambda db: SON(setDefaultRWConcern=1, defaultWriteConcern={"w": 1}),
    "setFeatureCompatibilityVersion": lambda db: SON(setFeatureCompatibilityVersion="1.0"),
    "setFreeMonitoring": lambda db: SON(setFreeMonitoring=1, action="bad"),
    "setProfilingFilterGlobally": lambda db: SON(setProfilingFilterGlobally=1, filter={}),
    "setUserWriteBlockMode": lambda db: SON(setUserWriteBlockMode=1, **{"global": True}),
    "shutdown": lambda db: SON(shutdown=1),
    "startRecordingTraffic": lambda db: SON(startRecordingTraffic=1, filename="x"),
    "stopRecordingTraffic": lambda db: SON(stopRecordingTraffic=1),
    "applyOps of none": apply_ops(),
    "applyOps of a note": apply_ops(EMPTY_OP),
    "applyOps that inserts": apply_ops({"op": "i", "ns": lambda db: f"{db}.c", "o": {"_id": 1, "x": 1}}),
    "applyOps that inserts into buckets": apply_ops({"op": "i", "ns": lambda db: f"{db}.system.buckets.t", "o": {"_id": 1}}),
    "applyOps that updates": apply_ops(
        {"op": "u", "ns": lambda db: f"{db}.c", "o2": {"_id": "none"}, "o": {"$v": 2, "diff": {"u": {"a": 1}}}}),
    "applyOps that upserts": apply_ops(
        {"op": "u", "ns": lambda db: f"{db}.c", "o2": {"_id": 1}, "b": True, "o": {"$v": 2, "diff": {"u": {"a": 1}}}}),
    "applyOps that inserts with bypassDocumentValidation": apply_ops(
        {"op": "i", "ns": lambda db: f"{db}.c", "o": {"_id": 1, "x": 1}}, bypassDocumentValidation=True),
    "applyOps that updates with bypassDocumentValidation": apply_ops(
        {"op": "u", "ns": lambda db: f"{db}.c", "o2": {"_id": "none"}, "o": {"$v": 2, "diff": {"u": {"a": 1}}}},
        bypassDocumentValidation=True),
    "applyOps that deletes with bypassDocumentValidation": apply_ops(
        {"op": "d", "ns": lambda db: f"{db}.c", "o": {"_id": "none"}}, bypassDocumentValidation=True),
    "applyOps that deletes": apply_ops({"op": "d", "ns": lambda db: f"{db}.c", "o": {"_id": "none"}}),
    "applyOps with UUID": apply_ops(
        {"op": "d", "ns": lambda db: f"{db}.c", "ui": UUID_OF_NOTHING, "o": {"_id": "none"}}),
    "applyOps of a create": apply_ops({"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {"create": "c"}}),
    "applyOps of a drop": apply_ops({"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {"drop": "absent"}}),
    "applyOps of createIndexes": apply_ops({"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {
        "createIndexes": "c", "v": 2, "key": {"a": 1}, "name": "a_1"}}),
    "applyOps of dropIndexes": apply_ops(
        {"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {"dropIndexes": "c", "index": "absent"}}),
    "applyOps of a collMod": apply_ops({"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {"collMod": "c"}}),
    "applyOps of a rename": apply_ops({"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {
        "renameCollection": "own.absent", "to": "other.absent"}}),
    "applyOps of applyOps": apply_ops({"op": "c", "ns": lambda db: f"{db}.$cmd", "o": {"applyOps": [
        {"op": "d", "ns": "own.c", "o": {"_id": "none"}}]}}),
    "applyOps with a precondition": lambda db: SON(
        applyOps=[], preCondition=[SON(ns=f"{db}.c", q={"_id": 1}, res={"a": 1})]),
    "applyOps always upserting": lambda db: SON(applyOps=[], alwaysUpsert=True),
    "replSetReconfig": lambda db: SON(replSetReconfig={}),
    "replSetHeartbeat": lambda db: SON(replSetHeartbeat="x"),
    "replSetFreeze": lambda db: SON(replSetFreeze=0),
    "replSetInitiate": lambda db: SON(replSetInitiate={}),
    "replSetUpdatePosition": lambda db: SON(replSetUpdatePosition=1, optimes=[]),
    "replSetRequestVotes": lambda db: SON(
        replSetRequestVotes=1, setName="x", dryRun=True, term=Int64(1), candidateIndex=Int64(0),
        configVersion=Int64(1), configTerm=Int64(1), lastAppliedOpTime=SON(ts=Timestamp(1, 1), t=Int64(1))),
    "replSetResizeOplog": lambda db: SON(replSetResizeOplog=1, size=1.0),
    "appendOplogNote": lambda db: SON(appendOplogNote=1, data={"a": 1}),
    "cleanupOrphaned": lambda db: SON(cleanupOrphaned="own.c"),
    "getShardVersion": lambda db: SON(getShardVersion="own.c"),
    "mergeChunks": lambda db: SON(mergeChunks="own.c", bounds=[{"a": 0}, {"a": 1}], config="x", epoch=None),
    "splitChunk": lambda db: SON(splitChunk="own.c", keyPattern={"a": 1}, min={"a": 0}, max={"a": 1}, splitKeys=[]),
    "setShardVersion": lambda db: SON(setShardVersion="own.c"),
}

USERS = {
    "createUser": lambda db: SON(createUser="fresh", pwd="secret", roles=[], mechanisms=["bad"]),
    "createUser with a role": lambda db: SON(
        createUser="fresh", pwd="secret", roles=[SON(role="read", db="own")], mechanisms=["bad"]),
    "createUser with restrictions": lambda db: SON(
        createUser="fresh", pwd="secret", roles=[], mechanisms=["bad"],
        authenticationRestrictions=[SON(clientSource=["127.0.0.1"])]),
    "updateUser": lambda db: SON(updateUser="absent", customData={"a": 1}),
    "updateUser with a password": lambda db: SON(updateUser="absent", pwd="secret"),
    "updateUser with roles": lambda db: SON(updateUser="absent", roles=[SON(role="read", db="own")]),
    "updateUser of oneself": lambda db: SON(updateUser="self", customData={"a": 1}),
    "dropUser": lambda db: SON(dropUser="absent"),
    "dropAllUsersFromDatabase": lambda db: SON(dropAllUsersFromDatabase=1, writeConcern={"w": "bad"}),
    "grantRolesToUser": lambda db: SON(grantRolesToUser="absent", roles=[SON(role="read", db="own")]),
    "revokeRolesFromUser": lambda db: SON(revokeRolesFromUser="absent", roles=[SON(role="read", db="own")]),
    "usersInfo": lambda db: SON(usersInfo=1),
    "usersInfo of a user": lambda db: SON(usersInfo="absent"),
    "usersInfo of oneself": lambda db: SON(usersInfo=SON(user="self", db="own")),
    "usersInfo of another database": lambda db: SON(usersInfo=SON(user="absent", db="other")),
    "usersInfo of several": lambda db: SON(usersInfo=[SON(user="absent", db="own"), SON(user="absent", db="other")]),
    "usersInfo of all databases": lambda db: SON(usersInfo={"forAllDBs": True}),
    "usersInfo with credentials": lambda db: SON(usersInfo=1, showCredentials=True),
    "usersInfo with privileges": lambda db: SON(usersInfo="absent", showPrivileges=True),
    "usersInfo with restrictions": lambda db: SON(usersInfo="absent", showAuthenticationRestrictions=True),
    "createRole": lambda db: SON(createRole="read", privileges=[], roles=[]),
    "createRole with privileges": lambda db: SON(createRole="read", privileges=PRIVILEGES, roles=[]),
    "createRole with a privilege on buckets": lambda db: SON(
        createRole="read", privileges=[SON(resource=SON(db="own", system_buckets="t"), actions=["find"])], roles=[]),
    "createRole with roles": lambda db: SON(createRole="read", privileges=[], roles=[SON(role="read", db="own")]),
    "createRole with restrictions": lambda db: SON(
        createRole="read", privileges=[], roles=[], authenticationRestrictions=[SON(clientSource=["127.0.0.1"])]),
    "updateRole": lambda db: SON(updateRole="absent", privileges=[]),
    "updateRole with privileges": lambda db: SON(updateRole="absent", privileges=PRIVILEGES),
    "updateRole with roles": lambda db: SON(updateRole="absent", roles=[SON(role="read", db="own")]),
    "dropRole": lambda db: SON(dropRole="absent"),
    "dropAllRolesFromDatabase": lambda db: SON(dropAllRolesFromDatabase=1, writeConcern={"w": "bad"}),
    "grantPrivilegesToRole": lambda db: SON(grantPrivilegesToRole="absent", privileges=PRIVILEGES),
    "revokePrivilegesFromRole": lambda db: SON(revokePrivilegesFromRole="absent", privileges=PRIVILEGES),
    "grantRolesToRole": lambda db: SON(grantRolesToRole="absent", roles=[SON(role="read", db="own")]),
    "revokeRolesFromRole": lambda db: SON(revokeRolesFromRole="absent", roles=[SON(role="read", db="own")]),
    "grantPrivilegesToRole of buckets": lambda db: SON(
        grantPrivilegesToRole="absent",
        privileges=[SON(resource=SON(db="own", system_buckets="t"), actions=["find"])]),
    "rolesInfo": lambda db: SON(rolesInfo=1),
    "rolesInfo of a role": lambda db: SON(rolesInfo="absent"),
    "rolesInfo of another database": lambda db: SON(rolesInfo=SON(role="absent", db="other")),
    "rolesInfo of several": lambda db: SON(rolesInfo=[SON(role="absent", db="own"), SON(role="read", db="other")]),
    "rolesInfo with privileges": lambda db: SON(rolesInfo="read", showPrivileges=True),
    "_mergeAuthzCollections": lambda db: SON(
        _mergeAuthzCollections=1, tempUsersCollection="admin.absent", tempRolesCollection="", drop=False, db="none"),
    "_mergeAuthzCollections that drops": lambda db: SON(
        _mergeAuthzCollections=1, tempUsersCollection="admin.absent", tempRolesCollection="", drop=True, db="none"),
    "invalidateUserCache": lambda db: SON(invalidateUserCache=1),
    "connectionStatus": lambda db: SON(connectionStatus=1),
}

LOGIN = {
    "saslStart": lambda db: SON(saslStart=1, mechanism="NONE", payload=Binary(b"secret")),
    "saslContinue": lambda db: SON(saslContinue=1, conversationId=1, payload=Binary(b"secret")),
    "authenticate": lambda db: SON(authenticate=1, mechanism="NONE", user="x", db="own"),
    "logout": lambda db: SON(logout=1),
}

OTHERS = without_arguments(
    "availableQueryOptions", "buildInfo", "connPoolStats", "connPoolSync", "driverOIDTest", "features",
    "flushRouterConfig", "fsync", "fsyncUnlock", "getCmdLineOpts", "getDefaultRWConcern", "getDiagnosticData",
    "getFreeMonitoringStatus", "getLastError", "getnonce", "getShardMap", "hello", "hostInfo", "isdbgrid", "isMaster",
    "listCommands", "listShards", "lockInfo", "logRotate", "ping", "replSetAbortPrimaryCatchUp", "replSetGetConfig",
    "replSetGetRBID", "replSetGetStatus", "replSetMaintenance", "replSetStepDown", "replSetStepUp", "replSetSyncFrom",
    "rotateCertificates", "selkieCache", "shardingState", "top", "whatsmyuri", "nonsense", "getAuditConfig",
)

CASES = {**OTHERS, **READS, **PIPELINES, **WRITES, **CATALOG, **EXPLAIN, **SESSIONS, **OPERATIONS, **USERS, **LOGIN}
DATABASES = ("own", "other", "admin")

# These are not sent for users that may run them.
EXECUTED_NEVER = ("shutdown",)
