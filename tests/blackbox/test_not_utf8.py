"""Strings and field names of arbitrary bytes: stored byte for byte, found with and without indexes,
readable by SQL."""

import os
import random
import struct

import pytest

from support import odd_bson
from support.wire import CHECKSUM_PRESENT, Wire, message, op_compressed_zlib, op_msg, OP_MSG

# Runs differ; a failure prints the seed to try again with.
SEED = int(os.environ.get("SELKIE_SEED", "0")) or random.randrange(1 << 32)

BYTES = [b"a", b"b", b"\x01", b"\x7f", b"\x80", b"\xbf", b"\xc3", b"\xa9", b"\xc3\xa9", b"\xe9", b"\xf0", b"\xf4\x8f\xbf\xbf", b"\xff", b"$", b'"', b"\\"]
TEXT, NAME = "a\udce9b", "n\udce9"


@pytest.fixture
def wire(server, db):
    with Wire(server.port) as wire:
        wire.database = db.name
        yield wire


def run(wire: Wire, command: dict) -> dict:
    """The reply as text of any bytes."""
    wire.send(op_msg(odd_bson.encode({**command, "$db": wire.database})))
    (_, _, body) = wire.receive()
    return odd_bson.decode(body[5:])


def text(chosen: random.Random, most: int = 4, of: list[bytes] = BYTES) -> str:
    return b"".join(chosen.choices(of, k=chosen.randrange(most + 1))).decode(errors=odd_bson.HANDLER)


def name(chosen: random.Random) -> str:
    """A name that is no operator, and that an index on MariaDB may be over."""
    return "f" + text(chosen, 3, [one for one in BYTES if one not in (b"\x01", b"\x7f", b'"', b"\\")])


def documents(chosen: random.Random, names: list[str], count: int, arrays: bool = True) -> list[dict]:
    def value():
        kind = chosen.choice(range(8) if arrays else (0, 5, 6, 7))
        if kind < 4:
            return text(chosen)
        if kind == 4:
            return [text(chosen) for _ in range(chosen.randrange(3))]
        if kind == 5:
            return {chosen.choice(names): text(chosen)}
        if kind == 6:
            return chosen.choice([None, 1, 2.5, True, "x" * 600 + text(chosen)])
        return odd_bson.Symbol(text(chosen))

    return [{"_id": number, **{name: value() for name in chosen.sample(names, chosen.randrange(1, 4))}} for number in range(count)]


def ids(wire: Wire, query: dict, **options) -> list:
    reply = run(wire, {"find": "c", "filter": query, "projection": {"_id": 1}, "batchSize": 1000, **options})
    assert reply["ok"] == 1, (SEED, query, reply)
    return sorted(document["_id"] for document in reply["cursor"]["firstBatch"])


def conditions(chosen: random.Random, held: list):
    some = lambda: chosen.choice(held)
    yield from ({"$eq": some()}, {"$gt": some()}, {"$gte": some(), "$lt": some()}, {"$lte": some()}, {"$ne": some()})
    yield from ({"$in": [some(), some()]}, {"$nin": [some(), some()]}, {"$type": "string"}, {"$exists": True}, {"$exists": False})
    yield from ({"$regex": "^a"}, {"$regex": "a"}, {"$regex": "b$"}, {"$not": {"$gt": some()}}, {"$elemMatch": {"$gte": some()}})


def kinds_of_indexes(names: list[str]):
    a, b = names[:2]
    yield {"key": {a: 1}}
    yield {"key": {a: -1, b: 1}}
    yield {"key": {f"{a}.{b}": 1}}
    yield {"key": {a: "hashed"}}
    yield {"key": {"$**": 1}}
    yield {"key": {a: 1}, "sparse": True}
    yield {"key": {a: 1}, "partialFilterExpression": {a: {"$gte": TEXT}}}


# MongoDB finds other strings by `^a` with an index than without.
@pytest.mark.selkie_only
@pytest.mark.parametrize("kind", range(7))
def test_indexes_find_the_same_as_a_full_scan(wire, kind):
    chosen = random.Random(SEED + kind)
    names = list(dict.fromkeys([NAME, *(name(chosen) for _ in range(20))]))[:4]
    chosen.shuffle(names)
    index = list(kinds_of_indexes(names))[kind]
    arrays = "hashed" not in index["key"].values() and len(index["key"]) == 1
    written = documents(chosen, names, 120, arrays)
    assert run(wire, {"insert": "c", "documents": written})["n"] == len(written)
    held = [text(chosen) for _ in range(6)] + [value for document in written for value in document.values() if isinstance(value, str)]
    made = run(wire, {"createIndexes": "c", "indexes": [{**index, "name": "i"}]})
    assert made["ok"] == 1, (SEED, index, made)
    # Half of the documents come after the index.
    later = [{**document, "_id": document["_id"] + 1000} for document in documents(chosen, names, 60, arrays)]
    assert run(wire, {"insert": "c", "documents": later})["n"] == len(later)
    a, b = names[:2]
    for path in (a, b, f"{a}.{b}"):
        for condition in conditions(chosen, held):
            for query in ({path: condition}, {path: condition, b: {"$gte": ""}}):
                assert ids(wire, query) == ids(wire, query, hint={"$natural": 1}), (SEED, index, query)
    # Writes reach the same documents, and what they write is found.
    wanted = ids(wire, {a: {"$gte": TEXT}}, hint={"$natural": 1})
    assert run(wire, {"update": "c", "updates": [{"q": {a: {"$gte": TEXT}}, "u": {"$set": {a: TEXT, b: text(chosen)}}, "multi": True}]})["n"] == len(wanted)
    assert set(wanted) <= set(ids(wire, {a: TEXT})), (SEED, index)
    count = len(ids(wire, {a: TEXT}))
    assert run(wire, {"delete": "c", "deletes": [{"q": {a: TEXT}, "limit": 0}]})["n"] == count, (SEED, index)
    assert ids(wire, {a: TEXT}) == ids(wire, {a: TEXT}, hint={"$natural": 1}) == []


def test_documents_are_returned_byte_for_byte(wire):
    chosen = random.Random(SEED)
    names = [name(chosen) for _ in range(20)]
    written = documents(chosen, names, 200) + [{"_id": 900 + number, **{one: one for one in names}} for number in range(3)]
    assert run(wire, {"insert": "c", "documents": written})["n"] == len(written)
    wire.send(op_msg(odd_bson.encode({"find": "c", "sort": {"_id": 1}, "batchSize": 1000, "$db": wire.database})))
    (_, _, body) = wire.receive()
    for document in sorted(written, key=lambda document: document["_id"]):
        assert odd_bson.encode(document) in body, (SEED, document)


def test_ids(wire):
    texts = sorted({TEXT, "\udcff", "a", "", "\udcc3x", "é", NAME * 100})
    assert run(wire, {"insert": "c", "documents": [{"_id": one, "n": 1} for one in texts]})["n"] == len(texts)
    for one in texts:
        again = run(wire, {"insert": "c", "documents": [{"_id": one}]})
        assert again["writeErrors"][0]["code"] == 11000
        assert run(wire, {"update": "c", "updates": [{"q": {"_id": one}, "u": {"$inc": {"n": 1}}}]})["nModified"] == 1
        assert ids(wire, {"_id": one}) == [one]
    upserted = run(wire, {"update": "c", "updates": [{"q": {"_id": "\udcfe"}, "u": {"$set": {NAME: 1}}, "upsert": True}]})
    assert upserted["upserted"] == [{"index": 0, "_id": "\udcfe"}]
    assert run(wire, {"delete": "c", "deletes": [{"q": {"_id": {"$in": texts}}, "limit": 0}]})["n"] == len(texts)


def test_sequences_checksums_and_compression(wire):
    """Names are escaped in all parts of a message, however it comes."""
    command = odd_bson.encode({"insert": "c", "ordered": True, "$db": wire.database})
    wire.send(op_msg(command, sequences={"documents": [odd_bson.encode({"_id": 1, NAME: {NAME: TEXT}})]}))
    assert wire.receive_reply()["n"] == 1
    find = odd_bson.encode({"find": "c", "filter": {f"{NAME}.{NAME}": TEXT}, "$db": wire.database})
    wire.send(op_compressed_zlib(op_msg(find)))
    (opcode, _, _) = wire.receive()
    assert opcode in (OP_MSG, 2012)
    whole = message(OP_MSG, struct.pack("<I", CHECKSUM_PRESENT) + b"\0" + find + b"\0" * 4)
    wire.send(whole[:-4] + struct.pack("<I", crc32c(whole[:-4])))
    (_, _, body) = wire.receive()
    reply = odd_bson.decode(body[5:-4])
    assert reply["cursor"]["firstBatch"] == [{"_id": 1, NAME: {NAME: TEXT}}]


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@pytest.mark.selkie_only
def test_names_are_restored_after_a_restart(own_server, database_name):
    """The process that reads them has not seen them written."""
    server = own_server()
    with Wire(server.port) as wire:
        wire.database = database_name
        assert run(wire, {"insert": "c", "documents": [{"_id": 1, NAME: TEXT}]})["n"] == 1
    assert server.stop() == 0
    server.start()
    with Wire(server.port) as wire:
        wire.database = database_name
        assert run(wire, {"find": "c"})["cursor"]["firstBatch"] == [{"_id": 1, NAME: TEXT}]
        assert run(wire, {"dropDatabase": 1})["ok"] == 1


@pytest.mark.selkie_only
def test_cached_replies_have_names_as_they_were_sent(own_server, database_name, store):
    server = own_server("--cache", "both" if store == "mariadb" else "documents", "--external-writes", "none")
    with Wire(server.port) as wire:
        wire.database = database_name
        written = [{"_id": number, NAME: TEXT * 20} for number in range(400)]
        assert run(wire, {"insert": "c", "documents": written})["n"] == len(written)
        for _ in range(4):
            assert run(wire, {"find": "c", "sort": {"_id": 1}, "batchSize": 1000})["cursor"]["firstBatch"] == written
            assert run(wire, {"find": "c", "filter": {"_id": 7}})["cursor"]["firstBatch"] == [written[7]]
        assert run(wire, {"update": "c", "updates": [{"q": {NAME: TEXT * 20, "_id": 7}, "u": {"$set": {NAME: "\udcff"}}}]})["n"] == 1
        assert run(wire, {"find": "c", "filter": {"_id": 7}})["cursor"]["firstBatch"] == [{"_id": 7, NAME: "\udcff"}]
        # A prefix is compared by bytes, and any bytes may follow it.
        for _ in range(2):
            assert len(run(wire, {"find": "c", "filter": {NAME: {"$regex": "^a\xe9?"}}, "batchSize": 1000})["cursor"]["firstBatch"]) == 0
            assert len(run(wire, {"find": "c", "filter": {NAME: {"$regex": "^z"}}})["cursor"]["firstBatch"]) == 0
        assert run(wire, {"update": "c", "updates": [{"q": {"_id": 8}, "u": {"$set": {NAME: "z\udcff\udcff"}}}]})["n"] == 1
        assert len(run(wire, {"find": "c", "filter": {NAME: {"$regex": "^z"}}})["cursor"]["firstBatch"]) == 1
        assert run(wire, {"dropDatabase": 1})["ok"] == 1


@pytest.mark.mariadb_only
def test_sql_reads_valid_json(wire, sql):
    chosen = random.Random(SEED)
    names = [name(chosen) for _ in range(20)]
    assert run(wire, {"createIndexes": "c", "indexes": [{"key": {names[0]: 1}, "name": "i"}]})["ok"] == 1
    written = documents(chosen, names, 200) + [{"_id": 900 + number, **{one: one for one in names}} for number in range(3)]
    assert run(wire, {"insert": "c", "documents": written})["n"] == len(written)
    assert sql("SELECT count(*), sum(json_valid(doc)) FROM c") == ((len(written), len(written)),)
    run(wire, {"insert": "d", "documents": [{"_id": TEXT, NAME: TEXT}]})
    wrapped = '{"$bson":"BAAAAGHpYgA=","$type":"02"}'
    assert sql("SELECT doc FROM d") == (('{"_id":%s,"n\U0010ffffé":%s}' % (wrapped, wrapped),),)
