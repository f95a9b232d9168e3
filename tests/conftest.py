"""Starts the servers of the tests: Selkie on its embedded store and on a private MariaDB, or, with
--target, any other server.

`pytest --target mongodb://127.0.0.1:27018` runs the tests on MongoDB; tests of Selkie's own
features are skipped.
"""

import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pymongo
import pytest

from support.mariadb import MariadbServer
from support.mongod import MongodReplicaSet
from support.selkie import EMBEDDED_MARIADB, SelkieServer, data_flag, has_embedded_mariadb

STORES = ("embedded", "mariadb")
COMPRESSORS = ("none", "snappy", "zlib", "zstd")


def pytest_addoption(parser):
    parser.addoption("--target", help="a server that runs already, instead of starting Selkie")
    parser.addoption("--store", choices=(*STORES, EMBEDDED_MARIADB), help="this store only")


def built_in() -> tuple[str, ...]:
    return (*STORES, EMBEDDED_MARIADB) if has_embedded_mariadb() else STORES


def pytest_generate_tests(metafunc):
    if "store" in metafunc.fixturenames:
        target = metafunc.config.getoption("target")
        only = metafunc.config.getoption("store")
        stores = ("target",) if target else (only,) if only else built_in()
        if metafunc.definition.get_closest_marker("mariadb_only"):
            stores = tuple(store for store in stores if store == "mariadb")
        if metafunc.definition.get_closest_marker("selkie_only"):
            stores = tuple(store for store in stores if store != "target")
        metafunc.parametrize("store", stores, scope="session")
    if "compressor" in metafunc.fixturenames:
        metafunc.parametrize("compressor", COMPRESSORS)


def pytest_collection_modifyitems(config, items):
    if config.getoption("store") == EMBEDDED_MARIADB and not has_embedded_mariadb():
        raise pytest.UsageError("the program has no MariaDB built in: cargo build -p selkie --features embedded-mariadb")
    if not config.getoption("target"):
        return
    for item in items:
        if item.get_closest_marker("selkie_only") or item.get_closest_marker("mariadb_only"):
            item.add_marker(pytest.mark.skip(reason="asks for what only Selkie does"))


class Target:
    """A server that was there before."""

    def __init__(self, uri: str):
        self.uri = uri
        self.port = urlsplit(uri).port
        self.mariadb = None

    def client(self, **options) -> pymongo.MongoClient:
        return pymongo.MongoClient(self.uri, **options)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory) -> MariadbServer:
    server = MariadbServer(tmp_path_factory.mktemp("mariadb")).start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def mongod(tmp_path_factory) -> MongodReplicaSet:
    """MongoDB as a replica set of one."""
    server = MongodReplicaSet(tmp_path_factory.mktemp("mongod")).start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def server(store, request, tmp_path_factory):
    """One server for all tests that do not kill it."""
    if store == "target":
        yield Target(request.config.getoption("target"))
        return
    mariadb = request.getfixturevalue("mariadb") if store == "mariadb" else None
    server = SelkieServer(tmp_path_factory.mktemp(store), mariadb, data_flag=data_flag(store)).start()
    yield server
    if server.is_running():
        assert server.stop() == 0, server.end_of_log()
    server.remove()


@pytest.fixture
def own_server(store, request, tmp_path):
    """A function that starts a server for one test, with its own data directory (on MariaDB: the
    shared MariaDB server, unless the test brings one)."""
    started: list[SelkieServer] = []

    def start(*options: str, mariadb: MariadbServer | None = None, folder: Path = tmp_path) -> SelkieServer:
        if store == "mariadb" and mariadb is None:
            mariadb = request.getfixturevalue("mariadb")
        started.append(SelkieServer(folder / "selkie", mariadb, options, data_flag(store)).start())
        return started[-1]

    yield start
    for server in started:
        server.remove()


@pytest.fixture(scope="session")
def session_client(server) -> pymongo.MongoClient:
    with server.client() as client:
        yield client


@pytest.fixture
def database_name() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def client(session_client) -> pymongo.MongoClient:
    return session_client


@pytest.fixture
def db(session_client, database_name):
    """An empty database, gone afterwards."""
    yield session_client[database_name]
    session_client.drop_database(database_name)


@pytest.fixture
def sql(server, db):
    """Runs SQL in the test's database."""

    def run(statement: str, *parameters):
        with server.mariadb.connect(database=db.name) as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall()

    return run


@pytest.fixture
def compressed_db(server, compressor, database_name):
    """An empty database through a connection with this compressor."""
    options = {} if compressor == "none" else {"compressors": compressor}
    with server.client(**options) as client:
        yield client[database_name]
        client.drop_database(database_name)
