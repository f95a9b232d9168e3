"""Collections and indexes defined by many clients at once, through two gateways on one MariaDB."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pymongo
import pytest
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import OperationFailure

MODELS, ROUNDS = 20, 4
NAMESPACE_NOT_FOUND, NAMESPACE_EXISTS, INDEX_NOT_FOUND = 26, 48, 27

INDEXES = [
    IndexModel([("key", ASCENDING)], unique=True),
    IndexModel([("createdAt", ASCENDING)]),
    IndexModel([("updatedAt", DESCENDING), ("key", ASCENDING)]),
    IndexModel([("title", "text")]),
]
NAMES = {"_id_", *(index.document["name"] for index in INDEXES)}


@pytest.fixture
def gateways(own_server, store, tmp_path):
    """Clients of two gateways on one MariaDB; on the embedded store, which only one process may
    open, of one gateway."""
    first = own_server()
    second = own_server(folder=tmp_path / "second") if store == "mariadb" else first
    with first.client(maxPoolSize=None) as one, second.client(maxPoolSize=None) as other:
        yield [one, other]


@pytest.fixture
def databases(gateways, database_name):
    """An empty database as both gateways show it, gone afterwards."""
    yield [client[database_name] for client in gateways]
    gateways[0].drop_database(database_name)


class Clients:
    """Threads that send commands at the same time; their first error is raised at the end."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(200)
        self.started = []

    def start(self, work, arguments) -> None:
        self.started += [self.pool.submit(work, *each) for each in arguments]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.pool.shutdown()
        for each in self.started:
            each.result()


def models(databases):
    """Each model, by way of each gateway."""
    return [(db[f"model{number}"],) for number in range(MODELS) for db in databases]


def may_fail(codes, call, *arguments, **options) -> None:
    """Calls the server, which may answer with one of these codes, as MongoDB does."""
    try:
        call(*arguments, **options)
    except OperationFailure as error:
        assert error.code in codes, error


def define(model) -> None:
    """Mongoose's commands for each model at the start of an application."""
    may_fail([NAMESPACE_EXISTS], model.database.command, "create", model.name)
    for index in INDEXES:
        model.create_indexes([index])


def names(collection) -> set[str]:
    return {index["name"] for index in collection.list_indexes()}


def test_models_are_defined_while_their_database_is_dropped(databases):
    for _ in range(ROUNDS):
        with Clients() as clients:
            clients.start(define, models(databases))
            for db in databases:
                db.client.drop_database(db.name)
            # Some are still at it.
            clients.start(lambda model: model.create_indexes(INDEXES), models(databases))
        for (model,) in models(databases):
            assert names(model) == NAMES, model.name


def insert(collection, number: int) -> None:
    collection.insert_one({"_id": number, "key": number, "title": "a b"})


def test_inserts_create_collections_concurrently_with_their_indexes(databases):
    for turn in range(ROUNDS):
        collections = [db[f"turn{turn}.{number}"] for number in range(MODELS // 2) for db in databases]
        with Clients() as clients:
            for number, collection in enumerate(collections):
                clients.start(insert, [(collection, 10 * number + each) for each in range(3)])
                clients.start(collection.create_indexes, [(INDEXES[:3],), (INDEXES[3:],)])
        for collection in collections:
            assert names(collection) == NAMES, collection.name
            assert collection.count_documents({}) == 6, collection.name
            assert collection.count_documents({"key": {"$gte": 0}}) == 6, collection.name


def redefine(collection, turn: int) -> None:
    """Changes a collection that others change at the same time, in one of many ways."""
    gone, there = [NAMESPACE_NOT_FOUND], [NAMESPACE_EXISTS]
    other = collection.database[f"other{turn % 3}"]
    match turn % 7:
        case 0:
            collection.drop()
        case 1:
            may_fail(gone + there, collection.rename, other.name)
        case 2:
            may_fail(gone, other.rename, collection.name, dropTarget=True)
        case 3:
            may_fail(gone, collection.database.command, "collMod", collection.name, validationLevel="moderate")
        case 4:
            may_fail(gone + [INDEX_NOT_FOUND], collection.drop_index, "createdAt_1")
        case 5:
            collection.create_indexes(INDEXES)
        case 6:
            collection.insert_many([{"key": f"{turn}.{number}.{id(collection)}"} for number in range(3)])


def test_collections_are_redefined_concurrently(databases):
    for turn in range(ROUNDS):
        with Clients() as clients:
            steps = itertools.product(range(7 * turn, 7 * turn + 7), range(4), databases)
            clients.start(redefine, [(db[f"model{number}"], turn) for turn, number, db in steps])
        for db in databases:
            for name in db.list_collection_names():
                db[name].create_indexes(INDEXES)
                assert names(db[name]) == NAMES, name
