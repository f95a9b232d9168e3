"""Asks Selkie and MongoDB 6.0 the same commands and compares the answers: fields, types, values, codes, messages.

By hand, against servers that run: python tests/compat/test_commands.py PORT ORACLE_PORT [GROUP …]
"""

import datetime
import re
import sys
from pathlib import Path

import bson
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from compat.command_cases import CURSOR, GROUPS, Differs
from support.wire import Wire

# What differs from run to run, or says who answers.
VOLATILE = {"localTime", "connectionId", "processId", "uuid", "you", "millis", "lastUse", "oidMachine", "host"}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def normal(value, key=""):
    """The value with everything volatile replaced by its type."""
    if isinstance(value, dict):
        return {name: normal(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [normal(inner) for inner in value]
    if key == "id" and isinstance(value, bson.Int64):
        return "<cursor>" if value else value
    if key in VOLATILE or isinstance(value, (bson.ObjectId, datetime.datetime, bson.Binary)):
        return f"<{type(value).__name__}>"
    if key == "errmsg":
        # What MongoDB's planner saw, in a spelling of its own.
        value = re.sub(r"ns=\S+Tree: .*\nSort: .*\nProj: .*\n(Collation: .*\n)? ", "", value)
        value = re.sub(r"Index build failed: \S+: Collection \S+ \( \S+ \) :: caused by :: ", "", value)
        return re.sub(r"cursor (id )?\d+", "cursor", UUID.sub("<uuid>", value))
    return value


def same(ours, theirs) -> bool:
    """Equality that tells the types of numbers apart; documents may have their fields in any order."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[name], theirs[name]) for name in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and (ours == theirs or ours != ours and theirs != theirs)



def body(command: dict, cursor: bson.Int64) -> dict:
    """The command as it is sent: with its database, and with the id of the cursor at hand."""
    command = {**command, "$db": command.get("$db", "compat")}
    if command.get("getMore") == CURSOR:
        command["getMore"] = cursor
    if command.get("cursors") == [CURSOR]:
        command["cursors"] = [cursor]
    return command


class Side:
    """A server that is asked, and the cursor it gave last."""

    def __init__(self, port: int):
        self.wire = Wire(port)
        self.cursor = bson.Int64(1)

    def ask(self, command: dict) -> dict:
        reply = self.wire.run(body(command, self.cursor))
        given = reply.get("cursor")
        if given and "firstBatch" in given:
            self.cursor = given["id"] or self.cursor
        reply = normal(reply)
        for ids in ("cursorsKilled", "cursorsNotFound"):
            if ids in reply and reply[ids]:
                reply[ids] = ["<cursor>"]
        return reply


def compare(group: str, port: int, oracle_port: int) -> list[str]:
    """The differences, a paragraph each."""
    differences = []
    ours, theirs = Side(port), Side(oracle_port)
    for side in (ours, theirs):
        side.ask({"dropDatabase": 1})
    for case in GROUPS[group]:
        command = case.command if isinstance(case, Differs) else case
        our, their = ours.ask(command), theirs.ask(command)
        agree = same(our, their)
        if isinstance(case, Differs) and agree:
            differences.append(f"{command}\n  agrees by now: {case.reason}")
        elif not isinstance(case, Differs) and not agree:
            differences.append(f"{str(command)[:300]}\n  Selkie   {str(our)[:700]}\n  MongoDB  {str(their)[:700]}")
    return differences


@pytest.fixture(scope="session")
def mongod(tmp_path_factory):
    from support.mongod import MongodServer

    server = MongodServer(tmp_path_factory.mktemp("mongod")).start()
    yield server
    server.remove()


@pytest.mark.parametrize("group", GROUPS)
def test_commands(server, mongod, group):
    differences = compare(group, server.port, mongod.port)
    assert not differences, "\n" + "\n".join(differences)


def main():
    (port, oracle_port), groups = map(int, sys.argv[1:3]), sys.argv[3:] or GROUPS
    for group in groups:
        differences = compare(group, port, oracle_port)
        print(f"=== {group}: {len(differences)} of {len(GROUPS[group])} differ")
        print("\n".join(differences))


if __name__ == "__main__":
    main()
