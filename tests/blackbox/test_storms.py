"""Storms of connections: thousands that say hello at once, and thousands that never say anything
useful. Others are served meanwhile, and memory does not grow.

SELKIE_STORM_CONNECTIONS and SELKIE_STORM_HALF_OPEN set the sizes. The delays of others are printed
(`pytest -s`), and not asserted: they depend on the machine.
"""

import errno
import multiprocessing
import os
import resource
import selectors
import socket
import struct
import time

import pytest

from support.selkie import SelkieServer
from support.wire import Wire, message, op_msg

pytestmark = [pytest.mark.selkie_only, pytest.mark.timeout(600)]

CONNECTIONS = int(os.environ.get("SELKIE_STORM_CONNECTIONS", 1500))
HALF_OPEN = int(os.environ.get("SELKIE_STORM_HALF_OPEN", 6000))
# So many half-open connections exist at a time.
WAVE = 4000

HELLO = op_msg({"hello": 1, "client": {"driver": {"name": "storm", "version": "1"}, "os": {"type": "Linux"}}, "$db": "admin"})

# Beginnings of a conversation that never becomes one.
ATTACKS = {
    "silence": b"",
    "a header of 48 MB": struct.pack("<iiii", 48_000_000, 1, 0, 2013),
    "a half message of 60 KB": struct.pack("<iiii", 60_000, 1, 0, 2013) + b"\0" * 1000,
    "half of a hello": HELLO[: len(HELLO) // 2],
    "a TLS client": bytes.fromhex("1603010200010001fc0303") + b"\7" * 500,
    "garbage": b"\xff" * 200,
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a login that cannot succeed": op_msg(
        {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=nobody,r=abcdefghijklmnopqrstuvwx", "$db": "admin"}
    ),
    "a false size": message(2012, struct.pack("<iib", 2013, 48_000_000 - 16, 2) + b"x\x9c" + b"\1" * 50),
}


def raise_open_files() -> int:
    """Raises the limit of open files as far as it may be, and returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@pytest.fixture
def server(tmp_path):
    raise_open_files()
    server = SelkieServer(tmp_path / "selkie", None, ("--threads", "2")).start()
    yield server
    server.remove()


class Bystander:
    """Another client that reads by `_id`, and notes how long each read takes."""

    def __init__(self, port: int):
        self.wire = Wire(port, timeout_s=60)
        self.wire.run({"insert": "c", "documents": [{"_id": 1}], "$db": "bystander"})
        self.find = op_msg({"find": "c", "filter": {"_id": 1}, "$db": "bystander"})

    def delays(self, goes_on) -> list[float]:
        delays = []
        while goes_on():
            began = time.perf_counter()
            self.wire.send(self.find)
            self.wire.receive()
            delays.append(time.perf_counter() - began)
            time.sleep(0.002)
        return sorted(delays)


def p99_ms(delays: list[float]) -> float:
    return delays[int(len(delays) * 0.99)] * 1000


def storm(port: int, count: int, served):
    """Opens `count` connections at once, says hello on each, and waits for the replies."""
    # The delays of the server count, not those of sharing a processor with this process.
    os.nice(5)
    selector = selectors.DefaultSelector()
    addresses = [f"127.0.0.{n}" for n in range(1, 9)]
    answered = closed = 0
    began = time.monotonic()
    opened = []

    def proceed(timeout_s: float):
        nonlocal answered, closed
        for key, events in selector.select(timeout_s):
            if events & selectors.EVENT_WRITE:
                key.fileobj.send(HELLO)
                selector.modify(key.fileobj, selectors.EVENT_READ)
                continue
            try:
                is_answered = len(key.fileobj.recv(4096)) > 100
            except ConnectionError:
                is_answered = False
            answered, closed = answered + is_answered, closed + (not is_answered)
            selector.unregister(key.fileobj)

    for number in range(count):
        connection = socket.socket()
        connection.setblocking(False)
        connection.bind((addresses[number % len(addresses)], 0))
        connection.connect_ex(("127.0.0.1", port))
        selector.register(connection, selectors.EVENT_WRITE)
        opened.append(connection)
        if number % 64 == 0:
            proceed(0)
    while answered + closed < count and time.monotonic() - began < 300:
        proceed(1)
    served.put((answered, time.monotonic() - began))
    time.sleep(0.5)
    for connection in opened:
        connection.close()


def test_a_storm_of_handshakes_leaves_others_served(server):
    bystander = Bystander(server.port)
    end = time.monotonic() + 2
    before = bystander.delays(lambda: time.monotonic() < end)
    resident = server.resident_bytes()
    served = multiprocessing.Queue()
    storming = multiprocessing.Process(target=storm, args=(server.port, CONNECTIONS, served))
    storming.start()
    during = bystander.delays(storming.is_alive)
    storming.join()
    answered, seconds = served.get(timeout=10)
    print(
        f"\n{answered} handshakes in {seconds:.1f} s; others' p99 {p99_ms(before):.2f} ms before, {p99_ms(during):.2f} ms during "
        f"({len(during)} reads), longest {during[-1] * 1000:.0f} ms; "
        f"resident {resident >> 20} MiB before, {server.peak_resident_bytes() >> 20} MiB at most"
    )
    assert answered == CONNECTIONS
    assert during and during[-1] < 10
    assert bystander.wire.run({"ping": 1, "$db": "admin"})["ok"] == 1
    # Some kilobytes for each connection.
    assert server.peak_resident_bytes() - resident < (20 << 20) + CONNECTIONS * 20_000


def test_half_open_and_failing_handshakes_take_little_memory(server):
    bystander = Bystander(server.port)
    attacks = list(ATTACKS.values())
    sent = 0
    while sent < HALF_OPEN:
        wave = []
        for _ in range(min(WAVE, HALF_OPEN - sent)):
            connection = socket.socket()
            # Other ports are still in use by connections that were just closed.
            connection.bind((f"127.0.{1 + sent % 50}.{1 + sent % 200}", 0))
            connection.settimeout(10)
            connection.connect(("127.0.0.1", server.port))
            try:
                connection.send(attacks[sent % len(attacks)])
            except OSError as error:
                assert error.errno in (errno.EPIPE, errno.ECONNRESET)
            wave.append(connection)
            sent += 1
        began = time.perf_counter()
        assert bystander.wire.run({"find": "c", "filter": {"_id": 1}, "$db": "bystander"})["ok"] == 1
        waited = time.perf_counter() - began
        resident = server.resident_bytes()
        for connection in wave:
            connection.close()
    print(
        f"\n{sent} half-open or failing handshakes, {len(wave)} at a time: resident {resident >> 20} MiB, at most "
        f"{server.peak_resident_bytes() >> 20} MiB; a read took {waited * 1000:.1f} ms"
    )
    assert server.peak_resident_bytes() < 200 << 20
    with Wire(server.port) as again:
        assert again.run({"ping": 1, "$db": "admin"})["ok"] == 1
    assert server.log.stat().st_size < 1 << 20, "the log does not grow with each"
