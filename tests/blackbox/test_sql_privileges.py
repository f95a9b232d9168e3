"""A cached result is returned only to clients that may read it. Each scenario runs in a session
through Selkie, with the result cached, and in one of MariaDB's own; both get the same."""

import itertools
import time

import pymysql
import pytest
from pymysql.constants import CLIENT

from blackbox.test_sql_clients import Gateway, change_user, is_kept, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

AGE_S = 0.2
QUESTION = "SELECT a FROM d.t WHERE id = 1"
ROWS = (("one",),)

numbers = itertools.count()


class Privileges(Gateway):
    def __init__(self, folder, age_ms: int):
        settings = folder / "selkie.toml"
        settings.write_text(f"[cache]\nprivileges-age-ms = {age_ms}\n")
        super().__init__(folder, "both", "--config", str(settings))

    def direct(self, **options) -> pymysql.Connection:
        options = {"user": "joe", "password": "secret", "autocommit": True} | options
        return pymysql.connect(host="127.0.0.1", port=self.mariadb.port, **options)


@pytest.fixture(scope="module")
def gateway(store, tmp_path_factory):
    gateway = Privileges(tmp_path_factory.mktemp("sql"), int(AGE_S * 1000))
    yield gateway
    assert gateway.selkie.is_running()
    gateway.remove()


@pytest.fixture
def user(gateway) -> str:
    """Returns a new user without privileges."""
    user = f"ann{next(numbers)}"
    gateway.mariadb.sql(f"CREATE USER {user}@'%' IDENTIFIED BY 'secret'")
    return user


def outcome(session, sql: str = QUESTION):
    """Returns the rows, or the code of the error."""
    try:
        with session.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())
    except pymysql.err.MySQLError as error:
        return error.args[0]


class Pair:
    """A session through Selkie, and one that MariaDB serves directly."""

    def __init__(self, gateway, user: str, schema: str | None = None, before: tuple[str, ...] = ()):
        self.gateway = gateway
        options = {"user": user, "database": schema, "client_flag": CLIENT.MULTI_STATEMENTS}
        self.through, self.direct = gateway.connect(**options), gateway.direct(**options)
        for statement in before:
            assert self.both(statement) == ()

    def both(self, sql: str):
        direct, through = outcome(self.direct, sql), outcome(self.through, sql)
        assert through == direct, sql
        return direct

    def warm(self, question: str = QUESTION):
        until(lambda: is_kept(self.gateway, self.through, question))
        assert outcome(self.direct, question) == outcome(self.through, question)

    def agree(self, question: str = QUESTION):
        """Returns the outcome of both, when a change directly on MariaDB must have been noticed."""
        time.sleep(AGE_S * 1.5)
        return self.both(question)


# Statements that grant, with %s for the user, those that the session executes, those that revoke
# (directly on MariaDB), and whether the session is refused then.
SCENARIOS = {
    "a table": (["GRANT SELECT ON d.t TO %s@'%%'"], [], ["REVOKE SELECT ON d.t FROM %s@'%%'"], True),
    "a column": (["GRANT SELECT (id, a) ON d.t TO %s@'%%'"], [], ["REVOKE SELECT (a) ON d.t FROM %s@'%%'"], True),
    "a table, then a column": (
        ["GRANT SELECT ON d.t TO %s@'%%'"], [],
        ["GRANT SELECT (id) ON d.t TO %s@'%%'", "REVOKE SELECT ON d.t FROM %s@'%%'"], True,
    ),
    "a schema": (["GRANT SELECT ON d.* TO %s@'%%'"], [], ["REVOKE SELECT ON d.* FROM %s@'%%'"], True),
    "the current schema": (["GRANT SELECT ON d.* TO %s@'%%'"], ["USE d"], ["REVOKE SELECT ON d.* FROM %s@'%%'"], False),
    "everything": (["GRANT SELECT ON *.* TO %s@'%%'"], [], ["REVOKE SELECT ON *.* FROM %s@'%%'"], False),
    "a role": (
        ["CREATE ROLE r_%s", "GRANT SELECT ON d.t TO r_%s", "GRANT r_%s TO %s@'%%'"], ["SET ROLE r_%s"],
        ["REVOKE SELECT ON d.t FROM r_%s"], True,
    ),
    "a role of a role": (
        ["CREATE ROLE r_%s", "CREATE ROLE q_%s", "GRANT SELECT ON d.t TO q_%s", "GRANT q_%s TO r_%s", "GRANT r_%s TO %s@'%%'"],
        ["SET ROLE r_%s"], ["REVOKE SELECT ON d.t FROM q_%s"], True,
    ),
    "the role's role": (
        ["CREATE ROLE r_%s", "CREATE ROLE q_%s", "GRANT SELECT ON d.t TO q_%s", "GRANT q_%s TO r_%s", "GRANT r_%s TO %s@'%%'"],
        ["SET ROLE r_%s"], ["REVOKE q_%s FROM r_%s"], True,
    ),
    "the role from its user": (
        ["CREATE ROLE r_%s", "GRANT SELECT ON d.t TO r_%s", "GRANT r_%s TO %s@'%%'"], ["SET ROLE r_%s"],
        ["REVOKE r_%s FROM %s@'%%'"], None,
    ),
    "a dropped role": (
        ["CREATE ROLE r_%s", "GRANT SELECT ON d.t TO r_%s", "GRANT r_%s TO %s@'%%'"], ["SET ROLE r_%s"], ["DROP ROLE r_%s"], True,
    ),
    "the public": (["GRANT SELECT ON d.t TO PUBLIC"], [], ["REVOKE SELECT ON d.t FROM PUBLIC"], True),
    "a dropped user": (["GRANT SELECT ON d.t TO %s@'%%'"], [], ["DROP USER %s@'%%'"], True),
    "another user of the name": (
        ["GRANT SELECT ON d.t TO %s@'%%'"], [], ["DROP USER %s@'%%'", "CREATE USER %s@'%%' IDENTIFIED BY 'secret'"], True,
    ),
    "a renamed user": (["GRANT SELECT ON d.t TO %s@'%%'"], [], ["RENAME USER %s@'%%' TO x_%s@'%%'"], True),
    "all": (["GRANT SELECT ON d.t TO %s@'%%'"], [], ["REVOKE ALL PRIVILEGES, GRANT OPTION FROM %s@'%%'"], True),
    "the tables of privileges": (
        ["GRANT SELECT ON d.t TO %s@'%%'"], [],
        ["DELETE FROM mysql.tables_priv WHERE User = '%s'", "FLUSH PRIVILEGES"], True,
    ),
    "unlogged": (["GRANT SELECT ON d.t TO %s@'%%'"], [], ["SET STATEMENT sql_log_bin = 0 FOR REVOKE SELECT ON d.t FROM %s@'%%'"], True),
    "locked": (["GRANT SELECT ON d.t TO %s@'%%'"], [], ["ALTER USER %s@'%%' ACCOUNT LOCK"], False),
}


def named(statements: list[str], user: str) -> list[str]:
    return [statement.replace("%s", user).replace("%%", "%") for statement in statements]


@pytest.mark.parametrize("name", SCENARIOS)
def test_revoking_on_mariadb(gateway, user, name):
    grants, settings, revokes, is_refused = SCENARIOS[name]
    for statement in named(grants, user):
        gateway.mariadb.sql(statement)
    pair = Pair(gateway, user, before=tuple(named(settings, user)))
    if name != "a column":
        # Without the definition of the whole table, Selkie caches nothing.
        pair.warm()
    for statement in named(revokes, user):
        gateway.mariadb.sql(statement)
    answer = pair.agree()
    assert is_refused is None or (answer != ROWS) is is_refused, answer
    # A new session, and one that chooses the schema again.
    assert pair.both("USE d") in ((), 1044) and pair.both(QUESTION) is not None
    if name not in ("a dropped user", "a renamed user", "locked"):
        Pair(gateway, user).both(QUESTION)


@pytest.mark.parametrize("name", ["a table", "a schema", "a role", "the public", "a dropped user", "all"])
def test_revoking_through_selkie_counts_at_once(gateway, user, name):
    grants, settings, revokes, _ = SCENARIOS[name]
    with gateway.connect() as admin:
        for statement in named(grants, user):
            gateway.mariadb.sql(statement)
        pair = Pair(gateway, user, before=tuple(named(settings, user)))
        pair.warm()
        for statement in named(revokes, user):
            assert outcome(admin, statement) == (), statement
        assert pair.both(QUESTION) != ROWS


def test_users_do_not_share_results(gateway, user):
    other = f"{user}_reader"
    gateway.mariadb.sql(f"CREATE USER {other}@'%' IDENTIFIED BY 'secret'")
    gateway.mariadb.sql(f"GRANT SELECT ON d.t TO {other}@'%'")
    reader, stranger = Pair(gateway, other), Pair(gateway, user)
    reader.warm()
    assert stranger.both(QUESTION) == 1142
    gateway.mariadb.sql(f"GRANT SELECT ON d.t TO {user}@'%'")
    assert stranger.agree() == ROWS


@pytest.mark.parametrize("leave", [
    "SET ROLE NONE", "set  /* so */ role none", "/*!50000 SET ROLE NONE */", "EXECUTE IMMEDIATE 'SET ROLE NONE'",
    "PREPARE s FROM 'SET ROLE NONE'; EXECUTE s", "SELECT 1; SET ROLE NONE", "SET @x = 1, @y = 2; SET ROLE NONE",
])
def test_leaving_a_role_counts_at_once(gateway, user, leave):
    role = f"r_{user}"
    for statement in (f"CREATE ROLE {role}", f"GRANT SELECT ON d.t TO {role}", f"GRANT {role} TO {user}@'%'"):
        gateway.mariadb.sql(statement)
    pair = Pair(gateway, user, before=(f"SET ROLE {role}",))
    pair.warm()
    for session in (pair.through, pair.direct):
        with session.cursor() as cursor:
            cursor.execute(leave)
            while cursor.nextset():
                pass
    assert pair.both(QUESTION) == 1142
    assert pair.both(f"SET ROLE {role}") == () and pair.both(QUESTION) == ROWS


def test_the_default_role_is_of_new_sessions(gateway, user):
    role = f"r_{user}"
    for statement in (f"CREATE ROLE {role}", f"GRANT SELECT ON d.t TO {role}", f"GRANT {role} TO {user}@'%'",
                      f"SET DEFAULT ROLE {role} FOR {user}@'%'"):
        gateway.mariadb.sql(statement)
    pair = Pair(gateway, user)
    pair.warm()
    gateway.mariadb.sql(f"SET DEFAULT ROLE NONE FOR {user}@'%'")
    assert pair.agree() == ROWS and Pair(gateway, user).both(QUESTION) == 1142


def test_views_by_their_definers_right(gateway, user):
    definer, view = f"{user}_definer", f"d.v_{user}"
    for statement in (
        f"CREATE USER {definer}@'%' IDENTIFIED BY 'secret'", f"GRANT SELECT ON d.t TO {definer}@'%'",
        f"CREATE DEFINER={definer}@'%' SQL SECURITY DEFINER VIEW {view} AS SELECT a FROM d.t WHERE id = 1",
        f"GRANT SELECT ON {view} TO {user}@'%'",
    ):
        gateway.mariadb.sql(statement)
    pair, question = Pair(gateway, user), f"SELECT a FROM {view}"
    for _ in range(5):
        assert pair.both(question) == ROWS and pair.both(QUESTION) == 1142
    gateway.mariadb.sql(f"REVOKE SELECT ON d.t FROM {definer}@'%'")
    assert pair.agree(question) == 1356
    gateway.mariadb.sql(f"GRANT SELECT ON d.t TO {definer}@'%'")
    assert pair.agree(question) == ROWS
    gateway.mariadb.sql(f"REVOKE SELECT ON {view} FROM {user}@'%'")
    assert pair.agree(question) == 1142


def test_another_user_on_the_same_connection(gateway, user):
    gateway.mariadb.sql(f"GRANT SELECT (id) ON d.t TO {user}@'%'")
    pair = Pair(gateway, "joe")
    pair.warm()
    assert change_user(pair.through, user, "secret")[0] == 0
    assert outcome(pair.through) == 1143
    assert change_user(pair.through, "joe", "secret")[0] == 0
    assert outcome(pair.through) == ROWS


def test_a_reset_connection_has_its_first_role(gateway, user):
    role = f"r_{user}"
    for statement in (f"CREATE ROLE {role}", f"GRANT SELECT ON d.t TO {role}", f"GRANT {role} TO {user}@'%'"):
        gateway.mariadb.sql(statement)
    pair = Pair(gateway, user, before=(f"SET ROLE {role}",))
    pair.warm()
    for session in (pair.through, pair.direct):
        session._execute_command(0x1F, b"")
        assert session._read_packet().is_ok_packet()
    pair.both(QUESTION)
    pair.both("SET ROLE NONE")
    pair.both(QUESTION)


def test_prepared_statements_check_privileges(gateway, user):
    gateway.mariadb.sql(f"GRANT SELECT ON d.t TO {user}@'%'")
    pair = Pair(gateway, user)

    def execute(session, number) -> bytes:
        session._execute_command(0x17, number + b"\0\1\0\0\0")
        return session._read_packet()

    numbers = []
    for session in (pair.through, pair.direct):
        session._execute_command(0x16, QUESTION)
        number = session._read_packet().get_all_data()[1:5]
        [session._read_packet() for _ in range(2)]
        numbers.append((session, number))

    def read(session, number):
        try:
            execute(session, number)
            return [session._read_packet().get_all_data() for _ in range(4)][2]
        except pymysql.err.MySQLError as error:
            return error.args[0]

    def is_cached() -> bool:
        before = gateway.hits()
        read(*numbers[0])
        return gateway.hits() > before

    until(is_cached)
    gateway.mariadb.sql(f"REVOKE SELECT ON d.t FROM {user}@'%'")
    time.sleep(AGE_S * 1.5)
    assert [read(*number) for number in numbers] == [1142, 1142]


def test_without_an_age_privileges_are_read_each_time(store, tmp_path):
    gateway = Privileges(tmp_path, 0)
    try:
        gateway.mariadb.sql("CREATE USER ann@'%' IDENTIFIED BY 'secret'")
        for _ in range(5):
            gateway.mariadb.sql("GRANT SELECT ON d.t TO ann@'%'")
            pair = Pair(gateway, "ann")
            pair.warm()
            gateway.mariadb.sql("SET STATEMENT sql_log_bin = 0 FOR REVOKE SELECT ON d.t FROM ann@'%'")
            assert pair.both(QUESTION) == 1142
    finally:
        gateway.remove()
