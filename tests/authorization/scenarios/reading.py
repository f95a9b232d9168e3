"""Lists and documents that a user may not read, whatever the way to them."""

import uuid

from bson.binary import Binary

from authorization.users import on, privilege
from authorization.world import USERS, World, ask, is_denied, outcome, without


def listed_databases(world: World):
    variants = [{}, {"nameOnly": True}, {"authorizedDatabases": True}, {"authorizedDatabases": False}, {"authorizedDatabases": None},
                {"nameOnly": True, "authorizedDatabases": True}, {"filter": {"name": "third"}}, {"filter": {"name": {"$ne": "own"}}},
                {"authorizedDatabases": 1}, {"authorizedDatabases": True, "filter": {"sizeOnDisk": {"$gt": 0}}}]
    for user in USERS:
        with world.users(user) as connection:
            for options in variants:
                reply = ask(connection, "admin", {"listDatabases": 1, **options})
                names = [entry["name"] for entry in reply.get("databases", []) if entry["name"] not in ("config", "local")]
                yield user, options, (names if reply["ok"] == 1 else outcome(reply))


def listed_collections(world: World):
    variants = [{}, {"nameOnly": True}, {"authorizedCollections": True}, {"authorizedCollections": True, "nameOnly": True},
                {"authorizedCollections": True, "nameOnly": True, "filter": {"name": "d"}},
                {"authorizedCollections": True, "nameOnly": True, "filter": {"type": "view"}},
                {"authorizedCollections": True, "nameOnly": True, "filter": {"options.viewOn": "c"}},
                {"authorizedCollections": True, "nameOnly": True, "filter": {"info.readOnly": False}},
                {"authorizedCollections": True, "nameOnly": False}, {"authorizedCollections": False, "nameOnly": True}]
    for user in USERS:
        with world.users(user) as connection:
            for db in ("own", "other", "absent", "admin"):
                for options in variants:
                    reply = ask(connection, db, {"listCollections": 1, **options})
                    if reply["ok"] != 1:
                        yield user, db, options, outcome(reply)
                        continue
                    rows = [row for row in reply["cursor"]["firstBatch"] if not row["name"].startswith("system.")]
                    yield user, db, options, sorted((row["name"], row["type"], sorted(row)) for row in rows)

READS_OF = {
    "find": lambda name: {"find": name},
    "find by _id": lambda name: {"find": name, "filter": {"_id": 1}, "limit": 1, "singleBatch": True},
    "count": lambda name: {"count": name}, "distinct": lambda name: {"distinct": name, "key": "a"},
    "aggregate": lambda name: {"aggregate": name, "pipeline": [{"$limit": 1}], "cursor": {}},
    "collStats": lambda name: {"collStats": name}, "listIndexes": lambda name: {"listIndexes": name},
    "dbStats": lambda name: {"dbStats": 1}, "dataSize": lambda name: {"dataSize": f"own.{name}"},
    "validate": lambda name: {"validate": name}, "explain": lambda name: {"explain": {"find": name}},
    "executed explain": lambda name: {"explain": {"count": name}, "verbosity": "executionStats"},
    "explain of an aggregation": lambda name: {"explain": {"aggregate": name, "pipeline": [], "cursor": {}}},
    "aggregate with explain": lambda name: {"aggregate": name, "pipeline": [], "explain": True},
}


def reads_by_users_with_few_privileges(world: World):
    collections = ("c", "d", "v", "w", "t", "system.buckets.t", "system.views", "system.profile", "system.js", "absent", "system.users")
    for user in ("reader", "finds in c", "finds in v", "finds in w", "finds in t", "nothing", "readAnyDatabase", "finds in c of any",
                 "administrator", "makes views", "root", "backup"):
        with world.users(user) as connection:
            for name, command in READS_OF.items():
                for collection in collections:
                    reply = ask(connection, "own", command(collection))
                    yield user, name, collection, outcome(reply)[0]


def joins(collection: str) -> dict[str, dict]:
    by_field = {"localField": "a", "foreignField": "a", "as": "x"}
    inner = {"$lookup": {"from": collection, **by_field}}
    return {
        "$lookup": inner,
        "$lookup with a pipeline": {"$lookup": {"from": collection, "pipeline": [], "as": "x"}},
        "$lookup with both": {"$lookup": {"from": collection, "pipeline": [], **by_field}},
        "$lookup with let": {"$lookup": {"from": collection, "let": {"a": "$a"}, "pipeline": [{"$match": {}}], "as": "x"}},
        "$lookup in $lookup": {"$lookup": {"from": "c", "pipeline": [inner], "as": "x"}},
        "$lookup in $facet": {"$facet": {"one": [inner]}},
        "$lookup in $lookup in $facet": {"$facet": {"one": [{"$lookup": {"from": "c", "pipeline": [inner], "as": "x"}}]}},
        "$unionWith": {"$unionWith": collection}, "$unionWith with coll": {"$unionWith": {"coll": collection}},
        "$unionWith with a pipeline": {"$unionWith": {"coll": collection, "pipeline": [{"$match": {}}]}},
        "$unionWith in $unionWith": {"$unionWith": {"coll": "c", "pipeline": [{"$unionWith": collection}]}},
        "$unionWith in $facet": {"$facet": {"one": [{"$unionWith": collection}]}},
        "$unionWith in $lookup": {"$lookup": {"from": "c", "pipeline": [{"$unionWith": collection}], "as": "x"}},
        "$graphLookup": {"$graphLookup": {
            "from": collection, "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "x"}},
        "$graphLookup in $lookup": {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$graphLookup": {
            "from": collection, "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "y"}}]}},
        "$collStats in $lookup": {"$lookup": {"from": collection, "pipeline": [{"$collStats": {"count": {}}}], "as": "x"}},
        "$collStats in $unionWith": {"$unionWith": {"coll": collection, "pipeline": [{"$collStats": {"count": {}}}]}},
        "$indexStats in $unionWith": {"$unionWith": {"coll": collection, "pipeline": [{"$indexStats": {}}]}},
        "$listCatalog in $unionWith": {"$unionWith": {"coll": collection, "pipeline": [{"$listCatalog": {}}]}},
        "$planCacheStats in $unionWith": {"$unionWith": {"coll": collection, "pipeline": [{"$planCacheStats": {}}]}},
        "$out in $lookup": {"$lookup": {"from": "c", "pipeline": [{"$out": collection}], "as": "x"}},
        "$merge in $facet": {"$facet": {"one": [{"$merge": collection}]}},
    }


def joins_of_collections_one_may_not_read(world: World):
    for user in ("reader", "finds in c", "finds in c and d", "finds in v", "makes views", "readAnyDatabase", "finds in c of any"):
        with world.users(user) as connection:
            for collection in ("d", "v", "w", "t", "system.buckets.t", "system.views", "system.js", "absent"):
                for name, stage in joins(collection).items():
                    for source in ("c", "v"):
                        command = {"aggregate": source, "pipeline": [stage], "cursor": {}}
                        yield user, name, collection, source, is_denied(ask(connection, "own", command))
                        if source == "c":
                            yield user, name, collection, "explain", is_denied(ask(connection, "own", {"explain": command}))


def views_over_what_one_may_not_read(world: World):
    lookup = {"$lookup": {"from": "d", "localField": "a", "foreignField": "a", "as": "x"}}
    pipelines = {
        "nothing": [], "$lookup": [lookup], "in $facet": [{"$facet": {"one": [{"$unionWith": "d"}]}}],
        "in $unionWith": [{"$unionWith": {"coll": "c", "pipeline": [lookup]}}], "$collStats": [{"$collStats": {}}],
        "$out": [{"$out": "d"}],
    }
    sees = {"grantPrivilegesToRole": "makes views", "$db": "admin", "privileges": [privilege(on("own", "mine"), "find")]}
    unsees = {"revokePrivilegesFromRole" if key == "grantPrivilegesToRole" else key: value for key, value in sees.items()}
    for may_find in (False, True):
        if may_find:
            world.do(sees)
        try:
            for user in ("makes views", "administrator", "anna", "owner"):
                with world.users(user) as connection:
                    for source in ("c", "d", "v", "system.views", "system.users", "t"):
                        for name, pipeline in pipelines.items():
                            create = {"create": "mine", "viewOn": source, "pipeline": pipeline}
                            yield may_find, user, source, name, outcome(ask(connection, "own", create))[0]
                            yield may_find, user, source, name, "find", is_denied(ask(connection, "own", {"find": "mine"}))
                            modify = {"collMod": "v", "viewOn": source, "pipeline": pipeline}
                            yield may_find, user, source, name, "collMod", outcome(ask(connection, "own", modify))[0]
                            world.root.run({"drop": "mine", "$db": "own"})
                            world.do({"collMod": "v", "viewOn": "c", "pipeline": [{"$match": {"a": {"$lt": 5}}}], "$db": "own"})
        finally:
            if may_find:
                world.do(unsees)


def by_uuid(world: World):
    rows = world.do({"listCollections": 1, "$db": "own"})["cursor"]["firstBatch"]
    identity = next(row["info"]["uuid"] for row in rows if row["name"] == "d")
    absent = Binary(bytes(16), 4)
    commands = {
        "find": lambda name: {"find": name}, "count": lambda name: {"count": name}, "listIndexes": lambda name: {"listIndexes": name},
        "distinct": lambda name: {"distinct": name, "key": "a"},
        "aggregate": lambda name: {"aggregate": name, "pipeline": [], "cursor": {}},
    }
    for user in ("nothing", "reader", "finds in c", "resolves", "root", "clusterManager", "readAnyDatabase"):
        with world.users(user) as connection:
            for name, command in commands.items():
                for which, value in (("d", identity), ("absent", absent)):
                    for db in ("own", "other"):
                        reply = outcome(ask(connection, db, command(value)))
                        # MongoDB names the collection of another database.
                        yield user, name, which, db, without(reply, identity, uuid.UUID(bytes=identity)) if db == "own" else reply[0]
                expected = {"find": "c", "collectionUUID": identity}
                yield user, "expected", without(outcome(ask(connection, "own", expected), "cursor"), uuid.UUID(bytes=identity))


SCENARIOS = [
    listed_databases,
    listed_collections,
    reads_by_users_with_few_privileges,
    joins_of_collections_one_may_not_read,
    views_over_what_one_may_not_read,
    by_uuid,
]
