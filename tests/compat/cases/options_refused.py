"""Options that MongoDB refuses, or that change what a reply says."""

from compat.case import commands, script
from compat.cases.scripts import admin

W0 = {"writeConcern": {"w": 0}}
STATEMENT = {"q": {"_id": 1}, "u": {"$set": {"a": 1}}}
ID_INDEX = {"key": {"_id": 1}, "name": "_id_"}
EXPLAINED = [{"find": "c"}, {"count": "c"}, {"distinct": "c", "key": "a"}, {"aggregate": "c", "pipeline": [], "cursor": {}}, {"update": "c", "updates": [STATEMENT]},
    {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, {"findAndModify": "c", "remove": True}, {"nonsense": 1}]
HINTED = [{"_id": 1}, {"_id": {"$gt": 1}}, {}, {"a": 1}, {"_id": 1, "a": 1}, {"a": None}, {"a": {"$exists": False}}, {"a": {"$exists": True}}, {"a": {"$ne": 3}},
    {"a": []}, {"a": {"$in": [1, None]}}, {"a": {"$gt": 1}}, {"$or": [{"a": 1}, {"b": 1}]}, {"a": {"$not": {"$gt": 3}}}, {"a": {"$type": "int"}}]

BLOCKS = [
    commands(
        "options: unacknowledged writes", [{"_id": 1}],
        {"insert": "c", "documents": [{"_id": 2}], **W0}, {"insert": "c", "documents": [{"_id": 1}], **W0}, {"insert": "c", "documents": [], **W0},
        {"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0, "j": True}}, {"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0, "fsync": True}},
        {"insert": "c", "documents": [{"_id": 2}], "writeConcern": {"w": 0, "j": False}}, {"insert": "c$", "documents": [{"_id": 2}], **W0},
        {"update": "c", "updates": [STATEMENT], **W0}, {"update": "c", "updates": [{"q": {"_id": 9}, "u": {"a": 1}, "upsert": True}], **W0},
        {"update": "c", "updates": [{"q": {}, "u": {"$foo": 1}}], **W0}, {"delete": "c", "deletes": [{"q": {}, "limit": 0}], **W0},
        {"delete": "c", "deletes": [{"q": {}, "limit": 0, "hint": "nope"}], **W0}, {"findAndModify": "c", "query": {}, "update": {"$set": {"b": 1}}, **W0}, writes=True),
    script(
        "options: explain on a database", {"create": "c"},
        *({"explain": {**command, "$db": database}, "verbosity": "queryPlanner"} for command in EXPLAINED for database in ("other", "", "compat", 1, None))),
    script(
        "options: explain of stages that give documents of their own", {"create": "c"},
        *({"explain": {"aggregate": name, "pipeline": pipeline, "cursor": {}}, "$db": database} for name in (2, "c") for database in ("compat", "admin") for pipeline in (
            [{"$documents": [{"a": 1}]}], [{"$currentOp": {}}], [{"$listLocalSessions": {}}], [{"$documents": 1}])),
        {"explain": {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}}}, {"explain": {"aggregate": 1, "pipeline": [{"$match": {}}], "cursor": {}}}, {"explain": {"aggregate": 1, "pipeline": [], "cursor": {}}}),
    script(
        "options: explain of an aggregation with writeConcern", {"create": "c"},
        *({"aggregate": "c", "pipeline": pipeline, "cursor": {}, "explain": True, "writeConcern": concern} for pipeline in ([], [{"$out": "x"}]) for concern in ({}, {"w": 1})),
        {"explain": {"aggregate": "c", "pipeline": [], "cursor": {}, "writeConcern": {"w": 1}}}),
    script(
        "options: dropDatabase", admin({"dropDatabase": 1}), admin({"dropDatabase": 2}), {"dropDatabase": 1}, {"dropDatabase": 1, "$db": "config"}),
    script(
        "options: idIndex",
        *({"create": f"c{number}", "idIndex": {**ID_INDEX, **more}} for number, more in enumerate([
            {}, {"partialFilterExpression": {"a": 1}}, {"sparse": True}, {"sparse": False}, {"unique": True}, {"unique": False}, {"expireAfterSeconds": 5}, {"hidden": True},
            {"background": True}, {"dropDups": True}, {"prepareUnique": True}, {"storageEngine": {}}, {"bits": 26}, {"v": 1, "sparse": True}, {"v": 1}, {"ns": "compat.x"},
            {"key": {"_id": -1}}, {"key": {"a": 1}}, {"collation": {"locale": "en"}}, {"collation": {"locale": "simple"}}])),
        {"create": "d1", "idIndex": {**ID_INDEX, "collation": {"locale": "en"}}, "collation": {"locale": "en"}},
        {"create": "d2", "idIndex": {**ID_INDEX, "collation": {"locale": "simple"}}, "collation": {"locale": "en"}},
        {"create": "d3", "idIndex": ID_INDEX, "collation": {"locale": "en"}}),
    commands(
        "options: hints at an index over all fields", [{"_id": 1, "a": 1}, {"_id": 2}, {"_id": 3, "a": None, "b": 1}, {"_id": 4, "a": [], "b": 2}],
        *({"find": "c", "filter": query, "hint": "w", "sort": {"_id": 1}} for query in HINTED), {"find": "c", "sort": {"a": 1}, "hint": "w"},
        {"count": "c", "query": {"_id": 1}, "hint": "w"}, {"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}], "cursor": {}, "hint": "w"},
        {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1, "hint": "w"}]}, {"update": "c", "updates": [{**STATEMENT, "hint": "w"}]},
        setup=[{"createIndexes": "c", "indexes": [{"key": {"$**": 1}, "name": "w"}]}]),
    script(
        "options: the number of indexes",
        *({"createIndexes": "c", "indexes": [{"key": {f"f{number}": 1}, "name": f"f{number}"} for number in range(*bounds)]} for bounds in ((0, 64), (0, 20), (10, 63), (62, 64), (63, 64), (3, 9))), only=("embedded", "a table in MariaDB has room for fewer")),
]
