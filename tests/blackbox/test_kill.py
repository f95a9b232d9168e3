"""`kill -9` in the middle of writing: every acknowledged write is there afterwards, on both stores.

SELKIE_KILL_ROUNDS sets how often each server is killed (default 5).
"""

import os
import random
import threading
import time

import pymongo
import pytest
from pymongo.errors import PyMongoError

from support.mariadb import MariadbServer

ROUNDS = int(os.environ.get("SELKIE_KILL_ROUNDS", "5"))
WRITERS = 4


class Writer(threading.Thread):
    """Writes until the server is killed, and records the acknowledged writes. Each writer has its
    own documents, so that its last acknowledged value is the least that must be there."""

    def __init__(self, uri: str, database: str, number: int, first: int):
        super().__init__(daemon=True)
        self.uri, self.database, self.number, self.next = uri, database, number, first
        self.inserted: list[str] = []
        self.in_batches: list[str] = []
        self.counter = 0
        # And when that was acknowledged.
        self.deleted: dict[str, float] = {}
        self.error: Exception | None = None
        # For a writer that was so late that the first server it met was the one after the kill.
        self.enough = threading.Event()

    def run(self):
        options = {"serverSelectionTimeoutMS": 1000, "socketTimeoutMS": 5000, "retryWrites": False}
        try:
            with pymongo.MongoClient(self.uri, **options) as client:
                self.write(client[self.database])
        except PyMongoError:
            pass
        except Exception as error:  # noqa: BLE001  whatever it is, the test has to see it
            self.error = error

    def write(self, db):
        things, counters = db.things, db.counters
        while not self.enough.is_set():
            key = f"{self.number}-{self.next}"
            things.insert_one({"_id": key, "unique": key, "pad": "x" * 200})
            self.inserted.append(key)
            keys = [f"{key}-{n}" for n in range(20)]
            things.insert_many([{"_id": k, "unique": k} for k in keys])
            self.in_batches += keys
            counters.update_one({"_id": self.number}, {"$inc": {"n": 1}}, upsert=True)
            self.counter += 1
            done = things.delete_one({"_id": keys[0]})
            assert done.deleted_count == 1, f"{keys[0]} was not there to be deleted"
            self.deleted[keys[0]] = time.monotonic()
            self.next += 1


def check_everything_acknowledged_is_there(db, writers: list[Writer], counters: dict[int, int], killed_at: float):
    present = {d["_id"] for d in db.things.find({}, {"_id": 1})}
    for writer in writers:
        assert writer.error is None, writer.error
        lost = [key for key in writer.inserted + writer.in_batches if key not in present and key not in writer.deleted]
        # The delete under way when the server died may have happened.
        assert len(lost) <= 1 and all(key.endswith("-0") for key in lost), f"lost {len(lost)} of {len(writer.inserted)}: {lost[:5]}"
        returned = {key: at - killed_at for key, at in writer.deleted.items() if key in present}
        assert not returned, f"deleted documents came back, acknowledged so many seconds behind the kill: {returned}"
        found = (db.counters.find_one({"_id": writer.number}) or {"n": 0})["n"]
        counters[writer.number] += writer.counter
        assert counters[writer.number] <= found <= counters[writer.number] + 1, "a lost or doubled increment"
        counters[writer.number] = found


def wait_for_the_first_write(writers: list[Writer]):
    """A round without writes would prove nothing."""
    until = time.monotonic() + 30
    while not any(writer.inserted for writer in writers) and time.monotonic() < until:
        time.sleep(0.01)


def check_rounds(server, database: str, kill):
    with server.client() as client:
        client[database].things.create_index("unique", unique=True)
    counters = dict.fromkeys(range(WRITERS), 0)
    acknowledged = 0
    source = random.Random(4711)
    for round_number in range(ROUNDS):
        writers = [Writer(server.uri, database, n, round_number * 1_000_000) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        wait_for_the_first_write(writers)
        time.sleep(source.uniform(0.2, 1.2))
        killed_at = time.monotonic()
        kill()
        for writer in writers:
            writer.enough.set()
            writer.join(30)
            assert not writer.is_alive(), "a writer hangs"
        with server.client() as client:
            check_everything_acknowledged_is_there(client[database], writers, counters, killed_at)
            assert client[database].command("validate", "things")["valid"]
            # The unique index is whole, too.
            some = client[database].things.find_one()
            assert client[database].things.find_one({"unique": some["_id"]})["_id"] == some["_id"]
        acknowledged += sum(len(writer.inserted) for writer in writers)
    assert acknowledged > 5 * ROUNDS, "hardly anything was written: this shows nothing"


@pytest.mark.selkie_only
@pytest.mark.timeout(1200)
def test_selkie_is_killed(own_server, database_name):
    server = own_server()

    def kill():
        server.kill()
        server.start()

    check_rounds(server, database_name, kill)


@pytest.mark.mariadb_only
@pytest.mark.timeout(1200)
def test_mariadb_is_killed(own_server, database_name, tmp_path):
    """Selkie keeps running, returns errors to its clients, and reconnects when MariaDB is back."""
    mariadb = MariadbServer(tmp_path / "private").start()
    server = own_server(mariadb=mariadb)

    def kill():
        mariadb.kill()
        time.sleep(0.3)
        with pytest.raises(PyMongoError) as error, server.client(serverSelectionTimeoutMS=2000, retryWrites=False) as client:
            client[database_name].things.insert_one({"_id": f"while it is away {time.monotonic()}"})
        assert "MariaDB" in str(error.value) or error.value.has_error_label("RetryableWriteError"), error.value
        mariadb.start()
        wait_until_served(server, database_name)

    try:
        check_rounds(server, database_name, kill)
        assert server.is_running()
    finally:
        # Messages of its recovery.
        print(mariadb.end_of_log())
        server.kill()
        mariadb.remove()


def wait_until_served(server, database: str):
    end = time.monotonic() + 15
    while True:
        try:
            with server.client(serverSelectionTimeoutMS=1000) as client:
                client[database].things.find_one()
                return
        except PyMongoError:
            assert time.monotonic() < end, "Selkie does not find MariaDB again"
            time.sleep(0.1)
