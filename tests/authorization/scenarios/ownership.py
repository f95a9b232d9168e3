"""Cursors and sessions of other users."""

import uuid

from bson import SON, Int64

from authorization.world import READ_WRITE, ROLES, World, ask, batch, digest, new_session, outcome, without
from support.wire import EXHAUST_ALLOWED, op_msg

CURSORS = {
    "find": ({"find": "c", "batchSize": 1}, "c"),
    "find on a view": ({"find": "v", "batchSize": 1}, "v"),
    "aggregate": ({"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 1}}, "c"),
    "aggregate without documents": ({"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 0}}, "c"),
    "aggregate on a view": ({"aggregate": "w", "pipeline": [], "cursor": {"batchSize": 1}}, "w"),
    "$lookup": ({"aggregate": "c", "cursor": {"batchSize": 1}, "pipeline": [
        {"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}]}, "c"),
    "listCollections": ({"listCollections": 1, "nameOnly": True, "cursor": {"batchSize": 1}}, "$cmd.listCollections"),
    "listIndexes": ({"listIndexes": "c", "cursor": {"batchSize": 0}}, "c"),
}


def cursors_of_others(world: World):
    with world.users("anna", "ben", "hostManager", "root") as (anna, ben, host, root):
        for name, (command, collection) in CURSORS.items():
            identity = ask(anna, "own", command)["cursor"]["id"]
            more, kill = {"getMore": identity, "collection": collection}, {"killCursors": collection, "cursors": [identity]}
            for user, connection in (("ben", ben), ("host", host), ("root", root)):
                yield name, user, "more", without(outcome(ask(connection, "own", more)), identity)
                yield name, user, "other database", without(outcome(ask(connection, "other", more)), identity)
            yield name, "ben", "kill", without(outcome(ask(ben, "own", kill)), identity)
            yield name, "ben", "kill elsewhere", without(outcome(ask(ben, "other", kill)), identity)
            with world.users("anna") as second:
                yield name, "anna", "more", bool(batch(ask(second, "own", {**more, "batchSize": 1}))[0])
            yield name, "host", "kill", outcome(ask(host, "own", kill))
            yield name, "anna", "gone", without(outcome(ask(anna, "own", more)), identity)
    with world.users("anna", "kills in own", "kills in c") as (anna, in_own, in_c):
        for name, (command, collection) in CURSORS.items():
            for user, connection in (("in c", in_c), ("in own", in_own)):
                identity = ask(anna, "own", command)["cursor"]["id"]
                kill = {"killCursors": collection, "cursors": [identity]}
                yield name, user, "kill", without(outcome(ask(connection, "own", kill)), identity)
                yield name, user, "kill with another", without(
                    outcome(ask(connection, "own", {**kill, "cursors": [Int64(1), identity]})), identity)
                ask(anna, "own", kill)


def cursors_after_a_revocation(world: World):
    with world.users("anna") as anna:
        for name, (command, collection) in CURSORS.items():
            identity = ask(anna, "own", command)["cursor"]["id"]
            more = {"getMore": identity, "collection": collection, "batchSize": 1}
            with world.revoked("anna", READ_WRITE):
                yield name, "revoked", without(outcome(ask(anna, "own", more)), identity)
                yield name, "revoked", "own kill", len(ask(anna, "own", {"killCursors": collection, "cursors": [Int64(5)]}))
            yield name, "granted", bool(batch(ask(anna, "own", more))[0])
            ask(anna, "own", {"killCursors": collection, "cursors": [identity]})


def one_of_two_collections_is_revoked(world: World):
    """A pipeline over two collections of which one may not be read any more."""
    stages = {
        "$lookup": [{"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}],
        "$unionWith": [{"$unionWith": "d"}],
        "$graphLookup": [{"$graphLookup": {
            "from": "d", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "x"}}],
        "in $facet": [{"$facet": {"one": [{"$lookup": {"from": "d", "pipeline": [], "as": "x"}}]}}, {"$unwind": "$one"}],
        "in $lookup": [{"$lookup": {"from": "c", "as": "x", "pipeline": [{"$unionWith": "d"}]}}],
    }
    keeps_c = {"updateRole": "finds in c and d", "privileges": ROLES["finds in c"], "$db": "admin"}
    keeps_both = {**keeps_c, "privileges": ROLES["finds in c and d"]}
    with world.users("finds in c and d") as user:
        for name, pipeline in stages.items():
            command = {"aggregate": "c", "pipeline": pipeline, "cursor": {"batchSize": 1}}
            identity = ask(user, "own", command)["cursor"]["id"]
            more = {"getMore": identity, "collection": "c", "batchSize": 1}
            try:
                world.do(keeps_c)
                yield name, "again", outcome(ask(user, "own", command))
                yield name, "more", without(outcome(ask(user, "own", more)), identity)
            finally:
                world.do(keeps_both)
            yield name, "granted", bool(batch(ask(user, "own", more))[0])


def sessions_of_others(world: World):
    with world.users("anna", "ben", "hostManager", "root", "restore") as (anna, ben, host, root, restore):
        for command, user in (("killSessions", ben), ("endSessions", ben), ("refreshSessions", ben),
                              ("killSessions", root), ("endSessions", root), ("refreshSessions", root),
                              ("killSessions", host), ("endSessions", host), ("refreshSessions", host),
                              ("killSessions", restore)):
            mine, other = new_session(), new_session()
            foreign = SON(mine, uid=digest("anna"))
            identity = ask(anna, "own", {"find": "c", "batchSize": 1}, lsid=mine)["cursor"]["id"]
            hidden = [identity, uuid.UUID(bytes=mine["id"]), uuid.UUID(bytes=other["id"])]
            more = {"getMore": identity, "collection": "c", "batchSize": 1}
            yield command, "same uuid", without(outcome(ask(user, "own", more, lsid=mine)), *hidden)
            yield command, "foreign", without(outcome(ask(user, "own", more, lsid=foreign)), *hidden)
            yield command, "find", without(outcome(ask(user, "own", {"find": "c"}, lsid=foreign)), *hidden)
            yield command, "ping", outcome(ask(user, "own", {"ping": 1}, lsid=foreign))
            yield command, "insert", without(outcome(ask(user, "own", {"insert": "c", "documents": [{"_id": 1}]}, lsid=foreign)), "…")
            yield command, "other session", without(outcome(ask(anna, "own", more, lsid=other)), *hidden)
            yield command, "no session", without(outcome(ask(anna, "own", more)), *hidden)
            yield command, "own name", outcome(ask(user, "admin", {command: [mine]}))
            yield command, "empty list", outcome(ask(user, "admin", {command: []}))
            yield command, "others", outcome(ask(user, "admin", {command: [foreign]}))
            yield command, "mixed", outcome(ask(user, "admin", {command: [mine, foreign]}))
            yield command, "anna", without(batch(ask(anna, "own", more, lsid=mine)), *hidden)
            yield command, "anna by digest", without(batch(ask(anna, "own", more, lsid=foreign)), *hidden)
            yield command, "anna ends", outcome(ask(anna, "admin", {"killSessions": [foreign]}))
            yield command, "anna after", without(outcome(ask(anna, "own", more, lsid=mine)), *hidden)


def all_sessions(world: World):
    patterns = {
        "none": [], "a user": [{"uid": digest("anna")}], "of users": [{"users": [{"user": "anna", "db": "admin"}]}],
        "of roles": [{"roles": [{"role": "read", "db": "own"}]}], "own": [{"uid": digest("ben")}],
    }
    with world.users("anna", "ben", "hostManager", "nothing") as (anna, ben, host, nothing):
        for name, pattern in patterns.items():
            for user, connection in (("ben", ben), ("nothing", nothing), ("host", host)):
                session = new_session()
                identity = ask(anna, "own", {"find": "c", "batchSize": 1}, lsid=session)["cursor"]["id"]
                more = {"getMore": identity, "collection": "c", "batchSize": 1}
                yield name, user, outcome(ask(connection, "admin", {"killAllSessionsByPattern": pattern}))
                yield name, user, "anna", without(batch(ask(anna, "own", more, lsid=session)), identity)
        for listed in ([], [{"user": "anna", "db": "admin"}], [{"user": "ben", "db": "admin"}]):
            for user, connection in (("ben", ben), ("host", host)):
                session = new_session()
                identity = ask(anna, "own", {"find": "c", "batchSize": 1}, lsid=session)["cursor"]["id"]
                more = {"getMore": identity, "collection": "c", "batchSize": 1}
                yield "killAllSessions", user, outcome(ask(connection, "admin", {"killAllSessions": listed}))
                yield "killAllSessions", user, "anna", without(batch(ask(anna, "own", more, lsid=session)), identity)


def listed_sessions(world: World):
    """Lists the sessions of `$listLocalSessions` and their users."""
    stages = {
        "own": {}, "all": {"allUsers": True}, "not all": {"allUsers": False}, "anna": {"users": [{"user": "anna", "db": "admin"}]},
        "anna and ben": {"users": [{"user": "anna", "db": "admin"}, {"user": "ben", "db": "admin"}]},
        "no users": {"users": []}, "oneself and all": {"allUsers": True, "users": []},
        "an unknown user": {"users": [{"user": "none", "db": "admin"}]},
    }
    of = {name: new_session() for name in ("anna", "ben", "nothing", "sees sessions")}
    with world.users(*of) as connections:
        for (name, session), connection in zip(of.items(), connections, strict=True):
            ask(connection, "own", {"ping": 1}, lsid=session)
            ask(connection, "admin", {"refreshSessions": [session]})
        known = {bytes(session["id"]): name for name, session in of.items()}
        for (user, session), connection in zip(of.items(), connections, strict=True):
            for name, options in stages.items():
                command = {"aggregate": 1, "pipeline": [{"$listLocalSessions": options}], "cursor": {"batchSize": 10000}}
                reply = ask(connection, "admin", command, lsid=session)
                if reply["ok"] != 1:
                    yield user, name, without(outcome(reply), uuid.UUID(bytes=session["id"]))
                    continue
                rows = reply["cursor"]["firstBatch"]
                listed = [(known[bytes(row["_id"]["id"])], row.get("user"), bytes(row["_id"]["uid"]) == digest(known[bytes(row["_id"]["id"])]))
                          for row in rows if bytes(row["_id"]["id"]) in known]
                yield user, name, sorted(listed)


def exhaust_cursors_after_a_revocation(world: World):
    """A cursor whose batches the server sends by itself."""
    with world.users("anna") as anna:
        command = {"find": "capped", "tailable": True, "awaitData": True, "batchSize": 1}
        identity = ask(anna, "own", command)["cursor"]["id"]
        more = {"getMore": identity, "collection": "capped", "maxTimeMS": 300, "$db": "own"}
        anna.send(op_msg(more, flags=EXHAUST_ALLOWED))
        yield "first", outcome(anna.receive_reply())
        with world.revoked("anna", READ_WRITE):
            while (reply := anna.receive_reply())["ok"] == 1:
                pass
            yield "revoked", without(outcome(reply), identity)


SCENARIOS = [
    cursors_of_others,
    cursors_after_a_revocation,
    exhaust_cursors_after_a_revocation,
    one_of_two_collections_is_revoked,
    sessions_of_others,
    all_sessions,
    listed_sessions,
]
