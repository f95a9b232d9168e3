"""No stale reads: the program `truth` reads and writes at random over many connections, and checks
every reply against the versions that may be visible. Concurrent reads of the same data cause one
read of the store.

SELKIE_TRUTH_OPERATIONS makes each check run for that many operations instead of some seconds."""

import contextlib
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from blackbox.test_external_writes import STRICT
from support import selkie
from support.mariadb import MariadbServer
from support.redis import RedisServer, AgelessProxy
from support.wire import Wire, op_msg

pytestmark = pytest.mark.selkie_only


OPERATIONS = os.environ.get("SELKIE_TRUTH_OPERATIONS")


def asked(uri: str, seconds: int, *options: str) -> subprocess.CompletedProcess:
    length = ("--operations", OPERATIONS) if OPERATIONS else ("--seconds", str(seconds))
    size = ("--connections", "32", "--documents", "512")
    timeout_s = 24 * 3600 if OPERATIONS else 240
    done = selkie.run("--uri", uri, *length, *size, *options, timeout_s=timeout_s, name="truth")
    print(done.stdout)
    return done


def truth(uri: str, seconds: int, *options: str) -> str:
    done = asked(uri, seconds, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0  wrong replies" in done.stdout
    return done.stdout


def test_without_a_cache(server):
    printed = truth(server.uri, 5)
    for kind in ("find by _id", "find in batches", "$lookup", "update of many", "findAndModify", "rename, drop"):
        assert f"  {kind}\n" in printed


@pytest.mark.parametrize("told", ["the checker", "the server"])
def test_a_run_that_ends_early_prints_its_results(own_server, told):
    """The checker stops on a signal. When the server is gone, it reports the error and its counts.
    """
    server = own_server()
    command = [selkie.program("truth"), "--uri", server.uri, "--operations", "1000000000", "--documents", "512"]
    checker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(3)
        if told == "the checker":
            checker.terminate()
        else:
            server.kill()
        printed, errors = checker.communicate(timeout=60)
    finally:
        checker.kill()
    assert "  find by _id\n" in printed and " 0  wrong replies" in printed, printed + errors
    assert checker.returncode == (0 if told == "the checker" else 1), errors
    assert ("stopping: " in errors) == (told == "the checker")
    assert ("ended early, with 0 wrong replies" in errors) == (told == "the server")


@contextlib.contextmanager
def meanwhile(*actions):
    """Runs these actions during the test, each after its pause in seconds, repeatedly."""
    over = threading.Event()

    def act():
        while not over.is_set():
            for pause_s, action in actions:
                if over.wait(pause_s):
                    break
                action()

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def alone(store: str) -> tuple[str, ...]:
    """Returns the options for a cache without external writes."""
    return ("--external-writes", "none") if store == "mariadb" else ()


@pytest.mark.parametrize("mode", ["results", "documents", "both"])
def test_with_a_cache(own_server, store, mode):
    if mode != "documents" and "mariadb" not in store:
        pytest.skip("there are no result sets without MariaDB")
    server = own_server("--cache", mode, *alone(store))
    truth(server.uri, 5, "--reads", "93")


def test_with_a_cache_for_each_worker(own_server, store):
    server = own_server("--cache", "documents", "--cache-per-worker", "--threads", "3", *alone(store))
    truth(server.uri, 5, "--reads", "93")
    with server.client() as client:
        assert client.admin.command("serverStatus")["cache"]["hits"] > 0


def test_with_a_cache_that_is_too_small(own_server, store):
    server = own_server("--cache", "documents", "--cache-bytes", str(1 << 20), *alone(store))
    truth(server.uri, 5, "--reads", "95", "--pad", "2000")


@pytest.fixture
def strict_mariadb(tmp_path) -> MariadbServer:
    server = MariadbServer(tmp_path / "strict", STRICT).start()
    yield server
    server.remove()


@pytest.mark.mariadb_only
def test_with_a_cache_and_sql_beside_it(own_server, strict_mariadb):
    """MariaDB reports a write in its log before it acknowledges it. Reads between the visibility of
    a change and its event in the log are tolerated.
    """
    server = own_server("--cache", "documents", "--external-writes", "strict", mariadb=strict_mariadb)
    printed = truth(server.uri, 5, "--reads", "93", "--sql", strict_mariadb.tcp_url(), "--acknowledged-only")
    assert "  write by SQL\n" in printed


@pytest.mark.mariadb_only
def test_with_two_gateways_of_which_one_is_killed(own_server, strict_mariadb, tmp_path):
    """Each gateway sees its own writes at once, except those on top of the other's, which it sees
    within a bounded time."""
    options = ("--cache", "documents")
    one, other = (own_server(*options, mariadb=strict_mariadb, folder=tmp_path / name) for name in ("one", "other"))
    with meanwhile((4, other.kill), (0, other.start)):
        truth(one.uri, 8, "--uri", other.uri, "--reads", "90", "--reconnect-seconds", "60", "--staleness-ms", "10000")


@pytest.mark.mariadb_only
@pytest.mark.parametrize("options", [(), ("--stale-ms", "1000")], ids=["", "stale"])
def test_while_the_log_is_cut_again_and_again(own_server, strict_mariadb, options):
    server = own_server("--cache", "documents", *options, mariadb=strict_mariadb)
    sql = ("--sql", strict_mariadb.tcp_url(), "--disconnect-ms", "3000", "--staleness-ms", "10000")
    printed = truth(server.uri, 12, "--reads", "93", *sql)
    assert "  write by SQL\n" in printed
    with server.client() as client:
        assert client.admin.command("serverStatus")["cache"]["hits"] > 0


# Every write to a collection invalidates its shared replies, so there are few writes.
RARE = ("--reads", "100", "--sql-connections", "1", "--sql-pause-us", "200000", "--rename-ms", "0", "--definition-ms", "0")


def sharing(url: str, folder: Path) -> tuple[str, ...]:
    """Returns options of gateways that share replies, with a timeout for Redis that suits a busy
    machine."""
    settings = folder / "selkie.toml"
    settings.write_text(f"[cache]\nmode = 'documents'\nstorage = '{url}'\nstorage-timeout-ms = 5000\n")
    return ("--config", str(settings))


@pytest.mark.mariadb_only
def test_with_two_gateways_that_share_replies_while_redis_is_killed(own_server, strict_mariadb, tmp_path):
    redis = RedisServer(tmp_path / "redis").start()
    try:
        options = sharing(redis.url(), tmp_path)
        one, other = (own_server(*options, mariadb=strict_mariadb, folder=tmp_path / name) for name in ("one", "other"))
        # Seven seconds per round, so that the pause of six seconds after a failure does not always
        # end at the next kill.
        with meanwhile((5, redis.kill), (2, redis.start)):
            sql = ("--sql", strict_mariadb.tcp_url())
            printed = truth(one.uri, 10, "--uri", other.uri, "--staleness-ms", "3000", *sql, *RARE)
        assert "  write by SQL\n" in printed
        for server in (one, other):
            with server.client() as client:
                shared = client.admin.command("serverStatus")["cache"]["shared"]
            assert shared["hits"] > 0 and shared["errors"] > 0, shared
    finally:
        redis.kill()


@pytest.mark.mariadb_only
@pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])
def test_stale_shared_replies_are_found(own_server, strict_mariadb, tmp_path, checked):
    """A planted bug: without the validation of shared replies, the checker finds stale ones within
    a minute."""
    redis = RedisServer(tmp_path / "redis").start()
    proxy = AgelessProxy(redis, lies=not checked)
    try:
        options = sharing(proxy.url, tmp_path)
        one, other = (own_server(*options, mariadb=strict_mariadb, folder=tmp_path / name) for name in ("one", "other"))
        sql = ("--sql", strict_mariadb.tcp_url())
        done = asked(one.uri, 10 if checked else 15, "--uri", other.uri, "--staleness-ms", "3000", *sql, *RARE)
        assert (" 0  wrong replies" in done.stdout) == checked
        assert (done.returncode == 0) == checked
        for server in (one, other):
            with server.client() as client:
                assert client.admin.command("serverStatus")["cache"]["shared"]["hits"] > 0
    finally:
        proxy.close()
        redis.kill()


@pytest.mark.mariadb_only
def test_with_sql_beside_it(server, mariadb):
    printed = truth(server.uri, 5, "--sql", mariadb.tcp_url())
    assert "  write by SQL\n" in printed


CLIENTS = 1000
DOCUMENTS = 20_000


def test_concurrent_reads_of_the_same_data_are_read_once(own_server, store, database_name):
    server = own_server("--cache", "documents", *alone(store))
    with server.client() as client, contextlib.ExitStack() as stack:
        client[database_name].c.insert_many([{"_id": n, "text": f"text {n}"} for n in range(DOCUMENTS)])
        connections = [stack.enter_context(Wire(server.port, timeout_s=60)) for _ in range(CLIENTS)]
        # Evaluates a list for each document, so that others send the query before the first has its
        # reply.
        numbers = {"$range": [0, {"$add": [50, {"$strLenCP": "$text"}]}]}
        counted = {"$size": {"$filter": {"input": numbers, "cond": {"$gte": ["$$this", 0]}}}}
        matched = {"$regexMatch": {"input": "$text", "regex": "9.*9.*9.*9$"}}
        slow = {"$expr": {"$and": [{"$gte": [counted, 50]}, matched]}}
        find = op_msg({"find": "c", "filter": slow, "$db": database_name})
        figures = client.admin.command("serverStatus")["cache"]
        rows = rows_read(server)
        for connection in connections:
            connection.send(find)
        replies = [connection.receive_reply() for connection in connections]
        read = rows_read(server) - rows
        after = client.admin.command("serverStatus")["cache"]
        client.drop_database(database_name)
    batches = [reply["cursor"]["firstBatch"] for reply in replies]
    assert batches[0] and all(batch == batches[0] for batch in batches)
    assert after["stored"] - figures["stored"] == 1
    if store == "mariadb":
        # A single scan reads this number of rows; the lookup of the collection reads a few more.
        assert read < 2 * DOCUMENTS
    assert after["waits"] - figures["waits"] > 0
    assert after["hits"] - figures["hits"] == CLIENTS - 1


def rows_read(server) -> int:
    """Returns the rows that MariaDB has read in full scans of tables or indexes; zero without
    MariaDB."""
    if server.mariadb is None:
        return 0
    handlers = server.mariadb.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%next'")
    return sum(int(count) for _, count in handlers)
