"""SQL clients through Selkie: forwarded to MariaDB, with cached results that are never stale."""

import struct
import subprocess
import threading
import time

import pymysql
import pymysql._auth as _auth
import pytest
from pymongo.errors import OperationFailure

from blackbox.test_external_writes import LOGGING
from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer, run

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]


class Gateway:
    def __init__(self, folder, mode: str = "both", *options: str):
        self.mariadb = MariadbServer(folder / "m", LOGGING).start()
        # Over its Unix socket, the server would identify every client as the user of this process.
        self.mariadb.url = self.mariadb.tcp_url
        self.port = free_port()
        cache = ("--cache", mode) if mode != "off" else ()
        self.selkie = SelkieServer(
            folder / "s", self.mariadb, ("--sql-listen", f"127.0.0.1:{self.port}", "--threads", "2", *cache, *options)
        ).start()
        self.mariadb.sql("CREATE DATABASE d")
        self.mariadb.sql("CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(50), n INT)")
        self.mariadb.sql("INSERT INTO d.t VALUES (1, 'one', 1), (2, 'two', 2)")
        for right in ("ALL PRIVILEGES ON *.*", "SELECT ON d.*"):
            user = "joe" if "ALL" in right else "reader"
            self.mariadb.sql(f"CREATE USER {user}@'%' IDENTIFIED BY 'secret'")
            self.mariadb.sql(f"GRANT {right} TO {user}@'%'" + " WITH GRANT OPTION" * (user == "joe"))
        self.mongo = self.selkie.client()
        if mode != "off":
            self.settle()

    def connect(self, **options) -> pymysql.Connection:
        defaults = {"user": "joe", "password": "secret", "database": "d", "autocommit": True}
        return pymysql.connect(host="127.0.0.1", port=self.port, **(defaults | options))

    def figures(self) -> dict:
        return self.mongo.admin.command("serverStatus")["cache"]["sql"]

    def hits(self) -> int:
        return self.figures()["hits"]

    def settle(self):
        """Waits until the log that has been written so far has been read."""
        deadline = time.monotonic() + 20
        with self.connect() as connection:
            while not is_kept(self, connection, "SELECT 'settled' FROM t WHERE id = 1"):
                assert time.monotonic() < deadline, self.figures()
        time.sleep(0.3)

    def remove(self):
        self.mongo.close()
        self.selkie.kill()
        self.mariadb.remove()


@pytest.fixture(scope="module")
def gateway(store, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("sql"))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


@pytest.fixture
def session(gateway):
    with gateway.connect() as connection:
        yield connection


def rows(connection, sql: str):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def is_kept(gateway, connection, sql: str) -> bool:
    """Returns whether a query is answered from the cache. Repeats it, as recent writes appear in
    the log with a delay."""
    for _ in range(25):
        rows(connection, sql)
        before = gateway.hits()
        rows(connection, sql)
        if gateway.hits() == before + 1:
            return True
        time.sleep(0.01)
    return False


def until(condition, seconds: float = 10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_server_authenticates_users(gateway):
    with gateway.connect() as connection:
        assert rows(connection, "SELECT CURRENT_USER(), DATABASE()") == (("joe@%", "d"),)
    with pytest.raises(pymysql.err.OperationalError) as refused:
        gateway.connect(password="wrong")
    assert refused.value.args[0] == 1045
    with gateway.connect(user="reader") as connection, pytest.raises(pymysql.err.OperationalError) as refused:
        rows(connection, "DELETE FROM t")
    assert refused.value.args[0] == 1142


def test_results_are_cached(gateway, session):
    assert is_kept(gateway, session, "SELECT a FROM t WHERE id = 1")
    assert rows(session, "SELECT a FROM t WHERE id = 1") == (("one",),)
    # For another session of the same user, and not for another user.
    with gateway.connect() as other, gateway.connect(user="reader") as reader:
        before = gateway.hits()
        assert rows(other, "SELECT a FROM t WHERE id = 1") == (("one",),)
        assert gateway.hits() == before + 1
        assert rows(reader, "SELECT a FROM t WHERE id = 1") == (("one",),)
        assert gateway.hits() == before + 1


@pytest.mark.parametrize("sql", [
    "SELECT NOW(6), a FROM t", "SELECT a FROM t FOR UPDATE", "SELECT @x, a FROM t", "SELECT a FROM v", "SELECT f(a) FROM t",
    "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'", "SELECT SQL_CALC_FOUND_ROWS a FROM t",
])
def test_other_results_are_not_cached(gateway, session, sql):
    rows(session, "CREATE OR REPLACE VIEW v AS SELECT * FROM t")
    rows(session, "CREATE OR REPLACE FUNCTION f(x VARCHAR(50)) RETURNS VARCHAR(50) DETERMINISTIC RETURN CONCAT(x, '!')")
    with gateway.connect() as other:
        assert not is_kept(gateway, other, sql)


def test_writes_of_all_kinds_are_seen(gateway, session):
    question = "SELECT a FROM t WHERE id = 2"
    with gateway.connect() as other:
        for number in range(20):
            writer = session if number % 2 else other
            rows(writer, f"UPDATE t SET a = 'w{number}' WHERE id = 2")
            assert rows(session, question) == rows(other, question) == ((f"w{number}",),)
    gateway.mariadb.sql("UPDATE d.t SET a = 'direct' WHERE id = 2")
    until(lambda: rows(session, question) == (("direct",),))
    rows(session, "DELETE FROM t WHERE id = 2")
    assert rows(session, question) == ()
    rows(session, r"INSERT INTO t VALUES (2, 'back\\slash', 2)")
    assert rows(session, question) == (("back\\slash",),)


def test_mongodb_clients_and_sql_clients_see_each_other(gateway, session):
    cars = gateway.mongo.d.cars
    cars.insert_one({"_id": 1, "Make": "Toyota"})
    question = "SELECT JSON_VALUE(doc, '$.Make') FROM cars"
    assert rows(session, question) == (("Toyota",),)
    assert is_kept(gateway, session, question)
    for number in range(10):
        cars.update_one({"_id": 1}, {"$set": {"Make": f"m{number}"}})
        assert rows(session, question) == ((f"m{number}",),)
        rows(session, f"UPDATE cars SET doc = JSON_SET(doc, '$.Make', 's{number}')")
        assert cars.find_one({"_id": 1})["Make"] == f"s{number}"
        assert rows(session, question) == ((f"s{number}",),)
    with gateway.connect(autocommit=False) as writer:
        cars.find_one({"_id": 1})
        rows(writer, "UPDATE cars SET doc = JSON_SET(doc, '$.Make', 'open')")
        assert cars.find_one({"_id": 1})["Make"] == "s9"
        writer.commit()
        assert cars.find_one({"_id": 1})["Make"] == "open"
    cars.drop()
    with pytest.raises(pymysql.err.ProgrammingError):
        rows(session, question)


def test_only_the_transaction_sees_its_uncommitted_writes(gateway, session):
    question = "SELECT n FROM t WHERE id = 1"
    rows(session, "UPDATE t SET n = 1 WHERE id = 1")
    with gateway.connect(autocommit=False) as writer:
        assert rows(session, question) == rows(session, question) == ((1,),)
        rows(writer, "UPDATE t SET n = 2 WHERE id = 1")
        assert (rows(writer, question), rows(session, question)) == (((2,),), ((1,),))
        with pytest.raises(pymysql.err.IntegrityError):
            rows(writer, "INSERT INTO t VALUES (1, 'again', 1)")
        assert (rows(writer, question), rows(session, question)) == (((2,),), ((1,),))
        writer.commit()
        assert (rows(writer, question), rows(session, question)) == (((2,),), ((2,),))
        rows(writer, "UPDATE t SET n = 3 WHERE id = 1")
        writer.rollback()
        assert rows(session, question) == ((2,),)
    rows(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    rows(session, question)
    with gateway.connect() as other:
        rows(other, "UPDATE t SET n = 4 WHERE id = 1")
        assert (rows(other, question), rows(session, question)) == (((4,),), ((2,),))
    rows(session, "COMMIT")
    assert rows(session, question) == ((4,),)


def test_an_error_leaves_its_warnings_where_they_are(session):
    with pytest.raises(pymysql.err.IntegrityError):
        rows(session, "INSERT INTO t VALUES (1, 'again', 1)")
    assert rows(session, "SHOW WARNINGS")[0][1] == 1062


def test_uncommitted_reads_are_not_cached(gateway, session):
    question = "SELECT a FROM t WHERE id = 1"
    beside = gateway.mariadb.connect()
    for level in ("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"):
        rows(beside, "START TRANSACTION")
        rows(beside, "UPDATE d.t SET a = 'dirty' WHERE id = 1")
        with gateway.connect() as dirty:
            rows(dirty, level)
            assert rows(dirty, question) == (("dirty",),)
        assert rows(session, question) == (("one",),)
        rows(beside, "ROLLBACK")
    beside.close()


def test_settings_of_the_session_count(gateway, session):
    rows(session, "CREATE TABLE IF NOT EXISTS times (id INT, at TIMESTAMP NULL)")
    rows(session, "DELETE FROM times")
    with gateway.connect() as session:
        rows(session, "SET time_zone = '+00:00'")
        rows(session, "INSERT INTO times VALUES (1, '2024-01-01 12:00:00')")
        question = "SELECT CAST(at AS CHAR) FROM times"
        assert is_kept(gateway, session, question)
        assert rows(session, question) == (("2024-01-01 12:00:00",),)
        rows(session, "SET time_zone = '+02:00'")
        assert rows(session, question) == (("2024-01-01 14:00:00",),)
        rows(session, "CREATE DATABASE IF NOT EXISTS e")
    gateway.mariadb.sql("CREATE OR REPLACE TABLE e.t (id INT PRIMARY KEY, a VARCHAR(50))")
    with gateway.connect() as session:
        rows(session, "SELECT a FROM t WHERE id = 1")
        rows(session, "USE e")
        assert rows(session, "SELECT a FROM t WHERE id = 1") == ()
        session.select_db("d")
        assert rows(session, "SELECT a FROM t WHERE id = 1") == (("one",),)


def test_temporary_tables_hide_cached_results(gateway, session):
    question = "SELECT a FROM t WHERE id = 1"
    assert is_kept(gateway, session, question)
    rows(session, "CREATE TEMPORARY TABLE t (id INT, a VARCHAR(50))")
    rows(session, "INSERT INTO t VALUES (1, 'mine')")
    assert rows(session, question) == rows(session, question) == (("mine",),)
    with gateway.connect() as other:
        assert rows(other, question) == (("one",),)


def test_functions_about_the_last_statement(gateway, session):
    assert is_kept(gateway, session, "SELECT a FROM t WHERE id IN (1, 2)")
    rows(session, "SELECT 1")
    rows(session, "SELECT a FROM t WHERE id IN (1, 2)")
    assert rows(session, "SELECT FOUND_ROWS()") == ((2,),)


def test_large_answers_and_statements(gateway, session):
    rows(session, "CREATE TABLE IF NOT EXISTS large (id INT PRIMARY KEY, body LONGTEXT)")
    for length in (17_000_000, 20_000_000):
        text = "x" * length
        rows(session, f"REPLACE INTO large VALUES (1, '{text}')")
        assert rows(session, "SELECT body FROM large") == ((text,),)
    # A packet that is exactly full is followed by an empty one.
    for length in (2**24 - 1, 2**24 - 2, 2**24):
        rows(session, f"UPDATE large SET body = REPEAT('y', {length - 4})")
        assert len(rows(session, "SELECT body FROM large")[0][0]) == length - 4
    assert rows(session, "SELECT COUNT(*) FROM seq_1_to_200000") == ((200_000,),)
    assert len(rows(session, "SELECT seq, REPEAT('z', 100) FROM seq_1_to_200000")) == 200_000


def test_several_statements_and_several_answers(gateway):
    from pymysql.constants import CLIENT

    with gateway.connect(client_flag=CLIENT.MULTI_STATEMENTS) as session, session.cursor() as cursor:
        cursor.execute("SELECT 1; SELECT a FROM t WHERE id = 1; UPDATE t SET n = 7 WHERE id = 1; SELECT n FROM t WHERE id = 1")
        answers = [cursor.fetchall()]
        while cursor.nextset():
            answers.append(cursor.fetchall())
        assert [tuple(answer) for answer in answers] == [((1,),), (("one",),), (), ((7,),)]
        cursor.execute("CREATE OR REPLACE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END")
        cursor.execute("CALL p()")
        assert cursor.fetchall() == ((1,),) and cursor.nextset() and cursor.fetchall() == ((2,),)
        session.ping()
    with gateway.connect() as session:
        assert rows(session, "SELECT n FROM t WHERE id = 1") == ((7,),)


def execute_prepared(connection, sql: str) -> bytes:
    """Prepares a statement without parameters or columns, executes it in the binary protocol, and
    returns the reply."""
    connection._execute_command(0x16, sql)
    number = connection._read_packet().get_all_data()[1:5]
    connection._execute_command(0x17, number + struct.pack("<BI", 0, 1))
    answer = connection._read_packet().get_all_data()
    connection._execute_command(0x19, number)
    return answer


def test_prepared_statements(gateway):
    question = "SELECT n FROM t WHERE id = 1"
    with gateway.connect() as session, gateway.connect() as other:
        for number in range(5):
            assert execute_prepared(session, f"UPDATE t SET n = 20{number} WHERE id = 1")[0] == 0
            assert rows(session, question) == rows(other, question) == ((200 + number,),)
        # A result set: as many packets as it has.
        session._execute_command(0x16, question)
        number = [session._read_packet().get_all_data() for _ in range(3)][0][1:5]
        session._execute_command(0x17, number + struct.pack("<BI", 0, 1))
        answer = [session._read_packet().get_all_data() for _ in range(5)]
        assert answer[3] == b"\0\0" + struct.pack("<i", 204) and answer[4][0] == 0xFE
        assert rows(session, question) == ((204,),)


class Statement:
    """A prepared SELECT of one INT column, executed in the binary protocol."""

    def __init__(self, connection, sql: str, params: int = 1):
        self.connection, self.params, self.says_types = connection, params, True
        connection._execute_command(0x16, sql)
        self.number = connection._read_packet().get_all_data()[1:5]
        for definitions in (params, 1):
            for _ in range(definitions + 1 if definitions else 0):
                connection._read_packet()

    def ask(self, *values, kind: int = 3, flags: int = 0) -> list:
        """Returns the values. Types are sent with the first execution, like drivers do."""
        types = struct.pack("<BB", kind, 0) * self.params if self.says_types else b""
        packed = b"".join(value if isinstance(value, bytes) else struct.pack("<i", value) for value in values)
        values = struct.pack("<BB", 0, self.says_types) + types + packed if self.params else b""
        self.says_types = False
        self.connection._execute_command(0x17, self.number + struct.pack("<BI", flags, 1) + values)
        packets = [self.connection._read_packet().get_all_data() for _ in range(3)]
        found = []
        while (row := self.connection._read_packet().get_all_data())[0] != 0xFE:
            found.append(struct.unpack("<i", row[2:6])[0])
        assert packets[0] == b"\1"
        return found

    def hits(self, gateway, *values, **options) -> bool:
        """Returns whether a query is answered from the cache; repeats it until earlier writes are
        in the log."""
        for _ in range(25):
            first, before = self.ask(*values, **options), gateway.hits()
            assert self.ask(*values, **options) == first
            if gateway.hits() == before + 1:
                return True
            time.sleep(0.01)
        return False


def test_prepared_selects_are_cached(gateway, session):
    rows(session, "REPLACE INTO t VALUES (1, 'one', 10), (3, 'three', 30), (4, 'four', 40)")
    gateway.settle()
    select = Statement(session, "SELECT n FROM t WHERE id = ?")
    assert select.hits(gateway, 3) and select.ask(3) == [30]
    assert select.hits(gateway, 4) and select.ask(4) == [40] and select.ask(3) == [30]
    with gateway.connect() as other, gateway.connect(user="reader") as reader:
        before = gateway.hits()
        assert Statement(other, "SELECT n FROM t WHERE id = ?").ask(3) == [30] and gateway.hits() == before + 1
        # Neither another user's nor another text's, nor the one in text.
        assert Statement(reader, "SELECT n FROM t WHERE id = ?").ask(3) == [30]
        assert Statement(other, "SELECT n FROM  t WHERE id = ?").ask(3) == [30]
        assert rows(other, "SELECT n FROM t WHERE id = 3") == ((30,),)
        assert gateway.hits() == before + 1
        rows(other, "UPDATE t SET n = 31 WHERE id = 3")
        assert select.ask(3) == [31]
    gateway.mariadb.sql("UPDATE d.t SET n = 32 WHERE id = 3")
    until(lambda: select.ask(3) == [32])


def test_types_that_the_server_has_not_heard_of(gateway, session):
    """The first execution, which contains the types, is answered from the cache; the server gets
    the next one."""
    rows(session, "REPLACE INTO t VALUES (3, 'three', 30), (4, 'four', 40)")
    gateway.settle()
    assert Statement(session, "SELECT n FROM t WHERE id = ? AND n < 1000").hits(gateway, 3)
    with gateway.connect() as other:
        select, before = Statement(other, "SELECT n FROM t WHERE id = ? AND n < 1000"), gateway.hits()
        assert select.ask(3) == [30] and gateway.hits() == before + 1
        assert select.ask(4) == [40] and gateway.hits() == before + 1
        # The same bytes of other types are another question.
        select.says_types = True
        assert select.ask(b"\x01" + b"3", kind=0xFD) == [30] and gateway.hits() == before + 1
        assert select.ask(b"\x01" + b"4") == [40]


def test_prepared_selects_that_are_not_cached(gateway, session):
    for sql in ("SELECT n FROM t WHERE id = ? AND NOW() > 0", "SELECT n FROM t WHERE id = ? FOR UPDATE"):
        assert not Statement(session, sql).hits(gateway, 3)
    # A time of day means today's.
    midnight = b"\0"
    assert not Statement(session, "SELECT n FROM t WHERE id > ?").hits(gateway, midnight, kind=0x0B)
    # Values that come ahead.
    select = Statement(session, "SELECT n FROM t WHERE a = ?")
    for name, expected in (("three", 30), ("four", 40)):
        session._execute_command(0x18, select.number + b"\0\0" + name.encode())
        select.says_types = True
        assert select.ask(kind=0xFC) == [expected]
    # In a transaction, and in a session whose tables may be its own.
    select = Statement(session, "SELECT n FROM t WHERE id = ?")
    assert select.hits(gateway, 4)
    session.begin()
    rows(session, "UPDATE t SET n = 41 WHERE id = 4")
    assert select.ask(4) == [41]
    session.rollback()
    assert select.ask(4) == [40]
    rows(session, "CREATE TEMPORARY TABLE t (id INT, a VARCHAR(50), n INT)")
    assert Statement(session, "SELECT n FROM t WHERE id = ?").ask(4) == []


def test_a_prepared_select_means_the_schema_it_was_prepared_in(gateway, session):
    gateway.mariadb.sql("CREATE DATABASE IF NOT EXISTS e")
    gateway.mariadb.sql("CREATE OR REPLACE TABLE e.t (id INT PRIMARY KEY, a VARCHAR(50), n INT)")
    gateway.mariadb.sql("INSERT INTO e.t VALUES (4, 'four', 444)")
    select = Statement(session, "SELECT n FROM t WHERE id = ?")
    assert select.hits(gateway, 4)
    session.select_db("e")
    assert select.ask(4) == [40]
    other = Statement(session, "SELECT n FROM t WHERE id = ?")
    assert other.hits(gateway, 4) and other.ask(4) == [444] and select.ask(4) == [40]


def test_a_session_switches_its_cache(gateway, session):
    question = "SELECT n FROM t WHERE id = 4"
    assert is_kept(gateway, session, question)
    rows(session, "SET @selkie_cache = 0")
    assert not is_kept(gateway, session, question)
    with pytest.raises(pymysql.err.MySQLError) as refused:
        rows(session, "SET @selkie_cache = 2")
    assert refused.value.args[0] == 1231 and "0 or 1" in refused.value.args[1]
    rows(session, "SET @selkie_cache = 'on'")
    assert is_kept(gateway, session, question)


def test_rules_for_sql_clients(store, tmp_path):
    settings = tmp_path / "selkie.toml"
    settings.write_text(
        "[cache]\nselects = 'assume-cacheable'\nexcept-users = ['reader']\nexcept = ['d.u']\n"
        "only-statements = ['^SELECT']\nexcept-statements = ['no cache']\n"
    )
    gateway = Gateway(tmp_path, "both", "--config", str(settings))
    try:
        gateway.mariadb.sql("CREATE TABLE d.u (id INT PRIMARY KEY)")
        with gateway.connect() as joe, gateway.connect(user="reader") as reader:
            assert is_kept(gateway, joe, "SELECT a, NOW(6) FROM t WHERE id = 1")
            assert is_kept(gateway, joe, "SELECT @x, a FROM t")
            for sql in ("SELECT * FROM u", "SELECT /* no cache */ a FROM t", "SELECT a FROM t FOR UPDATE", "(SELECT a FROM t)"):
                assert not is_kept(gateway, joe, sql), sql
            assert not is_kept(gateway, reader, "SELECT a FROM t WHERE id = 1")
    finally:
        gateway.remove()


def test_the_command_line_client(gateway):
    script = """
        PREPARE s FROM 'UPDATE t SET n = ? WHERE id = 1'; SET @n = 11; EXECUTE s USING @n;
        SELECT n FROM t WHERE id = 1; SHOW WARNINGS; SELECT USER() LIKE 'joe@%';
    """
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{gateway.port}", "-ujoe", "-psecret", "d", "-N", "-B"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["11", "1"]), done.stderr
    with gateway.connect() as session:
        assert rows(session, "SELECT n FROM t WHERE id = 1") == ((11,),)


def test_revoked_privileges_take_effect(gateway):
    question = "SELECT a FROM t WHERE id = 1"
    for revoke in (gateway.mariadb.sql, lambda sql: rows(gateway.connect(), sql)):
        gateway.mariadb.sql("CREATE OR REPLACE USER passing@'%' IDENTIFIED BY 'secret'")
        gateway.mariadb.sql("GRANT SELECT ON d.t TO passing@'%'")
        with gateway.connect(user="passing") as session:
            until(lambda: is_kept(gateway, session, question))
            revoke("REVOKE SELECT ON d.t FROM passing@'%'")

            def is_refused():
                try:
                    return not rows(session, question)
                except pymysql.err.OperationalError as error:
                    return error.args[0] == 1142

            until(is_refused)


def test_writes_of_triggers_are_seen(gateway, session):
    rows(session, "CREATE OR REPLACE TABLE log (a VARCHAR(50))")
    rows(session, "CREATE OR REPLACE TRIGGER tells AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)")
    gateway.mongo.d.watched.insert_one({"_id": 1})
    rows(session, "CREATE OR REPLACE TRIGGER tells_too AFTER UPDATE ON watched FOR EACH ROW INSERT INTO log VALUES ('watched')")
    with gateway.connect() as reader:
        question = "SELECT COUNT(*) FROM log"
        until(lambda: is_kept(gateway, reader, question))
        rows(session, "UPDATE t SET a = 'one' WHERE id = 1")
        until(lambda: rows(reader, question) == ((1,),))
        until(lambda: is_kept(gateway, reader, question))
        gateway.mongo.d.watched.update_one({"_id": 1}, {"$set": {"x": 1}})
        until(lambda: rows(reader, question) == ((2,),))
    rows(session, "DROP TRIGGER tells")


def test_a_session_that_is_lost_in_a_transaction(gateway, session):
    question = "SELECT n FROM t WHERE id = 1"
    before = rows(session, question)
    writer = gateway.connect(autocommit=False)
    rows(writer, "UPDATE t SET n = n + 1 WHERE id = 1")
    writer._force_close()
    assert rows(session, question) == before
    until(lambda: is_kept(gateway, session, question))


def change_user(connection, user: str, password: str) -> bytes:
    proof = _auth.scramble_native_password(password.encode(), connection.salt[:20])
    connection._execute_command(
        0x11, user.encode() + b"\0" + bytes([len(proof)]) + proof + b"d\0" + struct.pack("<H", 45) + b"mysql_native_password\0\0"
    )
    packet = connection._read_packet()
    if packet.is_auth_switch_request():
        packet.read_uint8()
        packet.read_string()
        connection.write_packet(_auth.scramble_native_password(password.encode(), packet.read_all()[:20]))
        packet = connection._read_packet()
    return packet.get_all_data()


def test_change_user_and_reset_connection(gateway):
    question = "SELECT a FROM t WHERE id = 1"
    with gateway.connect() as session:
        rows(session, "CREATE TEMPORARY TABLE t (id INT, a VARCHAR(50))")
        assert not is_kept(gateway, session, question)
        session._execute_command(0x1F, b"")
        assert session._read_packet().is_ok_packet()
        rows(session, "SET NAMES utf8mb4")
        assert is_kept(gateway, session, question)
        assert change_user(session, "reader", "secret")[0] == 0
        assert rows(session, "SELECT CURRENT_USER()") == (("reader@%",),)
        assert rows(session, question) == (("one",),)
        with pytest.raises(pymysql.err.OperationalError):
            rows(session, "DELETE FROM t")


def test_the_command_line_client_gets_cached_results(gateway):
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{gateway.port}", "-ujoe", "-psecret", "d", "-N", "-B"]
    question = "SELECT id, a FROM t WHERE id < 3"
    with gateway.connect() as session:
        # The client doubles backslashes in the output of a batch.
        expected = "".join(f"{number}\t{text}\n" for number, text in rows(session, question)).replace("\\", "\\\\")
    before = gateway.hits()
    done = subprocess.run(command, input=f"{question};" * 20, capture_output=True, text=True, timeout=60)
    assert expected and done.stdout == expected * 20 and gateway.hits() > before, done


def test_many_at_once_never_see_the_past(gateway):
    """Each row is written by one session and read by all: no read is older than the last
    acknowledged write."""
    acknowledged = [0] * 4
    rows(gateway.connect(), "REPLACE INTO t VALUES " + ", ".join(f"({100 + i}, '', 0)" for i in range(4)))
    stop = time.monotonic() + 5
    wrong = []

    def write(which: int):
        with gateway.connect(autocommit=which % 2 == 0) as session:
            while time.monotonic() < stop:
                rows(session, f"UPDATE t SET n = n + 1 WHERE id = {100 + which}")
                session.commit()
                acknowledged[which] += 1
                time.sleep(0.003)

    def read(which: int):
        with gateway.connect() as session:
            while time.monotonic() < stop:
                least = acknowledged[which]
                found = rows(session, f"SELECT n FROM t WHERE id = {100 + which}")[0][0]
                if found < least:
                    wrong.append((which, found, least))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    threads += [threading.Thread(target=read, args=(i % 4,)) for i in range(8)]
    before = gateway.hits()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong and min(acknowledged) > 5 and gateway.hits() > before


def test_invalid_listeners_are_reported(store, mariadb):
    for options, part in [((), "embedded"), (("--mariadb", mariadb.url()), "Unix socket")]:
        done = run("check", "--sql-listen", "127.0.0.1:1", *options)
        assert done.returncode != 0 and part in done.stderr, done.stderr
    done = run("check", "--sql-listen", "0.0.0.0:1", "--mariadb", mariadb.tcp_url())
    assert done.returncode != 0 and "--allow-remote" in done.stderr


def test_without_a_cache_and_without_a_server(store, tmp_path):
    gateway = Gateway(tmp_path, "off")
    try:
        with gateway.connect() as session:
            assert rows(session, "SELECT a FROM t WHERE id = 1") == (("one",),)
            gateway.mariadb.kill()
            with pytest.raises(pymysql.err.MySQLError):
                rows(session, "SELECT 1")
        with pytest.raises(pymysql.err.OperationalError) as refused:
            gateway.connect()
        assert refused.value.args[0] == 2003 and "MariaDB" in refused.value.args[1]
    finally:
        gateway.remove()


def test_a_server_for_sql_clients_alone_is_left_as_it_is(store, tmp_path):
    """No objects for documents are created there or required."""
    mariadb = MariadbServer(tmp_path / "m", ("--max-allowed-packet=16M", "--log-bin=log", "--binlog-format=STATEMENT")).start()
    mariadb.url = mariadb.tcp_url
    mariadb.sql("CREATE USER joe@'%' IDENTIFIED BY 'secret'")
    mariadb.sql("GRANT ALL PRIVILEGES ON *.* TO joe@'%'")
    port = free_port()
    selkie = SelkieServer(tmp_path / "s", mariadb, ("--sql-listen", f"127.0.0.1:{port}", "--cache", "off")).start()
    try:
        with pymysql.connect(host="127.0.0.1", port=port, user="joe", password="secret") as connection:
            assert "selkie" not in [name for (name,) in rows(connection, "SHOW DATABASES")]
            rows(connection, "CREATE DATABASE d")
            rows(connection, "CREATE TABLE d.t (id INT PRIMARY KEY)")
        with selkie.client() as client:
            assert client.d.command("find", "t")["cursor"]["firstBatch"] == []
            for write in (lambda: client.d.c.insert_one({}), lambda: client.d.create_collection("c"),
                          lambda: client.d.c.create_index("a"), lambda: client.d.c.update_one({}, {"$set": {"a": 1}})):
                with pytest.raises(OperationFailure, match="max_allowed_packet") as failure:
                    write()
                assert failure.value.code == 72
            mariadb.sql("SET GLOBAL max_allowed_packet = 134217728")
            mariadb.sql("SET GLOBAL binlog_format = 'MIXED'")
        assert "selkie" not in [name for (name,) in mariadb.sql("SHOW DATABASES")]
        selkie.stop()
        selkie.start()
        with selkie.client() as client:
            assert "selkie" not in [name for (name,) in mariadb.sql("SHOW DATABASES")]
            client.d.c.insert_one({})
        assert "selkie" in [name for (name,) in mariadb.sql("SHOW DATABASES")]
    finally:
        selkie.kill()
        mariadb.remove()
