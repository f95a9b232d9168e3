"""A change stream that is followed while a history is recorded, over all failures of the server."""

import threading
import time

from pymongo.errors import PyMongoError

PATIENCE_S = 60


class Follower:
    """Follows a collection, and resumes behind the last event by itself: the driver's own
    resumption is not enough when a server is away for long. `changes_of` returns the parts of an
    event to collect."""

    def __init__(self, connect, database: str, collection: str = "lists", changes_of=None):
        self.connect, self.database, self.collection = connect, database, collection
        self.changes_of = changes_of or element_of
        self.events: list = []
        self.resumed = 0
        self.failure: BaseException | None = None
        self.is_open = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.is_open.wait(PATIENCE_S), f"no change stream was opened: {self.failure}"
        return self

    def __exit__(self, *_):
        pass

    def run(self):
        try:
            with self.connect(serverSelectionTimeoutMS=2000, retryReads=False) as client:
                self.follow(client[self.database][self.collection])
        except BaseException as error:  # noqa: BLE001  whatever it is, the test has to see it
            self.failure = error

    def follow(self, collection):
        token, deadline = None, time.monotonic() + PATIENCE_S
        while True:
            try:
                with collection.watch(resume_after=token, max_await_time_ms=200) as stream:
                    # The place of a stream without events.
                    token = token or stream.resume_token
                    self.is_open.set()
                    while True:
                        event = stream.try_next()
                        token = stream.resume_token or token
                        if event is None:
                            continue
                        deadline = time.monotonic() + PATIENCE_S
                        if event["documentKey"]["_id"] == "end":
                            return
                        self.events += self.changes_of(event)
            except PyMongoError:
                if time.monotonic() > deadline:
                    raise
                self.resumed += 1
                time.sleep(0.02)

    def finish(self, collection) -> list:
        """Makes a last change, and returns all changes before it when its event has arrived."""
        collection.update_one({"_id": "end"}, {"$set": {"last": "end"}}, upsert=True)
        self.thread.join(PATIENCE_S)
        assert self.failure is None, self.failure
        assert not self.thread.is_alive(), "the change stream does not show the last change"
        return self.events


def element_of(event: dict) -> list[tuple[int, int]]:
    """The element that a change has appended."""
    key = event["documentKey"]["_id"]
    if event["operationType"] == "update":
        changed = event["updateDescription"]["updatedFields"]
        return [(key, changed["last"])] if "last" in changed else []
    if event["operationType"] in ("insert", "replace"):
        return [(key, event["fullDocument"]["last"])]
    return []
