"""Sends the same commands to Selkie and MongoDB, many at a time, and reports the differences."""

import re
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field

import bson
from bson import Int64
from bson.raw_bson import RawBSONDocument

from compat.case import COLLECTION, DATABASE, Block, Differs
from compat.compare import PLAIN, RAW, batch_of, code_of, same, shown_apart
from compat.known import known_reason
from support import odd_bson

# Stands for the id of the cursor that the command before gave.
CURSOR = Int64(-1)
# The server parameter that keeps MongoDB from its second engine.
CLASSIC = "internalQueryForceClassicEngine"
# The server parameter for the bytes that MongoDB reads ahead of a pipeline, and its default.
READ_AHEAD, READ_AHEAD_BYTES = "internalDocumentSourceCursorBatchSizeBytes", 4 * 1024 * 1024

# Stages whose documents we have all read before the first comes out, and MongoDB in part.
READING_ALL = {"$setWindowFields", "$fill", "$bucketAuto"}
# Commands that are under way at once. Requests of one turn stay well below a socket's buffer.
TURN_COMMANDS, TURN_BYTES = 64, 64 * 1024


# The last fields of a router's reply: 88 bytes of `$clusterTime`, and `operationTime`.
TIMES = re.compile(rb"\x03\$clusterTime\0.{88}\x11operationTime\0.{8}\0\Z", re.DOTALL)


class Side:
    """A connection to one server."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = bytearray()

    def send(self, requests: list[bytes]):
        self.socket.sendall(b"".join(requests))

    def receive(self) -> bytes:
        """The document of one reply."""
        length = struct.unpack("<i", self._take(4))[0]
        return without_times(self._take(length - 4)[17:])

    def _take(self, count: int) -> bytes:
        while len(self.received) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError("the server has closed the connection")
            self.received += piece
        taken = bytes(self.received[:count])
        del self.received[:count]
        return taken


def without_times(reply: bytes) -> bytes:
    """Returns a reply without the times that a router adds, and a standalone server does not."""
    bare = TIMES.sub(b"\0", reply)
    return struct.pack("<i", len(bare)) + bare[4:]


def request(command: dict) -> bytes:
    whole = {**command, "$db": command.get("$db", DATABASE)}
    try:
        raw = bson.encode(whole)
    except UnicodeEncodeError:
        raw = odd_bson.encode(whole)
    return struct.pack("<iiiiIb", len(raw) + 21, 1, 0, 2013, 0, 0) + raw


def turns(requests: list[bytes]):
    """The requests in groups that are sent at once."""
    turn, size = [], 0
    for one in requests:
        if turn and (len(turn) >= TURN_COMMANDS or size + len(one) > TURN_BYTES):
            yield turn
            turn, size = [], 0
        turn.append(one)
        size += len(one)
    if turn:
        yield turn


@dataclass
class Difference:
    """A case that was answered differently, and where."""

    family: str
    collections: dict
    command: dict
    ours: str
    theirs: str
    setup: list = field(default_factory=list)

    def __str__(self):
        told = f"[{self.family}] {self.command}\n  Selkie   {self.ours}\n  MongoDB  {self.theirs}"
        # Random documents are only printed once they have been minimized.
        few = sum(map(len, self.collections.values())) <= 4
        told += f"\n  over     {self.collections}" if few and self.family.startswith("random") else ""
        return f"{told}\n  with     {self.setup}" if self.setup else told


class Pair:
    """Selkie and MongoDB side by side."""

    def __init__(self, port: int, oracle_port: int, store: str = "embedded"):
        self.store = store
        self.ports = (port, oracle_port)
        self.sides = [Side(port), Side(oracle_port)]

    def ask(self, commands: list[dict]) -> list[tuple[bytes, bytes]]:
        """The two answers to each command. Both servers work at the same time."""
        answers = []
        for turn in turns([request(command) for command in commands]):
            for side in self.sides:
                side.send(turn)
            ours = [self.sides[0].receive() for _ in turn]
            theirs = [self.sides[1].receive() for _ in turn]
            answers += zip(ours, theirs)
        return answers

    def load(self, collections: dict[str, list[dict]]) -> list[dict]:
        """The commands that make the collections hold these documents and no others."""
        commands = []
        for name, documents in collections.items():
            commands.append({"delete": name, "deletes": [{"q": {}, "limit": 0}]})
            if documents:
                commands.append({"insert": name, "documents": documents, "ordered": False})
        return commands

    def look(self, collections) -> list[dict]:
        """Returns the commands that read the contents of the collections."""
        return [{"find": name, "sort": {"_id": 1}, "batchSize": 1000} for name in collections]

    def reset(self, block: Block):
        """Prepares an empty database with the block's indexes and other setup."""
        self.ask([{"dropDatabase": 1}, *({"create": name} for name in block.collections), *block.setup])

    def set_up(self, setup: list[dict], collections):
        """Creates indexes and other setup. If only one side can create them, because an earlier
        case has left different documents there for a known reason, they are created on empty
        collections. On equal documents it is a difference, which the cases show."""
        if all(code_of(ours) == code_of(theirs) for ours, theirs in self.ask(setup)):
            return
        look = self.look(collections)
        if not all(same(command, *pair) for command, pair in zip(look, self.ask(look))):
            self.ask([*self.load({name: [] for name in collections}), *setup])

    def run(self, block: Block, tally: Counter) -> list[Difference]:
        """Runs all cases of a block; `tally` counts cases and differences, per family."""
        if block.only and block.only[0] != self.store:
            for case in block.cases:
                tally[block.family, "asked"] += 1
                tally[block.family, "known"] += 1
            return []
        self.reset(block)
        if block.script:
            answers = self.run_script(block)
        elif block.writes:
            answers = self.run_writes(block)
        else:
            self.ask(self.load(block.collections))
            answers = [[pair] for pair in self.ask([plain(case) for case in block.cases])]
        differences = []
        for case, pairs in zip(block.cases, answers, strict=True):
            differences += self.judge(block, case, pairs, tally)
        return differences

    def run_script(self, block: Block) -> list:
        cursors, answers = [Int64(1), Int64(1)], []
        for case in block.cases:
            pair = []
            for index, side in enumerate(self.sides):
                side.send([request(with_cursor(plain(case), cursors[index]))])
                pair.append(side.receive())
                cursors[index] = given_cursor(pair[-1]) or cursors[index]
            answers.append([tuple(pair)])
        return answers

    def run_writes(self, block: Block) -> list:
        """Returns the reply of each case, and the contents of its collections afterwards."""
        load, look = self.load(block.collections), self.look(block.collections)
        everything = [command for case in block.cases for command in [*load, plain(case), *look]]
        answers, length = self.ask(everything), len(load) + 1 + len(look)
        return [answers[at + len(load) : at + length] for at in range(0, len(answers), length)]

    def judge(self, block: Block, case, pairs, tally: Counter) -> list[Difference]:
        marked = isinstance(case, Differs) and case.store in (None, self.store)
        command = plain(case)
        tally[block.family, "asked"] += 1
        wrong = [pair for pair in pairs if not same(command, *pair, messages=block.messages)]
        if marked and wrong:
            tally[block.family, "known"] += 1
            return []
        if marked:
            return [Difference(block.family, block.collections, command, "the same", f"agrees by now: {case.reason}")]
        if not wrong:
            return []
        asked = Asked(self, block, command, pairs)
        if all(known_reason(command, *pair, asked) for pair in wrong):
            tally[block.family, "known"] += 1
            return []
        tally[block.family, "differ"] += 1
        return [Difference(block.family, block.collections, command, *shown_apart(*wrong[0]), block.setup)]


class Asked:
    """A command that was answered differently, and more questions about it to MongoDB."""

    def __init__(self, pair: Pair, block: Block, command: dict, pairs: list):
        self.pair, self.block, self.command, self.pairs = pair, block, command, pairs

    def classic(self, ours: bytes) -> bytes | None:
        """Returns the reply of MongoDB's classic engine to replace `ours`; `None` if the documents
        do not exist any more."""
        reads = "aggregate" in self.command or "find" in self.command or self.command[next(iter(self.command))] == "v"
        if self.block.script or not reads:
            return None
        engine = lambda classic: {"setParameter": 1, CLASSIC: classic, "$db": "admin"}
        load = self.pair.load(self.block.collections) if self.block.writes else []
        look = self.pair.look(self.block.collections) if self.block.writes else []
        answers = self.oracle([engine(True), *load, self.command, *look, engine(False)])[1 + len(load) : -1]
        return answers[next(at for at, pair in enumerate(self.pairs) if pair[0] is ours)]

    def unindexed(self) -> bytes | None:
        """Returns MongoDB's reply without the indexes of the setup, or without the one on `_id`."""
        if self.block.script or self.block.writes:
            return None
        if not any("createIndexes" in one for one in self.block.setup):
            hinted = "hint" not in self.command and next(iter(self.command)) in ("find", "aggregate", "count")
            return self.oracle([{**self.command, "hint": {"$natural": 1}}])[0] if hinted else None
        name = self.command[next(iter(self.command))]
        answers = self.oracle([{"dropIndexes": name, "index": "*"}, self.command, *self.block.setup])
        return answers[1]

    def alone(self):
        """Returns MongoDB's replies to the parts of the command: one document or one field each."""
        if self.block.script:
            return
        load = self.pair.load(self.block.collections) if self.block.writes else []
        try:
            for command in alone(self.command, self.block.collections):
                yield self.oracle([*load, command])[-1]
        except (AttributeError, KeyError, TypeError):
            return  # A command that is not made as it should be has no parts.
        if self.command[next(iter(self.command))] == "v" and not self.block.writes:
            # The results of a view need not be distinct.
            documents = self.block.collections.get(COLLECTION, [])
            loads = [self.pair.load({**self.block.collections, COLLECTION: [document]}) for document in documents]
            answers = [self.oracle([*load, self.command])[-1] for load in loads]
            self.oracle(self.pair.load(self.block.collections))
            yield from answers

    def nothing_else_behind_count(self) -> bool:
        """Returns whether the other conditions of a $match with $expr after a $count match nothing.
        """
        pipeline = self.command.get("pipeline")
        if self.block.script or not isinstance(pipeline, list) or not all(isinstance(stage, dict) for stage in pipeline):
            return False
        for at, (before, stage) in enumerate(zip(pipeline, pipeline[1:]), 1):
            condition = stage.get("$match")
            if "$count" in before and isinstance(condition, dict) and "'$expr'" in str(condition):
                others = {name: value for name, value in condition.items() if "'$expr'" not in str({name: value})}
                answer = self.oracle([{**self.command, "pipeline": [*pipeline[:at], {"$match": others}]}])[0]
                return not code_of(answer) and not bson.decode(answer, PLAIN)["cursor"]["firstBatch"]
        return False

    def unlimited(self) -> bytes | None:
        """Returns the reply without a $limit after a stage that reads all of its documents; `None`
        if there is none."""
        pipeline = self.command.get("pipeline")
        if self.block.script or not isinstance(pipeline, list) or not all(isinstance(stage, dict) for stage in pipeline):
            return None
        reading = next((at for at, stage in enumerate(pipeline) if READING_ALL & set(stage)), len(pipeline))
        kept = [stage for at, stage in enumerate(pipeline) if at < reading or "$limit" not in stage]
        if len(kept) == len(pipeline):
            return None
        load = self.pair.load(self.block.collections) if self.block.writes else []
        return self.oracle([*load, {**self.command, "pipeline": kept}])[-1]

    def before_facet(self) -> bytes | None:
        """Returns the reply of the stages before a $facet that contains a $limit; `None` if there
        is none."""
        pipeline = self.command.get("pipeline")
        if self.block.script or self.block.writes or not isinstance(pipeline, list):
            return None
        limited = (at for at, stage in enumerate(pipeline) if isinstance(stage, dict) and "$facet" in stage and "'$limit'" in str(stage))
        at = next(limited, None)
        return None if at is None else self.oracle([{**self.command, "pipeline": pipeline[:at]}])[-1]

    def in_small_batches(self) -> bytes | None:
        """Returns MongoDB's reply if it reads one document at a time; `None` for other commands
        than pipelines."""
        if self.block.script or self.block.writes or "pipeline" not in str([self.command, self.block.setup]):
            return None
        batches = lambda size: {"setParameter": 1, READ_AHEAD: size, "$db": "admin"}
        return self.oracle([batches(1), self.command, batches(READ_AHEAD_BYTES)])[1]

    def stage_by_stage(self) -> bytes | None:
        """Returns the reply without moved or merged stages, including those of a view and of its
        reader; `None` without a pipeline."""
        name = self.command[next(iter(self.command))]
        views = {one["create"]: one["pipeline"] for one in self.block.setup if "viewOn" in one}
        pipeline = self.command.get("pipeline", [{"$match": self.command.get("filter", self.command.get("query", {}))}])
        plain = "pipeline" in self.command or set(self.command) <= {"find", "count", "filter", "query", "batchSize"} and name in views
        if self.block.script or self.block.writes or not plain or not isinstance(pipeline, list) or not all(isinstance(stage, dict) for stage in pipeline):
            return None
        if "count" in self.command:
            pipeline = [*pipeline, {"$count": "n"}]
        stages = [inner for stage in [*views.get(name, ()), *pipeline] for inner in (stage, {"$_internalInhibitOptimization": {}})][:-1]
        options = {key: value for key, value in self.command.items() if key in ("collation", "let")}
        source = next((one["viewOn"] for one in self.block.setup if one.get("create") == name and "viewOn" in one), name)
        answer = self.oracle([{"aggregate": source, "pipeline": stages, "cursor": {"batchSize": 1000}, **options}])[0]
        if "count" in self.command and not code_of(answer):
            counted = bson.decode(answer, PLAIN)["cursor"]["firstBatch"]
            return bson.encode({"n": counted[0]["n"] if counted else 0, "ok": 1.0})
        return answer

    def sorted_without_limit(self) -> bytes | None:
        """Returns the reply if a $limit after a $sort applies to the sorted documents; `None` if
        there is none."""
        pipeline = self.command.get("pipeline")
        if self.command.get("find") == "v" and "sort" in self.command and "projection" not in self.command:
            pipeline = [{"$match": self.command.get("filter", {})}, {"$sort": self.command["sort"]}, {"$skip": self.command.get("skip", 0)}]
            pipeline += [{"$limit": self.command["limit"]}] if self.command.get("limit") else []
        if self.block.script or self.block.writes or not isinstance(pipeline, list) or not all(isinstance(stage, dict) for stage in pipeline):
            return None
        stages = [inner for stage in pipeline for inner in ([stage, {"$_internalInhibitOptimization": {}}] if "$sort" in stage else [stage])]
        if len(stages) == len(pipeline) or "$limit" not in str(pipeline):
            return None
        name = self.command[next(iter(self.command))]
        return self.oracle([{"aggregate": name, "pipeline": stages, "cursor": self.command.get("cursor", {})}])[0]

    def graphs_one_by_one(self) -> list[bytes] | None:
        """Returns MongoDB's results of each document by itself, for a pipeline that begins with a
        $graphLookup or a $lookup."""
        pipeline = self.command.get("pipeline")
        if self.block.script or self.block.writes or not isinstance(pipeline, list) or {"$graphLookup", "$lookup"}.isdisjoint((pipeline or [{}])[0]):
            return None
        chosen = [{"$match": {"_id": document["_id"]}} for document in self.block.collections.get(self.command["aggregate"], ())]
        answers = self.oracle([{**self.command, "pipeline": [one, *pipeline]} for one in chosen])
        return [document for answer in answers for document in batch_of(RawBSONDocument(answer, RAW)) or ()]

    def without_refused(self, ours: bytes) -> bytes | None:
        """Returns MongoDB's reply on the documents that our unique indexes did not refuse with 67,
        if they refused any."""
        if self.pair.store != "mariadb" or not self.block.writes:
            return None
        load, look = self.pair.load(self.block.collections), self.pair.look(self.block.collections)
        side, refused = self.pair.sides[0], 0
        side.send([request(command) for command in load])
        for at, command in enumerate(load):
            errors = bson.decode(side.receive()).get("writeErrors", ())
            gone = {error["index"] for error in errors if error["code"] == 67}
            if gone:
                kept = [document for index, document in enumerate(command["documents"]) if index not in gone]
                load[at] = {**command, "documents": kept} if kept else {"ping": 1}
                refused += len(gone)
        if not refused:
            return None
        answers = self.oracle([*load, self.command, *look])
        return answers[len(load) + next(at for at, pair in enumerate(self.pairs) if pair[0] is ours)]

    def is_without_unique_index(self, ours: bytes) -> bool:
        """Returns whether we have none of the unique indexes of the setup, and MongoDB's reply
        without them equals ours."""
        unique = [index["name"] for one in self.block.setup for index in one.get("indexes", ()) if index.get("unique")]
        name = self.command[next(iter(self.command))]
        if self.pair.store != "mariadb" or not unique or not self.block.writes:
            return False
        side = self.pair.sides[0]
        side.send([request({"listIndexes": COLLECTION})])
        listed = bson.decode(side.receive())["cursor"]["firstBatch"]
        missing = [one for one in unique if one not in {index["name"] for index in listed}]
        if not missing or name != COLLECTION:
            return False
        load, look = self.pair.load(self.block.collections), self.pair.look(self.block.collections)
        drop = [{"dropIndexes": COLLECTION, "index": one} for one in missing]
        answers = self.oracle([*drop, *load, self.command, *look, *self.pair.load({COLLECTION: []}), *self.block.setup])
        at = next(at for at, pair in enumerate(self.pairs) if pair[0] is ours)
        return same(self.command, ours, answers[len(drop) + len(load) + at])

    def wrote_before_failing(self) -> bool:
        """Returns whether both refused a write with the same error and differ only in the documents
        written before it."""
        (ours, theirs), *_ = self.pairs
        return self.block.writes and bool(code_of(ours)) and code_of(ours) == code_of(theirs)

    def oracle(self, commands: list[dict]) -> list[bytes]:
        side = self.pair.sides[1]
        side.send([request(command) for command in commands])
        return [side.receive() for _ in commands]


def alone(command: dict, collections: dict):
    """Yields the command for one document at a time, its stages for one field at a time, and less
    strict variants."""
    name = next(iter(command))
    if name == "aggregate":
        # Documents read ahead of a stage that drops them may fail although they are not needed.
        kept = [stage for stage in command["pipeline"] if not {"$skip", "$limit"} & set(stage)]
        if len(kept) < len(command["pipeline"]):
            yield {**command, "pipeline": kept}
            yield from alone({**command, "pipeline": kept}, collections)
        for stage in command["pipeline"] if len(command["pipeline"]) > 1 else ():
            yield {**command, "pipeline": [stage]}
        for stage in command["pipeline"]:
            for pipeline in stage.get("$facet", {}).values():
                yield {**command, "pipeline": pipeline}
            join = stage.get("$lookup", stage.get("$unionWith"))
            if isinstance(join, dict) and isinstance(join.get("pipeline"), list):
                inner = {**command, "aggregate": join.get("from", join.get("coll")), "pipeline": join["pipeline"]}
                yield inner
                yield from alone(inner, collections)
    if name == "find" and command.get("filter") and command.get("projection"):
        yield {**command, "filter": {}}
        yield {**command, "projection": {}}
    if name == "find" and isinstance(command.get("filter", {}).get("$expr"), list):
        yield from ({**command, "filter": {"$expr": one}} for one in command["filter"]["$expr"])
    if "upsert" in str(command):
        statements = [{**one, "upsert": False} for one in command.get("updates", ())]
        yield {**command, "updates": statements} if statements else {**command, "upsert": False}
    for document in collections.get(command[name], []):
        chosen = {"_id": document["_id"]}
        if name == "aggregate":
            yield {**command, "pipeline": [{"$match": chosen}, *command["pipeline"]]}
        elif name in ("find", "count", "distinct"):
            filter = "filter" if name == "find" else "query"
            yield {**command, filter: {"$and": [command.get(filter, {}), chosen]}}
        elif name in ("update", "delete"):
            statements = [{**one, "q": {"$and": [one["q"], chosen]}} for one in command[f"{name}s"]]
            yield {**command, f"{name}s": statements}
    if command[name] == "v" and name == "aggregate":
        yield {**command, "aggregate": COLLECTION}
    for at, stage in enumerate(command.get("pipeline", ())):
        for field, value in stage.get("$setWindowFields", {}).get("output", {}).items():
            alone_in = {**stage["$setWindowFields"], "output": {field: value}}
            yield {**command, "pipeline": [*command["pipeline"][:at], {"$setWindowFields": alone_in}]}
        for operator in {"$set", "$addFields", "$project"} & set(stage):
            for field, value in stage[operator].items():
                stages = command["pipeline"]
                yield {**command, "pipeline": [*stages[:at], {operator: {field: value}}, *stages[at + 1 :]]}


def plain(case) -> dict:
    return case.command if isinstance(case, Differs) else case


def with_cursor(command: dict, cursor: Int64) -> dict:
    if command.get("getMore") == CURSOR and isinstance(command["getMore"], Int64):
        command = {**command, "getMore": cursor}
    if command.get("cursors") == [CURSOR]:
        command = {**command, "cursors": [cursor]}
    return command


def given_cursor(reply: bytes) -> Int64 | None:
    try:
        cursor = bson.decode(reply).get("cursor")
    except bson.errors.InvalidBSON:
        return None
    return cursor["id"] if isinstance(cursor, dict) and "firstBatch" in cursor and cursor["id"] else None


def table(tally: Counter) -> str:
    """Returns the number of equal cases per family."""
    families = sorted({family for family, _ in tally})
    lines = [f"{'family':36} {'cases':>6} {'agree':>6} {'known':>6} {'differ':>6}"]
    for family in [*families, "all"]:
        asked, known, differ = (
            sum(tally[name, what] for name in (families if family == "all" else [family])) for what in ("asked", "known", "differ")
        )
        lines.append(f"{family:36} {asked:6} {asked - known - differ:6} {known:6} {differ:6}")
    return "\n".join(lines)
