"""Invalid input gets MongoDB's code, and a message that names the problem."""

import pymongo
import pytest
from pymongo.errors import DuplicateKeyError, OperationFailure

# Command, error code, a word of the message.
COMMANDS = [
    ({"noSuchCommand": 1}, 59, "noSuchCommand"),
    ({"find": "c", "noSuchField": 1}, 40415, "noSuchField"),
    ({"insert": "c", "documents": [{}], "noSuchField": 1}, 40415, "noSuchField"),
    ({"update": "c", "updates": [{"q": {}, "u": {}, "noSuchField": 1}]}, 40415, "noSuchField"),
    ({"find": 5}, 2, "collection name has invalid type int"),
    ({"find": "c", "filter": 5}, 14, "filter"),
    ({"find": "c", "batchSize": "x"}, 14, "batchSize"),
    ({"find": "c", "batchSize": -1}, 51024, "batchSize"),
    ({"find": "c", "limit": -1}, 51024, "limit"),
    ({"find": "c", "skip": -1}, 51024, "skip"),
    ({"find": "c", "filter": {"a": {"$noSuch": 1}}}, 2, "$noSuch"),
    ({"find": "c", "filter": {"$noSuch": 1}}, 2, "$noSuch"),
    ({"find": "c", "filter": {"a": {"$in": 5}}}, 2, "$in"),
    ({"find": "c", "filter": {"$or": []}}, 2, "$or"),
    ({"find": "c", "filter": {"a": {"$regex": "("}}}, 51091, "Regular expression"),
    ({"find": "c", "sort": {"a": 5}}, 15975, "1"),
    ({"find": "c", "projection": {"a": 1, "b": 0}}, 31254, "b"),
    ({"insert": "c", "documents": []}, 16, "100000"),
    ({"insert": "c"}, 40414, "documents"),
    ({"aggregate": "c", "pipeline": [{"$noSuch": 1}], "cursor": {}}, 40324, "$noSuch"),
    ({"aggregate": "c", "pipeline": [{"$limit": 0}], "cursor": {}}, 15958, "limit"),
    ({"aggregate": "c", "pipeline": [{"a": 1, "b": 2}], "cursor": {}}, 40323, "field"),
    ({"aggregate": "c", "pipeline": []}, 9, "cursor"),
    ({"getMore": 12345, "collection": "c"}, 14, "getMore"),
    ({"createIndexes": "c", "indexes": []}, 2, "index"),
    ({"createIndexes": "c", "indexes": [{"key": {}, "name": "x"}]}, 67, "key"),
    ({"dropIndexes": "nowhere", "index": "x"}, 26, "nowhere"),
    ({"collStats": 5}, 73, "int"),
    ({"renameCollection": "x.y", "to": "x.z"}, 13, "admin"),
    ({"create": "c$d"}, 73, "c$d"),
    ({"count": "c", "query": 5}, 14, "query"),
    ({"distinct": "c"}, 40414, "key"),
    ({"find": "c", "tailable": True}, 2, "tailable"),
]


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: str(case[0])[:70])
def test_command(db, case):
    (command, code, word) = case
    db.c.insert_one({"a": 1})
    with pytest.raises(OperationFailure) as error:
        db.command(command)
    assert error.value.code == code, error.value.details
    assert word in error.value.details["errmsg"]


# Update, error code, a word of the message.
UPDATES = [
    ({"$noSuch": {"a": 1}}, 9, "$noSuch"),
    ({"$set": 5}, 9, "$set"),
    ({"$inc": {"text": 1}}, 14, "text"),
    ({"$inc": {"n": "x"}}, 14, "x"),
    ({"$push": {"n": 1}}, 2, "n"),
    ({"$pull": {"n": 1}}, 2, ""),
    ({"$addToSet": {"n": 1}}, 2, ""),
    ({"$set": {"n.x": 1}}, 28, "n"),
    ({"$set": {"a": 1}, "$unset": {"a": 1}}, 40, "a"),
    ({"$set": {"a": 1, "a.b": 1}}, 40, "a"),
    ({"$set": {"a..b": 1}}, 56, "a..b"),
]


@pytest.mark.parametrize("case", UPDATES, ids=lambda case: str(case[0]))
def test_update(db, case):
    (update, code, word) = case
    db.c.insert_one({"_id": 1, "n": 5, "text": "x"})
    with pytest.raises(OperationFailure) as error:
        db.c.update_one({"_id": 1}, update)
    assert error.value.code == code, error.value.details
    assert word in str(error.value)
    assert db.c.find_one() == {"_id": 1, "n": 5, "text": "x"}


def test_get_more_of_an_unknown_cursor(db):
    from bson import Int64

    with pytest.raises(OperationFailure) as error:
        db.command({"getMore": Int64(12345), "collection": "c"})
    assert error.value.code == 43
    assert "12345" in str(error.value)


def test_duplicate_key_names_the_key(db):
    users = db.users
    users.create_index("email", unique=True)
    users.create_index([("team", 1), ("place.seat", -1)], unique=True)
    users.insert_one({"_id": 1, "email": "a@b", "team": 1, "place": {"seat": 5}})
    with pytest.raises(DuplicateKeyError) as error:
        users.insert_one({"_id": 2, "email": "a@b", "team": 2})
    details = error.value.details
    assert (details["code"], details["keyPattern"], details["keyValue"]) == (11000, {"email": 1}, {"email": "a@b"})
    assert f"{db.name}.users index: email_1 dup key: {{ email: \"a@b\" }}" in details["errmsg"]
    with pytest.raises(DuplicateKeyError) as error:
        users.insert_one({"_id": 2, "email": "c@d", "team": 1, "place": {"seat": 5.0}})
    assert error.value.details["keyPattern"] == {"team": 1, "place.seat": -1}
    assert error.value.details["keyValue"] == {"team": 1, "place.seat": 5.0}
    users.insert_one({"_id": 2, "email": "c@d", "team": 1, "place": {"seat": 6}})
    with pytest.raises(DuplicateKeyError):
        users.update_one({"_id": 2}, {"$set": {"email": "a@b"}})
    with pytest.raises(DuplicateKeyError):
        users.find_one_and_update({"_id": 2}, {"$set": {"email": "a@b"}})
    assert users.find_one({"_id": 2})["email"] == "c@d"


def test_unique_index_on_missing_fields(db):
    db.things.create_index("a", unique=True)
    db.things.insert_one({"_id": 1})
    with pytest.raises(DuplicateKeyError):
        db.things.insert_one({"_id": 2, "a": None})


def test_unique_index_on_arrays(db):
    things = db.things
    things.create_index("a", unique=True)
    things.insert_one({"_id": 3, "a": [1, 2, 2]})
    with pytest.raises(DuplicateKeyError):
        things.insert_one({"_id": 4, "a": 2})
    with pytest.raises(DuplicateKeyError):
        things.insert_one({"_id": 4, "a": [7, 1.0]})
    things.delete_one({"_id": 3})
    things.insert_one({"_id": 4, "a": 2})


def test_unique_index_is_refused_on_duplicates(db):
    db.things.insert_many([{"a": 1}, {"a": 1}])
    with pytest.raises(OperationFailure) as error:
        db.things.create_index("a", unique=True)
    assert error.value.code == 11000
    assert set(db.things.index_information()) == {"_id_"}


def test_index_conflicts(db):
    db.things.create_index("a", name="x")
    with pytest.raises(OperationFailure) as error:
        db.things.create_index("b", name="x")
    assert error.value.code == 86
    with pytest.raises(OperationFailure) as error:
        db.things.create_index("a", name="y")
    assert error.value.code == 85
    with pytest.raises(OperationFailure) as error:
        db.things.drop_index("nowhere")
    assert error.value.code == 27


def test_too_large(db):
    with pytest.raises((pymongo.errors.DocumentTooLarge, OperationFailure)):
        db.things.insert_one({"x": "y" * (16 * 1024 * 1024)})
    db.things.insert_one({"_id": 1, "x": "y" * (16 * 1024 * 1024 - 100)})
    with pytest.raises(OperationFailure) as error:
        db.things.update_one({"_id": 1}, {"$set": {"z": "y" * 1000}})
    assert error.value.code in (17419, 10334)
    assert list(db.things.find_one()) == ["_id", "x"]


def test_renames(db):
    db.a.insert_one({})
    db.b.insert_one({})
    with pytest.raises(OperationFailure) as error:
        db.a.rename("b")
    assert error.value.code == 48
    with pytest.raises(OperationFailure) as error:
        db.nowhere.rename("c")
    assert error.value.code == 26
    db.a.rename("b", dropTarget=True)
    assert db.list_collection_names() == ["b"]


@pytest.mark.selkie_only
def test_change_streams_without_a_log_are_refused_for_good(db):
    """An error that drivers do not retry, so that no client loops on it."""
    db.c.insert_one({})
    with pytest.raises(OperationFailure) as error:
        db.c.watch().__enter__()
    assert error.value.code == 40573
    assert not error.value.has_error_label("ResumableChangeStreamError")
