"""Documents, users and roles that a user may not change."""

from bson import SON

from authorization.users import on
from authorization.world import PASSWORD, ROLES, USERS, World, ask, fields, is_denied, outcome, without


def writes_of_pipelines(world: World):
    fails = {"$match": {"$expr": {"$divide": [1, {"$subtract": ["$a", "$a"]}]}}}
    stages = {
        "$out": {"$out": "d"}, "$out elsewhere": {"$out": {"db": "other", "coll": "d"}}, "$out of system.users": {"$out": "system.users"},
        "$out of admin": {"$out": {"db": "admin", "coll": "system.users"}}, "$out of views": {"$out": "system.views"},
        "$merge": {"$merge": "d"}, "$merge into": {"$merge": {"into": "d"}}, "$merge elsewhere": {"$merge": {"into": {"db": "other", "coll": "d"}}},
        "$merge into admin": {"$merge": {"into": {"db": "admin", "coll": "system.users"}}},
        "$merge that only inserts": {"$merge": {"into": "d", "whenMatched": "fail"}},
        "$merge that keeps": {"$merge": {"into": "d", "whenMatched": "keepExisting"}},
        "$merge that discards": {"$merge": {"into": "d", "whenNotMatched": "discard"}},
        "$merge with a pipeline": {"$merge": {"into": "d", "whenMatched": [{"$set": {"a": 1}}]}},
    }
    for user in ("reader", "anna", "writes to d", "inserts", "readWriteAnyDatabase", "administrator", "restore", "root", "backup"):
        with world.users(user) as connection:
            for name, stage in stages.items():
                for bypass in (False, True):
                    command = {"aggregate": "c", "pipeline": [fails, stage], "cursor": {}, "bypassDocumentValidation": bypass}
                    yield user, name, bypass, outcome(ask(connection, "own", command))[0]
                explained = {"explain": {"aggregate": "c", "pipeline": [fails, stage], "cursor": {}}}
                yield user, name, "explain", is_denied(ask(connection, "own", explained))


def users_and_roles_as_collections(world: World):
    commands = {
        "find": {"find": "system.users"}, "find roles": {"find": "system.roles"}, "count": {"count": "system.users"},
        "distinct": {"distinct": "system.users", "key": "user"},
        "aggregate": {"aggregate": "system.users", "pipeline": [], "cursor": {}},
        "$lookup": {"aggregate": "c", "pipeline": [{"$lookup": {"from": "system.users", "pipeline": [], "as": "x"}}], "cursor": {}},
        "$unionWith": {"aggregate": 1, "pipeline": [{"$documents": [{"a": 1}]}, {"$unionWith": "system.users"}], "cursor": {}},
        "$collStats": {"aggregate": "system.users", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}},
        "listIndexes": {"listIndexes": "system.users"}, "collStats": {"collStats": "system.users"},
        "validate": {"validate": "system.users"}, "dataSize": {"dataSize": "admin.system.users"},
        "dbHash": {"dbHash": 1}, "insert": {"insert": "system.users", "documents": [{"_id": {"$bad": 1}}]},
        "update": {"update": "system.users", "updates": [{"q": {"_id": "none"}, "u": {"$set": {"a": 1}}}]},
        "upsert": {"update": "system.roles", "updates": [{"q": {"_id": "none"}, "u": {"$set": {"$bad": 1}}, "upsert": True}]},
        "delete": {"delete": "system.users", "deletes": [{"q": {"_id": "none"}, "limit": 1}]},
        "findAndModify": {"findAndModify": "system.users", "query": {"_id": "none"}, "remove": True},
        "drop": {"drop": "system.users"}, "drop roles": {"drop": "system.roles"},
        "rename": {"renameCollection": "admin.system.users", "to": "admin.system.version"},
        "rename elsewhere": {"renameCollection": "admin.system.users", "to": "own.c"},
        "rename onto": {"renameCollection": "own.absent", "to": "admin.system.users", "dropTarget": True},
        "collMod": {"collMod": "system.users", "validator": {"$bad": 1}},
        "createIndexes": {"createIndexes": "system.users", "indexes": [{"key": {"x": "bad"}, "name": "x"}]},
        "dropIndexes": {"dropIndexes": "system.users", "index": "absent"},
        "convertToCapped": {"convertToCapped": "system.users", "size": -1},
        "clone": {"cloneCollectionAsCapped": "system.users", "toCollection": "stolen", "size": -1},
        "view": {"create": "taken", "viewOn": "system.users", "pipeline": []},
        "explain": {"explain": {"find": "system.users"}, "verbosity": "executionStats"},
        "reIndex": {"reIndex": "absent"}, "compact": {"compact": "absent"},
        "filemd5": {"filemd5": 1, "root": "system.users"},
        "mapReduce": {"mapReduce": "system.users", "map": "x", "reduce": "y", "out": {"inline": 1}},
    }
    for user in ("nothing", "anna", "reader of admin", "readAnyDatabase", "readWriteAnyDatabase", "dbAdminAnyDatabase",
                 "userAdminAnyDatabase", "backup", "restore", "root", "clusterManager"):
        with world.users(user) as connection:
            for name, command in commands.items():
                reply = ask(connection, "admin", command)
                yield user, name, outcome(reply)[0]


def renames_between_databases(world: World):
    targets = ("own.fresh", "other.fresh", "own.d", "other.d", "other.system.js", "own.system.views", "admin.fresh", "own.system.users")
    for user in ("anna", "owner", "administrator", "reader", "readWriteAnyDatabase", "dbAdminAnyDatabase", "restore"):
        with world.users(user) as connection:
            for source in ("own.absent", "other.absent", "own.system.js", "admin.system.users", "own.system.views"):
                is_needed = source in ("admin.system.users", "own.system.views")
                for target in ("own.d", "other.d") if is_needed else targets:
                    for drops in (False,) if is_needed else (False, True):
                        command = {"renameCollection": source, "to": target, "dropTarget": drops}
                        yield user, source, target, drops, outcome(ask(connection, "admin", command))[0]


def changes_that_show_documents(world: World):
    """Commands that change documents, and may return them."""
    commands = {
        "insert of a duplicate": {"insert": "c", "documents": [{"_id": 1}]},
        "update": {"update": "c", "updates": [{"q": {"_id": "none"}, "u": {"$set": {"a": 1}}}]},
        "upsert": {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": True}]},
        "mixed": {"update": "c", "updates": [{"q": {"_id": "none"}, "u": {"$set": {"a": 1}}},
                                             {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": 1}]},
        "delete": {"delete": "c", "deletes": [{"q": {"_id": "none"}, "limit": 1}]},
        "findAndModify": {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}},
        "findAndModify new": {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}, "new": True},
        "findAndModify upsert": {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}, "upsert": True},
        "findAndModify remove": {"findAndModify": "c", "query": {"_id": "none"}, "remove": True},
        "explain update": {"explain": {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}},
        "explain delete": {"explain": {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}},
        "explain findAndModify": {"explain": {"findAndModify": "c", "query": {}, "remove": True}},
    }
    for user in ("nothing", "inserts", "updates", "reader", "anna", "finds in c"):
        with world.users(user) as connection:
            for name, command in commands.items():
                yield user, name, outcome(ask(connection, "own", command))[0]


def passwords_and_roles_of_others(world: World):
    commands = {
        "password": {"updateUser": "anna", "pwd": "stolen"}, "own password": {"updateUser": "ben", "pwd": PASSWORD},
        "data": {"updateUser": "anna", "customData": {"a": 1}}, "own data": {"updateUser": "ben", "customData": {"a": 1}},
        "role": {"grantRolesToUser": "ben", "roles": ["root"]}, "role of own": {"grantRolesToUser": "ben", "roles": [{"role": "dbOwner", "db": "own"}]},
        "user": {"createUser": "x", "pwd": "x", "roles": ["root"], "mechanisms": ["bad"]},
        "user without roles": {"createUser": "x", "pwd": "x", "roles": [], "mechanisms": ["bad"]},
        "role for all": {"createRole": "read", "roles": ["root"], "privileges": []},
        "privilege": {"grantPrivilegesToRole": "read", "privileges": [SON(resource=SON(anyResource=True), actions=["anyAction"])]},
        "role of a role": {"grantRolesToRole": "finds in c", "roles": ["root"]},
        "info": {"usersInfo": "anna"}, "info with credentials": {"usersInfo": "anna", "showCredentials": True},
        "own info": {"usersInfo": "ben"}, "own credentials": {"usersInfo": "ben", "showCredentials": True},
        "own privileges": {"usersInfo": "ben", "showPrivileges": True},
        "all": {"usersInfo": 1}, "of all databases": {"usersInfo": {"forAllDBs": True}}, "not of all databases": {"usersInfo": {"forAllDBs": False}},
        "two": {"usersInfo": [{"user": "ben", "db": "admin"}, {"user": "anna", "db": "admin"}]},
        "roles": {"rolesInfo": 1}, "own role": {"rolesInfo": {"role": "readWrite", "db": "own"}},
        "other role": {"rolesInfo": "root", "showPrivileges": True}, "filter": {"usersInfo": 1, "filter": {"user": "anna"}},
        "drop": {"dropUser": "absent"}, "cache": {"invalidateUserCache": 1},
        "status": {"connectionStatus": 1, "showPrivileges": True},
    }
    for user in ("nothing", "ben", "granter", "owner", "userAdminAnyDatabase"):
        with world.users(user) as connection:
            for db in ("admin", "own"):
                for name, command in commands.items():
                    yield user, db, name, outcome(ask(connection, db, command))[0]
            if user in ("userAdminAnyDatabase", "ben"):
                continue
    world.do({"updateUser": "anna", "pwd": PASSWORD, "roles": USERS["anna"], "customData": {}, "$db": "admin"})
    world.do({"updateUser": "ben", "pwd": PASSWORD, "roles": USERS["ben"], "customData": {}, "$db": "admin"})
    world.do({"updateRole": "finds in c", "privileges": ROLES["finds in c"], "roles": [], "$db": "admin"})


def privileges_that_one_may_not_grant(world: World):
    """A user administrator of a database that names resources and roles of others, also in fields
    that occur twice."""
    resources = [
        on("own", ""), on("other", ""), on("", ""), on("", "c"), on("own", "system.users"), SON(cluster=True), SON(anyResource=True),
        SON(db="own", system_buckets="t"), SON(system_buckets="t"),
        fields(("db", "other"), ("db", "own"), ("collection", "")), fields(("db", "own"), ("collection", ""), ("cluster", True)),
        fields(("db", "own"), ("collection", ""), ("anyResource", True)),
    ]
    roles = [
        "root", "read", SON(role="root", db="admin"), SON(role="read", db="own"), SON(role="root", db="own"),
        fields(("role", "root"), ("db", "own"), ("db", "admin")), fields(("role", "root"), ("db", "admin"), ("db", "own")),
        fields(("role", "read"), ("role", "root"), ("db", "own")), fields(("role", "root"), ("role", "read"), ("db", "admin")),
    ]
    with world.users("granter") as granter:
        for db in ("own", "admin"):
            for number, resource in enumerate(resources):
                for command in ({"createRole": "fresh", "roles": []}, {"grantPrivilegesToRole": "absent"}, {"revokePrivilegesFromRole": "absent"}):
                    reply = ask(granter, db, {**command, "privileges": [{"resource": resource, "actions": ["find"]}]})
                    # The first of two errors in MongoDB depends on the resource.
                    yield db, "resource", number, (*command,)[0], reply["ok"], reply["ok"] == 1 or reply["code"] == 31
                    world.root.run({"dropRole": "fresh", "$db": db})
            for number, role in enumerate(roles):
                for command in ({"createRole": "fresh", "privileges": []}, {"createUser": "fresh", "pwd": "x"}, {"grantRolesToUser": "absent"},
                                {"grantRolesToRole": "absent"}, {"grantRolesToUser": "granter"}):
                    yield db, "role", number, (*command,)[0], outcome(ask(granter, db, {**command, "roles": [role]}))[0]
                    world.root.run({"dropRole": "fresh", "$db": db})
                    world.root.run({"dropUser": "fresh", "$db": db})
            for listed in (fields(("user", "granter"), ("user", "root"), ("db", "admin")), fields(("user", "granter"), ("db", "admin"), ("db", "own"))):
                yield db, "usersInfo", is_denied(ask(granter, db, {"usersInfo": listed})), ask(granter, db, {"usersInfo": listed}).get("users")


SCENARIOS = [
    writes_of_pipelines,
    users_and_roles_as_collections,
    renames_between_databases,
    changes_that_show_documents,
    passwords_and_roles_of_others,
    privileges_that_one_may_not_grant,
]
