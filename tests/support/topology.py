"""MariaDB servers that belong together: a primary with replicas, Galera, Spider."""

import contextlib
import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql

from .mariadb import PLUGINS, MariadbServer
from .process import free_port
from .selkie import REPOSITORY

SMALL = (
    "--innodb-buffer-pool-size=16M", "--performance-schema=OFF", "--key-buffer-size=1M", "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0", "--skip-name-resolve",
)


class Copy(MariadbServer):
    """A server that begins with a copy of another's data, which must not run yet."""

    def __init__(self, folder: Path, options: tuple[str, ...], template: MariadbServer | None):
        self.template = template
        super().__init__(folder, options)

    def install(self):
        if self.template:
            shutil.copytree(self.template.data, self.data)
        else:
            super().install()


def until(condition, seconds: float = 20, every: float = 0.02):
    """Waits until a condition holds, and returns what it returns."""
    deadline = time.monotonic() + seconds
    while not (outcome := condition()):
        assert time.monotonic() < deadline, "the condition does not hold"
        time.sleep(every)
    return outcome


class Topology:
    servers: list[MariadbServer]

    def start_all(self):
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda server: server.start(), self.servers))

    def remove(self):
        for server in self.servers:
            server.remove()

    def sections(self, settings: str = "") -> str:
        """Returns the servers db1, db2 … as sections of a configuration. `settings`: of each."""
        return "".join(
            f'[server.db{number}]\naddress = "127.0.0.1:{server.port}"\n{settings}\n'
            for number, server in enumerate(self.servers, 1)
        )


class Replication(Topology):
    """A primary and two replicas that follow it by GTID. Each has a binary log. `more`: further
    options of all servers."""

    def __init__(self, folder: Path, more: tuple[str, ...] = ()):
        self.servers = []
        for number in range(1, 4):
            options = (
                *SMALL, f"--server-id={number}", "--log-bin=binlog", "--log-slave-updates=ON", "--gtid-strict-mode=ON",
                "--relay-log=relay", *more,
            )
            template = self.servers[0] if self.servers else None
            self.servers.append(Copy(folder / f"db{number}", options, template))
        self.start_all()
        primary, *replicas = self.servers
        with primary.connect() as connection, connection.cursor() as cursor:
            for statement in (
                "CREATE USER joe@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO joe@'%'",
                "CREATE USER jim@'%' IDENTIFIED BY 'secret'", "GRANT SELECT ON *.* TO jim@'%'",
                "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)", "INSERT INTO d.t VALUES (1, 1)",
            ):
                cursor.execute(statement)
        for replica in replicas:
            replica.sql("SET GLOBAL read_only = ON")
            self.follow(replica, primary)
        for replica in replicas:
            until(lambda replica=replica: self.has_caught_up(replica))

    @staticmethod
    def follow(replica: MariadbServer, primary: MariadbServer, position: str = "slave_pos"):
        """Makes a server a replica of another. `position`: current_pos for one that has written."""
        with replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute("STOP SLAVE")
            cursor.execute(
                f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='root', "
                f"MASTER_USE_GTID={position}, MASTER_CONNECT_RETRY=1"
            )
            cursor.execute("START SLAVE")

    @staticmethod
    def has_caught_up(replica: MariadbServer) -> bool:
        with contextlib.suppress(pymysql.err.MySQLError):
            return bool(replica.sql("SELECT 1 FROM d.t"))
        return False

    def await_replicas(self):
        """Waits until the replicas of the first server have all its transactions."""
        primary, *replicas = self.servers
        position = primary.sql("SELECT @@gtid_current_pos")
        for replica in replicas:
            until(lambda replica=replica: replica.sql("SELECT @@gtid_current_pos") == position)

    def promote(self, number: int):
        """Makes a server the primary, and the other servers that run its replicas."""
        primary = self.servers[number]
        primary.sql("STOP SLAVE")
        primary.sql("RESET SLAVE ALL")
        for server in self.servers:
            if server is not primary and server.is_running():
                server.sql("SET GLOBAL read_only = ON")
                self.follow(server, primary, "current_pos")
        primary.sql("SET GLOBAL read_only = OFF")


PROVIDERS = (
    Path("/usr/lib/galera/libgalera_smm.so"), REPOSITORY / ".build/galera/usr/lib/galera/libgalera_smm.so",
)


def galera_provider() -> Path | None:
    """Returns the path of Galera's library; tests/tools/setup unpacks it."""
    return next((path for path in PROVIDERS if path.exists()), None)


class GaleraNode(Copy):
    """A node of a Galera cluster. `number`: of the node, from 1; `group`: the ports at which the
    nodes reach each other."""

    def __init__(self, folder: Path, number: int = 1, group: tuple[int, ...] = (), template: "GaleraNode | None" = None):
        group = group or (free_port(),)
        port = group[number - 1]
        self.group = group
        self.begins_cluster = True
        options = (
            *SMALL, f"--server-id={number}", "--log-bin=binlog", "--log-slave-updates=ON", "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", f"--wsrep-provider={galera_provider()}",
            # Each node logs a transaction under the same GTID.
            "--wsrep-gtid-mode=ON", "--wsrep-gtid-domain-id=9", f"--gtid-domain-id={number}",
            "--wsrep-cluster-name=test", f"--wsrep-node-address=127.0.0.1:{port}",
            # A program of the tests.
            "--wsrep-sst-method=missed",
            f"--wsrep-provider-options=base_host=127.0.0.1;base_port={port};gmcast.listen_addr=tcp://127.0.0.1:{port};"
            f"ist.recv_addr=127.0.0.1:{free_port()};gcache.size=16M;pc.recovery=FALSE;evs.suspect_timeout=PT2S;"
            "evs.inactive_timeout=PT4S;evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.2S",
        )
        super().__init__(folder, options, template)
        self.environment["PATH"] = f"{Path(__file__).parent / 'galera'}{os.pathsep}{os.environ['PATH']}"

    def command(self) -> list[str]:
        addresses = ",".join(f"127.0.0.1:{port}" for port in self.group)
        begins = ["--wsrep-new-cluster"] if self.begins_cluster else []
        return [*super().command(), f"--wsrep-cluster-address=gcomm://{addresses}", *begins]

    def state(self) -> str:
        return dict(self.sql("SHOW GLOBAL STATUS LIKE 'wsrep_local_state%'"))["wsrep_local_state"]

    def is_ready(self) -> bool:
        return super().is_ready() and self.state() == "4"

    def start_again(self):
        """Starts a node that was killed, at the last transaction that it has."""
        self.begins_cluster = False
        recovering = [*self.command(), "--wsrep-recover"]
        done = subprocess.run(recovering, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        found = re.findall(r"Recovered position: *(\S+)", done.stderr)
        assert found, done.stderr
        options, self.options = self.options, (*self.options, f"--wsrep-start-position={found[-1]}")
        try:
            return self.start()
        finally:
            self.options = options


class GaleraCluster(Topology):
    """A Galera cluster of three nodes. `statements`: executed before the others join."""

    def __init__(self, folder: Path, statements: tuple[str, ...] = ()):
        group = tuple(free_port() for _ in range(3))
        first = GaleraNode(folder / "db1", 1, group).start()
        for statement in statements:
            first.sql(statement)
        # The others begin with its data: then they join without a copy of a whole server.
        first.stop()
        self.servers = [first, *(GaleraNode(folder / f"db{number}", number, group, first) for number in (2, 3))]
        first.start()
        for node in self.servers[1:]:
            node.begins_cluster = False
            node.start()
        self.await_size(3)

    def await_size(self, size: int):
        """Waits until all nodes that run belong to a cluster of this size."""
        for node in self.servers:
            if node.is_running():
                until(lambda node=node: self.size(node) == str(size))

    @staticmethod
    def size(node: GaleraNode) -> str:
        return dict(node.sql("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'"))["wsrep_cluster_size"]


def spider_plugin() -> Path | None:
    """Returns the path of Spider's plugin; tests/tools/setup unpacks it."""
    folders = [Path(PLUGINS)] if PLUGINS else [Path("/usr/lib/mysql/plugin"), Path("/usr/lib64/mysql/plugin")]
    return next((path for folder in folders if (path := folder / "ha_spider.so").exists()), None)


class SpiderHead(Topology):
    """A head with the storage engine Spider, and data servers that it knows as data1, data2 …"""

    def __init__(self, folder: Path, data_servers: int = 2):
        common = (*SMALL, "--log-bin=binlog", "--binlog-format=ROW")
        spider = (
            "--plugin-load-add=ha_spider.so", "--plugin-maturity=gamma",
            # A data server that was stopped is known to be out of reach at once.
            "--loose-spider-connect-retry-count=0",
        )
        first = MariadbServer(folder / "data1", (*common, "--server-id=1"))
        others = range(2, data_servers + 1)
        self.data = [first, *(Copy(folder / f"data{number}", (*common, f"--server-id={number}"), first) for number in others)]
        self.head = Copy(folder / "head", (*common, *spider, "--server-id=100"), first)
        self.servers = [self.head, *self.data]
        self.start_all()
        for number, server in enumerate(self.data, 1):
            server.sql("CREATE USER spider@'%' IDENTIFIED BY 'it is secret'")
            server.sql("GRANT ALL ON selkie_shards.* TO spider@'%'")
            self.head.sql(
                f"CREATE SERVER data{number} FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1', PORT {server.port}, "
                "USER 'spider', PASSWORD 'it is secret')"
            )
