"""Pipelines that read some of a document's fields, beside unusual ones: unread fields are dropped
early, which must not change results."""

from bson import Binary, Decimal128, Regex

from compat.case import commands, pipelines

DOCUMENTS = [
    {"_id": i, "a": i % 3, "b": {"c": [i, {"d": "x"}], "$e": 1}, "$f": i, "l": [i, i + 1], "q": "quote \" and \\ back { } [ ]", "r": Regex("a\"b"), "bin": Binary(b"\0{"),
     "dec": Decimal128("1.5"), "": i, "k.l": 5, "deep": {"e": {"e": {"e": [[[i]]]}}}, "n": None, "a ": "no", "last": 10 - i, "pad": "z" * (2000 if i % 2 else 5)}
    for i in range(7)
]  # fmt: skip
OTHER = [{"_id": i, "a": i, "k": i % 3, "pad": "y" * 10} for i in range(4)]

SORTED = {"$sort": {"_id": 1}}
GROUPS = (
    {"_id": "$a", "n": {"$sum": "$last"}}, {"_id": "$b.c.d", "n": {"$push": "$q"}}, {"_id": None, "x": {"$first": "$$ROOT"}}, {"_id": None, "x": {"$last": "$$CURRENT"}},
    {"_id": "$$ROOT.a", "n": {"$sum": 1}}, {"_id": "$$CURRENT.a", "n": {"$sum": 1}}, {"_id": {"$getField": "$f"}}, {"_id": {"$getField": {"$literal": "$f"}}}, {"_id": {"$getField": "k.l"}},
    {"_id": {"$getField": "a"}, "n": {"$sum": 1}}, {"_id": None, "t": {"$top": {"sortBy": {"last": 1}, "output": "$a"}}}, {"_id": None, "t": {"$bottomN": {"n": 2, "sortBy": {"last": 1}, "output": ["$a", "$q"]}}},
    {"_id": {"$let": {"vars": {"x": "$a", "CURRENT": "$b"}, "in": ["$$x", "$c"]}}}, {"_id": {"$map": {"input": "$l", "as": "i", "in": {"$add": ["$$i", "$last"]}}}}, {"_id": {"x": "$a", "y": {"z": "$n"}}},
    {"_id": {"$setField": {"field": "z", "input": "$$ROOT", "value": "$a"}}}, {"_id": {"$literal": "$a"}}, {"_id": {"$objectToArray": "$deep"}}, {"_id": "$bin", "r": {"$addToSet": "$r"}}, {"_id": "$dec"},
    {"_id": {"$reduce": {"input": "$b.c", "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}}, {"_id": {"$cond": ["$nope", "$a", "$last"]}}, {"_id": {"$ifNull": ["$n", "$q"]}}, {"_id": "$nope"},
)  # fmt: skip
FRONTS = ([], [{"$match": {"last": {"$gt": 5}}}], [{"$sort": {"last": 1}}], [{"$sort": {"b.c": -1, "_id": 1}}, {"$limit": 4}], [{"$unwind": "$l"}], [{"$set": {"a": "$last", "z.y": 1}}],
          [{"$project": {"q": 0}}], [{"$unset": "last"}], [{"$match": {"$expr": {"$gt": ["$last", "$a"]}}}, {"$skip": 1}], [{"$lookup": {"from": "o", "localField": "a", "foreignField": "k", "as": "n"}}])  # fmt: skip
PROJECTIONS = ({"a": 1}, {"b.c": 1, "_id": 0}, {"x": "$b.c.d"}, {"b": {"c": 1}}, {"q": 1, "y": {"$concat": ["$q", "!"]}}, {"_id": 0, "z": "$$ROOT.last"}, {"last": 1, "a": 1}, {"_id": 1}, {"deep.e": 1, "l": {"$slice": ["$l", 1]}}, {"n": {"$size": "$l"}})

# Large and small documents, some without the sort field; the first read field is first, last,
# within arrays or missing.
LARGE = [
    {"_id": i, "s": "x" * (3000 if i % 4 else 3), **({"r": (i * 7) % 11} if i % 3 else {}), "$d": i % 2, "a.b": i, "o": {"p": [i % 4, "\\\"}{"]}, "pad": ["{", {"k": "]"}] * 40,
     **({"late": [i % 5, 7]} if i % 2 else {"late": i % 5})}
    for i in range(24)
]  # fmt: skip
FILTERS = ({}, {"late": 7}, {"late": {"$gt": 2}, "o.p": 1}, {"r": None}, {"r": {"$exists": False}, "nope": None}, {"$or": [{"late": 1}, {"r": {"$in": [3, 8]}}]}, {"$expr": {"$gt": ["$late", "$r"]}},
           {"$nor": [{"o.p.0": 2}]}, {"$comment": "c", "late": {"$ne": 7}}, {"s": {"$regex": "^x{5}"}})  # fmt: skip
ORDERS = ({"_id": 1}, {"late": -1, "_id": 1}, {"r": 1, "_id": -1}, {"o.p": 1, "late": 1, "_id": 1})

# Documents of several pages, and indexes of which one has several keys per document; the read
# fields are on the first page, or not.
INDEXED = [
    {"_id": i, "k": i % 3, "m": [i % 4, (i * 5) % 7, "x"][: i % 4], "r": (i * 7) % 23, "o": {"p": i % 5}, **({"odd": i} if i % 9 == 0 else {}), "s": "y" * 7000, "late": (i * 11) % 17}
    for i in range(120)
]  # fmt: skip
INDEXES = [{"name": "k", "key": {"k": 1}}, {"name": "m", "key": {"m": 1}}, {"name": "mr", "key": {"m": -1, "late": 1}}, {"name": "part", "key": {"o.p": 1}, "partialFilterExpression": {"r": {"$gt": 3}}}]  # fmt: skip

BLOCKS = [
    commands(
        "finds by indexes of large documents", {"c": INDEXED}, {"createIndexes": "c", "indexes": INDEXES},
        *({"find": "c", "filter": where, "sort": order, "projection": {"s": 0}, **rest}
          for where in ({"k": 1}, {"k": 2, "r": {"$lt": 8}}, {"m": 3}, {"m": {"$in": [1, "x"]}, "r": {"$gt": 5}}, {"m": {"$gte": 0}, "late": {"$lt": 9}}, {"m": 0, "odd": None}, {"o.p": 2, "r": {"$gt": 9}},
                        {"k": 0, "o.p": {"$ne": 4}, "m": {"$size": 2}}, {"k": 1, "$or": [{"m": 2}, {"r": 5}]}, {"_id": {"$gt": 40}, "r": {"$mod": [4, 1]}})
          for order in ({"_id": 1}, {"r": 1, "_id": 1}, {"r": -1, "_id": 1}, {"late": 1, "_id": -1}, {"odd": -1, "_id": 1})
          for rest in ({}, {"limit": 4}, {"skip": 3, "limit": 2})),
    ),
    commands(
        "finds that look at some fields first", {"c": LARGE},
        *({"find": "c", "filter": where, "sort": order, **rest} for where in FILTERS for order in ORDERS
          for rest in ({}, {"limit": 3}, {"skip": 2, "limit": 4, "projection": {"late": 1, "$d": 1}}, {"limit": 5, "projection": {"s": 0, "pad": 0}})),
        *({"find": "c", "filter": {"late": 7}, "sort": {"_id": 1}, "limit": 2, "projection": projection} for projection in ({"late.$": 1}, {"late": {"$slice": 1}}, {"pad": {"$elemMatch": {"k": "]"}}}, {"x": "$o.p"}, {"a.b": 1}, {"_id": 0, "r": 1})),
    ),
    pipelines(
        "fields that are read", {"c": DOCUMENTS, "o": OTHER},
        *([SORTED, *front, {"$group": group}, {"$sort": {"_id": 1}}] for group in GROUPS for front in FRONTS[:1]),
        *([*front, {"$sort": {"last": 1, "l": 1}}, {"$group": group}, {"$sort": {"_id": 1}}] for group in GROUPS for front in FRONTS),
        *([*front, {"$sort": {"last": 1, "l": 1}}, {"$project": projection}] for projection in PROJECTIONS for front in FRONTS),
        *([*front, {"$sort": {"last": 1, "l": 1}}, {"$replaceWith": root}] for root in ({"a": "$a"}, "$b", "$$ROOT", {"$mergeObjects": ["$b", {"z": "$q"}]}, {"$arrayToObject": [[["k", "$q"]]]}) for front in FRONTS),
        *([*front, {"$count": "n"}] for front in FRONTS), *([*front, {"$sortByCount": "$a"}, {"$sort": {"_id": 1}}] for front in FRONTS),
        *([*front, {"$bucket": {"groupBy": "$last", "boundaries": [0, 5, 8, 20], "output": {"q": {"$sum": "$a"}}}}] for front in FRONTS if front[:1] != [{"$unset": "last"}]),
        *([*front, {"$bucketAuto": {"groupBy": "$last", "buckets": 2, "output": {"q": {"$sum": "$a"}}}}] for front in FRONTS),
    ),
    commands(
        "limits in front of joins", {"c": DOCUMENTS, "o": OTHER},
        *({"aggregate": "c", "pipeline": [{"$sort": {"last": 1}}, stage, *behind], "cursor": {}}
          for stage in ({"$lookup": {"from": "o", "localField": "a", "foreignField": "k", "as": "x"}}, {"$lookup": {"from": "o", "let": {"z": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$k", "$$z"]}}}, SORTED], "as": "a"}},
                        {"$lookup": {"from": "o", "let": {"z": {"$divide": [1, "$a"]}}, "pipeline": [{"$project": {"z": "$$z"}}, SORTED, {"$limit": 1}], "as": "x"}},
                        {"$graphLookup": {"from": "o", "startWith": "$a", "connectFromField": "k", "connectToField": "_id", "maxDepth": 0, "as": "x"}})
          for behind in ([{"$limit": 2}], [{"$skip": 2}, {"$limit": 1}], [{"$project": {"x": 1}}, {"$limit": 3}], [{"$unwind": {"path": "$x", "preserveNullAndEmptyArrays": True}}, {"$sort": {"last": 1, "x._id": 1}}, {"$limit": 2}], [{"$limit": 1}, {"$count": "n"}])),
    ),
]
