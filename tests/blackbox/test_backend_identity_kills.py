"""Accounts of users in MariaDB (`backend-identity = "user"`), with gateways that are killed.

SELKIE_KILL_ROUNDS sets the number of kills.
"""

import os
import random
import threading
import time

import pymongo
import pytest
from blackbox.test_backend_identity import ROOT, Gateway, create, login, rows, start_mariadb, within
from pymongo.errors import OperationFailure, PyMongoError

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

ROUNDS = int(os.environ.get("SELKIE_KILL_ROUNDS", 4))


@pytest.fixture
def only_gateway(store, tmp_path):
    """The only gateway of its server, so that no other one completes its changes."""
    server = start_mariadb(tmp_path)
    gateway = Gateway(tmp_path, server).start()
    gateway.client().admin.command("createUser", "root", pwd="top", roles=["root"])
    yield gateway
    gateway.remove()
    server.remove()


def accounts_agree(gateway, known: dict[str, str]) -> bool:
    """Returns whether each user logs in on both sides, and no account is without a user."""
    with gateway.root() as root:
        users = {user["_id"] for user in root.admin["system.users"].find({"db": "crash"})}
    accounts = {name for name, in gateway.mariadb.sql(
        "SELECT User FROM mysql.global_priv WHERE Host = '%' AND User LIKE 'crash.%'")}
    roles = {name for name, in gateway.mariadb.sql(
        "SELECT User FROM mysql.global_priv WHERE Host = '' AND User LIKE 'crash.%'")}
    if users != accounts or users != roles:
        return False
    for account in users:
        user = account.split(".", 1)[1]
        passwords = [password for password in known[account]
                     if rows(gateway, account, "SELECT CURRENT_ROLE()", password) == ((account,),)]
        if len(passwords) != 1:
            return False
        login_of = gateway.client(username=user, password=passwords[0], authSource="crash")
        login_of.crash.command("ping")
        login_of.close()
    return True


def test_a_kill_leaves_no_login_without_a_user(only_gateway):
    gateway, known = only_gateway, {}
    chosen = random.Random(7)
    for round in range(ROUNDS):
        client = gateway.client(**ROOT, serverSelectionTimeoutMS=1000)
        stopping = threading.Event()

        def change(number: int, client=client, stopping=stopping):
            db, own = client.crash, random.Random(number)
            while not stopping.is_set():
                user, password = f"u{number}", f"p{own.randrange(1000)}"
                passwords = known.setdefault(f"crash.{user}", set())
                passwords.add(password)
                try:
                    match own.randrange(3):
                        case 0:
                            db.command("createUser", user, pwd=password, roles=["readWrite"])
                        case 1:
                            db.command("dropUser", user)
                        case 2:
                            db.command("updateUser", user, pwd=password)
                except OperationFailure:
                    pass
                except PyMongoError:
                    return

        threads = [threading.Thread(target=change, args=(number + 10 * round,)) for number in range(2)]
        [thread.start() for thread in threads]
        time.sleep(chosen.uniform(0.1, 0.6))
        gateway.kill()
        stopping.set()
        [thread.join() for thread in threads]
        gateway.start()
        client.close()
        within(20, lambda: accounts_agree(gateway, known))


def test_statements_of_a_killed_gateway_end(only_gateway):
    gateway, server = only_gateway, only_gateway.mariadb
    with gateway.root() as root:
        root.shop.cars.insert_one({"_id": 1})
        create(root.shop, roles=["readWrite"])
    anna = login(gateway, pymongo.MongoClient(connect=False).shop)
    anna.cars.find_one()

    def update():
        with pytest.raises(PyMongoError):
            anna.cars.update_many({}, {"$set": {"x": 1}})

    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES shop.cars READ")
        writer = threading.Thread(target=update)
        writer.start()
        waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'gateway:documents' AND STATE LIKE 'Waiting%'"
        within(10, lambda: server.sql(waiting) == ((1,),))
        gateway.kill()
        began = time.monotonic()
        gateway.start()
        assert time.monotonic() - began < 30
        assert server.sql(waiting) == ((0,),)
        cursor.execute("UNLOCK TABLES")
    writer.join(60)
    with gateway.root() as root:
        assert "x" not in root.shop.cars.find_one()


def test_each_interrupted_step_is_completed(only_gateway):
    gateway, server = only_gateway, only_gateway.mariadb
    with gateway.root() as root:
        for user in ("gone", "locked", "admins", "begun"):
            create(root.steps, user)
    gateway.kill()
    # Killed after the user's document was deleted; while an account was locked; before a user was
    # stored. An administrator has locked one.
    server.sql("DELETE FROM selkie.`system.users` WHERE JSON_VALUE(doc, '$.user') IN ('gone', 'begun') "
               "AND JSON_VALUE(doc, '$.db') = 'steps'")
    server.sql("UPDATE selkie.accounts SET is_locked = 1 WHERE name IN ('steps.locked', 'steps.begun')")
    server.sql("UPDATE selkie.accounts SET login = 1 WHERE name = 'steps.begun'")
    for user in ("locked", "admins", "begun"):
        server.sql(f"ALTER USER `steps.{user}`@'%' ACCOUNT LOCK")
    gateway.start()
    within(10, lambda: rows(gateway, "steps.locked", "SELECT 1") == ((1,),))
    assert rows(gateway, "steps.admins", "SELECT 1") == 4151
    for account in ("steps.gone", "steps.begun"):
        assert not server.sql("SELECT 1 FROM mysql.global_priv WHERE User = %s", account)
