"""The result cache with the router `read-write-split`, whose replicas are a second behind."""

import threading

import pymysql
import pytest

from support.filters import Prepared
from support.split_gateway import SplitGateway, kill_primary, rows
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

SERVICES = {
    "split": "cache-bytes = 16777216\nprimary-wait-ms = 15000",
    "causal": "cache-bytes = 16777216\ncausal-reads = true\ntransaction-replay = true",
    "shared": "cache-bytes = 16777216\nmultiplex = true",
}
QUESTION = "SELECT a FROM t WHERE id = 1"


class Gateway(SplitGateway):
    def hits(self) -> int:
        return self.mongo.admin.command("serverStatus")["cache"]["sql"]["hits"]

    def is_cached(self, connection, question: str = QUESTION) -> bool:
        rows(connection, question)
        before = self.hits()
        rows(connection, question)
        return self.hits() > before


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    replication = Replication(tmp_path_factory.mktemp("replication"), ("--binlog-format=ROW",))
    primary, *replicas = replication.servers
    primary.sql("CREATE VIEW d.v AS SELECT id, a FROM d.t")
    primary.sql("CREATE PROCEDURE d.nothing() BEGIN END")
    replication.await_replicas()
    for replica in replicas:
        replica.sql("STOP SLAVE")
        replica.sql("CHANGE MASTER TO MASTER_DELAY = 1")
        replica.sql("START SLAVE")
    yield replication
    replication.remove()


@pytest.fixture(scope="module")
def gateway(replication, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), replication, SERVICES)
    gateway.await_roles("primary", "replica", "replica")
    for service in SERVICES:
        with gateway.connect(service) as connection:
            until(lambda connection=connection: gateway.is_cached(connection))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


@pytest.fixture(params=SERVICES)
def service(request):
    return request.param


def test_results_are_never_older_than_an_acknowledged_write(gateway, replication, service):
    """Writers count in rows of their own. Readers compare with the number acknowledged before."""
    replication.servers[0].sql("REPLACE INTO d.t VALUES (11, 0), (12, 0)")
    acknowledged, failures, is_over = {11: 0, 12: 0}, [], threading.Event()

    def write(row: int):
        with gateway.connect(service) as connection:
            for number in range(1, 60):
                match number % 4:
                    case 0:
                        rows(connection, "BEGIN")
                        rows(connection, f"UPDATE t SET a = {number} WHERE id = {row}")
                        rows(connection, "COMMIT")
                    case 1:
                        rows(connection, f"UPDATE v SET a = {number} WHERE id = {row}")
                    case _:
                        rows(connection, f"UPDATE t SET a = {number} WHERE id = {row}")
                acknowledged[row] = number

    def read():
        with gateway.connect(service) as connection:
            while not is_over.is_set() and not failures:
                for row in acknowledged:
                    least = acknowledged[row]
                    ((found,),) = rows(connection, f"SELECT a FROM t WHERE id = {row}")
                    if found < least:
                        failures.append((row, found, least))

    readers = [threading.Thread(target=read) for _ in range(3)]
    writers = [threading.Thread(target=write, args=(row,)) for row in acknowledged]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    assert not failures and set(acknowledged.values()) == {59}


def test_writes_past_the_service_arrive_by_the_log(gateway, replication, service):
    with gateway.connect(service) as connection:
        for number in range(500, 505):
            until(lambda: gateway.is_cached(connection))
            replication.servers[0].sql(f"UPDATE d.t SET a = {number} WHERE id = 1")
            # The replicas have it a second later, and a result read there would be cached.
            until(lambda number=number: rows(connection, QUESTION) == ((number,),), 0.9)


def test_hits_need_no_server(gateway, service):
    with gateway.connect(service) as one, gateway.connect(service) as other:
        until(lambda: gateway.is_cached(one))
        before, hits = gateway.statistics(service), gateway.hits()
        for _ in range(20):
            assert rows(one, QUESTION) == rows(other, QUESTION)
        after = gateway.statistics(service)
        assert gateway.hits() - hits >= 35
        assert after["toReplicas"] == before["toReplicas"] and after["toPrimary"] - before["toPrimary"] <= 2


def test_transactions_and_private_tables_are_not_cached(gateway, service):
    with gateway.connect(service) as one, gateway.connect(service) as other:
        rows(one, "UPDATE t SET a = 600 WHERE id = 1")
        until(lambda: gateway.is_cached(other))
        rows(one, "BEGIN")
        rows(one, "UPDATE t SET a = 700 WHERE id = 1")
        assert (rows(one, QUESTION), rows(other, QUESTION)) == (((700,),), ((600,),))
        rows(one, "ROLLBACK")
        assert rows(one, QUESTION) == rows(other, QUESTION) == ((600,),)
        with pytest.raises(pymysql.err.MySQLError):
            rows(one, "INSERT INTO t VALUES (1, 1)")
        until(lambda: gateway.is_cached(other))
        rows(one, "CREATE TEMPORARY TABLE t (id INT, a INT)")
        assert rows(one, QUESTION) == () and rows(other, QUESTION) == ((600,),)
        rows(one, "DROP TEMPORARY TABLE t")
        assert rows(one, QUESTION) == ((600,),)


def test_questions_about_the_last_statement(gateway, service):
    with gateway.connect(service) as connection:
        rows(connection, "REPLACE INTO t VALUES (21, 1), (22, 1), (23, 1)")
        three = "SELECT id FROM t WHERE id BETWEEN 21 AND 23"
        until(lambda: gateway.is_cached(connection, three))
        assert rows(connection, "SELECT FOUND_ROWS()") == ((3,),)
        rows(connection, three)
        assert rows(connection, "SELECT ROW_COUNT()") == ((-1,),)
        rows(connection, three)
        rows(connection, "UPDATE t SET a = 2 WHERE id = 21")
        assert rows(connection, "SELECT FOUND_ROWS()") == ((3,),)
        rows(connection, "SELECT 1/0")
        until(lambda: gateway.is_cached(connection, three))
        assert rows(connection, "SHOW WARNINGS") == ()


def test_prepared_selects(gateway, service):
    with gateway.connect(service) as connection:
        rows(connection, "UPDATE t SET a = 1 WHERE id = 1")
        select, update = Prepared(connection, QUESTION), Prepared(connection, "UPDATE t SET a = a + 1 WHERE id = 1")
        for _ in range(3):
            until(lambda: cached_execution(gateway, select))
            (before,) = select.execute()
            update.execute()
            (after,) = select.execute()
            assert before != after and before[:-4] == after[:-4]
        until(lambda: cached_execution(gateway, select))
        assert rows(connection, "SELECT FOUND_ROWS()") == ((1,),)


def cached_execution(gateway, prepared: Prepared) -> bool:
    prepared.execute()
    before = gateway.hits()
    prepared.execute()
    return gateway.hits() > before


def test_settings_and_schemas_have_results_of_their_own(gateway, replication, service):
    primary = replication.servers[0]
    primary.sql("CREATE DATABASE IF NOT EXISTS e")
    primary.sql("CREATE OR REPLACE TABLE e.t (id INT PRIMARY KEY, a INT)")
    primary.sql("INSERT INTO e.t VALUES (1, 77)")
    with gateway.connect(service) as connection:
        rows(connection, "UPDATE d.t SET a = 5 WHERE id = 1")
        until(lambda: gateway.is_cached(connection))
        connection.select_db("e")
        assert rows(connection, QUESTION) == ((77,),)
        rows(connection, "USE d")
        either = "SELECT '1' || a FROM t WHERE id = 1"
        assert rows(connection, QUESTION) == ((5,),)
        until(lambda: gateway.is_cached(connection, either))
        rows(connection, "SET sql_mode = 'PIPES_AS_CONCAT'")
        assert rows(connection, either) == (("15",),)


def test_cached_results_are_for_users_who_may_read_them(gateway, replication, service):
    primary = replication.servers[0]
    primary.sql("CREATE OR REPLACE USER eve@'%' IDENTIFIED BY 'secret'")
    primary.sql("GRANT SELECT (id) ON d.t TO eve@'%'")
    with gateway.connect(service) as joe, gateway.connect(service, user="eve") as eve:
        until(lambda: gateway.is_cached(joe))
        for _ in range(2):
            with pytest.raises(pymysql.err.MySQLError) as refused:
                rows(eve, QUESTION)
            assert refused.value.args[0] in (1142, 1143)


def test_the_cache_follows_another_primary(gateway, replication):
    """Last: the first server is gone afterwards."""
    _, new, _ = replication.servers
    connections = {service: gateway.connect(service) for service in SERVICES}
    for connection in connections.values():
        until(lambda connection=connection: gateway.is_cached(connection))
    kill_primary(replication)
    replication.promote(1)
    gateway.await_roles("none", "primary", "replica")
    for number, (service, connection) in enumerate(connections.items(), 1000):
        with gateway.connect(service) as other:
            # Until the new log is followed, statements have the route that they have without cache.
            until(lambda connection=connection: gateway.is_cached(connection))
            rows(connection, f"UPDATE t SET a = {number} WHERE id = 1")
            assert rows(connection, QUESTION) == rows(other, QUESTION) == ((number,),)
            new.sql(f"UPDATE d.t SET a = {number + 50} WHERE id = 1")
            until(lambda other=other, number=number: rows(other, QUESTION) == ((number + 50,),), 5)
        connection.close()
