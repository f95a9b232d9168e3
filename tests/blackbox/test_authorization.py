"""Access control: each command of the matrix, sent by each of its users to each of its databases,
is refused as MongoDB refuses it."""

import pytest

from authorization import matrix
from authorization.users import users
from support.mariadb import MariadbServer
from support.selkie import SelkieServer

pytestmark = [pytest.mark.selkie_only, pytest.mark.timeout(300)]

# With cached replies, which need the same privileges. The matrix is that of a server without
# replication: behind a router, a write whose write concern is bad is executed.
OPTIONS = ("--auth", "--cache", "documents", "--topology", "standalone")

# What Selkie lacks fails while it is parsed, before privileges are checked.
LACKING = {
    "$lookup of another database": "there is no oplog, and other databases are refused by MongoDB, too",
    "$_unpackBucket": "a stage between MongoDB's servers",
    "$_internalConvertBucketIndexStats": "a stage between MongoDB's servers",
}
OWN = {
    "listShards": "a mongod does not have it, but a router has",
    "selkieCache": "MongoDB does not have it",
    "applyOps of createIndexes": "MongoDB parses it before it checks privileges, and knows no such entry",
}


@pytest.fixture(scope="module")
def secured(store, tmp_path_factory) -> SelkieServer:
    folder = tmp_path_factory.mktemp("matrix")
    # Its own server, because the users of a MariaDB are those of all gateways.
    mariadb = MariadbServer(folder / "mariadb").start() if store == "mariadb" else None
    options = (*OPTIONS, *(("--external-writes", "none") if mariadb else ()))
    server = SelkieServer(folder, mariadb, options).start()
    matrix.prepare(server.port)
    yield server
    assert server.stop() == 0, server.end_of_log()
    server.remove()
    if mariadb:
        mariadb.remove()


def test_commands_are_refused_as_in_mongodb(secured):
    asked = {(name, database) for name, database, _ in matrix.commands()}
    recorded = {(case["name"], case["database"]) for case in matrix.expectations()["cases"]}
    assert asked == recorded, "record the matrix anew"
    differences = matrix.differences(secured.port, known=LACKING.keys() | OWN.keys())
    shown = "\n".join(differences[:20])
    assert not differences, f"{len(differences)} answers differ:\n{shown}"


def test_what_is_lacking_is_refused_for_every_user(secured):
    root = next(user for user in users() if user["user"] == "root")
    with matrix.connect(secured.port, root) as connection:
        for name, database, command in matrix.commands():
            if name in LACKING:
                assert connection.run(command)["ok"] == 0, f"{name} on {database}"
