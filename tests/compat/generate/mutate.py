"""The written cases, each with one part of the command changed: typical errors of users, and
untested combinations.

A part is replaced by a value of another type, by a part of another case, or is removed, doubled or
renamed. The same seed generates the same commands.
"""

import copy
import datetime
import random
from collections import Counter
from dataclasses import replace

import bson
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from compat.ask import Difference, Pair, plain
from compat.case import Block
from compat.cases import blocks
from compat.compare import code_of

ODD = [
    None, True, False, 0, 1, -1, 2, 3.0, 1.5, -0.0, float("nan"), float("inf"), Int64(2**40), Int64(-(2**63)), 2**31 - 1, 1e300, Decimal128("2"), Decimal128("NaN"),
    "", "a", "v", "$a", "$$ROOT", "$_id", "$", "a.b", "a.", "$a.$b", "1", [], [1], [None], ["a"], [[]], [{}], [1, 2], {}, {"a": 1}, {"$a": 1}, {"$literal": 1}, {"$gt": 1},
    {"a.b": 1}, {"": 1}, {"$add": [1, "a"]}, datetime.datetime(2020, 1, 1), ObjectId("5f00000000000000000000aa"), Regex("a", "i"), Regex("("), Binary(b"x"), Timestamp(1, 1), MinKey(), MaxKey(),
    Code("1"),
]
# Commands that end or halt a server, or that answer for as long as one lets them.
LEFT_ALONE = {"shutdown", "fsync", "fsyncUnlock", "setParameter", "killOp", "killAllSessions", "dropConnections", "profile", "getLog"}


def run(pair: Pair, seed: int, count: int, tally: Counter, names=()) -> list[Difference]:
    """Sends `count` mutated cases of these families, or of all."""
    chance, differences = random.Random(seed), []
    chosen = [block for block in blocks() if not block.only and (not names or any(name in block.family for name in names))]
    chosen = [kept for block in chosen if (kept := answered(pair, block)).cases]
    weights = [len(block.cases) for block in chosen]
    asked = 0
    while asked < count:
        block = chance.choices(chosen, weights)[0]
        other = chance.choices(chosen, weights)[0]
        changed = changed_block(chance, block, other)
        asked += 1 if block.script else len(changed.cases)
        found = pair.run(changed, tally)
        differences += found[:1] if block.script else found
    return differences


def answered(pair: Pair, block: Block) -> Block:
    """Returns the block without cases that MongoDB refuses: the order of two errors in one command
    is not worth testing here."""
    if block.script:
        return block
    pair.reset(block)
    if not block.writes:
        pair.ask(pair.load(block.collections))
    answers = [found[0] for found in pair.run_writes(block)] if block.writes else pair.ask([plain(case) for case in block.cases])
    return replace(block, cases=[case for case, (_, theirs) in zip(block.cases, answers) if code_of(theirs) is None])


def changed_block(chance: random.Random, block: Block, other: Block) -> Block:
    """Returns the block with each command changed; in a script with one changed, as later commands
    depend on it."""
    donors = [plain(case) for case in chance.sample(block.cases, min(20, len(block.cases))) + chance.sample(other.cases, min(3, len(other.cases)))]
    cases = [plain(case) for case in block.cases]
    if block.script:
        at = chance.randrange(len(cases))
        cases = [*cases[:at], changed(chance, cases[at], donors), *cases[at + 1 :]]
    else:
        cases = [changed(chance, case, donors) for case in chance.sample(cases, min(60, len(cases)))]
    return replace(block, cases=cases, messages=False)


def changed(chance: random.Random, command: dict, donors: list) -> dict:
    name = next(iter(command))
    if name in LEFT_ALONE or "getMore" in command:
        return command
    original, command = command, copy.deepcopy(command)
    places = list(places_of(command, first=name))
    if not places:
        return command
    holder, key = chance.choice(places)
    way = chance.random()
    if way < 0.5:
        holder[key] = copy.deepcopy(chance.choice(ODD))
    elif way < 0.7:
        parts = [donor_holder[donor_key] for donor in donors for donor_holder, donor_key in places_of(donor, first=next(iter(donor)))]
        holder[key] = copy.deepcopy(chance.choice(parts)) if parts else None
    elif way < 0.8:
        del holder[key]
    elif way < 0.86:
        holder[key] = [holder[key]]
    elif way < 0.9:
        holder[key] = {chance.choice(["$not", "$and", "$eq", "a", "$abs", "$expr", "$literal"]): holder[key]}
    elif isinstance(holder, dict):
        names = [other for donor in donors for other_holder, other in places_of(donor, first=next(iter(donor))) if isinstance(other_holder, dict)]
        renamed = chance.choice(names or ["x"])
        held = {renamed if one == key else one: value for one, value in holder.items()}
        holder.clear()
        holder.update(held)
    else:
        holder.insert(key, copy.deepcopy(holder[key]))
    try:
        bson.encode(command)
    except (bson.errors.InvalidDocument, OverflowError, TypeError):
        return original
    return command


def places_of(held, first=None):
    """Returns the positions of the parts of a command: the container and the name or index. The
    command's name is not a part."""
    for key, value in list(held.items()) if isinstance(held, dict) else list(enumerate(held)):
        if key != first and key != "$db":
            yield held, key
        if isinstance(value, (dict, list)):
            yield from places_of(value)
