"""Extreme requests are refused or answered, and never crash the server: deep filters and
expressions, long pipelines, pipelines within one another, regular expressions that would not end.
"""

import pytest
from pymongo.errors import OperationFailure

# MongoDB 6.0 itself does not survive all of this.
pytestmark = [pytest.mark.selkie_only, pytest.mark.timeout(600)]

# Too deeply nested BSON, filters and expressions; too many stages; a too large regular expression.
REFUSALS = {2, 9, 15, 16, 22, 28, 232, 40600, 51091, 51156}


def nest(depth: int, wrap, inner):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


FILTERS = {
    "and": (lambda inner: {"$and": [inner]}, {"a": 1}),
    "nor": (lambda inner: {"$nor": [inner]}, {"a": 1}),
    "elemMatch": (lambda inner: {"a": {"$elemMatch": inner}}, {"a": 1}),
}
CONDITIONS = {
    "not": (lambda inner: {"$not": inner}, {"$eq": 1}),
    "elemMatch": (lambda inner: {"$elemMatch": inner}, {"$eq": 1}),
}
EXPRESSIONS = {
    "add": (lambda inner: {"$add": [inner, 1]}, "$a"),
    "abs": (lambda inner: {"$abs": inner}, "$a"),
    "cond": (lambda inner: {"$cond": [True, inner, 1]}, "$a"),
    "let": (lambda inner: {"$let": {"vars": {"x": 1}, "in": inner}}, "$a"),
    "map": (lambda inner: {"$map": {"input": [1], "in": inner}}, "$a"),
    "reduce": (lambda inner: {"$reduce": {"input": [1], "initialValue": inner, "in": "$$this"}}, "$a"),
    "switch": (lambda inner: {"$switch": {"branches": [{"case": True, "then": inner}]}}, "$a"),
    "document": (lambda inner: {"x": inner}, "$a"),
    "array": (lambda inner: [inner], "$a"),
}
SCHEMAS = {
    "properties": (lambda inner: {"properties": {"a": inner}}, {"bsonType": "int"}),
    "not": (lambda inner: {"not": inner}, {"bsonType": "int"}),
    "allOf": (lambda inner: {"allOf": [inner]}, {"bsonType": "int"}),
}
STAGES = {
    "match": {"$match": {"a": 1}},
    "set": {"$set": {"b": 1}},
    "unwind": {"$unwind": "$a"},
    "sort": {"$sort": {"a": -1, "b": 1}},
    "group": {"$group": {"_id": "$a"}},
    "redact": {"$redact": "$$DESCEND"},
    "windows": {"$setWindowFields": {"output": {"n": {"$sum": 1}}}},
    "facet": {"$facet": {"a": [{"$limit": 1}]}},
    "lookup": {"$lookup": {"from": "other", "localField": "a", "foreignField": "a", "as": "b"}},
    "union": {"$unionWith": "other"},
}
WITHIN = {
    "lookup": lambda inner: [{"$lookup": {"from": "other", "pipeline": inner, "as": "b"}}],
    "lookup let": lambda inner: [{"$lookup": {"from": "other", "let": {"x": "$a"}, "pipeline": inner, "as": "b"}}],
    "union": lambda inner: [{"$unionWith": {"coll": "other", "pipeline": inner}}],
    "facet": lambda inner: [{"$lookup": {"from": "other", "pipeline": [{"$facet": {"f": inner}}], "as": "b"}}],
}


@pytest.fixture
def documents(db):
    db.c.insert_one({"_id": 1, "a": 1, "s": "a" * 40 + "!", "list": ["a" * 40 + "!"]})
    db.other.insert_one({"_id": 1, "a": 1})
    yield db
    assert db.c.find_one()["_id"] == 1, "it is still there"


def survives(ask):
    """Returns whether the command succeeded; the server may also refuse it."""
    try:
        ask()
        return True
    except OperationFailure as error:
        assert error.code in REFUSALS, error
        return False


@pytest.mark.parametrize("depth", [40, 90, 100, 190])
def test_deep(documents, depth):
    collection = documents.c
    for wrap, inner in FILTERS.values():
        survives(lambda: list(collection.find(nest(depth, wrap, inner))))
    for wrap, inner in CONDITIONS.values():
        condition = nest(depth, wrap, inner)
        survives(lambda: list(collection.find({"a": condition})))
        survives(lambda: collection.update_one({"_id": 1}, {"$pull": {"list": condition}}))
    for wrap, inner in EXPRESSIONS.values():
        expression = nest(depth, wrap, inner)
        survives(lambda: list(collection.aggregate([{"$project": {"x": expression}}, {"$project": {"_id": 1}}])))
        survives(lambda: list(collection.find({"$expr": expression})))
    for wrap, inner in SCHEMAS.values():
        survives(lambda: list(collection.find({"$jsonSchema": nest(depth, wrap, inner)})))


@pytest.mark.parametrize("name", STAGES)
def test_long_pipelines(documents, name):
    stage = STAGES[name]
    # A thousand facets come to a document that is nested too deep.
    assert survives(lambda: list(documents.c.aggregate([stage] * 1000))) == (name != "facet")
    assert not survives(lambda: list(documents.c.aggregate([stage] * 1001)))
    within = [{"$lookup": {"from": "other", "pipeline": [stage] * 1000, "as": "b"}}]
    assert survives(lambda: list(documents.c.aggregate(within))) == (name != "facet")


@pytest.mark.parametrize("name", WITHIN)
def test_pipelines_within_one_another(documents, name):
    for depth in (1, 5, 19, 20):
        # A `$lookup` with a `$facet` in it is not allowed in another.
        expected = name != "facet" or depth == 1
        assert survives(lambda: list(documents.c.aggregate(nest(depth, WITHIN[name], [{"$limit": 1}])))) == expected
    for depth in (21, 30):
        assert not survives(lambda: list(documents.c.aggregate(nest(depth, WITHIN[name], [{"$limit": 1}]))))


def test_deep_results(documents):
    """Stages make documents deeper than any client could send them."""
    deeper = {"$set": {"a": {"b": ["$a"]}}}
    assert survives(lambda: list(documents.c.aggregate([deeper] * 90)))
    for last in ({"$redact": "$$DESCEND"}, {"$sort": {"a": 1}}, {"$group": {"_id": "$a"}}, {"$count": "n"}):
        assert not survives(lambda: list(documents.c.aggregate([deeper] * 999 + [last])))


def test_wide(documents):
    branches = [{"case": {"$eq": ["$a", -1]}, "then": n} for n in range(20_000)]
    switch = {"$switch": {"branches": branches, "default": 0}}
    assert survives(lambda: list(documents.c.aggregate([{"$project": {"x": switch}}])))
    assert survives(lambda: list(documents.c.find({"$or": [{"a": -n} for n in range(1, 20_000)]})))
    facets = {f"f{n}": [{"$limit": 1}] for n in range(1000)}
    assert survives(lambda: list(documents.c.aggregate([{"$facet": facets}])))


def test_regular_expressions_without_end(documents):
    endless, collection = "^(a+)+$", documents.c
    for name in ("$regexMatch", "$regexFind", "$regexFindAll"):
        stages = [{"$project": {"x": {name: {"input": "$s", "regex": endless}}}}]
        assert not survives(lambda: list(collection.aggregate(stages)))
    for filter in (
        {"s": {"$regex": endless}},
        {"s": {"$not": {"$regex": endless}}},
        {"list": {"$elemMatch": {"$regex": endless}}},
        {"$jsonSchema": {"properties": {"s": {"pattern": endless}}}},
    ):
        assert not survives(lambda: list(collection.find(filter)))
    assert not survives(lambda: collection.update_one({"_id": 1}, {"$pull": {"list": {"$regex": endless}}}))
    deep = "(" * 5000 + "a" + ")" * 5000
    assert not survives(lambda: list(collection.find({"s": {"$regex": deep}})))
