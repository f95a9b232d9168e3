"""The audit log's events of SQL clients."""

import socket
import struct

import pymysql
import pytest

from blackbox import test_sql_clients as plain
from blackbox import test_sql_tls as encrypted
from blackbox.test_audit import eventually, events, logins, verify
from blackbox.test_mariadb_tls import TlsMariadb
from blackbox.test_sql_clients import change_user

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

NATIVE = "mysql_native_password"
CLOSED = "Implicit logout due to client connection closure"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.log"


@pytest.fixture
def gateway(store, tmp_path, log):
    gateway = plain.Gateway(tmp_path, "off", "--audit-log", str(log))
    yield gateway
    gateway.remove()


def logouts(log) -> list[tuple]:
    return [(entry["param"]["reason"], [user["user"] for user in entry["param"]["initialUsers"]])
            for entry in events(log, "logout")]


def test_logins_and_changes_of_user_are_recorded_once(gateway, log):
    with gateway.connect() as session:
        assert logins(log) == [("joe@$mariadb", NATIVE, 0)] and logouts(log) == []
        login = events(log, "authenticate")[0]
        assert login["users"] == [{"user": "joe", "db": "$mariadb"}] and login["roles"] == []
        assert login["remote"] == {"ip": "127.0.0.1", "port": session._sock.getsockname()[1]}
        assert login["local"] == {"ip": "127.0.0.1", "port": gateway.port}
        assert change_user(session, "reader", "secret")[0] == 0
        assert logins(log)[1:] == [("reader@$mariadb", NATIVE, 0)]
        assert logouts(log) == [("Implicit logout due to a change of user", ["joe"])]
        assert {entry["uuid"]["$binary"] for entry in events(log, "authenticate", "logout")} == {login["uuid"]["$binary"]}
    assert eventually(lambda: logouts(log)[1:]) == [(CLOSED, ["reader"])]
    for user, password in (("joe", "wrong"), ("nobody", "secret"), ("jö'\n", "secret")):
        with pytest.raises(pymysql.err.OperationalError) as refused:
            gateway.connect(user=user, password=password)
        assert refused.value.args[0] == 1045
        assert logins(log)[-1][::2] == (f"{user}@$mariadb", 1045)
    failed = events(log, "authenticate")[-1]
    assert failed["users"] == [] and len(logins(log)) == 5
    with gateway.connect() as session:
        with pytest.raises(pymysql.err.OperationalError):
            change_user(session, "reader", "wrong")
        assert logins(log)[6:] == [("reader@$mariadb", NATIVE, 1045)]
    assert eventually(lambda: logouts(log)[2:]) == [(CLOSED, ["joe"])]
    assert gateway.selkie.stop() == 0
    text = log.read_text()
    assert "secret" not in text and verify(log)[0] == 0


def test_an_unfinished_login_is_recorded_as_abandoned(gateway, log):
    with socket.create_connection(("127.0.0.1", gateway.port)) as silent:
        assert silent.recv(4096)
    with socket.create_connection(("127.0.0.1", gateway.port)) as lost:
        assert lost.recv(4096)
        # PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH: the server asks for the account's plugin.
        head = struct.pack("<IIB23x", 1 << 9 | 1 << 15 | 1 << 19, 1 << 24, 45)
        login = head + b"joe\0" + b"\0" + b"client_ed25519\0"
        lost.sendall(len(login).to_bytes(3, "little") + b"\x01" + login)
        assert lost.recv(4096)[4] == 0xFE
        assert logins(log) == []
    assert eventually(lambda: logins(log)) == [("joe@$mariadb", NATIVE, 337)]
    with socket.create_connection(("127.0.0.1", gateway.port)) as malformed:
        assert malformed.recv(4096)
        malformed.sendall(b"\x01\0\0\x01x")
        assert malformed.recv(4096)[4] == 0xFF
    assert logins(log)[1:] == [("@$mariadb", "", 1043)]
    assert gateway.selkie.stop() == 0 and logouts(log) == [] and verify(log)[0] == 0


def test_what_the_gateway_refuses_is_recorded(store, tmp_path, log):
    mariadb = TlsMariadb(tmp_path / "m")
    mariadb.sql("CREATE USER subject@'%' IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=x'")
    options = (*encrypted.listener(mariadb, "require"), "--audit-log", str(log))
    gateway = encrypted.Gateway(tmp_path, mariadb, mariadb.url("tls", mariadb.verified), *options)
    try:
        assert gateway.refusal("tls", tls=False)[0] == 3159
        assert logins(log) == [("@$mariadb", "", 3159)]
        assert gateway.refusal("x509")[0] == 1045
        assert logins(log)[1:] == [("x509@$mariadb", NATIVE, 1045)]
        with gateway.connect("tls"):
            assert logins(log)[2:] == [("tls@$mariadb", NATIVE, 0)]
        assert eventually(lambda: logouts(log)) == [(CLOSED, ["tls"])]
        assert gateway.selkie.stop() == 0 and verify(log)[0] == 0
    finally:
        gateway.selkie.kill()
        mariadb.server.remove()
