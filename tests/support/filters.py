"""A gateway with filters of SQL services, and clients of it."""

import json
import signal
import struct

import pymysql
import pytest

from .mariadb import MariadbServer
from .process import free_port
from .selkie import SelkieServer
from .topology import SMALL, until

# The service of each port: both routers, and the short form.
SERVICES = ("connections", "split", "short")

CONFIG = """
[store]
sql-listen = ["127.0.0.1:{short}"]
sql-{filters}
[server.db1]
address = "127.0.0.1:{port}"
{server}
[monitor.main]
kind = "replication"
servers = ["db1"]
user = "root"
interval-ms = 100
[service.connections]
servers = ["db1"]
{filters}
[service.split]
router = "read-write-split"
monitor = "main"
{split_settings}
{filters}
[listener.connections]
protocol = "mariadb"
address = "127.0.0.1:{connections}"
service = "connections"
[listener.split]
protocol = "mariadb"
address = "127.0.0.1:{split}"
service = "split"
[cache]
mode = "results"
"""


class Gateway:
    """One server, and a service of each kind with the same filters."""

    def __init__(self, folder, mariadb: MariadbServer, server: str = "", split: str = ""):
        """server, split: further settings of the server, and of the service that splits."""
        self.mariadb, self.folder = mariadb, folder
        self.settings = {"server": server, "split_settings": split}
        self.ports = {service: free_port() for service in SERVICES}
        self.file = folder / "selkie.toml"
        self.selkie = self.mongo = None

    def start(self, filters: dict[str, str]):
        """Starts the gateway with filters: their settings, by their names."""
        self.write(filters)
        self.selkie = SelkieServer(self.folder / "s", self.mariadb, ("--threads", "2", "--config", str(self.file))).start()
        self.mongo = self.selkie.client()
        until(lambda: [server["role"] for server in self.status()["servers"].values() if "role" in server] == ["primary"])
        return self

    def write(self, filters: dict[str, str]):
        # A list that is set is not empty.
        text = CONFIG if filters else CONFIG.replace("sql-{filters}", "").replace("{filters}", "")
        text = text.format(filters=f"filters = {json.dumps([*filters])}", port=self.mariadb.port, **self.ports, **self.settings)
        self.file.write_text(text + "".join(f"[filter.{name}]\n{settings}\n" for name, settings in filters.items()))

    def reload(self, filters: dict[str, str]):
        log = self.selkie.log
        before = log.read_text().count("the configuration was reloaded")
        self.write(filters)
        self.selkie.process.send_signal(signal.SIGHUP)
        until(lambda: log.read_text().count("the configuration was reloaded") > before)

    def status(self) -> dict:
        return self.mongo.admin.command("serverStatus")["selkie"]

    def counters(self, service: str = "connections") -> dict:
        return self.status()["services"][service]

    def connect(self, service: str = "connections", user: str = "joe", **options) -> pymysql.Connection:
        defaults = {"password": "secret", "database": "d", "autocommit": True}
        return pymysql.connect(host="127.0.0.1", port=self.ports[service], user=user, **(defaults | options))

    def remove(self):
        if self.selkie:
            self.mongo.close()
            assert self.selkie.is_running()
            self.selkie.kill()


def server_for_filters(folder) -> MariadbServer:
    """Starts a server with the users joe and ann, and tables."""
    mariadb = MariadbServer(folder, (*SMALL, "--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")).start()
    mariadb.url = mariadb.tcp_url
    for statement in (
        "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(50), n INT)",
        "INSERT INTO d.t VALUES (1, 'one', 1), (2, 'two', 2)", "CREATE TABLE d.secret (id INT)",
        "CREATE USER joe@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO joe@'%'",
        "CREATE USER ann@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO ann@'%'",
    ):
        mariadb.sql(statement)
    return mariadb


def rows(connection, sql: str):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def refusal(connection, sql: str) -> tuple[int, str]:
    """Returns the error of a statement, after which the connection works."""
    with pytest.raises(pymysql.err.MySQLError) as refused:
        rows(connection, sql)
    connection.ping(reconnect=False)
    return refused.value.args


class Prepared:
    """A prepared statement, executed in the binary protocol."""

    def __init__(self, connection, sql: str):
        self.connection = connection
        connection._execute_command(0x16, sql)
        head = connection._read_packet().get_all_data()
        self.id, columns, params = head[1:5], *struct.unpack("<HH", head[5:9])
        self.columns = columns
        for definitions in (params, columns):
            for _ in range(definitions + 1 if definitions else 0):
                connection._read_packet()

    def execute(self, flags: int = 0) -> list[bytes]:
        """Returns the rows, or the packet of the reply without rows."""
        self.connection._execute_command(0x17, self.id + struct.pack("<BI", flags, 1))
        first = self.connection._read_packet().get_all_data()
        if first[0] == 0:
            return [first]
        for _ in range(first[0] + 1):
            self.connection._read_packet()
        return self.rest()

    def open(self):
        """Executes it with a cursor."""
        self.connection._execute_command(0x17, self.id + struct.pack("<BI", 1, 1))
        for _ in range(self.connection._read_packet().get_all_data()[0] + 1):
            self.connection._read_packet()

    def fetch(self, count: int) -> list[bytes]:
        self.connection._execute_command(0x1C, self.id + struct.pack("<I", count))
        return self.rest()

    def rest(self) -> list[bytes]:
        found = []
        while (row := self.connection._read_packet().get_all_data())[0] != 0xFE:
            found.append(row)
        return found
