"""External writes to MariaDB invalidate the cache too."""

import time

import pymongo
import pytest

from blackbox.test_operations import refuses
from support.mariadb import MariadbServer

pytestmark = pytest.mark.selkie_only

LOGGING = ("--log-bin=log", "--binlog-format=ROW", "--server-id=1")
STRICT = (*LOGGING, "--rpl-semi-sync-master-enabled=ON", "--rpl-semi-sync-master-wait-point=AFTER_COMMIT")


@pytest.fixture(autouse=True)
def on_mariadb(store):
    if store != "mariadb":
        pytest.skip("the embedded store has no other writers")


@pytest.fixture
def mariadb_with(tmp_path):
    started = []

    def start(*options: str) -> MariadbServer:
        started.append(MariadbServer(tmp_path / f"m{len(started)}", options))
        return started[-1].start()

    yield start
    for server in started:
        server.remove()


def cache(client) -> dict:
    return client.admin.command("serverStatus")["cache"]


def until(condition, seconds: float = 10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_kept(collection) -> bool:
    """Runs a query twice and returns whether the second reply came from the cache."""
    collection.find_one({"_id": 1})
    before = cache(collection.database.client)["hits"]
    collection.find_one({"_id": 1})
    return cache(collection.database.client)["hits"] > before


@pytest.mark.parametrize("mode", ["documents", "results", "both"])
def test_writes_by_sql_are_seen(own_server, mariadb_with, mode):
    mariadb = mariadb_with(*LOGGING)
    server = own_server("--cache", mode, mariadb=mariadb)
    with server.client() as client:
        c = client.seen.c
        c.insert_many([{"_id": n, "v": 0, "g": n % 3} for n in range(10)])
        for version in range(1, 20):
            assert c.find_one({"_id": 5})["v"] == version - 1
            assert c.count_documents({"v": version}) == 0
            mariadb.sql("UPDATE seen.c SET doc = JSON_SET(doc, '$.v', %s) WHERE id = '5'", version)
            until(lambda: c.find_one({"_id": 5})["v"] == version)
            until(lambda: c.count_documents({"v": version}) == 1)
        mariadb.sql("DELETE FROM seen.c WHERE id = '5'")
        until(lambda: c.find_one({"_id": 5}) is None)
        mariadb.sql("INSERT INTO seen.c(doc) VALUES('{\"_id\": 5, \"v\": 7}')")
        until(lambda: c.find_one({"_id": 5}) == {"_id": 5, "v": 7})
        mariadb.sql("TRUNCATE seen.c")
        until(lambda: c.count_documents({}) == 0)
        mariadb.sql("DROP DATABASE seen")
        until(lambda: c.find_one({}) is None)


def test_with_strict_following_it_is_seen_at_once(own_server, mariadb_with):
    mariadb = mariadb_with(*STRICT)
    server = own_server("--cache", "documents", "--external-writes", "strict", mariadb=mariadb)
    with server.client() as client, mariadb.connect() as connection, connection.cursor() as sql:
        c = client.strict.c
        c.insert_one({"_id": 1, "v": 0})
        until(lambda: is_kept(c))
        for version in range(1, 200):
            sql.execute("UPDATE `strict`.c SET doc = JSON_SET(doc, '$.v', %s)", (version,))
            assert c.find_one({"_id": 1})["v"] == version
            assert c.find_one({"_id": 1})["v"] == version


def test_own_writes_do_not_count_twice(own_server, mariadb_with):
    """Replies that contain the writes are cached before the log reports them."""
    mariadb = mariadb_with(*LOGGING)
    server = own_server("--cache", "documents", mariadb=mariadb)
    with server.client() as client:
        c = client.own.c
        c.insert_many([{"_id": n, "v": 0} for n in range(10)])
        until(lambda: is_kept(c))
        before = cache(client)
        for n in range(50):
            c.update_one({"_id": 1}, {"$inc": {"v": 1}})
            assert c.find_one({"_id": 1})["v"] == n + 1
            time.sleep(0.02)
            assert c.find_one({"_id": 1})["v"] == n + 1
        # Now and then the log is quicker than the acknowledgement.
        assert cache(client)["hits"] - before["hits"] > 40


def test_changes_by_triggers_are_seen(own_server, mariadb_with):
    mariadb = mariadb_with(*LOGGING)
    server = own_server("--cache", "both", mariadb=mariadb)
    with server.client() as client:
        c, log = client.made.c, client.made.log
        c.insert_one({"_id": 1, "v": 0})
        log.insert_one({"_id": 0})
        mariadb.sql("CREATE TRIGGER made.t BEFORE UPDATE ON made.c FOR EACH ROW SET NEW.doc = JSON_SET(NEW.doc, '$.seen', NEW.id)")
        mariadb.sql("CREATE TRIGGER made.u AFTER UPDATE ON made.c FOR EACH ROW INSERT INTO made.log(doc) VALUES('{\"_id\":1}')")
        until(lambda: is_kept(c))
        assert c.count_documents({"seen": {"$exists": True}}) == 0 and log.count_documents({}) == 1
        c.update_one({"_id": 1}, {"$set": {"v": 1}})
        until(lambda: c.count_documents({"seen": {"$exists": True}}) == 1)
        until(lambda: log.count_documents({}) == 2)


def test_nothing_is_cached_while_the_log_is_unavailable(own_server, mariadb_with):
    mariadb = mariadb_with(*LOGGING)
    server = own_server("--cache", "both", mariadb=mariadb)
    with server.client(retryWrites=False) as client:
        c = client.cut.c
        c.insert_one({"_id": 1, "v": 0})
        until(lambda: is_kept(c))
        mariadb.kill()
        mariadb.start()
        mariadb.sql("UPDATE cut.c SET doc = JSON_SET(doc, '$.v', 1)")
        assert c.find_one({"_id": 1})["v"] == 1
        until(lambda: is_kept(c), 30)
        mariadb.sql("UPDATE cut.c SET doc = JSON_SET(doc, '$.v', 2)")
        until(lambda: c.find_one({"_id": 1})["v"] == 2)


def test_stale_replies_are_served_for_a_while_if_configured(own_server, mariadb_with):
    mariadb = mariadb_with(*LOGGING)
    server = own_server("--cache", "documents", "--stale-ms", "6000", mariadb=mariadb)
    with server.client(retryWrites=False) as client:
        c = client.cut.c
        c.insert_many([{"_id": 1, "v": 0}, {"_id": 2, "v": 0}])
        until(lambda: is_kept(c))
        mariadb.kill()
        time.sleep(1)
        assert c.find_one({"_id": 1})["v"] == 0
        with pytest.raises(pymongo.errors.PyMongoError):
            c.find_one({"_id": 2})
        time.sleep(6.5)
        with pytest.raises(pymongo.errors.PyMongoError):
            c.find_one({"_id": 1})
        mariadb.start()
        mariadb.sql("UPDATE cut.c SET doc = JSON_SET(doc, '$.v', 1)")
        until(lambda: is_kept(c), 30)
        assert c.find_one({"_id": 1})["v"] == 1


def test_it_reports_the_missing_configuration(mariadb_with):
    mariadb = mariadb_with()
    serve = ("serve", "--listen", "127.0.0.1:0", "--mariadb", mariadb.url(), "--cache", "documents")
    refuses(*serve, says=("log_bin", "binlog_format=ROW", "--external-writes none"))
    mariadb.sql("CREATE USER poor@localhost IDENTIFIED BY 'x'")
    logging = mariadb_with(*LOGGING)
    logging.sql("CREATE USER poor@localhost IDENTIFIED BY 'x'")
    logging.sql("GRANT ALL ON app.* TO poor@localhost")
    url = logging.url().replace("root@", "poor:x@")
    refuses("serve", "--listen", "127.0.0.1:0", "--mariadb", url, "--cache", "documents", says=("GRANT", "REPLICATION SLAVE"))
    refuses(*serve[:3], "--mariadb", logging.url(), "--cache", "both", "--external-writes", "strict", says=("rpl_semi_sync_master_enabled",))
