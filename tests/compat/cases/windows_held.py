"""Windows whose values are reused from one document to the next: growing ones, whole partitions,
and sets with few values."""

from compat.case import pipelines

DOCUMENTS = [{"_id": i, "g": i % 2, "r": i * 5 % 12, "v": value} for i, value in enumerate(
    (1, 1.0, "a", None, [1], {"x": 1}, 2, "a", 1, float("nan"), 3, "b"))]  # fmt: skip
DOCUMENTS[7].pop("v")
WINDOWS = (
    None, {"documents": ["unbounded", "current"]}, {"documents": ["unbounded", 2]}, {"documents": ["unbounded", -2]}, {"documents": [-2, 1]},
    {"documents": ["current", "unbounded"]}, {"range": ["unbounded", 3]}, {"range": [-4, 4]}, {"documents": [-20, 20]}, {"documents": ["unbounded", 20]},
)  # fmt: skip
FUNCTIONS = (
    {"$push": "$v"}, {"$addToSet": "$g"}, {"$addToSet": "$v"}, {"$sum": "$v"}, {"$min": "$v"}, {"$lastN": {"n": 2, "input": "$v"}},
    {"$firstN": {"n": 2, "input": "$v"}}, {"$bottomN": {"n": 3, "sortBy": {"v": 1, "_id": 1}, "output": "$v"}}, {"$bottom": {"sortBy": {"r": 1}, "output": ["$v"]}},
    {"$maxN": {"n": 2, "input": "$v"}}, {"$push": {"$mod": ["$_id", 3]}}, {"$addToSet": {"$mod": ["$_id", 3]}}, {"$avg": "$v"}, {"$count": {}},
)  # fmt: skip


def stage(function, window, partition):
    output = {**function, **({"window": window} if window else {})}
    return {"$setWindowFields": {"sortBy": {"r": 1}, "output": {"p.q" if partition else "o": output}, **({"partitionBy": "$g"} if partition else {})}}


BLOCKS = [
    pipelines(
        "windows that hold values", DOCUMENTS,
        *([stage(function, window, partition), {"$sort": {"_id": 1}}] for function in FUNCTIONS for window in WINDOWS for partition in (False, True)),
    ),
]
