"""BSON with text that is not UTF-8, which drivers refuse to write: bytes are in a `str` as
`surrogateescape` encodes them, `"\\udce9"` for E9."""

import struct

import bson
from bson import Code, Regex

HANDLER = "surrogateescape"


class Symbol(str):
    """A string of BSON's type 14."""


def encode(document: dict) -> bytes:
    elements = b"".join(bytes([kind]) + name.encode(errors=HANDLER) + b"\0" + raw
                        for name, (kind, raw) in ((name, value_of(value)) for name, value in document.items()))
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


def string(text: str) -> bytes:
    raw = text.encode(errors=HANDLER)
    return struct.pack("<i", len(raw) + 1) + raw + b"\0"


def value_of(value) -> tuple[int, bytes]:
    """The type's byte, and the value's bytes."""
    match value:
        case Code(scope=None):
            return 0x0D, string(value)
        case Code():
            raw = string(value) + encode(value.scope)
            return 0x0F, struct.pack("<i", len(raw) + 4) + raw
        case Symbol():
            return 0x0E, string(value)
        case str():
            return 0x02, string(value)
        case dict():
            return 0x03, encode(value)
        case list() | tuple():
            return 0x04, encode({str(index): inner for index, inner in enumerate(value)})
        case Regex(pattern=str()):
            return 0x0B, value.pattern.encode(errors=HANDLER) + b"\0\0"
    whole = bson.encode({"": value})
    return whole[4], whole[6:-1]


def decode(raw: bytes) -> dict:
    return bson.decode(raw, bson.CodecOptions(unicode_decode_error_handler=HANDLER))
