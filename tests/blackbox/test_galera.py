"""Documents in a Galera cluster of three nodes."""

import itertools
from hashlib import sha256

import pytest
from test_definitions_together import INDEXES, NAMES, Clients, define, names, redefine

from support.selkie import SelkieServer
from support.topology import GaleraCluster, galera_provider, until

pytestmark = [
    pytest.mark.selkie_only, pytest.mark.mariadb_only,
    pytest.mark.skipif(not galera_provider(), reason="Galera is not installed"),
]


@pytest.fixture(scope="module")
def cluster(store, tmp_path_factory):
    cluster = GaleraCluster(tmp_path_factory.mktemp("galera"))
    yield cluster
    cluster.remove()


@pytest.fixture(scope="module")
def gateways(cluster, tmp_path_factory):
    """Clients of two gateways on two nodes."""
    gateways = [SelkieServer(tmp_path_factory.mktemp("gateway"), node).start() for node in cluster.servers[:2]]
    clients = [gateway.client(maxPoolSize=None) for gateway in gateways]
    yield clients
    for client, gateway in zip(clients, gateways):
        client.close()
        gateway.remove()


@pytest.fixture
def databases(gateways, request):
    """An empty database as both gateways show it, gone afterwards."""
    name = request.node.name.partition("[")[0][-30:]
    yield [client[name] for client in gateways]
    gateways[0].drop_database(name)


def each_model(databases) -> list[tuple]:
    return [(db[f"model{number}"],) for number in range(4) for db in databases]


def check_records(cluster, database: str):
    """Checks on each node that Selkie's records are those of the tables of documents, and that no
    lock is held."""
    for node in cluster.servers:
        until(lambda node=node: node.sql("SELECT * FROM selkie.locks") == ())
        tables = {name for (name,) in node.sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", database)}
        documents = {name for name in tables if not name.startswith("~")}
        recorded = node.sql("SELECT table_name FROM selkie.collections WHERE schema_name = %s", database)
        assert {name for (name,) in recorded} == documents
        keys = node.sql("SELECT table_name, sql_name FROM selkie.indexes WHERE schema_name = %s", database)
        assert {table for table, _ in keys} <= documents
        for table, name in keys:
            # An index is a key, or the mark of a table beside it.
            found = {column for column, *_ in node.sql(f"SHOW COLUMNS FROM `{database}`.`{table}`")}
            found |= {key for _, _, key, *_ in node.sql(f"SHOW INDEX FROM `{database}`.`{table}`")}
            assert any(one.startswith(name) for one in found), (table, name)


def left_lock(schema: str, table: str) -> tuple[str, bytes]:
    """Returns the row of a lock of a collection that a killed gateway has left."""
    parts = b"".join(sha256(part.encode()).digest() for part in (schema, table))
    return f"selkie collection {sha256(parts).hexdigest()[:32]}", b"of another one.."


def test_models_are_defined_on_two_nodes(cluster, databases):
    define(databases[0].left)
    name, owner = left_lock(databases[0].name, "left")
    cluster.servers[0].sql("INSERT INTO selkie.locks VALUES (%s, %s, 7)", name, owner)
    with Clients() as taking_over:
        # This takes as long as the lock must have been unused.
        taking_over.start(databases[1].left.create_index, [("a",)])
        for turn in range(2):
            with Clients() as clients:
                clients.start(define, each_model(databases))
                if turn:
                    clients.start(lambda collection: collection.drop(), each_model(databases))
                clients.start(lambda model: model.create_indexes(INDEXES), each_model(databases))
            for (model,) in each_model(databases):
                model.create_indexes(INDEXES)
                assert names(model) == NAMES, model.name
    assert "a_1" in names(databases[0].left)
    check_records(cluster, databases[0].name)


def test_collections_are_redefined_on_two_nodes(cluster, databases):
    for turn in range(2):
        with Clients() as clients:
            steps = itertools.product(range(7 * turn, 7 * turn + 7), range(3), databases)
            clients.start(redefine, [(db[f"model{number}"], turn) for turn, number, db in steps])
        for db in databases:
            for name in db.list_collection_names():
                db[name].create_indexes(INDEXES)
                assert names(db[name]) == NAMES, name
    check_records(cluster, databases[0].name)
