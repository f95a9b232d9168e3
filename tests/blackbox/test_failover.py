"""Changes of the primary: by a monitor when it is lost, and by order, under load."""

import threading
import time

import pymysql
import pytest
from pymongo.errors import OperationFailure

from support.process import free_port
from support.selkie import SelkieServer
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

MONITOR = """
[monitor.main]
kind = "replication"
servers = ["db1", "db2", "db3"]
user = "monitor"
password = "it's \\\\ secret"
replication-user = "follower"
replication-password = "secret"
interval-ms = 100
timeout-ms = 1000
failures = 2
change-timeout-ms = 4000
failover = {automatic}
rejoin = {automatic}
enforce-read-only = {automatic}
"""

SERVICE = """
[service.app]
monitor = "main"
role = "primary"
[listener.app]
protocol = "mariadb"
address = "127.0.0.1:{port}"
service = "app"
"""

# The privileges that the documentation names, and no others.
ACCOUNTS = (
    r"CREATE USER monitor@'%' IDENTIFIED BY 'it\'s \\ secret'",
    "GRANT REPLICA MONITOR, CONNECTION ADMIN, READ_ONLY ADMIN, REPLICATION SLAVE ADMIN, PROCESS, RELOAD ON *.* TO monitor@'%'",
    "CREATE USER follower@'%' IDENTIFIED BY 'secret'", "GRANT REPLICATION SLAVE ON *.* TO follower@'%'",
    "CREATE USER app@'%' IDENTIFIED BY 'secret'", "GRANT SELECT, INSERT, UPDATE, DELETE ON d.* TO app@'%'",
    "CREATE TABLE d.ledger (id BIGINT PRIMARY KEY)",
)

REPLICA = ("--rpl-semi-sync-slave-enabled=ON", "--slave-net-timeout=2", "--sync-binlog=1")
# With AFTER_SYNC, no client sees a transaction that no replica has. With wait_no_slave, a replica
# that logs what it applies would wait for replicas of its own.
PRIMARY = {
    "rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_wait_point": "AFTER_SYNC", "rpl_semi_sync_master_timeout": "60000",
    "rpl_semi_sync_master_wait_no_slave": "OFF",
}


class Gateway:
    """Selkie with an embedded store for its own clients, beside the servers that it observes."""

    def __init__(self, folder, replication: Replication, automatic: bool):
        folder.mkdir()
        self.port = free_port()
        file = folder / "selkie.toml"
        file.write_text(replication.sections() + MONITOR.format(automatic=str(automatic).lower()) + SERVICE.format(port=self.port))
        self.selkie = SelkieServer(folder / "s", options=("--threads", "2", "--config", str(file))).start()
        self.mongo = self.selkie.client()

    def status(self) -> dict:
        return self.mongo.admin.command("serverStatus")["selkie"]

    def monitor(self) -> dict:
        return self.status()["monitors"]["main"]

    def order(self, **order) -> dict:
        return self.mongo.admin.command({"selkieMonitor": "main", **order})

    def refusal(self, **order) -> str:
        with pytest.raises(OperationFailure) as refused:
            self.order(**order)
        assert refused.value.code == 96, refused.value
        return refused.value.details["errmsg"]

    def roles(self) -> list[str]:
        return [server["role"] for server in self.status()["servers"].values()]

    def await_primary(self) -> int:
        """Waits until a server is the primary of the others; returns its number."""
        try:
            until(lambda: sorted(self.roles()) == ["primary", "replica", "replica"], 30)
        except AssertionError:
            raise AssertionError(f"{self.status()}\n{self.log()}") from None
        return self.roles().index("primary")

    def connect(self) -> pymysql.Connection:
        return pymysql.connect(host="127.0.0.1", port=self.port, user="app", password="secret", autocommit=True,
                               connect_timeout=15, read_timeout=15)

    def log(self) -> str:
        return self.selkie.log.read_text()

    def remove(self):
        self.mongo.close()
        self.selkie.kill()


class Ledger:
    """Clients that insert numbers, and know which inserts were acknowledged."""

    def __init__(self, gateway: Gateway, first: int, clients: int = 3):
        self.gateway, self.acknowledged, self.errors = gateway, [], []
        self.longest = 0.0
        self.is_over = False
        self.threads = [threading.Thread(target=self.write, args=(first + number, clients), daemon=True) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def write(self, number: int, step: int):
        connection, last = None, time.monotonic()
        while not self.is_over:
            try:
                connection = connection or self.gateway.connect()
                with connection.cursor() as cursor:
                    cursor.execute("INSERT INTO d.ledger VALUES (%s)", (number,))
                self.acknowledged.append(number)
                self.longest, last = max(self.longest, time.monotonic() - last), time.monotonic()
            except pymysql.err.MySQLError as error:
                self.errors.append(error.args)
                if connection:
                    connection.close()
                connection = None
            number += step

    def await_more(self, count: int = 50):
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + count, 40)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    """Three servers; each test leaves one of them as the primary of the others."""
    replication = Replication(tmp_path_factory.mktemp("replication"), REPLICA)
    for statement in ACCOUNTS:
        replication.servers[0].sql(statement)
    # From now on, each waits for a replica when it is the primary.
    for server in replication.servers:
        # After a crash, a server removes the transactions that no replica has acknowledged.
        server.options += ("--init-rpl-role=SLAVE", *(f"--{name}={value}" for name, value in PRIMARY.items()))
        for name, value in PRIMARY.items():
            server.sql(f"SET GLOBAL {name} = {value if value.isdigit() else repr(value)}")
    yield replication
    replication.remove()


@pytest.fixture
def start(replication, tmp_path):
    gateways = []

    def start(automatic: bool = True) -> Gateway:
        gateway = Gateway(tmp_path / f"gateway{len(gateways)}", replication, automatic)
        gateways.append(gateway)
        gateway.await_primary()
        return gateway

    yield start
    for gateway in gateways:
        assert gateway.selkie.is_running()
        assert "secret" not in gateway.log()
        gateway.remove()


def ids(server) -> set[int]:
    return {number for number, in server.sql("SELECT id FROM d.ledger")}


def writable(replication) -> list[int]:
    running = [number for number, server in enumerate(replication.servers) if server.is_running()]
    return [number for number in running if replication.servers[number].sql("SELECT @@read_only") == ((0,),)]


def check_ledger(replication, ledger: Ledger):
    """No acknowledged insert is lost, and all servers have the same ones."""
    ledger.end()
    print(f"{len(ledger.acknowledged)} inserts, the longest pause was {ledger.longest:.2f} s; errors: {set(ledger.errors)}")
    primary, = writable(replication)
    written = ids(replication.servers[primary])
    assert set(ledger.acknowledged) <= written
    for server in replication.servers:
        until(lambda server=server: ids(server) == written)
    # The session ended, its server is read-only, or is gone.
    assert {error[0] for error in ledger.errors} <= {1290, 1927, 2013}, set(ledger.errors)


def test_a_killed_primary_is_replaced_and_rejoins(start, replication):
    gateway = start()
    until(lambda: gateway.monitor()["locks"] == {"held": 3, "needed": 2, "majority": True})
    ledger = Ledger(gateway, 1_000_000)
    ledger.await_more()
    for _ in range(3):
        old = gateway.await_primary()
        replication.servers[old].kill()
        until(lambda: gateway.monitor().get("primary") not in (None, f"db{old + 1}"), 30)
        ledger.await_more()
        # It is writable when it starts.
        replication.servers[old].start()
        gateway.await_primary()
        assert gateway.monitor()["lastAction"]["what"] == f"rejoin of db{old + 1}"
        assert len(writable(replication)) == 1
    check_ledger(replication, ledger)


def test_switchover_under_load(start, replication):
    gateway = start(automatic=False)
    ledger = Ledger(gateway, 2_000_000)
    for _ in range(3):
        ledger.await_more()
        new = (gateway.await_primary() + 1) % 3
        reply = gateway.order(switchover=f"db{new + 1}")
        assert reply["primary"] == f"db{new + 1}" and reply["lastAction"]["ok"]
        assert gateway.await_primary() == new and writable(replication) == [new]
    ledger.await_more()
    check_ledger(replication, ledger)


def test_a_switchover_ends_statements_that_take_too_long(start, replication):
    gateway = start(automatic=False)
    old = gateway.await_primary()
    new = (old + 1) % 3
    with gateway.connect() as client, client.cursor() as writer:
        errors = []

        def write():
            try:
                writer.execute("INSERT INTO d.ledger SELECT 6000000 + SLEEP(60)")
            except pymysql.err.MySQLError as error:
                errors.append(error.args[0])

        # On the old primary itself, for Selkie ends the sessions that it knows.
        direct = replication.servers[old].connect()
        thread = threading.Thread(target=lambda: failing(direct, "INSERT INTO d.ledger SELECT 6000001 + SLEEP(60)"), daemon=True)
        thread.start()
        other = threading.Thread(target=write, daemon=True)
        other.start()
        until(lambda: len(replication.servers[old].sql("SELECT 1 FROM information_schema.processlist WHERE info LIKE 'INSERT%'")) == 2)
        gateway.order(switchover=f"db{new + 1}")
        thread.join(10)
        other.join(10)
        assert errors == [1927]
    assert gateway.await_primary() == new and writable(replication) == [new]
    assert not {6_000_000, 6_000_001} & ids(replication.servers[new])


def failing(connection, sql: str):
    with pytest.raises(pymysql.err.OperationalError), connection.cursor() as cursor:
        cursor.execute(sql)


def test_failover_and_rejoin_by_order(start, replication):
    gateway = start(automatic=False)
    old = gateway.await_primary()
    new = (old + 1) % 3
    replication.servers[old].kill()
    until(lambda: "primary" not in gateway.monitor())
    assert gateway.order(failover=f"db{new + 1}")["primary"] == f"db{new + 1}"
    assert "is down" in gateway.refusal(rejoin=f"db{old + 1}")
    replication.servers[old].start()
    until(lambda: gateway.status()["servers"][f"db{old + 1}"]["state"] == "up")
    # Nothing is done by itself.
    assert sorted(writable(replication)) == sorted([old, new])
    assert gateway.order(rejoin=f"db{old + 1}")["lastAction"]["ok"]
    assert gateway.await_primary() == new and writable(replication) == [new]


def test_a_switchover_that_fails_is_undone(start, replication):
    gateway = start(automatic=False)
    old = gateway.await_primary()
    new = (old + 1) % 3
    assert "already" in gateway.refusal(switchover=f"db{old + 1}")
    assert "no server" in gateway.refusal(switchover="db9")
    assert "is up" in gateway.refusal(failover=f"db{new + 1}")
    with pytest.raises(OperationFailure) as unknown:
        gateway.mongo.admin.command({"selkieMonitor": "other", "switchover": "db1"})
    assert unknown.value.code == 7
    server = replication.servers[new]
    with server.connect() as connection, connection.cursor() as cursor:
        # The replica cannot apply what it receives.
        cursor.execute("LOCK TABLES d.ledger READ")
        with gateway.connect() as client, client.cursor() as writer:
            writer.execute("INSERT INTO d.ledger VALUES (%s)", (3_000_000,))
        assert "not applied" in gateway.refusal(switchover=f"db{new + 1}")
        cursor.execute("UNLOCK TABLES")
    assert gateway.await_primary() == old and writable(replication) == [old]
    with gateway.connect() as client, client.cursor() as writer:
        writer.execute("INSERT INTO d.ledger VALUES (%s)", (3_000_001,))
    until(lambda: {3_000_000, 3_000_001} <= ids(server))


def test_one_of_two_gateways_acts(start, replication):
    gateways = [start(), start()]
    until(lambda: [gateway.monitor()["locks"]["held"] for gateway in gateways] == [3, 0])
    old = gateways[0].await_primary()
    assert "another gateway" in gateways[1].refusal(switchover=f"db{(old + 1) % 3 + 1}")
    # The second one takes over when the first one is gone.
    gateways[0].selkie.kill()
    until(lambda: gateways[1].monitor()["locks"]["majority"])
    gateways[0].selkie.start()
    replication.servers[old].kill()
    until(lambda: all(gateway.monitor().get("primary") not in (None, f"db{old + 1}") for gateway in gateways), 30)
    assert gateways[0].monitor()["primary"] == gateways[1].monitor()["primary"]
    assert "failover to" in gateways[1].log() and "failover to" not in gateways[0].log()
    replication.servers[old].start()
    assert gateways[0].await_primary() == gateways[1].await_primary()
    assert len(writable(replication)) == 1


def test_a_gateway_without_majority_uses_no_primary(start, replication):
    gateway = start()
    primary = gateway.await_primary()
    others = [server for number, server in enumerate(replication.servers) if number != primary]
    for server in others:
        server.kill()
    reason = "most servers cannot be reached"
    until(lambda: gateway.status()["servers"][f"db{primary + 1}"].get("reason", "").startswith(reason), 30)
    assert not gateway.monitor()["locks"]["majority"]
    for server in others:
        server.start()
    assert gateway.await_primary() == primary


def test_no_failover_to_a_replica_that_lacks_transactions(start, replication):
    gateway = start()
    old = gateway.await_primary()
    first, second = (server for number, server in enumerate(replication.servers) if number != old)
    # One does not receive, the other does not apply.
    first.sql("STOP SLAVE IO_THREAD")
    second.sql("STOP SLAVE SQL_THREAD")
    with gateway.connect() as client, client.cursor() as writer:
        writer.execute("INSERT INTO d.ledger VALUES (%s)", (4_000_000,))
    replication.servers[old].kill()
    until(lambda: "does not apply" in gateway.monitor().get("noFailover", ""), 30)
    refusal = gateway.monitor()["noFailover"]
    assert "has transactions that" in refusal and writable(replication) == []
    with pytest.raises(pymysql.err.OperationalError) as refused:
        gateway.connect()
    assert refused.value.args[0] == 2003
    # It applies again, and replaces the primary.
    second.sql("START SLAVE SQL_THREAD")
    until(lambda: gateway.monitor().get("primary"), 30)
    assert writable(replication) == [replication.servers.index(second)]
    first.sql("START SLAVE IO_THREAD")
    replication.servers[old].start()
    gateway.await_primary()
    for server in replication.servers:
        until(lambda server=server: 4_000_000 in ids(server))


def test_an_old_primary_with_more_transactions_stays_out(start, replication):
    gateway = start()
    old = gateway.await_primary()
    server = replication.servers[old]
    server.kill()
    new = until(lambda: gateway.monitor().get("primary") not in (None, f"db{old + 1}") and gateway.monitor()["primary"], 30)
    # It starts unnoticed, and gets a transaction that the others do not have.
    gateway.selkie.suspend()
    server.start()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
        cursor.execute("INSERT INTO d.ledger VALUES (5000000)")
    gateway.selkie.resume()
    state = lambda: gateway.status()["servers"][f"db{old + 1}"]
    until(lambda: state().get("reason") == "it has transactions that the primary does not have", 30)
    until(lambda: state()["readOnly"])
    assert "it has" in gateway.refusal(rejoin=f"db{old + 1}").replace(f"db{old + 1} has", "it has")
    assert gateway.monitor()["primary"] == new
    # The administrator removes it.
    with server.connect() as connection, connection.cursor() as cursor:
        position, = replication.servers[int(new[2:]) - 1].sql("SELECT @@gtid_binlog_pos")
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("DELETE FROM d.ledger WHERE id = 5000000")
        cursor.execute("RESET MASTER")
        cursor.execute("SET GLOBAL rpl_semi_sync_master_enabled = ON")
        cursor.execute("SET GLOBAL gtid_slave_pos = %s", position)
    gateway.await_primary()


def test_a_primary_that_hangs_is_replaced_once_its_replicas_notice(start, replication):
    gateway = start()
    old = gateway.await_primary()
    replication.servers[old].suspend()
    # The replicas notice after slave_net_timeout. Until then only the gateway may be cut off.
    until(lambda: "is still connected to" in gateway.monitor().get("noFailover", ""), 30)
    until(lambda: gateway.monitor().get("primary") not in (None, f"db{old + 1}"), 30)
    replication.servers[old].resume()
    new = gateway.await_primary()
    assert new != old and writable(replication) == [new]
    assert "read-only on" in gateway.log()


def test_only_the_primary_is_writable(start, replication):
    gateway = start()
    primary = gateway.await_primary()
    replica = replication.servers[(primary + 1) % 3]
    replica.sql("SET GLOBAL read_only = OFF")
    until(lambda: writable(replication) == [primary])
    # As a primary is that has started again with read_only in its file.
    replication.servers[primary].sql("SET GLOBAL read_only = ON")
    until(lambda: writable(replication) == [primary])
    assert gateway.await_primary() == primary
