"""Sessions that share connections (`multiplex` of the router `read-write-split`)."""

import contextlib
import os
import random
import threading

import pymysql
import pytest
from pymysql.constants import CLIENT

from support import node
from support.split_gateway import SplitGateway, reads_at, rows
from support.topology import Replication

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

CONNECTIONS = 4
CLIENTS = int(os.environ.get("SELKIE_MULTIPLEX_CLIENTS", "60"))
STATEMENTS = int(os.environ.get("SELKIE_MULTIPLEX_STATEMENTS", "600"))


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    topology = Replication(tmp_path_factory.mktemp("replication"))
    primary = topology.servers[0]
    with primary.connect() as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE TABLE d.written (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
            "CREATE TABLE d.accounts (id INT PRIMARY KEY, balance INT)",
            "CREATE DATABASE direct", "CREATE DATABASE shared", "CREATE DATABASE noise",
            "CREATE TABLE noise.n (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
        ):
            cursor.execute(statement)
        cursor.execute("INSERT INTO d.accounts SELECT seq, 100 FROM d.seq_1_to_20")
        connection.commit()
    topology.await_replicas()
    yield topology
    topology.remove()


@pytest.fixture(scope="module")
def gateway(replication, tmp_path_factory):
    services = {"split": "multiplex = true", "causal": 'multiplex = true\ncausal-reads = true'}
    gateway = SplitGateway(
        tmp_path_factory.mktemp("gateway"), replication, services, server=f"max-connections = {CONNECTIONS}"
    )
    gateway.await_roles("primary", "replica", "replica")
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


@pytest.fixture
def others(gateway):
    """A function by which other sessions use all connections. `pinned`: so many they cannot get."""
    sessions = [gateway.connect() for _ in range(2 * CONNECTIONS)]

    def use_all(pinned: int = 0):
        holding = sessions[:CONNECTIONS - 1 - pinned]
        for session in holding:
            rows(session, "BEGIN")
        for session in sessions[CONNECTIONS:]:
            rows(session, "DO 1")
            reads_at(session)
        for session in holding:
            rows(session, "COMMIT")

    yield use_all
    for session in sessions:
        session.close()


def refusal(connection, sql: str) -> int:
    with pytest.raises(pymysql.err.MySQLError) as refused:
        rows(connection, sql)
    return refused.value.args[0]


def test_many_clients_share_few_connections(gateway, replication):
    idle = [gateway.connect() for _ in range(CLIENTS)]
    failures = []

    def work(number: int):
        chance = random.Random(number)
        try:
            with contextlib.closing(gateway.connect("causal")) as connection, connection.cursor() as cursor:
                for _ in range(5):
                    cursor.execute("INSERT INTO written (a) VALUES (%s)", (number,))
                    inserted = cursor.lastrowid
                    assert rows(connection, f"SELECT a FROM written WHERE id = {inserted}") == ((number,),)
                    first, second = chance.sample(range(1, 21), 2)
                    cursor.execute("BEGIN")
                    for account, change in sorted(((first, -1), (second, 1))):
                        cursor.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account))
                    cursor.execute("COMMIT")
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    primary = replication.servers[0]
    assert primary.sql("SELECT SUM(balance) FROM d.accounts") == ((2000,),)
    assert primary.sql("SELECT COUNT(*), COUNT(DISTINCT a) FROM d.written") == ((5 * CLIENTS, CLIENTS),)
    for server in replication.servers:
        connected = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'joe'"
        assert server.sql(connected)[0][0] <= CONNECTIONS
    for session in idle:
        assert rows(session, "SELECT a FROM t WHERE id = 1") == ((1,),)
        session.close()
    assert gateway.statistics()["connectionsTaken"] > 0


def test_what_a_session_has_set_stays_with_it(gateway, others):
    with contextlib.closing(gateway.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES'")
        cursor.execute("SET NAMES latin1")
        cursor.execute("INSERT INTO written (a) VALUES (1)")
        inserted = cursor.lastrowid
        others()
        settings = '@@time_zone, @@sql_mode, @@character_set_client, DATABASE()'
        expected = ("+03:00", "ANSI_QUOTES", "latin1", "d")
        assert rows(connection, f'SELECT {settings} FROM "t" LIMIT 1') == (expected,)
        others()
        assert rows(connection, f"SELECT {settings}, LAST_INSERT_ID()") == ((*expected, inserted),)
        connection.select_db("noise")
        others()
        assert rows(connection, "SELECT DATABASE(), @@in_transaction") == (("noise", 0),)
        with contextlib.closing(gateway.connect(database=None)) as fresh:
            assert rows(fresh, "SELECT DATABASE(), @@time_zone, @@sql_mode LIKE '%ANSI%'") == ((None, "SYSTEM", 0),)


def test_users_share_connections(gateway, others):
    with contextlib.closing(gateway.connect(user="jim")) as jim:
        for _ in range(3):
            others()
            assert rows(jim, "SELECT CURRENT_USER(), SESSION_USER() LIKE 'jim@%'") == (("jim@%", 1),)
            assert refusal(jim, "INSERT INTO written (a) VALUES (1)") == 1142
            with contextlib.closing(gateway.connect()) as joe:
                assert rows(joe, "SELECT CURRENT_USER()") == (("joe@%",),)


def test_what_cannot_be_brought_along_keeps_its_connection(gateway, others):
    with contextlib.closing(gateway.connect()) as connection:
        rows(connection, "SET @a = 7")
        others(pinned=1)
        assert rows(connection, "SELECT @a") == ((7,),)
        rows(connection, "CREATE TEMPORARY TABLE x AS SELECT 5 AS a")
        others(pinned=1)
        assert rows(connection, "SELECT a FROM x") == ((5,),)
    with contextlib.closing(gateway.connect()) as connection:
        rows(connection, "SELECT GET_LOCK('mine', 0)")
        others(pinned=1)
        assert rows(connection, "SELECT IS_USED_LOCK('mine') = CONNECTION_ID()") == ((1,),)
    with contextlib.closing(gateway.connect()) as connection:
        rows(connection, "PREPARE s FROM 'SELECT ? + 1'")
        rows(connection, "BEGIN")
        rows(connection, "INSERT INTO written (a) VALUES (-33)")
        others(pinned=1)
        rows(connection, "SET @a = 1")
        assert rows(connection, "EXECUTE s USING @a") == ((2,),)
        rows(connection, "ROLLBACK")
        assert rows(connection, "SELECT COUNT(*) FROM written WHERE a = -33 FOR UPDATE") == ((0,),)


def test_diagnostics_of_the_last_statement(gateway, others):
    with contextlib.closing(gateway.connect()) as connection, connection.cursor() as cursor:
        for take in (lambda: None, others):
            assert cursor.execute("INSERT INTO written (a) VALUES (1), (2), (3)") == 3
            take()
            assert rows(connection, "SELECT ROW_COUNT()") == ((3,),)
            rows(connection, "SELECT seq FROM seq_1_to_7")
            take()
            assert rows(connection, "SELECT FOUND_ROWS()") == ((7,),)
            rows(connection, "SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_9 LIMIT 1")
            take()
            assert rows(connection, "SELECT FOUND_ROWS()") == ((9,),)
            rows(connection, "SELECT 1/0")
            take()
            assert [row[1] for row in rows(connection, "SHOW WARNINGS")] == [1365]
            assert refusal(connection, "SELECT * FROM missing") == 1146
            take()
            assert [row[1] for row in rows(connection, "SHOW WARNINGS")] == [1146]
            number = rows(connection, "SELECT CONNECTION_ID()")
            take()
            assert rows(connection, "SELECT CONNECTION_ID()") == number == ((connection.thread_id(),),)
        cursor.execute("INSERT INTO written (a) VALUES (1)")
        others()
        assert refusal(connection, "SELECT ROW_COUNT() + 1") == 1235
        assert rows(connection, "SELECT 1") == ((1,),)


def test_an_idle_session_is_killed(gateway, others):
    victim, other = gateway.connect(), gateway.connect()
    others()
    rows(other, f"KILL QUERY {victim.thread_id()}")
    assert rows(victim, "SELECT 1") == ((1,),)
    others()
    rows(other, f"KILL {victim.thread_id()}")
    assert refusal(victim, "SELECT 1") in (1927, 2006, 2013)
    assert rows(other, "SELECT 1") == ((1,),)
    others()
    other.close()


def test_sql_clients_of_node(gateway, tmp_path):
    assert "ok sql" in node.run(["node", "sql.mjs", str(gateway.ports["split"])], tmp_path)


class Statements:
    """Random statements, whose replies do not depend on the connection."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.is_open = False

    def next(self) -> str:
        number = self.chance.randrange(6)
        kinds = [
            f"INSERT INTO r (a) VALUES ({number})", f"INSERT INTO r (a) VALUES ({number}), ({number + 1})",
            f"UPDATE r SET a = a + 1 WHERE id % 6 = {number}", f"DELETE FROM r WHERE id % 7 = {number}",
            f"SELECT id, a FROM r WHERE a = {number} ORDER BY id FOR UPDATE", "SELECT COUNT(*), SUM(a) FROM r LOCK IN SHARE MODE",
            "SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SHOW WARNINGS", "SELECT @@in_transaction",
            f"SELECT SQL_CALC_FOUND_ROWS seq FROM seq_1_to_{number + 3} LIMIT 2", f"SELECT seq FROM seq_1_to_{number + 1}",
            "SELECT 1/0", f"SELECT CAST('{number}x' AS INT)", "SELECT * FROM missing", "SELECT syntax error",
            f"INSERT INTO r (id, a) VALUES (1, {number})", f"SET time_zone = '+0{number}:00'", "SET NAMES latin1", "SET NAMES utf8mb4",
            "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = DEFAULT", 'SELECT "x"', "SELECT 'é'", "SELECT @@time_zone, @@sql_mode",
            "SELECT @@character_set_client, DATABASE() IS NULL", f"SET @v = {number}", "SELECT @v", "DO 1",
            f"PREPARE p FROM 'SELECT a FROM r WHERE id = {number} FOR UPDATE'", "EXECUTE p", "DEALLOCATE PREPARE p",
            f"CREATE TEMPORARY TABLE IF NOT EXISTS temporary{number} (a INT)", f"INSERT INTO temporary{number} VALUES (1)",
            f"SELECT COUNT(*) FROM temporary{number}", f"SELECT GET_LOCK(CONCAT(DATABASE(), '{number}'), 0)",
            f"SELECT RELEASE_LOCK(CONCAT(DATABASE(), '{number}'))", "LOCK TABLES r WRITE", "UNLOCK TABLES", "BEGIN",
            "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "SET autocommit = 0", "SET autocommit = 1", "SET autocommit = 1",
            "SELECT LAST_INSERT_ID(77)", f"UPDATE r SET a = LAST_INSERT_ID(a + 1) WHERE id % 5 = {number}",
            f"REPLACE INTO r (id, a) VALUES ({number + 1}, 0)", "INSERT INTO r (id, a) VALUES (NULL, 5), (1, 5)",
            f"INSERT IGNORE INTO r (id, a) VALUES (1, 1), (NULL, {number})", "INSERT INTO r (a) SELECT seq FROM seq_1_to_2",
            f"INSERT INTO r (id, a) VALUES ({number} + 1, 1) ON DUPLICATE KEY UPDATE a = a + 1", "reset", "reset", "reset",
        ]
        return self.chance.choice(kinds)


def outcome(connection, sql: str):
    if sql == "reset":
        connection._execute_command(0x1F, b"")
        connection._read_ok_packet()
        return None
    with connection.cursor() as cursor:
        try:
            affected = cursor.execute(sql)
        except pymysql.err.MySQLError as error:
            return error.args[0]
        names = [column[:2] for column in cursor.description or ()]
        # Errors name the schema.
        found = [[str(value).replace("shared.", "direct.") for value in row] for row in cursor.fetchall()]
        return affected, cursor.lastrowid, names, found, cursor.warning_count


@pytest.mark.timeout(300 + STATEMENTS // 10)
def test_random_statements_reply_as_on_a_connection_of_their_own(gateway, replication):
    """Compares a session with one that is connected directly, while others take its connections."""
    for schema in ("direct", "shared"):
        with replication.servers[0].connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE OR REPLACE TABLE {schema}.r (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
    options = {"user": "joe", "password": "secret", "autocommit": True}
    direct = pymysql.connect(host="127.0.0.1", port=replication.servers[0].port, database="direct", **options)
    shared = gateway.connect(database="shared")
    disturbing = [gateway.connect(database="noise") for _ in range(3 * CONNECTIONS)]
    seed = random.randrange(1 << 30)
    statements = Statements(seed)
    history, has_rows, has_warnings = [], False, False
    for number in range(STATEMENTS):
        sql = statements.next()
        # They are about the statement before.
        if sql == "SELECT FOUND_ROWS()" and not has_rows or sql == "SHOW WARNINGS" and not has_warnings:
            continue
        history.append(sql)
        expected, got = outcome(direct, sql), outcome(shared, sql)
        assert got == expected, f"seed {seed}, statement {number}: {history[-25:]}"
        has_rows = isinstance(got, tuple) and bool(got[2])
        has_warnings = isinstance(got, int) or got is not None and got[4] > 0
        if statements.chance.random() < 0.5:
            for other in statements.chance.sample(disturbing, CONNECTIONS):
                rows(other, statements.chance.choice((
                    "INSERT INTO n (a) VALUES (1), (2)", "SELECT 1/0", "SET time_zone = '+09:00'", "SELECT seq FROM seq_1_to_3",
                )))
    for connection in (direct, shared, *disturbing):
        connection.close()
