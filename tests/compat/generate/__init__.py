"""A seeded generator of documents and commands, and the run that sends them to both servers and
minimizes each difference.

A round is a pair of collections, a number of reads of them, and a number of writes, each to fresh
documents. The same seed asks the same.
"""

import re
from collections import Counter

from compat.ask import Block, Difference, Pair
from compat.case import COLLECTION
from compat.generate.commands import READ_WEIGHTS, READS, SETUPS, WRITE_WEIGHTS, WRITES, Commands
from compat.generate.shrink import shrink

# Takes indexes away again.
CLEARING = [{"dropIndexes": COLLECTION, "index": "*"}]
READS_PER_ROUND, WRITES_PER_ROUND = 80, 20
# The number of differences of one signature that are minimized and reported; others are similar.
REPORTED_PER_SIGNATURE = 3


def run(pair: Pair, seed: int, count: int, tally: Counter, kinds=(), shrinking: bool = True) -> list[Difference]:
    """Sends `count` random commands, of these kinds or of all."""
    differences, seen, asked, number = [], Counter(), 0, 0
    pair.reset(Block("random", [], {COLLECTION: [], "other": [], "new": []}))
    while asked < count:
        commands = Commands(seed * 1_000_003 + number)
        number += 1
        for block in round_of(commands, kinds, min(count - asked, READS_PER_ROUND + WRITES_PER_ROUND)):
            asked += len(block.cases)
            for difference in ask(pair, block, tally):
                signature = signature_of(difference)
                seen[signature] += 1
                if seen[signature] <= REPORTED_PER_SIGNATURE:
                    differences.append(shrink(pair, difference, block.writes) if shrinking else difference)
            if block.setup:
                pair.ask(CLEARING)
    return differences


def round_of(commands: Commands, kinds, count: int):
    """The blocks of one round, one per kind of command."""
    reads = [name for name in READS if not kinds or name in kinds]
    writes = [name for name in WRITES if not kinds or name in kinds]
    reading = count if not writes else 0 if not reads else count * READS_PER_ROUND // (READS_PER_ROUND + WRITES_PER_ROUND)
    collections = {COLLECTION: commands.placed_documents(10, 24), "other": commands.documents(0, 6)}
    yield from blocks(commands, reads, READS, READ_WEIGHTS, reading, collections, False)
    collections = {COLLECTION: commands.documents(1, 4), "other": commands.documents(0, 3), "new": []}
    yield from blocks(commands, writes, WRITES, WRITE_WEIGHTS, count - reading, collections, True)


def blocks(commands, names, makers, weights, count, collections, writes):
    if not names or not count:
        return
    weight = dict(zip(makers, weights))
    chosen = commands.random.choices(names, [weight[name] for name in names], k=count)
    for name in sorted(set(chosen)):
        cases = [makers[name](commands) for _ in range(chosen.count(name))]
        setup = SETUPS[name](commands) if name in SETUPS else []
        yield Block(f"random {name}", cases, collections, setup, writes=writes)


def ask(pair: Pair, block: Block, tally: Counter) -> list[Difference]:
    """Like `Pair.run`, without dropping the database each time."""
    pair.set_up(block.setup, block.collections)
    if block.writes:
        answers = pair.run_writes(block)
    else:
        pair.ask(pair.load(block.collections))
        answers = [[found] for found in pair.ask(block.cases)]
    differences = []
    for case, pairs in zip(block.cases, answers, strict=True):
        differences += pair.judge(block, case, pairs, tally)
    return differences


def signature_of(difference: Difference) -> tuple:
    """Returns the signature of a difference: kind, and codes or operators."""
    codes = tuple(re.findall(r"^error (-?\d+)|^$", text) for text in (difference.ours, difference.theirs))
    if any(codes):
        return difference.family, str(codes)
    return difference.family, tuple(sorted(set(re.findall(r"'(\$\w+)'", str(difference.command))))[:4])
