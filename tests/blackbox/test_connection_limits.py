"""Limits on connections and requests: in total, for each address, per second, and until the first
message. Others are served meanwhile.
"""

import resource
import socket
import time
from pathlib import Path

import pymysql
import pytest
from pymongo.errors import OperationFailure

from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer
from support.wire import Wire, op_msg

pytestmark = pytest.mark.selkie_only

PING = op_msg({"ping": 1, "$db": "admin"})


@pytest.fixture
def limited(tmp_path):
    """A function that starts a server on an embedded store, with limits of a [limits] section."""
    started = []

    def start(*options: str, mariadb: MariadbServer | None = None, **limits) -> SelkieServer:
        file = tmp_path / "selkie.toml"
        file.write_text("[limits]\n" + "".join(f"{name.replace('_', '-')} = {value}\n" for name, value in limits.items()))
        options = ("--config", str(file), "--threads", "2", *options)
        started.append(SelkieServer(tmp_path / "selkie", mariadb, options).start())
        return started[-1]

    yield start
    for server in started:
        server.remove()


def is_served(wire: Wire) -> bool:
    try:
        wire.send(PING)
        return wire.receive_reply()["ok"] == 1
    except OSError:
        return False


def connect_from(server: SelkieServer, address: str) -> Wire:
    """Connects from another address of this machine."""
    wire = Wire.__new__(Wire)
    wire.socket = socket.create_connection(("127.0.0.1", server.port), timeout=10, source_address=(address, 0))
    return wire


def connections(server: SelkieServer, observer: Wire) -> dict:
    return observer.run({"serverStatus": 1, "$db": "admin"})["connections"]


def wait_for(condition, timeout_s: float = 10):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_total_is_exact_and_refusals_are_counted(limited):
    server = limited(connections=10)
    with Wire(server.port) as observer:
        wait_for(lambda: connections(server, observer)["current"] == 1)
        rejected = connections(server, observer)["rejected"]
        wires = [Wire(server.port) for _ in range(20)]
        served = [wire for wire in wires if is_served(wire)]
        assert len(served) == 9
        figures = connections(server, observer)
        assert (figures["current"], figures["available"], figures["rejected"] - rejected) == (10, 0, 11)
        # In silence, as by MongoDB.
        assert all(wire.is_closed_by_server() for wire in wires if wire not in served)
        for wire in wires:
            wire.socket.close()
        wait_for(lambda: connections(server, observer)["current"] == 1)
        with Wire(server.port) as again:
            assert is_served(again)
    assert "refused connections: there are too many; see `connections` in [limits]" in server.log.read_text()


def test_an_address_has_its_own_limit(limited):
    server = limited(address_connections=5)
    wires = [connect_from(server, "127.0.0.2") for _ in range(8)]
    # Each worker accepts connections of its own, so it need not be the first ones.
    served = [wire for wire in wires if is_served(wire)]
    assert len(served) == 5
    with connect_from(server, "127.0.0.3") as other, connect_from(server, "127.0.0.2") as same:
        assert is_served(other) and not is_served(same)
    served[0].socket.close()
    with Wire(server.port) as observer:
        wait_for(lambda: connections(server, observer)["current"] == 5)
        with connect_from(server, "127.0.0.2") as again:
            assert is_served(again)
    assert "too many from one address; see `address-connections` in [limits]" in server.log.read_text()


def test_a_client_must_send_its_first_message_in_time(limited):
    server = limited(handshake_seconds=1)
    with Wire(server.port) as silent, Wire(server.port) as slow, Wire(server.port) as idle:
        assert is_served(idle)
        began = time.monotonic()
        for byte in PING[:8]:
            slow.send(bytes([byte]))
            time.sleep(0.1)
        assert silent.is_closed_by_server(3) and slow.is_closed_by_server(3)
        assert time.monotonic() - began < 3
        assert is_served(idle), "only the first message must come in time"
    assert "no message came within 1 seconds" in server.log.read_text()


def test_connections_beyond_the_rate_wait_and_then_are_refused(limited):
    server = limited(connection_rate=20, connection_queue=10)
    with Wire(server.port) as observer:
        assert is_served(observer)
        time.sleep(1.5)
        began = time.monotonic()
        wires = [Wire(server.port) for _ in range(60)]
        served = sum(is_served(wire) for wire in wires)
        # The burst of one second, those that wait, and a few that come while others do.
        assert 28 <= served <= 50, served
        assert time.monotonic() - began > 0.4
        figures = connections(server, observer)
        assert figures["rejected"] >= 60 - served and figures["establishmentRateLimit"]["rejected"] >= 60 - served
        for wire in wires:
            wire.socket.close()


def test_requests_beyond_the_rate_fail_with_462(limited, database_name):
    server = limited(request_rate=50)
    with server.client(retryReads=False, retryWrites=False) as client, Wire(server.port) as wire:
        refused = []
        for number in range(300):
            try:
                client[database_name].c.insert_one({"_id": number})
            except OperationFailure as error:
                refused.append((number, error))
        assert 100 < len(refused) < 290
        for number, error in refused[:20]:
            assert error.code == 462 and error.details["codeName"] == "IngressRequestRateLimitExceeded"
            assert error.has_error_label("SystemOverloadedError") and error.has_error_label("RetryableError")
        # Commands that observe the server are not counted.
        assert all(is_served(wire) for _ in range(100))
        status = client.admin.command("serverStatus")["selkie"]
        assert status["requestsRejected"] == len(refused)
        time.sleep(1.1)
        numbers = {document["_id"] for document in client[database_name].c.find().batch_size(1000)}
        assert numbers == set(range(300)) - {number for number, _ in refused}, "nothing is done when 462 is the answer"


def open_files(server: SelkieServer) -> int:
    """The number of descriptors in use, once those of the server's start are closed."""
    counts = []
    end = time.monotonic() + 10
    while len(counts) < 30 or len(set(counts[-30:])) > 1 and time.monotonic() < end:
        counts.append(len(list(Path(f"/proc/{server.pid}/fd").iterdir())))
        time.sleep(0.02)
    return counts[-1]


def test_some_file_descriptors_are_not_for_connections(limited, database_name):
    """The store needs them: it still creates files when there are too many clients."""
    server = limited()
    with Wire(server.port) as wire:
        assert wire.run({"ping": 1, "$db": "admin"})["ok"] == 1
        files = open_files(server) + 40
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files, files))
        wires = [Wire(server.port) for _ in range(100)]
        served = sum(is_served(other) for other in wires)
        assert 15 < served < 40, served
        assert connections(server, wire)["rejected"] == 100 - served
        for collection in range(3):
            insert = {"insert": f"c{collection}", "documents": [{"_id": 1}], "$db": database_name}
            assert wire.run(insert)["ok"] == 1
        for other in wires:
            other.socket.close()
    assert "too few file descriptors" in server.log.read_text()


def test_without_file_descriptors_clients_are_served(limited, database_name):
    """Even those that are not for connections are used up."""
    server = limited()
    with Wire(server.port) as wire:
        assert wire.run({"insert": "c", "documents": [{"_id": 1}], "$db": database_name})["ok"] == 1
        files, hard = open_files(server), resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
        # Below the number in use: one that is closed meanwhile would be used to refuse all others.
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files - 30, hard))
        wires = [Wire(server.port) for _ in range(60)]
        end = time.monotonic() + 2
        while time.monotonic() < end:
            find = wire.run({"find": "c", "filter": {"_id": 1}, "$db": database_name})
            assert find["cursor"]["firstBatch"] == [{"_id": 1}]
        # Those that wait are served as soon as there are descriptors again.
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
        # A few were refused, because of the descriptors that are not for connections.
        assert sum(is_served(waiting) for waiting in wires) > 40
        for waiting in wires:
            waiting.socket.close()
        with Wire(server.port) as again:
            assert is_served(again)
    lines = server.log.read_text().count("cannot accept connections")
    assert 1 <= lines <= 2, lines


@pytest.mark.mariadb_only
def test_sql_clients_are_refused_with_1040(limited, mariadb):
    port = free_port()

    class OverTcp:
        url = staticmethod(mariadb.tcp_url)

    mariadb.sql("CREATE USER IF NOT EXISTS limited@'%' IDENTIFIED BY 'secret'")
    server = limited("--sql-listen", f"127.0.0.1:{port}", mariadb=OverTcp, connections=6)

    def connect():
        return pymysql.connect(host="127.0.0.1", port=port, user="limited", password="secret")

    opened, codes = [], []
    for _ in range(9):
        try:
            opened.append(connect())
        except pymysql.err.OperationalError as error:
            codes.append(error.args)
    assert codes and set(codes) == {(1040, "Too many connections")}
    assert 4 <= len(opened) <= 6
    for connection in opened:
        connection.close()
    time.sleep(0.3)
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    assert server.is_running()
