"""Index choice: a query uses the index that finds the fewest documents; `explain` shows the number
of examined ones."""

from datetime import datetime, timedelta

import pytest
from bson import MinKey, Regex

DOCUMENTS = 4000
# Documents that a good index may examine besides the returned ones.
FEW = 60


def document(number):
    common = number % 100 != 0
    return {
        "_id": number,
        # Mostly one value, and the others rarely; where one field has its common value, the other
        # has a rare one.
        "state": "done" if common else f"state{number}",
        "owner": f"owner{number}" if common else "nobody",
        "kind": "one" if number % 50 == 0 else "other",
        "at": number,
        "person": 19 if 1000 <= number < 2500 else number % 19,
        "tags": ["all", f"tag{number % 800}"],
    }


@pytest.fixture(scope="module")
def things(server):
    with server.client() as client:
        collection = client["choice"]["things"]
        collection.drop()
        for field in ("state", "owner", "kind", "at", "person", "tags"):
            collection.create_index(field)
        collection.create_index([("kind", 1), ("at", 1)])
        collection.insert_many([document(number) for number in range(DOCUMENTS)])
        yield collection
        client.drop_database("choice")


def explained(collection, question, **options):
    find = {"find": collection.name, "filter": question, **options}
    return collection.database.command("explain", find, verbosity="executionStats")["executionStats"]


def index_of(collection, question, **options):
    found = collection.database.command("explain", {"find": collection.name, "filter": question, **options})
    stage = found["queryPlanner"]["winningPlan"]
    while "indexName" not in stage:
        stage = stage["inputStage"]
    return stage["indexName"]


def check(collection, question, expected, **options):
    """Runs the query three times, because cached plans must not make the next one worse."""
    for _ in range(3):
        figures = explained(collection, question, **options)
        assert figures["nReturned"] == expected, question
        assert figures["totalDocsExamined"] <= 1.1 * expected + FEW, (question, figures)


RARE = {
    "the first is rare": ({"state": "state300", "owner": "nobody"}, 1),
    "the second is rare": ({"state": "done", "owner": "owner301"}, 1),
    "both are common": ({"state": "done", "kind": "other", "owner": "owner351"}, 1),
    "equality beside a narrower range": ({"state": "done", "at": {"$gte": 100, "$lt": 110}}, 9),
    "a range beside a narrower equality": ({"owner": "owner77", "at": {"$gte": 0, "$lt": 3000}}, 1),
    "of two ranges the narrower": ({"at": {"$gt": 1000}, "owner": {"$gte": "owner1001", "$lt": "owner1002"}}, 1),
    "a short list beside equality": ({"state": "done", "owner": {"$in": ["owner5", "owner6", "owner7"]}}, 3),
    "equality beside a long list": ({"owner": "owner5", "at": {"$in": list(range(500))}}, 1),
    "a list of common values": ({"kind": {"$in": ["one", "other"]}, "owner": "owner9"}, 1),
    "elements of arrays": ({"tags": "all", "owner": "owner11"}, 1),
    "elements of arrays that are rare": ({"tags": "tag11", "state": "done"}, 5),
    "two fields of one index beside another": ({"kind": "other", "at": {"$gt": 5}, "owner": "owner11"}, 1),
    "a branch of an or": ({"$or": [{"state": "done", "owner": "owner8"}, {"state": "state100", "owner": "nobody"}]}, 2),
}


@pytest.mark.parametrize("name", RARE)
def test_the_more_selective_index_is_chosen(things, name):
    question, expected = RARE[name]
    check(things, question, expected)


def test_each_of_many_values_has_its_index(things):
    """Queries of one shape, of which now one index is the better one, now the other."""
    for number in range(90, 130):
        made = document(number)
        check(things, {"state": made["state"], "owner": made["owner"]}, 1)


def test_a_rare_exception_is_found_out(things):
    """After many queries for which one index was right comes a value for which it is not."""
    for number in range(1, 60):
        things.find_one({"state": "done", "owner": f"owner{number}"})
    explained(things, {"state": "state100", "owner": "nobody"})
    check(things, {"state": "state200", "owner": "nobody"}, 1)


def test_the_cost_of_a_sort_is_considered(things):
    # In order by one index and sorted behind another, which finds but one.
    check(things, {"kind": "other", "owner": "owner151"}, 1, sort={"at": 1}, limit=5)
    assert index_of(things, {"kind": "other"}, sort={"at": 1}, limit=5) == "kind_1_at_1"


def test_few_of_those_in_order_match(things):
    """A limit is no reason to go along an order, where hardly any of the documents in it match."""
    question = {"person": 3, "at": {"$gte": 1000, "$lt": 2500}}
    for _ in range(3):
        assert explained(things, question, sort={"at": 1}, limit=5)["totalDocsExamined"] <= 200
        assert index_of(things, question, sort={"at": 1}, limit=5) == "person_1"


def test_an_order_alone_is_enough_where_many_match(things):
    """The index of the filter matches nearly all documents; in the order of the sort's index, the
    first few match."""
    for order in ({"at": 1}, {"at": -1}, {"_id": -1}):
        check(things, {"state": "done"}, 5, sort=order, limit=5)
    assert index_of(things, {"state": "done"}, sort={"at": -1}, limit=5) == "at_1"
    found = things.find({"state": "done"}).sort("at", -1).limit(300)
    assert [one["_id"] for one in found] == [number for number in reversed(range(DOCUMENTS)) if number % 100][:300]
    # Few match, or none.
    check(things, {"state": "state300"}, 1, sort={"at": 1}, limit=5)
    check(things, {"state": "nowhere"}, 0, sort={"at": 1}, limit=5)


@pytest.mark.mariadb_only
def test_the_order_of_an_index_is_abandoned_if_matches_are_at_the_end(things):
    late = things.database.late
    late.drop()
    late.create_index("kind")
    late.create_index("at")
    late.insert_many([{"_id": number, "at": number, "kind": number // 7000} for number in range(10_000)])
    for limit in (5, 20, 60):
        expected = list(range(7000, 7000 + limit))
        for _ in range(3):
            assert [one["_id"] for one in late.find({"kind": 1}).sort("at", 1).limit(limit)] == expected
            assert index_of(late, {"kind": 1}, sort={"at": 1}, limit=limit) == "kind_1"
    # Other values are at the estimated positions.
    check(late, {"kind": 0}, 5, sort={"at": 1}, limit=5)
    assert index_of(late, {"kind": 0}, sort={"at": 1}, limit=5) == "at_1"
    for _ in range(3):
        assert [one["_id"] for one in late.find({"kind": 1}).sort("at", -1).limit(3)] == [9999, 9998, 9997]


def test_a_distribution_that_changes_is_noticed(things):
    """The same query, of which the other index is the better one now."""
    changing = things.database.changing
    changing.drop()
    changing.create_index("kind")
    changing.create_index("group")
    question = {"kind": "one", "group": "one", "at": {"$lt": 50}}
    insert = lambda numbers, kind, group: changing.insert_many(
        [{"_id": number, "at": number, "kind": kind(number), "group": group} for number in numbers]
    )
    insert(range(50), lambda number: "one" if number < 5 else "other", "one")
    check(changing, question, 5)
    assert index_of(changing, question) == "kind_1"
    insert(range(50, 4000), lambda _: "one", "other")
    # The first one finds out.
    explained(changing, question)
    check(changing, question, 5)
    assert index_of(changing, question) == "group_1"


def test_an_index_that_is_created_and_dropped(things):
    question = {"state": "done", "number": 17}
    coming = things.database.coming
    coming.drop()
    coming.create_index("state")
    coming.insert_many([{"_id": number, "state": "done", "number": number} for number in range(1000)])
    assert explained(coming, question)["totalDocsExamined"] >= 1000
    coming.create_index("number")
    check(coming, question, 1)
    coming.drop_index("state_1")
    check(coming, question, 1)


def test_a_hint_selects_the_index(things):
    question = {"state": "done", "owner": "owner55"}
    assert index_of(things, question) == "owner_1"
    assert index_of(things, question, hint="state_1") == "state_1"
    ranged = {"hint": {"state": 1}, "min": {"state": "a"}, "max": {"state": "z"}}
    assert index_of(things, question, **ranged) == "state_1"
    things.database.command("planCacheSetFilter", things.name, query=question, indexes=[{"state": 1}])
    try:
        assert index_of(things, question) == "state_1"
    finally:
        things.database.command("planCacheClearFilters", things.name)
    assert index_of(things, question) == "owner_1"


def test_changes_go_by_the_same_choice(things):
    question = {"state": "done", "owner": "owner60"}
    asked = {"update": things.name, "updates": [{"q": question, "u": {"$set": {"seen": 1}}}]}
    figures = things.database.command("explain", asked, verbosity="executionStats")["executionStats"]
    assert figures["totalDocsExamined"] <= FEW
    assert things.update_one(question, {"$set": {"seen": 1}}).modified_count == 1


def test_a_repeated_query_follows_changes_of_indexes(server):
    question = {"a": 7}
    with server.client() as client:
        database = client["choice_again"]
        collection = database["things"]
        collection.insert_many([{"_id": number, "a": number % 50} for number in range(500)])
        expected = [number for number in range(500) if number % 50 == 7]

        def ask(examined):
            for _ in range(4):
                assert sorted(document["_id"] for document in collection.find(question)) == expected
                assert explained(collection, question)["totalDocsExamined"] == examined

        ask(500)
        collection.create_index("a")
        ask(10)
        filtered = {"planCacheSetFilter": "things", "query": question, "indexes": [{"_id": 1}]}
        database.command(filtered)
        ask(500)
        database.command("planCacheClearFilters", "things")
        ask(10)
        database.command("collMod", "things", index={"name": "a_1", "hidden": True})
        ask(500)
        database.command("collMod", "things", index={"name": "a_1", "hidden": False})
        ask(10)
        collection.drop_index("a_1")
        ask(500)
        collection.create_index([("a", 1), ("_id", 1)], partialFilterExpression={"a": {"$gt": 8}})
        ask(500)
        collection.insert_many([{"_id": 1000 + number, "a": 7} for number in range(5)])
        expected += range(1000, 1005)
        ask(505)
        collection.drop()
        collection.insert_many([{"_id": number, "a": 7} for number in range(3)])
        expected = [0, 1, 2]
        ask(3)
        client.drop_database("choice_again")


STRINGS, NUMBERS, DATES = ([f"s{n:03}" for n in range(60)], list(range(60)), [datetime(2024, 1, 1) + timedelta(n) for n in range(60)])


@pytest.mark.parametrize("values", [STRINGS, NUMBERS, DATES], ids=["strings", "numbers", "dates"])
@pytest.mark.parametrize("direction", [1, -1])
def test_values_outside_of_the_index_order_are_found(db, values, direction):
    """A query whose plan is cached while all values fit into the index; then values arrive that
    MariaDB's index cannot hold."""
    db.c.create_index("v")
    db.c.insert_many([{"_id": number, "v": value} for number, value in enumerate(values)])
    in_order = list(range(60))[::direction][:5]

    def first():
        return [found["_id"] for found in db.c.find(sort=[("v", direction)], limit=5)]

    def check_often(expected):
        for _ in range(4):
            assert first() == expected

    check_often(in_order)
    # Values that MongoDB sorts before all strings, numbers and dates, between them, and after them.
    low, middle, high = MinKey(), [values[30]], Regex("x")
    for odd, lowest, highest in ((low, True, False), (middle, False, False), (high, False, True)):
        db.c.insert_one({"_id": "odd", "v": odd})
        shown = ["odd", *in_order][:5] if (lowest if direction == 1 else highest) else in_order
        check_often(shown)
        db.c.delete_one({"_id": "odd"})
        check_often(in_order)
    db.c.delete_many({"_id": {"$gt": 2}})
    check_often([0, 1, 2][::direction])
    db.c.insert_one({"_id": "odd", "v": high})
    check_often([0, 1, 2, "odd"][::direction])
