"""No stale reads of SQL clients for any way to change a table: a short run of the checker in
sql_stale_reads.py.

SELKIE_SQL_STALE_SECONDS lets each run go on for longer."""

import os

import pytest

from blackbox.sql_stale_reads import WAYS, check

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

SECONDS = float(os.environ.get("SELKIE_SQL_STALE_SECONDS", "6"))


@pytest.mark.parametrize("foreign_writes", ["none", "follow", "strict"])
def test_no_answer_is_older_than_a_write_that_was_acknowledged(store, tmp_path, foreign_writes):
    checker, figures = check(tmp_path, SECONDS, foreign_writes)
    print(checker.counts, figures)
    assert not checker.wrong
    assert checker.counts["writes"] > len(WAYS) and checker.counts["grants"] and figures["hits"] > 100
