"""Users and roles: the commands that change and list them, and the collections that store them.

Each script begins and ends without users and roles.
"""

import itertools

from compat.case import script
from compat.cases.scripts import admin

EXTERNAL = {"$db": "$external"}
ADMIN = {"$db": "admin"}
CLEAR = [
    *({command: 1, **where} for where in ({}, ADMIN, EXTERNAL, {"$db": "other"}) for command in ("dropAllUsersFromDatabase", "dropAllRolesFromDatabase")),
    *(admin({"delete": f"system.{name}", "deletes": [{"q": {}, "limit": 0}]}) for name in ("users", "roles")),
]
STORED = [admin({"find": name, "sort": {"_id": 1}}) for name in ("system.users", "system.roles")]
LOCAL = [{"clientSource": ["127.0.0.1"]}]
KEYS = {"iterationCount": 10000, "salt": "YWJjZGVmZ2hpamtsbW5vcA==", "storedKey": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "serverKey": "AAAAAAAAAAAAAAAAAAAAAAAAAAA="}
MERGE = "_mergeAuthzCollections"


def block(family: str, *cases):
    return script(f"users and roles: {family}", *CLEAR, *cases, *CLEAR)


def create(user="a", **more):
    return {"createUser": user, "pwd": "p", "roles": [], **more}


def role(name="r", **more):
    return {"createRole": name, "privileges": [], "roles": [], **more}


def on(db, collection, *actions):
    return {"resource": {"db": db, "collection": collection}, "actions": list(actions)}


# Values of `roles`, valid and invalid.
ROLES = [["x"], [1], [{}], [{"role": "read"}], [{"role": "read", "db": 1}], [{"role": 1, "db": "compat"}], [{"role": "read", "db": ""}], [{"role": "", "db": "compat"}],
    [""], ["root"], [None], [[]], ["read", 1], [{"role": "read", "db": "compat", "x": 1}], "x", None, {}, 1]
RESTRICTIONS = [[{}], [{"clientSource": "127.0.0.1"}], [{"clientSource": ["x"]}], [{"clientSource": ["127.0.0.1/99"]}], [{"clientSource": ["127.0.0.1/-1"]}], [{"clientSource": ["127.0.0.1/"]}],
    [{"clientSource": ["::1/129"]}], [{"clientSource": [1]}], [{"clientSource": [""]}], [{"foo": ["127.0.0.1/99"]}], {}, [1], "x", None, 1]
PRIVILEGES = [None, 1, {}, [1], [{}], [{"resource": {}, "actions": []}], [{"resource": {}, "actions": ["find"]}], [{"resource": {"db": "compat"}, "actions": ["find"]}], [{"resource": {"collection": "x"}, "actions": ["find"]}],
    [{"resource": {"cluster": True}, "actions": ["find"]}], [{"resource": {"cluster": False}, "actions": ["find"]}], [{"resource": {"cluster": 1}, "actions": ["find"]}],
    [{"resource": {"anyResource": True}, "actions": ["find"]}], [{"resource": {"anyResource": False}, "actions": ["find"]}], [on("compat", "x", "nope")],
    [on("compat", "x", "find", "nope", "nope2")], [on("compat", "x")], [on("compat", "x", 1)], [on("other", "x", "find")], [{"resource": 1, "actions": ["find"]}], [{"resource": [], "actions": ["find"]}],
    [{"resource": {"db": 1, "collection": "x"}, "actions": ["find"]}], [{"resource": {"db": "compat", "collection": 1}, "actions": ["find"]}], [{"resource": {"db": "compat", "collection": "x"}}],
    [{"actions": ["find"]}], [{"resource": {"db": "compat", "collection": "x"}, "actions": "find"}], [{"resource": {"db": "compat", "collection": "x"}, "actions": None}],
    [{"resource": {"db": "compat", "collection": "x", "cluster": True}, "actions": ["find"]}], [{"resource": {"db": "compat", "collection": "x", "anyResource": True}, "actions": ["find"]}],
    [{"resource": {"cluster": True, "anyResource": True}, "actions": ["find"]}], [{"resource": {"db": "compat", "system_buckets": "x"}, "actions": ["find"]}],
    [{"resource": {"system_buckets": "x"}, "actions": ["find"]}], [{"resource": {"system_buckets": 1}, "actions": ["find"]}], [{"resource": {"db": "compat", "collection": "x", "system_buckets": "x"}, "actions": ["find"]}],
    [on("", "", "find")], [on("", "x", "find")], [on("compat", "x", "find"), on("compat", "y", "nope")], [on("compat", "x", "nope"), on("other", "y", "find")]]
GOOD_PRIVILEGES = [[on("compat", "", "find")], [{"resource": {"db": "compat", "collection": "x", "foo": 1}, "actions": ["find"]}], [{**on("compat", "x", "find"), "foo": 1}],
    [on("compat", "x", "find"), on("compat", "x", "insert"), on("compat", "y", "insert", "find", "find")], [on("compat", "x", "anyAction", "find")]]
NAMES = [1, 2, 1.0, "a", "nope", "", None, True, {"user": "a", "db": "other"}, {"user": "a", "db": "nope"}, {"user": "a"}, {"db": "other"}, {"user": 1, "db": "other"},
    {"user": "a", "db": "other", "x": 1}, ["a", "b"], ["a", {"user": "a", "db": "other"}], [], ["a", "a"], [1], {"forAllDBs": True}, {"forAllDBs": False}, {"forAllDBs": 1}, {"forAllDBs": True, "x": 1}, {}]
ROLE_NAMES = [1, 2, 1.0, "r1", "nope", "", "read", "root", "__system", None, True, {"role": "r1", "db": "compat"}, {"role": "read", "db": "admin"}, {"role": "root", "db": "admin"}, {"role": "r1"}, {"role": 1, "db": "compat"},
    {"role": "r1", "db": "compat", "x": 1}, ["r1", "r2"], ["r2", "r1", "read"], [], ["r1", "r1"], [1], {"forAllDBs": True}, ["nope", "r1"]]

CREATE = [
    create(), create(), {"createUser": "a"}, {"createUser": "a", "roles": []}, create(""), *(create(name) for name in (1, None, {}, "c\0")),
    *(create("b", pwd=value) for value in ("", 1, None, "a\x07b", "a\u00adb", "\u00ad", "\u2168", "\u0627\u0031")),
    *(create("b", roles=value) for value in ROLES), {"usersInfo": "b", "showCredentials": True},
    create("c1", roles=["read", "read", {"role": "read", "db": "compat"}, {"role": "root", "db": "admin"}]),
    create("c2", foo=1), *(create(f"d{at}", customData=value) for at, value in enumerate((1, None, {}, {"a": 1, "$b": 2, "c.d": {"e": [1]}}))),
    *(create(f"e{at}", mechanisms=value) for at, value in enumerate(([], ["X"], ["SCRAM-SHA-1"], ["SCRAM-SHA-256", "SCRAM-SHA-256"], ["MONGODB-X509"], ["PLAIN"], "SCRAM-SHA-1", [1], None, ["SCRAM-SHA-256", "SCRAM-SHA-1"], ["SCRAM-SHA-1", "X"]))),
    *(create(f"f{at}", digestPassword=value, **more) for at, (value, more) in enumerate(itertools.product((False, True, 0, 1, "x", None), ({}, {"mechanisms": ["SCRAM-SHA-1"]}, {"mechanisms": ["SCRAM-SHA-256"]})))),
    create("g1", passwordDigestor="server"), *(create(f"h{at}", authenticationRestrictions=value) for at, value in enumerate((
        *RESTRICTIONS, [], LOCAL, [{"clientSource": []}], [{"serverAddress": ["127.0.0.1", "::1/8"]}, {"clientSource": ["10.0.0.0/8"]}], [{"clientSource": ["127.0.0.1"], "serverAddress": ["::1"]}]))),
    create("sp\x07"), create("sp ace"), create("do.t"), create("do\u00adt", mechanisms=["SCRAM-SHA-256"]), create("w1", writeConcern={"w": 1}),
    create("w3", writeConcern={"w": "majority"}, comment="x", maxTimeMS=60000), create("w4", maxTimeMS="x"), create("w4", writeConcern="x"), create("w5", comment={"a": 1}),
    *STORED, {"usersInfo": 1, "showCredentials": True}, admin({"find": "system.version", "filter": {"_id": "authSchema"}}),
    *({"createUser": "x", "roles": [], **more, "$db": "$external"} for more in ({}, {"pwd": "p"}, {"mechanisms": ["SCRAM-SHA-1"]}, {"mechanisms": ["X"]}, {"roles": ["read"]}, {"roles": [{"role": "read", "db": "compat"}], "customData": {"a": 1}})),
    {"createUser": "y", "roles": [{"role": "read", "db": "compat"}], "customData": {"a": 1}, **EXTERNAL}, *({**create("l"), "$db": db} for db in ("local", "config", "admin")),
    *STORED, {"dropAllUsersFromDatabase": 1, "$db": "config"}, {"dropUser": "l", **ADMIN},
]

UPDATES = [{}, {"pwd": "q"}, {"roles": []}, {"customData": {"b": 2}}, {"customData": None}, {"customData": 1}, {"mechanisms": ["SCRAM-SHA-1"]}, {"mechanisms": ["SCRAM-SHA-256"]}, {"mechanisms": []}, {"mechanisms": ["X"]},
    {"mechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"]}, {"pwd": "q", "mechanisms": ["SCRAM-SHA-256"]}, {"pwd": "q", "mechanisms": ["X"]}, {"pwd": ""}, {"pwd": 1}, {"pwd": "q", "digestPassword": False},
    {"pwd": "q", "digestPassword": False, "mechanisms": ["SCRAM-SHA-1"]}, {"pwd": "q"}, {"digestPassword": False}, {"digestPassword": True}, {"roles": ["read", {"role": "read", "db": "compat"}]},
    *({"roles": value} for value in ROLES), *({"authenticationRestrictions": value} for value in (*RESTRICTIONS, [], LOCAL, [])), {"foo": 1}, {"writeConcern": {"w": 1}},
    {"pwd": "r", "customData": {"c": 3}, "roles": ["dbAdmin"], "authenticationRestrictions": LOCAL}]

UPDATE = [
    create(roles=["read"], customData={"a": 1}), *(case for update in UPDATES for case in ({"updateUser": "a", **update}, admin({"find": "system.users"}))),
    *({"updateUser": name, **more} for name, more in (("nope", {"pwd": "q"}), ("nope", {}), (1, {"pwd": "q"}), ("", {"pwd": "q"}), ("nope", {"mechanisms": ["SCRAM-SHA-1"]}), ("nope", {"roles": ["x"]}), ("a\0", {"pwd": "q"}))),
    {"createUser": "x", "roles": [], **EXTERNAL}, *({"updateUser": "x", **more, **EXTERNAL} for more in ({"pwd": "q"}, {"roles": [{"role": "read", "db": "compat"}]}, {"mechanisms": ["SCRAM-SHA-1"]}, {"customData": {"a": 1}})),
    {"updateUser": "x", "mechanisms": ["SCRAM-SHA-1"], "$db": "local"}, {"updateUser": "x", "customData": {}, "$db": "local"}, *STORED,
]

GRANT = [
    create(roles=["dbAdmin"]),
    *(case for command in ("grantRolesToUser", "revokeRolesFromUser") for case in (
        *(case for value in (["read"], ["readWrite", "read", {"role": "dbAdmin", "db": "other"}], [], [{"role": "read", "db": "admin"}], *ROLES) for case in ({command: "a", "roles": value}, {"usersInfo": "a"})),
        {command: "nope", "roles": ["read"]}, {command: "nope", "roles": ["x"]}, {command: "nope", "roles": []}, {command: "a"}, {command: "a", "roles": ["read"], "foo": 1}, {command: 1, "roles": ["read"]},
        {command: "a", "roles": ["read"], "writeConcern": {"w": 1}}, {command: "", "roles": ["read"]}, {command: "a", "roles": ["read"], "$db": "other"})),
]

DROP = [
    create(), {"dropUser": "nope"}, {"dropUser": 1}, {"dropUser": None}, {"dropUser": "a", "foo": 1}, {"dropUser": ""}, {"dropUser": "a", "$db": "other"}, {"dropUser": "a"}, {"dropUser": "a"}, create(), create("b"),
    {"createUser": "x", "roles": [], **EXTERNAL}, {"dropUser": "x", **EXTERNAL}, {"dropUser": "x", "$db": "local"}, {"dropUser": "b", "writeConcern": {"w": 1}}, create("b"), {"dropDatabase": 1}, {"usersInfo": 1},
    {"dropAllUsersFromDatabase": 1, "foo": 1}, {"dropAllUsersFromDatabase": 1, "writeConcern": {"w": 1}}, {"dropAllUsersFromDatabase": "x"}, {"dropAllUsersFromDatabase": 1, "$db": "local"},
    *({"invalidateUserCache": 1, **more} for more in ({}, ADMIN, {"foo": 1})), *STORED,
]

SHOW = [dict(zip(("showPrivileges", "showCredentials", "showCustomData", "showAuthenticationRestrictions"), flags)) for flags in itertools.product((False, True), repeat=4)]
USERS_INFO = [
    role("r1", privileges=[on("compat", "x", "find")]), role("r2", privileges=[on("compat", "y", "find")], roles=["r1"], authenticationRestrictions=LOCAL),
    create(roles=["r1"], customData={"a": 1}), create("b", roles=["r2", "read"], authenticationRestrictions=LOCAL), create("d", roles=["r2", "read", "nope"]), create("d", roles=["r2", "read"], customData={"a": 2}, authenticationRestrictions=LOCAL),
    {**create(mechanisms=["SCRAM-SHA-1"]), "$db": "other"}, {"createUser": "CN=x", "roles": [], **EXTERNAL}, *({"usersInfo": name} for name in NAMES), *({"usersInfo": name, **show} for name in "abd" for show in SHOW),
    *({"usersInfo": name, **options} for name in (1, ["a", "b"], {"forAllDBs": True}, ["nope", "a"]) for options in (
        {"showPrivileges": True}, {"showCredentials": True}, {"showCustomData": False}, {"showAuthenticationRestrictions": True}, {"showAuthenticationRestrictions": False}, {"filter": {"mechanisms": "SCRAM-SHA-1"}},
        {"filter": {"customData": {"a": 1}}}, {"filter": {}}, {"filter": {"$x": 1}}, {"filter": 1}, {"filter": None}, {"showPrivileges": "x"}, {"showPrivileges": 1}, {"foo": 1}, {"showCustomData": False, "filter": {"customData.a": 1}},
        {"filter": {"credentials": {"$exists": True}}}, {"filter": {"credentials": {"$exists": True}}, "showCredentials": True}, {"filter": {"roles.role": "r1"}}, {"filter": {}, "showPrivileges": True}, {"filter": {"$expr": {"$eq": ["$user", "a"]}}})),
    {"usersInfo": "a", "showPrivileges": True, "filter": {"x": 1}}, {"usersInfo": "b", "showAuthenticationRestrictions": True, "filter": {"user": "z"}}, {"usersInfo": "CN=x", **EXTERNAL, "showPrivileges": True, "showCredentials": True},
    {"usersInfo": 1, **EXTERNAL}, {"dropRole": "r2"}, {"usersInfo": "b", "showPrivileges": True}, {"usersInfo": 1},
]

CREATE_ROLES = [
    {"createRole": "r"}, {"createRole": "r", "roles": []}, {"createRole": "r", "privileges": []}, *(role(privileges=value) for value in PRIVILEGES), *STORED,
    *(case for value in GOOD_PRIVILEGES for case in (role(privileges=value), {"rolesInfo": "r", "showPrivileges": True}, admin({"find": "system.roles"}), {"dropRole": "r"})),
    *(role(roles=value) for value in (["nope"], ["r"], [{"role": "read", "db": "admin"}], [{"role": "read", "db": "other"}], ["nope", {"role": "read", "db": "other"}], *ROLES[1:])), *STORED, {"dropRole": "r"},
    *(case for value in (*RESTRICTIONS, [], LOCAL) for case in (role(authenticationRestrictions=value), {"rolesInfo": "r", "showAuthenticationRestrictions": True}, {"dropRole": "r"})),
    role(foo=1), role(1), role(""), role(None), role("read"), role("root"), role("a\0"), admin(role("root")), admin(role("dbOwner")), {**role("l"), "$db": "local"}, {**role("e"), **EXTERNAL}, role("__system"), role("sp ace"), role("do.t"),
    admin(role("c", privileges=[on("other", "x", "find"), {"resource": {"cluster": True}, "actions": ["serverStatus"]}, {"resource": {"anyResource": True}, "actions": ["anyAction"]}, on("", "", "find"), on("", "x", "find"),
        {"resource": {"db": "other", "system_buckets": "x"}, "actions": ["find"]}, {"resource": {"system_buckets": "y"}, "actions": ["find"]}], roles=[{"role": "read", "db": "other"}])),
    admin({"rolesInfo": "c", "showPrivileges": True}), role("r1", privileges=[on("compat", "x", "find")]), role("r1"), {**role("r1"), "writeConcern": {"w": 1}}, *STORED,
]

ROLE_CHANGES = [
    role("r1", privileges=[on("compat", "x", "find")]), role("r2", privileges=[on("compat", "y", "find")], roles=["r1"]), role("r3", roles=["r2", "read"]),
    *({command: "r1", "roles": value} for command in ("grantRolesToRole", "revokeRolesFromRole") for value in (["r3"], ["r1"], [], ["x"], ["readWrite", "readWrite"], [{"role": "read", "db": "admin"}], *ROLES)), {"rolesInfo": "r1"},
    *({command: name, "roles": ["r1"]} for command in ("grantRolesToRole", "revokeRolesFromRole") for name in ("read", "nope", 1, "")), {"grantRolesToRole": "r1"}, {"grantRolesToRole": "r1", "roles": ["read"], "foo": 1},
    *(case for command in ("grantPrivilegesToRole", "revokePrivilegesFromRole") for value in ([], [on("compat", "x", "insert")], [on("compat", "z", "insert", "find")], [on("compat", "x", "insert", "remove")], *PRIVILEGES)
        for case in ({command: "r1", "privileges": value}, {"rolesInfo": "r1", "showPrivileges": True})),
    *({command: name, "privileges": [on("compat", "x", "insert")]} for command in ("grantPrivilegesToRole", "revokePrivilegesFromRole") for name in ("read", "nope", 1, "")), {"grantPrivilegesToRole": "r1"},
    *({"updateRole": "r1", **more} for more in ({}, {"privileges": []}, *({"roles": value} for value in (["x"], ["r3"], ["r1"], [{"role": "read", "db": "other"}], ["read"], *ROLES)), *({"privileges": value} for value in PRIVILEGES),
        *({"authenticationRestrictions": value} for value in (*RESTRICTIONS, [], LOCAL)), {"foo": 1}, {"privileges": [on("compat", "q", "find")], "roles": ["dbAdmin"]})),
    *({"updateRole": name, **more} for name in ("read", "nope", 1, "") for more in ({"privileges": []}, {"roles": ["x"]})), {"rolesInfo": "r1", "showPrivileges": True, "showAuthenticationRestrictions": True},
    {"updateRole": "r1", "authenticationRestrictions": []}, {"rolesInfo": "r1"}, {"rolesInfo": "r3", "showPrivileges": True}, admin(role("big", roles=[{"role": "r1", "db": "compat"}, {"role": "r3", "db": "compat"}, {"role": "read", "db": "other"}])),
    create("u", roles=["r1", "r2"]), {**create("u", roles=[{"role": "r1", "db": "compat"}]), "$db": "other"}, {"usersInfo": "u", "showPrivileges": True}, {"dropRole": "r1"}, {"rolesInfo": "r2"}, *STORED, {"dropRole": "r1"},
    *({"dropRole": name} for name in ("read", "root", 1, "", None)), {"dropRole": "r2", "foo": 1}, {"usersInfo": "u", "showPrivileges": True}, *STORED, {"dropAllRolesFromDatabase": 1}, *STORED, {"usersInfo": "u", "showPrivileges": True},
    admin({"rolesInfo": "big", "showPrivileges": True}), {"dropAllRolesFromDatabase": 1}, {"dropAllRolesFromDatabase": 1, "foo": 1}, {"dropAllRolesFromDatabase": 1, "writeConcern": {"w": 1}},
]

ROLES_INFO = [
    role("r1", privileges=[on("compat", "x", "find")]), role("r2", privileges=[on("compat", "y", "find")], roles=["r1"], authenticationRestrictions=LOCAL), *({"rolesInfo": name} for name in ROLE_NAMES), admin({"rolesInfo": 1}),
    *({"rolesInfo": name, **options} for name in (1, "r2", ["r1", "r2"], "read", ["r1", "nope"], ["read"], "nope", []) for options in (
        {"showPrivileges": True}, {"showPrivileges": "asUserFragment"}, {"showPrivileges": "x"}, {"showPrivileges": 1}, {"showPrivileges": None}, {"showAuthenticationRestrictions": True}, {"showBuiltinRoles": False}, {"foo": 1},
        {"showPrivileges": True, "showAuthenticationRestrictions": True}, {"showPrivileges": "asUserFragment", "showAuthenticationRestrictions": True})),
    *({"rolesInfo": 1, "showBuiltinRoles": True, "showPrivileges": flag, "$db": db} for flag in (False, True) for db in ("compat", "admin", "$external", "local", "config")), {"rolesInfo": 1, "showBuiltinRoles": True, "showPrivileges": "asUserFragment"},
]

# Writes of tools that restore, and changes of the collections that no command may make.
COLLECTIONS = [
    admin(role("z")), {"dropRole": "z", **ADMIN}, create(), role(),
    admin({"listIndexes": "system.users"}), admin({"listIndexes": "system.roles"}), *STORED,
    admin({"listCollections": 1, "filter": {"name": {"$in": ["system.users", "system.roles", "system.version"]}}}),
    *(admin({"drop": f"system.{name}"}) for name in ("users", "roles", "version")), *(admin({"create": f"system.{name}"}) for name in ("users", "roles", "version")), admin({"dropDatabase": 1}),
    admin({"aggregate": 1, "pipeline": [{"$documents": [{"_id": "x"}]}, {"$out": "system.users"}], "cursor": {}}), admin({"aggregate": 1, "pipeline": [{"$documents": [{"_id": "x"}]}, {"$merge": "system.users"}], "cursor": {}}),
    admin({"collMod": "system.users", "validator": {"x": 1}}), {"insert": "system.roles", "documents": [{"_id": "x"}]},
    admin({"insert": "system.users", "documents": [{"_id": "compat.w", "user": "w", "db": "compat", "credentials": {"SCRAM-SHA-1": KEYS}, "roles": [{"role": "r", "db": "compat"}]}]}), {"usersInfo": "w", "showPrivileges": True},
    admin({"update": "system.users", "updates": [{"q": {"_id": "compat.w"}, "u": {"$set": {"customData": {"q": 1}}}}]}), {"usersInfo": "w", "showPrivileges": True, "showCredentials": True},
    admin({"findAndModify": "system.users", "query": {"_id": "compat.w"}, "update": {"$set": {"customData": {"a": 1}}}}), admin({"count": "system.users"}), admin({"distinct": "system.users", "key": "user"}),
    admin({"aggregate": "system.users", "pipeline": [{"$match": {"user": "w"}}, {"$project": {"user": 1}}], "cursor": {}}), admin({"delete": "system.users", "deletes": [{"q": {"_id": "compat.w"}, "limit": 1}]}), {"usersInfo": "w"},
    admin({"insert": "system.users", "documents": [{"_id": "other id", "user": "a", "db": "compat"}]}),
    admin({"insert": "system.roles", "documents": [{"_id": "compat.y", "role": "y", "db": "compat", "privileges": [], "roles": []}]}), {"rolesInfo": "y"}, *STORED,
]

TO_MERGE = [
    admin({"drop": "tu"}), admin({"drop": "tr"}),
    admin({"insert": "tu", "documents": [{"_id": "compat.a", "user": "a", "db": "compat", "credentials": {"SCRAM-SHA-1": KEYS}, "roles": [], "customData": {"new": 1}},
        {"_id": "other.b", "user": "b", "db": "other", "credentials": {"SCRAM-SHA-1": KEYS}, "roles": [{"role": "nope", "db": "other"}]}]}),
    admin({"insert": "tr", "documents": [{"_id": "compat.a", "role": "a", "db": "compat", "roles": [], "privileges": [on("compat", "", "find")]}, {"_id": "other.b", "role": "b", "db": "other", "privileges": [], "roles": []}]}),
]
MERGES = [{"tempUsersCollection": "admin.tu", "db": "", "drop": False}, {"tempUsersCollection": "admin.tu", "db": "", "drop": True}, {"tempUsersCollection": "admin.tu", "db": "compat", "drop": True}, {"tempUsersCollection": "admin.tu", "db": "other"},
    {"tempRolesCollection": "admin.tr", "db": "", "drop": False}, {"tempRolesCollection": "admin.tr", "db": "", "drop": True}, {"tempRolesCollection": "admin.tr", "db": "other", "drop": True},
    {"tempRolesCollection": "admin.tr", "tempUsersCollection": "admin.tu", "db": "", "drop": True}]
ODD_MERGES = [{}, {"tempUsersCollection": "admin.tu"}, {"tempUsersCollection": "admin.nope", "db": ""}, {"tempUsersCollection": "tu", "db": "", "drop": False}, {"tempUsersCollection": "", "db": "", "drop": False}, {"tempUsersCollection": 1, "db": "", "drop": False},
    {"db": "", "drop": False}, {"tempUsersCollection": "admin.nope", "db": "", "drop": "x"}, {"tempUsersCollection": "admin.nope", "db": "", "foo": 1}, {"tempUsersCollection": "admin.nope", "tempRolesCollection": "", "db": "", "writeConcern": {"w": 1}}]
MERGED = [
    *({MERGE: 1, **options, "$db": db} for options in ODD_MERGES for db in ("compat", "admin")), *TO_MERGE,
    *(case for options in MERGES for case in (*CLEAR, create(), create("z"), role("a"), role("z"), admin({MERGE: 1, **options}), *STORED, {"usersInfo": {"forAllDBs": True}})), *TO_MERGE[:2],
]

BLOCKS = [
    block("createUser", *CREATE), block("updateUser", *UPDATE), block("grants to users", *GRANT), block("dropUser", *DROP), block("usersInfo", *USERS_INFO),
    block("createRole", *CREATE_ROLES), block("changes of roles", *ROLE_CHANGES), block("rolesInfo", *ROLES_INFO), block("their collections", *COLLECTIONS), block("restored", *MERGED),
]
