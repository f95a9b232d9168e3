"""Collations: valid definitions, and every comparison of strings that uses one."""

from bson import Decimal128, Int64

from compat.case import commands, differs, script

EN2 = {"locale": "en", "strength": 2}
EN1 = {"locale": "en", "strength": 1}

WORDS = ["a", "A", "á", "b", "B", "ab", "a-b", "a b", "10", "2", "cote", "côte", "coté", "côté", "z", "å", "ä", "ö", "æ", "", "Zoë", "zoe"]
DOCUMENTS = [{"_id": number, "a": word, "g": number % 4} for number, word in enumerate(WORDS)] + [
    {"_id": 100, "a": ["A", "x"]}, {"_id": 101, "a": {"b": "A"}}, {"_id": 102, "a": {"B": "a"}}, {"_id": 103, "a": 5}, {"_id": 104},
    {"_id": 105, "a": None}, {"_id": 106, "a": [["A"]]},
]  # fmt: skip

COLLATIONS = [
    EN2, EN1, {"locale": "en"}, {"locale": "en", "caseFirst": "upper"}, {"locale": "en", "caseFirst": "lower"},
    {"locale": "en", "strength": 1, "caseLevel": True}, {"locale": "en", "numericOrdering": True}, {"locale": "en", "strength": 4},
    {"locale": "en", "strength": 5}, {"locale": "en", "alternate": "shifted"}, {"locale": "en", "alternate": "shifted", "strength": 4},
    {"locale": "en", "alternate": "shifted", "maxVariable": "space"}, {"locale": "fr", "backwards": True}, {"locale": "fr_CA"},
    {"locale": "fr"}, {"locale": "sv"}, {"locale": "da"}, {"locale": "de"}, {"locale": "de@collation=phonebook"}, {"locale": "fi"},
    {"locale": "es"}, {"locale": "es@collation=traditional"}, {"locale": "simple"}, {}, {"locale": "en", "normalization": True},
]  # fmt: skip

FILTERS = [
    {"a": "a"}, {"a": {"$ne": "a"}}, {"a": {"$in": ["a", "zoe", 5]}}, {"a": {"$nin": ["a"]}}, {"a": {"$gt": "a"}}, {"a": {"$lte": "B"}},
    {"a": {"$gte": "a", "$lt": "b"}}, {"a": {"$all": ["a", "X"]}}, {"a": {"$elemMatch": {"$eq": "a"}}}, {"a": {"b": "a"}}, {"a": ["a", "X"]},
    {"a": {"$regex": "^a"}}, {"a": {"$not": {"$eq": "a"}}}, {"a.b": "a"}, {"$or": [{"a": "Z"}, {"a": "B"}]}, {"$expr": {"$eq": ["$a", "a"]}},
    {"$expr": {"$in": ["$a", ["a", "B"]]}}, {"$expr": {"$lt": ["$a", "b"]}}, {"a": ""}, {"a": {"$eq": None}}, {"$jsonSchema": {"properties": {"a": {"enum": ["a"]}}}},
    {"$nor": [{"a": "a"}]}, {"a": {"$type": "string"}}, {"a": {"$gt": {"b": "a"}}},
]  # fmt: skip

BAD = [
    1, {"locale": 1}, {"locale": "xx"}, {"strength": 1}, {"locale": "en", "strength": 0}, {"locale": "en", "strength": 6},
    {"locale": "en", "strength": "x"}, {"locale": "en", "strength": 2.5}, {"locale": "en", "strength": Int64(2)},
    {"locale": "en", "strength": Decimal128("2")}, {"locale": "en", "caseLevel": 1}, {"locale": "en", "caseFirst": "x"},
    {"locale": "en", "caseFirst": 1}, {"locale": "en", "caseFirst": "upper", "strength": 1}, {"locale": "en", "alternate": "x"},
    {"locale": "en", "maxVariable": "x"}, {"locale": "en", "numericOrdering": 1}, {"locale": "en", "backwards": 1},
    {"locale": "en", "backwards": True, "strength": 1}, {"locale": "en", "foo": 1}, {"locale": "en", "version": 1},
    {"locale": "en", "version": "57.1"}, {"locale": "en", "version": "60"}, {"locale": "simple", "strength": 2}, {"locale": ""},
    {"locale": "en", "strength": None}, {"locale": None}, {"locale": "EN"}, {"locale": "en-US"}, {"locale": "en_US"}, {"locale": "en_GB"},
    {"locale": "en\0"}, {"locale": "en", "strength": float("nan")}, {"locale": "en", "strength": -1},
]  # fmt: skip


def find(filter, collation, **options):
    return {"find": "c", "filter": filter, "collation": collation, "projection": {"_id": 1}, "batchSize": 1000, **options}


def aggregate(*stages, collation=EN2):
    return {"aggregate": "c", "pipeline": list(stages), "cursor": {"batchSize": 1000}, "collation": collation}


def update(q, u, **options):
    return {"update": "c", "updates": [{"q": q, "u": u, "collation": EN2, **options}]}


SORTED = {"$sort": {"_id": 1}}

BLOCKS = [
    # Quotation marks have places of their own, as in ICU 57.
    *(commands("collation: quotation marks", [{"_id": number, "s": text} for number, text in enumerate(["O'Brien", "O’Brien", "O‘Brien", "o’brién", "OBrien", "d'E", "d’A",
        '"a"', "“a”", "„a“", "«a»", "‹a›", "O’", "O'Z", "’", "'"])], *({"find": "c", "filter": condition, "sort": {"s": 1, "_id": 1}, "collation": {"locale": locale, **more}}
            for condition in ({}, {"s": "O'Brien"}, {"s": {"$in": ["O’Brien", "“a”"]}}, {"s": {"$gt": "O'Brien"}}, {"s": {"$lte": "o’brien"}}) for locale in ("en", "fr", "sv")
            for more in ({"strength": 1}, {"strength": 2}, {}, {"alternate": "shifted"}, {"alternate": "shifted", "maxVariable": "space"})),
        {"distinct": "c", "key": "s", "collation": {"locale": "en", "strength": 1}},
        {"aggregate": "c", "pipeline": [{"$group": {"_id": "$s", "n": {"$sum": 1}}}, {"$group": {"_id": None, "n": {"$push": "$n"}, "groups": {"$sum": 1}}},
            {"$project": {"groups": 1}}], "cursor": {}, "collation": {"locale": "en", "strength": 1}}, setup=setup)
        for setup in ([], [{"createIndexes": "c", "indexes": [{"key": {"s": 1}, "name": "s", "collation": {"locale": "en", "strength": 1}}]}])),
    commands("collation: Thai ignores spaces", [{"_id": number, "s": text} for number, text in enumerate(["a b", "a-b", "aa", "ab", "ac"])],
        *({"find": "c", "sort": {"s": 1, "_id": 1}, "collation": {"locale": "th", **more}} for more in ({}, {"alternate": "non-ignorable"}, {"alternate": "shifted"}))),
    commands(
        "collation filters",
        DOCUMENTS,
        *(find(filter, EN2) for filter in FILTERS),
        *(find({"a": "a"}, collation) for collation in COLLATIONS),
        *(find({"a": {"$gt": "cote"}}, collation) for collation in COLLATIONS),
        *({"count": "c", "query": {"a": {"$lt": "b"}}, "collation": collation} for collation in COLLATIONS),
    ),
    commands(
        "collation sorts",
        DOCUMENTS,
        *(find({}, collation, sort={"a": 1, "_id": 1}) for collation in COLLATIONS),
        *(find({}, collation, sort={"a": -1, "_id": 1}) for collation in COLLATIONS),
        *({"distinct": "c", "key": "a", "collation": collation} for collation in COLLATIONS),
    ),
    commands(
        "collation aggregate",
        {"c": DOCUMENTS, "d": [{"_id": 1, "k": "A"}, {"_id": 2, "k": "zoë"}]},
        aggregate({"$match": {"a": "A"}}, SORTED),
        aggregate({"$group": {"_id": {"$toLower": {"$toString": {"$ifNull": ["$g", "x"]}}}, "s": {"$addToSet": {"$cond": [{"$lt": ["$_id", 2]}, "$a", "Q"]}}}}, SORTED),
        aggregate({"$match": {"_id": {"$lt": 5}}}, {"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}),
        aggregate({"$match": {"_id": {"$lt": 22}}}, {"$group": {"_id": "$g", "x": {"$max": "$a"}, "n": {"$min": "$a"}}}, SORTED),
        aggregate({"$match": {"_id": {"$lt": 22}}}, {"$group": {"_id": "$g", "t": {"$topN": {"n": 2, "sortBy": {"a": 1}, "output": "$a"}}}}, SORTED, collation=EN1),
        aggregate({"$match": {"_id": {"$lt": 22}}}, {"$group": {"_id": "$g", "t": {"$minN": {"n": 2, "input": "$a"}}}}, SORTED),
        aggregate({"$match": {"_id": {"$lt": 22}}}, {"$bucket": {"groupBy": "$a", "boundaries": ["a", "B", "ZZ"], "default": "other"}}),
        aggregate({"$match": {"_id": {"$lt": 22}}}, {"$bucketAuto": {"groupBy": "$a", "buckets": 3}}),
        aggregate({"$match": {"_id": {"$lt": 5}}}, {"$sortByCount": "$a"}, {"$sort": {"count": 1, "_id": 1}}),
        aggregate({"$lookup": {"from": "d", "localField": "a", "foreignField": "k", "as": "d"}}, SORTED),
        aggregate({"$lookup": {"from": "d", "let": {"x": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$k", "$$x"]}}}], "as": "d"}}, SORTED),
        aggregate({"$match": {"_id": 0}}, {"$project": {
            "cmp": {"$cmp": ["$a", "A"]}, "eq": {"$eq": ["$a", "A"]}, "in": {"$in": ["$a", ["B", "A"]]}, "at": {"$indexOfArray": [["B", "A"], "$a"]},
            "union": {"$setUnion": [["a", "b"], ["B", "C"]]}, "inter": {"$setIntersection": [["a", "b"], ["B", "C"]]},
            "diff": {"$setDifference": [["a", "b"], ["B"]]}, "subset": {"$setIsSubset": [["a"], ["A", "b"]]}, "equal": {"$setEquals": [["a"], ["A"]]},
            "max": {"$max": ["a", "B", "C"]}, "min": {"$min": ["b", "B", "A"]}, "sorted": {"$sortArray": {"input": ["b", "A", "a", "B"], "sortBy": 1}},
            "minN": {"$minN": {"n": 2, "input": ["b", "A", "a", "B"]}}, "switch": {"$switch": {"branches": [{"case": {"$eq": ["$a", "A"]}, "then": 1}], "default": 0}},
            "filter": {"$filter": {"input": ["a", "A", "b"], "cond": {"$eq": ["$$this", "a"]}}}, "folded": {"$eq": ["x", "X"]}, "case": {"$strcasecmp": ["a", "A"]},
        }}),
        aggregate({"$unionWith": {"coll": "d", "pipeline": [{"$match": {"k": "a"}}]}}, {"$match": {"$or": [{"k": "a"}, {"a": "ZOE"}]}}, SORTED),
        aggregate({"$facet": {"x": [{"$match": {"a": "A"}}, SORTED]}}),
    ),
    commands(
        "collation writes",
        [{"_id": 1, "a": "x", "l": ["a", "B"], "n": [{"k": "A", "v": 1}]}, {"_id": 2, "a": "X", "l": [], "n": []}],
        update({"a": "X"}, {"$set": {"f": 1}}, multi=True),
        update({"_id": 1}, {"$addToSet": {"l": "A"}}),
        update({"_id": 1}, {"$addToSet": {"l": {"$each": ["b", "c", "C"]}}}),
        update({"_id": 1}, {"$pull": {"l": "A"}}),
        update({"_id": 1}, {"$pull": {"n": {"k": "a"}}}),
        update({"_id": 1}, {"$pullAll": {"l": ["A", "b"]}}),
        update({"_id": 1}, {"$push": {"l": {"$each": ["A", "b", "C"], "$sort": 1}}}),
        update({"_id": 1}, {"$min": {"a": "W"}}),
        update({"_id": 1}, {"$max": {"a": "Y"}}),
        update({"_id": 1}, {"$set": {"n.$[e].v": 2}}, arrayFilters=[{"e.k": "a"}]),
        update({"_id": 1, "l": "A"}, {"$set": {"l.$": "hit"}}),
        update({"a": "Y"}, {"$set": {"f": 1}}, upsert=True),
        update({"a": "X"}, [{"$set": {"f": {"$eq": ["$a", "x"]}}}], multi=True),
        {"delete": "c", "deletes": [{"q": {"a": "X"}, "limit": 0, "collation": EN2}]},
        {"findAndModify": "c", "query": {"a": "X"}, "update": {"$set": {"f": 1}}, "sort": {"a": 1, "_id": -1}, "collation": EN2},
        {"findAndModify": "c", "query": {"a": "X"}, "remove": True, "sort": {"_id": 1}, "collation": EN2},
        writes=True,
    ),
    commands("collation errors", [{"_id": 1}], *({"find": "c", "collation": bad} for bad in BAD), messages=True),
    script(
        "collation defaults",
        *(command for bad in BAD for command in ({"create": "n", "collation": bad}, {"drop": "n"})),
        {"create": "c", "collation": EN2},
        {"listCollections": 1},
        {"listIndexes": "c"},
        {"insert": "c", "documents": [{"_id": "a", "x": "A"}, {"_id": "b", "x": "B"}, {"_id": 3, "x": "a"}]},
        {"find": "c", "filter": {"x": "a"}},
        {"find": "c", "filter": {"x": "a"}, "collation": {"locale": "simple"}},
        {"find": "c", "filter": {"_id": "A"}},
        {"find": "c", "filter": {"_id": {"$in": ["A", "B"]}}},
        {"find": "c", "filter": {"_id": {"$gt": "A"}}},
        {"find": "c", "sort": {"x": 1, "_id": 1}},
        {"find": "c", "sort": {"_id": -1}},
        {"distinct": "c", "key": "x"},
        {"count": "c", "query": {"x": "A"}},
        {"aggregate": "c", "pipeline": [{"$group": {"_id": "$x"}}, {"$sort": {"_id": 1}}], "cursor": {}},
        {"update": "c", "updates": [{"q": {"x": "a"}, "u": {"$set": {"y": "q"}}, "multi": True}]},
        {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]},
        {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_simple", "collation": {"locale": "simple"}}]},
        {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_fr", "collation": {"locale": "fr"}}]},
        {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_bad", "collation": {"locale": "xx"}}]},
        {"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "fr"}}]},
        {"listIndexes": "c"},
        {"find": "c", "filter": {"x": "a"}, "sort": {"_id": 1}},
        {"find": "c", "filter": {"x": "a"}, "sort": {"x": 1, "_id": 1}, "collation": {"locale": "fr"}},
        {"find": "c", "filter": {"x": {"$gte": "a", "$lt": "b"}}, "sort": {"_id": 1}},
        {"find": "c", "filter": {"x": "a"}, "hint": "x_simple", "sort": {"_id": 1}},
        {"delete": "c", "deletes": [{"q": {"x": "A"}, "limit": 0}]},
        {"find": "c"},
        messages=True,
    ),
]

NO_RULES = "the Unicode data at hand has no rules for searching, for characters by their old encodings, and for a few phonetic orders"

BLOCKS += [
    commands(
        "collation kinds", DOCUMENTS[:12],
        *(find({"a": {"$gt": "a"}}, {"locale": locale}, sort={"a": 1, "_id": 1}) for locale in (
            "de@collation=phonebook", "es@collation=traditional", "zh@collation=stroke", "zh_Hant@collation=pinyin", "sv@collation=standard", "en@collation=eor", "fr@collation=emoji",
            "en@collation=phonebook", "en@collation=", "en@collation=nope", "xx@collation=search", "ln@collation=search2", "en@search", "zh@collation=gb2312")),
        *(differs(find({}, {"locale": locale}, sort={"_id": 1}), NO_RULES) for locale in (
            "en@collation=search", "de@collation=search", "ko@collation=searchjl", "zh@collation=big5han", "zh@collation=gb2312han", "zh_Hant@collation=big5han", "ln@collation=phonetic")),
    ),
]
