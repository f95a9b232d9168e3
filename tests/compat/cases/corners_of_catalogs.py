"""Corner cases of `renameCollection`, `collMod` and of capped collections. Scripts, each case on
the same collections."""

from compat.case import script

FEW = [1, 1.5, 0, -1, "x", True, None, {}, {"a": 1}, [], [{}], ["x"]]
SETUP = [*({"drop": name} for name in ("c", "k", "e", "v")), {"insert": "c", "documents": [{"_id": 1, "a": 1}]},
    {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}, {"create": "k", "capped": True, "size": 4096}]
WITH_VIEW = [*SETUP, {"create": "v", "viewOn": "c"}]


def anew(setup: list, *cases):
    for case in cases:
        yield from [*setup, case]


RENAMES = [{"renameCollection": f"compat.{source}", "to": f"compat.{target}", "$db": "admin", **more} for source in ("c", "v", "nope", "system.views", "$x")
    for target in ("e", "c", "v", "k", "system.foo", "system.views", "$y") for more in ({}, {"dropTarget": True})]
OPTIONS = ["timeseries", "recordPreImages", "isTimeseriesNamespace", "changeStreamPreAndPostImages", "dryRun", "cappedSize", "foo"]
OF_INDEXES = ["name", "keyPattern", "hidden", "expireAfterSeconds", "unique", "foo"]
CAPPED = [{"convertToCapped": "c", "size": size} for size in (1000, 0, "x", 1e20, 2**50, 2**50 + 1, None, 1.5)]
CLONES = [{"cloneCollectionAsCapped": "c", "toCollection": target, "size": 1000} for target in ("e", "k", "c", "system.foo", "$x", "", 1)]
CLONES.append({"cloneCollectionAsCapped": "c", "toCollection": "e", "size": 2**51})

BLOCKS = [
    script("catalog: renames", *anew(WITH_VIEW, *RENAMES), messages=False),
    script("catalog: options of collMod", *anew(SETUP, {"collMod": "c", "viewOn": ""}, *({"collMod": "c", name: value} for name in OPTIONS
        for value in FEW if (name, value) != ("changeStreamPreAndPostImages", {"enabled": True}))), messages=False),
    script("catalog: options of indexes in collMod", *anew(SETUP, *({"collMod": "c", "index": {**base, name: value}} for base in ({"name": "a"}, {})
        for name in OF_INDEXES for value in FEW)), messages=False),
    script("catalog: listing indexes", *anew(WITH_VIEW, *({"listIndexes": name, **more} for name in ("c", "v", "nope") for more in (
        {}, {"cursor": {"batchSize": 1}}, {"cursor": 1}, {"includeBuildUUIDs": True}, {"includeIndexBuildInfo": True}, {"isTimeseriesNamespace": True},
        {"includeBuildUUIDs": True, "includeIndexBuildInfo": True}, {"foo": 1}))), messages=False),
    script("catalog: becoming capped", *anew(SETUP, *CAPPED, *CLONES), messages=False),
]
