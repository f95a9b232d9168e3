"""SQL clients that send files (LOAD DATA LOCAL), packets of more than 16 MiB, and compress."""

import hashlib
import subprocess

import pymysql
import pytest

from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer
from support.split_gateway import rows
from support.topology import SMALL, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

CONFIG = """
[server.db1]
address = "127.0.0.1:{port}"
[monitor.main]
kind = "replication"
servers = ["db1"]
user = "root"
interval-ms = 100
"""

SERVICE = """
[service.{name}]
monitor = "main"
{settings}
[listener.{name}]
protocol = "mariadb"
address = "127.0.0.1:{port}"
service = "{name}"
"""

SERVICES = {
    "connections": 'router = "connections"\nrole = "primary"',
    "split": 'router = "read-write-split"\nmultiplex = true',
    "replay": 'router = "read-write-split"\ntransaction-replay = true',
}

LOAD = "LOAD DATA LOCAL INFILE '{file}' INTO TABLE t FIELDS TERMINATED BY ','"


class Gateway:
    def __init__(self, folder):
        self.mariadb = MariadbServer(folder / "m", SMALL).start()
        for statement in (
            "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(100))", "CREATE TABLE d.texts (id INT, a LONGTEXT)",
            "CREATE USER joe@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO joe@'%'",
        ):
            self.mariadb.sql(statement)
        self.ports = {name: free_port() for name in (*SERVICES, "short")}
        sections = "".join(SERVICE.format(name=name, settings=text, port=self.ports[name]) for name, text in SERVICES.items())
        file = folder / "selkie.toml"
        file.write_text(CONFIG.format(port=self.mariadb.port) + sections)
        self.selkie = SelkieServer(folder / "s", options=("--threads", "1", "--config", str(file))).start()
        with self.selkie.client() as client:
            until(lambda: client.admin.command("serverStatus")["selkie"]["servers"]["db1"]["role"] == "primary")

    def connect(self, service: str, **options) -> pymysql.Connection:
        options = {"autocommit": True, "local_infile": True} | options
        return pymysql.connect(host="127.0.0.1", port=self.ports[service], user="joe", password="secret", database="d", **options)

    def client(self, service: str, text: str, *options: str) -> str:
        """Executes statements with MariaDB's own client."""
        done = subprocess.run(
            ["mariadb", "--no-defaults", "--skip-ssl", "--host=127.0.0.1", f"--port={self.ports[service]}", "--user=joe",
             "--password=secret", "--local-infile=1", "--max-allowed-packet=128M", *options, "d"],
            input=text, capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stderr[-500:]
        return done.stdout


@pytest.fixture(scope="module")
def gateway(store, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("gateway"))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.selkie.remove()
    gateway.mariadb.remove()


@pytest.fixture(params=SERVICES)
def service(request, gateway):
    gateway.mariadb.sql("TRUNCATE d.t")
    gateway.mariadb.sql("TRUNCATE d.texts")
    return request.param


def lines(folder, count: int, width: int = 10):
    file = folder / "rows.csv"
    file.write_text("".join(f"{number},{'x' * width}\n" for number in range(count)))
    return file


def test_files_of_clients_are_loaded(gateway, service, tmp_path):
    # More than fits into any buffer on the way, and than one packet of 16 MiB.
    file = lines(tmp_path, 250_000, 70)
    assert file.stat().st_size > 16 << 20
    with gateway.connect(service) as connection, connection.cursor() as cursor:
        assert cursor.execute(LOAD.format(file=file)) == 250_000
        assert rows(connection, "SELECT COUNT(*), SUM(id), MIN(a) FROM t") == ((250_000, 250_000 * 249_999 // 2, "x" * 70),)
        # The session goes on after errors of the server and of the client.
        with pytest.raises(pymysql.err.MySQLError) as failed:
            cursor.execute(LOAD.format(file=file).replace(" INTO TABLE t ", " INTO TABLE missing "))
        assert failed.value.args[0] == 1146
        with pytest.raises(pymysql.err.OperationalError):
            cursor.execute(LOAD.format(file=tmp_path / "missing"))
    with gateway.connect(service) as connection:
        rows(connection, "BEGIN")
        rows(connection, "DELETE FROM t")
        rows(connection, LOAD.format(file=lines(tmp_path, 3)))
        assert rows(connection, "SELECT COUNT(*) FROM t") == ((3,),)
        rows(connection, "ROLLBACK")
        assert rows(connection, "SELECT COUNT(*) FROM t") == ((250_000,),)


def test_clients_that_do_not_send_files_are_not_asked(gateway, service, tmp_path):
    with gateway.connect(service, local_infile=False) as connection:
        with pytest.raises(pymysql.err.MySQLError) as failed:
            rows(connection, LOAD.format(file=lines(tmp_path, 3)))
        assert failed.value.args[0] in (1148, 4166)
        assert rows(connection, "SELECT COUNT(*) FROM t") == ((0,),)


def test_a_transaction_with_a_file_is_not_executed_again(gateway, tmp_path):
    gateway.mariadb.sql("TRUNCATE d.t")
    gateway.mariadb.sql("INSERT INTO d.t VALUES (1000, 'a')")
    file = lines(tmp_path, 3)
    for begin in ("BEGIN", "SET autocommit = 0"):
        with gateway.connect("replay") as one, gateway.mariadb.connect(database="d") as other:
            rows(one, "SET innodb_lock_wait_timeout = 1")
            rows(one, begin)
            rows(one, LOAD.format(file=file))
            rows(other, "BEGIN")
            rows(other, "UPDATE t SET a = 'b' WHERE id = 1000")
            with pytest.raises(pymysql.err.MySQLError) as failed:
                rows(one, "UPDATE t SET a = 'c' WHERE id = 1000")
            assert failed.value.args[0] == 1205
            rows(one, "ROLLBACK")


def test_packets_of_more_than_16_mib(gateway, service):
    text = "0123456789abcdef" * (20 << 16)
    with gateway.connect(service, max_allowed_packet=128 << 20) as connection:
        for number in range(2):
            rows(connection, f"INSERT INTO texts VALUES ({number}, '{text}')")
        found = rows(connection, "SELECT a FROM texts")
        assert len(found) == 2 and all(value == text for value, in found)


def test_clients_may_compress(gateway, service, tmp_path):
    file = lines(tmp_path, 250_000, 70)
    text = "0123456789abcdef" * (20 << 16)
    expected = hashlib.md5(text.encode()).hexdigest()
    script = f"""
        status
        {LOAD.format(file=file)};
        SELECT COUNT(*) FROM t;
        INSERT INTO texts VALUES (1, '{text}');
        SELECT MD5(a) FROM texts;
        SELECT a FROM texts;
        SELECT * FROM t;
        DO 1;
        """
    answer = gateway.client(service, script, "--compress")
    assert "Compressed" in answer
    assert "\n250000\n" in answer and f"\n{expected}\n" in answer and f"\n{text}\n" in answer
    assert answer.count("x" * 70 + "\n") == 250_000
