"""Transactions of several statements on MariaDB, where they differ from the other store."""

import pytest

from support.selkie import SelkieServer

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
