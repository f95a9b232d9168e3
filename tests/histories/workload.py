"""Clients that append to lists and read them, in transactions and outside of them.

A list is a document `{_id, list, last, group}`. `last` is the element appended last. It has a
unique index, and shows in an event of a change stream which element was appended. Each list gets
some 40 elements, and then a new one takes its place.
"""

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable

import pymongo
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

from .record import History, Transaction

LISTS, LENGTH = 8, 40
UNKNOWN, TRANSIENT = "UnknownTransactionCommitResult", "TransientTransactionError"
# Each request is sent once, so that a lost reply is recorded as an unknown outcome.
ONCE = {"retryWrites": False, "retryReads": False}
TIMEOUTS = {"serverSelectionTimeoutMS": 2000, "connectTimeoutMS": 2000, "socketTimeoutMS": 10_000}
# Errors after which a write may have happened.
INTERRUPTIONS = {6, 7, 89, 91, 11600, 11602}


class Lists:
    """The lists that are appended to now, and elements that were never used."""

    def __init__(self):
        self.elements = itertools.count(1)
        self.appends = [itertools.count() for _ in range(LISTS)]
        self.generations = [0] * LISTS

    def pick(self, rng: random.Random) -> int:
        slot = rng.randrange(LISTS)
        return self.generations[slot] * LISTS + slot

    def next(self, key: int) -> int:
        slot = key % LISTS
        self.generations[slot] = next(self.appends[slot]) // LENGTH
        return next(self.elements)


def group_of(key: int) -> int:
    """The lists of a generation are a group, which has an index."""
    return key // LISTS


def appended(key: int, element: int, with_group: bool = True) -> dict:
    update = {"$push": {"list": element}, "$set": {"last": element}}
    return update | ({"$setOnInsert": {"group": group_of(key)}} if with_group else {})


class Client:
    """One client. Its operations fit any list; each is executed in a session or, without one, on
    its own."""

    def __init__(self, number: int, collection: pymongo.collection.Collection, lists: Lists, history: History,
                 rng: random.Random, resolves: bool):
        self.number, self.collection, self.lists, self.history, self.rng = number, collection, lists, history, rng
        # Whether a commit without a reply is repeated until it has one.
        self.resolves = resolves

    def run(self, is_over: Callable[[], bool]):
        while not is_over():
            transaction = Transaction(self.number)
            try:
                if self.rng.random() < 0.15:
                    self.alone(transaction)
                else:
                    with self.collection.database.client.start_session(causal_consistency=False) as session:
                        self.together(transaction, session, is_over)
            except PyMongoError:
                # The server is away. An outcome that is known already stays.
                if not transaction.outcome:
                    transaction.end("aborted")
                time.sleep(0.01)
            if transaction.operations:
                self.history.add(transaction)

    def alone(self, transaction: Transaction):
        """One operation outside of a transaction."""
        act = self.rng.choice([self.push, self.push, self.find, self.find_and_modify])
        try:
            act(transaction, None)
            transaction.end("committed")
        except ConnectionFailure:
            transaction.end("unknown")
        except OperationFailure as error:
            transaction.end("unknown" if error.code in INTERRUPTIONS else "aborted")

    def together(self, transaction: Transaction, session, is_over: Callable[[], bool]):
        reads = [self.find, self.find_some, self.find_group, self.aggregate]
        writes = [self.push, self.push, self.replace, self.find_and_modify, self.delete_and_insert]
        kinds = self.rng.choice([reads, writes, reads + writes, reads + writes])
        session.start_transaction()
        try:
            for _ in range(self.rng.randrange(1, 6)):
                self.rng.choice(kinds)(transaction, session)
                # Time for others to commit.
                time.sleep(self.rng.choice([0, 0, 0.003, 0.01]))
            gives_up = self.rng.random() < 0.05
        except PyMongoError:
            gives_up = True
        if gives_up:
            with contextlib.suppress(PyMongoError):
                session.abort_transaction()
            transaction.end("aborted")
        else:
            transaction.end(self.commit(session, is_over))

    def commit(self, session, is_over: Callable[[], bool]) -> str:
        outcome = commit_once(session)
        while outcome == "unknown" and self.resolves and not is_over():
            time.sleep(0.01)
            outcome = commit_once(session)
        return outcome

    def push(self, transaction, session):
        key = self.lists.pick(self.rng)
        element = self.lists.next(key)
        transaction.append(key, element)
        self.collection.update_one({"_id": key}, appended(key, element), upsert=True, session=session)

    def find_and_modify(self, transaction, session):
        key = self.lists.pick(self.rng)
        element = self.lists.next(key)
        transaction.append(key, element)
        document = self.collection.find_one_and_update(
            {"_id": key}, appended(key, element), upsert=True, return_document=pymongo.ReturnDocument.AFTER, session=session)
        transaction.read(key, document)

    def find(self, transaction, session):
        key = self.lists.pick(self.rng)
        transaction.read(key, self.collection.find_one({"_id": key}, session=session))

    def find_some(self, transaction, session):
        keys = {self.lists.pick(self.rng) for _ in range(3)}
        found = {one["_id"]: one for one in self.collection.find({"_id": {"$in": sorted(keys)}}, session=session)}
        for key in keys:
            transaction.read(key, found.get(key))

    def find_group(self, transaction, session):
        """By an index. A list that is not found is empty."""
        group = group_of(self.lists.pick(self.rng))
        found = {one["_id"]: one for one in self.collection.find({"group": group}, batch_size=2, session=session)}
        for key in range(group * LISTS, (group + 1) * LISTS):
            transaction.read(key, found.get(key))

    def aggregate(self, transaction, session):
        key = self.lists.pick(self.rng)
        stages = [{"$match": {"_id": {"$gte": key}}}, {"$sort": {"_id": 1}}, {"$limit": 1}]
        found = [one for one in self.collection.aggregate(stages, session=session) if one["_id"] == key]
        transaction.read(key, found[0] if found else None)

    def replace(self, transaction, session):
        """Computes the list in the client, as an object mapper does."""
        key = self.lists.pick(self.rng)
        document = self.collection.find_one({"_id": key}, session=session)
        transaction.read(key, document)
        element = self.lists.next(key)
        transaction.append(key, element)
        longer = {"list": [*(document["list"] if document else []), element], "last": element, "group": group_of(key)}
        self.collection.replace_one({"_id": key}, longer, upsert=True, session=session)

    def delete_and_insert(self, transaction, session):
        key = self.lists.pick(self.rng)
        document = self.collection.find_one_and_delete({"_id": key}, session=session)
        transaction.read(key, document)
        element = self.lists.next(key)
        transaction.append(key, element)
        longer = [*(document["list"] if document else []), element]
        self.collection.insert_one({"_id": key, "list": longer, "last": element, "group": group_of(key)}, session=session)


def commit_once(session) -> str:
    """Sends commitTransaction, and returns the outcome."""
    try:
        session.commit_transaction()
    except PyMongoError as error:
        return "unknown" if error.has_error_label(UNKNOWN) or not error.has_error_label(TRANSIENT) else "aborted"
    return "committed"


def prepare(collection):
    collection.drop()
    collection.create_index("last", unique=True)
    collection.create_index("group")


def read_all(collection, history: History):
    """Reads all lists in one transaction, when all others have ended."""
    transaction = Transaction(0)
    with collection.database.client.start_session() as session, session.start_transaction():
        documents = list(collection.find({"list": {"$exists": True}}, session=session))
    found = {document["_id"]: document for document in documents}
    written = {operation["append"][0] for one in history.transactions for operation in one.operations if "append" in operation}
    for key in sorted(written | set(found)):
        transaction.read(key, found.get(key))
    transaction.end("committed")
    history.add(transaction)


def record(connect: Callable[..., pymongo.MongoClient], database: str, seconds: float, seed: int, clients: int = 8,
           resolves: bool = False, **options) -> History:
    """Runs clients for some seconds and returns their history. `connect` opens a client with these
    options. With `resolves`, commits are repeated until their outcome is known."""
    history, lists = History(), Lists()
    end = time.monotonic() + seconds
    failures: list[BaseException] = []

    def work(number: int):
        try:
            with connect(**{**ONCE, **TIMEOUTS, **options}) as client:
                rng = random.Random(f"{seed} {number}")
                Client(number, client[database].lists, lists, history, rng, resolves).run(lambda: time.monotonic() > end)
        except BaseException as error:  # noqa: BLE001  whatever it is, the test has to see it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number + 1,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return history
