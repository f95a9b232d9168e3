"""Access control: each command of the matrix, sent by each of its users to each of its databases,
is refused as MongoDB refuses it."""

import os

import pytest

from authorization import hostile, matrix
from authorization.users import users
from authorization.world import READ_WRITE, World, ask, batch, outcome
from support.mariadb import MariadbServer
from support.selkie import SelkieServer
from support.wire import op_query

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

ATTACKS = int(os.environ.get("SELKIE_ATTACKS", "2000"))
SEED = int(os.environ.get("SELKIE_SEED", "1"))


@pytest.fixture(scope="module")
def start(store, tmp_path_factory):
    """A function that starts a server with access control, and without users."""
    started = []

    def start_one() -> SelkieServer:
        folder = tmp_path_factory.mktemp("secured")
        # Its own server, because the users of a MariaDB are those of all gateways.
        mariadb = MariadbServer(folder / "mariadb").start() if store == "mariadb" else None
        options = (*OPTIONS, *(("--external-writes", "none") if mariadb else ()))
        started.append((SelkieServer(folder, mariadb, options).start(), mariadb))
        return started[-1][0]

    yield start_one
    for server, mariadb in started:
        assert server.stop() == 0, server.end_of_log()
        server.remove()
        if mariadb:
            mariadb.remove()


@pytest.fixture(scope="module")
def secured(start) -> SelkieServer:
    server = start()
    matrix.prepare(server.port)
    return server


@pytest.fixture(scope="module")
def world(start) -> World:
    return World(start().port)


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


LARGE = "x" * 20_000
READS = {
    "find": {"find": "c", "filter": {"a": {"$lt": 3}}},
    "find by _id": {"find": "c", "filter": {"_id": 1}, "limit": 1, "singleBatch": True},
    "a large reply": {"find": "large"},
    "count": {"count": "c", "query": {"a": {"$gt": 2}}},
    "distinct": {"distinct": "c", "key": "a"},
    "aggregate": {"aggregate": "c", "pipeline": [{"$group": {"_id": None, "all": {"$sum": "$a"}}}], "cursor": {}},
    "$lookup": {"aggregate": "c", "cursor": {}, "pipeline": [
        {"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}]},
}


def hits(world: World) -> int:
    return world.do({"selkieCache": 1, "$db": "admin"})["cache"]["hits"]


@pytest.mark.parametrize("name", READS)
def test_cached_replies_need_the_same_privileges(world, name):
    world.root.run({"insert": "large", "documents": [{"_id": 1, "text": LARGE}], "$db": "own"})
    command, before = READS[name], hits(world)
    expected = [ask(world.root, "own", command) for _ in range(3)][-1]
    assert expected["ok"] == 1 and hits(world) > before, "the reply is not cached"
    refused = ("nothing", "inserts", "finds in t", "clusterMonitor", "reader of admin")
    with world.users("anna", *refused) as (anna, *others):
        before = hits(world)
        assert ask(anna, "own", command) == expected and hits(world) > before, "another user's reply is not used"
        before = hits(world)
        assert [outcome(ask(connection, "own", command))[0] for connection in others] == [13] * len(refused)
        with world.revoked("anna", READ_WRITE):
            assert outcome(ask(anna, "own", command))[0] == 13
        assert hits(world) == before
        assert ask(anna, "own", command) == expected
    with world.users("finds in c", "finds in v") as (in_c, in_v):
        may_read = name not in ("a large reply", "$lookup")
        assert outcome(ask(in_c, "own", command))[0] == ("ok" if may_read else 13)
        assert outcome(ask(in_v, "own", command))[0] == 13


def test_cursors_behind_cached_batches_need_the_same_privileges(world):
    command = {"find": "c", "batchSize": 2, "filter": {"a": {"$gte": 0}}}
    more = {"collection": "c", "batchSize": 2}

    def read_all(connection) -> list:
        reply = ask(connection, "own", command)
        found, identity = list(reply["cursor"]["firstBatch"]), reply["cursor"]["id"]
        while identity:
            reply = ask(connection, "own", {"getMore": identity, **more})
            found, identity = found + reply["cursor"]["nextBatch"], reply["cursor"]["id"]
        return found

    expected = [read_all(world.root) for _ in range(3)][-1]
    with world.users("anna", "ben") as (anna, ben):
        before = hits(world)
        assert read_all(anna) == expected and hits(world) >= before + 3
        identity = ask(anna, "own", command)["cursor"]["id"]
        assert outcome(ask(ben, "own", {"getMore": identity, **more}))[0] == 13
        with world.revoked("anna", READ_WRITE):
            assert outcome(ask(anna, "own", {"getMore": identity, **more}))[0] == 13
        assert batch(ask(anna, "own", {"getMore": identity, **more}))[0] == expected[2:4]


@pytest.mark.parametrize("wrapper", ["$query", "query"])
def test_old_messages_are_unwrapped_once(world, wrapper):
    """The check of privileges must not read another command than is executed."""
    own = {"currentOp": 1, "$ownOps": True}
    with world.users("nothing") as connection:
        for command, code in ((own, None), ({wrapper: own}, None), ({wrapper: {wrapper: own}}, 59), ({wrapper: {"currentOp": 1}}, 13)):
            connection.send(op_query("admin.$cmd", command))
            assert connection.receive_reply().get("code") == code


def test_hostile_commands_show_and_change_nothing(start):
    """Commands and pipelines that are changed at random: fields twice, other names, document
    sequences, old messages."""
    found = hostile.run(World(start().port), ATTACKS, SEED)
    assert not found, "\n".join(found[:20])
