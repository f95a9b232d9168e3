"""Conditions of all kinds use indexes if these are selective: disjunctions over indexes of any
kind, and conditions that most documents match but few do.
"""

import datetime
import json
import re

import pytest
from bson import json_util

DOCUMENTS = 4000
START = datetime.datetime(2024, 1, 1)


def document(number: int) -> dict:
    rare = number % 400 == 0
    made = {
        "_id": number,
        "plain": number % 300,
        "hashed": number % 500,
        "in": {"x": number % 450, "y": f"s{number % 470}"},
        "at": {"type": "Point", "coordinates": [number % 100 / 2, number // 100]},
        "flat": [number % 100 / 2, number // 100],
        "words": f"word{number % 350} w{number % 3}",
        "flag": rare,
        "kind": "text" if rare else number,
        "day": START + datetime.timedelta(hours=number),
        "maybe": f"m{number}" if rare else None,
        "few": {"x": 1} if rare else [] if number % 2 else 5,
        "tags": [number % 350, -1],
    }
    if rare:
        made["seldom"] = number
    else:
        made["often"] = number
    return made


@pytest.fixture(scope="module")
def things(server):
    with server.client() as client:
        collection = client["conditions"]["things"]
        collection.drop()
        collection.insert_many([document(number) for number in range(DOCUMENTS)])
        for key in ("plain", "flag", "kind", "day", "maybe", "often", "few", "tags", "seldom"):
            collection.create_index(key, sparse=key == "seldom")
        for key, kind in (("hashed", "hashed"), ("in.$**", 1), ("at", "2dsphere"), ("flat", "2d"), ("words", "text")):
            collection.create_index([(key, kind)])
        yield collection
        client.drop_database("conditions")


CIRCLE = {"at": {"$geoWithin": {"$centerSphere": [[20, 20], 0.02]}}}
BOX = {"flat": {"$geoWithin": {"$box": [[3, 3], [5, 5]]}}}
PLAIN = {"plain": 3}

DISJUNCTIONS = {
    "hashed": {"$or": [{"hashed": 7}, PLAIN]},
    "hashed twice": {"$or": [{"hashed": 7}, {"hashed": 8}]},
    "all fields": {"$or": [{"in.x": 7}, PLAIN]},
    "all fields twice": {"$or": [{"in.x": 7}, {"in.y": "s9"}]},
    "all fields in a range": {"$or": [{"in.x": {"$gt": 447}}, PLAIN]},
    "sphere": {"$or": [CIRCLE, PLAIN]},
    "sphere and hashed": {"$or": [CIRCLE, {"hashed": 7}]},
    "plane": {"$or": [BOX, PLAIN]},
    "words": {"$or": [{"$text": {"$search": "word7"}}, PLAIN]},
    "beside what most meet": {"day": {"$gte": START}, "$or": [{"hashed": 7}, PLAIN]},
    "beside what more meet": {"hashed": {"$gte": 0}, "$or": [{"maybe": {"$ne": None}}, {"plain": {"$in": [3, 4]}}]},
    "within one another": {"$or": [{"hashed": 7, "$or": [PLAIN, {"in.x": 7}]}, BOX]},
}

UNCOMMON = {
    "begins with a text": {"in.y": {"$regex": "^s46"}},
    "begins with one of two": {"in.y": {"$in": [re.compile("^s46"), "s7"]}},
    "is not null": {"maybe": {"$ne": None}},
    "is none of two": {"maybe": {"$nin": [None, ""]}},
    "is not false": {"flag": {"$ne": False}},
    "has a type": {"kind": {"$type": "string"}},
    "has one of two types": {"kind": {"$type": ["string", "bool"]}},
    "is not above": {"day": {"$not": {"$gt": START + datetime.timedelta(hours=20)}}},
    "leaves a remainder": {"seldom": {"$mod": [800, 0]}},
    "an array is there and has a value": {"tags": {"$exists": True, "$in": [7]}},
    "is there": {"seldom": {"$exists": True}},
    "is not there": {"often": {"$exists": False}},
    "is not null, and more": {"maybe": {"$ne": None}, "hashed": {"$gte": 0}},
    "either of two": {"$or": [{"maybe": {"$ne": None}}, {"flag": {"$ne": False}}]},
}


def explained(things, question, **options):
    find = {"find": things.name, "filter": question, **options}
    return things.database.command("explain", find, verbosity="executionStats")


def check(things, question, more=10):
    """Fails unless the reply equals the one without an index, and few more documents were examined:
    a tenth, and `more`."""
    found = sorted(one["_id"] for one in things.find(question, {"_id": 1}))
    if "$text" in json_util.dumps(question):
        made = map(document, range(DOCUMENTS))
        expected = [one["_id"] for one in made if "word7" in one["words"].split() or one["plain"] == PLAIN["plain"]]
    else:
        expected = sorted(one["_id"] for one in things.find(question, {"_id": 1}).hint([("$natural", 1)]))
    assert found == expected and found
    figures = explained(things, question)["executionStats"]
    assert figures["nReturned"] == len(found)
    assert figures["totalDocsExamined"] <= 1.1 * len(found) + more, figures["totalDocsExamined"]


@pytest.mark.selkie_only
@pytest.mark.parametrize("name", DISJUNCTIONS)
def test_a_disjunction_uses_indexes_of_any_kind(things, name):
    # Places are looked for in cells that hold some others.
    question = DISJUNCTIONS[name]
    check(things, question, 60 if "$geoWithin" in json_util.dumps(question) else 10)


@pytest.mark.selkie_only
@pytest.mark.parametrize("name", UNCOMMON)
def test_selective_conditions_use_keys(things, name):
    check(things, UNCOMMON[name])


@pytest.mark.mariadb_only
def test_a_pattern_is_matched_against_few_strings(things):
    check(things, {"maybe": {"$regex": "0"}})


@pytest.mark.mariadb_only
def test_conditions_of_low_selectivity_use_a_full_scan(things):
    for question in ({"flag": {"$ne": True}}, {"often": {"$exists": True}}, {"kind": {"$type": "number"}}):
        stages = json.dumps(explained(things, question)["queryPlanner"]["winningPlan"], default=json_util.default)
        assert "COLLSCAN" in stages, question


def test_negations_of_all_kinds_of_values(things):
    questions = [{"few": {operator: value}} for operator in ("$ne", "$gt", "$lte") for value in (5, None, [], {"x": 1}, "a")]
    questions += [{"few": {"$not": one["few"]}} for one in questions if "$ne" not in one["few"]]
    questions += [{"few": {"$nin": [5, None]}}, {"few": {"$nin": [[], {"x": 1}]}}, {"few": {"$type": "object"}}, {"few": {"$type": "array"}}]
    for question in questions:
        ids = lambda hint: sorted(one["_id"] for one in things.find(question, {"_id": 1}).hint(hint))
        assert ids([("few", 1)]) == ids([("$natural", 1)]), question
        assert things.count_documents(question) == len(ids([("$natural", 1)])), question
