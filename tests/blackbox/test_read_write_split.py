"""The router `read-write-split`: each statement goes to the primary or to a replica."""

import contextlib
import threading
import time

import pymysql
import pytest
from pymysql._auth import scramble_native_password
from pymysql.constants import CLIENT

from support import node
from support.split_gateway import SplitGateway, kill_primary, reads_at, return_primary, rows
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    topology = Replication(tmp_path_factory.mktemp("replication"))
    primary = topology.servers[0]
    with primary.connect() as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE USER empty@'%'", "GRANT SELECT ON d.* TO empty@'%'",
            "CREATE TABLE d.written (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
            "CREATE PROCEDURE d.nothing() BEGIN END", "CREATE SEQUENCE d.s", "CREATE DATABASE e",
            "CREATE TABLE e.t (id INT)",
        ):
            cursor.execute(statement)
    topology.await_replicas()
    yield topology
    topology.remove()


@pytest.fixture(scope="module")
def gateway(replication, tmp_path_factory):
    gateway = SplitGateway(tmp_path_factory.mktemp("gateway"), replication)
    gateway.await_roles("primary", "replica", "replica")
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


@pytest.fixture
def connection(gateway):
    with contextlib.closing(gateway.connect()) as connection:
        yield connection


def explained(connection, sql: str) -> tuple:
    return rows(connection, f"EXPLAIN ROUTE {sql}")[0]


def test_reads_go_to_replicas_and_the_rest_to_the_primary(gateway, connection):
    before = gateway.statistics()
    assert {reads_at(connection) for _ in range(10)} <= {2, 3}
    for sql in (
        "SELECT @@server_id FROM t FOR UPDATE", "SELECT @@server_id, GET_LOCK('a', 0) FROM t", "SELECT @@server_id",
        "/* selkie route to primary */ SELECT @@server_id FROM t", "SELECT @@server_id, NEXT VALUE FOR s FROM t",
        "SELECT @@server_id, CONNECTION_ID() FROM t", "SELECT @@server_id FROM information_schema.tables LIMIT 1",
    ):
        assert rows(connection, sql)[0][0] == 1, sql
    assert rows(connection, "SELECT @@server_id FROM t -- selkie route to server db3")[0][0] == 3
    assert rows(connection, 'SELECT @@server_id FROM t WHERE "x" = "x" AND \'é\' <> ""')[0][0] in (2, 3)
    # The last is counted after its reply.
    until(lambda: gateway.statistics()["toReplicas"] - before["toReplicas"] == 12)
    assert gateway.statistics()["toPrimary"] > before["toPrimary"]


def test_transactions_stay_on_one_server(connection):
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        assert reads_at(connection) == 1
        cursor.execute("INSERT INTO written (a) VALUES (1)")
        assert rows(connection, "SELECT @@server_id, LAST_INSERT_ID() > 0 FROM t LIMIT 1") == ((1, 1),)
        cursor.execute("COMMIT")
        assert reads_at(connection) in (2, 3)
        cursor.execute("START TRANSACTION READ ONLY")
        place = reads_at(connection)
        assert place in (2, 3) and {reads_at(connection) for _ in range(5)} == {place}
        with pytest.raises(pymysql.err.MySQLError) as refused:
            cursor.execute("INSERT INTO written (a) VALUES (1)")
        assert refused.value.args[0] in (1792, 1290)
        cursor.execute("COMMIT")
        cursor.execute("SET autocommit = 0")
        assert reads_at(connection) == 1
        cursor.execute("COMMIT")
        cursor.execute("SET autocommit = 1")
        assert reads_at(connection) in (2, 3)
        cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        assert reads_at(connection) == 1


def test_settings_are_brought_along(connection):
    with connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ANSI_QUOTES', time_zone = '+03:00'")
        cursor.execute("SET NAMES latin1")
        settings = "@@server_id, @@sql_mode, @@time_zone, @@character_set_client, DATABASE()"
        for _ in range(3):
            server, *rest = rows(connection, f'SELECT {settings} FROM "t" LIMIT 1')[0]
            assert server in (2, 3) and rest == ["ANSI_QUOTES", "+03:00", "latin1", "d"]
        cursor.execute("USE e")
        assert rows(connection, "SELECT COUNT(*), DATABASE(), MAX(@@server_id) FROM t")[0][:2] == (0, "e")
        connection.select_db("d")
        assert rows(connection, f"SELECT {settings} FROM t LIMIT 1")[0][0] in (2, 3)
        cursor.execute("SET @a = 7")
        assert rows(connection, "SELECT @a, @@server_id FROM t LIMIT 1") == ((7, 1),)
        assert reads_at(connection) in (2, 3)


def test_what_follows_a_statement_goes_to_its_server(connection):
    rows(connection, "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1")
    assert rows(connection, "SELECT FOUND_ROWS()") == ((1,),)
    assert rows(connection, "SELECT 1/0 FROM t") == ((None,),)
    assert [row[1] for row in rows(connection, "SHOW WARNINGS")] == [1365]
    with connection.cursor() as cursor:
        assert cursor.execute("INSERT INTO written (a) VALUES (1), (2)") == 2
        first = cursor.lastrowid
    assert rows(connection, "SELECT ROW_COUNT()") == ((2,),)
    reads_at(connection)
    assert rows(connection, "SELECT LAST_INSERT_ID()") == ((first,),)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TEMPORARY TABLE x (a INT)", "CALL nothing()", "SET sql_mode = CONCAT(@@sql_mode, '')",
        "LOCK TABLES t READ", "XA RECOVER",
    ],
)
def test_state_that_cannot_be_brought_along_binds(gateway, sql):
    with contextlib.closing(gateway.connect()) as connection:
        assert reads_at(connection) in (2, 3)
        rows(connection, sql)
        assert reads_at(connection) == 1
        assert "stays on the primary" in explained(connection, "SELECT * FROM t")[2]
        if sql.startswith("LOCK"):
            rows(connection, "UNLOCK TABLES")
        else:
            connection._execute_command(0x1F, b"")
            connection._read_ok_packet()
        assert reads_at(connection) in (2, 3)
        assert rows(connection, "SELECT DATABASE(), id FROM t") == (("d", 1),)


def test_routes_are_explained(connection):
    server, role, reason, after = explained(connection, "SELECT a FROM t")
    assert (server in ("db2", "db3"), role, reason, after) == (True, "replica", "it only reads", "leaves nothing behind")
    assert explained(connection, "UPDATE t SET a = 1")[:3] == ("db1", "primary", "it changes rows")
    assert explained(connection, "SET NAMES utf8")[3] == "sets names, also on other servers"
    rows(connection, "BEGIN")
    assert explained(connection, "SELECT a FROM t")[2] == "a transaction is open"


def test_accounts(gateway):
    with contextlib.closing(gateway.connect(user="empty", password="")) as connection:
        assert reads_at(connection) in (2, 3)
    with pytest.raises(pymysql.err.OperationalError) as refused:
        gateway.connect(password="wrong")
    assert refused.value.args[0] == 1045


def test_multiple_statements(gateway):
    with contextlib.closing(gateway.connect(client_flag=CLIENT.MULTI_STATEMENTS)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@server_id FROM t; SELECT id, @@server_id FROM t")
        assert cursor.fetchone()[0] in (1, 2, 3) and cursor.nextset()
        cursor.execute("SELECT @@server_id FROM t; INSERT INTO written (a) VALUES (5)")
        assert cursor.fetchone()[0] == 1 and cursor.nextset()
        while cursor.nextset():
            pass
        assert reads_at(connection) in (2, 3)


def test_sql_clients_of_node(gateway, tmp_path):
    assert "ok sql" in node.run(["node", "sql.mjs", str(gateway.ports["split"])], tmp_path)


def test_settings_by_a_command_are_brought_along(connection):
    """COM_SET_OPTION, whose reply is one packet, and COM_INIT_DB."""
    with connection.cursor() as cursor:
        connection._execute_command(0x1B, b"\0\0")
        connection._read_packet()
        connection.select_db("e")
        assert rows(connection, "SELECT COUNT(*), MAX(@@server_id) FROM t")[0][0] == 0
        cursor.execute("SELECT DATABASE(), @@server_id FROM d.t; SELECT 2")
        assert cursor.fetchone()[0] == "e" and cursor.nextset() and cursor.fetchone() == (2,)


@pytest.fixture
def delayed(replication):
    """Makes all replicas lag by a second."""
    for replica in replication.servers[1:]:
        with replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute("STOP SLAVE")
            cursor.execute("CHANGE MASTER TO MASTER_DELAY = 1")
            cursor.execute("START SLAVE")
    yield
    for replica in replication.servers[1:]:
        with replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute("STOP SLAVE")
            cursor.execute("CHANGE MASTER TO MASTER_DELAY = 0")
            cursor.execute("START SLAVE")


def test_a_session_reads_what_it_has_written(gateway, delayed):
    gateway.await_roles("primary", "replica", "replica")
    with contextlib.closing(gateway.connect("causal")) as connection:
        for value in range(3):
            with connection.cursor() as cursor:
                cursor.execute(f"INSERT INTO written (a) VALUES ({value})")
                inserted = cursor.lastrowid
            found = rows(connection, f"SELECT a, @@server_id FROM written WHERE id = {inserted}")
            assert found and found[0][0] == value and found[0][1] in (2, 3)
    assert gateway.statistics("causal")["causalWaits"] >= 3
    # Without it, some have not arrived: the delay is counted in whole seconds.
    with contextlib.closing(gateway.connect()) as connection, connection.cursor() as cursor:

        def is_found() -> bool:
            cursor.execute("INSERT INTO written (a) VALUES (9)")
            return bool(rows(connection, f"SELECT a FROM written WHERE id = {cursor.lastrowid}"))

        assert not all(is_found() for _ in range(10))


def test_all_sessions_read_what_was_written(gateway, delayed):
    gateway.await_roles("primary", "replica", "replica")
    with contextlib.closing(gateway.connect()) as writer, contextlib.closing(gateway.connect("all")) as reader:
        for value in range(2):
            with writer.cursor() as cursor:
                cursor.execute(f"INSERT INTO written (a) VALUES ({value})")
                inserted = cursor.lastrowid
            found = rows(reader, f"SELECT a, @@server_id FROM written WHERE id = {inserted}")
            assert found and found[0][0] == value and found[0][1] in (2, 3)


def test_replicas_that_lag_get_no_reads(gateway, replication):
    db2, db3 = replication.servers[1:]
    db2.sql("STOP SLAVE SQL_THREAD")
    gateway.await_roles("primary", "none", "replica")
    with contextlib.closing(gateway.connect()) as connection:
        assert {reads_at(connection) for _ in range(5)} == {3}
        db3.sql("STOP SLAVE SQL_THREAD")
        gateway.await_roles("primary", "none", "none")
        assert {reads_at(connection) for _ in range(5)} == {1}
        db2.sql("START SLAVE")
        db3.sql("START SLAVE")
        gateway.await_roles("primary", "replica", "replica")
        assert reads_at(connection) in (2, 3)


def test_a_comment_limits_the_lag(gateway, replication):
    primary, db2, _ = replication.servers
    for statement in ("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 100", "START SLAVE"):
        db2.sql(statement)
    primary.sql("INSERT INTO d.written (a) VALUES (6)")
    until(lambda: (gateway.servers()[1].get("lagSeconds") or 0) >= 2)
    with contextlib.closing(gateway.connect("impatient")) as connection:
        limited = "SELECT @@server_id FROM t /* selkie max_lag=1 */"
        assert {rows(connection, limited)[0][0] for _ in range(10)} == {3}
        assert explained(connection, limited)[0] == "db3"
        assert rows(connection, "SELECT @@server_id FROM t -- selkie route to server db2")[0][0] == 2
    for statement in ("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 0", "START SLAVE"):
        db2.sql(statement)
    until(lambda: gateway.servers()[1].get("lagSeconds") == 0)


def test_reads_survive_the_death_of_a_replica(gateway, replication):
    db2 = replication.servers[1]
    counts, failures, stop = [0] * 4, [], threading.Event()

    def read(number: int):
        try:
            with contextlib.closing(gateway.connect()) as connection:
                while not stop.is_set():
                    assert rows(connection, "SELECT a FROM t WHERE id = 1") == ((1,),)
                    counts[number] += 1
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: min(counts) > 50)
    db2.kill()
    gateway.await_roles("primary", "none", "replica")
    seen = list(counts)
    until(lambda: all(now > before + 50 for now, before in zip(counts, seen)))
    db2.start()
    db2.sql("SET GLOBAL read_only = ON")
    gateway.await_roles("primary", "replica", "replica")
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_death_of_the_primary(gateway, replication):
    old, new, _ = replication.servers
    ids = []
    session = gateway.connect()
    with session.cursor() as cursor:
        cursor.execute("SET time_zone = '+05:00'")
        cursor.execute("INSERT INTO written (a) VALUES (77)")
        ids.append(cursor.lastrowid)
    until(lambda: all(server.sql(f"SELECT 1 FROM d.written WHERE id = {ids[0]}") for server in replication.servers[1:]))
    in_transaction, bound, impatient = gateway.connect(), gateway.connect(), gateway.connect("impatient")
    rows(in_transaction, "BEGIN")
    rows(in_transaction, "INSERT INTO written (a) VALUES (78)")
    rows(bound, "CREATE TEMPORARY TABLE x (a INT)")
    kill_primary(replication)
    gateway.await_roles("none", "replica", "replica")
    assert reads_at(session) in (2, 3), "reads go on"
    with contextlib.closing(gateway.connect()) as fresh:
        assert reads_at(fresh) in (2, 3), "new sessions can read"
    with pytest.raises(pymysql.err.MySQLError) as refused:
        rows(impatient, "INSERT INTO written (a) VALUES (79)")
    assert refused.value.args[0] == 1290 and "no primary" in refused.value.args[1]
    assert reads_at(impatient) in (2, 3), "the connection lives on"
    with pytest.raises(pymysql.err.MySQLError) as ended:
        rows(bound, "SELECT * FROM x")
    assert ended.value.args[0] == 1927

    promotion = threading.Timer(0.5, replication.promote, args=(1,))
    promotion.start()
    with session.cursor() as cursor:
        cursor.execute("INSERT INTO written (a) VALUES (80)")
        ids.append(cursor.lastrowid)
    promotion.join()
    assert rows(session, "SELECT @@server_id, @@time_zone, LAST_INSERT_ID()") == ((2, "+05:00", ids[1]),)
    assert new.sql(f"SELECT a FROM d.written WHERE id IN ({ids[0]}, {ids[1]})") == ((77,), (80,))
    with pytest.raises(pymysql.err.MySQLError) as lost:
        rows(in_transaction, "COMMIT")
    assert lost.value.args[0] == 1213
    rows(in_transaction, "INSERT INTO written (a) VALUES (81)")
    assert new.sql("SELECT COUNT(*) FROM d.written WHERE a IN (78, 79)") == ((0,),)

    return_primary(gateway, replication)
    with session.cursor() as cursor:
        cursor.execute("INSERT INTO written (a) VALUES (82)")
    assert rows(session, "SELECT @@server_id, @@time_zone") == ((1, "+05:00"),)
    for connection in (session, in_transaction, impatient):
        connection.close()


def test_a_statement_on_a_replica_is_killed(gateway, connection, replication):
    other = gateway.connect()
    reads_at(other)
    number = other.thread_id()
    outcome = []

    def sleep():
        try:
            outcome.append(rows(other, "SELECT SLEEP(20) FROM t LIMIT 1"))
        except pymysql.err.MySQLError as error:
            outcome.append(error.args[0])

    thread = threading.Thread(target=sleep)
    began = time.monotonic()
    thread.start()
    running = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(20)%'"
    until(lambda: any(replica.sql(running) for replica in replication.servers[1:]))
    rows(connection, f"KILL QUERY {number}")
    thread.join()
    assert time.monotonic() - began < 15
    assert outcome and outcome[0] in (1317, ((1,),))
    assert reads_at(other) in (2, 3)
    other.close()


def test_a_session_that_is_killed_ends(gateway, connection, replication):
    idle, busy = gateway.connect(), gateway.connect()
    for victim in (idle, busy):
        reads_at(victim)
    outcome = []

    def sleep():
        try:
            outcome.append(rows(busy, "SELECT SLEEP(20)"))
        except pymysql.err.MySQLError as error:
            outcome.append(error.args[0])

    thread = threading.Thread(target=sleep)
    thread.start()
    running = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(20)%'"
    until(lambda: replication.servers[0].sql(running))
    for victim in (idle, busy):
        rows(connection, f"KILL {victim.thread_id()}")
    thread.join()
    assert outcome[0] in (1317, 1927, 2013)
    for victim in (idle, busy):
        with pytest.raises(pymysql.err.MySQLError):
            rows(victim, "SELECT 1")


def test_errors_of_the_server_pass_unchanged(gateway, connection):
    with pytest.raises(pymysql.err.MySQLError) as missing:
        rows(connection, "SELECT * FROM missing")
    assert missing.value.args == (1146, "Table 'd.missing' doesn't exist")
    with pytest.raises(pymysql.err.MySQLError) as secure:
        rows(connection, "SELECT * FROM missing FOR")
    assert secure.value.args[0] == 1064
    assert reads_at(connection) in (2, 3)


def change_user(connection, user: str, password: str):
    """COM_CHANGE_USER, which PyMySQL lacks."""
    packet = user.encode() + b"\0\0d\0\x2d\0mysql_native_password\0\0"
    connection._execute_command(0x11, packet)
    reply = connection._read_packet()
    while reply.is_auth_switch_request():
        reply.read_uint8()
        reply.read_string()
        salt = reply.read_all()
        connection.write_packet(scramble_native_password(password.encode(), salt))
        reply = connection._read_packet()


def test_a_user_is_changed(gateway):
    with contextlib.closing(gateway.connect()) as connection:
        reads_at(connection)
        with pytest.raises(pymysql.err.OperationalError) as refused:
            change_user(connection, "joe", "wrong")
        assert refused.value.args[0] == 1045
        assert rows(connection, "SELECT CURRENT_USER()") == (("joe@%",),)
        change_user(connection, "jim", "secret")
        assert rows(connection, "SELECT CURRENT_USER()") == (("jim@%",),)
        assert reads_at(connection) == 1
        # Nor does a reset give it the rights of the user before.
        connection._execute_command(0x1F, b"")
        connection._read_ok_packet()
        assert rows(connection, "SELECT CURRENT_USER(), @@server_id FROM t LIMIT 1") == (("jim@%", 1),)
