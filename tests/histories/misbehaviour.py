"""Servers with planted bugs: a proxy changes the requests and replies between a client and a server
that is right. The program has no code for it."""

import socket
import struct
import threading
import time
from collections import defaultdict

import bson

from support.proxy import Proxy, read_message
from support.wire import OP_MSG, op_msg, reply_document


class Misbehaviour:
    """A correct server. Subclasses change it."""

    def __init__(self):
        self.lock = threading.Lock()
        # How often a request or reply was changed.
        self.planted = 0

    def plant(self):
        with self.lock:
            self.planted += 1

    def exchange(self, server: socket.socket, request: bytes) -> bytes:
        """Sends a request and returns the reply, or nothing if the server is gone."""
        server.sendall(request)
        return read_message(server)


class MisbehavingProxy(Proxy):
    """Serves clients that connect with `directConnection` and poll for the server's state."""

    def __init__(self, port: int, misbehaviour: Misbehaviour):
        self.misbehaviour = misbehaviour
        super().__init__(port)

    def serve(self, client: socket.socket):
        try:
            with client, socket.create_connection(self.server) as server:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while request := read_message(client):
                    reply = self.misbehaviour.exchange(server, request)
                    if not reply:
                        return
                    client.sendall(reply)
        except OSError:
            # The server is away, or the client has gone.
            pass


def command_of(request: bytes) -> dict:
    """The command's document, without the documents that follow it; empty if it is no OP_MSG."""
    (opcode,) = struct.unpack_from("<i", request, 12)
    return bson.decode(reply_document(OP_MSG, request[16:])) if opcode == OP_MSG else {}


def with_command(request: bytes, command: dict) -> bytes:
    """The request with another document, and the same documents behind it."""
    (length,) = struct.unpack_from("<i", request, 21)
    body = request[16:21] + bson.encode(command) + request[21 + length :]
    return struct.pack("<i", len(body) + 16) + request[4:16] + body


def reply_to(request: bytes, document: dict) -> bytes:
    """A reply that the server has not sent."""
    message = op_msg(document)
    return message[:8] + request[4:8] + message[12:]


def transaction_of(command: dict):
    """Session and number of the transaction that a command belongs to, or None."""
    if "autocommit" not in command:
        return None
    return command["lsid"]["id"], command["txnNumber"]


READS = ("find", "aggregate")
WRITES = ("insert", "update", "delete", "findAndModify")


class ReadsOutside(Misbehaviour):
    """Executes some reads of a transaction outside of it. Subclasses say which."""

    def __init__(self):
        super().__init__()
        self.statements = defaultdict(int)
        self.writers = set()
        # Transactions that the server has not begun yet.
        self.delayed = set()

    def is_outside(self, transaction) -> bool:
        raise NotImplementedError

    def exchange(self, server, request):
        command = command_of(request)
        transaction = transaction_of(command)
        if transaction is None:
            return super().exchange(server, request)
        name = next(iter(command))
        if name in ("commitTransaction", "abortTransaction"):
            return reply_to(request, {"ok": 1.0}) if transaction in self.delayed else super().exchange(server, request)
        if name in READS and self.is_outside(transaction):
            self.plant()
            if command.pop("startTransaction", False):
                self.delayed.add(transaction)
            for field in ("lsid", "txnNumber", "autocommit", "readConcern"):
                command.pop(field, None)
            # Such a cursor would not be one of the transaction's.
            command.pop("batchSize", None)
            command["cursor"] = {} if name == "aggregate" else command.pop("cursor", None)
            command = {field: value for field, value in command.items() if value is not None}
        elif transaction in self.delayed:
            self.delayed.discard(transaction)
            command["startTransaction"] = True
        self.statements[transaction] += 1
        if name in WRITES:
            self.writers.add(transaction)
        return super().exchange(server, with_command(request, command))


class NoSnapshot(ReadsOutside):
    """Reads return the latest committed documents, until the transaction has written."""

    def is_outside(self, transaction):
        return transaction not in self.writers


class LateSnapshot(ReadsOutside):
    """The snapshot is taken after the first read."""

    def is_outside(self, transaction):
        return self.statements[transaction] == 0


class NoOwnWrites(ReadsOutside):
    """Reads do not see the transaction's own writes."""

    def is_outside(self, transaction):
        return transaction in self.writers


class CommitBeforeItIsDurable(Misbehaviour):
    """Acknowledges a commit, and executes it a moment later, before anything else of its session:
    only a kill loses it."""

    DELAY_S = 0.05

    def __init__(self):
        super().__init__()
        self.under_way: dict[bytes, threading.Event] = {}

    def exchange(self, server, request):
        command = command_of(request)
        if under_way := self.under_way.get(command.get("lsid", {}).get("id")):
            under_way.wait()
        if "commitTransaction" not in command:
            return super().exchange(server, request)
        self.plant()
        done = self.under_way[command["lsid"]["id"]] = threading.Event()
        threading.Thread(target=self.commit_later, args=(server.getpeername(), request, done), daemon=True).start()
        return reply_to(request, {"ok": 1.0})

    def commit_later(self, address, request, done):
        time.sleep(self.DELAY_S)
        try:
            with socket.create_connection(address) as server:
                super().exchange(server, request)
        except OSError:
            # The server was killed.
            pass
        done.set()


class RetryAppliedTwice(Misbehaviour):
    """Applies some retryable writes again."""

    def exchange(self, server, request):
        reply = super().exchange(server, request)
        command = command_of(request)
        if "update" in command and "txnNumber" in command and transaction_of(command) is None:
            self.plant()
            again = {field: value for field, value in command.items() if field not in ("lsid", "txnNumber")}
            super().exchange(server, with_command(request, again))
        return reply


class Events(Misbehaviour):
    """Changes some batches of change streams. Subclasses say how."""

    EVERY = 20

    def __init__(self):
        super().__init__()
        self.updates = 0

    def change(self, event: dict) -> list[dict]:
        raise NotImplementedError

    def exchange(self, server, request):
        reply = super().exchange(server, request)
        if "getMore" not in command_of(request) or not reply:
            return reply
        document = command_of(reply)
        batch = document.get("cursor", {}).get("nextBatch", [])
        if not any("operationType" in event for event in batch):
            return reply
        document["cursor"]["nextBatch"] = [changed for event in batch for changed in self.changed(event)]
        return reply_to(request, document)

    def changed(self, event: dict) -> list[dict]:
        # Not the last event, for which the test waits.
        if event.get("operationType") != "update" or event["documentKey"]["_id"] == "end":
            return [event]
        self.updates += 1
        if self.updates % self.EVERY:
            return [event]
        self.plant()
        return self.change(event)


class EventLost(Events):
    def change(self, event):
        return []


class EventRepeated(Events):
    def change(self, event):
        return [event, event]
