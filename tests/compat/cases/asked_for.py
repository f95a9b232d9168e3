"""Commands that monitoring, administration and connectors ask for."""

from compat.case import commands, script
from compat.cases.scripts import admin

# Without a database it applies to all of them, including those of other tests.
STRICT = {"apiParameters": {"version": "1", "strict": True}, "db": "compat"}
MEGABYTE = 1 << 20
# Two megabytes, some of them under one key.
LARGE = [{"_id": number, "a": number % 100, "b": 7, "pad": "x" * 1000} for number in range(2000)]


def split(**options):
    return {"splitVector": "compat.c", "keyPattern": {"_id": 1}, **options}


def entry(op: str, o, ns: str = "compat.c", **more):
    return {"op": op, "ns": ns, "o": o, **more}


def changed(difference, identity=1):
    return entry("u", {"$v": 2, "diff": difference}, o2={"_id": identity})


APPLIED = [
    [], [entry("n", {}, "")], [entry("i", {"_id": 9, "x": 1})], [entry("i", {"_id": 1, "x": 1})], [entry("u", {"$set": {"a": 3}}, o2={"_id": 1})], [entry("u", {"$v": 1, "$set": {"a": 3}}, o2={"_id": 1})],
    [entry("u", {"_id": 1, "new": True}, o2={"_id": 1})], [entry("u", {"$set": {"a": 3}}, o2={"_id": 77})], [changed({"u": {"a": 5}})], [changed({"d": {"a": False}, "i": {"n": 5}})],
    [changed({"ssub": {"d": {"y": False}, "u": {"x": 5}}})], [changed({"slist": {"a": True, "u0": 9}})], [changed({"slist": {"a": True, "l": 2}})], [changed({"slist": {"a": True, "s1": {"u": {"q": 2}}}})],
    [changed({"slist": {"a": True, "u3": 9}})], [entry("d", {"_id": 1})], [entry("d", {"_id": 55})], [entry("c", {"create": "made"}, "compat.$cmd")], [entry("c", {"drop": "none"}, "compat.$cmd")], [entry("c", {"create": "c"}, "compat.$cmd")], [entry("c", {"dropIndexes": "c", "index": "none"}, "compat.$cmd")], [entry("c", {"nonsense": 1}, "compat.$cmd")], [entry("c", {"find": "c"}, "compat.$cmd")],
    [entry("c", {"createIndexes": "c", "v": 2, "key": {"a": 1}, "name": "a_1"}, "compat.$cmd")], [entry("c", {"renameCollection": "compat.none", "to": "compat.other"}, "compat.$cmd")],
    [entry("i", {"_id": 1}, "compat.none")], [entry("i", {"x": 1})], [entry("x", {})], [{"op": "i", "ns": "compat.c"}], [{"op": "i", "o": {}}], [1], [entry("i", {"_id": 9}), entry("i", {"_id": 9}, "compat.none"), entry("i", {"_id": 10})],
]

BLOCKS = [
    commands(
        "asked for: applyOps", [{"_id": 1, "a": 1, "sub": {"x": 1, "y": 2}, "list": [1, {"q": 1}, 3]}, {"_id": 2}], *({"applyOps": entries} for entries in APPLIED), {"applyOps": 1}, {"applyOps": [], "x": 1}, writes=True),
    script(
        "asked for: locks", admin({"fsyncUnlock": 1}), admin({"fsync": 1, "lock": True}), admin({"fsync": 1, "lock": True}), admin({"fsyncUnlock": 1}), {"find": "c"}, admin({"fsyncUnlock": 1}),
        admin({"fsyncUnlock": 1}), {"fsync": 1, "lock": True}, {"fsyncUnlock": 1}, {"insert": "c", "documents": [{"_id": 1}]}, {"find": "c"}),
    script(
        "asked for: validateDBMetadata",
        {"create": "c"}, {"createIndexes": "t", "indexes": [{"key": {"x": "text"}, "name": "x_text"}]}, *({"validateDBMetadata": 1, **options} for options in (
            {}, STRICT, {**STRICT, "collection": "t"}, {**STRICT, "collection": "c"}, {**STRICT, "collection": "none"}, {**STRICT, "db": "compat"}, {**STRICT, "db": "none"}, {**STRICT, "db": 1},
            {**STRICT, "x": 1}, *({"apiParameters": value} for value in (1, {}, {"version": 1}, {"version": "1"}, {"version": "1", "strict": 1}, {"version": "1", "strict": False}, {"version": "1", "x": 1})))),
        admin({"validateDBMetadata": 1, **STRICT, "db": "compat"})),
    script(
        "asked for: dropConnections", {"dropConnections": 1, "hostAndPort": []},
        *(admin({"dropConnections": 1, **options}) for options in ({}, *({"hostAndPort": hosts} for hosts in ([], ["a:1"], ["a"], ["a:x"], [1], "a:1", None)), {"hostAndPort": [], "x": 1}))),
    commands(
        "asked for: splitVector", LARGE, split(maxChunkSizeBytes=MEGABYTE), split(maxChunkSize=1), split(maxChunkSize=2), split(maxChunkSize=3), split(force=True), split(force=True, maxChunkSize=1),
        split(maxChunkSize=1, maxChunkObjects=100), split(maxChunkSize=1, maxSplitPoints=2), split(maxChunkSize=1, min={"_id": 100}, max={"_id": 900}), split(force=True, min={"_id": 100}, max={"_id": 900}),
        split(maxChunkSize=1, min={"_id": 100}), split(), split(maxChunkSize=0), split(maxChunkSize=1025), split(maxChunkSizeBytes=20000), split(maxChunkSize=1, keyPattern={"a": 1}),
        split(maxChunkSize=1, keyPattern={"b": 1}), split(force=True, keyPattern={"b": 1}), split(maxChunkSize=1, keyPattern={"a": 1, "_id": 1}), split(maxChunkSize=1, keyPattern={"a": -1}),
        split(maxChunkSize=1, keyPattern={"q": 1}), split(maxChunkSize=1, keyPattern={}), {"splitVector": "compat.none", "keyPattern": {"_id": 1}, "maxChunkSize": 1},
        {"splitVector": "c", "keyPattern": {"_id": 1}, "maxChunkSize": 1}, {"splitVector": 1}, {"splitVector": "compat.v", "keyPattern": {"_id": 1}, "maxChunkSize": 1},
        setup=[{"create": "v", "viewOn": "c", "pipeline": []}, {"createIndexes": "c", "indexes": [{"key": {"a": 1, "_id": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b"}]}],
        only=("embedded", "the size of a table in MariaDB is an estimate")),
    script(
        "asked for: what is refused", {"create": "c"}, admin({"cleanupOrphaned": "compat.c"}), {"cleanupOrphaned": "compat.c"}, admin({"rotateCertificates": 1}), admin({"setFreeMonitoring": 1, "action": "disable"}),
        {"setIndexCommitQuorum": "c", "indexNames": ["a"], "commitQuorum": 1}, {"setIndexCommitQuorum": "c", "indexNames": ["a"]}, {"setIndexCommitQuorum": "c", "commitQuorum": 1},
        admin({"setUserWriteBlockMode": 1, "global": True}), admin({"stopRecordingTraffic": 1}), admin({"startRecordingTraffic": 1, "filename": "x"}), admin({"setProfilingFilterGlobally": 1, "filter": {}}),
        {"autoSplitVector": "c", "keyPattern": {"_id": 1}, "min": {"_id": 0}, "max": {"_id": 9}, "maxChunkSizeBytes": 1000}, {"compactStructuredEncryptionData": "c", "compactionTokens": {}}),
    script(
        "asked for: sizes by a key pattern", {"insert": "c", "documents": [{"_id": number} for number in range(20)]},
        *({"dataSize": "compat.c", "keyPattern": {"_id": direction}, "min": {"_id": 0}, "max": {"_id": 10}} for direction in (1, 1.0, True, -1.0, 2, "hashed"))),
    script(
        "asked for: the profile level goes with its database", {"profile": 2, "slowms": 100}, {"dropDatabase": 1}, {"profile": -1}, {"profile": 1, "filter": {"op": "query"}}, {"dropDatabase": 1}, {"profile": -1}),
    script(
        "asked for: $collStats of what does not exist",
        *({"aggregate": "none", "pipeline": [{"$collStats": {name: {}}}], "cursor": {}} for name in ("count", "storageStats", "queryExecStats"))),
]
