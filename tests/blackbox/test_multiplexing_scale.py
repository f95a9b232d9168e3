"""Many clients on few connections (`multiplex`), each with a state of its own."""

import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from support.split_gateway import SplitGateway, rows
from support.topology import Replication

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

CLIENTS = int(os.environ.get("SELKIE_SCALE_CLIENTS", "150"))
CONNECTIONS = max(4, CLIENTS // 100)
THREADS = 16
ROUNDS = 2
# An idle client's memory is measured with so many, by which that of connections is small.
MEASURED_FROM = 2000
CLIENT_BYTES_MAX = 12 << 10


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    topology = Replication(tmp_path_factory.mktemp("replication"), ("--max-connections=500",))
    for number in range(4):
        topology.servers[0].sql(f"CREATE DATABASE s{number}")
    topology.servers[0].sql("CREATE TABLE d.written (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
    topology.await_replicas()
    yield topology
    topology.remove()


@pytest.fixture(scope="module")
def gateway(replication, tmp_path_factory):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    services = {"split": "multiplex = true\nprimary-wait-ms = 60000", "limited": "multiplex = true\nconnections-per-user = 3"}
    gateway = SplitGateway(
        tmp_path_factory.mktemp("gateway"), replication, services, server=f"max-connections = {CONNECTIONS}"
    )
    gateway.await_roles("primary", "replica", "replica")
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory(gateway) -> int:
    """Returns the resident memory of Selkie."""
    with open(f"/proc/{gateway.selkie.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


class Client:
    def __init__(self, gateway, number: int):
        self.number = number
        self.connection = gateway.connect(database=f"s{number % 4}", autocommit=None)
        self.inserted = 0

    def set_state(self, turn: int):
        self.expected = (f"+0{(self.number + turn) % 10}:00", 100 + self.number, f"s{(self.number + turn) % 4}")
        zone, limit, schema = self.expected
        rows(self.connection, f"SET time_zone = '{zone}', lock_wait_timeout = {limit}")
        self.connection.select_db(schema)
        with self.connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO d.written (a) VALUES ({self.number})")
            self.inserted = cursor.lastrowid

    def check_state(self):
        state = "@@time_zone, @@lock_wait_timeout, DATABASE()"
        assert rows(self.connection, f"SELECT {state}, LAST_INSERT_ID()") == ((*self.expected, self.inserted),)
        assert rows(self.connection, f"SELECT {state} FROM d.t") == (self.expected,)

    def transact(self):
        rows(self.connection, "BEGIN")
        rows(self.connection, f"INSERT INTO d.written (a) VALUES (-{self.number})")
        rows(self.connection, "ROLLBACK")
        self.inserted = rows(self.connection, "SELECT LAST_INSERT_ID()")[0][0]


@pytest.mark.timeout(120 + CLIENTS)
def test_each_of_many_clients_keeps_its_state(gateway, replication):
    for number in range(2 * CONNECTIONS):
        gateway.connect(autocommit=None).close()
    before = memory(gateway)
    with ThreadPoolExecutor(THREADS) as pool:
        clients = list(pool.map(lambda number: Client(gateway, number), range(CLIENTS)))
        used = (memory(gateway) - before) / CLIENTS
        print(f"{CLIENTS} clients on {CONNECTIONS} connections, {used / 1024:.1f} KiB each")
        assert CLIENTS < MEASURED_FROM or used <= CLIENT_BYTES_MAX
        for turn in range(ROUNDS):
            for step in (lambda client, turn=turn: client.set_state(turn), Client.check_state, Client.transact, Client.check_state):
                list(pool.map(step, clients))
    for server in replication.servers:
        connected = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'joe'"
        assert server.sql(connected)[0][0] <= CONNECTIONS
    for client in clients:
        client.connection.close()


def test_no_client_overtakes_those_that_wait_for_long(gateway):
    """Greedy clients use all connections all the time; others get their turns."""
    greedy = [gateway.connect(autocommit=None) for _ in range(2 * CONNECTIONS)]
    patient = [gateway.connect(autocommit=None) for _ in range(10)]
    ended, executed = threading.Event(), []

    def work(connection):
        while not ended.is_set():
            rows(connection, "BEGIN")
            rows(connection, "DO 1")
            rows(connection, "COMMIT")
            executed.append(connection)

    with ThreadPoolExecutor(len(greedy)) as pool:
        working = [pool.submit(work, connection) for connection in greedy]
        try:
            for connection in patient:
                begun = len(executed)
                assert rows(connection, "SELECT 1") == ((1,),)
                # All others may have had several turns, but not hundreds.
                assert len(executed) - begun < 100 * len(greedy)
        finally:
            ended.set()
        for one in working:
            one.result()
    for connection in (*greedy, *patient):
        connection.close()


def test_the_sessions_of_a_user_are_limited(gateway):
    sessions = [gateway.connect("limited", autocommit=None) for _ in range(3)]
    with pytest.raises(pymysql.err.MySQLError) as refused:
        gateway.connect("limited")
    assert refused.value.args == (1203, "User joe already has more than 'max_user_connections' active connections")
    other = gateway.connect("limited", user="jim", autocommit=None)
    assert rows(sessions[0], "SELECT 1") == ((1,),)
    sessions.pop().close()
    for _ in range(100):
        try:
            sessions.append(gateway.connect("limited", autocommit=None))
            break
        except pymysql.err.MySQLError as error:
            assert error.args[0] == 1203
    assert len(sessions) == 3
    for session in (*sessions, other):
        session.close()
