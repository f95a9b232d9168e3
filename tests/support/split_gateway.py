"""Selkie with services of the router `read-write-split`, in front of a primary and two replicas."""

import pymysql

from support.process import free_port
from support.selkie import SelkieServer
from support.topology import until

CONFIG = """
[monitor.main]
kind = "replication"
servers = ["db1", "db2", "db3"]
user = "root"
interval-ms = 100
timeout-ms = 1000
failures = 2
"""

SERVICE = """
[service.{name}]
router = "{router}"
monitor = "main"
{settings}
[listener.{name}]
protocol = "mariadb"
address = "127.0.0.1:{port}"
service = "{name}"
"""

SERVICES = {
    "split": "max-lag-seconds = 5\nprimary-wait-ms = 15000",
    "causal": "causal-reads = true",
    "all": 'causal-reads = "all"',
    "impatient": "primary-wait-ms = 0",
    "replay": "transaction-replay = true",
    "outcomes": "commit-outcomes = true\nprimary-wait-ms = 15000",
    "both": "commit-outcomes = true\ntransaction-replay = true\nprimary-wait-ms = 15000",
}

# The table of `commit-outcomes`.
COMMITS = (
    "CREATE DATABASE IF NOT EXISTS selkie",
    "CREATE TABLE selkie.commits (session BINARY(16), number BIGINT UNSIGNED, "
    "marked TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (session, number))",
)


class SplitGateway:
    def __init__(
        self, folder, topology, services: dict[str, str] = SERVICES, server: str = "", router: str = "read-write-split"
    ):
        """`services`: their settings by name; `server`: settings of each server."""
        self.ports = {name: free_port() for name in services}
        sections = "".join(
            SERVICE.format(name=name, router=router, settings=settings, port=self.ports[name]) for name, settings in services.items()
        )
        file = folder / "selkie.toml"
        file.write_text(topology.sections(server) + CONFIG + sections)
        self.selkie = SelkieServer(folder / "s", options=("--threads", "2", "--config", str(file))).start()
        self.mongo = self.selkie.client()

    def servers(self) -> list[dict]:
        return list(self.mongo.admin.command("serverStatus")["selkie"]["servers"].values())

    def await_roles(self, *expected: str):
        try:
            until(lambda: [server["role"] for server in self.servers()] == list(expected))
        except AssertionError:
            raise AssertionError(self.servers()) from None

    def connect(self, service: str = "split", **options) -> pymysql.Connection:
        options = {"user": "joe", "password": "secret", "database": "d", "autocommit": True} | options
        return pymysql.connect(host="127.0.0.1", port=self.ports[service], **options)

    def statistics(self, service: str = "split") -> dict:
        return self.mongo.admin.command("serverStatus")["selkie"]["services"][service]

    def remove(self):
        self.mongo.close()
        self.selkie.kill()


def rows(connection, sql: str):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def is_gone(connection) -> bool:
    try:
        rows(connection, "SELECT 1")
    except pymysql.err.MySQLError:
        return True
    return False


def reads_at(connection) -> int:
    """Returns the id of the server that executes a read."""
    return rows(connection, "SELECT @@server_id FROM t LIMIT 1")[0][0]


def kill_primary(replication):
    """Kills the first server once the others have all its transactions."""
    replication.await_replicas()
    replication.servers[0].kill()


def return_primary(gateway: SplitGateway, replication):
    """Starts the first server again, in whose place the second is the primary, and promotes it."""
    old, new, _ = replication.servers
    old.start()
    old.sql("SET GLOBAL read_only = ON")
    replication.follow(old, new, "current_pos")
    gateway.await_roles("replica", "primary", "replica")
    until(lambda: old.sql("SELECT @@gtid_current_pos") == new.sql("SELECT @@gtid_current_pos"))
    replication.promote(0)
    gateway.await_roles("primary", "replica", "replica")
