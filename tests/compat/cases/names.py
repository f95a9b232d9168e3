"""Invalid names: of collections that stages write to, and of fields that contain a zero byte."""

from compat.case import COLLECTION, commands, pipelines, script, updates

NUL = "a\0b"
DOCUMENTS = [{"_id": 1, "c": 1, "pairs": [[NUL, 1]], "objects": [{"k": NUL, "v": 1}]}]

COLLECTIONS = ["", ".a", "a$b", "system.foo", "system.views", "system.js", NUL, "x" * 300]
DATABASES = ["", "a.b", "x y", "admin", "local", "config", "d" * 64]

# Another case of the database that the script before has made.
OTHER_CASE = "COMPAT"
MERGE_UPDATES = ["replace", "merge", "keepExisting", "fail"]


def in_other_case(command: dict) -> dict:
    return {**command, "$db": OTHER_CASE}


def into_other_case(stage: dict) -> dict:
    return {"aggregate": COLLECTION, "pipeline": [stage], "cursor": {}}


CASE_DIFFERS = [
    {"insert": COLLECTION, "documents": DOCUMENTS},
    *map(in_other_case, (
        {"insert": "b", "documents": [{"_id": 1}]},
        {"insert": "b", "documents": [{"_id": 1}, {"_id": 2}], "ordered": False},
        {"update": "b", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": True}] * 2},
        {"update": "b", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": True}] * 2, "ordered": False},
        {"update": "b", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": True, "upsert": True}]},
        {"update": "b", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}]},
        {"delete": "b", "deletes": [{"q": {"_id": 1}, "limit": 0}]},
        {"findAndModify": "b", "query": {"_id": 1}, "update": {"$set": {"a": 1}}, "upsert": True},
        {"create": "b"}, {"create": "b", "capped": True, "size": 4096}, {"create": "v", "viewOn": "b", "pipeline": []},
        {"createIndexes": "b", "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
        {"drop": "b"}, {"dropIndexes": "b", "index": "*"}, {"listCollections": 1}, {"listIndexes": "b"}, {"find": "b"},
        {"count": "b"}, {"dropDatabase": 1},
    )),
    {"renameCollection": f"compat.{COLLECTION}", "to": f"{OTHER_CASE}.{COLLECTION}", "$db": "admin"},
    into_other_case({"$out": {"db": OTHER_CASE, "coll": "x"}}),
    *(into_other_case({"$merge": {"into": {"db": OTHER_CASE, "coll": "x"}, "whenMatched": mode}}) for mode in MERGE_UPDATES),
    into_other_case({"$merge": {"into": {"db": OTHER_CASE, "coll": "x"}, "whenMatched": []}}),
    {"find": COLLECTION},
]

# Each control character and some that look like a blank, in front, within and at the end.
ODD = [chr(code) for code in (*range(1, 33), 0x7F, 0x80, 0xA0, 0x1680, 0x2028, 0x3000, 0xFEFF, 0xFFFD)]
ODD_NAMES = [name for character in ODD for name in (f"a{character}", f"{character}a", f"a{character}b", character)]

BLOCKS = [
    script("commands: a database whose name differs in case", *CASE_DIFFERS),
    script(
        "commands: collections with odd names",
        *(command for name in ODD_NAMES for command in (
            {"insert": name, "documents": [{"_id": name}]},
            {"find": name},
        )),
        *({"createIndexes": f"a{character}", "indexes": [{"key": {"a": 1}, "name": f"a{character}"}]} for character in ODD),
        *({"listCollections": 1, "nameOnly": True, "filter": {"name": f"a{character}"}} for character in ODD),
        *({"renameCollection": f"compat.a{character}", "to": f"compat.c{character}", "$db": "admin"} for character in ODD),
        *({"listIndexes": f"c{character}"} for character in ODD),
        *({"drop": f"c{character}"} for character in ODD),
    ),
    pipelines(
        "stages: $out",
        DOCUMENTS,
        *([{"$out": name}] for name in COLLECTIONS),
        *([{"$out": {"db": name, "coll": "c"}}] for name in DATABASES),
        [{"$out": {"db": "compat", "coll": ""}}],
    ),
    pipelines(
        "stages: $merge",
        DOCUMENTS,
        *([{"$merge": {"into": name}}] for name in COLLECTIONS),
        *([{"$merge": {"into": {"db": name, "coll": "c"}}}] for name in DATABASES),
        *([{"$merge": {"into": "other", "on": path}}] for path in ["", "a.", "$a", ".a", NUL, ["_id", NUL]]),
    ),
    pipelines(
        "expressions: $arrayToObject",
        DOCUMENTS,
        [{"$project": {"x": {"$arrayToObject": "$pairs"}}}],
        [{"$project": {"x": {"$arrayToObject": "$objects"}}}],
    ),
    updates("updates: $rename", DOCUMENTS, {"$rename": {"c": NUL}}, {"$rename": {"c": "d." + NUL}}),
    commands(
        "commands: names with a zero byte",
        DOCUMENTS,
        {"distinct": "c", "key": NUL},
        {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": NUL}]},
    ),
]
