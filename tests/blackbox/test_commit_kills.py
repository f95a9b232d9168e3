"""A server is killed while it commits transactions. The repeated commitTransaction then says
whether the transaction was committed, and a change stream that is resumed shows its changes once or
never.

SELKIE_COMMIT_KILLS sets how often each server is killed (default 5).
"""

import contextlib
import os
import random
import time
import uuid
from collections import Counter

import pytest
from bson import Binary, Int64

from blackbox.test_histories import LOGGING, has_streams, skip_without_transactions
from blackbox.test_histories import logging_mariadb as logging_mariadb  # noqa: F401
from blackbox.test_histories import replica_set as replica_set  # noqa: F401
from histories.stream import Follower
from support.mariadb import MariadbServer
from support.wire import Wire, op_msg

KILLS = int(os.environ.get("SELKIE_COMMIT_KILLS", "5"))
REPLICA_SET = ("--topology", "replica-set")
CLIENTS = 8
CONCERNS = ({}, {"writeConcern": {"w": 1, "j": True}}, {"writeConcern": {"w": "majority"}})


class Committer:
    """A session that has one transaction in each round, which inserts two documents and changes
    another one."""

    def __init__(self, database: str, number: int):
        self.database, self.number = database, number
        self.session = Binary(uuid.uuid4().bytes, 4)
        self.round = 0
        self.wire = None

    def fields(self) -> dict:
        return {"lsid": {"id": self.session}, "txnNumber": Int64(self.round), "autocommit": False}

    def ids(self) -> list[str]:
        return [f"{self.round}-{self.number}-{part}" for part in "ab"]

    def prepare(self, port: int, round_number: int):
        self.round = round_number
        if self.wire:
            self.wire.socket.close()
        self.wire = Wire(port)
        documents = [{"_id": name, "unique": name} for name in self.ids()]
        statements = [{"insert": "done", "documents": documents},
                      {"update": "counts", "updates": [{"q": {"_id": self.number}, "u": {"$inc": {"n": 1}}, "upsert": True}]}]
        for at, statement in enumerate(statements):
            start = {"startTransaction": True} if at == 0 else {}
            reply = self.wire.run(statement | self.fields() | start | {"$db": self.database})
            assert reply["ok"] == 1, reply

    def commit(self, **concern):
        return {"commitTransaction": 1, **self.fields(), **concern, "$db": "admin"}

    def send(self, rng: random.Random):
        # The server may be gone.
        with contextlib.suppress(OSError):
            self.wire.send(op_msg(self.commit(**rng.choice(CONCERNS))))

    def is_acknowledged(self) -> bool:
        """Whether the reply to the commit arrives, before the connection ends."""
        try:
            return self.wire.receive_reply()["ok"] == 1
        except OSError:
            return False

    def repeat(self, port: int) -> bool:
        """Whether the transaction was committed, as the server says, and says again."""
        with Wire(port) as wire:
            answers = {self.answer(wire) for _ in range(2)}
        assert len(answers) == 1, "two answers about a commit"
        return answers.pop()

    def answer(self, wire: Wire) -> bool:
        """Repeats the commit as drivers do, until it is acknowledged or the transaction is gone."""
        end = time.monotonic() + 30
        while True:
            reply = wire.run(self.commit(writeConcern={"w": "majority"}))
            if reply["ok"] == 1 or "TransientTransactionError" in reply.get("errorLabels", []):
                return reply["ok"] == 1
            # The gateway has no connection to MariaDB.
            assert time.monotonic() < end, reply
            time.sleep(0.02)


def run_rounds(server, database: str, kill, follower) -> Counter:
    """Returns how many transactions were acknowledged, were committed without a reply, and were
    not committed."""
    rng, tally = random.Random(4711), Counter()
    committers = [Committer(database, number) for number in range(CLIENTS)]
    expected, counts = set(), Counter()
    for round_number in range(1, KILLS + 1):
        for committer in committers:
            committer.prepare(server.port, round_number)
        last, pause_s = rng.randrange(CLIENTS), rng.uniform(0, 0.012)
        for committer in committers[: last + 1]:
            committer.send(rng)
        time.sleep(pause_s)
        kill()
        for number, committer in enumerate(committers):
            is_acknowledged = committer.is_acknowledged() if number <= last else False
            is_committed = committer.repeat(server.port)
            assert is_committed or not is_acknowledged, f"round {round_number}: an acknowledged commit is unknown"
            if is_committed:
                expected |= set(committer.ids())
                counts[committer.number] += 1
            tally["acknowledged" if is_acknowledged else "without a reply" if is_committed else "not committed"] += 1
        with server.client() as client:
            db = client[database]
            assert {one["_id"] for one in db.done.find()} - {"end"} == expected, f"round {round_number}"
            assert {one["_id"]: one["n"] for one in db.counts.find()} == dict(counts), f"round {round_number}"
    if follower:
        with server.client() as client:
            events = follower.finish(client[database].done)
        assert len(events) == len(set(events)), "the stream has repeated an event"
        assert set(events) == expected
        # The two documents of a transaction come one after the other.
        assert all(one[:-1] == other[:-1] for one, other in zip(events[::2], events[1::2], strict=True))
        tally["resumptions"] = follower.resumed
    return tally


def check(server, database: str, kill):
    with server.client() as client:
        client[database].done.create_index("unique", unique=True)
        client[database].create_collection("counts")
    with contextlib.ExitStack() as stack:
        follower = None
        if has_streams(server):
            follower = stack.enter_context(Follower(server.client, database, "done", lambda event: [event["documentKey"]["_id"]]))
        tally = run_rounds(server, database, kill, follower)
    print(KILLS, "kills:", dict(tally))


@pytest.mark.selkie_only
@pytest.mark.timeout(3600)
def test_a_repeated_commit_tells_the_truth(replica_set, database_name):  # noqa: F811
    def kill():
        replica_set.kill()
        replica_set.start()

    check(replica_set, database_name, kill)


@pytest.mark.mariadb_only
@pytest.mark.timeout(3600)
def test_a_repeated_commit_tells_the_truth_when_mariadb_is_killed(own_server, database_name, tmp_path):
    mariadb = MariadbServer(tmp_path / "private", LOGGING).start()
    try:
        server = own_server(*REPLICA_SET, mariadb=mariadb)
        skip_without_transactions(server)

        def kill():
            mariadb.kill()
            mariadb.start()

        check(server, database_name, kill)
    finally:
        mariadb.remove()
