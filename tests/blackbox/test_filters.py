"""Filters of SQL services: the firewall, the query log, rewriting and limits."""

import signal

import pymysql
import pytest
from pymysql.constants import CLIENT

from support import logs
from support.filters import SERVICES, Gateway, Prepared, refusal, rows, server_for_filters
from support.selkie import run
from support.topology import until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

@pytest.fixture(scope="module")
def mariadb(store, tmp_path_factory):
    mariadb = server_for_filters(tmp_path_factory.mktemp("mariadb"))
    yield mariadb
    mariadb.remove()


@pytest.fixture
def gateway(mariadb, tmp_path):
    gateway = Gateway(tmp_path, mariadb)
    yield gateway
    gateway.remove()


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
    until(lambda: sum(line["statement"].startswith("SELECT") for line in logs.entries(path)) >= 5)
    found = logs.entries(path)[-5:]
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
