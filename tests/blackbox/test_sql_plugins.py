"""Logins of SQL clients by other plugins than mysql_native_password, and requests for another one,
with PyMySQL and with MariaDB's own client."""

import subprocess

import pymysql
import pytest

from blackbox.test_sql_tls import Gateway, listener, one
from blackbox.test_sql_tls import mariadb as mariadb  # noqa: F401
from support.plugin_mariadb import PluginMariadb

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

PASSWORD = PluginMariadb.PASSWORD.decode()


@pytest.fixture
def gateway(mariadb, tmp_path):
    """A function that starts a Selkie before a server that asks for a plugin."""
    started = []

    def start(plugin: str, *options: str, **settings) -> Gateway:
        server = PluginMariadb(mariadb.server, plugin, **settings)
        started.append(server)
        gateway = Gateway(tmp_path, mariadb, f"mysql://plain:secret@127.0.0.1:{server.port}", *options)
        gateway.asking = server
        started.append(gateway.selkie)
        return gateway

    yield start
    for one in started:
        one.close() if isinstance(one, PluginMariadb) else one.kill()


def run_client(gateway: Gateway, mariadb, user: str, password: str, *options: str) -> subprocess.CompletedProcess:
    """MariaDB's client."""
    command = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{gateway.port}", f"-u{user}", f"-p{password}", "-N", "-B", *options]
    return subprocess.run(command, input="SELECT CURRENT_USER()", capture_output=True, text=True, timeout=60)


def test_caching_sha2_password(gateway, mariadb):
    both = gateway("caching_sha2_password", *listener(mariadb, "allow"))
    for tls in (False, True):
        with both.connect("asked", PASSWORD, tls=tls) as connection:
            assert one(connection, "SELECT CURRENT_USER()") == ("plain@%",)
        code, message = both.refusal("asked", "wrong", tls=tls)
        assert code == 1045 and "Access denied" in message
    for options in (("--skip-ssl",), (f"--ssl-ca={mariadb.authority.file}",)):
        done = run_client(both, mariadb, "asked", PASSWORD, *options)
        assert (done.returncode, done.stdout) == (0, "plain@%\n"), done.stderr
        assert "1045" in run_client(both, mariadb, "asked", "wrong", *options).stderr
    assert PASSWORD.encode() not in both.asking.received


def test_caching_sha2_password_without_a_known_password(gateway, mariadb):
    """The server needs the password itself: encrypted by its key without TLS, and not at all where
    one side alone has TLS."""
    both = gateway("caching_sha2_password", *listener(mariadb, "allow"), knows_password=False)
    with both.connect("asked", PASSWORD, tls=False) as connection:
        assert one(connection, "SELECT CURRENT_USER()") == ("plain@%",)
    assert both.refusal("asked", "wrong", tls=False)[0] == 1045
    done = run_client(both, mariadb, "asked", PASSWORD, "--skip-ssl")
    assert (done.returncode, done.stdout) == (0, "plain@%\n"), done.stderr
    code, message = both.refusal("asked", PASSWORD)
    assert code == 1045 and "TLS on both sides" in message
    assert PASSWORD.encode() not in both.asking.received


def test_a_password_in_clear_text_within_one_machine(gateway, mariadb):
    """Client, Selkie and MariaDB are processes of this machine. Between machines the password is
    not sent: a unit test of the crate has their addresses."""
    both = gateway("mysql_clear_password")
    with both.connect("asked", PASSWORD, tls=False) as connection:
        assert one(connection, "SELECT CURRENT_USER()") == ("plain@%",)
    assert both.refusal("asked", "wrong", tls=False)[0] == 1045
    assert PASSWORD.encode() in both.asking.received


def test_ed25519_with_the_command_line_client(gateway, mariadb):
    """The client begins with mysql_native_password, and is asked for the account's plugin."""
    both = gateway("caching_sha2_password", *listener(mariadb, "allow"))
    for options in (("--skip-ssl",), (f"--ssl-ca={mariadb.authority.file}",)):
        done = run_client(both, mariadb, "ed", "s3cret", *options)
        assert (done.returncode, done.stdout) == (0, "ed@%\n"), done.stderr
        assert "1045" in run_client(both, mariadb, "ed", "wrong", *options).stderr


@pytest.mark.parametrize("first", ["client_ed25519", "caching_sha2_password", "mysql_old_password", ""])
def test_clients_that_begin_with_another_plugin(gateway, mariadb, first, monkeypatch):
    """MariaDB asks for mysql_native_password, which the account has."""
    both = gateway("caching_sha2_password")
    real = pymysql.connections.Connection._get_server_information

    def with_other_plugin(connection):
        real(connection)
        connection._auth_plugin_name = first

    monkeypatch.setattr(pymysql.connections.Connection, "_get_server_information", with_other_plugin)
    with both.connect(tls=False) as connection:
        assert one(connection, "SELECT CURRENT_USER()") == ("plain@%",)
    assert both.refusal(password="wrong", tls=False)[0] == 1045
