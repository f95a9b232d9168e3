"""MariaDB servers that replicate: a primary with replicas, and a Galera cluster."""

import contextlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql

from .mariadb import MariadbServer
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

    def sections(self) -> str:
        """Returns the servers db1, db2 … as sections of Selkie's configuration."""
        return "".join(
            f'[server.db{number}]\naddress = "127.0.0.1:{server.port}"\n' for number, server in enumerate(self.servers, 1)
        )


class Replication(Topology):
    """A primary and two replicas that follow it by GTID. Each has a binary log."""

    def __init__(self, folder: Path):
        self.servers = []
        for number in range(1, 4):
            options = (
                *SMALL, f"--server-id={number}", "--log-bin=binlog", "--log-slave-updates=ON", "--gtid-strict-mode=ON",
                "--relay-log=relay",
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


class Node(Copy):
    """A node of a Galera cluster, ready once it is synced."""

    bootstraps = False

    def __init__(self, folder: Path, options: tuple[str, ...], template: MariadbServer | None):
        super().__init__(folder, options, template)
        # For wsrep_sst_none.
        self.environment = {"PATH": f"{Path(__file__).parent / 'galera'}{os.pathsep}{os.environ['PATH']}"}

    def command(self) -> list[str]:
        return super().command() + (["--wsrep-new-cluster"] if self.bootstraps else [])

    def is_ready(self) -> bool:
        return super().is_ready() and self.status_of("wsrep_local_state_comment") == "Synced"

    def status_of(self, name: str) -> str:
        rows = self.sql(f"SHOW GLOBAL STATUS LIKE '{name}'")
        return rows[0][1] if rows else ""


class Galera(Topology):
    """A cluster of three nodes. The second and third begin with the data and the position of the
    first, so that none transfers its state."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.ports = [free_port() for _ in range(3)]
        first = Node(folder / "db1", self.options(1), None)
        self.servers = [first]
        first.bootstraps = True
        first.start()
        for statement in ("CREATE USER joe@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO joe@'%'"):
            first.sql(statement)
        first.stop()
        self.servers += [Node(folder / f"db{number}", self.options(number), first) for number in (2, 3)]
        first.start()
        first.bootstraps = False
        for server in self.servers[1:]:
            server.start()

    def options(self, number: int) -> tuple[str, ...]:
        members = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        port = self.ports[number - 1]
        return (
            *SMALL, f"--server-id={number}", "--log-bin=binlog", "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON", f"--wsrep-provider={galera_provider()}", "--wsrep-cluster-name=test",
            f"--wsrep-cluster-address=gcomm://{members}", f"--wsrep-node-name=db{number}",
            f"--wsrep-node-address=127.0.0.1:{port}", "--wsrep-sst-method=none",
            "--wsrep-provider-options="
            f"base_host=127.0.0.1;base_port={port};gmcast.listen_addr=tcp://127.0.0.1:{port};"
            f"ist.recv_addr=127.0.0.1:{free_port()};gcache.size=16M;evs.keepalive_period=PT0.5S;"
            "evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S",
        )
