"""The wire protocol on a raw socket: messages of old and new clients, and invalid ones."""

import random
import struct
import zlib

import bson
import pytest

from support.wire import (
    CHECKSUM_PRESENT,
    OP_COMPRESSED,
    OP_MSG,
    OP_REPLY,
    Wire,
    message,
    op_compressed_zlib,
    op_msg,
    op_query,
    reply_document,
)

PING = {"ping": 1, "$db": "admin"}


def crc32c(data: bytes) -> int:
    """The checksum of OP_MSG, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def with_checksum(command: dict, wrong: bool = False) -> bytes:
    raw = bytearray(op_msg(command, CHECKSUM_PRESENT))
    struct.pack_into("<i", raw, 0, len(raw) + 4)
    return bytes(raw) + struct.pack("<I", crc32c(bytes(raw)) ^ wrong)


def test_hello_over_op_query(server):
    with Wire(server.port) as wire:
        for name in ("isMaster", "ismaster", "hello"):
            wire.send(op_query("admin.$cmd", {name: 1}, request_id=77))
            (opcode, response_to, body) = wire.receive()
            reply = bson.decode(reply_document(opcode, body))
            assert (opcode, response_to, reply["ok"]) == (OP_REPLY, 77, 1)
            assert reply["maxWireVersion"] == 17
            assert reply["maxBsonObjectSize"] == 16777216
            assert reply["maxMessageSizeBytes"] == 48000000
            assert reply["maxWriteBatchSize"] == 100000
            assert reply.get("ismaster", reply.get("isWritablePrimary")) is True


CLIENT = {"driver": {"name": "x", "version": "1"}, "os": {"type": "Linux"}}


@pytest.mark.parametrize("first, then", [
    ({"hello": 1, "client": CLIENT}, 186),
    ({"hello": 1}, 186),
    ({"isMaster": 1, "client": CLIENT}, 186),
    ({"ping": 1}, None),
    ({"hello": 1, "client": {}}, None),
    ({"hello": 1, "client": None}, None),
    ({"hello": 1, "helloOk": "x", "client": CLIENT}, None),
])
def test_client_metadata_may_be_sent_once(server, first, then):
    with Wire(server.port) as wire:
        wire.run({**first, "$db": "admin"})
        assert wire.run({"hello": 1, "client": CLIENT, "$db": "admin"}).get("code") == then


@pytest.mark.parametrize("client, code", [
    (1, 14), ({"os": {"type": "x"}}, 183), ({"driver": CLIENT["driver"]}, 183), ({**CLIENT, "os": {}}, 183), ({**CLIENT, "driver": 1}, 14),
    ({**CLIENT, "application": {"name": "x" * 129}}, 184), ({**CLIENT, "application": {"name": "x" * 128}}, None), ({**CLIENT, "application": {"name": 1}}, 14),
])
def test_client_metadata_is_validated(server, client, code):
    with Wire(server.port) as wire:
        assert wire.run({"hello": 1, "client": client, "$db": "admin"}).get("code") == code


@pytest.mark.selkie_only
def test_old_clients_can_connect(server):
    with Wire(server.port) as wire:
        hello = wire.run({"hello": 1, "$db": "admin"})
        assert (hello["minWireVersion"], hello["maxWireVersion"]) == (0, 17)
        for command in ({"buildinfo": 1}, {"buildInfo": 1}, {"isMaster": 1}, {"ismaster": 1}):
            wire.send(op_query("admin.$cmd", command))
            reply = wire.receive_reply()
            assert reply["ok"] == 1, command


@pytest.mark.selkie_only
def test_drivers_from_before_op_msg_work(server, database_name):
    """They send every command as OP_QUERY, which MongoDB has refused since 5.1 (352); hello's
    minWireVersion permits it."""
    with Wire(server.port) as wire:

        def run(command: dict) -> dict:
            wire.send(op_query(f"{database_name}.$cmd", command))
            return wire.receive_reply()

        assert run({"insert": "c", "documents": [{"_id": number} for number in range(5)]})["n"] == 5
        cursor = run({"$query": {"find": "c", "batchSize": 3}, "$readPreference": {"mode": "primary"}})["cursor"]
        assert [row["_id"] for row in cursor["firstBatch"]] == [0, 1, 2]
        assert [row["_id"] for row in run({"getMore": cursor["id"], "collection": "c"})["cursor"]["nextBatch"]] == [3, 4]
        assert run({"noSuchCommand": 1})["code"] == 59
        assert run({"dropDatabase": 1})["ok"] == 1


def test_messages_compressed_by_noop_are_refused(server):
    with Wire(server.port) as wire:
        body = op_msg(PING)[16:]
        packed = struct.pack("<iiB", 2013, len(body), 0) + body
        wire.send(struct.pack("<iiii", 16 + len(packed), 7, 0, 2012) + packed)
        with pytest.raises(ConnectionError):
            wire.receive()


def test_two_requests_at_once_are_answered_in_turn(server):
    with Wire(server.port) as wire:
        wire.send(b"".join(op_msg(PING, request_id=n) for n in range(1, 51)))
        assert [wire.receive()[1] for _ in range(50)] == list(range(1, 51))


def test_a_request_in_small_pieces(server):
    import time

    with Wire(server.port) as wire:
        for piece in (data := op_msg(PING))[:20], data[20:21], data[21:]:
            wire.send(piece)
            time.sleep(0.02)
        assert wire.receive_reply()["ok"] == 1


def test_checksum_is_verified_and_written(server):
    with Wire(server.port) as wire:
        wire.send(with_checksum(PING))
        (opcode, _, body) = wire.receive()
        assert bson.decode(reply_document(opcode, body))["ok"] == 1
        (flags,) = struct.unpack_from("<I", body)
        if flags & CHECKSUM_PRESENT:
            head = struct.pack("<i", len(body) + 16)
            assert len(body) > len(head) + 4
    with Wire(server.port) as wire:
        wire.send(with_checksum(PING, wrong=True))
        assert refused(wire)


def test_document_sequences_and_body_together(db, server):
    with Wire(server.port) as wire:
        reply = wire.run({"insert": "c", "$db": db.name}, sequences={"documents": [{"_id": n} for n in range(5)]})
        assert (reply["ok"], reply["n"]) == (1, 5)
        reply = wire.run(
            {"delete": "c", "$db": db.name}, sequences={"deletes": [{"q": {"_id": 1}, "limit": 1}, {"q": {}, "limit": 0}]}
        )
        assert (reply["ok"], reply["n"]) == (1, 5)


def test_compressed_request_without_having_agreed(server):
    """Either is fine: an answer or the end of the connection."""
    with Wire(server.port) as wire:
        wire.send(op_compressed_zlib(op_msg(PING)))
        try:
            (opcode, _, _) = wire.receive()
        except ConnectionError:
            return
        assert opcode in (OP_MSG, OP_COMPRESSED)


def test_compression_is_agreed_by_hello(server):
    with Wire(server.port) as wire:
        hello = wire.run({"hello": 1, "$db": "admin", "compression": ["zlib", "nonsense"]})
        assert hello["compression"] == ["zlib"]
        wire.send(op_compressed_zlib(op_msg({"find": "none", "$db": "none"})))
        (opcode, _, body) = wire.receive()
        assert opcode == OP_COMPRESSED
        (original, size, compressor) = struct.unpack_from("<iib", body)
        inner = zlib.decompress(body[9:])
        assert (original, size, compressor) == (OP_MSG, len(inner), 2)
        assert bson.decode(reply_document(OP_MSG, inner))["ok"] == 1


def refused(wire: Wire) -> bool:
    """Expects an error document or a closed connection, not a successful reply or silence."""
    try:
        reply = wire.receive_reply()
    except (ConnectionError, TimeoutError) as error:
        return not isinstance(error, TimeoutError)
    return reply["ok"] == 0


PING_BSON = bson.encode(PING)

MALFORMED = {
    "length of zero": message(OP_MSG, b"", length=0),
    "length below the header": message(OP_MSG, b"\0" * 10, length=15),
    "negative length": message(OP_MSG, b"\0" * 10, length=-5),
    "length beyond the limit": message(OP_MSG, b"\0" * 10, length=48_000_001),
    "largest length": message(OP_MSG, b"\0" * 10, length=2**31 - 1),
    "header alone": message(OP_MSG, b""),
    "flags alone": message(OP_MSG, b"\0" * 4),
    "unknown opcode": message(4711, b"\0" * 20),
    "unknown required flag": op_msg(PING, flags=1 << 5),
    "unknown section": message(OP_MSG, b"\0" * 4 + b"\7" + PING_BSON),
    "two bodies": message(OP_MSG, b"\0" * 5 + PING_BSON + b"\0" + PING_BSON),
    "no body": message(OP_MSG, b"\0" * 4 + b"\1" + struct.pack("<i", 6) + b"x\0"),
    "sequence length too large": message(OP_MSG, b"\0" * 5 + PING_BSON + b"\1" + struct.pack("<i", 5000) + b"x\0"),
    "sequence length negative": message(OP_MSG, b"\0" * 5 + PING_BSON + b"\1" + struct.pack("<i", -1) + b"x\0"),
    "sequence without a name": message(OP_MSG, b"\0" * 5 + PING_BSON + b"\1" + struct.pack("<i", 5) + b"x"),
    "body cut short": message(OP_MSG, b"\0" * 5 + PING_BSON[:-3]),
    "body's length too large": message(OP_MSG, b"\0" * 5 + struct.pack("<i", 5000) + PING_BSON[4:]),
    "body's length negative": message(OP_MSG, b"\0" * 5 + struct.pack("<i", -5) + PING_BSON[4:]),
    "body without its end": message(OP_MSG, b"\0" * 5 + PING_BSON[:-1] + b"\1"),
    "unknown BSON type": op_msg(b"\x0c\0\0\0\x44x\0\0\0\0\0\0"),
    "string longer than its document": op_msg(struct.pack("<i", 17) + b"\x02x\0" + struct.pack("<i", 500) + b"abcd\0\0"),
    "string of length zero": op_msg(struct.pack("<i", 17) + b"\x02x\0" + struct.pack("<i", 0) + b"abcd\0\0"),
    "a boolean of 2": op_msg(b"\x09\0\0\0\x08x\0\x02\0"),
    "empty command": op_msg(b"\5\0\0\0\0"),
    "no $db": op_msg({"ping": 1}),
    "$db of the wrong type": op_msg({"ping": 1, "$db": 5}),
    "compressed, cut short": message(OP_COMPRESSED, b"\0" * 5),
    "compressed, unknown compressor": message(OP_COMPRESSED, struct.pack("<iib", OP_MSG, 10, 99) + b"x" * 10),
    "compressed, not what it says": message(OP_COMPRESSED, struct.pack("<iib", OP_MSG, 100, 2) + b"garbage"),
    "compressed, a wrong size": op_compressed_zlib(op_msg(PING), uncompressed=5),
    "compressed, an enormous size": op_compressed_zlib(op_msg(PING), uncompressed=2**31 - 1),
    "compressed, a negative size": op_compressed_zlib(op_msg(PING), uncompressed=-1),
    "compressed twice": op_compressed_zlib(op_compressed_zlib(op_msg(PING))),
    "a bomb": op_compressed_zlib(message(OP_MSG, b"\0" * 100_000_000)),
    "query without its end": message(2004, struct.pack("<i", 0) + b"admin.$cmd"),
    "query without a document": message(2004, struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1)),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\0" * 200,
}


# MongoDB takes the one and waits for more after the other.
MONGODB_BEARS = {"compressed twice", "length below the header"}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(server, store, name):
    """The connection ends or an error comes; another session does not notice."""
    if store == "target" and name in MONGODB_BEARS:
        pytest.skip("MongoDB bears with it")
    with Wire(server.port) as bystander, Wire(server.port, timeout_s=5) as wire:
        assert bystander.run(PING)["ok"] == 1
        wire.send(MALFORMED[name])
        if "length" in name or name in ("TLS",):
            # The server may be waiting for bytes that it was promised; an end must satisfy it.
            import socket

            wire.socket.shutdown(socket.SHUT_WR)
        assert refused(wire), name
        assert bystander.run(PING)["ok"] == 1


def nested(depth: int) -> bytes:
    raw = b"\5\0\0\0\0"
    for _ in range(depth):
        raw = struct.pack("<i", len(raw) + 8) + b"\3a\0" + raw + b"\0"
    return raw


def test_bottomless_documents(db, server):
    for depth in (250, 1000, 100_000):
        with Wire(server.port) as wire:
            body = bson.encode({"insert": "c", "$db": db.name})
            section = b"documents\0" + nested(depth)
            wire.send(message(OP_MSG, b"\0" * 5 + body + b"\1" + struct.pack("<i", len(section) + 4) + section))
            assert refused(wire), depth
    assert db.c.count_documents({}) == 0


def test_every_truncation_of_a_message(server):
    whole = op_msg({"find": "c", "$db": "d", "filter": {"a": [1, "x", {"b": None}]}}, sequences={"x": [{"y": 1}]})
    whole_without_sequence = 21 + struct.unpack_from("<i", whole, 21)[0]
    with Wire(server.port) as bystander:
        for length in set(range(16, len(whole))) - {whole_without_sequence}:
            with Wire(server.port, timeout_s=5) as wire:
                wire.send(struct.pack("<i", length) + whole[4:length])
                assert refused(wire), length
        assert bystander.run(PING)["ok"] == 1


def test_random_damage(server):
    """Single bytes changed anywhere after the header: the server continues."""
    source = random.Random(4711)
    whole = op_msg({"find": "c", "$db": "d", "filter": {"a": {"$in": [1, "x", {"b": None}]}}, "limit": 5})
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(source.randint(1, 3)):
            damaged[source.randrange(16, len(damaged))] = source.randrange(256)
        with Wire(server.port, timeout_s=5) as wire:
            wire.send(bytes(damaged))
            try:
                wire.receive()
            except ConnectionError:
                pass
            except TimeoutError:
                # The moreToCome flag asks for silence.
                assert damaged[16] & 2, bytes(damaged)
    with Wire(server.port) as wire:
        assert wire.run(PING)["ok"] == 1


def test_a_client_that_never_reads(db, server):
    """A slow client delays no other client."""
    db.c.insert_many([{"_id": n, "pad": "x" * 10_000} for n in range(500)])
    with Wire(server.port) as lazy, Wire(server.port) as other:
        lazy.socket.settimeout(2)
        request = op_msg({"find": "c", "$db": db.name, "batchSize": 500})
        try:
            for _ in range(100):
                lazy.send(request)
        except TimeoutError:
            pass
        assert other.run(PING)["ok"] == 1
        assert other.run({"find": "c", "$db": db.name, "limit": 1})["ok"] == 1
