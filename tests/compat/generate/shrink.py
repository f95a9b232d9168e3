"""Minimizes a difference: removes parts of documents and command while the servers still differ in
the same way."""

import re
from collections import Counter

from bson import Int64

from compat.ask import Block, Difference, Pair
from compat.case import COLLECTION

ATTEMPTS_MAX = 400


def shrink(pair: Pair, difference: Difference, writes: bool) -> Difference:
    attempts = ATTEMPTS_MAX
    best, kind = difference, kind_of(difference)
    # One of several indexes is enough to be wrong with.
    for one in difference.setup if len(difference.setup) > 1 and "view" not in difference.family else ():
        pair.ask([{"dropIndexes": COLLECTION, "index": "*"}])
        found = ask_one(pair, difference, difference.collections, difference.command, writes, [one])
        if found and kind_of(found) == kind:
            best = found
            break
    else:
        pair.set_up(difference.setup, difference.collections)
    improved = True
    while improved and attempts > 0:
        improved = False
        for collections, command in smaller(best.collections, best.command):
            attempts -= 1
            if attempts <= 0:
                break
            found = ask_one(pair, best, collections, command, writes)
            if found and kind_of(found) == kind:
                best, improved = found, True
                break
    return best


def kind_of(difference: Difference) -> tuple:
    return tuple(re.match(r"error -?\d+|", text).group() for text in (difference.ours, difference.theirs))


def ask_one(pair: Pair, like: Difference, collections: dict, command: dict, writes: bool, setup=()) -> Difference | None:
    """Sends the command again, in the present setup or in this `setup`."""
    block = Block(like.family, [command], collections, list(setup) or like.setup, writes=writes)
    try:
        pair.set_up(list(setup), collections)
        if writes:
            pairs = pair.run_writes(block)[0]
        else:
            pair.ask(pair.load(collections))
            pairs = pair.ask([command])
    except (OverflowError, ValueError):
        return None
    # A difference with a reason would lead away from the one that has none.
    return next(iter(pair.judge(block, command, pairs, Counter())), None)


def smaller(collections: dict, command: dict):
    """Somewhat smaller cases, the boldest first."""
    for name, documents in collections.items():
        if len(documents) > 3:
            half = len(documents) // 2
            yield {**collections, name: documents[:half]}, command
            yield {**collections, name: documents[half:]}, command
        for index in range(len(documents)):
            yield {**collections, name: documents[:index] + documents[index + 1 :]}, command
    first = next(iter(command))
    for name, value in command.items():
        if name == first:
            continue
        if name not in ("cursor", "pipeline", "updates", "deletes", "documents", "key", "query", "update"):
            yield collections, {other: held for other, held in command.items() if other != name}
        for less in simpler(value):
            yield collections, {**command, name: less}
    for name, documents in collections.items():
        for index, document in enumerate(documents):
            for less in simpler(document):
                if "_id" in less:
                    yield {**collections, name: [*documents[:index], less, *documents[index + 1 :]]}, command


def simpler(value):
    """Yields values with a part removed, or replaced by a part."""
    if isinstance(value, dict):
        for name in value:
            yield {other: held for other, held in value.items() if other != name}
        for name, held in value.items():
            for less in [*parts(held), *simpler(held)]:
                yield {**value, name: less}
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, held in enumerate(value):
            for less in [*parts(held), *simpler(held)]:
                yield [*value[:index], less, *value[index + 1 :]]
    elif isinstance(value, str) and len(value) > 1 and not value.startswith("$"):
        yield value[0]
    elif isinstance(value, (int, Int64)) and not isinstance(value, bool) and abs(value) > 1:
        yield type(value)(1)


def parts(value):
    """Yields the parts of a value, to replace the whole."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    if isinstance(value, (dict, list)) and value:
        yield 1
