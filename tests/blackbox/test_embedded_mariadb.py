"""MariaDB within the process (`--embedded-mariadb`): messages about data directories, clean
shutdown, and ordinary servers on the same data.

The other files test the other requirements of a store, with `--store embedded-mariadb`.
"""

import subprocess
import threading
import time

import pymongo
import pytest

from support.mariadb import MariadbServer
from support.selkie import SelkieServer, has_embedded_mariadb, program, run

pytestmark = [
    pytest.mark.selkie_only,
    pytest.mark.skipif(not has_embedded_mariadb(), reason="the program was built without --features embedded-mariadb"),
]


@pytest.fixture
def embedded(tmp_path):
    """A function that starts a server on an embedded MariaDB, by default on the same data."""
    started = []

    def start(folder=tmp_path / "selkie", *options) -> SelkieServer:
        started.append(SelkieServer(folder, options=options, data_flag="--embedded-mariadb").start())
        return started[-1]

    yield start
    for server in started:
        server.remove()


class OrdinaryServer(MariadbServer):
    """mariadbd on a data directory that is there already."""

    def __init__(self, folder, data):
        self.adopted = data
        super().__init__(folder)
        self.data = data

    def install(self):
        """Adds the system tables, as documented."""
        self.data = self.adopted
        super().install()


def fill(client: pymongo.MongoClient):
    client.test.cars.insert_many([{"_id": n, "Make": f"make {n % 7}"} for n in range(1000)])
    client.test.cars.create_index("Make")


def refused(data, *said: str):
    done = run("serve", "--embedded-mariadb", str(data), "--listen", "127.0.0.1:0")
    assert done.returncode == 1 and done.stdout == "", done.stdout + done.stderr
    assert done.stderr.startswith("selkie: "), done.stderr
    for part in said:
        assert part in done.stderr, done.stderr


def test_the_version_mentions_embedded_mariadb():
    assert "embedded MariaDB" in subprocess.run([program(), "--version"], capture_output=True, text=True).stdout


def test_documents_outlive_a_clean_end(embedded):
    server = embedded()
    with server.client() as client:
        fill(client)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 4, "stopping waits for something"
    log = server.log.read_text()
    assert "Selkie" in log and "(embedded)" in log and "stopped" in log
    assert "Error" not in log and "Got ERROR" not in log, log
    with embedded().client() as client:
        assert client.test.cars.count_documents({"Make": "make 3"}) == 143


def test_a_clean_end_does_not_wait_for_long_statements(embedded):
    """Commands that run longer than the drain time are killed."""
    folder = embedded().folder
    config = folder / "short.toml"
    config.write_text("drain-seconds = 1\n")
    server = embedded(folder.parent / "short", "--config", str(config))
    with server.client() as client:
        fill(client)
        long = {"$expr": {"$gt": [{"$strLenCP": "$Make"}, 0]}}
        asking = threading.Thread(target=lambda: ask_until_gone(server, long), daemon=True)
        asking.start()
        time.sleep(0.5)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 10
        asking.join(10)


def ask_until_gone(server, filter):
    with server.client(serverSelectionTimeoutMS=500) as client:
        try:
            while True:
                list(client.test.cars.find(filter))
        except pymongo.errors.PyMongoError:
            pass


def test_a_kill_right_after_the_first_start_loses_nothing(embedded):
    server = embedded()
    with server.client() as client:
        client.test.cars.insert_one({"_id": 1})
    server.kill()
    with embedded().client() as client:
        assert client.test.cars.find_one() == {"_id": 1}


def test_a_start_that_was_killed_is_begun_anew(embedded, tmp_path):
    """InnoDB cannot recover a data directory whose creation was killed; it contains no data yet."""
    data = tmp_path / "data"
    for wait in (0.02, 0.1, 0.2, 0.3, 0.4, 0.6):
        process = subprocess.Popen(
            [program(), "serve", "--embedded-mariadb", str(data), "--listen", "127.0.0.1:0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        time.sleep(wait)
        process.kill()
        process.wait()
    with embedded(tmp_path).client() as client:
        client.test.cars.insert_one({"_id": 1})


def test_a_directory_in_use_is_refused(embedded):
    server = embedded()
    refused(server.data, "in use by another Selkie", "stop that one")
    assert server.stop() == 0
    embedded()


def test_a_directory_that_a_server_uses_is_refused(tmp_path):
    mariadb = MariadbServer(tmp_path).start()
    try:
        refused(mariadb.data, "is in use: process", str(mariadb.pid), "--mariadb")
        assert mariadb.sql("SELECT 1") == ((1,),)
    finally:
        mariadb.remove()


def test_a_directory_with_other_contents_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    refused(tmp_path, "none of them is MariaDB's", "name an empty directory")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_newer_data_is_refused(embedded):
    server = embedded()
    server.stop()
    (server.data / "mysql_upgrade_info").write_text("11.4.2-MariaDB")
    refused(server.data, "was written by MariaDB 11.4.2-MariaDB", "with a MariaDB server of that version")


def test_messages_of_mariadb_are_logged(embedded):
    """A log in an unknown format, without a note of its version."""
    server = embedded()
    server.stop()
    with (server.data / "ib_logfile0").open("r+b") as log:
        log.write(b"\x77")
    refused(server.data, "MariaDB cannot open", "InnoDB")


def test_options_are_read_from_a_file(embedded):
    server = embedded()
    server.stop()
    options = server.data / "selkie.cnf"
    options.write_text("[embedded]\ninnodb_buffer_pool_size = 64M\nmax-allowed-packet = 1M\n")
    refused(server.data, "max_allowed_packet is 1048576 bytes")
    options.write_text("[embedded]\nno_such_option = 1\n")
    refused(server.data, "MariaDB cannot open", "no_such_option")


def test_an_ordinary_server_opens_it_and_leaves_it(embedded, tmp_path):
    server = embedded()
    with server.client() as client:
        fill(client)
    assert server.stop() == 0

    ordinary = OrdinaryServer(tmp_path / "ordinary", server.data).start()
    try:
        assert ordinary.sql("SELECT COUNT(*) FROM test.cars") == ((1000,),)
        assert ordinary.sql("SELECT id FROM test.cars WHERE JSON_VALUE(doc, '$.Make') = 'make 3' LIMIT 1") == (("3",),)
        ordinary.sql("INSERT INTO test.cars (doc) VALUES ('{\"_id\": -1, \"Make\": \"by SQL\"}')")
        ordinary.sql("CREATE TABLE test.of_its_own (a INT) ENGINE = InnoDB")
        ordinary.stop()
        server.start()
        with server.client() as client:
            assert client.test.cars.find_one({"Make": "by SQL"})["_id"] == -1
            client.test.cars.insert_one({"_id": -2})
        server.kill()
        # After a kill, the next server recovers.
        ordinary.start()
        assert ordinary.sql("SELECT COUNT(*) FROM test.cars") == ((1002,),)
        ordinary.kill()
        server.start()
        with server.client() as client:
            assert client.test.cars.count_documents({}) == 1002
    finally:
        ordinary.kill()


def test_it_opens_the_data_of_an_ordinary_server(tmp_path):
    """Tables in files of their own, written by Selkie on that server, and indexes among them."""
    ordinary = MariadbServer(tmp_path / "ordinary").start()
    before = SelkieServer(tmp_path / "before", ordinary).start()
    with before.client() as client:
        fill(client)
    before.stop()
    ordinary.stop()
    server = SelkieServer(tmp_path / "after", data_flag="--embedded-mariadb")
    server.data = ordinary.data
    try:
        for _ in range(3):
            server.start()
            with server.client() as client:
                assert client.test.cars.count_documents({"Make": "make 3"}) == 143
                client.test.cars.update_many({}, {"$inc": {"n": 1}})
                client.test.more.insert_one({})
            server.kill()
        ordinary.start()
        assert ordinary.sql("SELECT DISTINCT JSON_VALUE(doc, '$.n') FROM test.cars") == (("3",),)
        assert ordinary.sql("SELECT COUNT(*) FROM test.more") == ((3,),)
    finally:
        server.kill()
        ordinary.remove()


def test_sql_clients_are_refused(tmp_path):
    done = run("check", "--embedded-mariadb", str(tmp_path / "x"), "--sql-listen", "127.0.0.1:3307")
    assert done.returncode == 1 and "listens to nobody" in done.stderr, done.stderr
