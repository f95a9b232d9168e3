"""Compares two replies: results by bytes, errors by code."""

import re
import struct

import bson
from bson import Binary, Int64, ObjectId, Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument

OPTIONS = {"datetime_conversion": DatetimeConversion.DATETIME_MS, "unicode_decode_error_handler": "surrogateescape"}
PLAIN = CodecOptions(**OPTIONS)
RAW = CodecOptions(document_class=RawBSONDocument, **OPTIONS)

# Fields that differ between runs or servers; `lockInfo` lists the present locks of background
# threads.
VOLATILE = {
    "localTime", "connectionId", "processId", "uuid", "you", "millis", "lastUse", "oidMachine", "host", "executionTimeMillis",
    "timeMillis", "lockInfo", "help", "ident", "userId", "salt", "storedKey", "serverKey",
}
# Lists of roles and privileges, which MongoDB keeps in hash tables.
ANY_ORDER_FIELDS = {"roles", "inheritedRoles", "inheritedPrivileges"}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Stages whose results have no defined order, and operators whose arrays have none.
UNORDERED = ("$group", "$sortByCount", "$unionWith", "$graphLookup", "$densify")
UNORDERED_WITHIN = ("$addToSet", "$facet", "$graphLookup", "$sample")

# The comment of commands whose results have the order of an index.
ANY_ORDER = "in any order"

# The first of the object ids that a server makes up while the suite runs; those in cases are older.
MADE_UP_FROM = ObjectId("68000000" + "0" * 16)


def normal(value, key=""):
    """The value with everything volatile replaced by its type."""
    if isinstance(value, dict):
        # Fields by collection are UUIDs, and fields by index are names of files.
        return {name: normal(inner, "uuid" if key in ("uuids", "idxIdent") else name) for name, inner in value.items()}
    if isinstance(value, list) and key not in VOLATILE:
        inner = [normal(inner) for inner in value]
        return sorted(inner, key=typed) if key in ANY_ORDER_FIELDS else inner
    if key == "id" and isinstance(value, Int64):
        return "<cursor>" if value else value
    if key in VOLATILE:
        return f"<{type(value).__name__}>"
    if isinstance(value, ObjectId) and value >= MADE_UP_FROM:
        return "<made up>"
    if isinstance(value, bson.DatetimeMS) and int(value) > 1_745_000_000_000 and int(value) < 2_000_000_000_000:
        return "<now>"
    if isinstance(value, Timestamp) and 1_745_000_000 < value.time < 2_000_000_000:
        return "<now>"
    if isinstance(value, Binary) and value.subtype == 4 and key in ("info", "id"):
        return "<uuid>"
    if key == "errmsg":
        return normal_message(value)
    return value


def normal_message(text: str) -> str:
    """Returns the message without the query as MongoDB's planner formats it."""
    text = re.sub(r"ns=\S+Tree: .*\nSort: .*\nProj: .*\n(Collation: .*\n)? ", "", text)
    return re.sub(r"cursor (id )?\d+", "cursor", UUID.sub("<uuid>", text))


def identical(ours, theirs) -> bool:
    """Returns whether two values are identical, including types of numbers, the order of fields and
    the bits of doubles."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(identical(ours[name], theirs[name]) for name in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(identical, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return struct.pack("<d", ours) == struct.pack("<d", theirs) or ours != ours and theirs != theirs
    return type(ours) is type(theirs) and ours == theirs


def loosely(value):
    """Returns the value with sorted fields, as a reply's fields beside its results have no defined
    order."""
    if isinstance(value, dict):
        return {name: loosely(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [loosely(inner) for inner in value]
    return value


def batch_of(raw: RawBSONDocument):
    """The documents of a reply's cursor, as bytes, or None."""
    cursor = raw.get("cursor")
    if not isinstance(cursor, RawBSONDocument):
        return None
    batch = cursor.get("firstBatch", cursor.get("nextBatch"))
    return None if batch is None else [bytes(document.raw) for document in batch]


def decoded(document: bytes):
    try:
        return normal(bson.decode(document, PLAIN))
    except bson.errors.InvalidBSON:
        return document


def typed(value) -> str:
    """Returns a text that distinguishes the types of numbers, as a sort key."""
    if isinstance(value, dict):
        return "{%s}" % ",".join(f"{name!r}:{typed(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "[%s]" % ",".join(map(typed, value))
    return f"{value!r} {type(value).__name__}"


def settled(value):
    """Arrays in one order, all the way down, for results that have none."""
    if isinstance(value, dict):
        return {name: settled(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted((settled(inner) for inner in value), key=typed)
    return value


def same_batch(ours: list[bytes], theirs: list[bytes], command: dict) -> bool:
    if ours == theirs:
        return True
    if len(ours) != len(theirs):
        return False
    ours, theirs = [decoded(document) for document in ours], [decoded(document) for document in theirs]
    if any(f"'{name}'" in str(command.get("pipeline")) for name in UNORDERED_WITHIN) or "pipeline" in command and is_open(command):
        return identical(settled(ours), settled(theirs))
    if not keeps_order(command) or lists_as_ids(command, ours):
        ours, theirs = sorted(ours, key=typed), sorted(theirs, key=typed)
    return identical(ours, theirs)


def summary(reply: dict, messages: bool) -> dict:
    """Returns the parts of a reply to compare besides its documents."""
    reply = {name: value for name, value in reply.items() if messages or name != "errmsg"}
    if isinstance(reply.get("cursor"), dict):
        reply["cursor"] = {name: value for name, value in reply["cursor"].items() if name not in ("firstBatch", "nextBatch")}
    for errors in ("writeErrors", "writeConcernError"):
        if not messages and isinstance(reply.get(errors), list):
            reply[errors] = [{name: value for name, value in error.items() if name != "errmsg"} for error in reply[errors]]
    for cursors in ("cursorsKilled", "cursorsNotFound"):
        if reply.get(cursors):
            reply[cursors] = ["<cursor>"]
    return loosely(normal(reply))


def keeps_order(command: dict) -> bool:
    """Returns whether the results have a defined order: all stages keep it, or a sort by `_id`
    follows."""
    if is_open(command):
        return False
    pipeline = command.get("pipeline")
    if not isinstance(pipeline, list):
        return True
    ordered = True
    for stage in pipeline:
        name = next(iter(stage), "") if isinstance(stage, dict) else ""
        if name in UNORDERED:
            ordered = False
        elif name == "$sort" and isinstance(stage[name], dict):
            ordered = ordered or "_id" in stage[name]
    return ordered


def is_open(command: dict) -> bool:
    return command.get("comment") == ANY_ORDER


def lists_as_ids(command: dict, documents: list) -> bool:
    """Returns whether groups have arrays as `_id`, whose sort order is not unique."""
    lists = any(isinstance(document, dict) and isinstance(document.get("_id"), list) for document in documents)
    return lists and any(name in str(command.get("pipeline")) for name in ("$group", "$sortByCount"))


def same(command: dict, ours: bytes, theirs: bytes, messages: bool = False) -> bool:
    """Returns whether two replies to `command` are equal."""
    if ours == theirs:
        return True
    try:
        our, their = RawBSONDocument(ours, RAW), RawBSONDocument(theirs, RAW)
        our_batch, their_batch = batch_of(our), batch_of(their)
        if (our_batch is None) != (their_batch is None):
            return False
        if our_batch is not None and not same_batch(our_batch, their_batch, command):
            return False
        our, their = bson.decode(ours, PLAIN), bson.decode(theirs, PLAIN)
    except bson.errors.InvalidBSON:
        # MongoDB quotes the bytes of values unchanged, which may be invalid text. The code precedes
        # the text.
        return code_of(ours) == code_of(theirs)
    our, their = summary(our, messages), summary(their, messages)
    if is_open(command) and isinstance(our.get("values"), list) and isinstance(their.get("values"), list):
        our, their = ({**reply, "values": settled(reply["values"])} for reply in (our, their))
    return identical(our, their)


def code_of(reply: bytes) -> int | None:
    """The error code, found without reading the texts."""
    place = reply.find(b"\x10code\0")
    return struct.unpack_from("<i", reply, place + 6)[0] if place >= 0 else None


def shown(reply: bytes, length: int = 500) -> str:
    """A reply for people to read."""
    try:
        document = bson.decode(reply, PLAIN)
    except bson.errors.InvalidBSON:
        return f"code {code_of(reply)}, with a message that is no text"
    if "errmsg" in document:
        return f"error {document.get('code')}: {document['errmsg']}"[:length]
    cursor = document.get("cursor")
    if isinstance(cursor, dict) and "firstBatch" in cursor:
        return f"{cursor['firstBatch']}"[:length] + (" and more to come" if cursor.get("id") else "")
    return str({name: value for name, value in document.items() if name != "ok"})[:length]


def shown_apart(ours: bytes, theirs: bytes) -> tuple[str, str]:
    """Two replies for people to read; of long lists only what one has and the other has not."""
    try:
        our_batch, their_batch = (batch_of(RawBSONDocument(reply, RAW)) for reply in (ours, theirs))
    except bson.errors.InvalidBSON:
        our_batch = their_batch = None
    if our_batch is None or their_batch is None or max(len(our_batch), len(their_batch)) < 3 or sorted(our_batch) == sorted(their_batch):
        return shown(ours), shown(theirs)

    def only(one, other):
        extra = [decoded(document) for document in one if document not in other]
        return f"of {len(one)} documents, these: {extra[:4]}"[:500]

    return only(our_batch, their_batch), only(their_batch, our_batch)
