"""Logins through the drivers of Go and Java, on both stores. MongoDB is one of the servers: it
shows that the expected outcomes are its own. `make drivers` builds the programs."""

from pathlib import Path

import pytest

from conftest import STORES
from support.logins import LoginServer, check
from support.selkie import REPOSITORY

HERE = Path(__file__).resolve().parent
BUILT = REPOSITORY / ".build" / "drivers"

PROGRAMS = {
    "go-v1": [str(BUILT / "go-v1")],
    "go-v2": [str(BUILT / "go-v2")],
    "java": ["java", "-cp", str(BUILT / "java" / "*"), str(HERE / "java" / "Login.java")],
}


@pytest.fixture(scope="module", params=[*STORES, "mongod"])
def server(request, tmp_path_factory) -> LoginServer:
    server = LoginServer(tmp_path_factory.mktemp("logins"), request.param)
    yield server
    server.remove()


@pytest.mark.parametrize("driver", PROGRAMS)
def test_logins(server, driver):
    check(server, PROGRAMS[driver])
