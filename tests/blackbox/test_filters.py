"""Filters of SQL services: the firewall, the query log, rewriting and limits."""

import json
import signal
import struct

import pymysql
import pytest
from pymysql.constants import CLIENT

from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer, run
from support.topology import SMALL, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

# The service of each port: both routers, and the short form.
SERVICES = ("connections", "split", "short")

CONFIG = """
[store]
sql-listen = ["127.0.0.1:{short}"]
sql-{filters}
[server.db1]
address = "127.0.0.1:{port}"
[monitor.main]
kind = "replication"
servers = ["db1"]
user = "root"
interval-ms = 100
[service.connections]
servers = ["db1"]
{filters}
[service.split]
router = "read-write-split"
monitor = "main"
{filters}
[listener.connections]
protocol = "mariadb"
address = "127.0.0.1:{connections}"
service = "connections"
[listener.split]
protocol = "mariadb"
address = "127.0.0.1:{split}"
service = "split"
[cache]
mode = "results"
"""


class Gateway:
    """One server, and a service of each kind with the same filters."""

    def __init__(self, folder, mariadb: MariadbServer):
        self.mariadb, self.folder = mariadb, folder
        self.ports = {service: free_port() for service in SERVICES}
        self.file = folder / "selkie.toml"
        self.selkie = self.mongo = None

    def start(self, filters: dict[str, str]):
        """Starts the gateway with filters: their settings, by their names."""
        self.write(filters)
        self.selkie = SelkieServer(self.folder / "s", self.mariadb, ("--threads", "2", "--config", str(self.file))).start()
        self.mongo = self.selkie.client()
        until(lambda: [server["role"] for server in self.status()["servers"].values() if "role" in server] == ["primary"])
        return self

    def write(self, filters: dict[str, str]):
        # A list that is set is not empty.
        text = CONFIG if filters else CONFIG.replace("sql-{filters}", "").replace("{filters}", "")
        text = text.format(filters=f"filters = {json.dumps([*filters])}", port=self.mariadb.port, **self.ports)
        self.file.write_text(text + "".join(f"[filter.{name}]\n{settings}\n" for name, settings in filters.items()))

    def reload(self, filters: dict[str, str]):
        log = self.selkie.log
        before = log.read_text().count("the configuration was reloaded")
        self.write(filters)
        self.selkie.process.send_signal(signal.SIGHUP)
        until(lambda: log.read_text().count("the configuration was reloaded") > before)

    def status(self) -> dict:
        return self.mongo.admin.command("serverStatus")["selkie"]

    def counters(self, service: str = "connections") -> dict:
        return self.status()["services"][service]

    def connect(self, service: str = "connections", user: str = "joe", **options) -> pymysql.Connection:
        defaults = {"password": "secret", "database": "d", "autocommit": True}
        return pymysql.connect(host="127.0.0.1", port=self.ports[service], user=user, **(defaults | options))

    def remove(self):
        if self.selkie:
            self.mongo.close()
            assert self.selkie.is_running()
            self.selkie.kill()


@pytest.fixture(scope="module")
def mariadb(store, tmp_path_factory):
    options = (*SMALL, "--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")
    mariadb = MariadbServer(tmp_path_factory.mktemp("mariadb"), options).start()
    mariadb.url = mariadb.tcp_url
    for statement in (
        "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(50), n INT)",
        "INSERT INTO d.t VALUES (1, 'one', 1), (2, 'two', 2)", "CREATE TABLE d.secret (id INT)",
        "CREATE USER joe@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO joe@'%'",
        "CREATE USER ann@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO ann@'%'",
    ):
        mariadb.sql(statement)
    yield mariadb
    mariadb.remove()


@pytest.fixture
def gateway(mariadb, tmp_path):
    gateway = Gateway(tmp_path, mariadb)
    yield gateway
    gateway.remove()


def rows(connection, sql: str):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def refusal(connection, sql: str) -> tuple[int, str]:
    """Returns the error of a statement, after which the connection works."""
    with pytest.raises(pymysql.err.MySQLError) as refused:
        rows(connection, sql)
    connection.ping(reconnect=False)
    return refused.value.args


class Prepared:
    """A prepared statement, executed in the binary protocol."""

    def __init__(self, connection, sql: str):
        self.connection = connection
        connection._execute_command(0x16, sql)
        head = connection._read_packet().get_all_data()
        self.id, columns, params = head[1:5], *struct.unpack("<HH", head[5:9])
        self.columns = columns
        for definitions in (params, columns):
            for _ in range(definitions + 1 if definitions else 0):
                connection._read_packet()

    def execute(self, flags: int = 0) -> list[bytes]:
        """Returns the rows, or the packet of the reply without rows."""
        self.connection._execute_command(0x17, self.id + struct.pack("<BI", flags, 1))
        first = self.connection._read_packet().get_all_data()
        if first[0] == 0:
            return [first]
        for _ in range(first[0] + 1):
            self.connection._read_packet()
        return self.rest()

    def open(self):
        """Executes it with a cursor."""
        self.connection._execute_command(0x17, self.id + struct.pack("<BI", 1, 1))
        for _ in range(self.connection._read_packet().get_all_data()[0] + 1):
            self.connection._read_packet()

    def fetch(self, count: int) -> list[bytes]:
        self.connection._execute_command(0x1C, self.id + struct.pack("<I", count))
        return self.rest()

    def rest(self) -> list[bytes]:
        found = []
        while (row := self.connection._read_packet().get_all_data())[0] != 0xFE:
            found.append(row)
        return found


def lines_of(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("service", SERVICES)
def test_statements_are_logged(gateway, service):
    path = gateway.folder / "queries.json"
    gateway.start({"log": f'kind = "query-log"\npath = "{path}"'})
    with gateway.connect(service, client_flag=CLIENT.MULTI_STATEMENTS) as connection:
        rows(connection, "SELECT a FROM t WHERE id < 3 AND a <> 'my secret'")
        refusal(connection, "SELECT nothing FROM t")
        Prepared(connection, "SELECT n FROM t").execute()
        connection.select_db("mysql")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1; SELECT 'é\"' UNION SELECT 3")
            assert cursor.nextset()
            cursor.fetchall()
    until(lambda: sum(line["statement"].startswith("SELECT") for line in lines_of(path)) >= 5)
    found = lines_of(path)[-5:]
    assert [line["statement"] for line in found] == [
        "SELECT a FROM t WHERE id < ? AND a <> ?", "SELECT nothing FROM t", "SELECT n FROM t", "SELECT n FROM t",
        "SELECT ?; SELECT ? UNION SELECT ?",
    ]
    assert [(line["command"], line["rows"], line["error"], line["schema"]) for line in found] == [
        ("query", 2, None, "d"), ("query", 0, 1054, "d"), ("prepare", 0, None, "d"), ("execute", 2, None, "d"),
        ("query", 3, None, "mysql"),
    ]
    server = "mariadb" if service == "short" else "db1"
    name = "sql-listen" if service == "short" else service
    for line in found:
        assert (line["user"], line["host"], line["server"], line["service"]) == ("joe", "127.0.0.1", server, name)
        assert line["durationUs"] > 0 and line["time"].endswith("Z")
    assert "secret" not in path.read_text()
    assert gateway.counters(name)["logged"] >= 5 and gateway.counters(name)["dropped"] == 0
    # A log that was moved is continued in a new file.
    path.rename(path.with_suffix(".1"))
    gateway.selkie.process.send_signal(signal.SIGHUP)
    until(path.exists)


@pytest.mark.parametrize("service", SERVICES)
def test_a_firewall_learns_and_enforces(gateway, service):
    path = gateway.folder / "app.statements"
    firewall = f'kind = "firewall"\nallow-list = "{path}"\nexempt-users = ["ann"]\n'
    gateway.start({"guard": firewall + 'mode = "learn"'})
    with gateway.connect(service) as connection:
        for sql in ("SELECT a FROM t WHERE id = 1", "UPDATE t SET n = 5 WHERE id = 2"):
            rows(connection, sql)
        Prepared(connection, "SELECT n FROM t WHERE id = 1")
        gateway.reload({"guard": firewall})
        assert rows(connection, "select a from t where id=2") == (("two",),)
        assert len(Prepared(connection, "SELECT n FROM t WHERE id = 2").execute()) == 1
        for sql in (
            "SELECT a FROM t WHERE id = 1 OR 1 = 1", "DROP TABLE t", "SELECT a FROM t WHERE id = 1; DROP TABLE t",
            "SELECT '" + "x" * 300_000 + "'", "SELECT 'a", "PREPARE s FROM 'DROP TABLE t'",
        ):
            code, message = refusal(connection, sql)
            assert code == 1141 and "'joe'@'127.0.0.1' by the filter guard" in message, message
        with pytest.raises(pymysql.err.MySQLError, match="allow list"):
            Prepared(connection, "DELETE FROM t")
        with gateway.connect(service, user="ann") as exempt:
            assert rows(exempt, "SELECT COUNT(*) FROM t") == ((2,),)
        name = "sql-listen" if service == "short" else service
        assert gateway.counters(name)["blocked"] == 7
        gateway.reload({"guard": firewall + 'mode = "report"'})
        assert rows(connection, "SELECT COUNT(*) FROM t") == ((2,),)
        assert gateway.counters(name)["reported"] == 1
        gateway.reload({})
        assert rows(connection, "SELECT COUNT(*) FROM t") == ((2,),)


def test_rules_of_a_firewall(gateway):
    gateway.start({"guard": 'kind = "firewall"\ndeny = ["table d.secret user joe", "column t.n", "user ann time 0:00-24:00"]'})
    with gateway.connect() as connection:
        for sql in (
            "SELECT * FROM secret", "DELETE FROM d.secret", "DROP TABLE secret", "SELECT n FROM t", "SELECT * FROM t",
            "SELECT a FROM t WHERE n = 1",
        ):
            assert refusal(connection, sql)[0] == 1141
        assert rows(connection, "SELECT a FROM t WHERE id = 1") == (("one",),)
        prepared = Prepared(connection, "SELECT a FROM t")
        gateway.reload({"guard": 'kind = "firewall"\ndeny = ["table t"]'})
        with pytest.raises(pymysql.err.MySQLError):
            prepared.execute()
        connection.ping(reconnect=False)


@pytest.mark.parametrize("service", SERVICES)
def test_statements_are_rewritten(gateway, service):
    gateway.start({
        "name": 'kind = "rewrite"\npattern = "old_name"\nreplacement = "t"',
        "form": 'kind = "rewrite"\nstatement = "SELECT a FROM t WHERE id = ?"\nreplacement = "SELECT a, \'é\' FROM t WHERE id = $1"',
    })
    with gateway.connect(service) as connection:
        assert rows(connection, "SELECT a FROM old_name WHERE id = 2") == (("two", "é"),)
        assert rows(connection, "SELECT a FROM t WHERE id = +1 LIMIT 1") == (("one",),)
        assert Prepared(connection, "SELECT a FROM old_name WHERE id = 1").columns == 2
        assert len(Prepared(connection, "SELECT a FROM old_name").execute()) == 2
        assert gateway.counters("sql-listen" if service == "short" else service)["rewritten"] >= 4


@pytest.mark.parametrize("service", SERVICES)
def test_results_and_rates_are_limited(gateway, service):
    name = "sql-listen" if service == "short" else service
    three = "SELECT 1 UNION SELECT 2 UNION SELECT 3"
    gateway.start({"few": 'kind = "limits"\nmax-rows = 2\nmax-bytes = 100\nexempt-users = ["ann"]'})
    with gateway.connect(service, client_flag=CLIENT.MULTI_STATEMENTS) as connection:
        assert rows(connection, "SELECT id FROM t ORDER BY id") == ((1,), (2,))
        for _ in range(2):
            code, message = refusal(connection, three)
            assert code == 1226 and "'max-rows' (current value: 2) of the filter few" in message, message
        assert "max-bytes" in refusal(connection, "SELECT REPEAT('x', 101) FROM t")[1]
        assert refusal(connection, f"SELECT 1; {three}; SELECT 2")[0] == 1226
        assert rows(connection, "SELECT a FROM t WHERE id = 1") == (("one",),)
        with pytest.raises(pymysql.err.MySQLError, match="max-rows"):
            Prepared(connection, three).execute()
        # The rows of a cursor are counted over all of its packets.
        cursor = Prepared(connection, three)
        cursor.open()
        assert len(cursor.fetch(2)) == 2
        with pytest.raises(pymysql.err.MySQLError, match="max-rows"):
            cursor.fetch(2)
        with gateway.connect(service, user="ann") as exempt:
            assert len(rows(exempt, three)) == 3
        assert gateway.counters(name)["blocked"] == 6
        gateway.reload({"few": 'kind = "limits"\nmax-rows = 2\nmax-bytes = 100\nwhen-exceeded = "empty"'})
        assert rows(connection, three) == ()
        assert rows(connection, "SELECT id FROM t ORDER BY id") == ((1,), (2,))
        with connection.cursor() as cursor:
            cursor.execute(f"{three}; SELECT 5")
            assert cursor.fetchall() == () and cursor.nextset() and cursor.fetchall() == ((5,),)
        assert Prepared(connection, three).execute() == []
        gateway.reload({"slow": 'kind = "limits"\nstatements-per-second = 1\nwhen-too-fast = "refuse"'})
        answers = []
        for _ in range(5):
            try:
                answers.append(rows(connection, "SELECT 1"))
            except pymysql.err.MySQLError as error:
                assert error.args[0] == 1226 and "'statements-per-second'" in error.args[1]
                answers.append(None)
        assert answers[0] == ((1,),) and None in answers
        gateway.reload({"slow": 'kind = "limits"\nstatements-per-second = 20'})
        for _ in range(25):
            rows(connection, "SELECT 1")
        assert gateway.counters(name)["delayed"] > 0


def test_errors_of_the_configuration(gateway):
    gateway.write({"log": 'kind = "query-log"\npath = "/x"\nmode = "learn"'})
    done = run("check", "--config", str(gateway.file), "--mariadb", gateway.mariadb.tcp_url())
    assert done.returncode != 0 and "mode is no setting of a filter of kind query-log" in done.stderr, done.stderr
    gateway.write({"guard": 'kind = "firewall"\nallow-list = "/nowhere/list"'})
    done = run("serve", "--config", str(gateway.file), "--mariadb", gateway.mariadb.tcp_url())
    assert done.returncode != 0 and "the filter guard: the allow list /nowhere/list cannot be read" in done.stderr, done.stderr
