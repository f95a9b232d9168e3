"""Documents on a MariaDB server that is read-only, as replicas are."""

import pytest

from support.mariadb import MariadbServer
from support.selkie import run

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]


@pytest.fixture
def mariadb(store, tmp_path):
    server = MariadbServer(tmp_path).start()
    yield server
    server.remove()


def test_selkie_does_not_start_on_a_read_only_server(mariadb):
    mariadb.sql("SET GLOBAL read_only = ON")
    done = run("serve", "--listen", "127.0.0.1:0", "--mariadb", mariadb.url())
    assert done.returncode != 0
    assert "read_only is on" in done.stderr and "the address of the primary" in done.stderr
