"""Filters by sibling indexes on MariaDB: the keys of other indexes reduce the documents to fetch,
and the results are the same."""

import json
import random

import pytest

pytestmark = pytest.mark.mariadb_only

BOARDS, CARDS = 4, 400
# Only documents of some length are worth it.
PAD = "x" * 3000


def card(rng, number):
    return {
        "_id": number,
        "board": f"board{number % BOARDS}",
        "users": [f"user{rng.randrange(20)}" for _ in range(rng.randrange(3))],
        "at": rng.randrange(1000),
        "done": rng.random() < 0.1,
        "pad": PAD,
    }


@pytest.fixture
def cards(db):
    rng = random.Random(1)
    for keys in ([("board", 1), ("done", 1)], [("users", 1)], [("at", -1)]):
        db.cards.create_index(keys)
    db.cards.insert_many([card(rng, number) for number in range(CARDS)])
    # How long documents are is known once some have been read.
    assert len(list(db.cards.find().batch_size(50))) == CARDS
    return db.cards


QUESTIONS = {
    "a range on another field": ({"board": "board1", "at": {"$gt": 950}}, {}, 0),
    "two others": ({"board": "board1", "at": {"$lt": 300}, "done": True}, {}, 0),
    "first by another field": ({"board": "board2"}, {"at": -1}, 10),
    "first by another field, of those in arrays": ({"users": "user7", "done": False}, {"at": 1}, 5),
    "first by two other fields": ({"users": {"$in": ["user3", "user4"]}}, {"done": -1, "at": 1}, 5),
}


def stages(plan):
    while plan is not None:
        yield plan
        plan = plan.get("inputStage")


@pytest.mark.parametrize("name", QUESTIONS)
def test_only_matching_documents_are_fetched(server, cards, name):
    question, sort, limit = QUESTIONS[name]

    def check():
        find = {"find": cards.name, "filter": question, "sort": sort, "limit": limit}
        explained = cards.database.command("explain", find, verbosity="executionStats")
        plain = list(cards.find(question).hint([("$natural", 1)]))
        keys = lambda documents: [[one[field] for field in sort] for one in documents]
        for field, direction in reversed(sort.items()):
            plain.sort(key=lambda one: one[field], reverse=direction < 0)
        found = list(cards.find(question).sort(list(sort.items())).limit(limit)) if sort else list(cards.find(question))
        if limit:
            assert keys(found) == keys(plain[:limit])
        else:
            assert sorted(one["_id"] for one in found) == sorted(one["_id"] for one in plain)
        assert len(found) > 0
        return explained, found

    explained, found = check()
    stats = explained["executionStats"]
    assert stats["nReturned"] == len(found)
    assert stats["totalDocsExamined"] <= 1.1 * len(found) + 10, stats["totalDocsExamined"]
    told = [stage["stage"] for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert told[-1] == "IXSCAN" and ("SORT" in told) == bool(sort), told
    # Rows written by SQL have keys too, and a value that has no key is found.
    with server.mariadb.connect(database=cards.database.name) as connection, connection.cursor() as cursor:
        for number in (1, 2, 5, 6):
            made = json.dumps(card(random.Random(number), number) | {"at": 2000 + number, "users": ["user7", "user3"]})
            cursor.execute("UPDATE cards SET doc = %s WHERE id = %s", (made, str(number)))
    check()
    cards.insert_one(card(random.Random(3), CARDS + 1) | {"at": [1, 2], "board": "board3"})
    check()


@pytest.mark.parametrize("created", [["flag", "name"], ["name", "flag"]])
def test_an_index_of_flags_is_the_last_choice(db, created):
    db.things.insert_many([{"name": f"name{number}", "flag": number % 2 == 0} for number in range(100)])
    for field in created:
        db.things.create_index(field)
    explained = db.command("explain", {"find": "things", "filter": {"flag": True, "name": "name4"}}, verbosity="executionStats")
    assert explained["executionStats"]["totalDocsExamined"] == 1


def test_a_limit_continues_past_documents_that_do_not_match(cards):
    """A filter that no keys say anything of: the next rows are fetched in the same order."""
    question = {"board": "board1", "_id": {"$mod": [8, 5]}, "pad": {"$ne": ""}}
    found = [one["_id"] for one in cards.find(question).sort("at", 1).limit(30)]
    plain = sorted(cards.find(question).hint([("$natural", 1)]), key=lambda one: one["at"])[:30]
    assert len(found) == 30
    assert [cards.find_one(one)["at"] for one in found] == [one["at"] for one in plain]
