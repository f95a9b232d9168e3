"""Names that cannot be: of collections that stages write to, and of fields with a zero byte in them."""

from compat.case import commands, pipelines, updates

NUL = "a\0b"
DOCUMENTS = [{"_id": 1, "c": 1, "pairs": [[NUL, 1]], "objects": [{"k": NUL, "v": 1}]}]

COLLECTIONS = ["", ".a", "a$b", "system.foo", "system.views", "system.js", NUL, "x" * 300]
DATABASES = ["", "a.b", "x y", "admin", "local", "config", "d" * 64]

BLOCKS = [
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
