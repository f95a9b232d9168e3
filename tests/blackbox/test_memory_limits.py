"""Memory limits: a request that holds too much is ended or refused, and others continue."""

import os
import resource
import socket
import threading
import time

import bson
import pytest
from pymongo.errors import OperationFailure

from support.selkie import SelkieServer
from support.wire import MORE_TO_COME, Wire, op_msg

pytestmark = pytest.mark.selkie_only

MEMORY_MB = 300
# Memory of SQLite, threads and the allocator's caches, besides the counted allocations.
BESIDE_MIB = 150


@pytest.fixture
def limited(own_server, tmp_path):
    """A function that starts a server with limits of a [limits] section, beside the memory's."""

    def start(**limits) -> SelkieServer:
        file = tmp_path / "selkie.toml"
        settings = {"memory-mb": MEMORY_MB, **limits}
        file.write_text("[limits]\n" + "".join(f"{name.replace('_', '-')} = {value}\n" for name, value in settings.items()))
        return own_server("--config", str(file), "--threads", "2")

    return start


class Bystander:
    """Another client, which inserts all the while."""

    def __init__(self, server: SelkieServer, database: str):
        self.client, self.database = server.client(), database
        self.longest, self.inserted, self.done = 0.0, 0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.done:
            began = time.monotonic()
            self.client[self.database].bystander.insert_one({})
            self.longest = max(self.longest, time.monotonic() - began)
            self.inserted += 1
            time.sleep(0.02)

    def __enter__(self):
        self.client[self.database].bystander.insert_one({})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join()
        self.client.close()

    def check(self):
        assert self.inserted > 3 and self.longest < 5, (self.inserted, self.longest)


def code_of(work) -> int:
    """The code that something is refused with; 0 if it is not."""
    try:
        work()
    except OperationFailure as refused:
        return refused.code
    return 0


def session() -> dict:
    return {"id": bson.Binary(os.urandom(16), 4)}


def command(server: SelkieServer, body: dict) -> dict:
    """Sends a command without a driver, which would add a session."""
    with Wire(server.port, timeout_s=60) as wire:
        wire.send(op_msg(body))
        return wire.receive_reply()


def figures(client) -> dict:
    return client.admin.command("serverStatus")["selkie"]["memory"]


def check_peak(server: SelkieServer):
    peak = server.peak_resident_bytes() / 2**20
    assert peak < MEMORY_MB + BESIDE_MIB, f"{peak:.0f} MiB"


def test_cursors_hold_no_more_than_they_may(limited, database_name):
    """A cursor keeps its filter; many of them with large ones are refused."""
    server = limited(session_memory_mb=60)
    with server.client() as client, Bystander(server, database_name) as bystander:
        client[database_name].c.insert_many([{"_id": n} for n in range(10)])
        large = {"a": {"$nin": ["x" * 1000 + str(n) for n in range(10_000)]}}
        find = {"find": "c", "filter": large, "noCursorTimeout": True, "batchSize": 1, "$db": database_name}
        server.forget_peak()
        of_one = session()
        codes = [command(server, find | {"lsid": of_one}).get("code", 0) for _ in range(10)]
        assert 0 in codes and codes[-1] == 146
        codes = [command(server, find | {"lsid": session()}).get("code", 0) for _ in range(20)]
        assert 0 in codes and codes[-1] == 146
        held = figures(client)
        assert 20 << 20 < held["cursorBytes"] < held["cursorBytesMax"]
        # Small cursors of others go on, and what one session held is there again when it has ended.
        bystander.check()
        client.admin.command({"killSessions": []})
        client.admin.command({"killAllSessions": []})
        assert figures(client)["cursorBytes"] == 0
        assert command(server, find | {"lsid": session()})["ok"] == 1
        check_peak(server)


def test_cursors_are_counted(limited, database_name):
    server = limited(cursors=20, session_cursors=5)
    with server.client() as client:
        client[database_name].c.insert_many([{"_id": n} for n in range(10)])
        find = {"find": "c", "batchSize": 1, "$db": database_name}
        of_one = session()
        replies = [command(server, find | {"lsid": of_one}) for _ in range(6)]
        assert [reply.get("code", 0) for reply in replies] == [0] * 5 + [146]
        codes = [command(server, find | {"lsid": session()}).get("code", 0) for _ in range(20)]
        assert codes == [0] * 15 + [146] * 5
        kill = {"killCursors": "c", "cursors": [reply["cursor"]["id"] for reply in replies[:5]], "$db": database_name}
        assert len(command(server, kill)["cursorsKilled"]) == 5
        assert command(server, find | {"lsid": of_one})["ok"] == 1


def test_an_unacknowledged_command_leaves_no_cursor(limited, database_name):
    server = limited()
    with server.client() as client, Wire(server.port) as wire:
        client[database_name].c.insert_many([{"_id": n} for n in range(10)])
        wire.send(op_msg({"find": "c", "batchSize": 1, "$db": database_name}, MORE_TO_COME) * 500)
        wire.send(op_msg({"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 1}, "$db": database_name}, MORE_TO_COME))
        wire.send(op_msg({"ping": 1, "$db": "admin"}))
        assert wire.receive_reply()["ok"] == 1
        assert client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"] == 0


HOLD_MUCH = {
    "push": [{"$group": {"_id": None, "all": {"$push": "$$ROOT"}}}],
    "addToSet": [{"$group": {"_id": None, "all": {"$addToSet": "$$ROOT"}}}],
    "facet": [{"$facet": {"all": [{"$match": {}}]}}],
    "bucketAuto": [{"$bucketAuto": {"groupBy": "$n", "buckets": 2, "output": {"all": {"$push": "$$ROOT"}}}}],
    "lookup": [{"$limit": 1}, {"$lookup": {"from": "c", "pipeline": [], "as": "all"}}],
    "graphLookup": [{"$limit": 1}, {"$graphLookup": {"from": "c", "startWith": "$one", "connectFromField": "one", "connectToField": "one", "as": "all"}}],
    "setWindowFields": [{"$setWindowFields": {"output": {"all": {"$push": "$$ROOT", "window": {"documents": ["unbounded", "unbounded"]}}}}}],
    "map": [{"$project": {"all": {"$size": {"$map": {"input": {"$range": [0, 1_000_000]}, "in": "$$ROOT"}}}}}],
    "concat": [{"$project": {"all": {"$strLenBytes": {"$reduce": {"input": {"$range": [0, 30]}, "initialValue": "$pad", "in": {"$concat": ["$$value", "$$value"]}}}}}}],
    "concatArrays": [{"$project": {"all": {"$size": {"$reduce": {"input": {"$range": [0, 40]}, "initialValue": [1, 2], "in": {"$concatArrays": ["$$value", "$$value"]}}}}}}],
}


def test_a_request_holds_no_more_than_it_may(limited, database_name):
    server = limited(request_memory_mb=40)
    with server.client() as client, Bystander(server, database_name) as bystander:
        collection = client[database_name].c
        for first in range(0, 60_000, 10_000):
            collection.insert_many([{"n": n, "one": 1, "pad": "x" * 900} for n in range(first, first + 10_000)])
        server.forget_peak()
        for name, pipeline in HOLD_MUCH.items():
            assert code_of(lambda: list(collection.aggregate(pipeline, maxTimeMS=60_000))) in (146, 17261), name  # noqa: B023
        # Stages that can spill to disk do.
        assert len(list(collection.aggregate([{"$sort": {"pad": 1, "n": -1}}, {"$count": "n"}]))) == 1
        bystander.check()
        check_peak(server)


def test_many_statements_with_long_searches_hold_little(limited, database_name):
    """Their records are not held until the last one is done."""
    server = limited(request_memory_mb=16)
    with server.client() as client:
        client[database_name].c.insert_many([{"_id": n, "s": f"a{n}"} for n in range(2500)])
        upserts = [{"q": {"s": f"b{n}"}, "u": {"$set": {"v": 1}}, "upsert": True} for n in range(800)]
        body = {"update": "c", "updates": upserts, "$db": database_name, "lsid": session(), "txnNumber": bson.Int64(1)}
        reply = command(server, body)
        assert (reply.get("errmsg"), reply["n"], len(reply["upserted"])) == (None, 800, 800)


def test_address_space_that_runs_out_ends_requests_not_the_server(tmp_path, database_name):
    """`ulimit -v`: the default of the memory's limit goes by it."""

    class Limited(SelkieServer):
        def start(self):
            before = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (1_600_000 << 10, before[1]))
            try:
                return super().start()
            finally:
                resource.setrlimit(resource.RLIMIT_AS, before)

    server = Limited(tmp_path / "selkie", options=("--threads", "2")).start()
    try:
        with server.client() as client:
            collection = client[database_name].c
            for first in range(0, 200_000, 20_000):
                collection.insert_many([{"n": n, "pad": "x" * 900} for n in range(first, first + 20_000)])
            assert code_of(lambda: list(collection.aggregate(HOLD_MUCH["push"]))) == 146
            many = [threading.Thread(target=lambda: code_of(lambda: list(collection.aggregate(HOLD_MUCH["push"])))) for _ in range(8)]
            for thread in many:
                thread.start()
            for thread in many:
                thread.join()
            assert server.is_running() and client.admin.command("ping")["ok"] == 1
    finally:
        server.remove()


def test_unfinished_messages_wait_for_room(limited, database_name):
    """Clients that withhold the end of a large message hold only the memory of its received part,
    and block no other client."""
    server = limited()
    insert = {"insert": "c", "documents": [{"pad": "x" * 15_000_000}] * 3, "$db": database_name}
    message = memoryview(op_msg(insert))[:-1]
    with server.client() as client, Bystander(server, database_name) as bystander:
        server.forget_peak()
        withholding = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        senders = [threading.Thread(target=send_what_goes, args=(connection, message, 4)) for connection in withholding]
        for sender in senders:
            sender.start()
        time.sleep(1)
        began = time.monotonic()
        client[database_name].c.insert_many([{"pad": "y" * 10_000_000} for _ in range(3)])
        took = time.monotonic() - began
        for sender in senders:
            sender.join()
        for connection in withholding:
            connection.close()
        assert took < 15, took
        bystander.check()
        check_peak(server)


def send_what_goes(connection: socket.socket, message: memoryview, seconds: float):
    connection.setblocking(False)
    end = time.monotonic() + seconds
    while message and time.monotonic() < end:
        try:
            message = message[connection.send(message[:1_000_000]):]
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:
            return


def test_clients_that_do_not_read_are_disconnected(limited, database_name):
    server = limited()
    with server.client() as client:
        client[database_name].c.insert_many([{"pad": "x" * 1_000_000} for _ in range(30)])
        with Bystander(server, database_name) as bystander:
            server.forget_peak()
            readers = []
            for _ in range(40):
                reader = socket.create_connection(("127.0.0.1", server.port))
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.sendall(op_msg({"find": "c", "batchSize": 16, "singleBatch": True, "$db": database_name}) * 3)
                readers.append(reader)
            time.sleep(6)
            for reader in readers:
                reader.close()
        bystander.check()
        assert client[database_name].c.count_documents({}) == 30


def test_stalled_and_idle_connections_are_closed(limited):
    server = limited(stalled_seconds=1, idle_seconds=3)
    with Wire(server.port) as stalled, Wire(server.port) as idle:
        began = time.monotonic()
        stalled.send(op_msg({"ping": 1, "$db": "admin"})[:-5])
        idle.send(op_msg({"ping": 1, "$db": "admin"}))
        assert idle.receive_reply()["ok"] == 1
        assert stalled.socket.recv(1) == b"" and time.monotonic() - began < 3
        assert idle.socket.recv(1) == b"" and 2.5 < time.monotonic() - began < 6
    assert "a message was not finished" in server.log.read_text()


def test_connections_are_counted(limited):
    server = limited(connections=12)
    with server.client(maxPoolSize=1) as client:
        assert client.admin.command("ping")["ok"] == 1
        more = [Wire(server.port) for _ in range(12)]
        refused = 0
        for wire in more:
            wire.send(op_msg({"ping": 1, "$db": "admin"}))
            try:
                assert wire.receive_reply()["ok"] == 1
            except (ConnectionError, OSError):
                refused += 1
        assert 1 <= refused < 12
        assert client.admin.command("serverStatus")["connections"]["available"] <= 12
        for wire in more:
            wire.socket.close()
        time.sleep(0.3)
        with Wire(server.port) as again:
            again.send(op_msg({"ping": 1, "$db": "admin"}))
            assert again.receive_reply()["ok"] == 1
    assert "too many" in server.log.read_text()


WORK = {"$reduce": {"input": {"$range": [0, 2000]}, "initialValue": 0, "in": {"$add": ["$$value", {"$mod": ["$$this", 7]}]}}}


@pytest.mark.parametrize("how", ["closes", "closes its half", "has sent more"])
def test_a_read_ends_when_its_client_disconnects(own_server, database_name, how):
    server = own_server("--threads", "2")
    with server.client() as client:
        client[database_name].c.insert_many([{"_id": n} for n in range(20_000)])
        reads = [
            {"find": "c", "filter": {"$expr": {"$lt": [WORK, 0]}}},
            {"count": "c", "query": {"$expr": {"$lt": [WORK, 0]}}},
            {"aggregate": "c", "pipeline": [{"$match": {"$expr": {"$lt": [WORK, 0]}}}], "cursor": {}},
        ]
        for number, read in enumerate(reads):
            tag = f"left {how} {number}"
            with Wire(server.port) as wire:
                wire.send(op_msg(read | {"comment": tag, "$db": database_name}))
                wait_for(lambda: is_running(client, tag))  # noqa: B023
                if how == "has sent more":
                    wire.send(op_msg({"ping": 1, "$db": "admin"}))
                if how == "closes":
                    wire.socket.close()
                else:
                    wire.socket.shutdown(socket.SHUT_WR)
                wait_for(lambda: not is_running(client, tag), 2)  # noqa: B023
                if how != "closes":
                    assert wire.receive_reply()["code"] == 279
                if how == "has sent more":
                    assert wire.receive_reply()["ok"] == 1


def is_running(client, tag: str) -> bool:
    return bool(client.admin.command({"currentOp": 1, "command.comment": tag})["inprog"])


def wait_for(condition, seconds: float = 5):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
