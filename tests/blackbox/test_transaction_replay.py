"""Transactions that the router `read-write-split` executes again."""

import contextlib
import threading

import pymysql
import pytest

from support.split_gateway import COMMITS, SplitGateway, is_gone, kill_primary, return_primary, rows
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    topology = Replication(tmp_path_factory.mktemp("replication"))
    topology.servers[0].sql("CREATE TABLE d.texts (id INT PRIMARY KEY, a LONGTEXT)")
    for statement in COMMITS:
        topology.servers[0].sql(statement)
    topology.servers[0].sql("CREATE PROCEDURE d.commits() BEGIN INSERT INTO d.t VALUES (40, 0); COMMIT; DO SLEEP(2); END")
    yield topology
    topology.remove()


@pytest.fixture(scope="module")
def gateway(replication, tmp_path_factory):
    gateway = SplitGateway(tmp_path_factory.mktemp("gateway"), replication)
    gateway.await_roles("primary", "replica", "replica")
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


def refusal(connection, sql: str) -> int:
    with pytest.raises(pymysql.err.MySQLError) as refused:
        rows(connection, sql)
    return refused.value.args[0]


def test_a_transaction_that_meets_another_is_executed_again(gateway, replication):
    replication.servers[0].sql("REPLACE INTO d.t VALUES (11, 0), (12, 0)")
    sessions = gateway.connect("replay"), gateway.connect("replay")
    barrier = threading.Barrier(2)

    def add(session, first: int, second: int):
        rows(session, "BEGIN")
        rows(session, f"UPDATE t SET a = a + 1 WHERE id = {first}")
        barrier.wait()
        rows(session, f"UPDATE t SET a = a + 1 WHERE id = {second}")
        rows(session, "COMMIT")

    before = gateway.statistics("replay")["transactionsReplayed"]
    threads = [threading.Thread(target=add, args=(sessions[0], 11, 12)), threading.Thread(target=add, args=(sessions[1], 12, 11))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replication.servers[0].sql("SELECT a FROM d.t WHERE id IN (11, 12)") == ((2,), (2,))
    assert gateway.statistics("replay")["transactionsReplayed"] > before
    for session in sessions:
        session.close()


def test_a_transaction_whose_snapshot_is_old_is_executed_again(gateway, replication):
    """innodb_snapshot_isolation, which is on by default from MariaDB 11.6."""
    primary = replication.servers[0]
    primary.sql("REPLACE INTO d.t VALUES (13, 0), (14, 0)")
    with contextlib.closing(gateway.connect("replay")) as connection:
        rows(connection, "SET SESSION innodb_snapshot_isolation = ON")
        rows(connection, "BEGIN")
        assert rows(connection, "SELECT a FROM t WHERE id = 14") == ((0,),)
        primary.sql("UPDATE d.t SET a = 5 WHERE id = 13")
        rows(connection, "UPDATE t SET a = a + 1 WHERE id = 13")
        rows(connection, "COMMIT")
        assert primary.sql("SELECT a FROM d.t WHERE id = 13") == ((6,),)
        # What the client has seen is no longer true.
        rows(connection, "BEGIN")
        assert rows(connection, "SELECT a FROM t WHERE id = 13") == ((6,),)
        primary.sql("UPDATE d.t SET a = 7 WHERE id = 13")
        with pytest.raises(pymysql.err.MySQLError) as changed:
            rows(connection, "UPDATE t SET a = a + 1 WHERE id = 13")
        assert changed.value.args[0] == 1213 and "differs" in changed.value.args[1]
        rows(connection, "UPDATE t SET a = a + 1 WHERE id = 13")
        assert primary.sql("SELECT a FROM d.t WHERE id = 13") == ((8,),), "the transaction was rolled back"


def test_transactions_survive_the_death_of_the_primary(gateway, replication):
    old, new, _ = replication.servers
    replication.servers[0].sql("REPLACE INTO d.t VALUES (15, 0)")
    for replica in replication.servers[1:]:
        until(lambda replica=replica: replica.sql("SELECT 1 FROM d.t WHERE id = 15"))
    gateway.await_roles("primary", "replica", "replica")
    idle, busy = gateway.connect("replay"), gateway.connect("replay")
    with idle.cursor() as cursor:
        cursor.execute("SET @@session.time_zone = '+02:00'")
    for number, session in enumerate((idle, busy)):
        rows(session, "BEGIN")
        rows(session, f"INSERT INTO t VALUES ({100 + number}, 0)")
        assert rows(session, f"SELECT a FROM t WHERE id = {100 + number}") == ((0,),)
    outcome = []

    def sleep():
        outcome.append(rows(busy, "SELECT SLEEP(1), a FROM t WHERE id = 101"))

    thread = threading.Thread(target=sleep)
    thread.start()
    until(lambda: old.sql("SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(1)%'"))
    kill_primary(replication)
    gateway.await_roles("none", "replica", "replica")
    replication.promote(1)
    thread.join()
    assert outcome == [((0, 0),)]
    for session in (idle, busy):
        rows(session, "UPDATE t SET a = a + 1 WHERE id = 15")
        rows(session, "COMMIT")
    assert new.sql("SELECT id, a FROM d.t WHERE id IN (15, 100, 101)") == ((15, 2), (100, 0), (101, 0))
    assert rows(idle, "SELECT @@server_id, @@time_zone") == ((2, "+02:00"),)
    # The ids of the connections there are others. KILL finds the session by its own.
    assert rows(idle, "SELECT CONNECTION_ID()") == ((idle.thread_id(),),)
    rows(idle, f"KILL {busy.thread_id()}")
    until(lambda: is_gone(busy))
    assert rows(idle, "SELECT 1") == ((1,),)
    return_primary(gateway, replication)
    for session in (idle, busy):
        session.close()


def test_what_follows_a_lost_transaction(gateway, replication):
    """Each session has a transaction open when the primary dies."""
    _, new, _ = replication.servers
    names = ("long", "rolled back", "reset", "changes settings", "refused", "plain")
    sessions = {name: gateway.connect("split" if name == "plain" else "replay") for name in names}
    for number, session in enumerate(sessions.values()):
        rows(session, "BEGIN")
        rows(session, f"INSERT INTO t VALUES ({20 + number}, 0)")
    rows(sessions["changes settings"], "SET time_zone = '+04:00'")
    assert refusal(sessions["refused"], "INSERT INTO t VALUES (24, 0)") == 1062
    kill_primary(replication)
    gateway.await_roles("none", "replica", "replica")
    replication.promote(1)
    gateway.await_roles("none", "primary", "replica")

    # A statement that is too long to be held is a part of the transaction too.
    text = "x" * 300_000
    rows(sessions["long"], f"INSERT INTO texts VALUES (1, '{text}')")
    assert new.sql("SELECT COUNT(*) FROM d.t WHERE id = 20") == ((0,),), "it is not committed yet"
    rows(sessions["long"], "COMMIT")
    assert new.sql("SELECT LENGTH(a) FROM d.texts") == ((300_000,),) and new.sql("SELECT a FROM d.t WHERE id = 20") == ((0,),)

    # Nothing is executed again to be rolled back.
    before = gateway.statistics("replay")["transactionsReplayed"]
    rows(sessions["rolled back"], "ROLLBACK")
    sessions["reset"]._execute_command(0x1F, b"")
    sessions["reset"]._read_ok_packet()
    assert gateway.statistics("replay")["transactionsReplayed"] == before
    rows(sessions["plain"], "ROLLBACK")
    for name in ("rolled back", "reset", "plain"):
        assert rows(sessions[name], "SELECT @@in_transaction, @@server_id") == ((0, 2),), name

    assert refusal(sessions["changes settings"], "COMMIT") == 1213
    assert rows(sessions["changes settings"], "SELECT @@time_zone") == (("+04:00",),)

    # The client has seen the error, and goes on.
    rows(sessions["refused"], "COMMIT")
    assert new.sql("SELECT id FROM d.t WHERE id BETWEEN 20 AND 29 ORDER BY id") == ((20,), (24,))
    return_primary(gateway, replication)
    for session in sessions.values():
        session.close()


def test_a_transaction_that_an_error_has_rolled_back_is_not_executed_again(gateway, replication):
    """A deadlock that the client sees, because its transaction cannot be executed again."""
    primary = replication.servers[0]
    primary.sql("REPLACE INTO d.t VALUES (30, 0), (31, 0)")
    with contextlib.closing(gateway.connect("replay")) as connection, primary.connect() as other:
        rows(connection, "SET SESSION innodb_snapshot_isolation = ON")
        rows(connection, "BEGIN")
        assert rows(connection, "SELECT a FROM t WHERE id = 30") == ((0,),)
        rows(connection, "UPDATE t SET a = 1 WHERE id = 31")
        rows(other, "UPDATE d.t SET a = 5 WHERE id = 30")
        other.commit()
        assert refusal(connection, "UPDATE t SET a = a + 1 WHERE id = 30") == 1213
        rows(connection, "UPDATE t SET a = a + 10 WHERE id = 30")
        assert primary.sql("SELECT a FROM d.t WHERE id IN (30, 31)") == ((15,), (0,))


def test_a_call_that_may_have_committed_is_not_executed_again(gateway, replication):
    session = gateway.connect("replay")
    rows(session, "BEGIN")
    rows(session, "INSERT INTO t VALUES (41, 0)")
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(refusal(session, "CALL commits()")))
    thread.start()
    until(lambda: replication.servers[0].sql("SELECT 1 FROM d.t WHERE id = 40"))
    kill_primary(replication)
    gateway.await_roles("none", "replica", "replica")
    replication.promote(1)
    thread.join()
    assert outcome == [1927]
    assert replication.servers[1].sql("SELECT id FROM d.t WHERE id IN (40, 41)") == ((40,), (41,))
    return_primary(gateway, replication)
    session.close()


class Committing(threading.Thread):
    """Executes the COMMIT of a session, while the primary does not answer."""

    def __init__(self, session):
        super().__init__()
        self.session = session
        self.outcome = None
        self.start()

    def run(self):
        try:
            rows(self.session, "COMMIT")
            self.outcome = "done"
        except pymysql.err.MySQLError as error:
            self.outcome = error.args[0]


def begin(gateway, service: str, number: int):
    session = gateway.connect(service)
    rows(session, "BEGIN")
    rows(session, f"INSERT INTO t VALUES ({number}, 0)")
    return session


def replace_primary(gateway, replication):
    """Kills the primary, and promotes another."""
    replication.servers[0].kill()
    gateway.await_roles("none", "replica", "replica")
    replication.promote(1)


def test_a_commit_without_a_reply_that_took_effect(gateway, replication):
    old, new, _ = replication.servers
    gateway.await_roles("primary", "replica", "replica")
    before = gateway.statistics("outcomes")["commitsFound"]
    sessions = [begin(gateway, service, number) for number, service in enumerate(("outcomes", "both", "split"), 200)]
    # The replicas get the transactions, and the primary waits for an answer that never comes.
    for setting in ("wait_point = AFTER_COMMIT", "timeout = 60000", "wait_no_slave = ON", "enabled = ON"):
        old.sql(f"SET GLOBAL rpl_semi_sync_master_{setting}")
    committing = [Committing(session) for session in sessions]
    until(lambda: len(new.sql("SELECT id FROM d.t WHERE id BETWEEN 200 AND 202")) == 3)
    assert all(thread.is_alive() for thread in committing)
    replace_primary(gateway, replication)
    for thread in committing:
        thread.join()
    assert [thread.outcome for thread in committing] == ["done", "done", 1927]
    assert gateway.statistics("outcomes")["commitsFound"] == before + 1
    for number, session in enumerate(sessions, 210):
        rows(session, "BEGIN")
        rows(session, f"INSERT INTO t VALUES ({number}, 0)")
        rows(session, "COMMIT")
        assert rows(session, "SELECT @@in_transaction, @@server_id") == ((0, 2),)
        session.close()
    assert len(new.sql("SELECT id FROM d.t WHERE id BETWEEN 200 AND 219")) == 6
    return_primary(gateway, replication)


def test_a_commit_without_a_reply_that_took_no_effect(gateway, replication):
    old, new, _ = replication.servers
    gateway.await_roles("primary", "replica", "replica")
    sessions = [begin(gateway, service, number) for number, service in enumerate(("outcomes", "both", "split"), 220)]
    replication.await_replicas()
    with old.connect() as locking, locking.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        committing = [Committing(session) for session in sessions]
        waiting = "SELECT 1 FROM information_schema.processlist WHERE info LIKE '%COMMIT%' AND user = 'joe'"
        until(lambda: len(old.sql(waiting)) == 3)
        replace_primary(gateway, replication)
    for thread in committing:
        thread.join()
    assert [thread.outcome for thread in committing] == [1213, "done", 1927]
    assert new.sql("SELECT id FROM d.t WHERE id BETWEEN 220 AND 229") == ((221,),)
    for session in sessions:
        assert rows(session, "SELECT @@in_transaction") == ((0,),)
        session.close()
    return_primary(gateway, replication)


def test_transactions_are_marked_while_they_commit(gateway, replication):
    primary = replication.servers[0]
    gateway.await_roles("primary", "replica", "replica")

    def marks() -> list:
        return [number for (number,) in primary.sql("SELECT number FROM selkie.commits ORDER BY number")]

    primary.sql("DELETE FROM selkie.commits")
    primary.sql("CREATE TABLE IF NOT EXISTS d.keyed (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
    with contextlib.closing(gateway.connect("outcomes")) as session:
        for number in range(1, 4):
            rows(session, "BEGIN")
            rows(session, "INSERT INTO keyed (a) VALUES (1)")
            with session.cursor() as cursor:
                assert cursor.execute("commit work") == 0
            assert session.server_status & 1 == 0 and marks() == [number]
            assert rows(session, "SELECT LAST_INSERT_ID() = MAX(id) FROM keyed FOR UPDATE") == ((1,),)
        for statements in (
            ("BEGIN", "SELECT a FROM keyed LIMIT 1", "COMMIT"), ("BEGIN", "UPDATE keyed SET a = 2", "ROLLBACK"),
            ("BEGIN", "UPDATE keyed SET a = 2", "COMMIT AND CHAIN", "COMMIT"), ("UPDATE keyed SET a = 3",),
        ):
            for statement in statements:
                rows(session, statement)
            assert marks() == [3], statements
        # A transaction that cannot write has no row, and later ones have.
        rows(session, "START TRANSACTION READ ONLY")
        assert refusal(session, "UPDATE keyed SET a = 5") == 1792
        rows(session, "COMMIT")
        rows(session, "BEGIN")
        rows(session, "UPDATE keyed SET a = 3")
        rows(session, "COMMIT")
        assert len(marks()) == 1 and marks() > [3]
        # If the row cannot be written, the transaction commits without it.
        rows(session, "BEGIN")
        rows(session, "UPDATE keyed SET a = 4")
        primary.sql("RENAME TABLE selkie.commits TO selkie.away")
        rows(session, "COMMIT")
        assert primary.sql("SELECT DISTINCT a FROM d.keyed") == ((4,),)
        primary.sql("RENAME TABLE selkie.away TO selkie.commits")
