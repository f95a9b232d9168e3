"""Histories of concurrent transactions have no anomaly, also if servers are killed. Planted bugs
are found. The checker is the program `histories`, the clients are those of tests/histories.

SELKIE_HISTORIES sets the number of histories with kills (default 1).
"""

import contextlib
import os
import random
import threading
import time

import pymongo
import pytest
from pymongo.errors import OperationFailure

from histories import misbehaviour
from histories.stream import Follower
from histories.workload import prepare, read_all, record
from support.clock import Clock
from support.mariadb import MariadbServer
from support.mongod import MongodReplicaSet
from support.proxy import ReplacingProxy

HISTORIES = int(os.environ.get("SELKIE_HISTORIES", "1"))
REPLICA_SET = ("--topology", "replica-set")
# Options of MariaDB.
LOGGING = ("--log-bin=log", "--server-id=1", "--binlog-format=ROW")
SECONDS = 3
# A minute per planted bug. It is found in the first seconds.
PATIENCE_S = 60


@pytest.fixture(scope="module")
def logging_mariadb(tmp_path_factory):
    """A MariaDB with a binary log, from which change streams are read."""
    server = MariadbServer(tmp_path_factory.mktemp("logging"), LOGGING).start()
    yield server
    server.remove()


@pytest.fixture
def replica_set(own_server, store, request):
    """A server with transactions."""
    mariadb = request.getfixturevalue("logging_mariadb") if store == "mariadb" else None
    server = own_server(*REPLICA_SET, mariadb=mariadb)
    skip_without_transactions(server)
    return server


def skip_without_transactions(server):
    with server.client() as client, client.start_session() as session:
        try:
            with session.start_transaction():
                client.test.lists.find_one({}, session=session)
        except OperationFailure as error:
            if error.code != 263:
                raise
            pytest.skip("the store has no transactions")


def has_streams(server) -> bool:
    with server.client() as client:
        try:
            client.test.lists.watch().close()
        except OperationFailure as error:
            if error.code != 40573:
                raise
            return False
    return True


class Faults:
    """Kills a server at random moments, until the history has ended."""

    def __init__(self, kills, seed: int):
        self.kills, self.rng, self.over = kills, random.Random(seed), threading.Event()
        self.failure = None
        self.count = 0
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        assert self.failure is None, self.failure

    def run(self):
        try:
            while self.kills and not self.over.wait(self.rng.uniform(0.2, 1.5)):
                kill = self.rng.choice(self.kills)
                kill()
                self.count += 1
        except BaseException as error:  # noqa: BLE001  whatever it is, the test has to see it
            self.failure = error


def restarted(server):
    def kill():
        server.kill()
        server.start()

    return kill


def check(server, database: str, tmp_path, seed: int, kills=(), proxy=None, seconds=SECONDS, **options):
    """Records a history and returns the checker's verdict on it. The clients use the proxy; the
    lists are read at the end without it."""
    connect = server.client if proxy is None else through(proxy)
    with server.client() as client, contextlib.ExitStack() as stack:
        collection = client[database].lists
        prepare(collection)
        follower = stack.enter_context(Follower(connect, database)) if has_streams(server) else None
        with Faults(kills, seed) as faults:
            history = record(connect, database, seconds, seed, resolves=seed % 2 == 0, **options)
        read_all(collection, history)
        if follower:
            history.streams.append(follower.finish(collection))
        assert history.count("committed") > 10, "hardly anything was committed: this shows nothing"
        assert faults.count or not kills
        client.drop_database(database)
    verdict = history.check(tmp_path / f"history-{seed}.jsonl")
    print(verdict.stdout, f"{faults.count} kills, {follower and follower.resumed} resumptions")
    return verdict


def through(proxy):
    """A function that connects to a server by way of a proxy."""

    def connect(**options):
        return pymongo.MongoClient("127.0.0.1", proxy.port, directConnection=True, serverMonitoringMode="poll", **options)

    return connect


@pytest.mark.selkie_only
def test_without_faults(replica_set, database_name, tmp_path):
    verdict = check(replica_set, database_name, tmp_path, 0)
    assert verdict.returncode == 0, verdict.stdout


@pytest.mark.selkie_only
@pytest.mark.timeout(7200)
def test_while_the_server_is_killed(replica_set, database_name, tmp_path):
    for seed in range(HISTORIES):
        verdict = check(replica_set, database_name, tmp_path, seed, [restarted(replica_set)])
        assert verdict.returncode == 0, verdict.stdout


@pytest.mark.selkie_only
def test_while_the_clock_is_set(replica_set, database_name, tmp_path):
    """Forwards and backwards, by less than the outcomes of transactions are stored for."""
    replica_set.kill()
    clock, rng = Clock(replica_set), random.Random(1)
    replica_set.start()
    faults = [lambda: clock.set(rng.randrange(-1500, 1500)), restarted(replica_set)]
    verdict = check(replica_set, database_name, tmp_path, 0, faults)
    assert verdict.returncode == 0, verdict.stdout


@pytest.mark.mariadb_only
@pytest.mark.timeout(7200)
def test_while_mariadb_is_killed(own_server, database_name, tmp_path):
    mariadb = MariadbServer(tmp_path / "private", LOGGING).start()
    try:
        server = own_server(*REPLICA_SET, mariadb=mariadb)
        skip_without_transactions(server)
        kills = [restarted(mariadb), restarted(server), lambda: mariadb.sql("FLUSH BINARY LOGS")]
        for seed in range(HISTORIES):
            verdict = check(server, database_name, tmp_path, seed, kills)
            assert verdict.returncode == 0, verdict.stdout
    finally:
        mariadb.remove()


def test_mongodb_passes(tmp_path, database_name):
    server = MongodReplicaSet(tmp_path / "mongod").start()
    try:
        verdict = check(server, database_name, tmp_path, 0)
        assert verdict.returncode == 0, verdict.stdout
    finally:
        server.remove()


@pytest.mark.selkie_only
def test_the_proxy_alone_passes(replica_set, database_name, tmp_path):
    with misbehaviour.MisbehavingProxy(replica_set.port, misbehaviour.Misbehaviour()) as proxy:
        verdict = check(replica_set, database_name, tmp_path, 0, [restarted(replica_set)], proxy, seconds=2)
    assert verdict.returncode == 0, verdict.stdout


# Consequences of a missing snapshot, of which a short history has one at least.
WITHOUT_SNAPSHOT = ("read skew", "lost update", "unrepeatable read")
PLANTED = {
    misbehaviour.NoSnapshot: WITHOUT_SNAPSHOT,
    misbehaviour.LateSnapshot: WITHOUT_SNAPSHOT,
    misbehaviour.NoOwnWrites: ("own writes not seen",),
    misbehaviour.CommitBeforeItIsDurable: ("lost append",),
    misbehaviour.RetryAppliedTwice: ("element twice in a list",),
    misbehaviour.EventLost: ("event lost",),
    misbehaviour.EventRepeated: ("event repeated",),
}


@pytest.mark.selkie_only
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_planted_bugs_are_found(replica_set, database_name, tmp_path, planted):
    if "Event" in planted.__name__ and not has_streams(replica_set):
        pytest.skip("the store has no change streams")
    is_killed = planted is misbehaviour.CommitBeforeItIsDurable
    options = {"retryWrites": True} if planted is misbehaviour.RetryAppliedTwice else {}
    end, seed = time.monotonic() + PATIENCE_S, 0
    while time.monotonic() < end:
        behaviour = planted()
        with misbehaviour.MisbehavingProxy(replica_set.port, behaviour) as proxy:
            kills = [restarted(replica_set)] if is_killed else []
            verdict = check(replica_set, database_name, tmp_path, seed, kills, proxy, seconds=2, **options)
        assert behaviour.planted
        if any(name in verdict.stdout for name in PLANTED[planted]):
            assert verdict.returncode == 1
            return
        seed += 1
    raise AssertionError(f"not found within a minute: {verdict.stdout}")


class Behind:
    """A MariaDB server that the gateway reaches through a proxy."""

    def __init__(self, port: int):
        self.port = port

    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}"


@pytest.mark.mariadb_only
@pytest.mark.parametrize("is_planted", [True, False], ids=["read committed", "repeatable read"])
def test_a_weaker_isolation_of_mariadb_is_found(own_server, mariadb, database_name, tmp_path, is_planted):
    """A proxy makes the transactions of MariaDB read the latest committed rows."""
    text = b"'REPEATABLE-READ'"
    with ReplacingProxy(mariadb.port, text, b"'READ-COMMITTED' " if is_planted else text) as proxy:
        server = own_server(*REPLICA_SET, mariadb=Behind(proxy.port))
        verdict = check(server, database_name, tmp_path, 0)
        assert proxy.replaced
    assert verdict.returncode == int(is_planted), verdict.stdout
    assert any(name in verdict.stdout for name in WITHOUT_SNAPSHOT) == is_planted
