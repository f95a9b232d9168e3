"""Transactions through `read-write-split` with `transaction-replay`, while primaries are killed and
replaced: none is lost, none counts twice, and clients see errors for a COMMIT alone. With
`commit-outcomes`, they see none.

SELKIE_KILL_ROUNDS sets the number of kills.
"""

import os
import threading

import pymysql
import pytest
from test_failover import ACCOUNTS, PRIMARY, REPLICA, Gateway

from support.split_gateway import COMMITS
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only, pytest.mark.timeout(1200)]

ROUNDS = int(os.environ.get("SELKIE_KILL_ROUNDS", 2))
CLIENTS, ACCOUNTS_OF_EACH, CREDIT = 4, 5, 1000

SERVICE = """
[service.app]
monitor = "main"
router = "read-write-split"
transaction-replay = true
commit-outcomes = {outcomes}
primary-wait-ms = 30000
[listener.app]
protocol = "mariadb"
address = "127.0.0.1:{port}"
service = "app"
"""


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    replication = Replication(tmp_path_factory.mktemp("transfers"), REPLICA)
    primary = replication.servers[0]
    for statement in (
        *ACCOUNTS, "GRANT SELECT ON mysql.global_priv TO monitor@'%'",
        "CREATE TABLE d.accounts (id INT PRIMARY KEY, credit INT NOT NULL)",
        "CREATE TABLE d.transfers (id BIGINT PRIMARY KEY)", *COMMITS, "GRANT SELECT, INSERT, DELETE ON selkie.commits TO app@'%'",
    ):
        primary.sql(statement)
    for number in range(CLIENTS * ACCOUNTS_OF_EACH):
        primary.sql(f"INSERT INTO d.accounts VALUES ({number}, {CREDIT})")
    for server in replication.servers:
        until(lambda server=server: server.sql("SHOW TABLES FROM d LIKE 'transfers'"))
    for server in replication.servers:
        # After a crash, a server removes the transactions that no replica has acknowledged.
        server.options += ("--init-rpl-role=SLAVE", *(f"--{name}={value}" for name, value in PRIMARY.items()))
        for name, value in PRIMARY.items():
            server.sql(f"SET GLOBAL {name} = {value if value.isdigit() else repr(value)}")
    yield replication
    replication.remove()


def find_primary(replication) -> int:
    """Returns the number of the server that is writable."""
    return next(number for number, server in enumerate(replication.servers) if not server.sql("SELECT @@read_only")[0][0])


class Teller:
    """Moves credit between accounts, two statements a transaction, and keeps a ledger."""

    def __init__(self, gateway: Gateway, number: int):
        self.gateway, self.number = gateway, number
        self.done, self.unknown, self.errors = [], [], []
        self.is_over = False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        connection, transfer = None, self.number
        while not self.is_over:
            transfer += CLIENTS
            step = "connect"
            try:
                connection = connection or self.gateway.connect()
                with connection.cursor() as cursor:
                    # Accounts of all clients: transfers meet each other.
                    source, target = transfer % (CLIENTS * ACCOUNTS_OF_EACH), transfer * 7 % (CLIENTS * ACCOUNTS_OF_EACH)
                    for step in (
                        "BEGIN", f"SELECT COUNT(*) FROM d.accounts WHERE id = {source}",
                        f"UPDATE d.accounts SET credit = credit - 1 WHERE id = {source}",
                        f"UPDATE d.accounts SET credit = credit + 1 WHERE id = {target}",
                        f"INSERT INTO d.transfers VALUES ({transfer})", "COMMIT",
                    ):
                        cursor.execute(step)
                self.done.append(transfer)
            except pymysql.err.MySQLError as error:
                (self.unknown if step == "COMMIT" else self.errors).append((transfer, step, error.args))
                if connection:
                    connection.close()
                connection = None


@pytest.mark.parametrize("outcomes", ["false", "true"])
def test_transfers_survive_kills_of_primaries(replication, tmp_path, monkeypatch, outcomes):
    monkeypatch.setattr("test_failover.SERVICE", SERVICE.replace("{outcomes}", outcomes))
    # Each test has transfers of its own.
    replication.servers[find_primary(replication)].sql("DELETE FROM d.transfers")
    gateway = Gateway(tmp_path / "gateway", replication, True)
    try:
        primary = gateway.await_primary()
        tellers = [Teller(gateway, number) for number in range(CLIENTS)]

        def done() -> int:
            return sum(len(teller.done) for teller in tellers)

        for _ in range(ROUNDS):
            before = done()
            until(lambda before=before: done() > before + 40, 30)
            lost = replication.servers[primary]
            lost.kill()
            before = done()
            until(lambda before=before: done() > before + 40, 40)
            lost.start()
            primary = gateway.await_primary()
        for teller in tellers:
            teller.is_over = True
        for teller in tellers:
            teller.thread.join()
        errors = [error for teller in tellers for error in teller.errors]
        unknown = [error for teller in tellers for error in teller.unknown]
        statistics = gateway.status()["services"]["app"]
        print(f"\n{done()} transfers, {len(unknown)} of unknown outcome, {len(errors)} failed, {statistics}")
        found = {number for (number,) in replication.servers[primary].sql("SELECT id FROM d.transfers")}
        acknowledged = {transfer for teller in tellers for transfer in teller.done}
        assert acknowledged <= found, "a transaction was lost"
        assert found - acknowledged <= {transfer for transfer, *_ in unknown}, "a failed transaction took effect"
        total = replication.servers[primary].sql("SELECT SUM(credit) FROM d.accounts")
        assert total == ((CREDIT * CLIENTS * ACCOUNTS_OF_EACH,),), "a transaction took effect in part"
        assert errors == []
        assert outcomes == "false" or unknown == []
    finally:
        gateway.remove()
