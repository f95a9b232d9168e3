"""`create` with several errors at once; collections named by UUID; sizes of batches; the databases
of every server."""

import itertools

from bson import Binary

from compat.ask import CURSOR
from compat.case import commands, script

MISTAKES = {
    "capped": [True], "size": [0, "x", 100], "max": [-1, 5], "autoIndexId": [False, True], "viewOn": ["have", "", ".a"], "pipeline": [[], [{"$out": "a"}]],
    "validator": [{"$x": 1}, 5, {"a": 1}], "validationLevel": ["bogus", 5], "collation": [{"locale": "xx"}, {}, {"locale": "en"}],
    "timeseries": [{"timeField": "t"}, {}, {"timeField": "t", "metaField": "t"}], "expireAfterSeconds": [-1, 5, "x"],
    "clusteredIndex": [True, {"key": {"_id": 1}, "unique": True}, {"key": {"_id": 1}, "unique": False}], "indexOptionDefaults": [{"x": 1}, 5],
    "storageEngine": [{"x": {}}, {"wiredTiger": 5}, 5], "idIndex": [{"key": {"a": 1}, "name": "x"}, 5], "temp": [True], "encryptedFields": [{"fields": []}], "bogus": [1],
}  # fmt: skip
NAMES = ("new", "have", "v", ".a", "a$b", "system.x", "", 5)
OPTIONS = [(name, value) for name, values in MISTAKES.items() for value in values]


def creations():
    yield {"create": "have"}
    yield {"create": "v", "viewOn": "have", "pipeline": []}
    for at, (one, other) in enumerate(itertools.combinations(OPTIONS, 2)):
        if one[0] == other[0]:
            continue
        pair = (one, other) if at % 2 else (other, one)
        yield {"create": NAMES[at % len(NAMES)], **dict(pair)}
        if at % len(NAMES) == 0:
            yield {"drop": "new"}


UNKNOWN = Binary(bytes(range(16)), 4)
BATCHES = [{"_id": i, "s": "x" * (1 << 20)} for i in range(15)]
# The last one that fits into a first batch, into a later one, and into neither.
LAST = [{"_id": 99 + more, "s": "x" * ((1 << 20) - 456 + more)} for more in range(4)]

BLOCKS = [
    script("creations: two mistakes", *creations(), messages=False),
    commands(
        "collections by UUID", [{"_id": 1}],
        *({name: uuid, **more} for uuid in (UNKNOWN, Binary(b"a", 4), Binary(bytes(16), 3), Binary(b"a", 0)) for name, more in (
            ("find", {}), ("find", {"filter": {"$x": 1}}), ("find", {"batchSize": -1}), ("find", {"bogus": 1}), ("count", {}), ("count", {"query": {"$x": 1}}), ("distinct", {"key": "a"}), ("listIndexes", {}),
            ("aggregate", {"pipeline": [], "cursor": {}}), ("insert", {"documents": [{}]}), ("drop", {}), ("collStats", {}), ("validate", {}),
        )),
    ),
    *(
        commands("how much a batch holds", [*BATCHES, last], {"find": "c", "batchSize": 100}, {"find": "c", "batchSize": 0}, {"getMore": CURSOR, "collection": "c"},
            {"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 100}})
        for last in LAST
    ),
    commands("databases of every server", [], *({"listDatabases": 1, "nameOnly": True, "filter": {"name": name}, "$db": "admin"} for name in ("admin", "local", "nope"))),
]  # fmt: skip
