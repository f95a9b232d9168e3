"""Accounts of users in MariaDB (`backend-identity = "user"`): grants are a second barrier."""

import datetime
import itertools
import random
import subprocess
import threading
import time
from urllib.parse import quote

import pymongo
import pymysql
import pytest
from bson import Binary, Int64
from pymongo.errors import OperationFailure, PyMongoError
from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

PRIVILEGES = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER, CREATE USER"
# The least connections that are allowed.
SETTINGS = '[security]\nauth = true\nbackend-identity = "user"\n[store]\nmariadb-connections = 4\n'
DENIED = {1044, 1142, 1143}
ROOT = {"username": "root", "password": "top"}

numbers = itertools.count()


class Gateway(SelkieServer):
    """Selkie with an account of its own in MariaDB."""

    def __init__(self, folder, mariadb: MariadbServer, settings: str = SETTINGS, options: tuple[str, ...] = ()):
        file = folder / "selkie.toml"
        file.write_text(settings)
        super().__init__(folder, mariadb, ("--config", str(file), *options))

    def command(self) -> list[str]:
        command = super().command()
        command[command.index(self.mariadb.url())] = (
            f"mysql://gateway:secret@localhost/?socket={quote(self.mariadb.socket, safe='')}"
        )
        return command

    def root(self) -> pymongo.MongoClient:
        return self.client(**ROOT)


def start_mariadb(folder) -> MariadbServer:
    server = MariadbServer(folder).start()
    server.sql("CREATE USER gateway@'%' IDENTIFIED BY 'secret'")
    server.sql(f"GRANT {PRIVILEGES} ON *.* TO gateway@'%' WITH GRANT OPTION")
    return server


@pytest.fixture(scope="module")
def database_server(store, tmp_path_factory):
    server = start_mariadb(tmp_path_factory.mktemp("mariadb"))
    yield server
    server.remove()


@pytest.fixture(scope="module")
def gateway(database_server, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), database_server).start()
    gateway.client().admin.command("createUser", "root", pwd="top", roles=["root"])
    yield gateway
    assert gateway.is_running(), gateway.end_of_log()
    gateway.remove()


@pytest.fixture
def root(gateway):
    with gateway.root() as client:
        yield client


@pytest.fixture
def db(root):
    """A database with a collection of three documents."""
    db = root[f"shop{next(numbers)}"]
    db.cars.insert_many([{"_id": number, "tags": ["a", "b"]} for number in range(3)])
    return db


def create(db, user="anna", roles=("read",), **more) -> str:
    """Creates a user, and returns the name of its account."""
    db.command("createUser", user, pwd="pw", roles=list(roles), **more)
    return f"{db.name}.{user}"


def login(gateway, db, user="anna", password="pw"):
    client = gateway.client(username=user, password=password, authSource=db.name)
    return client[db.name]


def sql(gateway, account: str, password="pw", **options) -> pymysql.Connection:
    server = gateway.mariadb
    return pymysql.connect(unix_socket=server.socket, user=account, password=password, autocommit=True,
                           charset="utf8mb4", **options)


def rows(gateway, account: str, statement: str, password="pw"):
    """Returns the rows that the account gets, or the code of its error."""
    try:
        with sql(gateway, account, password) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())
    except pymysql.err.MySQLError as error:
        return error.args[0]


def code(action) -> int | None:
    try:
        action()
    except OperationFailure as error:
        return error.code
    return None


def within(seconds: float, condition):
    until = time.monotonic() + seconds
    while not (outcome := condition()):
        assert time.monotonic() < until, "not in time"
        time.sleep(0.05)
    return outcome


# --- accounts and grants


def test_one_password_logs_in_on_both_protocols(gateway, db, root):
    root[f"{db.name}x"].cars.insert_one({})
    account = create(db)
    assert len(list(login(gateway, db).cars.find())) == 3
    assert len(rows(gateway, account, f"SELECT doc FROM {db.name}.cars")) == 3
    schemas = {schema for schema, in rows(gateway, account, "SHOW DATABASES")}
    assert schemas == {"information_schema", db.name}
    for table in (f"{db.name}x.cars", "mysql.global_priv", "selkie.`system.users`", "selkie.accounts"):
        assert rows(gateway, account, f"SELECT * FROM {table}") in DENIED, table
    assert rows(gateway, account, f"INSERT INTO {db.name}.cars (doc) VALUES ('{{}}')") in DENIED
    assert rows(gateway, account, "SELECT 1", password="wrong") == 1045


def test_a_name_with_a_pattern_is_no_pattern(gateway, root):
    db, other = root["a_b"], root["axb"]
    db.cars.insert_one({})
    other.cars.insert_one({})
    account = create(db)
    assert len(rows(gateway, account, "SELECT doc FROM a_b.cars")) == 1
    assert rows(gateway, account, "SELECT doc FROM axb.cars") in DENIED


def test_a_new_password_counts_on_both_sides(gateway, db):
    account = create(db)
    db.command("updateUser", "anna", pwd="other")
    assert rows(gateway, account, "SELECT 1") == 1045
    assert rows(gateway, account, "SELECT 1", password="other") == ((1,),)
    assert login(gateway, db, password="other").cars.count_documents({}) == 3
    # A lock of the administrator's is no concern of Selkie's.
    gateway.mariadb.sql(f"ALTER USER `{account}`@'%' ACCOUNT LOCK")
    db.command("updateUser", "anna", pwd="third")
    assert rows(gateway, account, "SELECT 1", password="third") == 4151
    gateway.mariadb.sql(f"ALTER USER `{account}`@'%' ACCOUNT UNLOCK")
    assert rows(gateway, account, "SELECT 1", password="third") == ((1,),)
    db.command("dropUser", "anna")
    assert rows(gateway, account, "SELECT 1", password="third") == 1045
    assert not gateway.mariadb.sql("SELECT 1 FROM mysql.global_priv WHERE User = %s", account)


def test_grants_follow_roles(gateway, db):
    account = create(db, roles=[])
    select, insert = f"SELECT id FROM {db.name}.cars", f"DELETE FROM {db.name}.cars WHERE id = 'none'"
    assert rows(gateway, account, select) in DENIED
    db.command("grantRolesToUser", "anna", roles=["readWrite"])
    assert len(rows(gateway, account, select)) == 3 and rows(gateway, account, insert) == ()
    db.command("revokeRolesFromUser", "anna", roles=["readWrite"])
    assert rows(gateway, account, select) in DENIED
    one = {"resource": {"db": db.name, "collection": "cars"}, "actions": ["find"]}
    later = {"resource": {"db": db.name, "collection": "later"}, "actions": ["find"]}
    db.command("createRole", "clerk", privileges=[one, later], roles=[])
    db.command("grantRolesToUser", "anna", roles=["clerk"])
    assert len(rows(gateway, account, select)) == 3
    db.later.insert_one({})
    db.never.insert_one({})
    anna = login(gateway, db)
    assert len(rows(gateway, account, f"SELECT id FROM {db.name}.later")) == len(list(anna.later.find())) == 1
    assert rows(gateway, account, f"SELECT id FROM {db.name}.never") in DENIED
    db.command("dropRole", "clerk")
    assert rows(gateway, account, select) in DENIED


def test_privileges_on_all_databases_include_new_ones(gateway, root, db):
    create(root.admin, f"any{db.name}", roles=["readWriteAnyDatabase"])
    account = f"admin.any{db.name}"
    with gateway.client(username=f"any{db.name}", password="pw", authSource="admin") as client:
        assert client[db.name].cars.count_documents({}) == 3
        new = client[f"{db.name}new"]
        new.cars.insert_one({"_id": 1})
        assert list(new.cars.find()) == [{"_id": 1}]
    assert len(rows(gateway, account, f"SELECT id FROM {new.name}.cars")) == 1
    assert rows(gateway, account, "SELECT 1 FROM mysql.global_priv") in DENIED
    assert rows(gateway, account, "SELECT 1 FROM selkie.accounts") in DENIED
    root.admin.command("revokeRolesFromUser", f"any{db.name}", roles=["readWriteAnyDatabase"])
    for name in (db.name, new.name):
        assert rows(gateway, account, f"SELECT id FROM {name}.cars") in DENIED


# --- the barrier


def test_what_sql_revokes_is_refused(gateway, db):
    account = create(db, roles=["readWrite"])
    anna = login(gateway, db)
    reads = [
        lambda: list(anna.cars.find()),
        lambda: anna.cars.find_one({"_id": 1}),
        lambda: list(anna.cars.find({"_id": {"$gt": 0}}).sort("_id", -1)),
        lambda: list(anna.cars.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}])),
        lambda: anna.cars.count_documents({}),
        lambda: anna.cars.count_documents({"_id": 1}),
        lambda: anna.cars.distinct("tags"),
        lambda: list(anna.cars.aggregate([{"$sample": {"size": 1}}])),
        lambda: list(anna.other.aggregate([{"$unionWith": "cars"}])),
    ]
    writes = [
        (lambda: anna.cars.insert_one({}), "INSERT"),
        (lambda: anna.cars.insert_many([{} for _ in range(5)]), "INSERT"),
        (lambda: anna.cars.update_one({"_id": 1}, {"$set": {"x": time.time()}}), "UPDATE"),
        (lambda: anna.cars.update_many({}, {"$set": {"x": time.time()}}), "UPDATE"),
        (lambda: anna.cars.bulk_write([pymongo.UpdateOne({"_id": number}, {"$set": {"x": time.time()}})
                                       for number in range(3)]), "UPDATE"),
        (lambda: anna.cars.find_one_and_update({"_id": 1}, {"$set": {"x": time.time()}}), "UPDATE"),
        (lambda: anna.cars.delete_one({"_id": 1}), "DELETE"),
        (lambda: anna.cars.delete_many({}), "DELETE"),
    ]
    assert [code(read) for read in reads] == [None] * len(reads)
    gateway.mariadb.sql(f"REVOKE SELECT ON {db.name}.* FROM `{account}`")
    assert [code(read) for read in reads] == [13] * len(reads)
    with pytest.raises(OperationFailure, match="grants of the user's role do not allow SELECT") as raised:
        anna.cars.find_one()
    assert "documents" not in str(raised.value)
    gateway.mariadb.sql(f"GRANT SELECT ON {db.name}.* TO `{account}`")
    assert [code(read) for read in reads] == [None] * len(reads)
    before = db.cars.count_documents({})
    for number, (write, privilege) in enumerate(writes):
        gateway.mariadb.sql(f"REVOKE {privilege} ON {db.name}.* FROM `{account}`")
        try:
            write()
        except PyMongoError as error:
            assert getattr(error, "code", None) in (13, 65), (number, error)
            if error.code == 65:
                assert error.details["writeErrors"][0]["code"] == 13, (number, error)
        else:
            pytest.fail(f"write {number} is allowed")
        gateway.mariadb.sql(f"GRANT {privilege} ON {db.name}.* TO `{account}`")
    assert db.cars.count_documents({}) == before
    assert [code(write) for write, _ in writes] == [None] * len(writes)
    # The gateway's own account still serves other users.
    assert code(lambda: db.cars.find_one()) is None


def test_what_sql_revokes_stays_revoked(gateway, db):
    account = create(db, roles=["read"])
    gateway.mariadb.sql(f"REVOKE SELECT ON {db.name}.* FROM `{account}`")
    db.command("updateUser", "anna", pwd="pw", roles=["read"])
    create(db, "other")
    assert code(login(gateway, db).cars.find_one) == 13
    assert code(login(gateway, db, "other").cars.find_one) is None


def test_a_cursor_is_read_under_the_grants_of_now(gateway, db):
    account = create(db)
    db.many.insert_many([{"_id": number} for number in range(300)])
    cursor = login(gateway, db).many.find(batch_size=10)
    assert next(cursor)["_id"] == 0
    gateway.mariadb.sql(f"REVOKE SELECT ON {db.name}.* FROM `{account}`")
    assert code(lambda: list(cursor)) == 13


def test_indexes_of_all_kinds_serve_users(gateway, db):
    create(db, roles=["readWrite"])
    create(db, "reader")
    collection = db.places
    collection.insert_one({"_id": 0, "t": "a b", "tags": ["x"], "at": [1, 1], "name": "A"})
    collection.create_index("tags")
    collection.create_index("code", unique=True, sparse=True)
    collection.create_index([("t", "text")])
    collection.create_index([("at", "2d")])
    collection.create_index("name", unique=True, collation={"locale": "en", "strength": 2})
    anna = login(gateway, db).places
    anna.insert_many([{"_id": number, "t": f"word{number}", "tags": ["x", f"t{number}"], "at": [number / 2, 1],
                       "name": f"n{number}", "code": [number, -number]} for number in range(1, 200)])
    assert code(lambda: anna.insert_one({"name": "N7"})) == 11000
    anna.update_one({"_id": 5}, {"$push": {"tags": "new"}})
    for one in (anna, login(gateway, db, "reader").places):
        assert [found["_id"] for found in one.find({"tags": "new"})] == [5]
        assert [found["_id"] for found in one.find({"$text": {"$search": "word8"}})] == [8]
        assert [found["_id"] for found in one.find({"at": {"$near": [3, 1]}}).limit(1)] == [6]
        assert one.find_one({"name": "N9"}, collation={"locale": "en", "strength": 2})["_id"] == 9
        assert one.count_documents({"tags": "x"}) == 200


def test_one_collection_may_be_a_view_or_a_time_series(gateway, db):
    db.create_collection("series", timeseries={"timeField": "t"})
    db.series.insert_one({"t": datetime.datetime(2024, 1, 1), "x": 1})
    db.create_collection("few", viewOn="cars", pipeline=[{"$match": {"_id": 1}}])
    privileges = [{"resource": {"db": db.name, "collection": name}, "actions": ["find", "insert"]}
                  for name in ("series", "few", "cars")]
    db.command("createRole", "some", privileges=privileges, roles=[])
    create(db, roles=["some"])
    anna = login(gateway, db)
    anna.series.insert_one({"t": datetime.datetime(2024, 1, 2), "x": 2})
    assert sorted(one["x"] for one in anna.series.find()) == [1, 2]
    assert [one["_id"] for one in anna.few.find()] == [1]
    assert list(anna.cars.aggregate([{"$lookup": {
        "from": "few", "localField": "_id", "foreignField": "_id", "as": "few"}}, {"$count": "n"}])) == [{"n": 3}]


def test_insert_alone_is_enough_to_insert(gateway, db):
    privileges = [{"resource": {"db": db.name, "collection": ""}, "actions": ["insert"]}]
    db.command("createRole", "writer", privileges=privileges, roles=[])
    create(db, roles=["writer"])
    anna = login(gateway, db)
    anna.cars.insert_one({"_id": "one"})
    anna.cars.insert_many([{"_id": f"n{number}", "tags": ["x"]} for number in range(5)])
    anna.new.insert_one({})
    assert code(lambda: anna.cars.insert_one({"_id": "one"})) == 11000
    assert code(anna.cars.find_one) == 13
    assert db.cars.count_documents({}) == 9


def test_a_time_limit_ends_a_statement_of_a_user(gateway, db):
    create(db, roles=["readWrite"])
    anna = login(gateway, db)
    anna.cars.find_one()
    with gateway.mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {db.name}.cars WRITE")
        began = time.monotonic()
        assert code(lambda: list(anna.cars.find({"x": 1}).max_time_ms(300))) == 50
        assert code(lambda: anna.command("update", "cars", maxTimeMS=300, updates=[
            {"q": {"x": 1}, "u": {"$set": {"y": 1}}, "multi": True}])) == 50
        assert time.monotonic() - began < 5

        def waiting():
            cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                           "WHERE USER = 'gateway:documents' AND STATE LIKE 'Waiting%'")
            return cursor.fetchone()[0]

        # The statements do not wait on in MariaDB.
        within(10, lambda: waiting() == 0)
        cursor.execute("UNLOCK TABLES")
    assert anna.cars.count_documents({}) == 3


def test_retryable_writes_and_large_batches(gateway, db):
    create(db, roles=["readWrite"])
    anna = login(gateway, db)
    anna.big.insert_many([{"_id": number, "text": "x" * 200} for number in range(6000)])
    assert anna.big.count_documents({}) == 6000
    lsid = {"id": Binary(random.randbytes(16), 4)}
    command = {"insert": "retry", "documents": [{"_id": 1}], "lsid": lsid, "txnNumber": Int64(1)}
    assert anna.command(command)["n"] == anna.command(command)["n"] == 1
    with pytest.raises(PyMongoError):
        anna.big.aggregate([{"$out": {"db": "elsewhere", "coll": "x"}}])
    anna.big.aggregate([{"$match": {"_id": 1}}, {"$out": "copy"}])
    assert anna.copy.count_documents({}) == 1


def test_users_on_one_pool_see_only_theirs(gateway, db, root):
    other = root[f"{db.name}o"]
    other.cars.insert_many([{"_id": number, "other": True} for number in range(3)])
    create(db)
    create(other)
    # Both may read both by Selkie, but not by MariaDB.
    for one, two in ((db, other), (other, db)):
        one.command("grantRolesToUser", "anna", roles=[{"role": "read", "db": two.name}])
        gateway.mariadb.sql(f"REVOKE SELECT ON {two.name}.* FROM `{one.name}.anna`")
    failures = []

    def alternate(seed: int):
        chosen = random.Random(seed)
        clients = [gateway.client(username="anna", password="pw", authSource=own.name) for own in (db, other)]
        for _ in range(1250):
            own, asked = chosen.randrange(2), chosen.randrange(2)
            name = (db, other)[asked].name
            filter = chosen.choice([{"_id": 1}, {}])
            try:
                found = list(clients[own][name].cars.find(filter))
                right = own == asked and all(("other" in one) == (asked == 1) for one in found) and found
            except OperationFailure as error:
                right = own != asked and error.code == 13
            if not right:
                failures.append((own, asked, filter))

    threads = [threading.Thread(target=alternate, args=(seed,)) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


def test_background_work_has_the_gateways_rights(gateway, db, root):
    db.old.create_index("at", expireAfterSeconds=1)
    db.old.insert_one({"at": datetime.datetime(2020, 1, 1)})
    root.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    within(15, lambda: db.old.count_documents({}) == 0)
    root.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)


# --- names


@pytest.mark.parametrize("user", [
    "o'neill", "back`tick", 'double"quote', "back\\slash", "`; DROP USER root@localhost; --", "' OR '1'='1", "%", "_",
    "a@b", "a`@`%` IDENTIFIED BY 'x'; #", "ünïcode", "漢字", "line\nbreak", " leading", "x" * 100, "NONE", "\\",
])
def test_names_that_are_no_sql(gateway, db, user):
    account = create(db, user)
    assert len(list(login(gateway, db, user).cars.find())) == 3
    assert len(rows(gateway, account, f"SELECT id FROM {db.name}.cars")) == 3
    names = {name for name, in gateway.mariadb.sql("SELECT User FROM mysql.global_priv WHERE Host = '%'")}
    assert names >= {account, "gateway", "gateway:documents"}
    db.command("dropUser", user)
    assert not gateway.mariadb.sql("SELECT 1 FROM mysql.global_priv WHERE User = %s", account)


@pytest.mark.parametrize("user", ["a\0b", "trailing ", "tab\t", "x" * 200, "smile😀"])
def test_names_that_no_account_can_have(gateway, db, user):
    create(db, "ab")
    # MongoDB refuses a NUL itself.
    assert code(lambda: create(db, user)) == (73 if "\0" in user else 2)
    assert [one["user"] for one in db.command("usersInfo")["users"]] == ["ab"]


def test_names_of_roles_and_databases_are_no_sql(gateway, db):
    names = ["r`; DROP TABLE x; -- ", "r' OR 1", "\\", "漢字"]
    for number, name in enumerate(names):
        privileges = [{"resource": {"db": database, "collection": collection}, "actions": ["find", "insert"]}
                      for database in (db.name,) for collection in ("c`d", "c'd\\", "c%", "c😀", "c" * 90)]
        db.command("createRole", name, privileges=privileges, roles=[])
        create(db, f"user{number}", roles=[name])
    anna = login(gateway, db, "user0")
    for collection in ("c`d", "c'd\\", "c%", "c😀", "c" * 90):
        db[collection].insert_one({"_id": 1})
        assert list(anna[collection].find()) == [{"_id": 1}], collection
    assert code(lambda: anna.cars.find_one()) == 13
    # Databases that cannot exist grant nothing, and break nothing.
    for name in ("x`.* TO root; -- ", "mysql", "selkie", "a.b", "", "%"):
        db.client.admin.command("createRole", f"r{next(numbers)}", privileges=[
            {"resource": {"db": name, "collection": "t"}, "actions": ["find"]}], roles=[])
    assert rows(gateway, f"{db.name}.user0", "SELECT 1 FROM mysql.global_priv") in DENIED


def test_an_account_of_others_is_left_alone(gateway, db):
    account = f"{db.name}.anna"
    gateway.mariadb.sql(f"CREATE USER `{account}`@'%' IDENTIFIED BY 'own' ACCOUNT LOCK")
    assert code(lambda: create(db)) == 51003
    assert code(lambda: db.command("dropUser", "anna")) == 11
    assert "LOCK" in gateway.mariadb.sql(f"SHOW CREATE USER `{account}`@'%'")[0][0]
    gateway.mariadb.sql(f"DROP USER `{account}`@'%'")
    gateway.mariadb.sql(f"CREATE ROLE `{account}`")
    assert code(lambda: create(db)) == 51003
    gateway.mariadb.sql(f"DROP ROLE `{account}`")
    create(db)


# --- passwords that are not known


def test_a_digested_password_is_refused(gateway, db):
    assert code(lambda: create(db, digestPassword=False, mechanisms=["SCRAM-SHA-1"])) == 2
    create(db)
    assert code(lambda: db.command("updateUser", "anna", pwd="x", digestPassword=False, mechanisms=["SCRAM-SHA-1"])) == 2


def test_a_restored_user_has_a_role_but_no_account(gateway, db, root):
    account = create(db)
    stored = root.admin["system.users"].find_one({"_id": account})
    db.command("dropUser", "anna")
    root.admin.tempusers.insert_one(stored)
    root.admin.command("_mergeAuthzCollections", tempUsersCollection="admin.tempusers", db="", drop=False)
    root.admin.tempusers.drop()
    assert login(gateway, db).cars.count_documents({}) == 3
    assert rows(gateway, account, "SELECT 1") == 1045
    db.command("updateUser", "anna", pwd="again")
    assert len(rows(gateway, account, f"SELECT id FROM {db.name}.cars", password="again")) == 3


# --- SQL clients


def test_an_account_logs_in_through_selkie(database_server, gateway, db, tmp_path):
    create(db)
    port = free_port()
    through = Gateway(tmp_path, database_server, options=("--sql-listen", f"127.0.0.1:{port}"))
    command, url = through.command(), database_server.tcp_url("gateway", "secret")
    through.command = lambda: [url if one.startswith("mysql://") else one for one in command]
    through.start()
    options = {"host": "127.0.0.1", "port": port, "user": f"{db.name}.anna", "autocommit": True}
    with pymysql.connect(password="pw", **options) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {db.name}.cars")
        assert len(cursor.fetchall()) == 3
        with pytest.raises(pymysql.err.OperationalError, match="1142"):
            cursor.execute("SELECT 1 FROM selkie.accounts")
    with pytest.raises(pymysql.err.OperationalError, match="1045"):
        pymysql.connect(password="wrong", **options)
    assert login(through, db).cars.count_documents({}) == 3
    through.remove()


# --- the start


def test_missing_privileges_are_named_at_the_start(database_server, tmp_path):
    server = database_server
    server.sql("CREATE USER IF NOT EXISTS weak@'%' IDENTIFIED BY 'secret'")
    server.sql("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, TRIGGER ON *.* TO weak@'%'")
    for account, expected in (("weak:secret", "WITH GRANT OPTION"), ("root", "password")):
        gateway = Gateway(tmp_path, server)
        command = [argument.replace("gateway:secret", account) for argument in gateway.command()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode != 0 and expected in done.stderr + done.stdout, done.stderr


def test_transactions_are_those_of_the_user(gateway, db):
    create(db, "writer", ["readWrite"])
    create(db, "reader", ["read"])
    options = {"password": "pw", "authSource": db.name}
    with gateway.client(username="writer", **options) as client, client.start_session() as session:
        cars, log = client[db.name].cars, client[db.name].log

        def change(session):
            cars.update_one({"_id": 1}, {"$set": {"tags": ["c"]}}, session=session)
            log.insert_one({"_id": cars.count_documents({"tags": "c"}, session=session)}, session=session)

        session.with_transaction(change)
        assert cars.find_one({"_id": 1})["tags"] == ["c"] and log.find_one() == {"_id": 1}
    with gateway.client(username="reader", **options) as client, client.start_session() as session:
        session.start_transaction()
        assert client[db.name].cars.count_documents({}, session=session) == 3
        with pytest.raises(OperationFailure) as refused:
            client[db.name].cars.delete_one({"_id": 1}, session=session)
        assert refused.value.code == 13
