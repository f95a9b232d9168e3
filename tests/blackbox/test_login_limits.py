"""Limits with access control: wrong passwords, messages before the login, cursors of a user."""

import time

import pymongo
import pytest
from pymongo.errors import OperationFailure

from support.selkie import SelkieServer
from support.wire import Wire, op_compressed_zlib, op_msg

pytestmark = pytest.mark.selkie_only

SETTINGS = """
[limits]
login-failures = 2
login-delay-seconds = 2
user-cursors = 3
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logins")
    file = folder / "selkie.toml"
    file.write_text(SETTINGS)
    server = SelkieServer(folder / "selkie", None, ("--config", str(file), "--threads", "2", "--auth")).start()
    with server.client() as first:
        first.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with log_in(server, "root") as root:
        root.admin.command("createUser", "other", pwd="secret", roles=["readAnyDatabase"])
        root.test.c.insert_many([{"_id": n} for n in range(10)])
    yield server
    server.remove()


def log_in(server, user: str, password: str = "secret") -> pymongo.MongoClient:
    return server.client(username=user, password=password, authSource="admin", maxPoolSize=20)


def attempt(server, user: str, password: str) -> tuple[int, float]:
    """The code of an attempt to log in, and how long it took."""
    began = time.monotonic()
    try:
        with log_in(server, user, password) as client:
            client.test.c.find_one()
            return 0, time.monotonic() - began
    except OperationFailure as error:
        return error.code, time.monotonic() - began


def test_wrong_passwords_are_answered_later_and_later(server):
    for user in ("other", "nobody"):
        attempts = [attempt(server, user, "wrong") for _ in range(7)]
        assert {code for code, _ in attempts} == {18}
        # Two are free, one is the first that counts; then 0.1, 0.2, 0.4 and 0.8 seconds.
        seconds = [seconds for _, seconds in attempts]
        assert seconds[6] > 0.75 and sum(seconds[3:]) > 1.4, seconds
        # Others are not delayed meanwhile.
        with log_in(server, "root") as root:
            began = time.monotonic()
            root.test.c.find_one()
            assert time.monotonic() - began < max(1, seconds[0] * 5)
    # The delay counts from the last failure.
    assert attempt(server, "other", "wrong")[0] == 18
    code, seconds = attempt(server, "other", "secret")
    assert code == 0 and seconds > 0.9, "the right password waits as well"
    assert attempt(server, "other", "secret")[1] < 0.9, "and then the failures are forgiven"


def test_messages_before_the_login_are_short(server):
    long = op_msg({"ping": 1, "comment": "x" * 20_000, "$db": "admin"})
    for message in (long, long[:16], op_compressed_zlib(long)):
        with Wire(server.port) as wire:
            assert wire.run({"ping": 1, "comment": "x" * 10_000, "$db": "admin"})["ok"] == 1
            wire.send(message)
            assert wire.is_closed_by_server()
    assert "bytes came before the login, where 16384 bytes are the most" in server.log.read_text()
    with log_in(server, "root") as root:
        assert root.admin.command("ping", comment="x" * 1_000_000)["ok"] == 1


def test_a_user_may_have_some_cursors(server):
    with log_in(server, "root") as root, log_in(server, "other") as other:
        cursors = [root.test.c.find(batch_size=1) for _ in range(4)]
        for cursor in cursors[:3]:
            cursor.next()
        with pytest.raises(OperationFailure) as refused:
            cursors[3].next()
        assert refused.value.code == 146 and "cursors of this user" in str(refused.value)
        assert other.test.c.find(batch_size=1).next() == {"_id": 0}
        cursors[0].close()
        time.sleep(0.2)
        assert root.test.c.find(batch_size=1).next() == {"_id": 0}
