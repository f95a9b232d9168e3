"""Asks a server which user may run which command.

    cd tests && python -m authorization.matrix           records MongoDB's answers in matrix.json
    cd tests && python -m authorization.matrix --check   compares them with those that are recorded
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import pymongo
from bson import SON, json_util
from pymongo.errors import OperationFailure

from authorization.cases import CASES, DATABASES, EXECUTED_NEVER
from authorization.users import PASSWORD, label, users
from support.mongod import MongodServer
from support.scram import log_in
from support.wire import Wire, op_msg

FILE = Path(__file__).with_name("matrix.json")
UNAUTHORIZED = 13
# Several commands are sent before the first reply is read, which saves most of the time.
SENT_TOGETHER = 32
ROOT = ("matrix root", PASSWORD)


def prepare(port: int):
    """Creates the users and the collections, as the first user."""
    with pymongo.MongoClient(port=port) as nobody:
        nobody.admin.command("createUser", ROOT[0], pwd=ROOT[1], roles=["root", "__system"])
    with pymongo.MongoClient(port=port, username=ROOT[0], password=ROOT[1]) as client:
        for user in users()[1:]:
            database = client[user["db"]]
            if "privileges" in user:
                database.command("createRole", user["roles"][0]["role"], privileges=user["privileges"], roles=[])
            database.command("createUser", user["user"], pwd=PASSWORD, roles=user["roles"], mechanisms=["SCRAM-SHA-256"])
        for database in DATABASES:
            for name in ("c", "d", "e"):
                client[database][name].insert_one({"_id": 1, "a": 1})
                client[database][name].create_index("a")
            client[database].command("create", "v", viewOn="c", pipeline=[])
            try:
                client[database].command("create", "t", timeseries={"timeField": "t"})
            except OperationFailure:
                assert database == "admin"


def connect(port: int, user: SON) -> Wire:
    connection = Wire(port)
    if user["user"]:
        reply = log_in(connection, user["user"], PASSWORD, user["db"])
        assert reply["ok"], (user, reply)
    return connection


def commands():
    """Yields each case on each database; `logout` last, and once."""
    cases = [(name, database) for name in CASES if name != "logout" for database in DATABASES]
    for name, database in [*cases, ("logout", DATABASES[0])]:
        yield name, database, SON(CASES[name](database)) | {"$db": database}


def ask(port: int, user: SON, skip=lambda name, database: False) -> dict[tuple[str, str], str | None]:
    """Returns the message of each command that the user may not run, and None for the others."""
    answers = {}
    asked = [case for case in commands() if not skip(*case[:2])]
    with connect(port, user) as connection:
        for start in range(0, len(asked), SENT_TOGETHER):
            together = asked[start : start + SENT_TOGETHER]
            connection.send(b"".join(op_msg(command) for _, _, command in together))
            for name, database, _ in together:
                reply = connection.receive_reply()
                answers[name, database] = reply["errmsg"] if reply.get("code") == UNAUTHORIZED else None
    return answers


def may_shut_down(user: SON) -> bool:
    return user["user"] in ("clusterAdmin", "hostManager", "root", "__system")


def asked_for(user: SON):
    """Returns whether a case is skipped for a user, because it would do harm."""
    return lambda name, database: name in EXECUTED_NEVER and database == "admin" and may_shut_down(user)


def answers_of(port: int) -> list[dict[tuple[str, str], str | None]]:
    """Returns the answers to each user."""
    return [ask(port, user, asked_for(user)) for user in users()]


def record(port: int) -> dict:
    answers = answers_of(port)
    cases = []
    for name, database, command in commands():
        messages, letters = [], ""
        for answer in answers:
            message = answer.get((name, database))
            if message is not None and message not in messages:
                messages.append(message)
            letters += "." if message is None else str(messages.index(message))
        command = json.loads(json_util.dumps(command, json_options=json_util.CANONICAL_JSON_OPTIONS))
        cases.append({"name": name, "database": database, "command": command, "denied": letters, "messages": messages})
    return {"users": [json.loads(json_util.dumps(user)) for user in users()], "cases": cases}


def differences(port: int, known=()) -> list[str]:
    """Asks a server, and returns its answers that are not the recorded ones. `known`: names of
    cases that are left out."""
    different = []
    answers = answers_of(port)
    for case in expectations()["cases"]:
        place, messages = (case["name"], case["database"]), case["messages"]
        for user, answer, letter in zip(users(), answers, case["denied"], strict=True):
            expected = None if letter == "." else messages[int(letter)]
            if case["name"] not in known and place in answer and answer[place] != expected:
                different.append(f"{' on '.join(place)} as {label(user)}: {answer[place]!r}, expected {expected!r}")
    return different


def expectations() -> dict:
    return json.loads(FILE.read_text())


def write(matrix: dict):
    """Writes one line for each user and each case."""
    parts = [f'"{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for key, rows in matrix.items()]
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of recording")
    options = parser.parse_args()
    different = []
    with tempfile.TemporaryDirectory() as folder:
        server = MongodServer(Path(folder), options=("--auth",)).start()
        try:
            prepare(server.port)
            if options.check:
                different = differences(server.port)
            else:
                write(record(server.port))
        finally:
            server.stop()
    print("\n".join(different), end="")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
