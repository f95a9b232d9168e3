"""Logs of JSON lines."""

import json
from pathlib import Path


def entries(path: Path) -> list[dict]:
    """Returns the entries of a log; without the last line if it is being written."""
    lines, _, _ = path.read_text().rpartition("\n")
    return [json.loads(line) for line in lines.splitlines()]
