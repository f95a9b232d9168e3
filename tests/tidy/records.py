"""The record of numbers that only fall: phrases of a kind, long lines and circles, by crate.

A check fails if a number is higher than recorded, and also if it has fallen far enough that the
record must be lowered (`tests/tools/tidy --record`). So the prose and the layout only improve.
"""

import json
from pathlib import Path

from . import circles, prose

FILE = Path(__file__).with_name("records.json")
# A number may be this much below its record before the record must be lowered: a share of it, and
# an absolute number.
MARGIN = 0.2
MARGIN_MIN = 5

# By part of the repository (a crate, `tests`, `docs`, `fuzz`) and by kind of number.
Numbers = dict[str, dict[str, int]]


def current() -> Numbers:
    sizes = circles.largest_circles()
    numbers = {}
    for part, files in prose.parts().items():
        counts, _ = prose.measure(files)
        numbers[part] = {kind: counts[kind] for kind in prose.BAD_KINDS}
        numbers[part]["circles"] = sizes.get(part, 0)
    return numbers


def recorded() -> Numbers:
    return json.loads(FILE.read_text())


def compare(numbers: Numbers, record: Numbers) -> tuple[list[str], list[str]]:
    """Returns the numbers above their record, and the numbers so far below that the record must be
    lowered."""
    higher, lower = [], []
    for part, by_kind in numbers.items():
        for kind, number in by_kind.items():
            allowed = record.get(part, {}).get(kind, 0)
            tool = "circles" if kind == "circles" else "prose"
            if number > allowed:
                places = f"`tests/tools/{tool} --list {part}` shows each place"
                higher.append(f"{part}: {kind} has risen from {allowed} to {number}; {places}")
            elif allowed - number > max(MARGIN_MIN, MARGIN * allowed):
                lower.append(f"{part}: {kind} has fallen from {allowed} to {number}; run `tests/tools/tidy --record`")
    return higher, lower


def lower() -> None:
    """Lowers each number of the record to the present one. Raises none, but adds new parts."""
    record = recorded() if FILE.exists() else {}
    lines = []
    for part, by_kind in sorted(current().items()):
        old = record.get(part, by_kind)
        numbers = {kind: min(number, old.get(kind, number)) for kind, number in by_kind.items()}
        lines.append(f"  {json.dumps(part)}: {json.dumps(numbers)}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
