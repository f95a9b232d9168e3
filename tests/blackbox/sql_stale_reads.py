"""A checker for stale reads of SQL clients. Sessions write a counter in every way that a table can
be changed, others read it through the cache. No reply may be older than a write that was
acknowledged before the query was sent.

By hand: `python -m blackbox.sql_stale_reads SECONDS none|follow|strict`, in the folder `tests`."""

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import pymysql
from pymysql.constants import CLIENT

from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import SelkieServer

LOGGING = ("--log-bin=log", "--binlog-format=ROW", "--server-id=1", "--log-bin-trust-function-creators=1")
STRICT = ("--rpl-semi-sync-master-enabled=ON", "--rpl-semi-sync-master-wait-point=AFTER_COMMIT")

# Each way has its own tables: the statements that create them, the write of a number, and the query
# that returns it.
WAYS = {
    "a table": (
        ["CREATE TABLE t{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO t{i} VALUES (1, 0)"],
        ["UPDATE t{i} SET a = {n} WHERE id = 1", "REPLACE INTO t{i} VALUES (1, {n})", "UPDATE t{i} SET a = {n}; SELECT 1",
         "EXECUTE IMMEDIATE 'UPDATE t{i} SET a = {n}'", "BEGIN NOT ATOMIC UPDATE t{i} SET a = {n}; END",
         "INSERT INTO t{i} VALUES (1, {n}) ON DUPLICATE KEY UPDATE a = VALUES(a)"],
        "SELECT a FROM t{i} WHERE id = 1",
    ),
    "a view": (
        ["CREATE TABLE vb{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO vb{i} VALUES (1, 0)",
         "CREATE VIEW v{i} AS SELECT id, a FROM vb{i}", "CREATE VIEW vv{i} AS SELECT id, a FROM v{i}"],
        ["UPDATE v{i} SET a = {n}", "UPDATE vv{i} SET a = {n} WHERE id = 1", "REPLACE INTO v{i} VALUES (1, {n})"],
        "SELECT a FROM vb{i} WHERE id = 1",
    ),
    "a trigger": (
        ["CREATE TABLE tb{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO tb{i} VALUES (1, 0)",
         "CREATE TABLE tt{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO tt{i} VALUES (1, 0)",
         "CREATE TRIGGER tr{i} AFTER UPDATE ON tb{i} FOR EACH ROW UPDATE tt{i} SET a = NEW.a WHERE id = 1"],
        ["UPDATE tb{i} SET a = {n}", "UPDATE tb{i} SET a = {n} WHERE id = 1"],
        "SELECT a FROM tt{i} WHERE id = 1",
    ),
    "a trigger that calls": (
        ["CREATE TABLE cb{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO cb{i} VALUES (1, 0)",
         "CREATE TABLE ct{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO ct{i} VALUES (1, 0)",
         "CREATE PROCEDURE cp{i}(n INT) UPDATE ct{i} SET a = n",
         "CREATE TRIGGER cr{i} AFTER UPDATE ON cb{i} FOR EACH ROW CALL cp{i}(NEW.a)"],
        ["UPDATE cb{i} SET a = {n}"],
        "SELECT a FROM ct{i} WHERE id = 1",
    ),
    "a MERGE table": (
        ["CREATE TABLE m1{i} (id INT, a INT) ENGINE=MyISAM", "INSERT INTO m1{i} VALUES (1, 0)",
         "CREATE TABLE m2{i} (id INT, a INT) ENGINE=MyISAM", "CREATE TABLE m{i} (id INT, a INT) ENGINE=MERGE UNION=(m1{i}, m2{i})"],
        ["UPDATE m{i} SET a = {n} WHERE id = 1", "UPDATE m{i} SET a = {n}", "UPDATE m1{i} SET a = {n}"],
        "SELECT a FROM m1{i} WHERE id = 1",
    ),
    "a function": (
        ["CREATE TABLE fb{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO fb{i} VALUES (1, 0)",
         "CREATE FUNCTION f{i}(n INT) RETURNS INT BEGIN UPDATE fb{i} SET a = n; RETURN n; END",
         "CREATE PROCEDURE p{i}(n INT) UPDATE fb{i} SET a = n"],
        ["SELECT f{i}({n})", "DO f{i}({n})", "CALL p{i}({n})", "SET @x = f{i}({n})"],
        "SELECT a FROM fb{i} WHERE id = 1",
    ),
    "a cascade": (
        ["CREATE TABLE kb{i} (id INT PRIMARY KEY, a INT UNIQUE)", "INSERT INTO kb{i} VALUES (1, 0)",
         "CREATE TABLE kc{i} (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES kb{i} (a) ON UPDATE CASCADE)",
         "INSERT INTO kc{i} VALUES (1, 0)"],
        ["UPDATE kb{i} SET a = {n}"],
        "SELECT a FROM kc{i} WHERE id = 1",
    ),
    "a sequence": (
        ["CREATE SEQUENCE s{i}"], ["SELECT SETVAL(s{i}, {n})", "ALTER SEQUENCE s{i} RESTART {n}"], "SELECT next_not_cached_value FROM s{i}",
    ),
    "a transaction": (
        ["CREATE TABLE x{i} (id INT PRIMARY KEY, a INT)", "INSERT INTO x{i} VALUES (1, 0)", "CREATE VIEW xv{i} AS SELECT a FROM x{i}"],
        [["BEGIN", "UPDATE xv{i} SET a = {n}", "COMMIT"], ["BEGIN", "UPDATE x{i} SET a = {n} + 100000", "UPDATE x{i} SET a = {n}", "COMMIT"]],
        "SELECT a FROM x{i} WHERE id = 1",
    ),
}


class Checker:
    def __init__(self, ports: list[int], database: str, copies: int = 2):
        """The first port is written through; all are read through."""
        self.ports, self.database, self.end = ports, database, 0.0
        self.wrong: list[str] = []
        self.counts = {"reads": 0, "writes": 0, "grants": 0}
        self.targets = [(way, f"_{number}") for way in WAYS for number in range(copies)]
        self.acknowledged = dict.fromkeys(self.targets, 0)
        self.lock = threading.Lock()

    def connect(self, port: int, user: str = "joe") -> pymysql.Connection:
        return pymysql.connect(host="127.0.0.1", port=port, user=user, password="secret", database=self.database, autocommit=True,
                               client_flag=CLIENT.MULTI_STATEMENTS)

    def make(self):
        with self.connect(self.ports[0]) as connection:
            for way, i in self.targets:
                for statement in WAYS[way][0]:
                    ask(connection, statement.format(i=i))

    def write(self, targets: list):
        chance = random.Random()
        number = 0
        with self.connect(self.ports[0]) as plain, self.connect(self.ports[0]) as other:
            while time.monotonic() < self.end:
                number += 1
                for target in targets:
                    way, i = target
                    write = chance.choice(WAYS[way][1])
                    connection = plain if chance.random() < 0.7 else other
                    for statement in [write] if isinstance(write, str) else write:
                        ask(connection, statement.format(i=i, n=number))
                    self.acknowledged[target] = number
                    self.counts["writes"] += 1
                    # The session's own read, at once.
                    self.read_one(connection, target)
                time.sleep(chance.random() * 0.01)

    def read(self, port: int, seed: int):
        chance = random.Random(seed)
        connection = self.connect(port)
        while time.monotonic() < self.end:
            target = chance.choice(self.targets)
            for _ in range(chance.randrange(1, 6)):
                self.read_one(connection, target)
            if chance.random() < 0.01:
                connection.close()
                connection = self.connect(port)
        connection.close()

    def read_one(self, connection, target):
        least = self.acknowledged[target]
        way, i = target
        found = ask(connection, WAYS[way][2].format(i=i))[0][0]
        self.counts["reads"] += 1
        # A sequence's number is its next one.
        if found < least:
            with self.lock:
                self.wrong.append(f"{way}: {found} after {least} was acknowledged")

    def change_rights(self, mariadb, bound: float):
        """Privileges are granted and revoked without an event in the log; a second later, revoked
        ones have no effect."""
        with self.connect(self.ports[0], "guest") as guest, mariadb.connect(database=self.database) as root:
            ask(root, "SET sql_log_bin = 0")
            while time.monotonic() < self.end:
                ask(root, f"GRANT SELECT ON {self.database}.t_0 TO guest@'%'")
                until = time.monotonic() + 0.5
                while time.monotonic() < until:
                    attempt(guest, "SELECT a FROM t_0 WHERE id = 1")
                ask(root, f"REVOKE SELECT ON {self.database}.t_0 FROM guest@'%'")
                time.sleep(bound)
                self.counts["grants"] += 1
                with self.connect(self.ports[0], "guest") as new:
                    for session in (guest, new):
                        if attempt(session, "SELECT a FROM t_0 WHERE id = 1"):
                            with self.lock:
                                self.wrong.append("GRANT: answered after the right was withdrawn")

    def run(self, seconds: float, mariadb):
        self.make()
        mariadb.sql("CREATE OR REPLACE USER guest@'%' IDENTIFIED BY 'secret'")
        mariadb.sql(f"GRANT INSERT ON {self.database}.* TO guest@'%'")
        self.end = time.monotonic() + seconds
        failures: list[BaseException] = []

        def guarded(function, *arguments):
            try:
                function(*arguments)
            except BaseException as error:
                failures.append(error)
                raise

        writers = [(self.write, self.targets[part::3]) for part in range(3)]
        readers = [(self.read, port, seed) for port in self.ports for seed in range(4)]
        rights = [(self.change_rights, mariadb, 1.3)]
        threads = [threading.Thread(target=guarded, args=arguments) for arguments in writers + readers + rights]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not failures, failures


def ask(connection, statement: str):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchall()
        while cursor.nextset():
            pass
        return found


def attempt(connection, statement: str) -> bool:
    try:
        ask(connection, statement)
        return True
    except pymysql.err.OperationalError as error:
        assert error.args[0] in (1142, 1143), error
        return False


def check(folder: Path, seconds: float, foreign_writes: str) -> tuple[Checker, dict]:
    mariadb = MariadbServer(folder / "m", LOGGING + STRICT * (foreign_writes == "strict")).start()
    mariadb.url = mariadb.tcp_url
    port = free_port()
    options = ("--sql-listen", f"127.0.0.1:{port}", "--threads", "2", "--cache", "both", "--external-writes", foreign_writes)
    selkie = SelkieServer(folder / "s", mariadb, options).start()
    try:
        mariadb.sql("CREATE DATABASE d")
        mariadb.sql("CREATE USER joe@'%' IDENTIFIED BY 'secret'")
        mariadb.sql("GRANT ALL PRIVILEGES ON *.* TO joe@'%' WITH GRANT OPTION")
        checker = Checker([port], "d")
        checker.run(seconds, mariadb)
        with selkie.client() as client:
            return checker, client.admin.command("serverStatus")["cache"]["sql"]
    finally:
        selkie.kill()
        mariadb.remove()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        checker, figures = check(Path(folder), float(sys.argv[1]), sys.argv[2])
    print(sys.argv[2], checker.counts, f"hits {figures['hits']} misses {figures['misses']} changes {figures['changes']}")
    print(f"{len(checker.wrong)} stale", *checker.wrong[:10], sep="\n    ")
    sys.exit(bool(checker.wrong))
