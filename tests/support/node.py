"""Programs of Node.js that use Selkie, kept in tests/node."""

import os
import subprocess
from pathlib import Path

NODE = Path(__file__).resolve().parents[1] / "node"


def run(program: list[str], home: Path) -> str:
    """Runs a program in a folder and returns its output; fails the test if the program fails."""
    # mongosh keeps a history and a log in the home folder; not in the user's.
    environment = {**os.environ, "HOME": str(home), "NODE_NO_WARNINGS": "1"}
    done = subprocess.run(
        program, cwd=NODE, env=environment, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
