"""$setWindowFields: every window function over every kind of window."""

import datetime

from bson import Decimal128, Int64, MaxKey, Timestamp

from compat.case import pipelines

NUMBERS = [{"_id": i, "p": "xy"[i % 2], "v": v, "t": i * i} for i, v in enumerate([5, None, 2.5, "s", 7, 8])]
MIXED = [
    {"_id": i, "v": v}
    for i, v in enumerate([1, Int64(2), 2.5, 7, 1, 2**31 - 1, 1, Int64(2**40), 1, 2, 0.5, 0.25, 8, Decimal128("1.5"), 3, 4, Int64(5)])
]
TIMES = [
    {"_id": i, "d": datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=hours), "v": v}
    for i, (hours, v) in enumerate([(0, 1), (1, 3), (2, 10), (26, 4), (50, 5.5), (1000, 7)])
]
GAPS = [{"_id": i, "v": v} for i, v in enumerate([None, 2, None, None, 8, None, Decimal128("9"), None])]
KEYS = [{"_id": i, "k": k} for i, k in enumerate([1, 1.5, 2, Int64(3), Decimal128("3.5"), 7, 8])]

WINDOWS = [
    {},
    {"window": {}},
    *({"window": {"documents": pair}} for pair in [
        [-1, 1], ["unbounded", "current"], ["current", "unbounded"], [2, 3], [-3, -2], ["unbounded", -2], ["unbounded", 2], [0, 0], [-1, 0],
        [1, "unbounded"],
    ]),
    *({"window": {"range": pair}} for pair in [[-1, 1], ["unbounded", "current"], [0.5, 1.5], ["current", "unbounded"], [-2, -1]]),
]
ARGUMENTS = {
    "$count": {},
    "$covariancePop": ["$t", "$_id"],
    "$covarianceSamp": ["$t", "$_id"],
    "$top": {"sortBy": {"t": -1}, "output": "$v"},
    "$bottom": {"sortBy": {"t": -1}, "output": "$v"},
    "$topN": {"sortBy": {"t": -1}, "output": "$v", "n": 2},
    "$bottomN": {"sortBy": {"t": -1}, "output": "$v", "n": 2},
    **{name: {"input": "$v", "n": 2} for name in ("$firstN", "$lastN", "$minN", "$maxN")},
}
PLAIN = ["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet", "$stdDevPop", "$stdDevSamp"]


def window(function, sort={"_id": 1}, **options):
    return [{"$setWindowFields": {**({"sortBy": sort} if sort is not None else {}), **options, "output": {"r": function}}}]


def refused(*specs):
    return [[{"$setWindowFields": spec}] for spec in specs]


FUNCTIONS = [
    pipelines(
        f"windows {name}", NUMBERS,
        *(window({name: ARGUMENTS.get(name, "$v"), **bounds}) for bounds in WINDOWS),
        *(window({name: argument, "window": {"documents": [-1, 1]}}) for argument in [1, ["$v"], {"a": 1}, "$zz", None, ["$v", "$t"]]),
        window({name: ARGUMENTS.get(name, "$v")}, None, partitionBy="$p"),
        window({name: ARGUMENTS.get(name, "$v"), "x": 1}),
    )
    for name in [*PLAIN, *ARGUMENTS]
]

OVER_MIXED = [
    pipelines(
        "windows over mixed numbers", MIXED,
        *(
            window({name: "$v", "window": {"documents": pair}})
            for name in ["$sum", "$avg", "$min", "$max"]
            for pair in [[0, 0], [-1, 0], [-1, 1], [-2, 2], ["unbounded", "current"], [-6, 0]]
        ),
        # In sliding windows, the last digits of MongoDB's standard deviations follow no known
        # algorithm.
        *(window({name: "$v", "window": {"documents": ["unbounded", "current"]}}) for name in ["$stdDevPop", "$stdDevSamp"]),
        *(window({"$integral": {"input": "$v"}, "window": {"documents": pair}}) for pair in [[-1, 0], [-2, 2], ["unbounded", "current"]]),
        *(window({"$derivative": {"input": "$v"}, "window": {"documents": pair}}) for pair in [[-1, 0], [-2, 2], ["unbounded", "current"]]),
    )
]

OVER_TIME = [
    pipelines(
        f"windows {name}", TIMES,
        *(
            window({name: {"input": "$v", **unit}, "window": bounds}, {"d": 1})
            for unit in [{}, {"unit": "hour"}, {"unit": "week"}, {"unit": "month"}, {"unit": "x"}, {"unit": 1}, {"unit": None}]
            for bounds in [{"documents": [-1, 0]}, {"range": [-1, 1], "unit": "hour"}, {"range": ["unbounded", "current"], "unit": "day"}]
        ),
        *(window({name: argument, "window": {"documents": [-1, 0]}}) for argument in [
            {"input": "$v"}, {"input": "$v", "unit": "hour"}, {"input": ["$v"]}, {"input": "$d"}, {"unit": "hour"}, {}, {"input": "$v", "x": 1},
        ]),
        *(window({name: {"input": "$v"}, "window": {"documents": [-1, 0]}}, sort) for sort in [None, {"_id": -1}, {"_id": 1, "v": 1}, {"zz": 1}]),
        window({name: {"input": "$v"}}),
        window({name: {"input": "$v"}, "window": {}}),
        window({name: {"input": "$v"}, "window": 1}),
        window({name: {"input": "$v"}, "x": 1}),
    )
    for name in ["$derivative", "$integral"]
]

RANGES = [
    pipelines(
        "windows by range", KEYS,
        *(window({"$push": "$_id", "window": {"range": pair}}, {"k": 1}) for pair in [
            [-1, 1], [0, 0], [-0.5, 0.5], ["current", "current"], ["unbounded", -1], [1, "unbounded"], ["unbounded", "unbounded"],
            [Decimal128("-1.5"), 0], [10, 20], [-20, -10], ["unbounded", 100], [-2, -1], [1, 2], [float("-inf"), float("inf")],
        ]),
        window({"$push": "$_id", "window": {"range": [-1, 1], "unit": "day"}}, {"k": 1}),
        window({"$push": "$_id", "window": {"range": ["current", "unbounded"]}}, {"k": -1}),
        window({"$push": "$_id", "window": {"range": [-1, 1]}}, {"k": 1, "_id": 1}),
        window({"$push": "$_id", "window": {"range": [-1, 1]}}, {"zz": 1}),
        window({"$sum": "$_id", "window": {"range": [-1, 1]}}, {"k": 1}, partitionBy={"$mod": ["$_id", 2]}),
    ),
    # `current` is the document itself, 0 each document that equals it.
    pipelines(
        "windows by range of equals", [{"_id": i, "k": k} for i, k in enumerate([1, 1.0, 1, 2, Decimal128("2"), 5, 5])],
        *(
            window({name: ARGUMENTS.get(name, "$_id") if name in ("$count", "$topN") else "$_id", "window": {"range": pair}}, {"k": 1})
            for name in ["$push", "$sum", "$max", "$stdDevPop", "$count", "$topN"]
            for pair in [
                ["unbounded", "current"], ["unbounded", 0], ["current", "unbounded"], [0, "unbounded"], ["current", "current"], [0, 0],
                [-1, "current"], ["current", 1], [0, "current"], ["current", 0], [Decimal128("0"), "current"], ["current", -1], [1, "current"],
            ]
        ),
    ),
    pipelines(
        "windows by range of equal times", [{"_id": i, "d": datetime.datetime(2020, 1, 1 + i // 2)} for i in range(6)],
        *(
            window({"$push": "$_id", "window": {"range": pair, "unit": "day"}}, {"d": 1})
            for pair in [["unbounded", "current"], ["current", 0], [-1, "current"], ["current", "current"], [0, 0]]
        ),
    ),
    # A value that cannot start a range is an error at its document; ranges without an end stop
    # before such values.
    *(
        pipelines(
            f"windows by range up to values {of}", [{"_id": i, "k": k, "n": i if i != 2 else "x"} for i, k in enumerate(values)],
            *(
                [window({function: "$n", "window": {"range": pair, **unit}}, {"k": 1}), {"$limit": limit}]
                for function in ["$push", "$sum", "$max", "$last"]
                for pair in [[-1, 1], ["unbounded", 1], [-1, "unbounded"], ["unbounded", "unbounded"], ["current", 1], [1, "unbounded"]]
                for limit in [1, 3, 4, 9]
            ),
            *(
                {"$setWindowFields": {"sortBy": {"k": 1}, "output": dict(pairs)}}
                for ranged in [{"$push": "$n", "window": {"range": [-1, 1], **unit}}, {"$push": {"$add": ["$n", 1]}, "window": {"range": [-1, 1], **unit}}]
                for other in [{"$max": {"$add": ["$n", 1]}}, {"$max": {"$add": ["$n", 1]}, "window": {"documents": [-1, 0]}}]
                for pairs in [[("a", ranged), ("b", other)], [("a", other), ("b", ranged)]]
            ),
            window({"$push": {"$add": ["$n", 1]}, "window": {"range": [-1, 1], **unit}}, {"k": -1}),
        )
        for of, unit, values in [
            ("that are no numbers", {}, [1, 2, 2.5, "a", datetime.datetime(2026, 1, 1), 3, True]),
            ("that are no times", {"unit": "day"}, [datetime.datetime(2026, 1, i) for i in (1, 2, 3, 5)] + [MaxKey(), Timestamp(1, 1)]),
        ]
    ),
    pipelines(
        "windows by range of time", TIMES,
        *(
            window({"$push": "$_id", "window": {"range": pair, **({"unit": unit} if unit else {})}}, {"d": 1})
            for pair in [[-1, 1], [-1, 0], ["unbounded", 1], [-1, "unbounded"], [0, 0], ["current", "current"], [-90, 0], [-1.5, 1], [-86400000, 0]]
            for unit in ["millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", None]
        ),
    ),
]

RANKS = [
    pipelines(
        f"windows {name}",
        [{"_id": i, **v} for i, v in enumerate([{}, {"v": None}, {"v": [1]}, {"v": 1}, {"v": [1, 2]}, {"v": []}, {"v": 1.0}, {"v": "x"}, {"v": "x"}])],
        *(window({name: {}}, sort) for sort in [{"v": 1}, {"v": -1}, {"_id": 1}, None, {"v": 1, "_id": 1}]),
        window({name: 1}), window({name: {"a": 1}}), window({name: {}, "window": {}}), window({name: {}, "x": 1}),
    )
    for name in ["$rank", "$denseRank", "$documentNumber"]
]

OTHERS = [
    pipelines(
        "windows $expMovingAvg", NUMBERS,
        *(window({"$expMovingAvg": argument}) for argument in [
            1, {}, {"input": "$t"}, {"input": "$t", "N": 1}, {"input": "$t", "N": 3}, {"input": "$t", "N": 0}, {"input": "$t", "N": 1.5},
            {"input": "$t", "N": 2.0}, {"input": "$t", "N": Int64(2)}, {"input": "$t", "N": "a"}, {"input": "$t", "alpha": 0.5},
            {"input": "$t", "alpha": 0}, {"input": "$t", "alpha": 1}, {"input": "$t", "alpha": "a"}, {"input": "$t", "alpha": 0.5, "N": 1},
            {"input": "$v", "alpha": 0.5}, {"input": "$v", "N": 2}, {"input": "$t", "alpha": Decimal128("0.25")}, {"N": 2},
            {"input": {"$toDecimal": "$t"}, "N": 2}, {"input": "$t", "N": Decimal128("2")}, {"input": "$zz", "N": 2},
        ]),
        window({"$expMovingAvg": {"input": "$t", "N": 2}}, None),
        window({"$expMovingAvg": {"input": "$t", "N": 2}, "window": {}}),
    ),
    pipelines(
        "windows $shift", NUMBERS,
        *(window({"$shift": argument}) for argument in [
            1, {}, {"output": "$t"}, {"by": 1}, {"output": "$t", "by": 1}, {"output": "$t", "by": -1}, {"output": "$t", "by": 0},
            {"output": "$t", "by": 1, "default": "x"}, {"output": "$t", "by": -2, "default": {"$add": [1, 1]}}, {"output": "$t", "by": 1, "default": "$t"},
            {"output": "$t", "by": 1.5}, {"output": "$t", "by": 2.0}, {"output": "$t", "by": "a"}, {"output": "$t", "by": 1, "foo": 1},
            {"output": "$v", "by": 1, "default": 9}, {"output": "$zz", "by": 1, "default": 9}, {"output": "$t", "by": None}, {"output": "$t", "by": 2**40},
            {"output": "$t", "by": 1, "default": "$$REMOVE"},
        ]),
        window({"$shift": {"output": "$t", "by": 1}}, None),
        window({"$shift": {"output": "$t", "by": 1}, "window": {}}),
        window({"$shift": {"output": "$t", "by": 1}, "x": 1}),
        window({"$shift": {"output": "$t", "by": 1}}, {"p": 1, "t": -1}),
        window({"$shift": {"output": "$t", "by": 1}}, partitionBy="$p"),
    ),
    *(
        pipelines(
            f"windows {name}", GAPS,
            *(window({name: argument}) for argument in ["$v", {"$add": ["$v", 1]}, "$zz", 1, ["$v"]]),
            *(window({name: "$v"}, sort) for sort in [None, {"_id": -1}, {"_id": 1, "v": 1}, {"zz": 1}, {"v": 1}]),
            window({name: "$v", "window": {}}), window({name: "$v", "x": 1}),
        )
        for name in ["$linearFill", "$locf"]
    ),
    *(
        pipelines("windows $linearFill", documents, window({"$linearFill": "$v"}, {"k": 1}))
        for documents in [
            [{"_id": 0, "k": 1, "v": 1}, {"_id": 1, "k": 1}, {"_id": 2, "k": 3, "v": 4}],
            [{"_id": 0, "k": "a", "v": 1}, {"_id": 1, "k": "b"}, {"_id": 2, "k": "c", "v": 4}],
            [{"_id": i, "k": datetime.datetime(2020, 1, day), "v": v} for i, (day, v) in enumerate([(1, 1), (2, None), (4, 4), (9, None), (11, 4.5)])],
            [{"_id": 0, "k": datetime.datetime(2020, 1, 1), "v": 1}, {"_id": 1, "k": 3}, {"_id": 2, "k": datetime.datetime(2020, 1, 4), "v": 4}],
            [{"_id": 0, "k": 1, "v": "a"}, {"_id": 1, "k": 2}], [{"_id": 0, "k": 1, "v": 1}, {"_id": 1, "k": 2}, {"_id": 2, "k": 3, "v": "b"}],
            [{"_id": i, "k": k, "v": v} for i, (k, v) in enumerate([(1, 1), (1.7, None), (2.1, None), (Int64(7), 11), (7.5, None), (9, 12.25)])],
        ]
    ),
]

STAGE = [
    pipelines(
        "windows the stage", NUMBERS,
        *refused(
            1, {}, {"output": 1}, {"output": {}}, {"output": {"a": 1}}, {"output": {"a": {}}}, {"output": {"a": {"$sum": 1, "x": 1}}},
            {"output": {"a": {"window": {}}}}, {"output": {"a": {"$sum": 1, "$avg": 1}}}, {"output": {"a": {"$foo": 1}}}, {"output": {"a": {"foo": 1}}},
            {"output": {"$a": {"$sum": 1}}}, {"output": {"a.b": {"$sum": 1}}}, {"output": {"a": {"$sum": 1}, "a.b": {"$sum": 1}}}, {"foo": 1, "output": {}},
            {"partitionBy": "$p", "sortBy": 1, "output": {}}, {"sortBy": {"a": 2}, "output": {}}, {"output": {"a": {"$mergeObjects": "$v"}}},
            *({"partitionBy": by, "output": {"a": {"$sum": "$v"}}} for by in ["$p", "p", {"$toUpper": "$p"}, {"a": "$p"}, [1], ["$p"], None, "$v", "$zz", 3]),
            {"sortBy": {}, "output": {"a": {"$sum": "$v"}}}, {"sortBy": {"p": -1, "t": -1}, "output": {"t": {"$max": "$_id"}, "x.y": {"$min": "$t"}, "p.z": {"$count": {}}}},
        ),
        *(
            window({"$sum": "$t", "window": bounds}, sort)
            for sort in [None, {"_id": 1}]
            for bounds in [
                1, {"documents": 1}, {"documents": [1]}, {"documents": [1, 2, 3]}, {"documents": ["a", "b"]}, {"documents": [1, -1]}, {"documents": [1.5, 2]},
                {"documents": ["current", "unbounded"]}, {"documents": ["unbounded", "unbounded"]}, {"documents": [-1, 1], "range": [-1, 1]},
                {"range": [-1, 1]}, {"range": ["unbounded", "unbounded"]}, {"unit": "day"}, {"documents": [-1, 1], "unit": "day"},
                {"range": [-1, 1], "unit": "foo"}, {"foo": 1}, {"documents": [None, 1]}, {"documents": ["current", -1]}, {"range": ["current", -1]},
                {"range": ["a", 1]}, {"documents": [2**40, 2**41]}, {"range": [None, 1]}, {"range": [-1, 1], "unit": 5}, {"range": [1, -1], "unit": "foo"},
                {"documents": [-1, 1], "x": 1}, {"range": 5}, {"documents": [Int64(-1), 1.0]},
            ]
        ),
        messages=True,
    ),
    pipelines(
        "windows the stage", [{"_id": 1, "a": [{"b": 1}, 5], "q": None}, {"_id": 2, "a": 5}, {"_id": 3, "q": 1}, {"_id": 4, "q": 1.0, "a": {"b": 2}}],
        [{"$setWindowFields": {"output": {"d": {"$first": "$zz"}, "e": {"$push": "$zz"}, "q": {"$first": "$zz"}}}}],
        [{"$setWindowFields": {"output": {"a.b": {"$sum": "$_id"}}}}],
        [{"$setWindowFields": {"partitionBy": "$q", "output": {"n": {"$sum": "$_id"}}}}],
        [{"$setWindowFields": {"partitionBy": "$a.b", "output": {"n": {"$sum": "$_id"}}}}],
        [{"$setWindowFields": {"sortBy": {"_id": -1}, "output": {"n": {"$sum": "$_id"}}}}, {"$limit": 2}],
    ),
]

BLOCKS = [*STAGE, *FUNCTIONS, *OVER_MIXED, *OVER_TIME, *RANGES, *RANKS, *OTHERS]
