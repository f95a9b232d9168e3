"""The masking filter of SQL services, and attempts to get around it."""

import pymysql
import pytest
from pymysql.constants import CLIENT

from support.filters import SERVICES, Gateway, Prepared, refusal, rows, server_for_filters

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

MASKING = """
kind = "masking"
mask = ["column d.people.ssn", 'column people.card match \\d(?=\\d{4}) with #', "column d.people.pay", "column names.größe"]
trusted = ["d.safe", "d.shown"]
exempt-users = ["ann"]
"""

# The number 77123 of the first person, in the forms that functions make of it.
SECRETS = ("secret-77", "SECRET-77", "7365637265742D", "77-terces", "77123", "secret", "c2VjcmV0")

ATTACKS = (
    "SELECT UPPER(ssn) FROM people", "SELECT HEX(ssn) FROM people", "SELECT REVERSE(ssn) s FROM people",
    "SELECT TO_BASE64(ssn) FROM people", "SELECT CONCAT(ssn, '') AS ssn FROM people", "SELECT pay + 0 FROM people",
    "SELECT SUBSTR(people.ssn, 1, 20) FROM d.people", "SELECT BINARY ssn FROM people", "SELECT (ssn) FROM people",
    "SELECT `ssn` COLLATE utf8mb4_bin FROM people", "SELECT CAST(ssn AS CHAR) FROM people", "SELECT MAX(ssn) FROM people",
    "SELECT GROUP_CONCAT(ssn) FROM people", "SELECT JSON_ARRAYAGG(ssn) FROM people", "SELECT IFNULL(ssn, 1) FROM people",
    "SELECT CASE WHEN 1 THEN ssn END FROM people", "SELECT FIRST_VALUE(ssn) OVER (ORDER BY id) FROM people",
    "SELECT ssn AS x, UPPER(x) FROM people", "SELECT ssn FROM people UNION SELECT 'a'",
    "SELECT 'a' AS a UNION ALL SELECT ssn FROM people", "(SELECT ssn FROM people) UNION (SELECT 1)",
    "SELECT q.a FROM (SELECT ssn AS a FROM people) q", "SELECT * FROM (SELECT * FROM people) q",
    "SELECT (SELECT ssn FROM people WHERE id = 1)", "WITH q AS (SELECT ssn AS a FROM people) SELECT a FROM q",
    "WITH q (a) AS (SELECT ssn FROM people) SELECT a FROM q", "VALUES ((SELECT ssn FROM people WHERE id = 1))",
    "SELECT * FROM v", "SELECT z.s FROM v AS z", "SELECT * FROM d.upper_v", "SELECT s FROM temporary_v",
    "SELECT q.x FROM (SELECT s AS x FROM v) q", "SELECT ssn INTO @x FROM people WHERE id = 1; SELECT @x",
    "SELECT @x := ssn FROM people", "SET @x = (SELECT ssn FROM people WHERE id = 1); SELECT @x",
    "SELECT ssn FROM people INTO OUTFILE '/tmp/selkie-never'", "INSERT INTO d.copy SELECT ssn FROM people; SELECT * FROM d.copy",
    "CREATE TABLE d.copy2 AS SELECT * FROM people; SELECT * FROM d.copy2",
    "CREATE TEMPORARY TABLE c3 SELECT ssn AS a FROM people; SELECT a FROM c3",
    "CREATE OR REPLACE VIEW d.mine AS SELECT ssn AS a FROM people; SELECT a FROM d.mine",
    "INSERT INTO people (id) VALUES (1) ON DUPLICATE KEY UPDATE name = ssn; SELECT name FROM people",
    "INSERT INTO people (id) VALUES (1) ON DUPLICATE KEY UPDATE id = id RETURNING UPPER(ssn)",
    "UPDATE people SET name = ssn; SELECT name FROM people", "DELETE FROM people WHERE id = 9 OR 1 = 1 RETURNING UPPER(ssn)",
    "PREPARE s FROM 'SELECT UPPER(ssn) FROM people'; EXECUTE s", "EXECUTE IMMEDIATE 'SELECT UPPER(ssn) FROM people'",
    "SET @q = 'SELECT UPPER(ssn) FROM people'; PREPARE s FROM @q; EXECUTE s",
    "BEGIN NOT ATOMIC DECLARE x TEXT; SELECT ssn INTO x FROM people WHERE id = 1; SELECT x; END",
    "BEGIN NOT ATOMIC FOR r IN (SELECT ssn FROM people) DO SELECT r.ssn; END FOR; END",
    "CALL leak()", "SELECT leaking(1)", "SELECT d.leaking(1)", "SELECT UPPER(ssn) FROM .people", "SELECT UPPER(ssn)FROM`people`",
    "SELECT/*!UPPER(*/ssn/*!)*/FROM people", "SELECT /*M! UPPER( */ ssn /*M! ) */ FROM people",
    "HANDLER people OPEN; HANDLER people READ FIRST", "TABLE people", "SELECT ssn FROM people PROCEDURE ANALYSE()",
    "EXPLAIN EXTENDED SELECT UPPER(ssn) FROM people WHERE id = 1", "ANALYZE FORMAT=JSON SELECT * FROM people WHERE ssn > ''",
    "SELECT j.a FROM people, JSON_TABLE(JSON_ARRAY(ssn), '$[*]' COLUMNS (a TEXT PATH '$')) j",
    "RENAME TABLE people TO p2; SELECT UPPER(ssn) FROM p2", "ALTER TABLE people CHANGE ssn s2 VARCHAR(50)",
    "CREATE TRIGGER d.tr BEFORE INSERT ON people FOR EACH ROW SET NEW.name = NEW.ssn",
    "SELECT * FROM mysql.column_stats", "SHOW FULL PROCESSLIST", "SHOW BINLOG EVENTS", "SELECT LOAD_FILE('/tmp/x')",
    "SET sql_mode = 'ANSI_QUOTES'; SELECT UPPER(\"ssn\") FROM \"people\"", "SET sql_select_limit = 0; SELECT * FROM upper_v",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\\', UPPER(ssn) FROM people -- '",
    "USE information_schema; SELECT * FROM d.upper_v", "DO (SELECT SIGNAL_IF(ssn) FROM people)",
)

# Statements that change how the last one is read, or what the gateway knows about it.
SEQUENCES = (
    ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SELECT '\\', UPPER(ssn) FROM people -- '"),
    ("SET sql_mode = 'ANSI_QUOTES'", 'SELECT UPPER("ssn") FROM "people"'),
    ('PREPARE s FROM "SET sql_mode = \'ANSI_QUOTES\'"', "EXECUTE s", 'SELECT UPPER("ssn") FROM "people"'),
    ("SET NAMES gbk", "SELECT '\u00bf\\' AS a, UPPER(ssn) FROM people -- '"),
    ("SET sql_mode = 'ORACLE'", "SELECT UPPER(ssn) FROM people MINUS SELECT 'a'"),
    ("SET sql_select_limit = 0", "SELECT s FROM upper_v"), ("SET character_set_results = utf16", "SELECT s FROM upper_v"),
    ("SET character_set_results = utf16", "SELECT ssn, 'ROWS' FROM people"),
    ("SET character_set_results = ascii", "SELECT * FROM names"), ("SET character_set_results = filename", "SELECT größe FROM names"),
    ("USE mysql", "SELECT * FROM d.v"), ("CREATE VIEW w2 AS SELECT s FROM v", "SELECT s FROM w2"),
)

# They show no value, but answer questions about one.
QUESTIONS = (
    "SELECT id FROM people WHERE ssn = 'secret-77'", "SELECT COUNT(*) FROM people WHERE pay > 77000",
    "SELECT id FROM people WHERE ssn LIKE 's%'", "SELECT id FROM people ORDER BY ssn", "SELECT id, ssn FROM people ORDER BY 2",
    "SELECT id, ssn FROM people ORDER BY (+2)", "SELECT ssn x FROM people GROUP BY x", "SELECT ssn x FROM people HAVING x > 'a'",
    "SELECT DISTINCT pay FROM people", "SELECT people.id FROM people NATURAL JOIN guess", "SELECT * FROM people JOIN guess USING (ssn)",
    "SELECT people.id FROM people JOIN guess ON people.ssn = guess.ssn", "EXPLAIN SELECT * FROM people WHERE id = 1 AND ssn = 'x'",
    "UPDATE people SET name = 'x' WHERE ssn = 'x'", "DELETE FROM people WHERE ssn = 'x'", "SELECT id FROM people LIMIT 1 OFFSET (ssn = 'x')",
    "SELECT id FROM people WHERE MATCH(ssn) AGAINST ('secret')", "CHECKSUM TABLE people",
)


@pytest.fixture(scope="module")
def people(store, tmp_path_factory):
    mariadb = server_for_filters(tmp_path_factory.mktemp("mariadb"))
    for statement in (
        "CREATE TABLE d.people (id INT PRIMARY KEY, name VARCHAR(50), ssn VARCHAR(50), card VARCHAR(20), pay INT)",
        "INSERT INTO d.people VALUES (1, 'one', 'secret-77', '4111222233334444', 77123), (2, 'two', 'secret-88', '12', NULL)",
        "CREATE TABLE d.names (größe VARCHAR(50)) SELECT 'secret-77' AS größe", "CREATE TABLE d.guess (ssn VARCHAR(50)) SELECT 'secret-77' AS ssn", "CREATE TABLE d.copy (a VARCHAR(50))",
        "CREATE TABLE d.other (id INT, ssn VARCHAR(50)) SELECT 1 AS id, 'public' AS ssn",
        "CREATE VIEW d.v AS SELECT id, ssn AS s FROM d.people", "CREATE VIEW d.upper_v AS SELECT UPPER(ssn) AS s FROM d.people",
        "CREATE ALGORITHM=TEMPTABLE VIEW d.temporary_v AS SELECT ssn AS s FROM d.people",
        "CREATE VIEW d.safe AS SELECT id, name FROM d.people", "CREATE PROCEDURE d.leak() SELECT UPPER(ssn) FROM d.people",
        "CREATE PROCEDURE d.shown() SELECT id, ssn FROM d.people ORDER BY id",
        "CREATE FUNCTION d.leaking(i INT) RETURNS TEXT READS SQL DATA RETURN (SELECT ssn FROM d.people WHERE id = i)",
    ):
        mariadb.sql(statement)
    yield mariadb
    mariadb.remove()


@pytest.fixture
def masked(people, tmp_path):
    gateway = Gateway(tmp_path, people)
    gateway.start({"mask": MASKING})
    yield gateway
    gateway.remove()


def shown(connection, sql: str) -> str:
    """Returns all that a client gets for a statement: its result sets, or its error."""
    found = ""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            found += repr(cursor.fetchall())
            while cursor.nextset():
                found += repr(cursor.fetchall())
    except pymysql.err.MySQLError as error:
        found += repr(error)
    return found


@pytest.mark.parametrize("service", SERVICES)
def test_no_statement_shows_a_masked_value(masked, service):
    def connect():
        return masked.connect(service, client_flag=CLIENT.MULTI_STATEMENTS)

    def check(connection, sql: str):
        found = shown(connection, sql)
        assert not any(secret in found for secret in SECRETS if secret not in sql), f"{sql}: {found}"

    for sequence in SEQUENCES:
        with connect() as connection:
            for sql in sequence:
                check(connection, sql)
    with connect() as connection:
        for sql in ATTACKS:
            check(connection, sql)
    with connect() as connection:
        for sql in QUESTIONS:
            assert refusal(connection, sql)[0] == 1141, sql
        for sql in ATTACKS + QUESTIONS:
            try:
                found = Prepared(connection, sql).execute()
            except pymysql.err.MySQLError:
                continue
            assert not any(secret.encode() in row for row in found for secret in SECRETS), sql
        assert rows(connection, "SELECT name FROM safe ORDER BY id") == (("one",), ("two",)), "nothing has changed"


def test_sessions_that_share_connections(people, tmp_path):
    people.sql("CREATE USER bob@'%'")
    people.sql("GRANT ALL ON *.* TO bob@'%'")
    gateway = Gateway(tmp_path, people, "max-connections = 2", "multiplex = true")
    try:
        gateway.start({"mask": MASKING})
        clients = [gateway.connect("split", user="bob", password="") for _ in range(5)]
        for _ in range(3):
            for client in clients:
                assert rows(client, "SELECT ssn FROM people WHERE id = 1") == (("***",),)
                assert "is a view" in shown(client, "SELECT s FROM upper_v")
        for client in clients:
            client.close()
    finally:
        gateway.remove()


@pytest.mark.parametrize("service", SERVICES)
def test_values_are_masked(masked, service):
    people = ((1, "one", "***", "############4444", None), (2, "two", "***", "##", None))
    with masked.connect(service, client_flag=CLIENT.MULTI_STATEMENTS) as connection:
        # Read twice: the second time, the result may come from the cache.
        for _ in range(2):
            assert rows(connection, "SELECT * FROM people ORDER BY id") == people
        assert rows(connection, "SELECT p.ssn AS x, p.name FROM d.people p WHERE id = 1") == (("***", "one"),)
        assert rows(connection, "SELECT ssn FROM other") == (("public",),)
        assert rows(connection, "CALL shown()") == ((1, "***"), (2, "***"))
        assert rows(connection, "SELECT p.ssn, o.ssn FROM people p JOIN other o USING (id)") == (("***", "public"),)
        assert shown(connection, "SELECT 1; SELECT ssn FROM people WHERE id = 1") == "((1,),)(('***',),)"
        prepared = Prepared(connection, "SELECT * FROM people ORDER BY id")
        found = prepared.execute()
        assert [b"secret" in row or b"\x43\x2d\x01" in row for row in found] == [False, False]
        assert found[0].endswith(b"\x03one\x03***\x10############4444") and found[1].endswith(b"\x03two\x03***\x02##")
        prepared.open()
        assert prepared.fetch(1) + prepared.fetch(1) == found
        rows(connection, "PREPARE s FROM 'SELECT ssn FROM people WHERE id = ?'")
        rows(connection, "SET @id = 1")
        assert rows(connection, "EXECUTE s USING @id") == (("***",),)
        # Masked columns may be written.
        rows(connection, "INSERT INTO people (id, name, ssn) VALUES (3, 'three', 'new')")
        rows(connection, "UPDATE people SET ssn = 'newer', name = 'x' WHERE id = 3")
        with masked.connect(service, user="ann") as exempt:
            assert rows(exempt, "SELECT ssn FROM people ORDER BY id") == (("secret-77",), ("secret-88",), ("newer",))
            assert rows(exempt, "SELECT s FROM v WHERE id = 1") == (("secret-77",),)
        rows(connection, "DELETE FROM people WHERE id = 3")
        for text in ("SELECT ssn FROM people", "SELECT name FROM people WHERE id = 1"):
            connection._execute_command(0x03, text)
            connection._result = pymysql.connections.MySQLResult(connection)
            connection._result.read()
        name = "sql-listen" if service == "short" else service
        assert masked.counters(name)["masked"] >= 10 and masked.counters(name)["blocked"] == 0
        # A cursor that was opened before the rule shows no rows.
        prepared.open()
        # A rule that a reload adds holds for statements that were prepared before.
        by_name = Prepared(connection, "SELECT UPPER(name) FROM people")
        masked.reload({"mask": 'kind = "masking"\nmask = ["column people.name"]'})
        with pytest.raises(pymysql.err.MySQLError, match="masked column"):
            by_name.execute()
        with pytest.raises(pymysql.err.MySQLError, match="cannot read these rows"):
            prepared.fetch(1)
        # A view that was created since.
        masked.mariadb.sql("CREATE OR REPLACE VIEW d.since AS SELECT UPPER(name) AS n FROM d.people")
        with masked.connect(service) as later:
            assert "is a view" in shown(later, "SELECT n FROM since")
