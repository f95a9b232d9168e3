"""Sends the same commands to Selkie and MongoDB 6.0 and compares the replies: the cases, and seeded
random commands.

`SELKIE_RANDOM` says how many random commands there are (half of them on MariaDB), `SELKIE_SEED`
which.
"""

import os

import pytest

from compat.ask import Pair
from compat.cases import blocks
from compat.generate import run

RANDOM_COUNT = int(os.environ.get("SELKIE_RANDOM", "4000"))
SEED = int(os.environ.get("SELKIE_SEED", "1"))
SHOWN_MAX = 20

BLOCKS = blocks()


def check(differences: list):
    shown = "\n\n".join(map(str, differences[:SHOWN_MAX]))
    assert not differences, f"{len(differences)} answers differ\n\n{shown}"


@pytest.mark.parametrize("family", dict.fromkeys(block.family for block in BLOCKS))
def test_cases(pair: Pair, tally, family):
    check([difference for block in BLOCKS if block.family == family for difference in pair.run(block, tally)])


@pytest.mark.timeout(3600)
def test_random(pair: Pair, tally, store):
    count = RANDOM_COUNT if store == "embedded" else RANDOM_COUNT // 2
    check(run(pair, SEED, count, tally))
