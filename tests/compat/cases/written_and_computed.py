"""Values that count as they are written, not as they are evaluated, and errors that are reported
after others."""

import hashlib
import uuid

from bson import Binary, Decimal128, Int64, Regex

from compat.ask import CURSOR
from compat.case import commands, filters, pipelines, script

NAN = Decimal128("NaN")
NOBODY = Binary(hashlib.sha256(b"").digest())
NOTHING = {"d": {"$all": []}}


def grouped(key):
    """Determines from an error's code which engine groups."""
    return [{"$group": {"_id": key, "r": {"$first": {"$abs": "$t"}}}}]


def filter_of(query, indexes=("x_1",)):
    return {"planCacheSetFilter": "a", "query": query, "indexes": list(indexes)}


def expr(expression):
    return {"$expr": expression}


def lsid(number, **more):
    return {"id": Binary(uuid.UUID(int=number).bytes, 4), **more}


def images(enabled):
    return {"changeStreamPreAndPostImages": {"enabled": enabled}}


def over_time(**options):
    return [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": options}}}]


EXPRESSIONS = [
    {"$eq": ["$x", 1]}, {"$eq": ["$y", 1]}, {"$gt": ["$x", 1]}, {"$lt": [1, "$x"]}, {"$in": ["$x", [1]]}, {"$eq": ["$x", "$y"]}, {"$or": [{"$eq": ["$x", 5]}]}, {"$eq": ["$x", [1]]}, {"$eq": ["$x", None]},
    {"$and": [{"$eq": ["$x", 1]}, {"$gt": ["$y", 1]}]}, {"$or": [{"$eq": ["$x", 1]}, {"$gt": ["$y", 1]}]}, {"$or": [{"$eq": ["$x", 1]}, {"$in": ["$y", [1]]}]}, "$x", 1, {"$ne": ["$x", 1]}, {"$not": {"$eq": ["$x", 1]}},
]  # fmt: skip
JOIN = {"$lookup": {"from": "other", "as": "a", "localField": "a", "foreignField": "_"}}

BLOCKS = [
    pipelines(
        "second-engine/as written",
        [{"_id": 1, "l": 1, "n": Decimal128("3"), "t": "1", "a": [1], "o": {"x": 1}}],
        *(
            grouped(key)
            for key in (
                [], [1], ["$l"], {"a": []}, {"$literal": [1]}, {"$eq": ["$l", [1]]}, {"$size": [[1]]}, {"$isArray": [[1]]}, {"$isArray": [1]}, {"$in": [1, [1]]}, {"$arrayElemAt": [[1], 0]},
                {"$cond": [True, 1, {"$mergeObjects": []}]}, {"$cond": [True, 1, 2]}, {"$add": [1, {"$toInt": "1"}]}, {"$toInt": "1"}, {"$round": 1}, {"$year": "$$NOW"}, {"$dayOfYear": "$$NOW"},
                {"$and": [1, "$l"]}, {"$and": []}, {"$and": ["$l", "$n"]}, {"$or": ["$l"]}, {"$or": [0, "$l"]}, {"$not": "$l"}, {"$not": [[1]]}, {"$and": [False, {"$toInt": "$t"}]},
                {"$setUnion": ["$a", [1]]}, {"$filter": {"input": [1], "cond": 1}}, {"a": {"$toInt": "1"}}, {"$regexMatch": {"input": "a", "regex": "a"}},
            )
        ),
        *(
            [{"$group": {"_id": {f"${name}": options}}}]
            for name, options in (
                ("regexMatch", {"input": 2.0, "regex": "a"}), ("regexFind", {"input": 2.0, "regex": "a"}), ("regexMatch", {"input": 2.0, "regex": "$t"}), ("regexMatch", {"input": "$l", "regex": "a"}),
                ("cmp", ["$l", {"$regexFind": {"input": 2.0, "regex": "a"}}]), ("regexMatch", {"input": "$t", "regex": Regex("a", "i"), "options": "$t"}),
                ("regexMatch", {"input": "$t", "regex": "$t", "options": "i\0"}), ("regexMatch", {"input": "$t", "regex": "$n", "options": "$n"}),
                ("regexMatch", {"input": "$t", "regex": "$nope", "options": "$n"}), ("regexMatch", {"input": "$nope", "regex": "$n", "options": "$n"}), ("regexMatch", {"input": "$l", "regex": "$n", "options": "$n"}),
                *(("filter", {"input": field, "cond": 1, "limit": limit}) for field in ("$a", "$t", "$nope") for limit in (0, "$t", "$l", "$nope", None, 1.5)),
            )
        ),
        messages=True,
    ),
    pipelines(
        "second-engine/behind sorts",
        [{"_id": 0, "t": 1}, {"_id": 1, "a": 5, "z": 1}, {"_id": 2, "a": 5, "z": 1}],
        [JOIN], [{"$skip": 1}, JOIN], *([*before, JOIN, {"$sort": sort}] for before in ([], [{"$skip": 1}], [{"$limit": 5}]) for sort in ({"_id": -1}, {"a": 1, "_id": 1}, {"a.b": 1, "_id": 1}, {"t": 1, "_id": 1})),
        [{"$skip": 1}, JOIN, JOIN, {"$sort": {"_id": -1}}], [{"$skip": 1}, JOIN, {"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": True}}, {"$sort": {"_id": -1}}],
        [{"$skip": 1}, JOIN, {"$unwind": "$z"}, {"$sort": {"_id": -1}}], [{"$skip": 1}, JOIN, {"$set": {"b": 1}}, {"$sort": {"_id": -1}}], [{"$skip": 1}, JOIN, {"$sort": {"_id": -1}}, {"$limit": 1}],
    ),
    commands(
        "predicates/$expr that is written",
        [{"_id": 1, "d": [1]}],
        *(
            command
            for query in (
                {**NOTHING, **expr("$d")}, {"$and": [{"$and": [{**NOTHING, **expr("$d")}]}]}, {"$or": [{"d": 1}, {**NOTHING, **expr(1)}]}, {"$nor": [{**expr(True)}, {}]}, {"d": {"$in": []}, **expr({"$eq": ["$d", 1]})}, NOTHING,
            )
            for command in (
                {"find": "c", "filter": query, "projection": {"d.$": 1}}, {"find": "c", "filter": query, "projection": {"d": {"$elemMatch": {"$eq": 1}}}},
                {"update": "c", "updates": [{"q": query, "u": {"$set": {"x": 1}}, "upsert": True}]}, {"findAndModify": "c", "query": query, "update": {"$set": {"x": 1}}, "upsert": True},
                {"update": "c", "updates": [{"q": query, "u": {"$set": {"x": 1}}}]},
            )
        ),
        writes=True,
    ),
    commands(
        "$merge: constants in let",
        {"c": [{"_id": 1, "l": 5}], "other": []},
        *(
            {"aggregate": source, "pipeline": [{"$merge": {"into": "other", "whenMatched": [], "let": {"v": value}}}], "cursor": {}}
            for source in ("c", "none")
            for value in (
                {"$radiansToDegrees": {}}, {"$setEquals": [1, "$l"]}, {"$switch": {"branches": [{"case": "$$REMOVE", "then": 1}]}}, {"$mergeObjects": "x"}, {"$add": [1, 1]}, {"$divide": [1, 0]}, {"$nope": 1},
            )
        ),
        writes=True,
    ),
    commands(
        "$merge: one document after another",
        {"c": [{"_id": 0, "n": -2, "a": 1}, {"_id": 1, "n": Int64(-2), "a": 2}, {"_id": 2, "n": -2.0, "a": 3}, {"_id": 3, "n": 4}], "other": []},
        *(
            {"aggregate": "c", "pipeline": [{"$set": {"_id": "$n"}}, {"$merge": {"into": "other", "whenMatched": matched, "whenNotMatched": otherwise}}], "cursor": {}}
            for matched in ([{"$set": {"x": "$$new.n", "y": "$a"}}], [], "merge", "replace", "keepExisting")
            for otherwise in ("insert", "discard", "fail")
        ),
        writes=True,
    ),
    pipelines(
        "second-engine/what $first does not keep",
        [{"_id": 1, "n": 0}, {"_id": 3, "n": 0, "l": ""}],
        *(
            [*before, {"$group": {"_id": "$n", "r": {name: {"$reverseArray": "$l"}}}}]
            for before in ([], [{"$limit": 5}], [{"$set": {"x": 1}}])
            for name in ("$first", "$last", "$min", "$push")
        ),
        [{"$bucket": {"groupBy": "$n", "boundaries": [0, 1], "output": {"r": {"$first": {"$reverseArray": "$l"}}}}}],
    ),
    pipelines(
        "remainders of whole doubles",
        [{"_id": 1, "d": 5.0, "l": Int64(13), "i": 13, "h": 2.5, "b": 2.0**40, "m": -3.0}],
        *([{"$limit": 1}, {"$set": {"r": {"$mod": [one, other]}}}] for one in ("$l", "$i", "$d", "$m", Int64(-7)) for other in ("$d", "$l", "$i", "$h", "$b", "$m", -3.0)),
        *([{"$group": {"_id": {"$mod": [one, other]}}}] for one in ("$l", "$i", "$d", "$m", Int64(-7)) for other in ("$d", "$l", "$i", "$h", "$b", "$m", -3.0)),
    ),
    filters(
        "predicates/the place of a $nor of one",
        [{"_id": 7, "s": "1", "o": {}}, {"_id": 8, "s": "2", "o": 1, "d": "A"}],
        *(
            {operator: branches}
            for operator in ("$or", "$and", "$nor")
            for one in ({"$nor": [expr({"$toDate": "$s"})]}, {"$nor": [expr({"$toDate": "$s"}), {"o": 1}]})
            for other in ({"$nor": [{"o": 1}, {"d": "A"}]}, {"$nor": [{"o": 1}]}, {"d": {"$type": "int"}}, {"d": "A"})
            for branches in ([one, other], [other, one])
        ),
    ),
    pipelines(
        "windows/mistakes further on",
        [{"_id": 2, "c": "", "n": 4}, {"_id": 3, "n": 11}, {"_id": 4, "n": 3.0}, {"_id": 7, "c": [{}, 5], "n": 2}],
        *(
            [{"$setWindowFields": {"partitionBy": "$c.c", "sortBy": {"n": -1}, "output": output}}, {"$limit": limit}]
            for limit in (1, 2, 3, 4)
            for output in (
                {}, {"w": {"$rank": {}}}, {"w": {"$avg": "$n"}}, {"w": {"$locf": "$n"}}, {"w": {"$linearFill": "$n"}}, {"w": {"$shift": {"output": "$n", "by": 1}}}, {"w": {"$shift": {"output": "$n", "by": -1}}},
                *({"w": {"$avg": "$n", "window": {"documents": bounds}}} for bounds in ([-2, -2], [1, 1], [0, 2], ["unbounded", "current"], ["current", "unbounded"])),
            )
        ),
        *(
            over_time(**{name: argument}, **more)
            for name in ("$derivative", "$integral")
            for argument in ({"unit": "month", "input": 1}, {"unit": "month"}, {"unit": "zz", "input": 1}, {"unit": 5}, {"zz": 1}, 5, {"input": {"$zz": 1}})
            for more in ({"window": {"documents": [1, "current"]}}, {"window": {"documents": [1, "x"]}}, {"window": {"range": [1, 0], "unit": "zz"}}, {"window": 5}, {"window": {"documents": [0, 1]}}, {"zz": 5}, {})
        ),
    ),
    *(
        pipelines(
            f"windows/covariance {number}", [{"_id": at, "n": value} for at, value in enumerate(values)],
            *(over_time(**{name: pair}, **more) for name in ("$covariancePop", "$covarianceSamp") for pair in (["$n", 1], [1, "$n"], ["$n", "$n"]) for more in ({}, {"window": {"documents": [-1, 0]}})),
        )
        for number, values in enumerate(([NAN, -2, 0.0], [NAN, 1, 2, 3], [NAN, Decimal128("1"), 0.0], [Decimal128("Infinity"), 1, 2], [1, NAN], [float("nan"), 1.5, 2]))
    ),
    script(
        "commands: index filters of expressions",
        {"create": "a"}, {"createIndexes": "a", "indexes": [{"key": {"x": 1}, "name": "x_1"}]},
        *(
            command
            for first in EXPRESSIONS
            for second in EXPRESSIONS
            for command in (filter_of(expr(first)), {"planCacheClearFilters": "a", "query": expr(second)}, {"planCacheListFilters": "a"}, {"planCacheClearFilters": "a"})
        ),
        messages=False,
    ),
    script(
        "commands: images of changes",
        *({"create": f"c{number}", **options} for number, options in enumerate((
            images(True), images(False), {"recordPreImages": True}, {"recordPreImages": True, **images(False)}, {"recordPreImages": False, **images(True)}, {"recordPreImages": True, **images(True)},
            {"capped": True, "size": 4096, "max": 5, "autoIndexId": True, **images(True), "validator": {"a": 1}, "storageEngine": {"wiredTiger": {}}, "collation": {"locale": "de"}},
            {"clusteredIndex": {"key": {"_id": 1}, "unique": True}, **images(True)}, {"viewOn": "c0", **images(True)}, {"viewOn": "c0", **images(False)}))),
        {"create": "c0", **images(True)}, {"create": "c0", **images(False)}, {"create": "c0"}, {"create": "t", "timeseries": {"timeField": "t"}}, {"create": "v", "viewOn": "c0"}, {"listCollections": 1, "filter": {"name": {"$regex": "^c"}}, "comment": "in any order"},
        *(
            command
            for number in (0, 2, 1, 6, 7)
            for options in (
                {"recordPreImages": True, **images(True)}, {"recordPreImages": False}, images(False), images(True), {"recordPreImages": True}, images(False), {"recordPreImages": True, "validator": {"b": 1}}, {"validationLevel": "off", **images(True)},
                {"recordPreImages": True, **images(False)}, {"recordPreImages": False, **images(True)}, {"recordPreImages": None, "changeStreamPreAndPostImages": None},
            )
            for command in ({"collMod": f"c{number}", **options}, {"listCollections": 1, "filter": {"name": f"c{number}"}})
        ),
        *({"collMod": name, **options} for name in ("t", "v", "none") for options in (images(True), images(False), {"recordPreImages": True}, {"recordPreImages": True, **images(True)})),
        {"aggregate": "c1", "pipeline": [{"$out": "c0"}], "cursor": {}}, {"convertToCapped": "c0", "size": 4096}, {"listCollections": 1, "filter": {"name": "c0"}},
        *({**command, "$db": database} for database in ("admin", "local", "config") for command in (
            {"create": "zz", **images(True)}, {"create": "zz", **images(True), "validator": {"$a": 1}}, {"create": "zz", "recordPreImages": True}, {"drop": "zz"}, {"create": "zz"}, {"collMod": "zz", **images(True)},
            {"collMod": "zz", "recordPreImages": True}, {"collMod": "zz", **images(False)}, {"collMod": "zz", "cappedSize": 5, **images(True)}, {"drop": "zz"})),
    ),
    script(
        "commands: cursors of sessions",
        {"insert": "a", "documents": [{"_id": number} for number in range(9)]},
        *(
            command
            for ending in (
                {"endSessions": [lsid(1)]}, {"killSessions": [lsid(2)]}, {"killSessions": [lsid(1)]}, {"killSessions": []}, {"killSessions": [lsid(1, uid=NOBODY)]}, {"killSessions": [lsid(1, uid=Binary(bytes(32)))]},
                {"killSessions": [lsid(1, uid=5)]}, {"killSessions": [lsid(1, uid=Binary(b"1"))]}, {"killAllSessions": []}, {"killAllSessionsByPattern": []}, {"killAllSessionsByPattern": [{}]},
                *(
                    {"killAllSessionsByPattern": [pattern]}
                    for pattern in (
                        {"lsid": lsid(1)}, {"lsid": lsid(1, uid=NOBODY)}, {"lsid": lsid(2, uid=NOBODY)}, {"lsid": lsid(1, uid=Binary(bytes(32)))}, {"lsid": lsid(1, uid=5)}, {"lsid": lsid(1, uid=Binary(b"1"))}, {"lsid": {}}, {"lsid": 5},
                        {"lsid": {"uid": NOBODY}}, {"lsid": lsid(1, uid=NOBODY, zz=1)}, {"uid": NOBODY}, {"uid": Binary(bytes(32))}, {"zz": 1}, {"users": []}, {"lsid": lsid(1, uid=NOBODY), "uid": NOBODY},
                    )
                ),
            )
            for command in ({"find": "a", "batchSize": 2, "lsid": lsid(1)}, {**ending, "$db": "admin"}, {"getMore": CURSOR, "collection": "a", "batchSize": 2, "lsid": lsid(1)})
        ),
        messages=False,
    ),
    script(
        "names that end in a dot, and long ones",
        *(
            command
            for name in ("a.", "x" * 300)
            for command in (
                {"find": name}, {"count": name}, {"distinct": name, "key": "a"}, {"aggregate": name, "pipeline": [], "cursor": {}}, {"aggregate": "none", "pipeline": [{"$unionWith": name}], "cursor": {}}, {"listIndexes": name}, {"validate": name},
                {"delete": name, "deletes": [{"q": {}, "limit": 0}]}, {"update": name, "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}, {"findAndModify": name, "remove": True}, {"insert": name, "documents": [{"_id": 1}]},
                {"create": name}, {"find": name}, {"createIndexes": name, "indexes": [{"key": {"a": 1}, "name": "a"}]}, {"listIndexes": name}, {"dropIndexes": name, "index": "*"}, {"collMod": name}, {"listCollections": 1, "nameOnly": True},
                {"update": name, "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 1}}, "upsert": True}]}, {"find": name}, {"drop": name}, {"listCollections": 1},
            )
        ),
        messages=False,
    ),
    script(
        "commands: keys of indexes",
        {"insert": "a", "documents": [{"_id": 1, "x": [1, 2, 2], "y": "red fish", "g": [1, 2]}, {"_id": 2, "x": [], "y": None}, {"_id": 3, "g": {"type": "Point", "coordinates": [1, 2]}}, {"_id": 4, "x": {"y": [1, [2]]}}]},
        *(
            command
            for name, key, options in (
                ("plain", {"x": 1}, {}), ("compound", {"x": 1, "y": -1}, {}), ("inner", {"x.y": 1}, {}), ("sparse", {"y": 1}, {"sparse": True}), ("partial", {"_id": 1, "y": 1}, {"partialFilterExpression": {"_id": {"$gt": 2}}}),
                ("hashed", {"y": "hashed"}, {}), ("words", {"y": "text"}, {}), ("flat", {"f": "2d"}, {}),
            )
            for command in ({"createIndexes": "a", "indexes": [{"key": key, "name": name, **options}]}, {"validate": "a"})
        ),
        messages=False,
    ),
]  # fmt: skip
