"""Documents come back as they went in, byte for byte, whatever they hold."""

import math
import struct
import uuid
from datetime import datetime

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

OID = ObjectId("507f1f77bcf86cd799439011")

VALUES = {
    "double": 1.5,
    "double that is whole": 5.0,
    "double, large": 1.7976931348623157e308,
    "double, tiny": 5e-324,
    "double, shortest digits": 0.1 + 0.2,
    "negative zero": -0.0,
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "empty string": "",
    "string": "a \"quoted\" \\ string\n\t\u0001\u007f",
    "string with a zero byte": "a\0b",
    "unicode": "Größe 日本語 \U0001f9ad \ud7ff\ue000",
    "like a number": "5",
    "like extended JSON": {"$numberLong": "5"},
    "like extended JSON, an id": {"$oid": "507f1f77bcf86cd799439011"},
    "like extended JSON, a date": {"$date": "2020-01-01T00:00:00Z"},
    "one more dollar": {"$$x": 1, "$$$": 2, "$": 3},
    "document": {"a": {"b": {"c": {}}}},
    "empty document": {},
    "empty array": [],
    "array": [1, "a", None, [2, [3, []]], {"x": []}],
    "binary": Binary(b"\x00\xff\x80", 0),
    "binary, empty": Binary(b"", 0),
    "binary, function": Binary(b"abc", 1),
    "binary, old": Binary(struct.pack("<i", 3) + b"abc", 2),
    "binary, old uuid": Binary(uuid.UUID(int=5).bytes, 3),
    "binary, uuid": Binary.from_uuid(uuid.UUID(int=7), UuidRepresentation.STANDARD),
    "binary, md5": Binary(b"0123456789abcdef", 5),
    "binary, encrypted": Binary(b"xyz", 6),
    "binary, user-defined": Binary(b"xyz", 128),
    "binary, last": Binary(bytes(range(256)), 255),
    "object id": OID,
    "true": True,
    "false": False,
    "date": datetime(2024, 2, 29, 12, 30, 15, 123000),
    "date before 1970": datetime(1815, 12, 10, 1, 2, 3, 4000),
    "date, year 1": datetime(1, 1, 1),
    "date, year 9999": datetime(9999, 12, 31, 23, 59, 59, 999000),
    "null": None,
    "regex": Regex("^a/b\\.c\"$", "imsx"),
    "regex, empty": Regex("", ""),
    "code": Code("function() { return \"x\"; }"),
    "code with scope": Code("return x", {"x": 1, "y": {"z": OID}}),
    "int32": 5,
    "int32, smallest": -(2**31),
    "int32, largest": 2**31 - 1,
    "timestamp": Timestamp(4294967295, 1),
    "timestamp zero": Timestamp(0, 0),
    "int64, small": Int64(5),
    "int64, zero": Int64(0),
    "int64, negative": Int64(-1),
    "int64, beyond doubles": Int64(2**53 + 1),
    "int64, smallest": Int64(-(2**63)),
    "int64, largest": Int64(2**63 - 1),
    "decimal": Decimal128("1.10"),
    "decimal, zeros": Decimal128("0E+3"),
    "decimal, negative zero": Decimal128("-0"),
    "decimal, NaN": Decimal128("NaN"),
    "decimal, infinity": Decimal128("-Infinity"),
    "decimal, 34 digits": Decimal128("1.234567890123456789012345678901234E+6144"),
    "decimal, tiny": Decimal128("1E-6176"),
    "min key": MinKey(),
    "max key": MaxKey(),
    "reference": DBRef("people", OID, "other"),
    "field names": {"": 1, " ": 2, "a.b": 3, "ä": 4, "\"": 5, "\\": 6, "\n": 7, "a" * 1000: 8},
}


def element(kind: int, name: bytes, value: bytes) -> bytes:
    return bytes([kind]) + name + b"\0" + value


def document(*elements: bytes) -> bytes:
    body = b"".join(elements) + b"\0"
    return struct.pack("<i", len(body) + 4) + body


def string(text: bytes) -> bytes:
    return struct.pack("<i", len(text) + 1) + text + b"\0"


INT1, INT2 = struct.pack("<i", 1), struct.pack("<i", 2)

# A server fills empty timestamps in on insert, at the top level only.
AT_THE_TOP = {f"field {n}": value for n, value in enumerate(VALUES.values()) if value != Timestamp(0, 0)}

# Types without a Python value, as elements after the _id.
RAW = {
    "duplicate names": element(0x10, b"a", INT1) + element(0x10, b"b", INT1) + element(0x10, b"a", INT2),
    "duplicate names, nested": element(0x03, b"d", document(element(0x10, b"x", INT1), element(0x02, b"x", string(b"y")))),
    "undefined": element(0x06, b"u", b""),
    "symbol": element(0x0E, b"s", string(b"sym")),
    "db pointer": element(0x0C, b"p", string(b"db.c") + OID.binary),
    "NaN with payload": element(0x01, b"n", struct.pack("<Q", 0x7FF8_0000_0000_BEEF)),
    "negative NaN": element(0x01, b"n", struct.pack("<Q", 0xFFF8_0000_0000_0000)),
    "date beyond year 9999": element(0x09, b"d", struct.pack("<q", 253_402_300_800_000)),
    "date, first": element(0x09, b"d", struct.pack("<q", -(2**63))),
    "date, last": element(0x09, b"d", struct.pack("<q", 2**63 - 1)),
    "array with odd keys": element(0x04, b"a", document(element(0x10, b"7", INT1), element(0x10, b"x", INT2))),
    "decimal, not canonical": element(0x13, b"d", b"\xff" * 14 + b"\x00\x60"),
    "negative decimal NaN with payload": element(0x13, b"d", b"\x01" * 15 + b"\xfc"),
    "dollar names nested": element(0x03, b"d", document(element(0x10, b"$a", INT1), element(0x10, b"$$b", INT2))),
    "dollar names nested, like a wrapper": element(0x03, b"d", document(element(0x02, b"$oid", string(b"nonsense")))),
}


def check_round_trip(db, raw: bytes, identifier=1):
    collection = db.get_collection("round_trip", CodecOptions(document_class=RawBSONDocument))
    collection.insert_one(RawBSONDocument(raw))
    found = collection.find_one({"_id": identifier})
    assert found is not None, "not found by its _id"
    assert found.raw == raw
    [again] = collection.find({"_id": {"$in": [identifier]}}).sort("_id")
    assert again.raw == raw


@pytest.mark.parametrize("name", VALUES)
def test_value(db, name):
    check_round_trip(db, bson.encode({"_id": 1, "nested": {"value": VALUES[name]}, "array": [VALUES[name]]}))


@pytest.mark.parametrize("name", RAW)
def test_raw(db, name):
    check_round_trip(db, document(element(0x10, b"_id", INT1), RAW[name]))


def test_all_values_together(db):
    check_round_trip(db, bson.encode({"_id": OID, **AT_THE_TOP}), OID)


@pytest.mark.parametrize("depth", [10, 30, 31, 32, 33, 34, 64, 99])
@pytest.mark.parametrize("arrays", [False, True])
def test_nesting(db, depth, arrays):
    value = {"bottom": Int64(1)}
    for level in range(depth):
        value = [value, level] if arrays and level % 2 else {"level": level, "deeper": value}
    check_round_trip(db, bson.encode({"_id": 1, "value": value, "behind": Decimal128("1.0")}))


def test_document_of_16_mebibytes(db):
    largest = 16 * 1024 * 1024
    empty = len(bson.encode({"_id": 1, "text": ""}))
    check_round_trip(db, bson.encode({"_id": 1, "text": "ä\n" * ((largest - empty) // 3)}))
    exact = {"_id": 2, "data": ""}
    exact["data"] = "x" * (largest - len(bson.encode(exact)))
    raw = bson.encode(exact)
    assert len(raw) == largest
    check_round_trip(db, raw, 2)


def test_empty_timestamps_at_the_top_are_replaced_by_the_time(db):
    db.stamps.insert_one({"_id": 1, "at": Timestamp(0, 0), "nested": {"at": Timestamp(0, 0)}})
    found = db.stamps.find_one()
    assert found["at"].time > 1_700_000_000
    assert found["nested"]["at"] == Timestamp(0, 0)


def test_fields_keep_their_order_through_an_update(db):
    fields = [f"f{(n * 7919) % 1000}" for n in range(200)]
    db.order.insert_one({"_id": 1, **{field: n for n, field in enumerate(fields)}})
    db.order.update_one({"_id": 1}, {"$set": {fields[50]: "changed", "new": Int64(1)}})
    found = db.order.find_one({"_id": 1})
    assert list(found) == ["_id", *fields, "new"]
    assert found[fields[50]] == "changed" and isinstance(found["new"], Int64)


def test_an_update_does_not_change_other_fields(db):
    raw = db.get_collection("untouched", CodecOptions(document_class=RawBSONDocument))
    raw.insert_one({"_id": 1, "counter": 1, **AT_THE_TOP})
    raw.update_one({"_id": 1}, {"$inc": {"counter": 1}})
    assert raw.find_one({"_id": 1}).raw == bson.encode({"_id": 1, "counter": 2, **AT_THE_TOP})
