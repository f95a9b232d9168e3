"""The result cache of a service follows the log of its primary."""

import subprocess

import pymysql
import pytest

from support.selkie import program
from support.split_gateway import CONFIG, SplitGateway, kill_primary, rows
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

SERVICES = {"cached": 'role = "primary"\ncache-bytes = 16777216', "plain": 'role = "primary"'}
QUESTION = "SELECT a FROM t WHERE id = 1"


class Gateway(SplitGateway):
    def cache(self) -> dict:
        return self.mongo.admin.command("serverStatus")["cache"]["sql"]

    def is_cached(self, connection, question: str = QUESTION) -> bool:
        rows(connection, question)
        before = self.cache()["hits"]
        rows(connection, question)
        return self.cache()["hits"] > before


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    replication = Replication(tmp_path_factory.mktemp("replication"), ("--binlog-format=ROW",))
    yield replication
    replication.remove()


@pytest.fixture(scope="module")
def gateway(replication, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), replication, SERVICES, router="connections")
    gateway.await_roles("primary", "replica", "replica")
    with gateway.connect("cached") as connection:
        until(lambda: gateway.is_cached(connection))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


def test_cached_results_are_current(gateway, replication):
    with gateway.connect("cached") as one, gateway.connect("cached") as other, gateway.connect("plain") as plain:
        for number in range(20):
            rows(one, f"UPDATE t SET a = {number} WHERE id = 1")
            assert rows(other, QUESTION) == rows(one, QUESTION) == ((number,),)
        until(lambda: gateway.is_cached(other))
        assert not gateway.is_cached(plain)
        # Writes past the service arrive by the log.
        replication.servers[0].sql("UPDATE d.t SET a = 500 WHERE id = 1")
        until(lambda: rows(one, QUESTION) == ((500,),), 5)
        until(lambda: gateway.is_cached(one))
        rows(plain, "UPDATE t SET a = 600 WHERE id = 1")
        until(lambda: rows(one, QUESTION) == ((600,),), 5)
        rows(one, "BEGIN")
        rows(one, "UPDATE t SET a = 700 WHERE id = 1")
        assert (rows(one, QUESTION), rows(other, QUESTION)) == (((700,),), ((600,),))
        rows(one, "ROLLBACK")
        assert rows(one, QUESTION) == rows(other, QUESTION) == ((600,),)


def test_cached_results_are_for_users_who_may_read_them(gateway, replication):
    primary = replication.servers[0]
    primary.sql("CREATE OR REPLACE USER eve@'%' IDENTIFIED BY 'secret'")
    primary.sql("GRANT SELECT (id) ON d.t TO eve@'%'")
    with gateway.connect("cached") as joe, gateway.connect("cached", user="jim") as jim, gateway.connect("cached", user="eve") as eve:
        until(lambda: gateway.is_cached(joe) and gateway.is_cached(jim))
        for _ in range(2):
            with pytest.raises(pymysql.err.MySQLError) as refused:
                rows(eve, QUESTION)
            assert refused.value.args[0] in (1142, 1143)
        primary.sql("REVOKE SELECT ON *.* FROM jim@'%'")
    with pytest.raises(pymysql.err.MySQLError):
        with gateway.connect("cached", user="jim") as jim:
            rows(jim, QUESTION)
    primary.sql("GRANT SELECT ON *.* TO jim@'%'")


def test_the_cache_follows_another_primary(gateway, replication):
    _, new, third = replication.servers
    with gateway.connect("cached") as connection:
        until(lambda: gateway.is_cached(connection))
        kill_primary(replication)
        replication.promote(1)
    gateway.await_roles("none", "primary", "replica")
    new.sql("UPDATE d.t SET a = 1000 WHERE id = 1")
    with gateway.connect("cached") as connection:
        assert rows(connection, QUESTION) == ((1000,),)
        until(lambda: gateway.is_cached(connection))
        for number in range(1001, 1005):
            new.sql(f"UPDATE d.t SET a = {number} WHERE id = 1")
            until(lambda number=number: rows(connection, QUESTION) == ((number,),), 5)
            rows(connection, "UPDATE t SET a = a + 100 WHERE id = 1")
            assert rows(connection, QUESTION) == ((number + 100,),)


@pytest.mark.parametrize("settings", ['router = "read-write-split"\ncausal-reads = "all"', 'role = "any"', ""])
def test_other_services_have_no_cache(store, tmp_path, settings):
    file = tmp_path / "selkie.toml"
    servers = "".join(f'[server.db{number}]\naddress = "127.0.0.1:{number}"\n' for number in (1, 2, 3))
    service = f'[service.a]\nmonitor = "main"\ncache-bytes = 2000000\n{settings}\n'
    file.write_text(servers + CONFIG + service)
    done = subprocess.run([program(), "check", "--config", str(file)], capture_output=True, text=True)
    assert done.returncode != 0 and "cache-bytes" in done.stdout + done.stderr
