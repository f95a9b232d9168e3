"""Logins through the Node.js driver and mongosh, by each mechanism. `tests/drivers` has the same
for Go and Java."""

import os

import pytest

from support.logins import LoginServer, check
from support.node import NODE

pytestmark = pytest.mark.selkie_only

PROGRAMS = {
    "node": ["node", "logins.mjs"],
    "mongosh": [str(NODE / "node_modules" / ".bin" / "mongosh"), "--quiet", "--norc", "--nodb", "--file", "logins.js"],
}


@pytest.fixture(scope="module")
def server(store, tmp_path_factory) -> LoginServer:
    server = LoginServer(tmp_path_factory.mktemp("logins"), store)
    yield server
    server.remove()


@pytest.mark.parametrize("program", PROGRAMS)
def test_logins(server, program, tmp_path):
    environment = os.environ | {"HOME": str(tmp_path), "NODE_NO_WARNINGS": "1"}
    check(server, PROGRAMS[program], cwd=NODE, env=environment)
