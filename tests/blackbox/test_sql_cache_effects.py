"""Statements that change no rows of a table leave its cached results."""

import time

import pymysql
import pytest

from blackbox.sql_stale_reads import LOGGING
from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

READ = "SELECT a FROM t WHERE id = 1"
READS = 40

DEFINITIONS = [
    "CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)",
    "CREATE TABLE other (id INT PRIMARY KEY, a INT)", "CREATE PROCEDURE nop() BEGIN END",
    "CREATE PROCEDURE writes_other(x INT) REPLACE INTO other VALUES (1, x)",
    "CREATE FUNCTION top() RETURNS INT RETURN (SELECT MAX(a) FROM t)",
]

# The session that sends one of these keeps its cached results, too.
HARMLESS = [
    "DO 1", "WITH x AS (SELECT 1) SELECT * FROM x", "CALL nop()", "CALL writes_other(5)", "SELECT top()",
    "PREPARE s FROM 'SELECT a FROM other'", "PREPARE s FROM 'UPDATE t SET a = 2'", "/*!40101 SET NAMES utf8mb4 */",
    "ANALYZE TABLE t", "ANALYZE TABLE other", "OPTIMIZE TABLE other", "FLUSH TABLES", "HANDLER other OPEN", "SET @x = (SELECT MAX(a) FROM t)",
    "SET STATEMENT max_statement_time = 5 FOR SELECT a FROM t", "SELECT 1; SELECT 2", "EXECUTE IMMEDIATE 'UPDATE other SET a = 3'",
    "BEGIN NOT ATOMIC UPDATE other SET a = 4; END", "INSERT INTO other VALUES (7, 7), (8, 8) ON DUPLICATE KEY UPDATE a = VALUES(a)",
    "DELETE o FROM other AS o WHERE o.id = 7",
]
# After these the session may see other tables than others.
PRIVATE = ["CREATE TEMPORARY TABLE mine (a INT)", "LOCK TABLES other READ"]


@pytest.fixture(scope="module", params=["none", "follow"])
def gateway(request, store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("effects")
    mariadb = MariadbServer(folder / "m", LOGGING).start()
    mariadb.url = mariadb.tcp_url
    with mariadb.connect() as connection, connection.cursor() as cursor:
        for statement in ["CREATE USER joe@'%' IDENTIFIED BY 'secret'", "GRANT ALL PRIVILEGES ON *.* TO joe@'%'", *DEFINITIONS]:
            cursor.execute(statement)
    port = free_port()
    options = ("--sql-listen", f"127.0.0.1:{port}", "--threads", "1", "--cache", "both", "--external-writes", request.param)
    selkie = SelkieServer(folder / "s", mariadb, options).start()
    yield Gateway(selkie, port)
    assert selkie.is_running()
    selkie.kill()
    mariadb.remove()


class Gateway:
    def __init__(self, selkie, port: int):
        self.client, self.port = selkie.client(), port

    def connect(self) -> pymysql.Connection:
        flags = pymysql.constants.CLIENT.MULTI_STATEMENTS
        return pymysql.connect(host="127.0.0.1", port=self.port, user="joe", password="secret", database="d", autocommit=True, client_flag=flags)

    def hits(self) -> int:
        return self.client.admin.command("serverStatus")["cache"]["sql"]["hits"]

    def hits_of(self, connection) -> int:
        """The hits of repeated reads, between which nothing else happens."""
        before = self.hits()
        for _ in range(READS):
            run(connection, READ)
        return self.hits() - before

    def warm(self, connection):
        deadline = time.monotonic() + 5
        while self.hits_of(connection) < READS:
            assert time.monotonic() < deadline, "never cached"


def run(connection, statement: str):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        cursor.fetchall()
        while cursor.nextset():
            cursor.fetchall()


@pytest.mark.parametrize("statement", HARMLESS)
def test_harmless_statements_leave_cached_results(gateway, statement):
    with gateway.connect() as own, gateway.connect() as other:
        gateway.warm(own)
        gateway.warm(other)
        run(own, statement)
        # The follower of the binary log sees it a little later.
        time.sleep(0.1)
        assert gateway.hits_of(other) == READS
        if "NAMES" in statement:
            run(own, READ)
        assert gateway.hits_of(own) == READS


@pytest.mark.parametrize("statement", PRIVATE)
def test_statements_about_the_session_alone_leave_the_results_of_others(gateway, statement):
    with gateway.connect() as own, gateway.connect() as other:
        gateway.warm(other)
        run(own, statement)
        time.sleep(0.1)
        assert gateway.hits_of(other) == READS


@pytest.mark.parametrize("statement", ["CALL nop()", "CALL writes_other(6)", "DO 1", "SELECT top()"])
def test_an_open_transaction_stops_only_what_it_may_change(gateway, statement):
    with gateway.connect() as own, gateway.connect() as other:
        run(own, "BEGIN")
        run(own, statement)
        gateway.warm(other)
        run(own, "ROLLBACK")


def test_a_definition_leaves_its_session_the_cache(gateway):
    with gateway.connect() as own:
        run(own, "CREATE OR REPLACE TABLE new (a INT)")
        gateway.warm(own)
