"""`distinct` from the keys of an index: a missing field has the key of null there, and an empty
array that of undefined."""

from compat.case import commands

DOCUMENTS = [{"_id": 1}, {"_id": 2, "a": 1, "b": 1}, {"_id": 3, "b": 3}, {"_id": 4, "a": 2, "b": 3, "n": {"x": 1}}, {"_id": 5, "b": 2, "n": {}}]
LISTS = [
    {"_id": 1}, {"_id": 2, "a": [1, 2], "n": [{"x": 1}, {"y": 1}]}, {"_id": 3, "a": [], "n": []}, {"_id": 4, "a": 3, "n": [{"x": [1, 2]}, 5]},
    {"_id": 5, "a": [[5, 6], 7], "n": {"x": [[7, 8], 9]}}, {"_id": 6, "a": [[]], "n": {"x": []}},
]
OF_ONE = [
    {}, {"a": {"$gt": 0}}, {"a": {"$ne": 1}}, {"a": {"$nin": [1, 5]}}, {"a": {"$nin": [1, None]}}, {"a": {"$ne": None}}, {"a": None},
    {"a": {"$lte": None}}, {"a": {"$exists": False}}, {"a": {"$in": [None, 1]}}, {"a": {"$not": {"$gt": 1}}}, {"a": {"$in": []}}, {"a": {"$nin": []}},
    {"b": {"$gt": 0}}, {"_id": {"$gt": 0}}, {"$nor": [{"a": 1}]}, {"$or": [{"a": 1}, {"a": 2}]}, {"$or": [{"a": {"$ne": 1}}, {"b": 3}]},
]
OF_TWO = [
    {}, {"b": 3}, {"b": {"$gte": 1}}, {"b": {"$in": [1, 3]}}, {"b": {"$in": [None, 3]}}, {"b": {"$ne": None}}, {"b": {"$nin": [1]}}, {"b": {"$exists": True}},
    {"b": {"$type": "int"}}, {"b": {"$mod": [1, 0]}}, {"b": 3, "a": {"$ne": 2}}, {"b": 3, "a": {"$exists": False}}, {"b": 3, "_id": 3}, {"$or": [{"b": 3}, {"b": 2}]},
    {"$expr": {"$eq": ["$b", 3]}}, {"$nor": [{"b": 1}]}, {"a": {"$ne": 2}},
]

BESIDE_LISTS = [
    {"a": 1}, {"a": {"$in": [1, 2]}}, {"a": {"$gt": 0}}, {"a": {"$gt": 0, "$lt": 3}}, {"a": {"$gte": 1, "$lte": 1}}, {"a": {"$ne": 7}}, {"a": {"$not": {"$gt": 5}}},
    {"$or": [{"a": 1}, {"a": 9}]}, {"$and": [{"a": 1}, {"a": 5}]}, {"a": {"$nin": [7]}}, {"a": {"$all": [1, 5]}},
    {"s": {"$not": {"$gt": 5}}}, {"s": {"$ne": 4}}, {"s": {"$ne": 4}, "a": 1}, {"s": {"$ne": 4}, "a": {"$gt": 0}}, {"s": {"$ne": 4}, "a": {"$ne": 7}}, {"s": 2, "a": 1},
    {"n.c": 1}, {"n.c": {"$ne": 3}}, {"n.c": {"$gt": 0}}, {"n.c": 1, "a": {"$ne": 3}}, {"s": {"$ne": 4}, "n.c": 1},
]


def by(key: dict, path: str, *queries, documents=None, **options):
    index = {"key": key, "name": "by", **options}
    cases = [{"distinct": "c", "key": path, "query": query} for query in queries or ({},)]
    setup = [{"createIndexes": "c", "indexes": [index]}]
    return commands("distinct: by keys", documents or DOCUMENTS, *cases, {"distinct": "c", "key": path}, setup=setup)


BLOCKS = [
    *(by({"a": direction}, "a", *OF_ONE) for direction in (1, -1)),
    by({"a": 1, "b": 1}, "a", *OF_ONE),
    by({"b": 1, "a": 1}, "a", *OF_TWO),
    by({"a": 1}, "a", sparse=True), by({"a": 1, "b": "hashed"}, "a"), by({"a": "hashed"}, "a"), by({"a": 1}, "a", hidden=True), by({"$**": 1}, "a"),
    by({"a": 1}, "a", collation={"locale": "en"}), by({"a": 1}, "a", partialFilterExpression={"b": {"$gt": 0}}),
    by({"n.x": 1}, "n.x", {}, {"n.x": {"$ne": 7}}, {"n.x": None}), by({"n": 1}, "n"), by({"n": 1}, "n.x"),
    by({"a": 1}, "a", {}, {"a": {"$ne": 3}}, {"a": {"$gt": 1}}, {"a": 3}, documents=LISTS),
    # Arrays in other fields of the index than the one whose values are asked for.
    *(
        by(key, "s", *BESIDE_LISTS, documents=documents)
        for key in ({"s": 1, "a": 1}, {"a": 1, "s": 1}, {"s": 1, "a": 1, "n.c": -1}, {"n.c": 1, "s": 1}, {"a": -1, "n.c": 1, "s": -1})
        for documents in (
            [{}, {"a": [1, 5]}, {"s": 2, "a": [1, 5]}, {"a": 1, "s": None}, {"s": 3, "a": []}, {"n": {"c": [1, 2]}}, {"n": [{"c": 1}]}, {"n": {"c": 3}, "s": 7}],
            [{}, {"a": [1, 5]}, {"s": 2, "a": 1}], [{}, {"a": 1}, {"n": {"c": [1, 4]}}], [{}, {"a": [1, 5]}, {"s": [2], "a": 1}],
        )
    ),
    by({"n.x": 1}, "n.x", {}, {"n.x": {"$ne": 1}}, documents=LISTS), by({"n": 1}, "n", documents=LISTS), by({"n.0.x": 1}, "n.0.x", documents=LISTS),
]
