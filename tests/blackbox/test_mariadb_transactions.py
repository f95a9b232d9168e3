"""Transactions of several statements on MariaDB, where they differ from the other store."""

import bson
import pytest
from pymongo.errors import OperationFailure

from support.selkie import SelkieServer
from support.wire import Wire

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]


@pytest.fixture(scope="module")
def selkie(store, mariadb, tmp_path_factory):
    server = SelkieServer(tmp_path_factory.mktemp("transactions"), mariadb).start()
    yield server
    assert server.stop() == 0, server.end_of_log()
    server.remove()


def test_new_collections(selkie):
    """They exist at once, and are read by the repetition at the latest."""
    with selkie.client() as client:
        client.drop_database("t")
        attempts = []

        def create(session):
            attempts.append(client.t.c.find_one({}, session=session))
            client.t.create_collection("made", session=session)
            client.t.indexed.create_index("k", unique=True, session=session)
            for name in ("made", "indexed", "implicit"):
                client.t[name].insert_one({"_id": 1, "k": [1, 2]}, session=session)
                assert [document["_id"] for document in client.t[name].find({"k": 2}, session=session)] == [1]

        with client.start_session() as session:
            session.with_transaction(create)
            assert 1 < len(attempts) < 6
            with session.start_transaction():
                client.t.first.insert_one({"_id": 1}, session=session)
                assert client.t.first.count_documents({}, session=session) == 1
                assert client.t.first.count_documents({}) == 0
                session.abort_transaction()
        assert sorted(client.t.list_collection_names()) == ["first", "implicit", "indexed", "made"]
        assert [client.t[name].count_documents({"k": 1}) for name in ("made", "indexed", "implicit", "first")] == [1, 1, 1, 0]
        assert set(client.t.indexed.index_information()) == {"_id_", "k_1"}


def balance(collection, session=None):
    return [document["x"] for document in collection.find({"k": 1}, session=session)]


def test_caches_follow_commits(own_server, database_name):
    """No cache shows uncommitted documents, or old ones after the commit."""
    server = own_server("--cache", "both", "--external-writes", "none")
    with server.client() as client, server.client() as other, client.start_session() as session:
        mine, others = client[database_name].c, other[database_name].c
        mine.create_index("k")
        mine.insert_one({"_id": 1, "k": 1, "x": 0})
        for number in range(1, 40):
            assert balance(others) == balance(others) == [number - 1]
            session.start_transaction()
            assert balance(mine, session) == [number - 1]
            mine.update_one({"k": 1}, {"$inc": {"x": 1}}, session=session)
            assert balance(mine, session) == [number]
            assert balance(others) == balance(others) == [number - 1]
            if number % 3 == 0:
                session.abort_transaction()
                assert balance(others) == [number - 1]
                others.update_one({"_id": 1}, {"$inc": {"x": 1}})
            else:
                session.commit_transaction()
            assert balance(others) == balance(mine) == [number]
        client.drop_database(database_name)


def test_indexes_that_gateways_compute(selkie, database_name):
    """A transaction reads its own writes by them, and keeps them right."""
    with selkie.client() as client, client.start_session() as session:
        things = client[database_name].things
        things.create_index([("text", "text")])
        things.create_index([("place", "2dsphere")])
        things.create_index("name", collation={"locale": "en", "strength": 2})
        documents = [{"_id": n, "text": f"word{n % 3}", "place": [n, n], "name": f"N{n}"} for n in range(30)]
        things.insert_many(documents)

        def found(session=None) -> list:
            near = {"place": {"$geoWithin": {"$centerSphere": [[100, 50], 0.2]}}}
            collation = {"locale": "en", "strength": 2}
            return [
                sorted(document["_id"] for document in things.find({"$text": {"$search": "changed"}}, session=session)),
                sorted(document["_id"] for document in things.find(near, session=session)),
                [document["_id"] for document in things.find({"name": "moved"}, collation=collation, session=session)],
            ]

        def change(session):
            things.update_many({"_id": {"$lt": 5}}, {"$set": {"text": "changed", "place": [100, 50]}}, session=session)
            things.update_one({"_id": 7}, {"$set": {"name": "MOVED"}}, session=session)
            things.insert_one({"_id": 50, "text": "changed"}, session=session)
            assert found(session) == [[0, 1, 2, 3, 4, 50], [0, 1, 2, 3, 4], [7]]
            assert found() == [[], [], []]

        session.with_transaction(change)
        assert found() == [[0, 1, 2, 3, 4, 50], [0, 1, 2, 3, 4], [7]]
        assert client[database_name].command("validate", "things")["valid"]
        client.drop_database(database_name)


def test_changes_by_sql_are_conflicts(selkie, mariadb, database_name):
    with selkie.client() as client, client.start_session() as session:
        things = client[database_name].things
        things.insert_many([{"_id": 1, "x": 0}, {"_id": 2, "x": 0}])
        session.start_transaction()
        assert things.find_one({"_id": 1}, session=session)["x"] == 0
        with mariadb.connect(database=database_name) as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE things SET doc = JSON_SET(doc, '$.x', 5) WHERE id = '1'")
        assert things.find_one({"_id": 1}, session=session)["x"] == 0
        things.update_one({"_id": 2}, {"$inc": {"x": 1}}, session=session)
        with pytest.raises(OperationFailure) as refused:
            things.update_one({"_id": 1}, {"$inc": {"x": 1}}, session=session)
        assert refused.value.code == 112 and refused.value.has_error_label("TransientTransactionError")
        session.abort_transaction()
        assert [document["x"] for document in things.find(sort=[("_id", 1)])] == [5, 0]
        client.drop_database(database_name)


def commit(wire: Wire, session, number: int):
    """Commits a transaction of another client's session; returns the error's code."""
    numbers = {"lsid": session.session_id, "txnNumber": bson.Int64(number), "autocommit": False}
    return wire.run({"commitTransaction": 1, **numbers, "$db": "admin"}).get("code")


def test_a_commit_at_another_gateway_tells_the_truth(selkie, own_server, mariadb, database_name):
    """A driver sends it there when the first gateway was killed. If the reply is 251, the
    transaction is never committed, even if the first gateway still runs."""
    second = own_server("--gateway-name", "second", mariadb=mariadb)
    with selkie.client() as one, Wire(second.port) as other, one.start_session() as session:
        collection = one[database_name].c
        collection.insert_one({"_id": 0})
        session.start_transaction()
        collection.insert_one({"_id": 1}, session=session)
        session.commit_transaction()
        first = session._server_session.transaction_id
        assert [commit(other, session, number) for number in (first, first)] == [None, None]
        session.start_transaction()
        collection.insert_one({"_id": 2}, session=session)
        assert commit(other, session, first + 1) == 251
        with pytest.raises(OperationFailure) as error:
            session.commit_transaction()
        assert error.value.code == 251
        assert [document["_id"] for document in collection.find()] == [0, 1]
        # The second gateway knows the session by now.
        session.start_transaction()
        collection.insert_one({"_id": 3}, session=session)
        session.commit_transaction()
        assert commit(other, session, first + 2) is None
        assert commit(other, session, first + 1) == 225
