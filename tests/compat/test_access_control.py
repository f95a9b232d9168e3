"""Access control beside MongoDB: the recorded matrix is MongoDB's, and scenarios of several users
have the same replies."""

import pytest

from authorization import matrix
from authorization.scenarios import SCENARIOS
from authorization.world import World
from support.mariadb import MariadbServer
from support.mongod import MongodServer
from support.selkie import SelkieServer

SHOWN_MAX = 20


@pytest.fixture(scope="module")
def secured_mongod(tmp_path_factory):
    """A function that starts a MongoDB with access control, and without users."""
    started = []

    def start() -> MongodServer:
        started.append(MongodServer(tmp_path_factory.mktemp("secured"), options=("--auth",)).start())
        return started[-1]

    yield start
    [server.kill() for server in started]


@pytest.fixture(scope="module")
def mongodb(secured_mongod) -> World:
    return World(secured_mongod().port)


@pytest.fixture(scope="module")
def expected() -> dict:
    """MongoDB's replies by scenario, which are compared with those of each store."""
    return {}


@pytest.fixture(scope="module")
def selkie(store, tmp_path_factory) -> World:
    folder = tmp_path_factory.mktemp("scenarios")
    # Its own server, because the users of a MariaDB are those of all gateways.
    mariadb = MariadbServer(folder / "mariadb").start() if store == "mariadb" else None
    caching = ("--cache", "documents", *(("--external-writes", "none") if mariadb else ()))
    server = SelkieServer(folder, mariadb, ("--auth", "--topology", "standalone", *caching)).start()
    yield World(server.port)
    assert server.stop() == 0, server.end_of_log()
    server.remove()
    if mariadb:
        mariadb.remove()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_scenario(mongodb, selkie, expected, scenario):
    if scenario not in expected:
        expected[scenario] = list(scenario(mongodb))
    ours = list(scenario(selkie))
    different = [f"{ours}\n  MongoDB: {theirs}" for ours, theirs in zip(ours, expected[scenario], strict=True) if ours != theirs]
    shown = "\n".join(different[:SHOWN_MAX])
    assert not different, f"{len(different)} replies differ:\n{shown}"


def test_the_recorded_matrix_is_that_of_mongodb(secured_mongod):
    server = secured_mongod()
    matrix.prepare(server.port)
    assert not matrix.differences(server.port)
