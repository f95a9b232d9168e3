"""Several MariaDB servers: their monitors, and the sessions of SQL clients on them."""

import re
import signal
import threading
import time

import pymysql
import pytest
from pymongo.errors import OperationFailure

from support.process import free_port
from support.selkie import SelkieServer, program, run
from support.split_gateway import is_gone, rows
from support.topology import GaleraNode, Replication, galera_provider, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

MONITOR = """
[monitor.main]
kind = "{kind}"
servers = ["db1", "db2", "db3"]
user = "root"
interval-ms = 100
timeout-ms = 1000
failures = 2
"""


SERVICES = ("primary", "replica", "any")


def services(ports: dict[str, int]) -> str:
    """Returns a service for each role, which is its name, and a listener for each."""
    return "".join(
        f'[service.{role}]\nmonitor = "main"\nrole = "{role}"\n'
        f'[listener.{role}]\nprotocol = "mariadb"\naddress = "127.0.0.1:{port}"\nservice = "{role}"\n'
        for role, port in ports.items()
    )


class Gateway:
    """Selkie with an embedded store for its own clients, beside the servers that it observes."""

    def __init__(self, folder, text: str):
        self.ports = {role: free_port() for role in SERVICES}
        text += services(self.ports)
        self.file = folder / "selkie.toml"
        self.file.write_text(text)
        self.selkie = SelkieServer(folder / "s", options=("--threads", "2", "--config", str(self.file))).start()
        self.mongo = self.selkie.client()

    def servers(self) -> dict:
        return self.mongo.admin.command("serverStatus")["selkie"]["servers"]

    def roles(self) -> list[str]:
        return [server["role"] for server in self.servers().values()]

    def await_roles(self, *expected: str):
        until(lambda: self.roles() == list(expected))

    def connect(self, service: str, user: str = "joe") -> pymysql.Connection:
        return pymysql.connect(host="127.0.0.1", port=self.ports[service], user=user, password="secret", autocommit=True)

    def set_mode(self, server: str, mode: str):
        self.mongo.admin.command({"selkieServer": server, "mode": mode})

    def sessions(self) -> list[int]:
        return [server["connections"]["current"] for server in self.servers().values()]

    def log(self) -> str:
        return self.selkie.log.read_text()

    def remove(self):
        self.mongo.close()
        self.selkie.kill()


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    topology = Replication(tmp_path_factory.mktemp("replication"))
    yield topology
    topology.remove()


@pytest.fixture
def gateway(replication, tmp_path):
    gateway = Gateway(tmp_path, replication.sections() + MONITOR.format(kind="replication"))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


def server_of(connection) -> int:
    return rows(connection, "SELECT @@server_id")[0][0]


def end_of(connection) -> str:
    """Waits until the session has ended, and returns the error that says why."""

    def error():
        try:
            rows(connection, "SELECT 1")
        except pymysql.err.OperationalError as error:
            assert error.args[0] == 1927, error
            return error.args[1]
        return None

    return until(error, every=0.1)


def test_the_state_of_servers_is_observed(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    db1, db2, _ = gateway.servers().values()
    assert (db1["state"], db1["readOnly"], db1["serverId"], db1["sources"]) == ("up", False, 1, [])
    assert re.fullmatch(r"0-[123]-\d+", db1["gtidBinlogPos"]) and db1["version"].startswith("10.")
    assert (db2["readOnly"], db2["lagSeconds"]) == (True, 0)
    assert db2["sources"] == [{"address": f"127.0.0.1:{replication.servers[0].port}", "io": "running", "sql": "running"}]
    assert "the primary is db1" in gateway.log()

    replication.servers[1].sql("STOP SLAVE SQL_THREAD")
    gateway.await_roles("primary", "none", "replica")
    stopped = gateway.mongo.admin.command({"selkieServer": "db2"})
    assert stopped["reason"] == "its replication has stopped" and stopped["sources"][0]["sql"] == "stopped"
    replication.servers[1].sql("START SLAVE")
    gateway.await_roles("primary", "replica", "replica")

    with pytest.raises(OperationFailure) as refused:
        gateway.mongo.admin.command({"selkieServer": "db9"})
    assert refused.value.code == 7
    with pytest.raises(OperationFailure) as refused:
        gateway.mongo.admin.command({"selkieServer": "db1", "mode": "off"})
    assert refused.value.code == 2


def test_an_old_primary_that_returns_is_not_the_primary(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    old, new, _ = replication.servers
    old.kill()
    gateway.await_roles("none", "replica", "replica")
    assert gateway.servers()["db1"]["state"] == "down"
    replication.promote(1)
    gateway.await_roles("none", "primary", "replica")
    old.start()
    assert old.sql("SELECT @@read_only") == ((0,),)
    until(lambda: gateway.servers()["db1"]["state"] == "up")
    gateway.await_roles("none", "primary", "replica")
    assert gateway.servers()["db1"]["reason"] == "it is writable beside the primary and follows no server"
    # And back: the old one follows, and is promoted.
    old.sql("SET GLOBAL read_only = ON")
    replication.follow(old, new, "current_pos")
    gateway.await_roles("replica", "primary", "replica")
    until(lambda: old.sql("SELECT @@gtid_current_pos") == new.sql("SELECT @@gtid_current_pos"))
    replication.promote(0)
    gateway.await_roles("primary", "replica", "replica")


def test_sessions_are_sent_by_role_and_load(gateway):
    gateway.await_roles("primary", "replica", "replica")
    connections = [gateway.connect("primary") for _ in range(3)]
    assert [server_of(connection) for connection in connections] == [1, 1, 1]
    readers = [gateway.connect("replica") for _ in range(4)]
    assert sorted(server_of(connection) for connection in readers) == [2, 2, 3, 3]
    others = [gateway.connect("any") for _ in range(2)]
    assert sorted(server_of(connection) for connection in others) == [2, 3], "the primary has more sessions"
    assert gateway.sessions() == [3, 3, 3]
    for connection in connections + readers + others:
        connection.close()
    until(lambda: gateway.sessions() == [0, 0, 0])


def test_a_server_that_is_full_or_out_of_service(replication, tmp_path):
    sections = replication.sections().replace("[server.db2]", "max-connections = 1\n[server.db2]", 1)
    gateway = Gateway(tmp_path, sections + MONITOR.format(kind="replication"))
    try:
        gateway.await_roles("primary", "replica", "replica")
        gateway.set_mode("db2", "drain")
        gateway.set_mode("db3", "maintenance")
        first = gateway.connect("replica")
        assert server_of(first) == 1, "there is no other"
        began = time.monotonic()
        with pytest.raises(pymysql.err.OperationalError) as refused:
            gateway.connect("primary")
        assert refused.value.args[0] == 1040 and time.monotonic() - began > 5
        first.close()
        with gateway.connect("primary") as connection:
            assert server_of(connection) == 1
        gateway.set_mode("db1", "drain")
        with pytest.raises(pymysql.err.OperationalError) as refused:
            gateway.connect("replica")
        assert "db1: it is being drained, db2: it is being drained, db3: it is in maintenance" in refused.value.args[1]
    finally:
        gateway.remove()


def test_a_drain_waits_for_transactions(gateway):
    gateway.await_roles("primary", "replica", "replica")
    idle, busy = gateway.connect("primary"), gateway.connect("primary")
    rows(busy, "BEGIN")
    rows(busy, "INSERT INTO d.t VALUES (100, 1)")
    with pytest.raises(pymysql.err.IntegrityError):
        rows(busy, "INSERT INTO d.t VALUES (100, 1)")
    gateway.set_mode("db1", "drain")
    assert "db1 has ended: it is being drained" in end_of(idle)
    assert rows(busy, "SELECT a FROM d.t WHERE id = 100") == ((1,),)
    rows(busy, "ROLLBACK")
    assert "drained" in end_of(busy)
    gateway.set_mode("db1", "active")
    with gateway.connect("primary") as connection:
        assert rows(connection, "SELECT a FROM d.t WHERE id = 100") == ()
    reader = gateway.connect("replica")
    server = server_of(reader)
    rows(reader, "BEGIN")
    gateway.set_mode(f"db{server}", "maintenance")
    assert "maintenance" in end_of(reader)


def test_kill_finds_the_session_on_its_server(gateway):
    gateway.await_roles("primary", "replica", "replica")
    target = gateway.connect("replica")
    other = next(c for c in iter(lambda: gateway.connect("replica"), None) if server_of(c) != server_of(target))
    number = rows(target, "SELECT CONNECTION_ID()")[0][0]
    assert number == target.thread_id()
    with gateway.connect("replica", user="jim") as stranger, pytest.raises(pymysql.err.MySQLError) as refused:
        rows(stranger, f"KILL {number}")
    assert refused.value.args[0] in (1094, 1095)
    began = time.monotonic()
    with gateway.connect("any") as killer:
        while server_of(killer) == server_of(target):
            killer.close()
            killer = gateway.connect("any")
        timer = threading.Timer(0.5, lambda: rows(killer, f"KILL QUERY {number}"))
        timer.start()
        with pytest.raises(pymysql.err.MySQLError) as killed:
            rows(target, "SELECT SLEEP(20) FROM d.t WHERE id = 1 AND SLEEP(20) = 0")
        timer.join()
        assert killed.value.args[0] == 1317 and time.monotonic() - began < 15
        rows(killer, f"KILL {number}")
    until(lambda: is_gone(target))
    assert server_of(other)


def raise_ids(server, last: int) -> int:
    """Makes a server count its connections up to `last` at least. Returns the last id."""
    while True:
        with server.connect() as connection:
            number = connection.thread_id()
        if number >= last:
            return number


def test_no_two_sessions_have_one_id(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    primary, *replicas = replication.servers
    raise_ids(primary, max(raise_ids(server, 0) for server in replicas) + 20)
    on_primary = [gateway.connect("primary") for _ in range(8)]
    number = on_primary[0].thread_id()
    assert [session.thread_id() - number for session in on_primary] == list(range(8))
    for server in replicas:
        assert raise_ids(server, number - 1) == number - 1
    # Its server gives it the ids of the others.
    target = gateway.connect("replica")
    # The other server's connections have the next ids.
    joe, jim = gateway.connect("replica"), gateway.connect("replica", user="jim")
    for session in (target, joe):
        assert session.thread_id() >= 1 << 30
        with session.cursor() as cursor:
            cursor.execute("select connection_id ( );")
            assert cursor.fetchall() == ((session.thread_id(),),) and cursor.description[0][0] == "connection_id ( )"
    there = rows(target, "SELECT CONNECTION_ID() + 0")[0][0]
    assert there in [session.thread_id() for session in on_primary]
    every = [*on_primary, target, joe, jim]
    assert len({session.thread_id() for session in every}) == len(every)
    # The id of a session on the primary, which means another one on the server of the sender.
    victim = next(session for session in on_primary if session.thread_id() == there)
    rows(joe, f"KILL {there}")
    until(lambda: is_gone(victim))
    left = [session for session in every if session is not victim]
    assert all(rows(session, "SELECT 1") for session in left)
    # Another user's session: the server decides whether the user may kill it.
    same = next(session for session in (target, joe) if server_of(session) == server_of(jim))
    other = next(session for session in (target, joe) if session is not same)
    for sender, session in ((jim, same), (jim, other), (other, jim)):
        with pytest.raises(pymysql.err.MySQLError) as refused:
            rows(sender, f"KILL {session.thread_id()}")
        assert refused.value.args[0] == 1095
    assert all(rows(session, "SELECT 1") for session in left)
    rows(same, f"KILL {jim.thread_id()}")
    until(lambda: is_gone(jim))
    same.kill(other.thread_id())
    until(lambda: is_gone(other))
    assert rows(same, "SELECT 1")
    for session in every:
        session.close()


def test_sessions_of_a_primary_that_fails_or_is_replaced_end(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    writer, reader = gateway.connect("primary"), gateway.connect("replica")
    old, new, _ = replication.servers
    old.kill()
    assert "lost" in end_of(writer)
    gateway.await_roles("none", "replica", "replica")
    with pytest.raises(pymysql.err.OperationalError) as refused:
        gateway.connect("primary")
    assert refused.value.args[0] == 2003 and "service primary has no primary (db1: it is down" in refused.value.args[1]
    assert server_of(reader) in (2, 3)
    replication.promote(1)
    gateway.await_roles("none", "primary", "replica")
    writer = gateway.connect("primary")
    assert server_of(writer) == 2
    rows(writer, "INSERT INTO d.t VALUES (200, 2)")
    old.start()
    old.sql("SET GLOBAL read_only = ON")
    replication.follow(old, new, "current_pos")
    gateway.await_roles("replica", "primary", "replica")
    until(lambda: old.sql("SELECT @@gtid_current_pos") == new.sql("SELECT @@gtid_current_pos"))
    rows(writer, "BEGIN")
    replication.promote(0)
    assert "db2 has ended: it is no longer the primary" in end_of(writer)
    gateway.await_roles("primary", "replica", "replica")
    with gateway.connect("primary") as connection:
        assert server_of(connection) == 1 and rows(connection, "SELECT a FROM d.t WHERE id = 200") == ((2,),)


def test_the_configuration_is_reloaded(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    readers = [gateway.connect("replica") for _ in range(2)]
    writer, other = gateway.connect("primary"), gateway.connect("any")
    stays = next(reader for reader in readers if server_of(reader) == 2)
    leaves = next(reader for reader in readers if server_of(reader) == 3)
    rows(leaves, "BEGIN")

    # One server less for a service, a listener less, and another one.
    port = free_port()
    text = gateway.file.read_text()
    changed = text.replace('role = "replica"', 'role = "replica"\nservers = ["db1", "db2"]')
    changed = changed.replace(f"127.0.0.1:{gateway.ports['any']}", f"127.0.0.1:{port}")
    gateway.file.write_text(changed)
    until(lambda: "the configuration was reloaded" in gateway.log())
    for connection, number in ((stays, 2), (writer, 1), (leaves, 3)):
        assert server_of(connection) == number
    assert server_of(other) in (1, 2, 3), "its listener is gone, and its service is not"
    rows(leaves, "COMMIT")
    assert "db3 has ended: the service no longer uses it" in end_of(leaves)
    with pytest.raises(pymysql.err.OperationalError):
        gateway.connect("any")
    with pymysql.connect(host="127.0.0.1", port=port, user="joe", password="secret") as connection:
        assert server_of(connection) in (1, 2, 3)
    assert "take effect at the next start" not in gateway.log()

    # A file with an error changes nothing; SIGHUP reads it at once.
    gateway.file.write_text(changed + "[server.db9]\nadress = 'h'\n")
    gateway.selkie.process.send_signal(signal.SIGHUP)
    until(lambda: 'the configuration stays as it is' in gateway.log())
    assert 'did you mean "address"?' in gateway.log()
    assert server_of(stays) == 2

    # Without anything: sessions end when they are idle.
    gateway.file.write_text("log = 'info'\n")
    gateway.selkie.process.send_signal(signal.SIGHUP)
    assert "db2 has ended" in end_of(stays) and "db1 has ended" in end_of(writer)
    assert "servers" not in gateway.mongo.admin.command("serverStatus")["selkie"]


def test_a_server_that_only_routes_stores_nothing(replication, tmp_path):
    """It has no MongoDB clients, so it creates no store."""
    file, port = tmp_path / "selkie.toml", free_port()
    file.write_text(
        replication.sections() + MONITOR.format(kind="replication") + services({"primary": port})
    )
    checked = run("check", "--config", str(file))
    assert checked.returncode == 0 and f"SQL clients   127.0.0.1:{port}, service primary" in checked.stdout, checked
    assert "data in" not in checked.stdout
    router = Router(tmp_path, file, port)
    router.start()
    try:
        connection = until(router.connected)
        assert rows(connection, "SHOW DATABASES LIKE 'selkie'") == ()
        assert server_of(connection) == 1
        assert not (tmp_path / "selkie-data").exists()
    finally:
        router.kill()


class Router(SelkieServer):
    """Selkie without MongoDB clients."""

    def __init__(self, folder, file, port: int):
        super().__init__(folder)
        self.file, self.sql_port = file, port

    def command(self) -> list[str]:
        return [program(), "serve", "--config", str(self.file), "--threads", "1"]

    def is_ready(self) -> bool:
        return "SQL clients" in self.log.read_text()

    def connected(self) -> pymysql.Connection | None:
        try:
            return pymysql.connect(host="127.0.0.1", port=self.sql_port, user="joe", password="secret")
        except pymysql.err.OperationalError as error:
            assert error.args[0] == 2003
            return None


@pytest.mark.skipif(not galera_provider(), reason="Galera is not installed")
def test_a_node_of_a_galera_cluster(store, tmp_path):
    node = GaleraNode(tmp_path / "node").start()
    absent = "".join(f'[server.db{number}]\naddress = "127.0.0.1:{free_port()}"\n' for number in (1, 3))
    sections = f'{absent}[server.db2]\naddress = "127.0.0.1:{node.port}"\n'
    gateway = Gateway(tmp_path, sections + MONITOR.format(kind="galera"))

    def role() -> tuple[str, str | None]:
        server = gateway.servers()["db2"]
        return server["role"], server.get("reason")

    try:
        node.sql("CREATE USER joe@'%' IDENTIFIED BY 'secret'")
        until(lambda: role() == ("primary", None))
        shown = gateway.servers()["db2"]
        assert (shown["nodeState"], shown["primaryComponent"], shown["clusterSize"]) == ("synced", True, 1)
        assert gateway.servers()["db1"]["role"] == "none"
        writer, reader = gateway.connect("primary"), gateway.connect("replica")
        node.sql("SET GLOBAL wsrep_desync = ON")
        until(lambda: role() == ("none", "it is a donor, or desynchronized"))
        assert "no longer the primary" in end_of(writer) and "donor" in end_of(reader)
        node.sql("SET GLOBAL wsrep_desync = OFF")
        until(lambda: role() == ("primary", None))
        node.sql("SET GLOBAL read_only = ON")
        until(lambda: role() == ("replica", None))
        assert rows(gateway.connect("replica"), "SELECT 1") == ((1,),)
        with pytest.raises(pymysql.err.OperationalError):
            gateway.connect("primary")
    finally:
        gateway.remove()
        node.remove()
