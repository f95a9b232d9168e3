"""Collections that Spider distributes over two data servers."""

import random
import threading
from uuid import uuid4

import pytest
from bson import SON, Binary, Int64, ObjectId
from pymongo import IndexModel, InsertOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

from support.selkie import SelkieServer, program
from support.topology import SpiderHead, spider_plugin, until
from support.wire import Wire

pytestmark = [
    pytest.mark.selkie_only, pytest.mark.mariadb_only,
    pytest.mark.skipif(not spider_plugin(), reason="Spider is not installed"),
]

# The privileges that the documentation names.
ACCOUNT = (
    "CREATE USER documents@'%' IDENTIFIED BY 'secret'",
    "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER, LOCK TABLES ON *.* TO documents@'%'",
    "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO documents@'%'",
)


class Gateway(SelkieServer):
    """Selkie on a head, with sharding."""

    def __init__(self, folder, head: SpiderHead, shards: str = '["data1", "data2"]', more: str = ""):
        super().__init__(folder)
        self.file = folder / "selkie.toml"
        self.file.write_text(
            f'listen = ["127.0.0.1:{self.port}"]\nthreads = 2\n[store]\n'
            f'mariadb = "{head.head.tcp_url("documents", "secret")}"\nshards = {shards}\n{more}'
        )

    def command(self) -> list[str]:
        return [program(), "serve", "--config", str(self.file)]


@pytest.fixture(scope="module")
def head(store, tmp_path_factory):
    head = SpiderHead(tmp_path_factory.mktemp("spider"))
    for statement in ACCOUNT:
        head.head.sql(statement)
    yield head
    head.remove()


@pytest.fixture(scope="module")
def gateway(head, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), head).start()
    yield gateway
    gateway.remove()


@pytest.fixture(scope="module")
def client(gateway):
    with gateway.client() as client:
        yield client


@pytest.fixture
def db(client, request):
    db = client[request.node.name.partition("[")[0][-30:]]
    yield db
    client.drop_database(db.name)


def shard(collection, key=None):
    client, name = collection.database.client, f"{collection.database.name}.{collection.name}"
    return client.admin.command("shardCollection", name, key=key or {"_id": 1})


def data_tables(server) -> set[str]:
    return {name for (name,) in server.sql("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'selkie_shards'")}


def rows(head, collection) -> list[int]:
    """Returns how many documents each data server has."""
    counts = []
    for server in head.data:
        [table] = [name for name in data_tables(server) if name.startswith(f"{collection.database.name}_{collection.name}_")]
        counts.append(server.sql(f"SELECT COUNT(*) FROM selkie_shards.`{table}`")[0][0])
    return counts


def code_of(action, *arguments, **options) -> int:
    with pytest.raises(OperationFailure) as error:
        action(*arguments, **options)
    return error.value.code


def selects(head) -> list[int]:
    return [int(server.sql("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1]) for server in head.data]


def asked(head, action) -> list[bool]:
    """Returns which data servers are asked for rows."""
    action()
    before = selects(head)
    action()
    return [after > before for before, after in zip(before, selects(head))]


def test_shards_are_listed(client, db, head):
    addresses = [f"127.0.0.1:{server.port}" for server in head.data]
    shards = client.admin.command("listShards")["shards"]
    assert [(shard["_id"], shard["host"], shard["state"]) for shard in shards] == [
        ("data1", addresses[0], 1), ("data2", addresses[1], 1)
    ]
    assert [*client.config.shards.find()] == shards
    assert client.admin.command("getShardMap")["map"] == dict(zip(["data1", "data2"], addresses))
    assert client.admin.command("hello")["msg"] == "isdbgrid" and client.admin.command("isdbgrid")["isdbgrid"] == 1
    assert client.config.version.find_one()["currentVersion"] == 6
    db.plain.insert_one({})
    shard(db.one, {"_id": "hashed"})
    [listed] = client.config.collections.find({"_id": f"{db.name}.one"})
    assert listed["key"] == {"_id": "hashed"} and listed["uuid"] == db.one.options() or listed["uuid"]
    assert client.config.databases.find_one({"_id": db.name})["partitioned"]
    assert {one["name"] for one in db.list_collections()} == {"one", "plain"}


def test_wrong_inputs(client, db):
    admin = client.admin
    assert admin.command("enableSharding", db.name)["ok"] == admin.command("enableSharding", db.name)["ok"] == 1
    assert code_of(admin.command, "enableSharding", "a b") == 73
    assert code_of(admin.command, "enableSharding", "admin") == 72
    assert code_of(admin.command, "enableSharding", 1) == 14
    assert code_of(client.test.command, "enableSharding", "x") == 13
    assert shard(db.c)["collectionsharded"] == f"{db.name}.c"
    # Again by the same key, and by another.
    assert shard(db.c)["ok"] == 1
    assert code_of(shard, db.c, {"_id": "hashed"}) == 23
    for key, code in (
        ({}, 2), ({"_id": -1}, 2), ({"_id": "text"}, 2), (SON([("_id", 1), ("a", 1)]), 72), ({"a": 1}, 72), ({"a": "hashed"}, 72),
    ):
        assert code_of(admin.command, "shardCollection", f"{db.name}.d", key=key) == code, key
    name = f"{db.name}.d"
    assert code_of(admin.command, "shardCollection", "nodot", key={"_id": 1}) == 73
    assert code_of(admin.command, "shardCollection", name) == 40414
    assert code_of(admin.command, "shardCollection", name, key={"_id": 1}, odd=1) == 40415
    assert code_of(admin.command, "shardCollection", name, key={"_id": "hashed"}, unique=True) == 72
    assert code_of(admin.command, "shardCollection", "config.d", key={"_id": 1}) == 20
    assert code_of(admin.command, "shardCollection", name, key={"_id": 1}, collation={"locale": "de"}) == 72
    db.create_collection("capped", capped=True, size=4096)
    assert code_of(shard, db.capped) == 72
    db.create_collection("view", viewOn="c", pipeline=[])
    assert code_of(shard, db.view) == 166
    assert "d" not in db.list_collection_names()


def document(number: int) -> dict:
    kinds = (number, float(number) + 0.5, f"name {number} é'\\\"", ObjectId(f"{number:024x}"), {"a": number}, Int64(2**40 + number))
    return {
        "_id": kinds[number % len(kinds)], "n": number % 17, "text": "x" * (number % 50), "list": list(range(number % 4)),
        "sub": {"a": number % 5, "b": [{"c": number % 3}]},
    }


QUERIES = (
    {}, {"n": 3}, {"_id": 6}, {"_id": {"$in": [0, 12, "name 2 é'\\\"", 7.5]}}, {"_id": {"$gt": 20}}, {"sub.a": {"$gte": 3}},
    {"list": 2}, {"text": {"$regex": "^x{10}"}}, {"$or": [{"n": 1}, {"sub.b.c": 2}]}, {"_id": {"$type": "objectId"}},
)

PIPELINES = (
    [{"$group": {"_id": "$n", "count": {"$sum": 1}, "most": {"$max": "$sub.a"}}}, {"$sort": {"_id": 1}}],
    [{"$match": {"n": {"$lt": 5}}}, {"$sort": {"sub.a": -1, "_id": 1}}, {"$skip": 3}, {"$limit": 20}],
    [{"$unwind": "$list"}, {"$sortByCount": "$list"}, {"$sort": {"_id": 1}}],
    [{"$count": "all"}],
)


def check_equal(left, right, indexed: bool = False):
    """Compares two collections. Those with indexes have no order of their own."""
    for query in QUERIES:
        found = [sorted(one.find(query), key=str) if indexed else [*one.find(query)] for one in (left, right)]
        assert found[0] == found[1], query
        assert left.count_documents(query) == right.count_documents(query), query
        for sort in ([("_id", 1)], [("_id", -1)], [("n", 1), ("_id", -1)], [("$natural", -1)]):
            assert [*left.find(query).sort(sort).skip(2).limit(30)] == [*right.find(query).sort(sort).skip(2).limit(30)], (query, sort)
    for pipeline in PIPELINES:
        assert [*left.aggregate(pipeline)] == [*right.aggregate(pipeline)], pipeline
    assert left.estimated_document_count() == right.estimated_document_count()
    assert sorted(map(str, left.distinct("_id"))) == sorted(map(str, right.distinct("_id")))
    assert [*left.find().batch_size(7)] == [*right.find()]


def change(collection, seed: int) -> list:
    """Makes random changes; returns their outcomes."""
    choice, outcomes = random.Random(seed), []
    for _ in range(60):
        number = choice.randrange(300)
        kind = choice.randrange(7)
        one, some = {"_id": document(number)["_id"]}, {"n": number % 17, "sub.a": number % 5}
        if kind == 0:
            outcomes.append(collection.update_one(one, {"$inc": {"n": 1}, "$push": {"list": number}}).raw_result["nModified"])
        elif kind == 1:
            outcomes.append(collection.update_many(some, {"$set": {"text": f"new {number}"}}).modified_count)
        elif kind == 2:
            outcomes.append(collection.delete_one(one).deleted_count)
        elif kind == 3:
            outcomes.append(collection.replace_one(one, {"n": number, "replaced": True}, upsert=True).matched_count)
        elif kind == 4:
            outcomes.append(collection.find_one_and_update(some, {"$inc": {"n": 17}}, sort=[("_id", 1)]))
        elif kind == 5:
            outcomes.append(collection.delete_many({"n": number % 17, "list": 3}).deleted_count)
        else:
            try:
                outcomes.append(len(collection.insert_many([document(number + at) for at in range(3)]).inserted_ids))
            except BulkWriteError as error:
                [refused] = error.details["writeErrors"]
                outcomes.append((error.details["nInserted"], refused["index"], refused["code"], refused["keyValue"]))
    return outcomes


def test_a_sharded_collection_is_as_another_one(db, head):
    shard(db.sharded)
    documents = [document(number) for number in range(200)]
    for collection in (db.sharded, db.plain):
        collection.insert_many(documents)
    assert all(count > 50 for count in rows(head, db.sharded)) and sum(rows(head, db.sharded)) == 200
    check_equal(db.sharded, db.plain)
    for seed in range(4):
        assert change(db.sharded, seed) == change(db.plain, seed)
    check_equal(db.sharded, db.plain)
    stats = db.command("collStats", "sharded")
    assert stats["count"] == db.plain.count_documents({}) and stats["sharded"]
    assert not db.command("collStats", "plain")["sharded"]
    assert code_of(db.command, "convertToCapped", "sharded", size=4096) == 20
    assert code_of(db.plain.aggregate, [{"$out": "sharded"}]) == 28769
    db.sharded.aggregate([{"$match": {"n": 3}}, {"$out": "copied"}])
    assert [*db.copied.find()] == [*db.plain.find({"n": 3})]
    assert db.validate_collection("sharded")["valid"]
    assert db.sharded.find({"_id": 6}).explain()["ok"] == 1
    assert len([*db.sharded.aggregate([{"$sample": {"size": 9}}])]) == 9
    joined = [{"$lookup": {"from": "sharded", "localField": "_id", "foreignField": "_id", "as": "same"}}, {"$match": {"same": {"$size": 1}}}]
    assert len([*db.plain.aggregate(joined)]) == db.plain.count_documents({})


def test_unordered_inserts_and_bulk_writes(db):
    shard(db.c)
    with pytest.raises(BulkWriteError) as error:
        db.c.insert_many([{"_id": number % 7} for number in range(10)], ordered=False)
    assert [refused["index"] for refused in error.value.details["writeErrors"]] == [7, 8, 9]
    assert error.value.details["nInserted"] == 7
    with pytest.raises(DuplicateKeyError) as error:
        db.c.insert_one({"_id": 3})
    assert error.value.details["keyValue"] == {"_id": 3} and error.value.details["keyPattern"] == {"_id": 1}
    with pytest.raises(BulkWriteError) as error:
        db.c.insert_many([{"_id": 20}, {"_id": 21}, {"_id": 3}, {"_id": 22}])
    assert error.value.details["nInserted"] == 2
    assert sorted(db.c.distinct("_id")) == [*range(7), 20, 21]
    db.c.bulk_write([InsertOne({"_id": 30}), UpdateOne({"_id": 30}, {"$set": {"a": 1}}), UpdateOne({"_id": 31}, {"$set": {"a": 2}}, upsert=True)])
    assert db.c.count_documents({"a": {"$gt": 0}}) == 2
    large = [{"_id": 100 + number, "text": "y" * 3000} for number in range(800)]
    db.c.insert_many(large)
    assert [one["_id"] for one in db.c.find({"_id": {"$gte": 100}})] == [one["_id"] for one in large]


INDEXES = (
    IndexModel([("n", 1)]), IndexModel([("sub.a", -1), ("n", 1)], name="two"), IndexModel([("list", 1)]), IndexModel([("text", "hashed")]),
    IndexModel([("sub.b.c", 1)], sparse=True), IndexModel([("text", 1)], partialFilterExpression={"n": {"$gt": 8}}, name="some é'"),
    IndexModel([("näme.x'", 1)]),
)


def key_names(server, table: str) -> set[str]:
    return {key for _, _, key, *_ in server.sql(f"SHOW INDEX FROM selkie_shards.`{table}`")} - {"PRIMARY"}


def test_indexes_of_sharded_collections(db, head):
    shard(db.sharded)
    documents = [{**document(number), "näme": {"x'": f"é{number % 9}"}} for number in range(200)]
    for collection in (db.sharded, db.plain):
        collection.insert_many(documents[:150])
        assert len(collection.create_indexes([*INDEXES])) == len(INDEXES)
        collection.insert_many(documents[150:])
    check_equal(db.sharded, db.plain, indexed=True)
    for seed in range(3):
        assert change(db.sharded, seed) == change(db.plain, seed)
    check_equal(db.sharded, db.plain, indexed=True)
    for query in ({"näme.x'": "é3"}, {"sub.a": 2, "n": {"$gte": 4}}, {"text": {"$gt": "xxx"}, "n": {"$gt": 9}}, {"list": {"$in": [1, 3]}}):
        assert [*db.sharded.find(query).sort("_id")] == [*db.plain.find(query).sort("_id")] != [], query
    assert [index["name"] for index in db.sharded.list_indexes()] == [index["name"] for index in db.plain.list_indexes()]
    plan = db.sharded.find({"n": 3}).explain()["queryPlanner"]["winningPlan"]
    assert "IXSCAN" in str(plan) and "n_1" in str(plan), plan
    [table] = [name for name in data_tables(head.data[0]) if name.startswith(f"{db.name}_sharded_")]
    with_indexes = [key_names(server, table) for server in head.data]
    assert len(with_indexes[0]) > 7 and with_indexes[0] == with_indexes[1]
    db.sharded.rename("renamed")
    db.renamed.drop_index("two")
    db.renamed.create_index([("n", 1), ("text", 1)])
    assert "n_1_text_1" in db.renamed.index_information()
    db.renamed.drop_indexes()
    db.plain.drop_indexes()
    assert [key_names(server, table) for server in head.data] == [{"id", "id_key"}] * 2
    assert not [name for name, *_ in head.data[0].sql(f"SHOW COLUMNS FROM selkie_shards.`{table}`") if "~" in name]
    check_equal(db.renamed, db.plain)


def test_indexes_that_are_refused(db):
    shard(db.c)
    for keys, options in (
        ([("a", 1)], {"unique": True}), ([("_id", 1), ("a", 1)], {"unique": True}), ([("a", "text")], {}), ([("a", "2dsphere")], {}),
        ([("$**", 1)], {}), ([("a", 1)], {"collation": {"locale": "de"}}),
    ):
        assert code_of(db.c.create_index, keys, **options) == 67, (keys, options)
    assert [*db.c.index_information()] == ["_id_"]
    db.c.insert_many([{"a": [1, 2], "b": [1]}, {"a": 1, "b": [1, 2]}])
    assert code_of(db.c.create_index, [("a", 1), ("b", 1)]) == 171
    assert [*db.c.index_information()] == ["_id_"]
    db.unique.create_index("a", unique=True)
    assert code_of(shard, db.unique) == 72
    db.unique.drop()


def test_a_collection_with_indexes_is_sharded(db):
    for collection in (db.sharded, db.plain):
        collection.create_indexes([*INDEXES])
        collection.insert_many([document(number) for number in range(100)])
    shard(db.sharded)
    check_equal(db.sharded, db.plain, indexed=True)
    assert change(db.sharded, 1) == change(db.plain, 1)
    check_equal(db.sharded, db.plain, indexed=True)
    assert len(db.sharded.index_information()) == len(INDEXES) + 1


def test_writes_go_on_while_an_index_is_made(db):
    shard(db.c)
    db.c.insert_many([{"_id": number, "n": number % 10} for number in range(3000)])
    ended, written, failures = threading.Event(), [], []

    def write(of: int):
        number = 10_000 * (of + 1)
        try:
            while not ended.is_set():
                db.c.insert_one({"_id": number, "n": number % 10})
                db.c.update_one({"_id": number % 3000}, {"$inc": {"n": 10}})
                written.append(number)
                number += 1
        except OperationFailure as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(of,)) for of in range(2)]
    for writer in writers:
        writer.start()
    try:
        for name in ("n", "m", "k"):
            db.c.create_index(name)
        db.c.drop_index("m_1")
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    assert not failures and len(written) > 2
    documents = {one["_id"]: one["n"] for one in db.c.find()}
    assert len(documents) == 3000 + len(written)
    by_index = {one["_id"]: one["n"] for one in db.c.find({"n": {"$gte": 0}}).hint("n_1")}
    assert by_index == documents


def test_streams_and_caches_see_all_changes(db, head, client, tmp_path):
    """The head's binary log has the changes of all data servers."""
    shard(db.c)
    gateway = Gateway(tmp_path, head, more='oplog = true\n[cache]\nmode = "both"\n').start()
    try:
        with gateway.client() as other:
            seen = other[db.name].c
            with seen.watch() as stream:
                for turn in range(3):
                    db.c.insert_many([{"_id": 10 * turn + number, "n": 0} for number in range(4)])
                    # The cache follows the log of another gateway's writes.
                    until(lambda turn=turn: seen.count_documents({}) == 4 * (turn + 1))
                    db.c.update_one({"_id": 10 * turn}, {"$set": {"n": 1}})
                    until(lambda turn=turn: seen.find_one({"_id": 10 * turn})["n"] == 1)
                    db.c.delete_one({"_id": 10 * turn + 1})
                    db.c.insert_one({"_id": 10 * turn + 1})
                changes = [next(stream) for _ in range(21)]
            kinds = [change["operationType"] for change in changes]
            assert kinds == [*["insert"] * 4, "update", "delete", "insert"] * 3
            assert [change["documentKey"]["_id"] for change in changes][:7] == [0, 1, 2, 3, 0, 1, 1]
            assert changes[4]["updateDescription"]["updatedFields"] == {"n": 1}
    finally:
        gateway.remove()


def test_lookups_by_id_reach_one_server(db, head):
    shard(db.c)
    db.c.insert_many([{"_id": number, "n": number % 3} for number in range(100)])
    reached = [asked(head, lambda number=number: db.c.find_one({"_id": number})) for number in range(12)]
    assert {tuple(one) for one in reached} == {(True, False), (False, True)}
    updated = [asked(head, lambda number=number: db.c.update_one({"_id": number}, {"$inc": {"n": 1}})) for number in range(6)]
    assert all(any(one) for one in updated)
    assert asked(head, lambda: [*db.c.find({"n": 1})]) == [True, True]
    assert asked(head, lambda: db.c.count_documents({})) == [True, True]


def test_documents_move_to_the_shards(db, head):
    for number in range(300):
        db.c.insert_one({"_id": number, "text": f"it's \\ {number}"})
    before, uuid = [*db.c.find()], next(db.list_collections())["info"]["uuid"]
    written, ended = [], threading.Event()

    def write():
        number = 1000
        while not ended.is_set():
            db.c.insert_one({"_id": number})
            db.c.update_one({"_id": 5}, {"$inc": {"n": 1}})
            written.append(number)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(written) < 5:
            pass
        shard(db.c)
        then = len(written)
        while len(written) < then + 5:
            assert writer.is_alive()
    finally:
        ended.set()
        writer.join()
    assert [*db.c.find({"_id": {"$lt": 1000, "$ne": 5}})] == [one for one in before if one["_id"] != 5]
    assert [one["_id"] for one in db.c.find({"_id": {"$gte": 1000}})] == written
    assert db.c.find_one({"_id": 5})["n"] == len(written)
    assert sum(rows(head, db.c)) == db.c.count_documents({}) == 300 + len(written)
    assert next(db.list_collections())["info"]["uuid"] == uuid


def test_collections_are_renamed_and_dropped(db, head, client):
    before = [data_tables(server) for server in head.data]
    for name in ("a", "b", "c"):
        shard(db[name])
        db[name].insert_many([{"_id": number, "of": name} for number in range(10)])
    db.plain.insert_one({"of": "plain"})
    db.a.rename("d")
    assert db.d.count_documents({"of": "a"}) == 10 and "a" not in db.list_collection_names()
    db.d.insert_one({"_id": 77})
    db.d.rename("b", dropTarget=True)
    assert db.b.count_documents({}) == 11 and db.b.count_documents({"of": "b"}) == 0
    assert [len(data_tables(server) - old) for server, old in zip(head.data, before)] == [2, 2]
    db.c.drop()
    db.create_collection("c")
    assert db.c.count_documents({}) == 0
    db.plain.drop()
    client.drop_database(db.name)
    assert [data_tables(server) for server in head.data] == before
    assert [*client.config.collections.find({"_id": {"$regex": f"^{db.name}"}})] == []


def test_transactions_are_refused(db, client):
    shard(db.c)
    db.c.insert_one({"_id": 1})
    for action in (
        lambda session: db.c.insert_one({"_id": 2}, session=session), lambda session: db.c.find_one({"_id": 1}, session=session),
        lambda session: db.c.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session), lambda session: db.c.count_documents({}, session=session),
    ):
        with client.start_session() as session:
            session.start_transaction()
            db.plain.insert_one({}, session=session)
            assert code_of(action, session) == 263
            session.abort_transaction()
    assert [*db.c.find()] == [{"_id": 1}]


def test_writes_are_retried(db, gateway):
    shard(db.c)
    session = {"id": Binary(uuid4().bytes, 4)}
    for number, (command, expected) in enumerate((
        ({"insert": "c", "documents": [{"_id": 1, "n": 0}, {"_id": 2, "n": 0}]}, 2),
        ({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}, 1),
        ({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}, 1),
    ), 1):
        with Wire(gateway.port) as wire:
            for _ in range(3):
                reply = wire.run({**command, "$db": db.name, "lsid": session, "txnNumber": Int64(number)})
                assert reply["ok"] == 1 and reply["n"] == expected, reply
    assert [*db.c.find()] == [{"_id": 1, "n": 1}]


def test_a_data_server_is_down(db, head):
    shard(db.c)
    db.c.insert_many([{"_id": number} for number in range(12)])
    first = {number for number in range(12) if asked(head, lambda number=number: db.c.find_one({"_id": number}))[0]}
    assert 0 < len(first) < 12
    head.data[1].kill()
    try:
        for number in range(12):
            if number in first:
                assert db.c.find_one({"_id": number}) == {"_id": number}
                assert db.c.update_one({"_id": number}, {"$set": {"a": 1}}).modified_count == 1
        held = min({*range(12)} - first)
        for action in (lambda: db.c.find_one({"_id": held}), lambda: [*db.c.find()], lambda: db.c.count_documents({})):
            with pytest.raises(OperationFailure) as error:
                action()
            assert error.value.code == 6 and "data2" in str(error.value), error.value
        assert code_of(db.c.drop) == 6
        with pytest.raises(OperationFailure):
            db.c.insert_many([{"_id": number} for number in range(100, 120)])
    finally:
        head.data[1].start()
    assert db.c.count_documents({"a": 1}) == len(first)
    assert db.c.count_documents({"_id": {"$gte": 100}}) == 0
    db.c.insert_many([{"_id": number} for number in range(100, 120)])


def test_large_documents(db, head):
    shard(db.c)
    # Half of the bytes are escaped twice: as JSON, and in Spider's statements.
    documents = [{"_id": number, "text": '"a\\é' * 500_000} for number in range(2)]
    for one in documents:
        db.c.insert_one(one)
    assert db.c.update_many({}, {"$set": {"n": 1}}).modified_count == 2
    assert [*db.c.find()] == [{**one, "n": 1} for one in documents]


def test_data_servers_are_checked(db, head):
    head.data[1].sql("SET GLOBAL max_allowed_packet = 16777216")
    before = [data_tables(server) for server in head.data]
    try:
        with pytest.raises(OperationFailure) as error:
            shard(db.c)
        assert error.value.code == 72 and "max_allowed_packet" in str(error.value) and '"data2"' in str(error.value)
    finally:
        head.data[1].sql("SET GLOBAL max_allowed_packet = 134217728")
    assert [data_tables(server) for server in head.data] == before


def test_the_head_is_killed(db, head):
    shard(db.c)
    db.c.create_index("n")
    db.c.insert_many([{"_id": number, "n": number % 3} for number in range(20)])
    head.head.kill()
    head.head.start()
    assert until(lambda: db.c.count_documents({}) == 20)
    db.c.insert_many([{"_id": number, "n": number % 3} for number in range(20, 40)])
    assert [one["_id"] for one in db.c.find()] == [*range(40)]
    assert sorted(one["_id"] for one in db.c.find({"n": 1})) == [*range(1, 40, 3)]


def refusal(folder, head, **options) -> str:
    gateway = Gateway(folder, head, **options)
    with pytest.raises(AssertionError) as error:
        gateway.start()
    return str(error.value)


def test_configurations_are_checked(head, tmp_path):
    for number, (shards, reason) in enumerate((
        ('["data1", "data9"]', 'MariaDB knows no server "data9"'), ("[]", "a list of servers"),
        ('["data1", "data1"]', "named twice"), ('"data1"', "a list of servers"), ('["it\'s"]', "letters, digits"),
    )):
        message = refusal(tmp_path / str(number), head, shards=shards)
        assert reason in message and "selkie.toml:5" in message, message
    message = refusal(tmp_path / "standalone", head, more='[mongodb]\ntopology = "standalone"\n')
    assert "only a router has shards" in message, message


def test_without_shards_there_is_no_sharding(head, tmp_path):
    with SelkieServer(tmp_path, head.head).start().client() as client:
        for command in ("enableSharding", "shardCollection"):
            assert code_of(client.admin.command, command, "x.y", key={"_id": 1}) == 59
        assert [shard["_id"] for shard in client.admin.command("listShards")["shards"]] == ["selkie"]
        assert client.admin.command("getShardMap", check=False)["code"] == 203
