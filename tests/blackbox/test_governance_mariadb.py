"""On MariaDB no request blocks others: time limits, killOp and lost clients end statements on the
server, whatever they wait for."""

import random
import socket
import threading
import time

import pymongo
import pymysql
import pytest
from pymongo.errors import NetworkTimeout, OperationFailure, PyMongoError

from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

# How long an operation may take that is to end after half a second.
SOON_S = 3
LIMIT_MS = 500
MAX_TIME_MS_EXPIRED = 50

SETTINGS = """
[store]
mariadb-connections = 8
mariadb-wait-seconds = 3
"""


class Gateway:
    def __init__(self, folder, *options: str, mariadb: MariadbServer | None = None):
        self.owns_mariadb = mariadb is None
        if mariadb is None:
            mariadb = MariadbServer(folder / "m").start()
            mariadb.url = mariadb.tcp_url
            mariadb.sql("CREATE USER joe@'%' IDENTIFIED BY 'secret'")
            mariadb.sql("GRANT SELECT ON *.* TO joe@'%'")
        self.mariadb = mariadb
        self.sql_port = free_port()
        settings = folder / "selkie.toml"
        settings.write_text(SETTINGS)
        self.selkie = SelkieServer(
            folder / "s", mariadb,
            ("--config", str(settings), "--sql-listen", f"127.0.0.1:{self.sql_port}", "--threads", "1", *options),
        ).start()

    def client(self) -> pymongo.MongoClient:
        return self.selkie.client(retryWrites=False, retryReads=False, maxPoolSize=200, socketTimeoutMS=12_000)

    def running(self, text: str) -> int:
        """Returns the number of running or waiting statements of the server that contain a text."""
        sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE %s AND ID <> CONNECTION_ID()"
        return self.mariadb.sql(sql, f"%{text}%")[0][0]

    def wait_for(self, text: str, count: int, seconds: float = 5):
        until = time.monotonic() + seconds
        while (found := self.running(text)) != count:
            assert time.monotonic() < until, f"{found} statements with {text}"
            time.sleep(0.02)

    def remove(self):
        self.selkie.remove()
        if self.owns_mariadb:
            self.mariadb.remove()


@pytest.fixture(scope="module")
def gateway(store, tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("governance"))
    yield gateway
    gateway.remove()


@pytest.fixture
def db(gateway):
    with gateway.client() as client:
        db = client["governance"]
        db.t.insert_many([{"_id": i, "a": i} for i in range(10)])
        db.other.insert_one({"_id": 1})
        yield db
        client.drop_database("governance")


class Locked:
    """A table that a SQL client has locked."""

    def __init__(self, gateway, table: str = "governance.t"):
        self.connection = gateway.mariadb.connect()
        with self.connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {table} WRITE")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def took(work) -> tuple[float, int]:
    began = time.monotonic()
    with pytest.raises(OperationFailure) as refused:
        work()
    return time.monotonic() - began, refused.value.code


COMMANDS = {
    "find": {"find": "t", "filter": {"a": {"$gt": 1}}},
    "find by id": {"find": "t", "filter": {"_id": 3}},
    "count": {"count": "t"},
    "distinct": {"distinct": "t", "key": "a"},
    "aggregate": {"aggregate": "t", "pipeline": [{"$group": {"_id": "$a"}}], "cursor": {}},
    "insert": {"insert": "t", "documents": [{"_id": 100}]},
    "insert many": {"insert": "t", "documents": [{"_id": i, "t": "x" * 300} for i in range(100, 3000)]},
    "update by id": {"update": "t", "updates": [{"q": {"_id": 3}, "u": {"$set": {"b": 1}}}]},
    "update": {"update": "t", "updates": [{"q": {"a": {"$gt": 3}}, "u": {"$inc": {"b": 1}}}]},
    "updates": {"update": "t", "updates": [{"q": {"_id": i}, "u": {"$inc": {"b": 1}}} for i in range(5)]},
    "update many": {"update": "t", "updates": [{"q": {}, "u": {"$inc": {"b": 1}}, "multi": True}]},
    "upsert": {"update": "t", "updates": [{"q": {"_id": 100}, "u": {"$set": {"b": 1}}, "upsert": True}]},
    "delete": {"delete": "t", "deletes": [{"q": {"_id": 3}, "limit": 1}]},
    "delete many": {"delete": "t", "deletes": [{"q": {}, "limit": 0}]},
    "findAndModify": {"findAndModify": "t", "query": {"_id": 3}, "update": {"$set": {"b": 1}}},
    "createIndexes": {"createIndexes": "t", "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
    "collMod": {"collMod": "t", "validator": {"a": 1}},
    "renameCollection": {"renameCollection": "governance.t", "to": "governance.u"},
    "drop": {"drop": "t"},
    "validate": {"validate": "t"},
    "collStats": {"collStats": "t"},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_time_limit_holds_while_a_table_is_locked(gateway, db, name):
    command = dict(COMMANDS[name])
    target = db.client.admin if name == "renameCollection" else db
    before = list(db.t.find().sort("_id"))
    with Locked(gateway):
        try:
            seconds, code = took(lambda: target.command(command, maxTimeMS=LIMIT_MS))
            assert code == 50 and seconds < SOON_S
        except pytest.fail.Exception:
            # Commands that need only the cached definition of the table succeed.
            assert name in ("collStats", "collMod")
        # The statement does not continue.
        gateway.wait_for("governance%`t`", 0)
    time.sleep(0.1)
    assert list(db.t.find().sort("_id")) == before
    assert db.t.count_documents({}) == 10


def test_a_time_limit_holds_while_a_row_is_locked(gateway, db):
    with gateway.mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM governance.t FOR UPDATE")
        for name in ("update by id", "update", "updates", "update many", "delete", "delete many", "findAndModify"):
            seconds, code = took(lambda name=name: db.command(dict(COMMANDS[name]), maxTimeMS=LIMIT_MS))
            assert code == 50 and seconds < SOON_S, name
        gateway.wait_for("governance%`t`", 0)
    assert [document.get("b") for document in db.t.find()] == [None] * 10


def test_a_time_limit_holds_while_the_server_does_not_answer(gateway, db):
    db.t.find_one({"_id": 1})
    gateway.mariadb.suspend()
    try:
        for name in ("find", "find by id", "count", "aggregate", "insert", "update by id", "update many", "drop"):
            seconds, code = took(lambda name=name: db.command(dict(COMMANDS[name]), maxTimeMS=LIMIT_MS))
            assert code == 50 and seconds < SOON_S, name
        assert db.client.admin.command("ping")["ok"] == 1
    finally:
        gateway.mariadb.resume()
    # Statements that have reached the server may have been executed.
    db.other.insert_one({"_id": 2})
    assert db.other.count_documents({}) == 2


def test_a_locked_table_does_not_occupy_all_connections(gateway, db):
    outcomes = []

    def insert(number: int):
        try:
            db.t.insert_one({"_id": 1000 + number})
            outcomes.append(0)
        except OperationFailure as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(40)]
    with Locked(gateway):
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        for number in range(20):
            began = time.monotonic()
            db.other.insert_one({"_id": 100 + number})
            assert db.other.find_one({"_id": 100 + number}) and db.other.count_documents({"_id": {"$gt": 100}}) == number
            assert db.other2.find_one({"a": 1}) is None
            assert time.monotonic() - began < SOON_S
        # Requests without a connection fail at the end.
        deadline = time.monotonic() + 20
        while 202 not in outcomes:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert 0 not in outcomes
    for thread in threads:
        thread.join(20)
    assert set(outcomes) == {0, 202}
    assert db.t.count_documents({"_id": {"$gte": 1000}}) == outcomes.count(0)


@pytest.mark.parametrize("name", ["find", "insert", "update many", "delete many", "drop", "createIndexes"])
def test_killed_statements_end_on_the_server(gateway, db, name):
    outcome = []
    command = COMMANDS[name] | {"comment": "to be killed"}
    thread = threading.Thread(target=lambda: outcome.append(took(lambda: db.command(command))))
    with Locked(gateway):
        thread.start()
        found = []
        while not found:
            found = db.client.admin.command({"currentOp": 1, "command.comment": "to be killed"})["inprog"]
        time.sleep(0.2)
        began = time.monotonic()
        db.client.admin.command({"killOp": 1, "op": found[0]["opid"]})
        thread.join(20)
        assert outcome and outcome[0][1] == 11601 and time.monotonic() - began < SOON_S
        gateway.wait_for("governance%`t`", 0)
    assert db.t.count_documents({}) == 10


def test_an_interrupted_update_of_many_keeps_the_completed_part(gateway, db):
    db.many.insert_many([{"_id": i, "t": "x" * 100} for i in range(20_000)])
    limit = 100
    while True:
        try:
            db.command({"update": "many", "updates": [{"q": {}, "u": {"$set": {"done": 1}}, "multi": True}]}, maxTimeMS=limit)
            pytest.skip("this machine is too fast")
        except OperationFailure as error:
            assert error.code == 50
        done = db.many.count_documents({"done": 1})
        if 0 < done:
            break
        limit *= 2
    assert done < 20_000
    time.sleep(0.5)
    assert db.many.count_documents({"done": 1}) == done
    assert took(lambda: db.command({"delete": "many", "deletes": [{"q": {"t": {"$gt": "a"}}, "limit": 0}]}, maxTimeMS=1))[1] == 50


@pytest.mark.parametrize("name", ["find", "count", "aggregate"])
def test_a_client_that_leaves_has_its_read_killed(gateway, db, name):
    with Locked(gateway):
        client = gateway.selkie.client(retryWrites=False, retryReads=False, socketTimeoutMS=500)
        # The driver closes the connection.
        with pytest.raises(NetworkTimeout):
            client.governance.command(dict(COMMANDS[name]))
        gateway.wait_for("governance%`t`", 0)
        client.close()


def test_a_sql_client_that_leaves_has_its_statement_killed(gateway):
    connection = pymysql.connect(host="127.0.0.1", port=gateway.sql_port, user="joe", password="secret")
    thread = threading.Thread(target=lambda: pytest.raises(Exception, connection.query, "SELECT SLEEP(61)"))
    thread.start()
    gateway.wait_for("SLEEP(61)", 1)
    connection._sock.shutdown(socket.SHUT_RDWR)
    gateway.wait_for("SLEEP(61)", 0)
    thread.join(10)


def test_incomplete_logins_do_not_block_the_server(gateway, db):
    before = int(gateway.mariadb.sql("SHOW STATUS LIKE 'Threads_connected'")[0][1])
    sockets = [socket.create_connection(("127.0.0.1", gateway.sql_port)) for _ in range(140)]
    try:
        time.sleep(1)
        connected = int(gateway.mariadb.sql("SHOW STATUS LIKE 'Threads_connected'")[0][1])
        assert connected - before < 40
        assert db.t.count_documents({}) == 10
    finally:
        for each in sockets:
            each.close()
    time.sleep(0.5)
    connection = pymysql.connect(host="127.0.0.1", port=gateway.sql_port, user="joe", password="secret")
    connection.close()


def test_writes_of_a_killed_gateway_do_not_appear_later(gateway, tmp_path):
    own = Gateway(tmp_path, mariadb=gateway.mariadb)
    try:
        with own.client() as client:
            client.later.t.insert_one({"_id": 0})

        def insert():
            with own.client() as client, pytest.raises(PyMongoError):
                client.later.t.insert_many([{"_id": i, "t": "x" * 300} for i in range(1, 3000)])

        threads = [threading.Thread(target=insert)]
        with Locked(gateway, "later.t"):
            threads[0].start()
            gateway.wait_for("later%`t`", 1)
            own.selkie.kill()
            threads[0].join(20)
            own.selkie.start()
            gateway.wait_for("later%`t`", 0, 1)
        with own.client() as client:
            assert client.later.t.count_documents({}) == 1
            client.drop_database("later")
    finally:
        own.remove()


def test_a_gateway_of_the_same_name_leaves_the_first_one_alone(gateway, db, tmp_path):
    found = []
    first = Gateway(tmp_path / "1", "--gateway-name", "twin", mariadb=gateway.mariadb) if (tmp_path / "1").mkdir() is None else None
    second = None
    try:
        with first.client() as client, Locked(gateway):
            thread = threading.Thread(target=lambda: found.extend(client.governance.t.find({"a": {"$gt": 1}})))
            thread.start()
            gateway.wait_for("governance%`t`", 1)
            (tmp_path / "2").mkdir()
            second = Gateway(tmp_path / "2", "--gateway-name", "twin", mariadb=gateway.mariadb)
            gateway.wait_for("governance%`t`", 1, 1)
            assert "another gateway of this name" in second.selkie.log.read_text()
        thread.join(20)
        assert len(found) == 8
    finally:
        for each in (first, second):
            if each:
                each.remove()


def test_killing_a_request_affects_no_other(gateway, db):
    """The server kills a statement some time after the request; by then its session may run another
    statement."""
    db.counts.insert_many([{"_id": i, "n": 0} for i in range(8)])
    end = time.monotonic() + 6
    acknowledged, unknown, wrong = [0] * 8, [0] * 8, []

    def counts(number: int):
        while time.monotonic() < end:
            update = [{"q": {"_id": number}, "u": {"$inc": {"n": 1}}}]
            try:
                db.command("update", "counts", updates=update, maxTimeMS=1 + acknowledged[number] % 3)
                acknowledged[number] += 1
            except OperationFailure as error:
                unknown[number] += 1
                if error.code != MAX_TIME_MS_EXPIRED:
                    wrong.append(error)

    def reads(number: int):
        while time.monotonic() < end:
            try:
                found = [each["_id"] for each in db.t.find({"_id": {"$in": [number, number + 1]}})]
                assert sorted(found) == [number, number + 1]
                db.other.update_one({"_id": 1}, {"$inc": {f"n{number}": 1}})
            except (AssertionError, OperationFailure) as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8) for work in (counts, reads)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong, wrong[:3]
    for each in db.counts.find():
        least = acknowledged[each["_id"]]
        assert least <= each["n"] <= least + unknown[each["_id"]]


def test_no_session_of_a_server_that_was_restarted_is_killed(store, tmp_path):
    """It reuses the session numbers of its predecessor."""
    log = tmp_path / "statements.log"
    mariadb = MariadbServer(tmp_path / "m", ("--general-log=1", f"--general-log-file={log}")).start()
    mariadb.url = mariadb.tcp_url
    gateway = Gateway(tmp_path, mariadb=mariadb)
    try:
        with gateway.client() as client:
            time.sleep(1)
            table = client["governance"].t
            table.insert_one({"_id": 1, "a": 1})
            with Locked(gateway):
                readers = [threading.Thread(target=lambda: took(lambda: list(table.find({"a": 1})))) for _ in range(3)]
                [thread.start() for thread in readers]
                gateway.wait_for("`t`", 3)
                mariadb.kill()
                log.unlink()
                [thread.join() for thread in readers]
                mariadb.start()
                time.sleep(1.5)
        assert "KILL" not in log.read_text(errors="replace")
    finally:
        gateway.remove()
        mariadb.remove()


def test_killed_definitions_leave_a_readable_database(store, tmp_path):
    """MariaDB writes the files of a trigger one after the other, and cannot read them if it is
    killed in between."""
    mariadb = MariadbServer(tmp_path / "m").start()
    selkie = SelkieServer(tmp_path / "s", mariadb, ("--threads", "2")).start()

    def define(number: int):
        chance, end = random.Random(number), time.monotonic() + 8
        with selkie.client(retryWrites=False, maxPoolSize=200) as client:
            db = client["given_up"]
            while time.monotonic() < end:
                name, other = f"x{chance.randrange(4)}", f"x{chance.randrange(4)}"
                commands = [
                    {"createIndexes": name, "indexes": [{"key": {"a": 1}, "name": "a"}, {"key": {"b": 1, "c": 1}, "name": "b"}]},
                    {"drop": name},
                    {"dropIndexes": name, "index": "*"},
                    {"renameCollection": f"given_up.{name}", "to": f"given_up.{other}", "dropTarget": True},
                    {"insert": name, "documents": [{"a": [1, 2], "b": i} for i in range(30)]},
                ]
                command = chance.choice(commands)
                target = client.admin if "renameCollection" in command else db
                try:
                    target.command({**command, "maxTimeMS": chance.choice([1, 2, 4, 8, 15, 30, 60, 100])})
                except OperationFailure:
                    pass

    try:
        threads = [threading.Thread(target=define, args=(i,)) for i in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        with selkie.client(retryWrites=False, maxPoolSize=200) as client:
            db = client["given_up"]
            for name in db.list_collection_names():
                db[name].create_index("a", name="a")
                assert db[name].count_documents({"a": {"$gte": 1}}) == db[name].count_documents({})
                db[name].drop()
            client.drop_database("given_up")
            assert db.list_collection_names() == []
        assert mariadb.sql("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'given_up'") == ((0,),)
    finally:
        selkie.remove()
        mariadb.remove()
