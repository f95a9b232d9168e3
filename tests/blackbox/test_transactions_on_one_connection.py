"""Transactions one after the other, which the embedded store executes on the same connection: what
it keeps from one to the next must fit the collections as they are by then."""

import random

import pymongo
import pytest

from support.selkie import SelkieServer

pytestmark = pytest.mark.selkie_only


@pytest.fixture(scope="module")
def selkie(tmp_path_factory):
    server = SelkieServer(tmp_path_factory.mktemp("one") / "selkie", options=("--topology", "replica-set")).start()
    yield server
    server.remove()


@pytest.fixture
def db(selkie, database_name):
    with selkie.client(directConnection=True) as client:
        yield client[database_name]


def within(db, action, commits=True):
    """The result of an action in a transaction."""
    with db.client.start_session() as session:
        session.start_transaction()
        result = action(session)
        (session.commit_transaction if commits else session.abort_transaction)()
    return result


def found(db, session, **condition):
    return sorted(document["_id"] for document in db.c.find(condition, session=session))


def test_nothing_is_left_of_a_transaction(db):
    db.c.insert_many([{"_id": number, "n": number % 3} for number in range(6)])
    db.c.create_index("n")

    def change(session):
        db.c.delete_one({"_id": 0}, session=session)
        db.c.update_one({"_id": 1}, {"$set": {"n": 0}}, session=session)
        db.c.insert_one({"_id": 6, "n": 0}, session=session)
        return found(db, session, n=0)

    for commits in (False, False, True):
        assert within(db, lambda session: found(db, session, n=0)) == [0, 3]
        assert within(db, change, commits) == [1, 3, 6]
    assert within(db, lambda session: found(db, session, n=0)) == [1, 3, 6]
    assert within(db, lambda session: found(db, session)) == [1, 2, 3, 4, 5, 6]
    assert found(db, None, n=0) == [1, 3, 6]


def test_collections_change_between_transactions(db):
    """Each change of the catalog follows a transaction that has written, and precedes another."""
    chance = random.Random(3)
    expected = {}
    indexes = ["n", "m", [("n", 1), ("m", -1)]]

    def write(session):
        for _ in range(4):
            key = chance.randrange(20)
            if chance.random() < 0.3:
                db.c.delete_one({"_id": key}, session=session)
                expected.pop(key, None)
            else:
                document = {"n": chance.randrange(3), "m": [chance.randrange(3)]}
                db.c.replace_one({"_id": key}, document, upsert=True, session=session)
                expected[key] = document
        db.other.insert_one({"n": 1}, session=session)
        return read(session)

    def read(session):
        return [found(db, session, n=value) + found(db, session, m=value) for value in range(3)]

    def wanted():
        having = lambda value: sorted(key for key, document in expected.items() if document["n"] == value)
        listing = lambda value: sorted(key for key, document in expected.items() if value in document["m"])
        return [having(value) + listing(value) for value in range(3)]

    for round in range(30):
        match round % 6:
            case 0:
                db.c.create_index(indexes[round // 6 % 3])
            case 1:
                db.c.drop_indexes()
            case 2:
                db.c.create_index("n")
                db.c.rename("renamed")
                db.renamed.rename("c")
            case 3:
                db.c.drop()
                db.other.drop()
                expected.clear()
            case 4:
                db.other.create_index("n")
                db.third.insert_one({})
                db.third.create_index("n")
            case 5:
                db.third.drop()
        assert within(db, read) == wanted()
        assert within(db, write) == wanted()
        assert read(None) == wanted()


def test_more_collections_than_a_connection_keeps(db):
    for number in range(150):
        within(db, lambda session: db[f"c{number % 75}"].insert_one({"number": number}, session=session))
    counts = [db[f"c{number}"].count_documents({}) for number in range(75)]
    assert counts == [2] * 75


def test_a_collection_that_was_created_within(db):
    def create(session):
        db.c.insert_one({"_id": 1, "n": 1}, session=session)
        return found(db, session, n=1)

    assert within(db, create, commits=False) == [1]
    assert within(db, create) == [1]
    assert within(db, lambda session: found(db, session, n=1)) == [1]
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        within(db, create)
