"""Several MariaDB servers: their monitors."""

import pytest
from pymongo.errors import OperationFailure

from support.selkie import SelkieServer
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

MONITOR = """
[monitor.main]
kind = "{kind}"
servers = ["db1", "db2", "db3"]
user = "root"
interval-ms = 100
timeout-ms = 1000
failures = 2
"""


class Gateway:
    """Selkie with an embedded store for its own clients, beside the servers that it observes."""

    def __init__(self, folder, text: str):
        self.file = folder / "selkie.toml"
        self.file.write_text(text)
        self.selkie = SelkieServer(folder / "s", options=("--threads", "2", "--config", str(self.file))).start()
        self.mongo = self.selkie.client()

    def servers(self) -> dict:
        return self.mongo.admin.command("serverStatus")["selkie"]["servers"]

    def roles(self) -> list[str]:
        return [server["role"] for server in self.servers().values()]

    def await_roles(self, *expected: str):
        until(lambda: self.roles() == list(expected))

    def log(self) -> str:
        return self.selkie.log.read_text()

    def remove(self):
        self.mongo.close()
        self.selkie.kill()


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    topology = Replication(tmp_path_factory.mktemp("replication"))
    yield topology
    topology.remove()


@pytest.fixture
def gateway(replication, tmp_path):
    gateway = Gateway(tmp_path, replication.sections() + MONITOR.format(kind="replication"))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


def test_the_state_of_servers_is_observed(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    db1, db2, _ = gateway.servers().values()
    assert (db1["state"], db1["readOnly"], db1["serverId"], db1["sources"]) == ("up", False, 1, [])
    assert db1["gtidBinlogPos"].startswith("0-1-") and db1["version"].startswith("10.")
    assert (db2["readOnly"], db2["lagSeconds"]) == (True, 0)
    assert db2["sources"] == [{"address": f"127.0.0.1:{replication.servers[0].port}", "io": "running", "sql": "running"}]
    assert "the primary is db1" in gateway.log()

    replication.servers[1].sql("STOP SLAVE SQL_THREAD")
    gateway.await_roles("primary", "none", "replica")
    stopped = gateway.mongo.admin.command({"selkieServer": "db2"})
    assert stopped["reason"] == "its replication has stopped" and stopped["sources"][0]["sql"] == "stopped"
    replication.servers[1].sql("START SLAVE")
    gateway.await_roles("primary", "replica", "replica")

    with pytest.raises(OperationFailure) as refused:
        gateway.mongo.admin.command({"selkieServer": "db9"})
    assert refused.value.code == 7
    with pytest.raises(OperationFailure) as refused:
        gateway.mongo.admin.command({"selkieServer": "db1", "mode": "off"})
    assert refused.value.code == 2


def test_an_old_primary_that_returns_is_not_the_primary(gateway, replication):
    gateway.await_roles("primary", "replica", "replica")
    old, new, _ = replication.servers
    old.kill()
    gateway.await_roles("none", "replica", "replica")
    assert gateway.servers()["db1"]["state"] == "down"
    replication.promote(1)
    gateway.await_roles("none", "primary", "replica")
    old.start()
    assert old.sql("SELECT @@read_only") == ((0,),)
    until(lambda: gateway.servers()["db1"]["state"] == "up")
    gateway.await_roles("none", "primary", "replica")
    assert gateway.servers()["db1"]["reason"] == "it is writable beside the primary and follows no server"
    # And back: the old one follows, and is promoted.
    old.sql("SET GLOBAL read_only = ON")
    replication.follow(old, new, "current_pos")
    gateway.await_roles("replica", "primary", "replica")
    until(lambda: old.sql("SELECT @@gtid_current_pos") == new.sql("SELECT @@gtid_current_pos"))
    replication.promote(0)
    gateway.await_roles("primary", "replica", "replica")
