"""The evaluator beside MongoDB 6.0: seeded random updates and pipelines, results and errors compared.

The scripts run alone as well, with other seeds and more rounds; SELKIE_LANGUAGE_COUNT sets the rounds here.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.mongod import MongodServer
from support.selkie import REPOSITORY

COUNT = os.environ.get("SELKIE_LANGUAGE_COUNT", "2000")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


@pytest.fixture(scope="module")
def oracle(tmp_path_factory) -> str:
    server = MongodServer(tmp_path_factory.mktemp("oracle")).start()
    yield server.uri
    server.kill()


@pytest.fixture(scope="module")
def evaluate() -> str:
    subprocess.run(["cargo", "build", "--quiet", "-p", "query", "--example", "evaluate"], cwd=REPOSITORY, check=True)
    return str(TARGET / "debug" / "examples" / "evaluate")


@pytest.mark.parametrize("script", ["language_update.py", "language_aggregate.py"])
def test_language(oracle, evaluate, script):
    command = [sys.executable, str(Path(__file__).parent / script), "--oracle", oracle, "--evaluate", evaluate, "--count", COUNT]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
