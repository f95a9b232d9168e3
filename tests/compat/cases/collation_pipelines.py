"""Collations in pipelines: stages that compare strings, and views and collections with their own
collation."""

from compat.case import commands, script

EN2 = {"locale": "en", "strength": 2}
EN1 = {"locale": "en", "strength": 1}
FR = {"locale": "fr"}
NUMERIC = {"locale": "en", "numericOrdering": True}
SIMPLE = {"locale": "simple"}
BY_ID = {"$sort": {"_id": 1}}

WORDS = ["a", "A", "b", "B", "á", "c10", "C2", "c9", "zz", "ZZ"]
PLAIN = [{"_id": i, "s": word, "g": "xXyY"[i % 4], "l": [word, word.upper(), "b"], "d": {"k": word}, "n": i} for i, word in enumerate(WORDS)]
OTHER = [{"_id": "A", "s": "A", "to": "B", "v": 1}, {"_id": "b", "s": "b", "to": ["C10", "zz"], "v": 2}, {"_id": "c10", "s": "c10", "to": None, "v": 3},
         {"_id": "Zz", "s": "Zz", "to": "a", "v": 4}, {"_id": "q", "s": ["a", "Á"], "to": "Q", "v": 5}]  # fmt: skip


def aggregate(*stages, coll="c", **options):
    return {"aggregate": coll, "pipeline": list(stages), "cursor": {"batchSize": 1000}, **options}


def each(*stages):
    """With several collations, and without one."""
    return [aggregate(*stages, **({"collation": collation} if collation else {})) for collation in (None, EN2, EN1, NUMERIC)]


def window(output, **options):
    return {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": output}, **options}}


def value(expression):
    return each(BY_ID, {"$project": {"r": expression}})


def group(accumulator):
    return each(BY_ID, {"$group": {"_id": None, "r": accumulator}}) + each(BY_ID, {"$group": {"_id": {"$toLower": "$g"}, "r": accumulator}}, BY_ID)


def graph(start="$s", **options):
    return {"$graphLookup": {"from": "o", "startWith": start, "connectFromField": "to", "connectToField": "s", "as": "r", **options}}


def lookup(**options):
    return {"$lookup": {"from": "o", "as": "r", **options}}


TWICE = {"$let": {"vars": {"x": "$s"}, "in": {"$eq": ["$$x", "a"]}}}

BLOCKS = [
    # The default of the collection that is written to decides which document is met.
    *(commands("collation: $merge", {"c": [{"_id": "FOO", "s": "A", "v": 2}], "d": [{"_id": "foo", "s": "a", "v": 1}]},
        *(aggregate(*stages, {"$merge": {"into": target, "whenMatched": matched, **on}}, **more) for target in ("d", "e") for matched in ("merge", "replace",
            "keepExisting", "fail", [{"$set": {"z": 1}}]) for stages, on in (([], {}), ([{"$project": {"_id": 0}}], {"on": "s"})) for more in ({}, {"collation": {"locale": "en", "strength": 2}})),
        setup=[{"create": "e", "collation": {"locale": "en", "strength": 2}}, {"insert": "e", "documents": [{"_id": "foo", "s": "a", "v": 1}]},
            *({"createIndexes": name, "indexes": [{"key": {"s": 1}, "name": "s", "unique": True}]} for name in ("d", "e"))], writes=True),),
    # Documents whose `_id`s differ by case only are two, whatever the collation.
    commands("collation: $graphLookup", {"c": [{"_id": 1, "s": "FoO"}], "o": [{"_id": "foo", "to": "bar"}, {"_id": "FOO", "to": "BAR"},
        {"_id": "bar", "to": "x"}, {"_id": "Bar", "to": "foo"}]},
        *(aggregate({"$graphLookup": {"from": "o", "startWith": "$s", "connectFromField": "to", "connectToField": "_id", "as": "r", "depthField": "d"}},
            {"$unwind": "$r"}, {"$replaceWith": "$r"}, {"$sort": {"d": 1, "to": 1, "_id": 1}}, {"$sort": {"_id": -1}}, collation={"locale": "en", "strength": strength})
            for strength in (1, 2, 3))),
    commands(
        "collation stages", {"c": PLAIN, "o": OTHER},
        *each(graph(), {"$project": {"r._id": 1}}, BY_ID), *each(graph("a"), BY_ID), *each(graph(depthField="z", maxDepth=2), BY_ID),
        *each(graph(restrictSearchWithMatch={"s": {"$ne": "B"}}), BY_ID), *each(graph(restrictSearchWithMatch={"$expr": {"$eq": ["$s", "A"]}}), BY_ID),
        *each(graph({"$toUpper": "$s"}, connectToField="_id"), BY_ID),
        *each(lookup(localField="s", foreignField="s"), BY_ID), *each(lookup(localField="s", foreignField="_id"), BY_ID),
        *each(lookup(localField="l", foreignField="s"), BY_ID), *each(lookup(localField="d.k", foreignField="to"), BY_ID),
        *each(lookup(localField="s", foreignField="s", pipeline=[{"$match": {"s": "a"}}]), BY_ID),
        *each(lookup(let={"x": "$s"}, pipeline=[{"$match": {"$expr": {"$in": ["$$x", ["a", "B"]]}}}, {"$project": {"e": {"$eq": ["$s", "$$x"]}}}, BY_ID]), BY_ID),
        *each(lookup(pipeline=[{"$match": {"s": "a"}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]), BY_ID),
        *each(lookup(pipeline=[{"$sort": {"s": 1, "v": 1}}, {"$limit": 2}]), BY_ID),
        *each(lookup(localField="s", foreignField="s"), {"$unwind": "$r"}, {"$match": {"r.s": "a"}}, {"$sort": {"_id": 1, "r._id": 1}}),
        *each({"$unionWith": {"coll": "o", "pipeline": [{"$match": {"s": {"$in": ["a", "ZZ"]}}}]}}, {"$project": {"s": 1}}, {"$sort": {"s": 1, "_id": 1}}),
        *each({"$unionWith": "o"}, {"$match": {"s": {"$gte": "B", "$lt": "c9"}}}, {"$project": {"_id": 1}}, BY_ID),
        *each({"$facet": {"a": [{"$match": {"s": "a"}}, BY_ID], "b": [{"$sort": {"s": 1, "_id": 1}}, {"$limit": 3}], "c": [{"$group": {"_id": {"$toUpper": "$s"}}}, BY_ID]}}),
        *each({"$bucket": {"groupBy": "$s", "boundaries": ["A", "b", "C9", "zzz"], "default": "~"}}), *each({"$bucketAuto": {"groupBy": "$s", "buckets": 4}}),
        *each({"$bucketAuto": {"groupBy": "$s", "buckets": 2, "output": {"m": {"$max": "$s"}, "f": {"$first": "$n"}}}}),
        *each(BY_ID, {"$group": {"_id": "$s", "n": {"$push": "$n"}}}, {"$project": {"_id": 0, "n": 1}}, {"$sort": {"n": 1}}),
        *each(BY_ID, {"$group": {"_id": {"a": "$g", "b": ["$s"]}, "n": {"$push": "$n"}}}, {"$project": {"_id": 0, "n": 1}}, {"$sort": {"n": 1}}),
        *each({"$sortByCount": {"$substr": ["$s", 0, 1]}}, {"$project": {"count": 1, "_id": {"$toLower": "$_id"}}}, {"$sort": {"count": 1, "_id": 1}}),
        *each({"$unwind": "$l"}, {"$match": {"l": {"$nin": ["A", "b"]}}}, {"$project": {"l": 1}}, {"$sort": {"_id": 1, "l": 1}}),
        *each({"$redact": {"$cond": [{"$eq": ["$s", "A"]}, "$$KEEP", "$$PRUNE"]}}, BY_ID),
        *each({"$match": {"l": {"$all": ["a", "B"]}}}, BY_ID), *each({"$match": {"l": {"$elemMatch": {"$gt": "a", "$lt": "b"}}}}, BY_ID), *each({"$match": {"d": {"k": "A"}}}, BY_ID),
        *each({"$match": {"s": {"$regex": "^A"}}}, BY_ID), *each({"$match": {"s": {"$in": ["a", "C10"]}}}, {"$count": "n"}),
        *each({"$densify": {"field": "n", "partitionByFields": ["g"], "range": {"step": 2, "bounds": "partition"}}}, {"$project": {"n": 1, "_id": 0}}, {"$sort": {"n": 1}}),
        *each({"$fill": {"partitionBy": "$g", "sortBy": {"n": 1}, "output": {"q": {"method": "locf"}}}}, {"$project": {"n": 1, "q": 1}}),
        *each({"$sort": {"s": -1, "_id": 1}}, {"$project": {"s": 1}}), *each({"$sort": {"l": 1, "_id": 1}}, {"$project": {"s": 1}}), *each({"$sort": {"d": 1, "_id": 1}}, {"$limit": 4}),
        setup=[],
    ),
    commands(
        "collation windows", PLAIN,
        *each(window({"$push": "$n"}, partitionBy="$g"), BY_ID), *each(window({"$sum": 1}, partitionBy="$s", sortBy={"s": 1}), {"$project": {"r": 1}}, BY_ID),
        *(case for name in ("$rank", "$denseRank", "$documentNumber") for case in each(window({name: {}}, partitionBy="$g", sortBy={"s": 1}), {"$project": {"r": 1}}, {"$sort": {"_id": 1}})[:3]),
        *(case for name in ("$min", "$max", "$addToSet") for case in each(window({name: "$s", "window": {"documents": ["unbounded", "current"]}}), {"$project": {"r": 1}}, BY_ID)),
        *(case for name in ("$min", "$max") for case in each(window({name: "$s", "window": {"documents": [-2, 0]}}), {"$project": {"r": 1}}, BY_ID)),
        *each(window({"$minN": {"input": "$s", "n": 2}, "window": {"documents": [-3, 0]}}), {"$project": {"r": 1}}, BY_ID),
        *each(window({"$top": {"sortBy": {"s": 1}, "output": "$n"}, "window": {"documents": [-3, 0]}}), {"$project": {"r": 1}}, BY_ID),
    ),
    commands(
        "collation accumulators", PLAIN,
        *group({"$addToSet": "$s"}), *group({"$max": "$s"}), *group({"$min": "$s"}), *group({"$maxN": {"input": "$s", "n": 3}}), *group({"$minN": {"input": "$s", "n": 3}}),
        *group({"$top": {"sortBy": {"s": 1}, "output": "$n"}}), *group({"$bottom": {"sortBy": {"s": 1, "n": -1}, "output": "$n"}}),
        *group({"$topN": {"sortBy": {"s": -1}, "output": "$n", "n": 3}}), *group({"$bottomN": {"sortBy": {"s": 1}, "output": "$n", "n": 3}}),
        *group({"$max": "$l"}), *group({"$min": "$d"}), *group({"$addToSet": "$d"}), *group({"$addToSet": "$l"}), *group({"$sum": {"$cond": [{"$eq": ["$s", "A"]}, 1, 0]}}),
        *group({"$mergeObjects": {"$arrayToObject": [[{"k": "$s", "v": 1}]]}}),
    ),
    commands(
        "collation expressions", PLAIN,
        *(case for expression in (
            {"$in": ["$s", ["A", "Zz"]]}, {"$eq": ["$s", "A"]}, {"$ne": ["$s", "A"]}, {"$gt": ["$s", "B"]}, {"$cmp": ["$s", "b"]}, {"$cmp": ["$l", ["A"]]}, {"$eq": ["$d", {"k": "A"}]},
            {"$indexOfArray": ["$l", "A"]}, {"$strcasecmp": ["$s", "A"]}, {"$sortArray": {"input": "$l", "sortBy": 1}}, {"$sortArray": {"input": ["B", "a", "b", "A", "C10", "c9"], "sortBy": -1}},
            {"$sortArray": {"input": [{"k": "B"}, {"k": "a"}, {"k": "b"}], "sortBy": {"k": 1}}}, {"$setUnion": ["$l", ["A", "q"]]}, {"$setIntersection": ["$l", ["A", "B"]]},
            {"$setDifference": ["$l", ["A", "B"]]}, {"$setIsSubset": [["A"], "$l"]}, {"$setEquals": ["$l", ["A", "B"]]}, {"$anyElementTrue": [["$s"]]}, {"$max": "$l"}, {"$min": "$l"}, {"$max": ["$s", "B"]},
            {"$maxN": {"input": "$l", "n": 2}}, {"$minN": {"input": "$l", "n": 2}}, {"$indexOfBytes": ["$s", "A"]}, {"$indexOfCP": ["$s", "A"]}, {"$replaceAll": {"input": "$s", "find": "A", "replacement": "-"}},
            {"$replaceOne": {"input": "$s", "find": "Z", "replacement": "-"}}, {"$split": ["$s", "Z"]}, {"$trim": {"input": "$s", "chars": "A"}}, {"$regexMatch": {"input": "$s", "regex": "^A"}},
            {"$switch": {"branches": [{"case": {"$eq": ["$s", "A"]}, "then": 1}, {"case": {"$lte": ["$s", "B"]}, "then": 2}], "default": 0}}, {"$filter": {"input": "$l", "cond": {"$gt": ["$$this", "A"]}}},
            {"$map": {"input": "$l", "in": {"$eq": ["$$this", "A"]}}}, {"$reduce": {"input": "$l", "initialValue": "", "in": {"$cond": [{"$gt": ["$$this", "$$value"]}, "$$this", "$$value"]}}}, TWICE,
            {"$lt": ["c9", "C10"]}, {"$eq": ["a", "A"]}, {"$setEquals": [["a"], ["A"]]}, {"$max": ["a", "B", "b"]}, {"$getField": {"field": "S", "input": "$$ROOT"}}, {"$cond": [{"$in": ["a", ["A"]]}, 1, 2]},
            {"$function": {"body": "x", "args": [], "lang": "JS"}}, {"$ifNull": ["$nope", {"$eq": ["x", "X"]}]}, {"$not": [{"$eq": ["$s", "A"]}]}, {"$and": [{"$gte": ["$s", "a"]}, {"$lte": ["$s", "B"]}]},
        ) for case in value(expression)),
    ),
]

INDEXED = {"createIndexes": "t", "indexes": [{"key": {"s": 1}, "name": "s", "unique": True, "collation": EN2}]}


def to(target="t", **options):
    return {"$merge": {"into": target, **options}}


BLOCKS += [
    commands(
        "collation $merge and $out", {"c": PLAIN[:4], "t": [{"_id": 1, "s": "A", "o": 1}, {"_id": 2, "s": "Q", "o": 2}]},
        *(aggregate(*stages, to(**options), **({"collation": collation} if collation else {})) for collation in (None, EN2, EN1) for stages, options in (
            ([{"$match": {"s": "a"}}, {"$unset": "_id"}, {"$limit": 1}], {"on": "s"}), ([{"$match": {"s": "b"}}, {"$unset": "_id"}, {"$limit": 1}], {"on": "s", "whenNotMatched": "insert"}),
            ([{"$match": {"n": 0}}, {"$unset": "_id"}], {"on": "s", "whenMatched": "keepExisting"}), ([{"$match": {"n": 0}}, {"$unset": "_id"}], {"on": "s", "whenMatched": "fail"}),
            ([{"$match": {"n": 0}}, {"$unset": "_id"}], {"on": "s", "whenMatched": [{"$set": {"e": {"$eq": ["$s", "a"]}, "f": {"$eq": ["$$new.s", "A"]}}}]}),
            ([{"$match": {"n": 3}}, {"$unset": "_id"}], {"on": "s", "whenMatched": "replace"}))),
        *(aggregate({"$match": {"n": 3}}, to(on=on), **({"collation": collation} if collation else {})) for collation in (None, EN2) for on in ("_id", ["_id", "s"])),
        *(aggregate({"$group": {"_id": "$g", "n": {"$sum": 1}}}, {"$sort": {"_id": -1}}, {"$set": {"_id": {"$toLower": "$_id"}, "s": "$_id"}}, stage, **({"collation": collation} if collation else {})) for collation in (None, EN2) for stage in ({"$out": "t"}, to())),
        writes=True, setup=[INDEXED],
    ),
    script(
        "collation views",
        {"create": "c", "collation": EN2}, {"insert": "c", "documents": PLAIN}, {"insert": "p", "documents": PLAIN}, {"insert": "o", "documents": OTHER},
        {"create": "v", "viewOn": "c", "pipeline": [{"$match": {"s": "a"}}], "collation": EN2}, {"create": "w", "viewOn": "c", "pipeline": [{"$match": {"s": "a"}}]},
        {"create": "f", "viewOn": "p", "pipeline": [{"$match": {"s": "a"}}], "collation": FR}, {"create": "x", "viewOn": "v", "pipeline": [], "collation": FR},
        {"create": "x", "viewOn": "w", "pipeline": [], "collation": EN2}, {"create": "y", "viewOn": "v", "pipeline": [{"$match": {"g": "X"}}], "collation": EN2},
        {"create": "x", "viewOn": "p", "pipeline": [{"$lookup": {"from": "v", "localField": "s", "foreignField": "s", "as": "r"}}]},
        {"create": "x", "viewOn": "p", "pipeline": [{"$unionWith": "v"}]}, {"create": "x", "viewOn": "p", "pipeline": [{"$graphLookup": {"from": "v", "startWith": "$s", "connectFromField": "s", "connectToField": "s", "as": "r"}}]},
        {"create": "x", "viewOn": "p", "pipeline": [{"$facet": {"a": [{"$unionWith": "f"}]}}], "collation": EN2}, {"create": "z", "viewOn": "p", "pipeline": [{"$unionWith": "v"}], "collation": EN2},
        *(aggregate(BY_ID, {"$project": {"s": 1}}, coll=view, **({"collation": collation} if collation else {})) for view in ("v", "w", "f", "y", "z", "c") for collation in (None, EN2, FR, SIMPLE)),
        *({"find": view, "filter": {"s": "A"}, "projection": {"s": 1}, "sort": {"_id": 1}, **({"collation": collation} if collation else {})} for view in ("v", "w", "f", "y", "c") for collation in (None, EN2, FR, SIMPLE)),
        *(aggregate({"$match": {"_id": {"$lt": 3}}}, {"$lookup": {"from": other, "localField": "s", "foreignField": "s", "as": "r"}}, {"$project": {"r._id": 1}}, BY_ID, coll=coll, **({"collation": collation} if collation else {}))
          for coll in ("p", "c", "v") for other in ("v", "w", "f", "c", "o") for collation in (None, EN2, FR)),
        *(aggregate({"$limit": 1}, {"$lookup": {"from": other, "pipeline": [{"$match": {"s": "A"}}, {"$project": {"_id": 1}}, BY_ID], "as": "r"}}, {"$project": {"r._id": 1}}, coll=coll, **({"collation": collation} if collation else {}))
          for coll in ("p", "c", "nope") for other in ("v", "w", "f", "c", "o") for collation in (None, EN2, FR)),
        *(aggregate({"$match": {"_id": 0}}, {"$unionWith": {"coll": other, "pipeline": [{"$match": {"s": {"$in": ["A", "b"]}}}]}}, {"$project": {"s": 1}}, BY_ID, coll=coll, **({"collation": collation} if collation else {}))
          for coll in ("p", "c") for other in ("v", "w", "f", "c", "o") for collation in (None, EN2)),
        *(aggregate({"$match": {"_id": 0}}, {"$graphLookup": {"from": other, "startWith": "$s", "connectFromField": "to", "connectToField": "s", "as": "r"}}, {"$project": {"r": {"$size": "$r"}}}, coll=coll, **({"collation": collation} if collation else {}))
          for coll in ("p", "c") for other in ("v", "f", "c", "o") for collation in (None, EN2)),
        *(aggregate({"$facet": {"a": [{"$lookup": {"from": other, "pipeline": [{"$match": {"s": "A"}}, {"$count": "n"}], "as": "r"}}, {"$match": {"s": "A"}}, {"$project": {"r": 1}}, BY_ID]}}, coll=coll) for coll in ("p", "c") for other in ("v", "f", "o")),
        messages=False,
    ),
]
