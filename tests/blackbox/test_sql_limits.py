"""Limits of SQL clients: idle and stalled connections, wrong passwords, logins that never end; and
the counters of all refusals."""

import contextlib
import socket
import struct
import time

import pymysql
import pytest

from blackbox.test_sql_clients import Gateway, change_user, rows, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

SETTINGS = """
[limits]
idle-seconds = 2
stalled-seconds = 2
login-failures = 2
login-delay-seconds = 5
address-connections = 60
"""


@pytest.fixture(scope="module")
def gateway(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    file = folder / "selkie.toml"
    file.write_text(SETTINGS)
    gateway = Gateway(folder, "off", "--config", str(file))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


def figures(gateway) -> dict:
    return gateway.mongo.admin.command("serverStatus")["selkie"]["sqlClients"]


def refusal(gateway, **options) -> tuple:
    with pytest.raises(pymysql.err.MySQLError) as refused:
        gateway.connect(**options)
    return refused.value.args


def test_idle_clients_are_disconnected(gateway):
    before = figures(gateway)
    with gateway.connect() as busy, gateway.connect(autocommit=False) as idle:
        assert figures(gateway)["current"] == before["current"] + 2
        rows(idle, "INSERT INTO t VALUES (100, 'uncommitted', 1)")
        began = time.monotonic()
        while time.monotonic() < began + 5:
            # A statement may take longer, and a client that sends some is not idle.
            rows(busy, "SELECT SLEEP(2.5)")
            time.sleep(0.5)
        with pytest.raises(pymysql.err.OperationalError) as lost:
            rows(idle, "SELECT 1")
        assert lost.value.args[0] in (2006, 2013)
        assert rows(busy, "SELECT * FROM t WHERE id = 100") == ()
        rows(busy, "INSERT INTO t VALUES (100, 'its row is not locked', 1)")
        assert figures(gateway)["idleTimeouts"] == before["idleTimeouts"] + 1
    until(lambda: figures(gateway)["current"] == before["current"])


def test_clients_that_stop_within_a_packet_are_disconnected(gateway):
    before = figures(gateway)["stalledTimeouts"]
    for sent in (b"\x10\0\0\0\x03SELECT", b"\x40\x42\x0f\0\x0e" + bytes(100_000)):
        connection = gateway.connect()
        connection._sock.sendall(sent)
        connection._sock.settimeout(10)
        with contextlib.suppress(OSError):
            assert connection._sock.recv(100) == b""
    assert figures(gateway)["stalledTimeouts"] == before + 2


def test_clients_that_do_not_read_are_disconnected(gateway):
    before = figures(gateway)["stalledTimeouts"]
    connection = gateway.connect()
    connection._execute_command(3, b"SELECT REPEAT('x', 10000) FROM seq_1_to_10000")
    until(lambda: figures(gateway)["stalledTimeouts"] == before + 1, 20)
    until(lambda: gateway.mariadb.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'joe'") == ((0,),))
    # One that reads slowly is served.
    with gateway.connect() as slow:
        slow._execute_command(3, b"SELECT REPEAT('x', 10000) FROM seq_1_to_4000")
        time.sleep(1)
        total = 0
        while total < 30_000_000:
            total += len(slow._rfile.read(10_000_000))
            time.sleep(1)
        total += len(slow._rfile.read(10_000_000))
        assert figures(gateway)["stalledTimeouts"] == before + 1


def attempt(gateway, password: str, **options) -> tuple[int, float]:
    """The error of an attempt to log in, 0 if it succeeds, and how long it took."""
    began = time.monotonic()
    try:
        gateway.connect(password=password, **options).close()
        return 0, time.monotonic() - began
    except pymysql.err.OperationalError as error:
        return error.args[0], time.monotonic() - began


def test_wrong_passwords_are_answered_later_and_later(gateway):
    before = figures(gateway)["logins"]
    for user in ("nobody", "reader"):
        attempts = [attempt(gateway, "wrong", user=user) for _ in range(8)]
        assert {code for code, _ in attempts} == {1045}
        # Two are free, one is the first that counts; then 0.1, 0.2, 0.4, 0.8 and 1.6 seconds.
        seconds = [seconds for _, seconds in attempts]
        assert seconds[7] > 1.5 and sum(seconds[3:]) > 3, seconds
        # 3.2 seconds would be too long to wait; half a second later it is not, and fails again.
        time.sleep(0.5)
        assert attempt(gateway, "wrong", user=user)[0] == 1045
        # Five seconds are too long: it fails at once.
        code, message = refusal(gateway, user=user)
        assert code == 1045 and "too many logins" in message
    # So it does with the right password, and others are not delayed: another user, and the same one
    # from another address.
    for options in ({}, {"user": "reader", "bind_address": "127.0.0.2"}):
        code, seconds = attempt(gateway, "secret", **options)
        assert code == 0 and seconds < 1, options
    after = figures(gateway)["logins"]
    assert after["failed"] == before["failed"] + 18 and after["throttled"] == before["throttled"] + 2
    time.sleep(3.3)
    assert attempt(gateway, "secret", user="reader")[0] == 0
    code, seconds = attempt(gateway, "wrong", user="reader")
    assert code == 1045 and seconds < 1, "the failures are forgiven"


def test_changing_the_user_is_a_login(gateway):
    before = figures(gateway)["logins"]
    for _ in range(5):
        with gateway.connect(bind_address="127.0.0.3") as connection, pytest.raises(pymysql.err.OperationalError) as refused:
            change_user(connection, "reader", "wrong")
        assert refused.value.args[0] == 1045
    began = time.monotonic()
    with gateway.connect(bind_address="127.0.0.3") as connection:
        assert change_user(connection, "reader", "secret")[0] == 0
    assert time.monotonic() - began > 0.3
    assert figures(gateway)["logins"]["failed"] == before["failed"] + 5


def test_other_errors_of_a_login_do_not_count(gateway):
    before = figures(gateway)["logins"]
    for _ in range(6):
        assert attempt(gateway, "secret", database="absent", bind_address="127.0.0.4")[0] == 1049
    code, seconds = attempt(gateway, "secret", bind_address="127.0.0.4")
    assert code == 0 and seconds < 1
    assert figures(gateway)["logins"] == before


def test_too_many_connections_are_counted(gateway):
    before = figures(gateway)
    with contextlib.ExitStack() as opened:
        for _ in range(60):
            opened.enter_context(socket.create_connection(("127.0.0.1", gateway.port), source_address=("127.0.0.5", 0)))
        # Each worker accepts connections of its own: a later one could come first.
        until(lambda: figures(gateway)["totalCreated"] == before["totalCreated"] + 60)
        assert refusal(gateway, bind_address="127.0.0.5")[0] == 1040
        after = figures(gateway)
    assert after["rejected"] == before["rejected"] + 1
    assert after["totalCreated"] == before["totalCreated"] + 60


def test_logins_that_never_end(gateway):
    """24 are forwarded at a time. As many wait for ten seconds, and are forwarded then."""
    before = figures(gateway)["logins"]
    with contextlib.ExitStack() as opened:
        def connect() -> socket.socket:
            return opened.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=20))

        for _ in range(2):
            for _ in range(24):
                connect()
            time.sleep(1)
        last = connect()
        began = time.monotonic()
        packet = last.recv(4096)
        assert struct.unpack("<H", packet[5:7]) == (1040,) and time.monotonic() - began > 8
        after = figures(gateway)["logins"]
    assert after["notAdmitted"] == before["notAdmitted"] + 1
    assert after["timeouts"] == before["timeouts"] + 24
    with gateway.connect() as connection:
        assert rows(connection, "SELECT 1") == ((1,),)


def test_a_mariadb_that_does_not_run(gateway):
    """Last, since it is stopped."""
    before = figures(gateway)["logins"]["mariadbUnreachable"]
    gateway.mariadb.kill()
    assert refusal(gateway)[0] == 2003
    assert figures(gateway)["logins"]["mariadbUnreachable"] == before + 1
