"""$densify and $setWindowFields with mixed types, values beyond the bounds and several errors at
once; and joins."""

import datetime

from bson import Decimal128, Regex

from compat.case import pipelines

FAILING = {"$toDate": "x"}


def densify(field="n", step=0.5, bounds="full", **more):
    return [{"$densify": {"field": field, "range": {"step": step, "bounds": bounds}, **more}}]


def years(bounds="full", **more):
    return [{"$densify": {"field": "d", "range": {"step": 1, "unit": "year", "bounds": bounds}, **more}}]


def window(function, **more):
    return [{"$setWindowFields": {"output": {"w": function}, **more}}]


def moment(text):
    return datetime.datetime.fromisoformat(text)


STEPS = (0.5, 1, 0.25, 0.1, Decimal128("0.5"))
NUMBERS = [
    [{"_id": 1, "n": Decimal128("-1")}, {"_id": 2, "n": 1}],
    [{"_id": 1, "n": 0.1, "s": 1}, {"_id": 2, "n": 2, "s": 2}],
    [{"_id": 1, "n": 1, "s": 1}, {"_id": 2, "n": 3, "s": 2}, {"_id": 3, "n": 5, "s": 1}],
]
BLOCKS = [
    pipelines("densify: types of steps", documents, *(densify(step=step, **more) for step in STEPS for more in ({}, {"partitionByFields": ["s"]}, {"bounds": "partition", "partitionByFields": ["s"]})))
    for documents in NUMBERS
]  # fmt: skip
BLOCKS += [
    pipelines("densify: years in partitions", documents, years(), years(partitionByFields=["s"]), years("partition", partitionByFields=["s"]))
    for documents in (
        [{"_id": 1, "d": moment("2000-02-29")}, {"_id": 2, "d": moment("2005-01-01"), "s": 1}],
        [{"_id": 1, "d": moment("1969-12-31T23:59:59.999")}, {"_id": 2, "d": moment("1973-01-01"), "s": 1}],
        [{"_id": 1, "d": moment("1955-07-08T01:02:03.004"), "s": 2}, {"_id": 2, "d": moment("1960-01-01"), "s": 1}],
    )
]
BLOCKS += [
    pipelines("densify: behind the bounds", documents, *(densify(step=1, bounds=[1, upper], **more) for upper in (1, 2, 3, 5) for more in ({}, {"partitionByFields": ["s"]})), densify(step=1))
    for documents in (
        [{"_id": number, "n": value} for number, value in enumerate(values)]
        for values in ([4, Regex("a")], [1, Regex("a")], [0, Regex("a")], [4, 5, Regex("a")], [1, 4, Regex("a")])
    )
]  # fmt: skip
BLOCKS += [
    pipelines(
        "windows: partitions by what is sorted by", [{"_id": 0, "n": 0}, {"_id": 1}, {"_id": 2, "n": 3}, {"_id": 3, "n": 0}],
        *(window({"$sum": "$_id", "window": {"documents": ["unbounded", "current"]}}, partitionBy=partition, sortBy=order)
          for partition in ("$n", {"$add": ["$n", 0]}, "$n.a") for order in ({"n": -1}, {"_id": 1, "n": -1}, {"n": -1, "_id": -1}, {"n.a": -1, "_id": 1})),
        [{"$sort": {"_id": -1}}, *window({"$sum": 1}, sortBy={})],
    ),
    pipelines(
        "windows: which mistake comes first", [],
        *(window(function, partitionBy=FAILING) for function in ({"$rank": {}}, {"$sum": 1, "window": {"documents": [-2, 0]}}, {"$sum": 1, "window": {"range": [-2, 0]}}, {"$maxN": {"input": 1, "n": 1}, "window": {"documents": [1, "current"]}}, {"$sum": 1}, 1)),
    ),
    pipelines(
        "windows: arrays to keep apart by", [{"_id": 1, "b": [], "l": []}, {"_id": 2}],
        *(window({"$max": None}, partitionBy=partition, sortBy=order) for partition in ("$b", {"$ifNull": ["$b", 1]}) for order in ({"l": -1, "_id": 1}, {"_id": 1}, {"b": 1}, {"l": 1, "b": 1})),
    ),
    # The computed value fails too: the code indicates which document came first.
    *(
        pipelines(
            "windows: arrays within what is kept apart by", [{"_id": 1, "s": "x"}, {"_id": 2, "b": b, "s": "x"}, {"_id": 3, "b": {"a": -1}, "s": 1}],
            *(window({"$max": {"$abs": "$s"}}, partitionBy=partition, sortBy=order) for partition in ("$b.a", "$b.a.c", "$b.0", "$b.0.a", "$b") for order in ({"_id": 1}, {"_id": -1}, {"b.a": -1, "_id": 1}, {"b": 1, "_id": 1})),
        )
        for b in ({"a": []}, [], [{}], [{"a": []}], [{"a": [1, 2]}, {"a": 0}], [[{"a": 3}]], [{"a": {"c": []}}], {"a": [{"c": 1}, {}]}, [5, -6], [None])
    ),
    pipelines(
        "windows: decimals and what is computed in vain", [{"_id": 1, "n": Decimal128("4"), "s": "x"}, {"_id": 2, "n": -1, "s": "x"}, {"_id": 3, "n": 2.5, "s": 5}],
        window({"$expMovingAvg": {"input": "$n", "N": 1}}, partitionBy={"$type": "$n"}, sortBy={"_id": 1}), window({"$expMovingAvg": {"input": "$n", "N": 2}}, partitionBy="$n", sortBy={"_id": 1}),
        *(window({name: {"input": {"$toUpper": {"$substr": ["a", "$s", 1]}}, "n": 1}}) for name in ("$firstN", "$lastN", "$minN")), window({"$firstN": {"input": {"$abs": "$s"}, "n": 1}}),
        *(window({"$firstN": {"input": {"$regexMatch": {"input": "$s", "regex": "x"}}, "n": 1}, "window": {"documents": bounds}}, sortBy={"_id": 1}) for bounds in (["unbounded", "current"], [-1, 0], ["unbounded", "unbounded"])),
        [{"$group": {"_id": None, "r": {"$firstN": {"input": {"$regexMatch": {"input": "$s", "regex": "x"}}, "n": 1}}}}],
    ),
    pipelines(
        "windows: slopes over dates and others", [{"_id": 1, "d": moment("2020-01-01")}, {"_id": 2, "d": "x"}, {"_id": 3}],
        *(window({"$derivative": {"input": "$_id", **unit}, "window": {"documents": [low, "unbounded"]}}, sortBy={"d": order}) for unit in ({}, {"unit": "hour"}) for low in (0, 1, "unbounded") for order in (1, -1)),
    ),
    pipelines(
        "graphLookup: patterns and constants", [{"_id": 1, "n": "Aaab"}, {"_id": 7, "a": Regex("a")}, {"_id": 8, "a": [Regex("a"), "x"]}, {"_id": 9, "n": Regex("a")}, {"_id": 10, "n": "x", "b": Regex("^A")}],
        *([*before, {"$graphLookup": {"from": "c", "startWith": "$a", "connectFromField": "b", "connectToField": "n", "as": "g", **more}}]
          for before in ([], [{"$match": {"_id": -1}}]) for more in ({}, {"startWith": FAILING}, {"restrictSearchWithMatch": {"$expr": FAILING}}, {"restrictSearchWithMatch": {"$expr": {"$eq": ["$n", "x"]}}})),
    ),
    pipelines(
        "what is never met, behind other stages", [{"_id": 1, "d": 2147483648}],
        *([before, {"$match": filter}] for before in ({"$group": {"_id": "x", "f": {"$push": {"$minute": "$d"}}}}, {"$project": {"f": {"$minute": "$d"}}}, {"$set": {"f": {"$minute": "$d"}}})
          for filter in ({"d": {"$all": []}}, {"d": {"$in": []}}, {"_id": {"$in": []}}, {"$alwaysFalse": 1}, {"$nor": [{}]}, {"_id": {"$all": []}, "f": 1}, {"$or": [{"g": {"$all": []}}, {"g": {"$all": []}}]})),
    ),
    pipelines(
        "joins: the order of conditions", {"c": [{"_id": 1}], "o": [{"_id": 1, "l": [1], "s": "x"}]},
        *([{"$lookup": {"from": "o", "pipeline": [{"$match": {"$expr": failing, "n": -1}}], "as": "j", **fields, **more}}]
          for failing in ({"$slice": ["$l", " "]}, {"$toDouble": "$s"}) for fields in ({}, {"localField": "n", "foreignField": "a"}) for more in ({}, {"let": {"x": 1}})),
    ),
]  # fmt: skip
BLOCKS += [
    pipelines("windows: one array twice", documents, *(window({"$sum": 1}, partitionBy=partition, sortBy=order) for partition in ("$n.c", "$n", "$d") for order in ({"n": -1}, {"n.c": 1}, {"n": 1, "d": 1}, {"d.b": 1})))
    for documents in ([{"_id": 1, "n": []}], [{"_id": 1, "n": [{"c": 1}], "d": [{"b": 1}]}], [{"_id": 1, "n": [[1]], "d": [{}]}])
]  # fmt: skip
BLOCKS += [
    pipelines(
        "what is never met: $nor of everything", [{"_id": 1, "o": []}],
        *([{"$addFields": {"n.b": {"$mergeObjects": ["$o", {"b": 4}]}}}, {"$match": filter}] for filter in ({"$nor": [{"n": 1}, {}]}, {"$and": [{"$nor": [{}, {"n": 1}]}]}, {"$nor": [{"n": 1}]}, {"$nor": [{"x": 1}]})),
    ),
]  # fmt: skip

BLOCKS += [
    pipelines("windows: arrays among partitions", [{"_id": number, "c": value} for number, value in enumerate((5, [1, 9], 3, None))][:count],
              *([*window({"$sum": "$_id"}, partitionBy=partition, sortBy=order), {"$limit": limit}] for partition in ("$c", {"$ifNull": ["$c", 7]}) for order in ({"_id": 1}, {"c": -1}) for limit in (1, 2, 9)))
    for count in (2, 3, 4)
]  # fmt: skip
BLOCKS += [
    pipelines("densify: from the end of a month", [{"_id": 1, "d": moment("2020-07-04"), "k": 1}, {"_id": 2, "d": moment("2021-09-01"), "k": 2}],
        *([{"$densify": {"field": "d", "range": {"step": step, "unit": unit, "bounds": [moment(begin), moment("2021-06-30")]}, **more}}, {"$sort": {"d": 1, "k": 1}}]
            for begin in ("2020-01-31", "2020-02-29", "2020-03-31", "2020-05-31", "2019-12-30") for step, unit in ((1, "month"), (2, "month"), (1, "quarter"), (1, "year"))
            for more in ({}, {"partitionByFields": ["k"]}))),
]  # fmt: skip
