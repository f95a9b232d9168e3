"""MariaDB's tables, read and written by plain SQL beside Selkie."""

import hashlib
import json
import threading
import time

import pymysql
import pytest
from bson import Decimal128, Int64, ObjectId
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError

from support.mariadb import MariadbServer

pytestmark = pytest.mark.mariadb_only


def test_documents_are_json_that_sql_can_use(db, sql):
    db.cars.insert_many(
        [{"_id": n, "Make": make, "price": n * 1000, "extra": {"doors": 4}, "tags": ["a", "b"]}
         for n, make in enumerate(["Toyota", "Volvo", "Toyota"])]
    )
    rows = sql("SELECT id, JSON_VALUE(doc, '$.Make') FROM cars ORDER BY JSON_VALUE(doc, '$._id')")
    assert rows == (("0", "Toyota"), ("1", "Volvo"), ("2", "Toyota"))
    assert sql("SELECT COUNT(*) FROM cars WHERE JSON_VALUE(doc, '$.price') >= 1000") == ((2,),)
    assert sql("SELECT JSON_VALUE(doc, '$.extra.doors') FROM cars WHERE id = '1'") == (("4",),)
    assert sql("SELECT MIN(JSON_VALID(doc)) FROM cars") == ((1,),)


def test_spelling_of_values(db, sql):
    identifier = ObjectId("507f1f77bcf86cd799439011")
    db.c.insert_one({"_id": identifier, "int": 5, "long": Int64(5), "large": Int64(2**40), "double": 5.0, "text": "ä\"x",
                     "yes": True, "none": None, "decimal": Decimal128("1.10")})
    [(doc,)] = sql("SELECT doc FROM c")
    assert json.loads(doc)["_id"] == {"$oid": str(identifier)}
    compact = doc.replace(" ", "")
    for part in ('"int":5,', '"long":5e0', '"large":1099511627776', '"double":5.0', '"yes":true', '"none":null'):
        assert part in compact, doc


def test_rows_written_by_sql_show_up_at_once(db, sql):
    db.cars.insert_one({"_id": 1, "Make": "Volvo"})
    sql("INSERT INTO cars (doc) VALUES (%s)", '{"_id": 2, "Make": "Audi", "nested": {"x": [1, 2.5, "drei"]}}')
    assert db.cars.find_one({"_id": 2}) == {"_id": 2, "Make": "Audi", "nested": {"x": [1, 2.5, "drei"]}}
    sql("UPDATE cars SET doc = JSON_SET(doc, '$.Make', 'Saab') WHERE id = '1'")
    assert db.cars.find_one({"Make": "Saab"})["_id"] == 1
    sql("DELETE FROM cars WHERE id = '2'")
    assert db.cars.count_documents({}) == 1
    sql("INSERT INTO cars (doc) VALUES (%s)", json.dumps({"_id": {"$oid": "507f1f77bcf86cd799439011"}, "Make": "BMW"}))
    assert db.cars.find_one({"_id": ObjectId("507f1f77bcf86cd799439011")})["Make"] == "BMW"


def test_sql_rows_and_documents_share_ids_and_indexes(db, sql):
    db.users.create_index("email", unique=True)
    sql("INSERT INTO users (doc) VALUES (%s)", '{"_id": 1, "email": "a@b"}')
    with pytest.raises(DuplicateKeyError):
        db.users.insert_one({"_id": 1.0})
    with pytest.raises(DuplicateKeyError):
        db.users.insert_one({"_id": 2, "email": "a@b"})
    with pytest.raises(pymysql.err.IntegrityError):
        sql("INSERT INTO users (doc) VALUES (%s)", '{"_id": 3, "email": "a@b"}')
    with pytest.raises(pymysql.err.MySQLError):
        sql("INSERT INTO users (doc) VALUES (%s)", '{"email": "no id"}')
    assert db.users.find_one({"email": "a@b"})["_id"] == 1


MAXSCALE_TABLE = (
    "CREATE TABLE {} (id VARCHAR(35) AS (JSON_COMPACT(JSON_EXTRACT(doc, '$._id'))) UNIQUE KEY, doc JSON, "
    "CONSTRAINT id_not_null CHECK(id IS NOT NULL))"
)


def test_tables_of_two_columns_are_served_as_they_are(db, sql):
    db.other.insert_one({})
    sql(MAXSCALE_TABLE.format("old"))
    for document in (
        '{ "_id" : { "$oid" : "507f1f77bcf86cd799439011" }, "name" : "Ada", "n" : 1 }',
        '{ "_id" : 4711, "name" : "Grace" }',
        '{ "_id" : "text", "name" : "Edsger", "list" : [ 1, 2, { "x" : true } ] }',
    ):
        sql("INSERT INTO old (doc) VALUES (%s)", document)
    assert db.old.count_documents({}) == 3
    assert db.old.find_one({"_id": ObjectId("507f1f77bcf86cd799439011")})["name"] == "Ada"
    assert db.old.find_one({"_id": 4711}) == {"_id": 4711, "name": "Grace"}
    assert db.old.find_one({"list.x": True})["_id"] == "text"
    assert sorted(d["name"] for d in db.old.find(batch_size=1)) == ["Ada", "Edsger", "Grace"]
    db.old.insert_one({"_id": 5, "name": "Barbara"})
    assert db.old.update_one({"_id": 4711}, {"$set": {"name": "Hopper"}}).modified_count == 1
    assert db.old.delete_one({"_id": "text"}).deleted_count == 1
    with pytest.raises(DuplicateKeyError):
        db.old.insert_one({"_id": 4711})
    rows = sql("SELECT JSON_VALUE(doc, '$.name') FROM old ORDER BY 1")
    assert [name for (name,) in rows] == ["Ada", "Barbara", "Hopper"]
    assert sorted(d["_id"] for d in db.old.find({"name": {"$in": ["Barbara", "Hopper"]}})) == [5, 4711]


def test_foreign_tables_are_ignored(db, sql):
    db.c.insert_one({})
    sql("CREATE TABLE invoices (number INT PRIMARY KEY, total DECIMAL(10,2))")
    sql("INSERT INTO invoices VALUES (1, 9.90)")
    assert "invoices" not in db.list_collection_names()
    with pytest.raises(PyMongoError):
        db.invoices.insert_one({"x": 1})
    assert sql("SELECT COUNT(*) FROM invoices") == ((1,),)


def test_a_table_altered_by_sql_is_reloaded(db, sql):
    """Within five seconds, also if its definition was cached and unchanged before."""
    db.c.insert_many([{"_id": n, "a": n} for n in range(20)])
    db.c.create_index("a")

    def stage():
        plan = db.c.find({"a": 5}).explain()["queryPlanner"]["winningPlan"]
        return plan.get("inputStage", plan)["stage"]

    assert stage() == "IXSCAN"
    time.sleep(5.5)
    db.c.insert_one({"_id": 20})
    assert stage() == "IXSCAN"
    keys = sql("SELECT DISTINCT index_name FROM information_schema.STATISTICS "
               "WHERE table_schema = DATABASE() AND table_name = 'c' AND index_name LIKE '%~%'")
    columns = sql("SELECT column_name FROM information_schema.COLUMNS "
                  "WHERE table_schema = DATABASE() AND table_name = 'c' AND column_name LIKE '%~%'")
    drops = [f"DROP KEY `{name}`" for (name,) in keys] + [f"DROP COLUMN `{name}`" for (name,) in columns]
    sql(f"ALTER TABLE c {', '.join(drops)}")
    time.sleep(5.5)
    assert stage() == "COLLSCAN"
    assert db.c.find_one({"a": 5})["_id"] == 5


def test_names_are_quoted(db):
    for name in ("with space", "with`tick", "with.dot", "with'quote", "with;semi", "select", "ÄÖÜ", "a" * 60):
        db[name].insert_one({"_id": name})
        assert db[name].find_one() == {"_id": name}
        assert name in db.list_collection_names()
        db[name].drop()


def test_values_are_no_sql(db):
    for text in ("'; DROP TABLE c; --", "\\", "\\'", "\"", "%s", "?", "\0", "\x1a", "' OR ''='"):
        db.c.insert_one({"_id": text, text.replace("\0", "") or "x": text})
        assert db.c.find_one({"_id": text})["_id"] == text
        assert db.c.count_documents({"_id": text}) == 1
        assert db.c.update_one({"_id": text}, {"$set": {"v": text}}).matched_count == 1
        assert db.c.find_one({"v": text})["_id"] == text


def test_a_table_that_cannot_be_opened_does_not_count_as_missing(own_server, database_name, tmp_path):
    """`information_schema` returns no columns of it, and no error. A reply of no deleted documents
    would mean a missing collection."""
    mariadb = MariadbServer(tmp_path / "private").start()
    try:
        with own_server(mariadb=mariadb).client() as client:
            client[database_name].c.insert_one({"_id": 1})
        definition = mariadb.data / database_name / "c.frm"
        whole = definition.read_bytes()
        definition.write_bytes(whole[:100])
        mariadb.sql("FLUSH TABLES")
        assert mariadb.sql("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s", database_name) == ((0,),)
        with own_server(mariadb=mariadb, folder=tmp_path / "second").client() as client:
            collection = client[database_name].c
            for ask in (lambda: collection.delete_one({"_id": 1}), lambda: collection.find_one({"_id": 1}),
                        lambda: collection.insert_one({"_id": 2})):
                with pytest.raises(OperationFailure, match="Incorrect information in file|columns of"):
                    ask()
            assert client[database_name].other.find_one() is None
            definition.write_bytes(whole)
            mariadb.sql("FLUSH TABLES")
            assert collection.delete_one({"_id": 1}).deleted_count == 1
    finally:
        mariadb.remove()


def test_mariadb_is_restarted_under_load(own_server, database_name, tmp_path):
    """Clients with retryable writes, as drivers have them, get through a restart of MariaDB."""
    mariadb = MariadbServer(tmp_path / "private").start()
    server = own_server(mariadb=mariadb)
    stop = threading.Event()
    acknowledged: list[str] = []
    refused: list[PyMongoError] = []

    def write(number: int):
        with server.client() as client:
            n = 0
            while not stop.is_set():
                n += 1
                try:
                    client[database_name].c.insert_one({"_id": f"{number}-{n}"})
                    acknowledged.append(f"{number}-{n}")
                except PyMongoError as error:
                    refused.append(error)
                    time.sleep(0.05)

    try:
        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        time.sleep(1)
        mariadb.stop()
        time.sleep(0.5)
        before = len(acknowledged)
        mariadb.start()
        end = time.monotonic() + 20
        while len(acknowledged) < before + 50 and time.monotonic() < end:
            time.sleep(0.1)
        stop.set()
        for writer in writers:
            writer.join(30)
        assert len(acknowledged) >= before + 50, f"does not recover: {refused[-1:]}"
        with server.client() as client:
            present = {d["_id"] for d in client[database_name].c.find()}
        assert not set(acknowledged) - present
        assert server.is_running()
    finally:
        stop.set()
        server.kill()
        mariadb.remove()


def test_indexes_are_not_made_without_their_lock(db, sql, server):
    """A change of a table's indexes waits for the lock of other clients, and ends if the wait is
    interrupted."""
    db.c.insert_one({"_id": 1, "a": 1})
    hashes = b"".join(hashlib.sha256(part.encode()).digest() for part in (db.name, "c"))
    name = "selkie collection " + hashlib.sha256(hashes).hexdigest()[:32]
    failed = []

    def attempt(change):
        with pytest.raises(OperationFailure) as failure:
            change()
        failed.append(failure.value.code)

    with server.mariadb.connect() as holder, holder.cursor() as cursor:
        for change in (lambda: db.c.create_index("a"), lambda: db.c.drop_index("b_1")):
            db.c.create_index("b")
            cursor.execute("SELECT GET_LOCK(%s, 10)", [name])
            assert cursor.fetchone() == (1,)
            waiting = threading.Thread(target=attempt, args=[change])
            waiting.start()
            end = time.monotonic() + 60
            while not (found := sql("SELECT id FROM information_schema.processlist WHERE state = 'User lock'")):
                assert waiting.is_alive() and time.monotonic() < end
                time.sleep(0.05)
            [(connection,)] = found
            sql(f"KILL QUERY {connection}")
            waiting.join()
            cursor.execute("SELECT RELEASE_LOCK(%s)", [name])
            assert set(db.c.index_information()) == {"_id_", "b_1"}
    assert failed == [11601, 11601]
    db.c.create_index("a")
    assert set(db.c.index_information()) == {"_id_", "a_1", "b_1"}


def test_databases_are_listed_by_a_few_statements(own_server, tmp_path):
    """Any number of them. Schemas whose tables were all created by SQL clients are checked one by
    one."""
    mariadb = MariadbServer(tmp_path / "m").start()

    def selects() -> int:
        return int(dict(mariadb.sql("SHOW GLOBAL STATUS LIKE 'Com_select'"))["Com_select"])

    try:
        with own_server("--threads", "1", mariadb=mariadb).client() as client:
            for number in range(20):
                client[f"by-client {number}".replace(" ", "_")].c.insert_one({"text": "x" * 1000})
            client["by-client_1"].c.create_index([("text", "text")])
            mariadb.sql("CREATE DATABASE by_sql")
            mariadb.sql("CREATE TABLE by_sql.c (id VARCHAR(255) AS (JSON_COMPACT(JSON_EXTRACT(doc, '$._id'))) UNIQUE, doc JSON)")
            for schema in ("other", "empty"):
                mariadb.sql(f"CREATE DATABASE {schema}")
            mariadb.sql("CREATE TABLE other.t (id INT PRIMARY KEY)")
            client.admin.command("listDatabases")
            before = selects()
            listed = client.admin.command("listDatabases")["databases"]
            assert selects() - before <= 4
            names = {database["name"] for database in listed}
            assert names == {f"by-client_{number}" for number in range(20)} | {"by_sql", "admin", "config", "local"}
            assert all(database["sizeOnDisk"] > 0 and not database["empty"] for database in listed)
            mariadb.sql("DROP TABLE `by-client_2`.c")
            assert "by-client_2" not in client.list_database_names()
    finally:
        mariadb.remove()


def test_an_index_build_that_finds_parallel_arrays_is_undone(db, sql):
    """Columns identify them, so they are found once the columns exist."""
    db.c.insert_many([{"a": 1, "b": [1], "t": [2]}, {"a": [1], "b": 2}, {"a": [1], "b": [2], "x": 1}])
    db.c.create_index("t")

    def columns() -> set[str]:
        return {name for (name, *_) in sql("SHOW COLUMNS FROM c")}

    before = columns()
    with pytest.raises(OperationFailure, match=r"cannot index parallel arrays \[b\] \[a\]") as failure:
        db.command("createIndexes", "c", indexes=[{"key": {"a": 1}, "name": "a"}, {"key": {"a": 1, "b": 1}, "name": "ab"}])
    assert failure.value.code == 171
    assert set(db.c.index_information()) == {"_id_", "t_1"} and columns() == before
    assert db.c.create_index([("a", 1), ("b", 1)], partialFilterExpression={"x": {"$gt": 1}})
    assert db.c.count_documents({"a": 1, "b": 2}) == 2


@pytest.mark.parametrize("options", [{}, {"unique": True}, {"partialFilterExpression": {"b": {"$gt": 1}}}])
def test_an_index_whose_record_was_lost_is_recovered(db, sql, options):
    db.c.insert_many([{"_id": i, "a": i, "b": i} for i in range(5)])
    db.c.create_index([("b", 1), ("a", 1)], **options)
    sql("DELETE FROM selkie.indexes WHERE schema_name = %s", db.name)
    assert db.c.create_index([("b", 1), ("a", 1)], **options) == "b_1_a_1"
    assert set(db.c.index_information()) == {"_id_", "b_1_a_1"}
    assert [each["_id"] for each in db.c.find({"b": {"$gte": 3}}).hint("b_1_a_1")] == [3, 4]
    db.c.drop_index("b_1_a_1")
    db.c.create_index([("b", 1), ("a", 1)])


@pytest.mark.selkie_only
def test_a_schema_that_mariadb_cannot_remove_counts_as_dropped(own_server, mariadb, database_name):
    """DROP SCHEMA fails while the directory has a file that MariaDB does not know."""
    server = own_server()
    with server.client() as client:
        db = client[database_name]
        db.c.insert_one({"_id": 1})
        (mariadb.data / database_name / "notes.txt").write_text("mine")
        began = time.monotonic()
        client.drop_database(database_name)
        assert time.monotonic() - began < 2
        assert database_name not in client.list_database_names()
        assert database_name in server.end_of_log() and "DROP SCHEMA" in server.end_of_log()
        character_set = "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
        assert mariadb.sql(character_set, database_name) == (("utf8mb4_nopad_bin",),)
        # Dropping it again, and using it again, works.
        client.drop_database(database_name)
        db.c.create_index("a", unique=True)
        db.c.insert_one({"_id": 2, "a": [1, 2]})
        assert list(db.c.find({"a": 1})) == [{"_id": 2, "a": [1, 2]}]
        (mariadb.data / database_name / "notes.txt").unlink()
        client.drop_database(database_name)
        assert mariadb.sql(character_set, database_name) == ()
