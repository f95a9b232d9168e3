"""The users of the authorization matrix: one for each built-in role, and some with own roles."""

from bson import SON

PASSWORD = "matrix"


def on(database: str, collection: str) -> SON:
    return SON(db=database, collection=collection)


def privilege(resource: SON, *actions: str) -> SON:
    return SON(resource=resource, actions=list(actions))


OF_DATABASES = ("read", "readWrite", "dbAdmin", "dbOwner", "userAdmin", "enableSharding")
OF_ADMIN = (
    "clusterAdmin", "clusterManager", "clusterMonitor", "hostManager", "backup", "restore", "readAnyDatabase",
    "readWriteAnyDatabase", "userAdminAnyDatabase", "dbAdminAnyDatabase", "root", "__system", "__queryableBackup",
)

# Roles of the database admin with these privileges.
CUSTOM = {
    "finds in c": [privilege(on("own", "c"), "find")],
    "writes to c and reads d": [privilege(on("own", "c"), "insert", "update"), privilege(on("own", "d"), "find")],
    "inserts only": [privilege(on("own", ""), "insert")],
    "reads c everywhere": [privilege(on("", "c"), "find", "collStats", "listIndexes")],
    "reads all that is ordinary": [privilege(on("", ""), "find")],
    "reads system collections": [
        privilege(on("own", "system.views"), "find", "listIndexes"), privilege(on("own", "system.profile"), "find"),
        privilege(on("own", "system.js"), "find")],
    "reads buckets": [privilege(SON(db="own", system_buckets="t"), "find", "insert")],
    "creates": [privilege(on("own", ""), "createCollection", "collMod")],
    "creates and reads v": [privilege(on("own", ""), "createCollection", "collMod"), privilege(on("own", "v"), "find")],
    "creates and reads v and c": [
        privilege(on("own", ""), "createCollection", "collMod"), privilege(on("own", "v"), "find"),
        privilege(on("own", "c"), "find")],
    "renames": [privilege(on("own", ""), "renameCollectionSameDB")],
    "renames and reads the target": [
        privilege(on("own", ""), "renameCollectionSameDB"), privilege(on("own", "absent2"), "find")],
    "copies": [
        privilege(on("own", "absent"), "find", "dropCollection"),
        privilege(on("other", "absent2"), "insert", "createIndex")],
    "lists": [privilege(on("own", ""), "listCollections")],
    "bypasses validation": [privilege(on("own", "c"), "insert", "update", "bypassDocumentValidation")],
    "watches the cluster": [privilege(SON(cluster=True), "inprog", "listSessions", "serverStatus", "killAnySession")],
    "splits": [privilege(on("own", ""), "splitVector")],
    "uses UUIDs": [privilege(SON(cluster=True), "useUUID")],
    "applies": [privilege(SON(cluster=True), "applyOps"), privilege(on("own", ""), "insert", "remove")],
    "grants in own": [privilege(on("own", ""), "grantRole", "createUser", "createRole")],
    "any resource": [privilege(SON(anyResource=True), "find")],
}


def users() -> list[SON]:
    """Returns the users: names, databases, roles, and the privileges of roles of their own."""
    listed = [SON(user=None)]
    listed += [SON(user="no role", db="admin", roles=[])]
    listed += [SON(user=f"{role} of own", db="admin", roles=[SON(role=role, db="own")]) for role in OF_DATABASES]
    listed += [SON(user=f"{role} of admin", db="admin", roles=[SON(role=role, db="admin")])
               for role in ("read", "dbOwner", "userAdmin")]
    listed += [SON(user=role, db="admin", roles=[SON(role=role, db="admin")]) for role in OF_ADMIN]
    listed += [SON(user=name, db="admin", roles=[SON(role=name, db="admin")], privileges=privileges)
               for name, privileges in CUSTOM.items()]
    own = [privilege(on("own", ""), "changeOwnPassword", "changeOwnCustomData")]
    listed += [SON(user="self", db="own", roles=[SON(role="changes oneself", db="own")], privileges=own)]
    return listed


def label(user: SON) -> str:
    return user["user"] or "nobody"
