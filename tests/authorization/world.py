"""A server with users of few privileges, and the commands that they send."""

import contextlib
import hashlib
import struct
import uuid

import bson
import pymongo
from bson import SON
from bson.binary import Binary
from bson.raw_bson import RawBSONDocument

from authorization.users import on, privilege
from support.scram import log_in
from support.wire import Wire, op_msg

PASSWORD = "scenario"
READ_WRITE = SON(role="readWrite", db="own")

ROLES = {
    "finds in c": [privilege(on("own", "c"), "find")],
    "finds in v": [privilege(on("own", "v"), "find")],
    "finds in w": [privilege(on("own", "w"), "find")],
    "finds in c and d": [privilege(on("own", "c"), "find"), privilege(on("own", "d"), "find")],
    "finds in c of any": [privilege(on("", "c"), "find")],
    "finds in t": [privilege(on("own", "t"), "find")],
    "makes views": [privilege(on("own", ""), "createCollection", "collMod", "dropCollection"), privilege(on("own", "c"), "find")],
    "inserts": [privilege(on("own", "c"), "insert")],
    "updates": [privilege(on("own", "c"), "update")],
    "writes to d": [privilege(on("own", "c"), "find"), privilege(on("own", "d"), "insert", "remove")],
    "applies": [privilege(SON(cluster=True), "applyOps"), privilege(on("own", "c"), "insert", "update", "find")],
    "lists": [privilege(on("own", ""), "listCollections")],
    "kills in own": [privilege(on("own", ""), "killAnyCursor")],
    "kills in c": [privilege(on("own", "c"), "killAnyCursor")],
    "sees sessions": [privilege(SON(cluster=True), "listSessions")],
    "resolves": [privilege(SON(cluster=True), "useUUID")],
}
USERS = {
    "anna": [READ_WRITE], "ben": [READ_WRITE], "carl": [READ_WRITE], "nothing": [],
    "reader": [SON(role="read", db="own")], "reader of admin": [SON(role="read", db="admin")],
    "owner": [SON(role="dbOwner", db="own")], "administrator": [SON(role="dbAdmin", db="own")],
    "granter": [SON(role="userAdmin", db="own")],
    **{role: [role] for role in (
        "clusterMonitor", "hostManager", "readAnyDatabase", "readWriteAnyDatabase", "dbAdminAnyDatabase",
        "userAdminAnyDatabase", "backup", "restore", "clusterManager")},
    **{role: [role] for role in ROLES},
}


class World:
    """A server with these users, some collections, views and documents."""

    def __init__(self, port: int):
        self.port = port
        with pymongo.MongoClient(port=port, directConnection=True) as client:
            client.admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
        self.root = self.login("root")
        for role, privileges in ROLES.items():
            self.do({"createRole": role, "privileges": privileges, "roles": [], "$db": "admin"})
        for user, roles in USERS.items():
            self.do({"createUser": user, "pwd": PASSWORD, "roles": roles, "$db": "admin"})
        for db in ("own", "other", "third"):
            for collection in "cde":
                documents = [{"_id": number, "a": number, "from": f"{db}.{collection}"} for number in range(10)]
                self.do({"insert": collection, "documents": documents, "$db": db})
        self.do({"create": "taken", "$db": "admin"})
        lookup = {"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "joined"}}
        self.do({"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": {"$lt": 5}}}], "$db": "own"})
        self.do({"create": "w", "viewOn": "v", "pipeline": [lookup], "$db": "own"})
        self.do({"create": "t", "timeseries": {"timeField": "at"}, "$db": "own"})
        self.do({"create": "capped", "capped": True, "size": 4096, "$db": "own"})
        self.do({"insert": "capped", "documents": [{"_id": 1}], "$db": "own"})

    def do(self, command: dict) -> dict:
        """Runs a command as root, which must succeed."""
        reply = self.root.run(command)
        assert reply["ok"] == 1 and "writeErrors" not in reply, (command, reply)
        return reply

    def login(self, user: str) -> Wire:
        connection = Wire(self.port, timeout_s=60)
        reply = log_in(connection, user, PASSWORD, "admin")
        assert reply["ok"], (user, reply)
        return connection

    @contextlib.contextmanager
    def users(self, *names: str):
        """Yields a connection for each user; a name may occur twice."""
        connections = [self.login(name) for name in names]
        try:
            yield connections if len(connections) > 1 else connections[0]
        finally:
            [connection.socket.close() for connection in connections]

    @contextlib.contextmanager
    def revoked(self, user: str, role):
        self.do({"revokeRolesFromUser": user, "roles": [role], "$db": "admin"})
        try:
            yield
        finally:
            self.do({"grantRolesToUser": user, "roles": [role], "$db": "admin"})


def digest(user: str, db: str = "admin") -> Binary:
    """The owner of a session."""
    return Binary(hashlib.sha256(f"{user}@{db}".encode()).digest())


def new_session() -> SON:
    return SON(id=Binary(uuid.uuid4().bytes, 4))


def outcome(reply: dict, *shown: str):
    """The code and message of an error, or these fields of a reply, without ids."""
    if reply["ok"] != 1:
        return reply["code"], reply["errmsg"]
    errors = [(error["code"], error["errmsg"]) for error in reply.get("writeErrors", [])]
    return ("ok", *errors, *(reply.get(name) for name in shown))


def is_denied(reply: dict) -> bool:
    return outcome(reply)[0] == 13


def batch(reply: dict):
    """The documents of a batch, or the error."""
    cursor = reply.get("cursor")
    if reply["ok"] != 1 or cursor is None:
        return outcome(reply)
    return cursor.get("firstBatch", cursor.get("nextBatch")), cursor["id"] != 0


def without(text, *hidden):
    """Replaces ids, which differ from run to run."""
    if isinstance(text, tuple | list):
        return type(text)(without(part, *hidden) for part in text)
    if isinstance(text, str):
        for name in hidden:
            text = text.replace(str(name), "…")
    return text


def fields(*pairs) -> RawBSONDocument:
    """A document in which a field may occur twice."""
    body = b"".join(bson.encode({name: value})[4:-1] for name, value in pairs)
    return RawBSONDocument(struct.pack("<i", len(body) + 5) + body + b"\0")


def ask(connection: Wire, db: str, command: dict, **more) -> dict:
    return connection.run({**command, "$db": db, **more})
