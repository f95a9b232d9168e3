"""The MongoDB wire protocol over a plain socket, for saying what no driver would say."""

import socket
import struct
import zlib

import bson

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16


def message(opcode: int, body: bytes, request_id: int = 1, length: int | None = None) -> bytes:
    """A message with a true header, unless `length` says otherwise."""
    return struct.pack("<iiii", len(body) + 16 if length is None else length, request_id, 0, opcode) + body


def op_msg(command: dict | bytes, flags: int = 0, sequences: dict[str, list] | None = None, request_id: int = 1) -> bytes:
    raw = command if isinstance(command, bytes) else bson.encode(command)
    body = struct.pack("<I", flags) + b"\0" + raw
    for name, documents in (sequences or {}).items():
        section = name.encode() + b"\0" + b"".join(d if isinstance(d, bytes) else bson.encode(d) for d in documents)
        body += b"\1" + struct.pack("<i", len(section) + 4) + section
    return message(OP_MSG, body, request_id)


def op_query(collection: str, query: dict, request_id: int = 1) -> bytes:
    return message(OP_QUERY, struct.pack("<i", 0) + collection.encode() + b"\0" + struct.pack("<ii", 0, -1) + bson.encode(query),
                   request_id)


def op_compressed_zlib(inner: bytes, uncompressed: int | None = None) -> bytes:
    """A message wrapped in OP_COMPRESSED by zlib; `uncompressed` is a false size."""
    (_, request_id, _, opcode) = struct.unpack_from("<iiii", inner)
    size = len(inner) - 16 if uncompressed is None else uncompressed
    return message(OP_COMPRESSED, struct.pack("<iib", opcode, size, 2) + zlib.compress(inner[16:]), request_id)


class Wire:
    """One connection."""

    def __init__(self, port: int, host: str = "127.0.0.1", timeout_s: float = 10):
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes):
        self.socket.sendall(data)

    def receive_bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError(f"closed after {len(data)} of {count} bytes")
            data += piece
        return data

    def receive(self) -> tuple[int, int, bytes]:
        """Receives one message: opcode, the id of its request, and the body."""
        (length, _, response_to, opcode) = struct.unpack("<iiii", self.receive_bytes(16))
        return opcode, response_to, self.receive_bytes(length - 16)

    def receive_reply(self) -> dict:
        """The document of an OP_MSG or OP_REPLY."""
        (opcode, _, body) = self.receive()
        return bson.decode(reply_document(opcode, body))

    def run(self, command: dict | bytes, **options) -> dict:
        self.send(op_msg(command, **options))
        return self.receive_reply()

    def is_closed_by_server(self, timeout_s: float = 10) -> bool:
        """Returns whether the server closes the connection without another message."""
        self.socket.settimeout(timeout_s)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def is_silent(self, wait_s: float = 0.3) -> bool:
        self.socket.settimeout(wait_s)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        return False


def reply_document(opcode: int, body: bytes) -> bytes:
    start = {OP_MSG: 5, OP_REPLY: 20}[opcode]
    (length,) = struct.unpack_from("<i", body, start)
    return body[start : start + length]
