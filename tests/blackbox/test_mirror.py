"""The filter that also executes statements on a second server, and compares the replies."""

import pytest
from pymysql.constants import CLIENT

from support.filters import SERVICES, Gateway, Prepared, rows, server_for_filters
from support.topology import until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]


@pytest.fixture(scope="module")
def servers(store, tmp_path_factory):
    servers = [server_for_filters(tmp_path_factory.mktemp(name)) for name in ("db1", "db2")]
    for server in servers:
        server.sql("CREATE USER bob@'%'")
        server.sql("GRANT ALL ON *.* TO bob@'%'")
    yield servers
    for server in servers:
        server.remove()


@pytest.fixture
def gateway(servers, tmp_path):
    gateway = Gateway(tmp_path, servers[0], f'[server.db2]\naddress = "127.0.0.1:{servers[1].port}"')
    gateway.start({"mirror": 'kind = "mirror"\nserver = "db2"'})
    yield gateway
    gateway.remove()


def test_replies_are_compared(gateway, servers):
    for number, service in enumerate(SERVICES):
        name = "sql-listen" if service == "short" else service

        def counter(which: str) -> int:
            return gateway.counters(name)[which]

        row = 100 + number
        options = {"user": "bob", "password": "", "client_flag": CLIENT.MULTI_STATEMENTS}
        with gateway.connect(service, **options) as connection:
            rows(connection, f"INSERT INTO t VALUES ({row}, 'x', 1)")
            assert rows(connection, f"SELECT a FROM t WHERE id = {row}") == (("x",),)
            rows(connection, f"BEGIN; UPDATE t SET a = 'y' WHERE id = {row}; COMMIT; SELECT a FROM t WHERE id = {row}")
            prepared = Prepared(connection, f"SELECT a FROM t WHERE id = {row}")
            assert prepared.execute() == prepared.execute()
            connection.select_db("mysql")
            rows(connection, "SELECT COUNT(*) FROM d.t")
            until(lambda: counter("mirrored") >= 8)
            assert (counter("differences"), counter("dropped")) == (0, 0), gateway.selkie.log.read_text()
            assert servers[1].sql(f"SELECT a FROM d.t WHERE id = {row}") == (("y",),)
            servers[1].sql(f"UPDATE d.t SET a = 'secret' WHERE id = {row}")
            assert rows(connection, f"SELECT a FROM d.t WHERE id = {row}") == (("y",),)
            prepared.execute()
            until(lambda: counter("differences") == 2)
            servers[1].sql("RENAME TABLE d.secret TO d.hidden")
            rows(connection, "SELECT * FROM d.secret")
            until(lambda: counter("differences") == 3)
            servers[1].sql("RENAME TABLE d.hidden TO d.secret")
    log = gateway.selkie.log.read_text()
    assert "a mirrored reply differs" in log and "SELECT a FROM d.t WHERE id = ?" in log and "'secret'" not in log


def test_clients_do_not_wait_for_the_mirror(gateway, servers):
    with gateway.connect(user="bob", password="") as blocker:
        servers[1].sql("CREATE TABLE d.locked (id INT)")
        servers[0].sql("CREATE TABLE d.locked (id INT)")
        holder = servers[1].connect()
        try:
            rows(holder, "LOCK TABLES d.locked WRITE")
            for number in range(200):
                rows(blocker, f"INSERT INTO locked VALUES ({number})")
            assert gateway.counters()["dropped"] > 0
        finally:
            holder.close()
        assert rows(blocker, "SELECT COUNT(*) FROM locked") == ((200,),)
    # A user that Selkie cannot log in for is served without a mirror.
    before = gateway.counters()["mirrored"]
    with gateway.connect() as connection:
        assert rows(connection, "SELECT 1") == ((1,),)
    until(lambda: "a session is not mirrored" in gateway.selkie.log.read_text())
    assert gateway.counters()["mirrored"] >= before
