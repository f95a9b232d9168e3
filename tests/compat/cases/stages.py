"""Stages that generate documents, or read other collections: $densify, $fill, $graphLookup,
$lookup, $documents."""

import datetime

from bson import Decimal128, Int64

from compat.case import commands, pipelines

DAYS = [datetime.datetime(2020, 1, day) for day in range(1, 6)]
SPARSE = [{"_id": 1, "v": 1, "p": "a"}, {"_id": 2, "v": 4, "p": "b"}, {"_id": 3, "v": 7, "p": "a"}]


def densify(documents, *specs, **options):
    return pipelines("stage $densify", documents, *([{"$densify": spec}] for spec in specs), **options)


def steps(bounds, step=1, field="v", unit=None, **options):
    return {"field": field, "range": {"step": step, "bounds": bounds, **({"unit": unit} if unit else {})}, **options}


DENSIFY = [
    densify(
        SPARSE, 1, {}, {"field": "v"}, {"field": 1, "range": {}}, {"field": "v", "range": 1}, {"field": "v", "range": {}}, {"field": "v", "range": {"step": 1}},
        steps(1), steps("x"), steps("full", 0), steps("full", -1), steps("full", "a"), steps("full", 2), steps("full", 1.5), steps("partition", 2),
        steps([0, 10], 2), steps([2, 6], 2), steps([10, 12]), steps([-3, -1]), steps([5, 2]), steps([5, 5]), steps([5]), steps(["a", "b"]), steps([1, DAYS[0]]),
        steps([1, 2], unit="hour"), steps("full", unit="hour"), steps("full", unit="foo"), steps("full", unit=1), steps("full", x=1), steps("full", field="$v"),
        steps("full", field=""), steps("full", partitionByFields=1), steps("full", partitionByFields=[1]), steps("full", partitionByFields=["$p"]),
        steps("full", partitionByFields=["v"]), steps("full", field="v.x", partitionByFields=["v"]), steps("full", partitionByFields=["v.x"]),
        steps("partition", partitionByFields=[]), steps("foo", partitionByFields=["p"]), steps("full", Int64(2)), steps("full", Decimal128("1.5")),
        steps([Decimal128("0"), 3.0]), steps([0, 3.0]), steps([0.0, 3.0], 1.0), {"field": "v", "range": {"step": 1, "bounds": "full", "x": 1}},
        steps("full", 2, partitionByFields=["p"]), steps("partition", 2, partitionByFields=["p"]),
        messages=True,
    ),
    densify([], steps("full"), steps([1, 3])),
    densify([{"_id": 0, "v": 1}, {"_id": 1, "x": 1}, {"_id": 2, "v": None}, {"_id": 3, "v": 3}], steps("full"), steps([0, 2])),
    densify([{"_id": 0, "v": 1}, {"_id": 1, "v": "s"}], steps("full")),
    densify([{"_id": 0, "v": 1}, {"_id": 1, "v": [1]}], steps("full")),
    densify([{"_id": 0, "v": 1.5}, {"_id": 1, "v": Int64(3)}, {"_id": 2, "v": 3}, {"_id": 3, "v": Decimal128("4.25")}], steps("full")),
    densify([{"_id": i, "v": v} for i, v in enumerate([1, 2, 3, 6])], steps("full", 2)),
    densify([{"_id": i, "v": v} for i, v in enumerate([DAYS[0], DAYS[2] + datetime.timedelta(hours=1)])],
            steps("full"), steps("full", unit="day"), steps("full", 1.5, unit="day"), steps([DAYS[0], DAYS[4]], unit="day"), steps([DAYS[0], DAYS[4]]),
            steps("full", 7, unit="hour"), steps([1, 3])),
    densify([{"_id": 0, "v": datetime.datetime(2020, 1, 31)}, {"_id": 1, "v": datetime.datetime(2020, 5, 31)}],
            steps("full", unit="month"), steps("full", unit="week"), steps("full", unit="quarter"), steps("full", unit="year")),
    densify([{"_id": 0, "a": {"b": 1, "c": 5}}, {"_id": 1, "a": {"b": 3}}, {"_id": 2, "a": [{"b": 1}]}], steps("full", field="a.b")),
    densify([{"_id": 0, "p": 1, "q": 1, "v": 1}, {"_id": 1, "p": 1, "v": 2}, {"_id": 2, "p": 1, "q": 1, "v": 3}, {"_id": 3, "p": 1, "v": 4}, {"_id": 4, "v": 1}, {"_id": 5, "v": 3}],
            steps("partition", partitionByFields=["p", "q"])),
]

DENSIFY.append(
    pipelines("stage $densify", SPARSE, [{"$densify": steps([0, 10], 2, partitionByFields=["p"])}, {"$sort": {"v": 1, "p": 1}}]),
)

FILL_DOCUMENTS = [{"_id": i, "p": "xy"[i % 2], "v": v, "w": w} for i, (v, w) in enumerate([(1, None), (None, 2), (5, None), (None, None), (9, 8)])]
LOCF = {"v": {"method": "locf"}}
FILL = [
    pipelines("stage $fill", FILL_DOCUMENTS, *([{"$fill": spec}] for spec in [
        1, {}, {"output": 1}, {"output": {}}, {"output": {"v": 1}}, {"output": {"v": {}}}, {"output": {"v": {"value": 0}}}, {"output": LOCF},
        {"output": LOCF, "sortBy": {"_id": 1}}, {"output": {"v": {"method": "linear"}}, "sortBy": {"_id": 1}}, {"output": {"v": {"method": "linear"}}},
        {"output": {"v": {"method": "x"}}}, {"output": {"v": {"method": 1}}}, {"output": {"v": {"method": "locf", "value": 1}}}, {"output": {"v": {"foo": 1}}},
        {"sortBy": {"_id": -1}, "output": {"v": {"method": "linear"}, "w": {"value": "$_id"}}},
        {"sortBy": {"_id": 1}, "output": {"v": {"value": {"$add": ["$_id", 100]}}, "w": {"method": "locf"}}},
        {"partitionBy": "$p", "sortBy": {"_id": 1}, "output": LOCF}, {"partitionByFields": ["p"], "sortBy": {"_id": 1}, "output": LOCF},
        {"partitionBy": {"a": "$p"}, "partitionByFields": ["p"], "sortBy": {"_id": 1}, "output": LOCF}, {"partitionByFields": "p", "output": LOCF},
        {"partitionByFields": [1], "output": LOCF}, {"partitionBy": 1, "output": LOCF}, {"partitionBy": {"a": "$p"}, "sortBy": {"_id": 1}, "output": LOCF},
        {"partitionByFields": ["$p"], "sortBy": {"_id": 1}, "output": LOCF}, {"partitionByFields": ["p", "q.r"], "sortBy": {"_id": 1}, "output": LOCF},
        {"partitionBy": {"$toUpper": "$p"}, "sortBy": {"_id": 1}, "output": LOCF}, {"foo": 1, "output": LOCF}, {"sortBy": 1, "output": LOCF},
        {"sortBy": {"_id": -1}, "output": {"v": {"value": 1}}}, {"output": {"a.b": {"value": 1}}}, {"output": {"$v": {"value": 1}}},
        {"output": {"v": {"value": "$zz"}}}, {"output": {"v": {"value": None}}}, {"sortBy": {"_id": 1}, "partitionByFields": [], "output": LOCF},
        {"output": {"v": None}}, {"sortBy": {"_id": 1}, "output": {"v": {"method": "linear", "x": 1}}},
    ]), messages=True)
]

GRAPH_DOCUMENTS = [
    {"_id": 1, "n": "a", "to": "b"}, {"_id": 2, "n": "b", "to": ["c", "d"]}, {"_id": 3, "n": "c", "to": "a"}, {"_id": 4, "n": "d", "to": None}, {"_id": 5, "n": "e"},
    {"_id": 6, "n": None, "to": "e"}, {"_id": 7, "to": {"x": [{"y": 1}, {"y": 2}]}},
]
WALK = {"from": "c", "startWith": "$to", "connectFromField": "to", "connectToField": "n", "as": "r"}
GRAPH = [
    pipelines("stage $graphLookup", GRAPH_DOCUMENTS, *([{"$match": {"_id": {"$in": [1, 4, 5]}}}, {"$graphLookup": spec}] for spec in [
        1, {}, WALK, *({name: value for name, value in WALK.items() if name != left} for left in WALK),
        *({**WALK, **options} for options in [
            {"maxDepth": 0}, {"maxDepth": 1, "depthField": "d"}, {"maxDepth": -1}, {"maxDepth": 1.5}, {"maxDepth": "a"}, {"maxDepth": Int64(1)}, {"maxDepth": Decimal128("1")},
            {"depthField": 1}, {"depthField": "$d"}, {"depthField": ""}, {"depthField": "x.d"}, {"depthField": "to"}, {"foo": 1}, {"from": 1}, {"as": 1}, {"as": "$r"},
            {"as": "x.y"}, {"as": ""}, {"connectFromField": 1}, {"connectFromField": "$to"}, {"connectToField": "$n"}, {"connectToField": 2},
            {"restrictSearchWithMatch": 1}, {"restrictSearchWithMatch": {"_id": {"$lt": 3}}}, {"restrictSearchWithMatch": {"$foo": 1}}, {"startWith": "a"},
            {"startWith": ["a", "d"]}, {"startWith": None}, {"startWith": "$zz"}, {"startWith": {"$foo": 1}}, {"from": "nothing"},
            {"restrictSearchWithMatch": {"$expr": {"$gt": ["$_id", 2]}}}, {"startWith": ["a", ["b"]]}, {"connectToField": "to", "connectFromField": "n"},
            {"connectToField": "to.x.y", "startWith": 2}, {"connectFromField": "to.x.y", "connectToField": "_id", "startWith": 7}, {"startWith": "a", "as": "to"},
        ]),
    ]), messages=True),
    pipelines("stage $graphLookup", GRAPH_DOCUMENTS,
              [{"$graphLookup": WALK}, {"$unwind": "$r"}, {"$count": "n"}], [{"$facet": {"a": [{"$graphLookup": WALK}, {"$unwind": "$r"}, {"$count": "n"}], "b": [{"$limit": 1}]}}]),
]

LOCAL = [{"_id": i, "a": a} for i, a in enumerate([1, 2.0, "x", None, [1, "x"], [], [[1]], {"b": 1}, 7, Int64(2), [None]])] + [{"_id": 20}]
FOREIGN = [{"_id": i, "k": k} for i, k in enumerate([1, 1.0, 2, "x", None, [1, 2], [], [[1]], {"b": 1}, Decimal128("2"), [None], ["x", 1]])] + [{"_id": 30}]


def join(**options):
    return {"$lookup": {"from": "f", "as": "r", **options}}


JOINS = [
    [join(localField="a", foreignField="k")], [join(localField="_id", foreignField="_id")], [join(localField="a", foreignField="k.0")],
    [join(localField="a.b", foreignField="k.b")], [join(localField="zz", foreignField="k")], [join(localField="a", foreignField="zz")],
    [join(localField="a", foreignField="k", pipeline=[{"$match": {"_id": {"$gt": 2}}}, {"$project": {"k": 1, "_id": 0}}])],
    [join(localField="a", foreignField="k", pipeline=[{"$group": {"_id": None, "n": {"$sum": 1}}}])],
    [join(localField="a", foreignField="k", let={"i": "$_id"}, pipeline=[{"$match": {"$expr": {"$gte": ["$_id", "$$i"]}}}, {"$sort": {"_id": -1}}, {"$limit": 2}])],
    [join(let={"v": "$a"}, pipeline=[{"$match": {"$expr": {"$eq": ["$k", "$$v"]}}}])], [join(pipeline=[{"$sort": {"_id": -1}}, {"$limit": 1}])],
    [join(pipeline=[{"$match": {"k": 1}}, {"$lookup": {"from": "c", "localField": "k", "foreignField": "a", "as": "s"}}])],
    [join(localField="a", foreignField="k"), {"$unwind": "$r"}, {"$sort": {"_id": 1, "r._id": 1}}, {"$project": {"r.k": 0}}],
    [join(localField="a", foreignField="k"), {"$match": {"r._id": 1}}, {"$count": "n"}],
    [{"$facet": {"a": [join(localField="a", foreignField="k"), {"$project": {"n": {"$size": "$r"}}}], "b": [{"$unionWith": "f"}, {"$count": "n"}]}}],
    *([join(**options)] for options in [{}, {"localField": "a"}, {"foreignField": "k"}, {"localField": 1, "foreignField": "k"}, {"pipeline": 1}, {"pipeline": [{"$out": "x"}]}, {"foo": 1}]),
]
LOOKUP = [
    commands("stage $lookup", {"c": LOCAL, "f": FOREIGN}, *({"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in JOINS)),
    commands("stage $lookup with an index", {"c": LOCAL, "f": FOREIGN + [{"_id": 1000 + i, "k": i * 1000} for i in range(1000)]},
             *({"aggregate": "c", "pipeline": pipeline, "cursor": {}} for pipeline in [JOINS[1], [*JOINS[0], {"$unwind": "$r"}, {"$sort": {"_id": 1, "r._id": 1}}]]), setup=[{"createIndexes": "f", "indexes": [{"key": {"k": 1}, "name": "k_1"}]}]),
]

GIVEN = [
    commands("stage $documents", SPARSE, *({"aggregate": 1, "pipeline": [{"$documents": given}], "cursor": {}} for given in [
        1, "$x", {"$map": {"input": [1, 2], "in": {"a": "$$this"}}}, {"a": 1}, [], [{"a": "$x"}], [{"a": {"$add": [1, 2]}}], None, {"$literal": [{"a": "$x"}]}, [1], [{"a": 1}, None],
    ])),
    pipelines(
        "stage $documents", SPARSE,
        [{"$lookup": {"as": "r", "pipeline": [{"$documents": [{"x": 1}]}]}}],
        [{"$lookup": {"as": "r", "localField": "v", "foreignField": "x", "pipeline": [{"$documents": [{"x": 1}, {"x": 3}]}]}}],
        [{"$lookup": {"as": "r", "let": {"k": "$v"}, "pipeline": [{"$documents": [{"x": 1}, {"x": 4}]}, {"$match": {"$expr": {"$eq": ["$$k", "$x"]}}}]}}],
        [{"$lookup": {"as": "r", "let": {"k": "$v"}, "pipeline": [{"$documents": [{"x": "$$k"}]}]}}],
        [{"$lookup": {"from": "c", "as": "r", "pipeline": [{"$documents": [{"x": 1}]}]}}],
        [{"$unionWith": {"pipeline": [{"$documents": [{"x": 1}]}]}}], [{"$unionWith": {"coll": "c", "pipeline": [{"$documents": [{"x": 1}]}, {"$set": {"y": 1}}]}}],
        [{"$facet": {"a": [{"$documents": []}]}}], [{"$lookup": {"as": "r", "pipeline": []}}], [{"$lookup": {"as": "r", "pipeline": [{"$match": {}}]}}], [{"$documents": []}],
        [{"$match": {}}, {"$documents": []}],
    ),
]

BLOCKS = [*DENSIFY, *FILL, *GRAPH, *LOOKUP, *GIVEN]
