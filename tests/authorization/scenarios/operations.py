"""Operations, the profile and the oplog of other users."""

import contextlib
import time

from bson import Int64, Timestamp

from authorization.world import World, ask, is_denied, outcome, without
from support.wire import Wire, op_msg


def all_in_progress(connection: Wire, stage: dict) -> list[dict] | tuple:
    reply = ask(connection, "admin", {"aggregate": 1, "pipeline": [{"$currentOp": stage}], "cursor": {"batchSize": 10000}})
    return reply["cursor"]["firstBatch"] if reply["ok"] == 1 else outcome(reply)


def users_of(operations) -> list | tuple:
    """The users of the operations; an error as it is."""
    if isinstance(operations, tuple):
        return operations
    return sorted({user["user"] for operation in operations for user in operation.get("effectiveUsers", [])})


@contextlib.contextmanager
def working(world: World, user: str):
    """Yields a connection whose pipeline works for long, and the id of that operation."""
    join = {"$lookup": {"from": "c", "pipeline": [], "as": "x"}}
    pipeline = [join, {"$unwind": "$x"}] * 8 + [{"$count": "all"}]
    with world.users(user) as connection:
        connection.send(op_msg({"aggregate": "c", "pipeline": pipeline, "cursor": {}, "comment": f"of {user}", "$db": "own"}))
        end = time.monotonic() + 20
        while True:
            found = [operation for operation in all_in_progress(world.root, {"allUsers": True})
                     if operation.get("command", {}).get("comment") == f"of {user}"]
            if found:
                break
            assert time.monotonic() < end, "the pipeline does not work"
        yield connection, found[0]["opid"]
        world.root.run({"killOp": 1, "op": found[0]["opid"], "$db": "admin"})


def operations_of_others(world: World):
    with world.users("anna", "ben", "nothing", "clusterMonitor", "hostManager") as (anna, ben, nothing, monitor, host):
        with working(world, "anna") as (works, opid):
            for user, connection in (("anna", anna), ("ben", ben), ("nothing", nothing), ("monitor", monitor), ("host", host)):
                for name, options in {"own": {"$ownOps": True}, "of all": {"$all": True}, "plain": {}, "not own": {"$ownOps": False},
                                      "1": {"$ownOps": 1}, "0": {"$ownOps": 0}}.items():
                    reply = ask(connection, "admin", {"currentOp": 1, **options})
                    users = users_of(reply["inprog"]) if reply["ok"] == 1 else outcome(reply)
                    # MongoDB's `$all` lists idle connections as well.
                    yield user, name, "anna" in users if reply["ok"] == 1 and "$all" in options else users
                for options in ({}, {"allUsers": False}, {"allUsers": True}, {"idleCursors": True}, {"idleConnections": True},
                                {"idleSessions": True}, {"localOps": True}):
                    yield user, options, users_of(all_in_progress(connection, options))
            for user, connection in (("ben", ben), ("nothing", nothing), ("monitor", monitor)):
                yield user, "kill", without(outcome(ask(connection, "admin", {"killOp": 1, "op": opid})), opid)
            yield "works", works.is_silent()
            works.socket.settimeout(60)
            yield "anna", "kill", outcome(ask(anna, "admin", {"killOp": 1, "op": opid}), "info")
            yield "anna", "killed", outcome(works.receive_reply())[0]
        with working(world, "anna") as (works, opid):
            yield "host", "kill", outcome(ask(host, "admin", {"killOp": 1, "op": opid}), "info")
            yield "anna", "killed", outcome(works.receive_reply())[0]
        for user, connection in (("anna", anna), ("nothing", nothing), ("host", host)):
            for operation in (999999999, "x", Int64(999999999), None):
                yield user, "no such operation", outcome(ask(connection, "admin", {"killOp": 1, "op": operation}))
            yield user, "two", outcome(ask(connection, "admin", {"killOp": 1}))


def idle_cursors_of_others(world: World):
    with world.users("anna", "ben", "clusterMonitor") as (anna, ben, monitor):
        identity = ask(anna, "own", {"find": "c", "batchSize": 1, "comment": "secret of anna"})["cursor"]["id"]
        for user, connection in (("anna", anna), ("ben", ben), ("monitor", monitor)):
            for all_users in (False, True):
                rows = all_in_progress(connection, {"idleCursors": True, "allUsers": all_users})
                if isinstance(rows, tuple):
                    yield user, all_users, rows
                    continue
                seen = [row.get("effectiveUsers") for row in rows
                        if row["type"] == "idleCursor" and row["cursor"]["cursorId"] == identity]
                yield user, all_users, seen, "secret of anna" in str(rows) and user
        ask(anna, "own", {"killCursors": "c", "cursors": [identity]})


def the_profile(world: World):
    commands = {
        "level": {"profile": -1}, "off": {"profile": 0}, "slowms": {"profile": -1, "slowms": 100},
        "filter": {"profile": 0, "filter": "unset"}, "find": {"find": "system.profile"},
        "drop": {"drop": "system.profile"}, "create": {"create": "system.profile", "capped": True, "size": 4096},
        "insert": {"insert": "system.profile", "documents": [{"_id": 1}]},
        "delete": {"delete": "system.profile", "deletes": [{"q": {"_id": "none"}, "limit": 1}]},
    }
    for user in ("nothing", "reader", "anna", "administrator", "owner", "clusterMonitor", "readAnyDatabase", "dbAdminAnyDatabase", "finds in c"):
        with world.users(user) as connection:
            for name, command in commands.items():
                yield user, name, outcome(ask(connection, "own", command))[0]
    world.root.run({"drop": "system.profile", "$db": "own"})


def entries_of_an_oplog(world: World):
    entries = {
        "insert": {"op": "i", "ns": "own.c", "o": {"_id": 1, "a": 1, "from": "own.c"}},
        "insert elsewhere": {"op": "i", "ns": "other.c", "o": {"_id": 1}},
        "insert of a user": {"op": "i", "ns": "admin.system.users", "o": {"_id": "x"}},
        "update": {"op": "u", "ns": "own.c", "o2": {"_id": 1}, "o": {"$v": 2, "diff": {"u": {"a": 1}}}},
        "update elsewhere": {"op": "u", "ns": "other.c", "o2": {"_id": 1}, "o": {"$v": 2, "diff": {"u": {"a": 1}}}},
        "delete": {"op": "d", "ns": "own.c", "o": {"_id": "none"}},
        "command": {"op": "c", "ns": "own.$cmd", "o": {"drop": "absent"}},
        "command elsewhere": {"op": "c", "ns": "other.$cmd", "o": {"drop": "absent"}},
        "dropDatabase": {"op": "c", "ns": "absent.$cmd", "o": {"dropDatabase": 1}},
        "nested": {"op": "c", "ns": "own.$cmd", "o": {"applyOps": [{"op": "d", "ns": "other.c", "o": {"_id": "none"}}]}},
        "create": {"op": "c", "ns": "own.$cmd", "o": {"create": "c"}},
        "create elsewhere": {"op": "c", "ns": "other.$cmd", "o": {"create": "c"}},
        "rename": {"op": "c", "ns": "own.$cmd", "o": {"renameCollection": "own.absent", "to": "other.absent"}},
        "createUser": {"op": "c", "ns": "admin.$cmd", "o": {"createUser": "mallory", "pwd": "x", "roles": ["root"]}},
        "find": {"op": "c", "ns": "own.$cmd", "o": {"find": "d"}},
        "no operation": {"op": "n", "ns": "", "o": {}}, "unknown": {"op": "x", "ns": "own.c", "o": {"_id": 1}},
        "without a namespace": {"op": "i", "o": {"_id": 1}}, "without a dot": {"op": "i", "ns": "own", "o": {"_id": 1}},
    }
    for user in ("nothing", "anna", "applies", "restore", "owner"):
        with world.users(user) as connection:
            for name, entry in entries.items():
                entry = {"ts": Timestamp(1, 1), "t": Int64(1), "v": Int64(2), "wall": None, **entry}
                del entry["wall"]
                reply = ask(connection, "admin", {"applyOps": [entry]})
                yield user, name, is_denied(reply)
                # MongoDB refuses malformed entries while it checks the privileges.
                if name not in ("unknown", "without a namespace"):
                    reply = ask(connection, "admin", {"applyOps": [entry, entries["no operation"]]})
                    yield user, name, "with another", is_denied(reply)


SCENARIOS = [
    operations_of_others,
    idle_cursors_of_others,
    the_profile,
    entries_of_an_oplog,
]
