"""Statements of transactions over a plain socket, with sessions and numbers of our own."""

import re
import uuid

from bson import Binary, Int64

from .wire import Wire


class Sessions:
    """Commands in sessions with numbers of our own, which no driver would send."""

    def __init__(self, server):
        self.wire = Wire(server.port)
        self.ids = {}

    def run(self, command, database="t", session=None, number=None, start=False, **fields) -> dict:
        body = dict(command)
        if session is not None:
            self.ids.setdefault(session, Binary(uuid.uuid4().bytes, 4))
            body["lsid"] = {"id": self.ids[session]}
        if number is not None:
            body |= {"txnNumber": Int64(number), "autocommit": False}
        if start:
            body["startTransaction"] = True
        return self.wire.run(body | fields | {"$db": database})

    def close(self):
        self.wire.socket.close()


def comparable(reply: dict) -> dict:
    """The part of a reply that both servers must agree on."""
    kept = {"ok", "code", "codeName", "errmsg", "errorLabels", "n", "nModified", "writeErrors", "cursor", "values", "value"}
    reply = {key: value for key, value in reply.items() if key in kept}
    if "errmsg" in reply:
        # Sessions, cursors, and the names of WiredTiger's files.
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "SESSION", reply["errmsg"])
        text = re.sub(r"cursor -?\d+", "cursor ID", text)
        reply["errmsg"] = re.sub(r"^WiredTigerIdIndex.*caused by :: ", "", text)
    if "cursor" in reply:
        cursor = dict(reply["cursor"])
        cursor["id"] = bool(cursor["id"])
        reply["cursor"] = cursor
    return reply


FIND = {"find": "c", "filter": {"_id": 1}}
ALL = {"find": "c", "sort": {"_id": 1}}
COMMIT, ABORT = {"commitTransaction": 1}, {"abortTransaction": 1}


def insert(*ids, collection="c"):
    return {"insert": collection, "documents": [{"_id": i, "x": i} for i in ids]}


def increase(i, collection="c"):
    return {"update": collection, "updates": [{"q": {"_id": i}, "u": {"$inc": {"x": 1}}}]}


def admin(command, **options):
    return command, {"database": "admin", **options}


def of(session, number, command, start=False, **fields):
    database = "admin" if command in (COMMIT, ABORT) else "t"
    return command, {"database": database, "session": session, "number": number, "start": start, **fields}
