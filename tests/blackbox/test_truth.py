"""No stale reads: `selkie bench truth` reads and writes at random over many connections, and holds every answer against what may be true."""

import pytest

from support import selkie

pytestmark = pytest.mark.selkie_only


def truth(uri: str, *options: str) -> str:
    done = selkie.run("bench", "truth", "--uri", uri, "--connections", "32", "--documents", "512", *options, timeout_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_without_a_cache(server):
    printed = truth(server.uri, "--seconds", "5")
    assert " 0  wrong answers" in printed
    for kind in ("find by _id", "find in batches", "$lookup", "update of many", "findAndModify", "rename, drop"):
        assert f"  {kind}\n" in printed
