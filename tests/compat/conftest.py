"""MongoDB beside the servers under test, and the table of agreement at the end of the run."""

from collections import Counter

import pytest

from compat.ask import Pair, table
from support.mongod import MongodServer

TALLIES = pytest.StashKey[dict[str, Counter]]()


@pytest.fixture(scope="session")
def oracle(tmp_path_factory):
    server = MongodServer(tmp_path_factory.mktemp("oracle")).start()
    yield server
    server.kill()


@pytest.fixture
def pair(server, store, oracle) -> Pair:
    return Pair(server.port, oracle.port, store)


@pytest.fixture
def tally(request, store) -> Counter:
    """Counts of this store, over all tests."""
    return request.config.stash.setdefault(TALLIES, {}).setdefault(store, Counter())


def pytest_sessionfinish(session):
    """If tests are distributed over processes, each sends its counts to the one that prints them.
    """
    if hasattr(session.config, "workeroutput"):
        tallies = session.config.stash.get(TALLIES, {})
        session.config.workeroutput["tallies"] = {store: list(tally.items()) for store, tally in tallies.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    for store, counts in getattr(node, "workeroutput", {}).get("tallies", {}).items():
        node.config.stash.setdefault(TALLIES, {}).setdefault(store, Counter()).update(dict(counts))


def pytest_terminal_summary(terminalreporter, config):
    for store, tally in config.stash.get(TALLIES, {}).items():
        terminalreporter.section(f"agreement with MongoDB 6.0: {store}")
        terminalreporter.write_line(table(tally))
