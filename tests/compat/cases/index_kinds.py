"""Kinds of indexes: their key patterns and options, how they are listed, and invalid combinations.
Scripts."""

from bson import Int64, Regex

from compat.case import commands, script

EMBEDDED = ("embedded", "on MariaDB, unique indexes over places are refused with error 67, and so are names with a `*` that stand for one field")

NAN = float("nan")

# Key patterns with options. (Invalid text indexes are here; valid ones are tested with their
# results.)
INDEXES = [
    ({"a": "2dsphere"}, {}), ({"a": "2dsphere", "b": 1}, {}), ({"b": 1, "a": "2dsphere"}, {}),
    ({"a": "2dsphere", "b": "2dsphere"}, {}), ({"a": "2dsphere", "b": "2d"}, {}), ({"a": "2d", "b": "2d"}, {}),
    ({"a": "2d", "b": 1}, {}), ({"b": 1, "a": "2d"}, {}), ({"a": "2d"}, {}), ({"a": "2d"}, {"bits": 20}),
    ({"a": "2d"}, {"bits": 0}), ({"a": "2d"}, {"bits": 33}), ({"a": "2d"}, {"bits": 32}), ({"a": "2d"}, {"bits": "x"}),
    ({"a": "2d"}, {"bits": 20.7}), ({"a": "2d"}, {"min": 5, "max": 5}), ({"a": "2d"}, {"min": 5, "max": 1}),
    ({"a": "2d"}, {"min": -5, "max": 1.5}), ({"a": "2d"}, {"min": "x"}), ({"a": "2d"}, {"min": None}),
    ({"a": "2d"}, {"unique": True}), ({"a": "2d"}, {"sparse": True}), ({"a": "2d"}, {"bits": -1}),
    ({"a": "2d"}, {"bits": None}), ({"a": "2dsphere"}, {"2dsphereIndexVersion": 1}),
    ({"a": "2dsphere"}, {"2dsphereIndexVersion": 2}), ({"a": "2dsphere"}, {"2dsphereIndexVersion": 3}),
    ({"a": "2dsphere"}, {"2dsphereIndexVersion": 4}), ({"a": "2dsphere"}, {"2dsphereIndexVersion": "x"}),
    ({"a": "2dsphere"}, {"2dsphereIndexVersion": 3.0}), ({"a": "2dsphere"}, {"finestIndexedLevel": 20}),
    ({"a": "2dsphere"}, {"coarsestIndexedLevel": 2}), ({"a": "2dsphere"}, {"unique": True}),
    ({"a": "2dsphere"}, {"sparse": True}), ({"a": "2dsphere"}, {"bits": 5}), ({"a": 1}, {"2dsphereIndexVersion": 3}),
    ({"a": 1}, {"bits": 3}), ({"a": 1}, {"min": 3}), ({"a": 1}, {"weights": {"a": 3}}), ({"a": 1}, {"default_language": "x"}),
    ({"a": 1}, {"wildcardProjection": {"a": 1}}), ({"a": 1}, {"textIndexVersion": 3}), ({"a": 1}, {"bucketSize": 3}),
    ({"a": "hashed"}, {}), ({"a": "hashed"}, {"unique": True}), ({"a": "hashed"}, {"sparse": True}),
    ({"a": "hashed", "b": 1}, {}), ({"a": 1, "b": "hashed"}, {}), ({"a": 1, "b": "hashed", "c": -1}, {}),
    ({"a": "hashed", "b": "hashed"}, {}), ({"a": "hashed"}, {"seed": 1}), ({"a": "hashed"}, {"hashVersion": 0}),
    ({"a": "hashed"}, {"expireAfterSeconds": 5}), ({"a": "hashed", "b": "2d"}, {}), ({"a": "hashed", "b": "2dsphere"}, {}),
    ({"a": "hashed"}, {"partialFilterExpression": {"a": 1}}), ({"a": "hashed"}, {"collation": {"locale": "fr"}}),
    ({"_id": "hashed"}, {}), ({"a": "2d"}, {"collation": {"locale": "fr"}}),
    ({"a": "2dsphere"}, {"collation": {"locale": "fr"}}), ({"a": "text"}, {"collation": {"locale": "fr"}}),
    ({"a": "geoHaystack", "b": 1}, {"bucketSize": 1}), ({"a": "geoHaystack"}, {}), ({"a": "foo"}, {}), ({"a": ""}, {}),
    ({"a": "1"}, {}), ({"a": "2dsphere"}, {"expireAfterSeconds": 5}), ({"a": "2d"}, {"expireAfterSeconds": 5}),
    ({"$**": 1}, {}), ({"$**": -1}, {}), ({"a.$**": 1}, {}), ({"$**": 1, "a": 1}, {}), ({"a": 1, "$**": 1}, {}),
    ({"$**": "hashed"}, {}), ({"$**": "2d"}, {}), ({"$**": "2dsphere"}, {}), ({"$**": "foo"}, {}),
    ({"a.$**": 1}, {"unique": True}), ({"$**": 1}, {"unique": True}), ({"$**": 1}, {"sparse": True}),
    ({"$**": 1}, {"expireAfterSeconds": 1}), ({"$**": 1}, {"hidden": True}),
    ({"$**": 1}, {"partialFilterExpression": {"a": 1}}), ({"$**": 1}, {"collation": {"locale": "fr"}}),
    ({"$**": 1}, {"wildcardProjection": {"a": 1}}), ({"$**": 1}, {"wildcardProjection": {"a": 0}}),
    ({"$**": 1}, {"wildcardProjection": {"a": 1, "b": 0}}), ({"$**": 1}, {"wildcardProjection": {}}),
    ({"$**": 1}, {"wildcardProjection": 5}), ({"$**": 1}, {"wildcardProjection": {"_id": 1}}),
    ({"$**": 1}, {"wildcardProjection": {"_id": 0}}), ({"$**": 1}, {"wildcardProjection": {"_id": 0, "a": 1}}),
    ({"$**": 1}, {"wildcardProjection": {"_id": 1, "a": 0}}), ({"$**": 1}, {"wildcardProjection": {"a": {"$slice": 1}}}),
    ({"$**": 1}, {"wildcardProjection": {"a": "$b"}}), ({"$**": 1}, {"wildcardProjection": {"a": {"b": 1}}}),
    ({"$**": 1}, {"wildcardProjection": {"a": {"b": 1, "c": True}}}), ({"$**": 1}, {"wildcardProjection": {"a.b": 1, "a": 1}}),
    ({"$**": 1}, {"wildcardProjection": {"a": {"$meta": "textScore"}}}), ({"$**": 1}, {"wildcardProjection": {"a.$**": 1}}),
    ({"a.$**": 1}, {"wildcardProjection": {"a": 1}}), ({"a.$**": 1}, {"wildcardProjection": {}}),
    ({"$**": 1}, {"wildcardProjection": {"a": {"$elemMatch": {"b": 1}}}}), ({"$**": 1}, {"wildcardProjection": {"a.$": 1}}),
    ({"$**.a": 1}, {}), ({"a.$**.b": 1}, {}), ({"a$**": 1}, {}), ({"$**": 0}, {}), ({"$**": 1.5}, {}), ({"a..$**": 1}, {}),
    ({"$**": 1}, {"2dsphereIndexVersion": 3}), ({".$**": 1}, {}), ({"$a.$**": 1}, {}), ({"a.$b": 1}, {}),
    ({"a.$**.$**": 1}, {}), ({"a.$**": "text"}, {}), ({"a": "text", "b": 1, "c": "text"}, {}),
    ({"a": "text"}, {"weights": {"a": 0}}), ({"a": "text"}, {"weights": {"a": 100000}}),
    ({"a": "text"}, {"weights": {"a": "x"}}), ({"a": "text"}, {"weights": "x"}), ({"a": "text"}, {"weights": "b"}),
    ({"a": "text"}, {"default_language": "klingon"}), ({"a": "text"}, {"default_language": 5}),
    ({"a": "text"}, {"language_override": 5}), ({"a": "text"}, {"language_override": "a.b"}),
    ({"a": "text"}, {"language_override": "$a"}), ({"a": "text"}, {"language_override": ""}),
    ({"a": "text"}, {"textIndexVersion": 4}), ({"a": "text"}, {"textIndexVersion": "x"}), ({"a": "text", "b": "2dsphere"}, {}),
    ({"a": "text", "b": "2d"}, {}), ({"a": "text", "b": "hashed"}, {}), ({"a": "hashed", "b": "text"}, {}),
    ({"b": "2dsphere", "a": "text"}, {}), ({"_fts": "text", "_ftsx": 1}, {}), ({"_fts": 1}, {}), ({"a.": "text"}, {}),
    ({"": "text"}, {}), ({"$a": "text"}, {}), ({"a.$b": "text"}, {}), ({"a": "text", "b": 0}, {}),
    ({"a": "text", "b": 2.5}, {}), ({"a": "text", "b": "x"}, {}), ({"b": "hashed", "$**": "text"}, {}),
    ({"a": "text"}, {"weights": {"a": 1, "b": {}}}), ({"a": "text"}, {"weights": {"": 1}}), ({"_fts": "text"}, {}),
    ({"a": "text"}, {"weights": {"a.$b": 1}}), ({"a": "text"}, {"weights": {"$b": 1}}),
    ({"a": "text"}, {"default_language": ""}), ({"a": "2d"}, {"v": 1}), ({"$**": 1}, {"v": 1}), ({"a": "hashed"}, {"v": 1}),
    ({"a": "2dsphere"}, {"v": 1}), ({"a": "2dsphere", "b": "text"}, {}), ({"a": True}, {}), ({"a": "2dsphere", "b": True}, {}),
    ({"_id": "2dsphere"}, {}), ({"_id.$**": 1}, {}), ({"a": 1}, {"v": 1}), ({"a": 0}, {"v": 1}), ({"a": None}, {"v": 1}),
    ({"a": "2dsphere"}, {"finestIndexedLevel": 40}), ({"a": "2dsphere"}, {"coarsestIndexedLevel": -2}),
    ({"a": "2dsphere"}, {"coarsestIndexedLevel": 20, "finestIndexedLevel": 10}),
    ({"a": "2dsphere"}, {"finestIndexedLevel": 30}), ({"a": "2dsphere"}, {"finestIndexedLevel": "x"}),
    ({"a": "2d"}, {"coarsestIndexedLevel": 2}), ({"a": 1}, {"coarsestIndexedLevel": 20.5}),
    ({"a": 1}, {"language_override": "x"}), ({"a": 1}, {"weights": "x"}), ({"a": 1}, {"weights": 5}),
    ({"a": "text"}, {"weights": 5}), ({"a": "2dsphere"}, {"2dsphereIndexVersion": 0}),
    ({"a": "2dsphere"}, {"2dsphereIndexVersion": 2.5}), ({"a": 1}, {"2dsphereIndexVersion": 3.7}), ({"a": "2d"}, {"min": 200}),
    ({"a": "2d"}, {"max": -200}), ({"a": "hashed"}, {"wildcardProjection": {"a": 1}}),
    ({"a": "text"}, {"wildcardProjection": {"a": 1}}), ({"a": "2d", "b": "2dsphere"}, {}), ({"a": "2d", "b": -1, "c": 1}, {}),
    ({"b": 1, "c": "2d", "a": "2d"}, {}), ({"_id.a": "2d"}, {}), ({"a": 1, "_fts": 1}, {}), ({"_fts.a": 1}, {}),
    ({"a._fts": 1}, {}), ({"_ftsx": 1}, {}), ({"_fts": "2d"}, {}), ({"_fts": "hashed"}, {}),
    ({"a": 1}, {"partialFilterExpression": {"loc": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}}), ({"a": "$"}, {}),
    ({"a": "wildcard"}, {}), ({"a": "btree"}, {}), ({"_id": 1}, {"bits": 3}), ({"_id": 1}, {"2dsphereIndexVersion": 3}),
    ({"_id": 1}, {"default_language": "fr"}), ({"_id": 1}, {"unique": True}), ({"_id": 1}, {"sparse": True}),
    ({"_id": 1}, {"expireAfterSeconds": 1}), ({"_id": 1}, {"wildcardProjection": {"a": 1}}),
    ({"_id": 1}, {"weights": {"a": 1}}), ({"_fts": "text", "_ftsx": -1}, {"weights": {"a": 1}}),
    ({"a": "text", "_fts": "text", "_ftsx": 1}, {}), ({"_fts": "text", "b": 1}, {"weights": {"a": 1}}),
    ({"_fts": "text", "_ftsx": "text"}, {"weights": {"a": 1}}), ({"a": "text", "_ftsx": 1}, {}), ({"a": "text", "b": 2}, {}),
    ({"b": 2, "a": "text"}, {}), ({"a": "text"}, {"weights": {"b": True}}), ({"a": "text"}, {"weights": {"b": -1}}),
    ({"a": "text"}, {"weights": {"a..b": 2}}), ({"a": "text"}, {"weights": {"a.": 2}}),
    ({"a": "2d"}, {"bits": NAN}), ({"a": "2d"}, {"min": NAN}), ({"a": "2d"}, {"min": Int64(-1)}), ({"a": "2d"}, {"max": float("inf")}),
]  # fmt: skip


def tried(key, options):
    index = {"key": key, "name": "i", **options}
    return [{"drop": "c"}, {"createIndexes": "c", "indexes": [index]}, {"listIndexes": "c"}]


# Two indexes, one after the other: key, name and options of each.
PAIRS = [
    [({"a": "2d"}, "i", {}), ({"a": "2d"}, "i", {})],
    [({"a": "2d"}, "i", {}), ({"a": "2d"}, "i", {"bits": 20})],
    [({"a": "2d"}, "i", {}), ({"a": "2d"}, "j", {"bits": 26})],
    [({"a": "2dsphere"}, "i", {}), ({"a": "2dsphere"}, "j", {})],
    [({"a": "2dsphere"}, "i", {}), ({"a": "2dsphere"}, "i", {"2dsphereIndexVersion": 2})],
    [({"a": "2dsphere"}, "i", {}), ({"a": "2d"}, "j", {})],
    [({"$**": 1}, "i", {}), ({"$**": 1}, "j", {"wildcardProjection": {"a": 1}})],
    [({"$**": 1}, "i", {}), ({"$**": 1}, "i", {"wildcardProjection": {"a": 1}})],
    [({"$**": 1}, "i", {"wildcardProjection": {"a": 1}}), ({"$**": 1}, "j", {"wildcardProjection": {"a": True}})],
    [({"$**": 1}, "i", {"wildcardProjection": {"a": 1, "b": 1}}), ({"$**": 1}, "j", {"wildcardProjection": {"b": 1, "a": 1}})],
    [({"$**": 1}, "i", {"wildcardProjection": {"a": {"b": 1}}}), ({"$**": 1}, "j", {"wildcardProjection": {"a.b": 1}})],
    [({"$**": 1}, "i", {}), ({"$**": 2}, "j", {})],
    [({"a": "hashed"}, "i", {}), ({"a": 1}, "j", {})],
    [({"a": "hashed"}, "i", {}), ({"a": "hashed"}, "j", {})],
]


def both(pair):
    create = [{"createIndexes": "c", "indexes": [{"key": key, "name": name, **options}]} for key, name, options in pair]
    return [{"drop": "c"}, *create, {"listIndexes": "c"}]


VALUES = [
    None, 1, 1.0, 1.5, -1, "a", "abc", "", True, {"x": 1}, {"x": 1.0}, {}, {"x": {"y": 2}}, Int64(2**53 + 1), 1e300, float("inf"), NAN, 7,
]  # fmt: skip
FIELDS = [{"_id": number, "a": value} for number, value in enumerate(VALUES)] + [{"_id": 99, "b": 1}]
FILTERS = [
    *({"a": value} for value in VALUES), {"a": {"$in": [1, "abc", None]}}, {"a": {"$in": [1, 2]}, "b": {"$exists": False}}, {"a": {"$gt": 0}},
    {"a": {"$lte": "b"}}, {"a": {"$ne": 1}}, {"a": {"$exists": True}}, {"a.x": 1}, {"a.x": {"$exists": True}}, {"a.x.y": 2}, {"a": {"$type": "object"}},
    {"a": {"$gt": 0, "$lt": 5}}, {"$or": [{"a": 1}, {"a": "abc"}]}, {"$or": [{"a": 1}, {"b": 1}]}, {"b": 1}, {"a": {"$regex": "^a"}},
]  # fmt: skip
NESTED = [
    {"_id": 1, "a": [1, 2, {"b": 3}], "c": {"d": [{"e": 1}, {"e": [5, 6]}]}}, {"_id": 2, "a": {"b": [3, [4]]}, "c": {"d": {"e": 5}}},
    {"_id": 3, "a": [], "c": {}}, {"_id": 4, "a": [[1, 2], [3]], "c": None}, {"_id": 5, "x": {"y": {"z": "w"}}}, {"_id": 6, "a": [{"b": 1}, {"b": 9}]},
]  # fmt: skip
PATHS = [
    {"a": 1}, {"a": 3}, {"a.b": 3}, {"a.b": {"$gt": 1, "$lt": 9}}, {"a.b": {"$gt": 2}}, {"a": []}, {"a": [1, 2]}, {"a": [[1, 2], [3]]}, {"c.d.e": 5},
    {"c.d.e": {"$in": [1, 5]}}, {"x.y.z": "w"}, {"x.y": {"z": "w"}}, {"c": None}, {"c": {}}, {"a.0": 1}, {"a.0.b": 1}, {"a.b": {"$elemMatch": {"$gt": 2}}},
    {"a": {"$elemMatch": {"b": 9}}}, {"_id": 3}, {"a.b": 9, "_id": 6}, {"q": 1}, {"a": {"$size": 0}}, {"a.b": {"$ne": 3}}, {"a.b": None},
]  # fmt: skip

TEXTS = [
    "abc", "ab.c", "abcd", "abxd", "b", "a.b", "a\nb", "ab\n", "ab", "x ab", "ab\nab", "ab\n\n", "a$", "a$\n", "^ab", "abc1", "aé", "Ab", "a b", "a\\b", "",
    1, None, ["abc", "x"], ["ab", 5], Regex("^ab$"), Regex("ab$", "i"), {"ab": 1},
]  # fmt: skip
PATTERNS = [
    *((pattern, "") for pattern in (
        "^abc", "^abc.*", "^ab\\.c", "^abc\\d", "^abc?d", "^abc*d", "^abc+d", "^ab$", "ab$", "b$", "^abc.+d", "^(abc)", "^abc|d", "^\\Qa.b\\E", "^\\Qa.b",
        "a\\Q.b", "\\Aabc", "^a{2}b", "^ab{0,1}c", "^ab[cd]", "abc", "^", "$", "^$", "^.*abc", "\\.", "\\.b$", "^a\\$$", "a\\$", "\\^ab", "^a\\nb", "a\\\\b$", "ab.c",
        "b.c$", "bx?d", "a.*b$", "ab\\Z", "ab\\z", "^ab\n", "b\n$", "^ab$\n", "ab)", "^*ab", "(?i)ab$", "é$", "a\\é",
    )),
    *((pattern, options) for pattern in ("^ab$", "ab$", "^ab", "\\Aab", "a b", "#b", "^ab#c", "^ab # c\n") for options in ("i", "m", "s", "x")),
]  # fmt: skip
EXPRESSIONS = [{"a": Regex(pattern, options)} for pattern, options in PATTERNS]


def found(filters, **options):
    return [{"find": "c", "filter": query, "sort": {"_id": 1}, **options} for query in filters]


def indexed(family, documents, filters, key, **options):
    """The same questions with the index as the planner likes it, and with it forced."""
    setup = [{"createIndexes": "c", "indexes": [{"key": key, "name": "i", **options}]}]
    return commands(family, documents, *found(filters), setup=setup)


def of_embedded(key, options):
    places = {"2d", "2dsphere"} & {value for value in key.values() if isinstance(value, str)}
    return bool(places and options.get("unique")) or "a$**" in key


BLOCKS = [
    script("index kinds", *(command for each in INDEXES if not of_embedded(*each) for command in tried(*each))),
    script("index kinds", *(command for each in INDEXES if of_embedded(*each) for command in tried(*each)), only=EMBEDDED),
    script("index kinds together", *(command for pair in PAIRS for command in both(pair))),
    commands("regular expressions", [{"_id": n, "a": text} for n, text in enumerate(TEXTS)], *found(EXPRESSIONS)),
    indexed("regular expressions by an index", [{"_id": n, "a": text} for n, text in enumerate(TEXTS)], EXPRESSIONS, {"a": 1}),
    indexed("hashed indexes", FIELDS, FILTERS, {"a": "hashed"}),
    indexed("hashed indexes", FIELDS, FILTERS, {"a": "hashed", "b": 1}),
    indexed("hashed indexes", FIELDS, FILTERS, {"b": 1, "a": "hashed"}),
    indexed("wildcard indexes", FIELDS, FILTERS, {"$**": 1}),
    indexed("wildcard indexes", NESTED, PATHS, {"$**": 1}),
    indexed("wildcard indexes", NESTED, PATHS, {"a.$**": 1}),
    indexed("wildcard indexes", NESTED, PATHS, {"$**": 1}, wildcardProjection={"a": 1, "c.d": 1}),
    indexed("wildcard indexes", NESTED, [path for path in PATHS if "a.0.b" not in path], {"$**": 1}, wildcardProjection={"a.b": 0}),
]
