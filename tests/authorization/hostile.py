"""Commands of the matrix and pipelines of the scenarios, changed at random: sent by users that must
not see or change what they ask for.

    cd tests && python -m authorization.hostile PORT 100000 [SEED]     against a server of its own
"""

import random
import struct
import sys
import uuid

import bson
from bson import SON, Int64
from bson.binary import Binary
from bson.raw_bson import RawBSONDocument

from authorization.cases import CASES, PIPELINES, READS, WRITES
from authorization.scenarios.reading import READS_OF, joins
from authorization.world import World, digest
from support.wire import OP_MSG, Wire, message, op_query, reply_document

# The collections whose documents a user may read, and those that it may change.
READABLE = {
    None: (), "nothing": (), "inserts": (), "finds in c": ("own.c",), "finds in v": ("own.c low",), "writes to d": ("own.c",),
    "reader of admin": ("admin.taken",), "granter": (), "administrator": (), "clusterMonitor": (), "finds in t": (), "hostManager": (),
    "finds in c of any": ("own.c", "other.c"), "makes views": ("own.c",), "applies": ("own.c",), "lists": (),
}
# The users that may read something are the most interesting.
WEIGHTS = {"finds in c": 6, "finds in v": 3, "writes to d": 4, "finds in c of any": 2, "makes views": 2, "applies": 2}
WRITABLE = {"inserts": ("own.c",), "writes to d": ("own.d", "own"), "applies": ("own.c",)}
# These may change the catalog, or users.
CHANGES = ("administrator", "granter", "makes views", "hostManager")
COLLECTIONS = [(db, name) for db in ("own", "other") for name in "cde"] + [("admin", "taken")]
NAMES = [
    *"cdvwcdvwcdvwcdvwcdddd", "t", "absent", "own.c", "own.d", "other.d", "other.c", "admin.system.users", "system.users", "system.roles",
    "system.views", "system.js", "system.profile", "system.buckets.t", "$cmd.aggregate", "$cmd.listCollections", "$cmd", "", "own",
    "other", "admin", "config", "local", "selkie", "mysql", "information_schema", "taken", "D", "d ", "d\0", "D.", ".d", "$d", "d.", "OWN", "own ",
    "system.namespaces", "system.indexes", "tempusers", "anna", "admin.tempusers", "$external", "$out", "$lookup",
]
DATABASES = ("own", "other", "admin", "config", "local", "selkie", "mysql", "information_schema", "performance_schema", "sys", "OWN", "Other",
             "$external", "absent")
SKIPPED = ("logout", "shutdown", "saslStart", "saslContinue", "authenticate", "setFreeMonitoring", "rotateCertificates")


class Pairs(list):
    """A document as a list of names and values, so that a name may occur twice."""

    def encode(self) -> bytes:
        body = b"".join(element(name, value) for name, value in self)
        return struct.pack("<i", len(body) + 5) + body + b"\0"


def element(name: str, value) -> bytes:
    name = name.replace("\0", "")
    if isinstance(value, Pairs):
        return b"\3" + name.encode() + b"\0" + value.encode()
    if isinstance(value, list):
        return b"\4" + name.encode() + b"\0" + Pairs((str(index), inner) for index, inner in enumerate(value)).encode()
    return bson.encode({"x": value})[4:5] + name.encode() + b"\0" + bson.encode({"x": value})[7:-1]


def as_pairs(value):
    if isinstance(value, dict):
        return Pairs((name, as_pairs(inner)) for name, inner in value.items())
    return [as_pairs(inner) for inner in value] if isinstance(value, list | tuple) else value


def documents_in(value) -> list[Pairs]:
    """All documents within a value."""
    if isinstance(value, Pairs):
        return [value, *(found for _, inner in value for found in documents_in(inner))]
    return [found for inner in value for found in documents_in(inner)] if isinstance(value, list) else []


def arrays_in(value) -> list[list]:
    if isinstance(value, Pairs):
        return [found for _, inner in value for found in arrays_in(inner)]
    return [value, *(found for inner in value for found in arrays_in(inner))] if isinstance(value, list) else []


class Attack:
    """Random commands by one seed."""

    def __init__(self, world: World, seed: int):
        self.random = random.Random(seed)
        rows = world.do({"listCollections": 1, "$db": "own"})["cursor"]["firstBatch"]
        self.uuids = [row["info"]["uuid"] for row in rows if "uuid" in row.get("info", {})] + [Binary(bytes(16), 4)]
        self.stages = [stage for name in ("d", "system.users", "system.buckets.t", "w") for stage in joins(name).values()]
        self.stages += [stage for command in PIPELINES.values() for stage in command("own")["pipeline"]]
        self.commands = [case for name, case in CASES.items() if name not in SKIPPED]
        self.reads = [lambda db, read=read: read(self.random.choice("ccccdvw")) for read in READS_OF.values()]
        self.reads += [*PIPELINES.values(), *READS.values(), *WRITES.values()]
        self.reads += [lambda db: SON(aggregate="c", pipeline=self.random.choices(self.stages, k=self.random.randrange(4)), cursor={})] * 60
        self.reads += [lambda db: SON(find="c", filter={"a": {"$gte": 0}}, projection={"from": 1}, sort={"a": 1})] * 20

    def any_value(self):
        choose = self.random.choice
        return choose([
            choose(NAMES), choose(NAMES), choose(NAMES), choose(NAMES), choose(NAMES), choose(self.uuids), True, False, 0, 1, -1, None, Int64(1), 1.5, [], Pairs(), [choose(NAMES)],
            as_pairs(choose(self.stages)), [as_pairs(choose(self.stages))], as_pairs({"db": choose(DATABASES), "coll": choose(NAMES)}),
            as_pairs({"$literal": 1}), "$$ROOT",
        ])

    def any_field(self) -> tuple:
        choose = self.random.choice
        return choose([
            ("help", choose([True, False])), ("explain", True), ("$db", choose(DATABASES)), ("collectionUUID", choose(self.uuids)),
            ("lsid", as_pairs({"id": Binary(uuid.uuid4().bytes, 4), "uid": digest("root")})), ("lsid", as_pairs({"id": Binary(uuid.uuid4().bytes, 4)})),
            ("$audit", as_pairs({"$impersonatedUsers": [{"user": "root", "db": "admin"}], "$impersonatedRoles": [{"role": "root", "db": "admin"}]})),
            ("nameOnly", True), ("authorizedCollections", True), ("authorizedDatabases", True), ("$ownOps", True), ("$all", True),
            ("allUsers", True), ("bypassDocumentValidation", True), ("cursor", Pairs()), ("batchSize", 0), ("filter", Pairs()), ("dropTarget", True),
            ("viewOn", choose(NAMES)), ("pipeline", [as_pairs(choose(self.stages))]), ("from", choose(NAMES)), ("coll", choose(NAMES)),
            ("to", choose(NAMES)), ("into", choose(NAMES)), ("out", choose(NAMES)), ("upsert", True), ("new", True), ("remove", True),
            ("fromMongos", True), ("needsMerge", True), ("mayBypassWriteBlocking", True), ("$tenant", self.any_value()), ("comment", "x"),
            ("users", [as_pairs({"user": "root", "db": "admin"})]), ("showCredentials", True), ("apiVersion", "1"), ("$query", self.any_value()),
            ("singleBatch", True), ("tailable", True), ("returnKey", True), ("showRecordId", True), ("readConcern", as_pairs({"level": "local"})),
        ])

    def change(self, command: Pairs):
        choose = self.random.choice
        document = choose(documents_in(command))
        kind = self.random.randrange(9)
        at = self.random.randrange(len(document)) if document else None
        if kind == 0 and document:
            document.insert(self.random.randrange(len(document) + 1), (document[at][0], self.any_value()))
        elif kind == 1 and document:
            document.insert(self.random.randrange(len(document) + 1), (document[at][0], document[at][1]))
        elif kind == 2 and document:
            document[at] = (document[at][0], self.any_value())
        elif kind in (3, 4):
            document.insert(self.random.randrange(1, len(document) + 1) if document is command else 0, self.any_field())
        elif kind == 5 and arrays_in(command):
            array = choose(arrays_in(command))
            array.insert(self.random.randrange(len(array) + 1), as_pairs(choose(self.stages)))
        elif kind == 6:
            strings = [(found, index) for found in documents_in(command) for index, (_, value) in enumerate(found) if isinstance(value, str)]
            if strings:
                found, index = choose(strings)
                found[index] = (found[index][0], choose(NAMES))
        elif kind == 7 and len(document) > 1:
            other = self.random.randrange(1, len(document))
            document[other], document[at or 1] = (document[other][0], document[at or 1][1]), (document[at or 1][0], document[other][1])
        elif kind == 8 and document and document is not command:
            document[at] = (self.any_field()[0], document[at][1])

    def message(self) -> bytes:
        """Returns a whole message with a changed command."""
        choose = self.random.choice
        db = "own" if self.random.random() < 0.8 else choose(DATABASES)
        command = as_pairs(choose(self.reads if self.random.random() < 0.8 else self.commands)(choose(("own", "own", "other", "admin"))))
        for _ in range(self.random.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            self.change(command)
        if self.random.random() < 0.1:
            command = Pairs([("explain", command), ("verbosity", choose(("queryPlanner", "executionStats")))])
        if self.random.random() < 0.05 and command:
            # Old drivers wrap a command; a server must not unwrap it twice.
            for _ in range(self.random.randrange(3)):
                command = Pairs([(choose(("$query", "query")), command), self.any_field()])
            return op_query(f"{db}.$cmd", RawBSONDocument(command.encode()), 1)
        command.append(("$db", db))
        sections = b""
        sequences = [(name, value) for name, value in command[1:] if isinstance(value, list) and all(isinstance(inner, Pairs) for inner in value)]
        if sequences and self.random.random() < 0.2:
            name, value = choose(sequences)
            if self.random.random() < 0.7:
                command = Pairs(pair for pair in command if pair[1] is not value)
            section = name.replace("\0", "").encode() + b"\0" + b"".join(inner.encode() for inner in value)
            sections = b"\1" + struct.pack("<i", len(section) + 4) + section
        return message(OP_MSG, struct.pack("<I", 0) + b"\0" + command.encode() + sections)


class Canaries:
    """A word in each document of each collection, which shows that a reply has it."""

    def __init__(self, world: World):
        self.world = world
        self.words = {}
        for db, name in COLLECTIONS:
            for part in ("low", "high"):
                self.words[f"{db}.{name} {part}"] = f"canary{uuid.uuid4().hex}"
            rows = [{"_id": number, "a": number, "from": self.words[f"{db}.{name} {'low' if number < 5 else 'high'}"]} for number in range(10)]
            world.do({"delete": name, "deletes": [{"q": {}, "limit": 0}], "$db": db})
            world.do({"insert": name, "documents": rows, "$db": db})
        self.stored = self.read()

    def read(self) -> dict:
        """All documents that could be changed, by collection."""
        rows = {f"{db}.{name}": self.world.do({"find": name, "$db": db})["cursor"]["firstBatch"] for db, name in COLLECTIONS}
        for db in ("own", "other", "admin"):
            names = self.world.do({"listCollections": 1, "$db": db})["cursor"]["firstBatch"]
            rows[db] = sorted((row["name"], str(row.get("options"))) for row in names)
        rows["users"] = self.world.do({"find": "system.users", "$db": "admin"})["cursor"]["firstBatch"]
        rows["roles"] = self.world.do({"find": "system.roles", "$db": "admin"})["cursor"]["firstBatch"]
        return rows

    def leaks(self, user: str | None, reply: bytes) -> list[str]:
        allowed = READABLE[user]
        found = [name for name, word in self.words.items() if word.encode() in reply]
        if b"storedKey" in reply and b"serverKey" in reply:
            found.append("credentials")
        return [name for name in found if not name.startswith(allowed or ("nothing at all",))]


def receive(connection: Wire) -> bytes:
    (opcode, _, body) = connection.receive()
    return reply_document(opcode, body)


def run(world: World, count: int, seed: int) -> list[str]:
    """Sends the commands. Returns the documents that a user has seen or changed although it must
    not."""
    attack, canaries, found = Attack(world, seed), Canaries(world), []
    users = list(READABLE)
    connections = {user: world.login(user) if user else Wire(world.port, timeout_s=60) for user in users}
    for number in range(count):
        (user,) = attack.random.choices(users, [WEIGHTS.get(user, 1) for user in users])
        sent = attack.message()
        try:
            connections[user].send(sent)
            reply = receive(connections[user])
        except (ConnectionError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                found.append(f"{user}: no reply to {shown(sent)}")
            connections[user] = world.login(user) if user else Wire(world.port, timeout_s=60)
            continue
        read = bson.decode(reply)
        cursor = read.get("cursor")
        if read.get("ok") == 1 and isinstance(cursor, dict) and cursor.get("id"):
            db, _, collection = cursor["ns"].partition(".")
            more = connections[user].run({"getMore": cursor["id"], "collection": collection, "$db": db})
            reply += bson.encode(more)
        found += [f"{user} has seen {leak}: {shown(sent)}" for leak in canaries.leaks(user, reply)]
        if read.get("ok") == 1 and user not in CHANGES:
            now = canaries.read()
            changed = [name for name in now if now[name] != canaries.stored[name] and name not in WRITABLE.get(user, ())]
            found += [f"{user} has changed {name}: {shown(sent)}: {read}" for name in changed]
            canaries.stored = now
        elif user in CHANGES and read.get("ok") == 1:
            canaries.stored = canaries.read()
    [connection.socket.close() for connection in connections.values()]
    return found


def shown(sent: bytes) -> str:
    (opcode,) = struct.unpack_from("<i", sent, 12)
    try:
        return f"{opcode} {RawBSONDocument(sent[21:21 + struct.unpack_from('<i', sent, 21)[0]])!r}" if opcode == OP_MSG else repr(sent)
    except bson.errors.InvalidBSON:
        return repr(sent)


def main() -> int:
    found = run(World(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
