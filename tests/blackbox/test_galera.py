"""Documents in a Galera cluster of three nodes."""

import itertools
from hashlib import sha256

import pymysql
import pytest
from pymongo.errors import PyMongoError
from test_backend_identity import PRIVILEGES, ROOT
from test_backend_identity import Gateway as IdentityGateway
from test_definitions_together import INDEXES, NAMES, Clients, define, names, redefine
from test_histories import check, restarted, skip_without_transactions
from test_service_store import DOCUMENTS, STORE, Application

from support.selkie import SelkieServer, program
from support.topology import GaleraCluster, galera_provider, until

pytestmark = [
    pytest.mark.selkie_only, pytest.mark.mariadb_only,
    pytest.mark.skipif(not galera_provider(), reason="Galera is not installed"),
]


@pytest.fixture(scope="module")
def cluster(store, tmp_path_factory):
    statements = (
        "CREATE USER monitor@'%' IDENTIFIED BY 'secret'", "GRANT REPLICA MONITOR, PROCESS ON *.* TO monitor@'%'", *DOCUMENTS,
    )
    cluster = GaleraCluster(tmp_path_factory.mktemp("galera"), statements)
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
    # A gateway may know definitions that are some seconds old.
    until(lambda: "a_1" in names(databases[0].left))
    check_records(cluster, databases[0].name)


def test_users_are_changed_on_two_nodes(cluster, tmp_path_factory):
    node = cluster.servers[0]
    node.sql("CREATE USER gateway@'%' IDENTIFIED BY 'secret'")
    node.sql(f"GRANT {PRIVILEGES} ON *.* TO gateway@'%' WITH GRANT OPTION")
    gateways = [IdentityGateway(tmp_path_factory.mktemp("identity"), node).start() for node in cluster.servers[:2]]
    gateways[0].client().admin.command("createUser", "root", pwd="top", roles=["root"])
    clients = [until(lambda gateway=gateway: logged_in(gateway)) for gateway in gateways]
    names = [[f"user{side}{number}" for number in range(4)] for side in range(2)]

    def change(side: int):
        db = clients[side]["people"]
        for name in names[side]:
            db.command("createUser", name, pwd="first", roles=["read"])
            db.command("updateUser", name, pwd="second", roles=["readWrite"])

    with Clients() as changing:
        changing.start(change, [(0,), (1,)])
    for node in cluster.servers:
        until(lambda node=node: node.sql("SELECT * FROM selkie.locks") == ())
        for name in itertools.chain(*names):
            login = {"unix_socket": node.socket, "user": f"people.{name}", "password": "second"}
            with pymysql.connect(**login) as connection, connection.cursor() as cursor:
                cursor.execute("SHOW GRANTS")
                assert any("INSERT" in grant for grant, in cursor.fetchall())
    for client, gateway in zip(clients, gateways):
        client.close()
        gateway.remove()


def logged_in(gateway):
    """Returns a client, once the gateway knows the user."""
    client = gateway.client(**ROOT)
    try:
        client.admin.command("usersInfo", 1)
    except PyMongoError:
        client.close()
        return None
    return client


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


MONITOR = """
[monitor.main]
kind = "galera"
servers = ["db1", "db2", "db3"]
user = "monitor"
password = "secret"
interval-ms = 100
timeout-ms = 1000
failures = 2
"""


class Gateway(SelkieServer):
    """Selkie whose store is a service of the cluster."""

    def __init__(self, folder, cluster: GaleraCluster):
        super().__init__(folder)
        self.file = folder / "selkie.toml"
        self.file.write_text(
            f'listen = ["127.0.0.1:{self.port}"]\nthreads = 2\n[mongodb]\ntopology = "replica-set"\n'
            + STORE.format(wait_ms=20_000) + cluster.sections() + MONITOR
        )

    def command(self) -> list[str]:
        return [program(), "serve", "--config", str(self.file)]

    def roles(self) -> list[str]:
        with self.client() as client:
            servers = client.admin.command("serverStatus")["selkie"]["servers"]
        return [server["role"] for server in servers.values()]


@pytest.fixture
def gateway(cluster, tmp_path):
    gateway = Gateway(tmp_path / "service", cluster).start()
    until(lambda: gateway.roles() == ["primary", "replica", "replica"])
    yield gateway
    gateway.remove()


def test_applications_see_no_error_when_the_node_written_to_is_killed(cluster, gateway):
    application = Application(gateway, "killed", 2)
    application.await_more()
    cluster.servers[0].kill()
    application.await_more()
    assert gateway.roles() == ["none", "primary", "replica"]
    cluster.servers[0].start_again()
    until(lambda: gateway.roles() == ["primary", "replica", "replica"])
    application.await_more()
    # A node that is a donor, or desynchronized, is not used.
    cluster.servers[0].sql("SET GLOBAL wsrep_desync = ON")
    until(lambda: gateway.roles() == ["none", "primary", "replica"])
    application.await_more()
    cluster.servers[0].sql("SET GLOBAL wsrep_desync = OFF")
    until(lambda: gateway.roles() == ["primary", "replica", "replica"])
    application.await_more()
    application.end()


def test_change_streams_go_on_at_another_node(cluster, gateway):
    with gateway.client(retryWrites=True) as client:
        things = client.d.streamed
        with things.watch(max_await_time_ms=100) as stream:
            seen = []
            for turn in range(3):
                things.insert_many([{"_id": turn * 10 + number} for number in range(10)])
                if turn == 0:
                    seen.append(next(stream))
                    cluster.servers[0].kill()
                elif turn == 1:
                    cluster.servers[0].start_again()
                    until(lambda: gateway.roles() == ["primary", "replica", "replica"])
            seen += [next(stream) for _ in range(29)]
        assert [change["documentKey"]["_id"] for change in seen] == [*range(30)]


def test_histories_while_nodes_are_killed(cluster, gateway, tmp_path):
    skip_without_transactions(gateway)

    def kill_node():
        cluster.servers[0].kill()
        until(lambda: gateway.roles()[1] == "primary", 30)
        cluster.servers[0].start_again()
        until(lambda: gateway.roles() == ["primary", "replica", "replica"], 30)

    verdict = check(gateway, "histories", tmp_path, 0, [kill_node, restarted(gateway)], seconds=12)
    assert verdict.returncode == 0, verdict.stdout
