"""Users and roles: kills, concurrent changes, several gateways, and SQL users."""

import threading
import time

import pymongo
import pymysql
import pytest
from pymongo.errors import OperationFailure

pytestmark = pytest.mark.selkie_only

WRITERS = 8


@pytest.fixture
def users(client, database_name):
    """A database for users and roles, which are dropped afterwards."""
    db = client[database_name]
    yield db
    db.command("dropAllUsersFromDatabase")
    db.command("dropAllRolesFromDatabase")


def create(db, user="anna", roles=(), **more):
    db.command("createUser", user, pwd="secret", roles=list(roles), **more)


def names(db) -> list[str]:
    return [user["user"] for user in db.command("usersInfo")["users"]]


def together(count: int, run) -> list:
    """Runs a function in several threads at once; returns the results or errors."""
    outcomes, barrier = [], threading.Barrier(count)

    def one(number):
        barrier.wait()
        try:
            outcomes.append(run(number))
        except OperationFailure as error:
            outcomes.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return outcomes


def test_one_of_many_creates_the_user(users):
    outcomes = together(WRITERS, lambda _: create(users))
    assert outcomes.count(None) == 1
    assert {error.code for error in outcomes if error} == {51003}
    assert names(users) == ["anna"]


def test_concurrent_grants_are_not_lost(users):
    create(users)
    users.command("createRole", "clerk", privileges=[], roles=[])
    roles = [f"r{number}" for number in range(WRITERS)]
    for role in roles:
        users.command("createRole", role, privileges=[], roles=[])

    def grant(number):
        users.command("grantRolesToUser", "anna", roles=[roles[number]])
        users.command("grantRolesToRole", "clerk", roles=[roles[number]])
        privilege = {"resource": {"db": users.name, "collection": roles[number]}, "actions": ["find"]}
        users.command("grantPrivilegesToRole", "clerk", privileges=[privilege])

    assert together(WRITERS, grant) == [None] * WRITERS
    anna = users.command("usersInfo", "anna")["users"][0]
    assert {role["role"] for role in anna["roles"]} == set(roles)
    clerk = users.command("rolesInfo", "clerk", showPrivileges=True)["roles"][0]
    assert {role["role"] for role in clerk["roles"]} == set(roles)
    assert {privilege["resource"]["collection"] for privilege in clerk["privileges"]} == set(roles)


def test_users_are_there_after_a_kill_and_a_drop_of_their_database(own_server, database_name):
    server = own_server()
    with server.client() as client:
        create(client[database_name], roles=["readWrite"], customData={"a": 1})
        client[database_name].command("createRole", "clerk", privileges=[], roles=["read"])
        client[database_name].c.insert_one({})
        client.drop_database(database_name)
        before = client.admin.system.users.find_one({"db": database_name})
    server.kill()
    server.start()
    with server.client() as client:
        db = client[database_name]
        assert client.admin.system.users.find_one({"db": database_name}) == before
        assert names(db) == ["anna"] and db.command("rolesInfo", "clerk")["roles"]
        create(db, "bert")
        db.command("dropAllUsersFromDatabase")
        db.command("dropAllRolesFromDatabase")


@pytest.mark.mariadb_only
def test_sql_users_of_the_database_admin_see_no_credentials(server, client, users):
    create(users)
    client.admin.tempusers.insert_one({"_id": "x"})
    tables = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_NAME IN ('system.users', 'tempusers')"
    assert set(server.mariadb.sql(tables)) == {("selkie", "system.users"), ("selkie", "tempusers")}
    client.admin.cars.insert_one({})
    server.mariadb.sql("CREATE USER reader IDENTIFIED BY 'r'")
    try:
        server.mariadb.sql("GRANT SELECT ON admin.* TO reader")
        options = {"unix_socket": server.mariadb.socket, "user": "reader", "password": "r"}
        with pymysql.connect(**options) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM admin.cars")
            with pytest.raises(pymysql.err.OperationalError):
                cursor.execute("SELECT * FROM selkie.`system.users`")
            cursor.execute("SHOW TABLES FROM admin")
            assert not {"system.users", "tempusers"} & {name for (name,) in cursor.fetchall()}
    finally:
        server.mariadb.sql("DROP USER reader")
        client.admin.tempusers.drop()
        client.admin.cars.drop()
    assert "system.users" in client.admin.list_collection_names()


@pytest.mark.mariadb_only
def test_one_of_two_gateways_creates_the_user(server, own_server, users):
    other = own_server(mariadb=server.mariadb)
    with other.client() as client:
        both = [users, client[users.name]]
        for round in range(5):
            outcomes = together(2, lambda number: create(both[number], f"user{round}"))
            assert outcomes.count(None) == 1
            assert [error.code for error in outcomes if error] == [51003]
        assert names(both[0]) == names(both[1]) == [f"user{round}" for round in range(5)]


def test_changes_count_at_once_on_every_worker(own_server, database_name):
    server = own_server("--auth", "--threads", "2")
    with server.client() as client:
        client.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with server.client(username="root", password="secret") as root:
        db = root[database_name]
        create(db, roles=["read"])
        login = {"username": "anna", "password": "secret", "authSource": database_name}
        with server.client(**login) as one, server.client(**login) as two:
            for client in (one, two):
                assert client[database_name].c.find_one() is None
            for _ in range(20):
                db.command("grantRolesToUser", "anna", roles=["readWrite"])
                for client in (one, two):
                    client[database_name].c.insert_one({})
                db.command("revokeRolesFromUser", "anna", roles=["readWrite"])
                for client in (one, two):
                    with pytest.raises(OperationFailure) as refused:
                        client[database_name].c.insert_one({})
                    assert refused.value.code == 13
            db.command("dropUser", "anna")
            for client in (one, two):
                with pytest.raises(OperationFailure) as refused:
                    client[database_name].c.find_one()
                assert refused.value.code == 13


def seconds_until(command, limit_s: float = 3, is_refused: bool = True) -> float:
    """Returns how long it takes until a command is refused, or is not any more."""
    started = time.monotonic()
    while time.monotonic() - started < limit_s:
        try:
            command()
            if not is_refused:
                return time.monotonic() - started
        except OperationFailure as error:
            assert error.code == 13, error
            if is_refused:
                return time.monotonic() - started
        time.sleep(0.02)
    return limit_s


@pytest.mark.mariadb_only
def test_changes_count_within_a_second_on_other_gateways(own_server, mariadb, tmp_path, database_name):
    # The localhost exception needs a store without users.
    mariadb.forget_users()
    one, two = (own_server("--auth", mariadb=mariadb, folder=tmp_path / name) for name in "ab")
    with one.client() as client:
        client.admin.command("createUser", "root", pwd="secret", roles=["root"])
    try:
        with one.client(username="root", password="secret") as root:
            db = root[database_name]
            create(db, roles=["readWrite"])
            login = {"username": "anna", "password": "secret", "authSource": database_name}
            with two.client(**login) as client:
                insert = lambda: client[database_name].c.insert_one({})
                insert()
                db.command("revokeRolesFromUser", "anna", roles=["readWrite"])
                assert seconds_until(insert) < 1
                db.command("updateUser", "anna", roles=["readWrite"])
                assert seconds_until(insert, is_refused=False) < 3
                mariadb.sql("UPDATE selkie.`system.users` SET doc = JSON_SET(doc, '$.roles', JSON_ARRAY()) WHERE doc LIKE %s", "%anna%")
                assert seconds_until(insert) < 1
    finally:
        mariadb.forget_users()
