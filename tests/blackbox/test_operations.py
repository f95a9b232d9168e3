"""Starting, stopping, and the messages of failures."""

import os
import socket
import threading
import time

import pymongo
import pytest
from pymongo.errors import ExecutionTimeout, PyMongoError

from support import selkie
from support.mariadb import MariadbServer
from support.process import free_port
from support.wire import Wire

pytestmark = pytest.mark.selkie_only


def refuses(*arguments: str, says: tuple[str, ...]) -> str:
    """The program ends with an error that says these words in a sentence, not in a page."""
    done = selkie.run(*arguments)
    assert done.returncode != 0, done.stdout + done.stderr
    for word in says:
        assert word in done.stderr, done.stderr
    assert "panicked" not in done.stderr and "stack backtrace" not in done.stderr.lower(), done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5, done.stderr
    return done.stderr


def test_it_prints_its_addresses_and_data_directory(own_server):
    server = own_server()
    said = server.log.read_text()
    assert f"mongodb://127.0.0.1:{server.port}" in said
    if server.mariadb is None:
        assert str(server.data) in said


def test_sigterm_ends_it_and_data_stays(own_server, database_name):
    server = own_server()
    with server.client() as client:
        client[database_name].c.insert_many([{"_id": n} for n in range(1000)])
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 10
    server.start()
    with server.client() as client:
        assert client[database_name].c.count_documents({}) == 1000


def test_sigterm_under_load_loses_no_acknowledged_write(own_server, database_name):
    server = own_server()
    acknowledged, begun = [], threading.Event()

    def write(number: int):
        with server.client(retryWrites=False, serverSelectionTimeoutMS=500) as client:
            n = 0
            try:
                while True:
                    client[database_name].c.insert_one({"_id": f"{number}-{n}"})
                    acknowledged.append(f"{number}-{n}")
                    n += 1
                    begun.set()
            except PyMongoError:
                pass

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    begun.wait(10)
    time.sleep(0.3)
    assert server.stop() == 0
    for writer in writers:
        writer.join(20)
    server.start()
    with server.client() as client:
        present = {d["_id"] for d in client[database_name].c.find()}
    assert not set(acknowledged) - present


def test_port_in_use(store, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refuses("serve", "--listen", f"127.0.0.1:{port}", "--data", str(tmp_path / "data"), says=(str(port),))


def test_two_on_one_data_directory(own_server, store):
    if store != "embedded":
        pytest.skip("MariaDB's data may be served by many")
    server = own_server()
    refuses("serve", "--listen", f"127.0.0.1:{free_port()}", "--data", str(server.data), says=(str(server.data),))
    with server.client() as client:
        assert client.admin.command("ping")["ok"] == 1


def test_data_directory_that_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    refuses("serve", "--listen", f"127.0.0.1:{free_port()}", "--data", str(file / "data"), says=(str(file),))


def test_listening_beyond_loopback_needs_a_word(tmp_path):
    refuses("serve", "--listen", f"0.0.0.0:{free_port()}", "--data", str(tmp_path / "data"), says=("0.0.0.0",))


def test_unknown_option():
    refuses("serve", "--no-such-option", says=("--no-such-option",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lissten = \"127.0.0.1:27017\"\n", ("lissten",)),
        ("\n\nno_such_thing = 5\n", ("no_such_thing",)),
        ("this is no toml\n", ("1",)),
    ],
)
def test_configuration_is_strict(tmp_path, text, says):
    file = tmp_path / "selkie.toml"
    file.write_text(text)
    done = selkie.run("check", "--config", str(file))
    assert done.returncode != 0
    assert all(word in done.stderr + done.stdout for word in (*says, "selkie.toml")), done.stderr + done.stdout


def test_configuration_file_missing(tmp_path):
    refuses("serve", "--config", str(tmp_path / "nowhere.toml"), says=("nowhere.toml",))


def test_mariadb_out_of_reach(tmp_path):
    port = free_port()
    refuses("serve", "--listen", f"127.0.0.1:{free_port()}", "--mariadb", f"mysql://root@127.0.0.1:{port}", says=(str(port),))


def test_mariadb_refuses_the_password(mariadb: MariadbServer):
    mariadb.sql("CREATE OR REPLACE USER 'someone'@'%' IDENTIFIED BY 'right'")
    url = mariadb.tcp_url("someone", "wrong")
    said = refuses("serve", "--listen", f"127.0.0.1:{free_port()}", "--mariadb", url, says=("someone",))
    assert "wrong" not in said.replace("wrong password", ""), "the password is shown"


def test_mariadb_by_tcp_with_a_password(mariadb: MariadbServer, tmp_path, database_name):
    mariadb.sql("CREATE OR REPLACE USER 'app'@'%' IDENTIFIED BY 's3cr:t@/%'")
    mariadb.sql("GRANT ALL ON *.* TO 'app'@'%'")

    class ByTcp(selkie.SelkieServer):
        def command(self):
            command = super().command()
            command[command.index("--mariadb") + 1] = mariadb.tcp_url("app", "s3cr%3At%40%2F%25")
            return command

    server = ByTcp(tmp_path / "selkie", mariadb).start()
    try:
        with server.client() as client:
            client[database_name].c.insert_one({"_id": 1})
            assert client[database_name].c.find_one() == {"_id": 1}
        assert "s3cr" not in server.log.read_text(), "the password is in the log"
    finally:
        server.stop()


def test_mariadb_with_small_packets(tmp_path):
    small = MariadbServer(tmp_path / "small", ("--max-allowed-packet=1M",)).start()
    try:
        refuses(
            "serve", "--listen", f"127.0.0.1:{free_port()}", "--mariadb", small.url(), says=("max_allowed_packet",)
        )
    finally:
        small.remove()


def test_idle_connections_cost_little(own_server):
    server = own_server()
    count = int(os.environ.get("SELKIE_IDLE_CONNECTIONS", "800"))
    with Wire(server.port) as first:
        first.run({"hello": 1, "$db": "admin"})
        before = server.resident_bytes()
        connections = [Wire(server.port) for _ in range(count)]
        for connection in connections:
            connection.run({"hello": 1, "$db": "admin"})
        each = (server.resident_bytes() - before) / count
        for connection in connections:
            connection.socket.close()
    assert each < 20 * 1024, f"{each:.0f} bytes per connection"


def test_version_and_help():
    assert selkie.run("--version").stdout.startswith("selkie ")
    assert "serve" in selkie.run("--help").stdout


def test_an_idle_server_uses_no_cpu(own_server):
    server = own_server()
    with server.client() as client:
        client.admin.command("ping")
    time.sleep(0.5)

    def cpu_ticks() -> int:
        with open(f"/proc/{server.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = cpu_ticks()
    time.sleep(2)
    assert cpu_ticks() - before <= 2, "burns CPU while nothing happens"


def test_idle_cursors_expire(own_server, database_name):
    server = own_server()
    with server.client() as client:
        client[database_name].c.insert_many([{} for _ in range(10)])
        cursor = client[database_name].c.find(batch_size=1)
        next(cursor)
        status = client.admin.command("serverStatus")
        assert status["metrics"]["cursor"]["open"]["total"] >= 1
        cursor.close()
        status = client.admin.command("serverStatus")
        assert status["metrics"]["cursor"]["open"]["total"] == 0


def test_a_client_may_end_it(own_server, database_name):
    server = own_server()
    with server.client() as client:
        client[database_name].c.insert_one({"_id": 1})
        client.admin.command("shutdown", timeoutSecs=1)
    assert server.wait(10) == 0
    server.start()
    with server.client() as client:
        assert client[database_name].c.count_documents({}) == 1


def test_top_counts_operations_by_collection(client, db):
    db.c.insert_many([{"_id": number} for number in range(300)])
    list(db.c.find())
    db.c.find_one({"_id": 1})
    db.c.update_one({"_id": 1}, {"$set": {"a": 1}})
    db.c.delete_one({"_id": 2})
    db.c.count_documents({})
    counted = client.admin.command("top")["totals"][f"{db.name}.c"]
    counts = {name: count["count"] for name, count in counted.items()}
    assert counts == {
        "total": 7, "readLock": 4, "writeLock": 3, "queries": 2, "getmore": 1, "insert": 1, "update": 1, "remove": 1, "commands": 1,
    }
    assert counted["total"]["time"] >= counted["insert"]["time"] > 0
    db.c.drop()
    assert f"{db.name}.c" not in client.admin.command("top")["totals"]


def test_commands_list_their_api_versions(client):
    commands = client.admin.command("listCommands")["commands"]
    versions = {name: commands[name]["apiVersions"] for name in ("find", "aggregate", "hello", "top", "serverStatus", "distinct")}
    assert versions == {"find": ["1"], "aggregate": ["1"], "hello": ["1"], "top": [], "serverStatus": [], "distinct": []}


def test_writes_wait_while_they_are_locked(client, db):
    """fsync with lock: reads go on, writes wait until the lock is taken back."""
    db.c.insert_one({"_id": 1})
    done = []
    assert client.admin.command("fsync", lock=True)["lockCount"] == 1
    try:
        writers = [threading.Thread(target=lambda number=number: (db.c.insert_one({"_id": number}), done.append(number))) for number in (2, 3)]
        writers.append(threading.Thread(target=lambda: (db.create_collection("d"), done.append("d"))))
        writers.append(threading.Thread(target=lambda: (list(db.c.aggregate([{"$out": "e"}])), done.append("e"))))
        for writer in writers:
            writer.start()
        time.sleep(0.5)
        assert not done and db.c.count_documents({}) == 1
        status = client.admin.command("currentOp")
        assert status["fsyncLock"] and sum(operation["waitingForLock"] for operation in status["inprog"]) >= 1
        # A request with a shorter time limit fails.
        with pytest.raises(ExecutionTimeout):
            db.command("insert", "c", documents=[{"_id": 4}], maxTimeMS=100)
    finally:
        assert client.admin.command("fsyncUnlock")["lockCount"] == 0
    for writer in writers:
        writer.join(timeout=10)
    assert {2, 3, "d", "e"} == set(done) and db.c.distinct("_id") == [1, 2, 3]
    assert "fsyncLock" not in client.admin.command("currentOp")


def test_monitoring_commands(client, db, store):
    db.c.insert_one({})
    data = client.admin.command("getDiagnosticData")["data"]
    assert data["start"] <= data["end"] and data["serverStatus"]["opcounters"]["insert"] >= 1
    assert len(client.admin.command("getnonce")["nonce"]) == 16
    listed = [*client.admin.command("listCommands")["commands"]]
    assert listed == sorted(listed)
    assert client.admin.command("serverStatus")["catalogStats"]["collections"] >= 1
    assert "catalogStats" not in client.admin.command("serverStatus", catalogStats=0)
    assert {"freeStorageSize", "indexFreeStorageSize", "totalFreeStorageSize"} <= {*db.command("dbStats", freeStorage=1)}
    assert ("fsTotalSize" in db.command("dbStats")) == (store != "mariadb")
    assert db.command("collStats", "c")["indexDetails"] == {"_id_": {}}
    assert {"running", "compiled"} <= {*client.admin.command("buildInfo")["openssl"]}


def test_idle_cursors_are_shown(client, db):
    db.c.insert_many([{"a": number} for number in range(10)])
    with db.c.find({"a": {"$gte": 0}}, batch_size=2, comment="looked for") as cursor:
        next(cursor)
        stage = {"$currentOp": {"idleCursors": True, "allUsers": True}}
        wanted = {"type": "idleCursor", "ns": f"{db.name}.c"}
        (shown,) = client.admin.aggregate([stage, {"$match": wanted}])
        about = shown["cursor"]
        assert (about["cursorId"], about["nDocsReturned"], about["nBatchesReturned"]) == (cursor.cursor_id, 2, 1)
        assert about["originatingCommand"]["comment"] == "looked for" and about["createdDate"] <= about["lastAccessDate"]
        for _ in range(2):
            next(cursor)
        (shown,) = client.admin.aggregate([stage, {"$match": wanted}])
        assert (shown["cursor"]["nDocsReturned"], shown["cursor"]["nBatchesReturned"]) == (4, 2)
    assert not [*client.admin.aggregate([stage, {"$match": wanted}])]
    assert not [*client.admin.aggregate([{"$currentOp": {}}, {"$match": {"type": "idleCursor"}}])]
