"""The document cache: cached commands, invalidation, and no stale replies."""

import threading
from urllib.parse import quote_plus

import pymongo
import pytest
from pymongo.errors import OperationFailure

from blackbox.test_operations import refuses
from blackbox.test_wire import crc32c, with_checksum
from support.wire import Wire, op_msg

pytestmark = pytest.mark.selkie_only


@pytest.fixture
def cached(own_server, store):
    # The shared MariaDB has no binary log, and no other client writes there.
    return own_server(*(("--cache", "both", "--external-writes", "none") if "mariadb" in store else ("--cache", "documents")))


def figures(client) -> dict:
    return client.admin.command("serverStatus")["cache"]


def gained(client, work) -> tuple[int, int]:
    """Hits and misses that `work` makes."""
    before = figures(client)
    work()
    after = figures(client)
    return after["hits"] - before["hits"], after["misses"] - before["misses"]


READS = {
    "find by id": lambda c: c.find_one({"_id": 5}),
    "find": lambda c: list(c.find({"g": 3})),
    "find sorted": lambda c: list(c.find({"g": {"$gte": 3}}).sort("v", -1).limit(5)),
    "find projected": lambda c: list(c.find({"g": 3}, {"v": 1})),
    "find in batches": lambda c: list(c.find({}, batch_size=30)),
    "count": lambda c: c.count_documents({"g": 3}),
    "distinct": lambda c: c.distinct("g", {"v": {"$lt": 50}}),
    "group": lambda c: sorted(map(str, c.aggregate([{"$match": {"v": {"$lt": 50}}}, {"$group": {"_id": "$g", "n": {"$sum": 1}}}]))),
    "lookup": lambda c: list(
        c.aggregate([{"$match": {"_id": 5}}, {"$lookup": {"from": "d", "localField": "g", "foreignField": "g", "as": "x"}}])
    ),
}

WRITES = {
    "update": lambda db: db.c.update_one({"_id": 5}, {"$set": {"v": 1000}}),
    "push": lambda db: db.c.update_one({"_id": 5}, {"$push": {"l": {"$each": [1], "$slice": -3}}}),
    "move": lambda db: db.c.update_one({"_id": 5}, {"$set": {"g": 3}}),
    "replace": lambda db: db.c.replace_one({"_id": 5}, {"g": 4, "v": 7}),
    "update many": lambda db: db.c.update_many({"g": 3}, {"$inc": {"v": 1}}),
    "insert": lambda db: db.c.insert_one({"_id": 1000, "g": 3, "v": 49}),
    "insert many": lambda db: db.c.insert_many([{"_id": 2000 + n, "g": 3, "v": n} for n in range(200)]),
    "delete": lambda db: db.c.delete_one({"_id": 5}),
    "delete many": lambda db: db.c.delete_many({"g": 3}),
    "find and modify": lambda db: db.c.find_one_and_update({"_id": 5}, {"$set": {"g": 3}}),
    "upsert": lambda db: db.c.update_one({"_id": 3000}, {"$set": {"g": 3, "v": 1}}, upsert=True),
    "elsewhere": lambda db: db.d.insert_one({"g": 5}),
    "drop": lambda db: db.c.drop(),
    "rename": lambda db: (db.c.rename("e"), db.d.rename("c")),
    "out": lambda db: db.c.aggregate([{"$match": {"g": 3}}, {"$out": "c"}]),
    "index": lambda db: db.c.create_index("g"),
    "drop database": lambda db: db.client.drop_database(db.name),
}


def fill(db):
    db.c.insert_many([{"_id": n, "g": n % 10, "v": n} for n in range(100)])
    db.d.insert_many([{"_id": n, "g": n % 10} for n in range(10)])


def test_repeated_queries_are_answered_from_the_cache(cached, database_name):
    with cached.client() as client:
        db = client[database_name]
        fill(db)
        for name, read in READS.items():
            first = read(db.c)
            again = []
            hits, misses = gained(client, lambda: again.append(read(db.c)))
            assert again == [first] and hits >= 1 and misses == 0, name


@pytest.mark.parametrize("write", WRITES)
def test_after_a_write_every_answer_is_new(cached, database_name, write):
    """On each worker: the clients' connections are with different ones."""
    with cached.client() as client, cached.client() as other, cached.client() as plain:
        db = client[database_name]
        fill(db)
        plain.admin.command({"selkieCache": 1, "use": False})
        for read in READS.values():
            assert read(db.c) == read(other[database_name].c)
        WRITES[write](db)
        for name, read in READS.items():
            # One connection, so that the session that bypasses the cache is the one with the
            # setting.
            expected = read(plain[database_name].c)
            assert read(db.c) == expected and read(other[database_name].c) == expected, name


def test_listeners_have_modes_of_their_own(own_server, store, tmp_path, database_name):
    socket, settings = tmp_path / "off.sock", tmp_path / "selkie.toml"
    settings.write_text(f'[cache]\nlisteners = ["{socket} = off"]\n')
    mode = ("--cache", "both", "--external-writes", "none") if "mariadb" in store else ("--cache", "documents")
    server = own_server(*mode, "--config", str(settings), "--listen", str(socket))
    with server.client() as cached, pymongo.MongoClient(f"mongodb://{quote_plus(str(socket))}") as plain:
        cached[database_name].c.insert_many([{"_id": n} for n in range(300)])
        questions = {
            "find": lambda client: list(client[database_name].c.find()),
            "count": lambda client: client[database_name].c.count_documents({"_id": {"$gt": 5}}),
            "distinct": lambda client: client[database_name].c.distinct("_id"),
            "$lookup": lambda client: list(client[database_name].c.aggregate([{"$limit": 50},
                {"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "same"}}])),
        }
        for name, ask in questions.items():
            before = figures(cached)
            assert ask(plain) == ask(plain), name
            untouched = figures(cached)
            assert counts(untouched) == counts(before), name
            assert ask(cached) == ask(cached) == ask(plain), name
            assert figures(cached)["hits"] > before["hits"], name
        assert cached.admin.command("selkieCache")["uses"]
        assert not plain.admin.command("selkieCache")["uses"]
        # A connection cannot have more than its listener gives.
        assert not plain.admin.command({"selkieCache": 1, "use": True})["uses"]
        cached.drop_database(database_name)


def counts(figures: dict) -> list:
    """Hits and answers stored, of replies and of rows."""
    return [level.get(name) for level in (figures, figures.get("results", {})) for name in ("hits", "stored")]


def test_a_write_does_not_invalidate_unaffected_replies(cached, database_name):
    with cached.client() as client:
        db = client[database_name]
        fill(db)
        READS["find"](db.c), READS["count"](db.c), db.c.find_one({"_id": 6})
        db.c.update_one({"_id": 5}, {"$inc": {"v": 1}})
        hits, misses = gained(client, lambda: (READS["find"](db.c), READS["count"](db.c), db.c.find_one({"_id": 6})))
        assert (hits, misses) == (3, 0)


def test_filters_with_the_same_statement_do_not_share_ignored_parts(cached, database_name):
    with cached.client() as client:
        c = client[database_name].c
        c.create_index({"t": 1, "n": 1})
        c.insert_many([{"_id": n, "t": 0, "s": "xy"[n % 2], "n": n} for n in range(10)])
        for _ in range(3):
            assert len(list(c.find({"t": 0, "s": "x"}))) == 5
        c.update_one({"_id": 1}, {"$set": {"n": 100}})
        assert max(document["n"] for document in c.find({"t": 0})) == 100
        assert len(list(c.find({"t": 0, "s": "x"}))) == 5


def test_a_cursor_after_a_cached_batch_respects_its_bounds(cached, database_name):
    with cached.client() as client:
        c = client[database_name].c
        c.create_index("n")
        c.insert_many([{"_id": n, "n": n} for n in range(100)])
        for _ in range(3):
            found = [document["n"] for document in c.find(batch_size=10).min([("n", 20)]).max([("n", 70)]).hint("n_1")]
            assert found == list(range(20, 70))
            assert len(list(c.find({"n": {"$lt": 90}}, batch_size=10).limit(55).skip(5))) == 55


@pytest.mark.parametrize("documents", [30, 100, 500, 900, 3000])
def test_large_replies_arrive_whole_although_they_are_evicted_meanwhile(cached, database_name, documents):
    """Clients that send many requests before they read: replies in flight are not changed when
    their cache entry is replaced."""
    pad = {number: f"{number} " * (1000 // len(f"{number} ")) for number in range(documents + 1)}
    with cached.client() as client:
        c = client[database_name].c
        c.insert_many([{"_id": number, "v": 0, "pad": pad[number]} for number in range(documents + 1)])
        # With a cursor behind the batch, and without.
        finds = [{"find": "c", "filter": filter, "batchSize": documents, "$db": database_name} for filter in ({}, {"_id": {"$lt": documents}})]
        for find in finds * 2:
            client[database_name].command({key: value for key, value in find.items() if key != "$db"})
        hits = figures(client)["hits"]
        wires = [Wire(cached.port) for _ in range(4)]
        for wire in wires:
            wire.send(b"".join(op_msg(find) for find in finds * 8))
        seen = {wire: 0 for wire in wires}
        for version in range(1, 17):
            c.update_one({"_id": 0}, {"$set": {"v": version}})
            for wire in wires:
                batch = wire.receive_reply()["cursor"]["firstBatch"]
                assert [document["_id"] for document in batch] == list(range(documents))
                assert all(document["pad"] == pad[document["_id"]] for document in batch)
                assert seen[wire] <= batch[0]["v"] <= version
                seen[wire] = batch[0]["v"]
        assert figures(client)["hits"] > hits
        for wire in wires:
            wire.socket.close()


def test_large_answers_have_checksums(cached, database_name):
    with cached.client() as client, Wire(cached.port) as wire:
        client[database_name].c.insert_many([{"_id": number, "pad": "x" * 1000} for number in range(80)])
        for _ in range(3):
            wire.send(with_checksum({"find": "c", "$db": database_name}))
            header = wire.receive_bytes(16)
            message = header + wire.receive_bytes(int.from_bytes(header[:4], "little") - 16)
            assert len(message) > 80_000
            assert crc32c(message[:-4]) == int.from_bytes(message[-4:], "little")


def test_replies_that_depend_on_more_than_documents_are_not_cached(cached, database_name):
    with cached.client() as client:
        db = client[database_name]
        fill(db)
        for pipeline in ([{"$sample": {"size": 3}}], [{"$project": {"t": "$$NOW"}}], [{"$match": {"$expr": {"$lt": [{"$rand": {}}, 0.5]}}}]):
            hits, _ = gained(client, lambda: [list(db.c.aggregate(pipeline)) for _ in range(3)])
            assert hits == 0, pipeline


def test_it_says_why(cached, database_name):
    with cached.client() as client:
        db = client[database_name]
        fill(db)

        def why(command: dict, database=db) -> dict:
            return database.command({"selkieCache": 1, "why": command})["why"]

        assert not why({"find": "c", "filter": {"g": 3}})["cached"]
        db.command({"find": "c", "filter": {"g": 3}})
        assert why({"find": "c", "filter": {"g": 3}})["cached"]
        assert "documents" in why({"aggregate": "c", "pipeline": [{"$sample": {"size": 1}}], "cursor": {}})["reason"]
        assert "admin" in why({"find": "c"}, client.admin)["reason"]
        assert "cached" in why({"insert": "c"})["reason"]
        with pytest.raises(OperationFailure) as refused:
            db.command({"selkieCache": 1, "whi": {}})
        assert refused.value.code == 40415


def test_concurrent_identical_queries_cause_one_read(cached, database_name):
    with cached.client(maxPoolSize=None) as client:
        db = client[database_name]
        db.c.insert_many([{"_id": n, "g": n * 7919 % 1000} for n in range(20_000)])
        slow = [{"$group": {"_id": {"$mod": [{"$add": ["$g", 1]}, 1000]}}}, {"$sort": {"_id": 1}}]
        begin, answers = threading.Barrier(200), []

        def ask():
            db.command("ping")
            begin.wait()
            answers.append(len(list(db.c.aggregate(slow, batchSize=2000))))

        before = figures(client)
        threads = [threading.Thread(target=ask) for _ in range(200)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        after = figures(client)
        assert answers == [1000] * 200
        assert after["misses"] - before["misses"] == 1


def test_settings_that_contradict_each_other_are_refused(tmp_path):
    def file(text: str) -> tuple[str, ...]:
        (tmp_path / "selkie.toml").write_text(text)
        return ("serve", "--config", str(tmp_path / "selkie.toml"))

    refuses(*file('[cache]\nmode = "documents"\nsoft-ttl-ms = 10\nhard-ttl-ms = 10\n'), says=("selkie.toml:3", "soft-ttl-ms", "smaller"))
    refuses(*file('[cache]\nmode = "documens"\n'), says=("selkie.toml:2", 'did you mean "documents"'))
    refuses(*file('[cache]\nmode = "documents"\nbytes = 1000\n'), says=("selkie.toml:3", "1048576"))
    refuses(*file('[cache]\nmode = "results"\n'), says=("selkie.toml:2", "embedded store"))
    refuses(*file('[cache]\nonly = ["cars"]\n'), says=("selkie.toml:2", "database.collection"))
