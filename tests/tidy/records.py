"""The record of numbers that only fall: words of a kind, long lines and circles, by crate.

A check fails if a number is higher than recorded, and also if it has fallen far enough that the
record must be lowered (`tests/tools/tidy --record`). So mended places stay mended.
"""

import json
from pathlib import Path

from . import circles, prose

FILE = Path(__file__).with_name("records.json")
# A number may be this much below its record before the record must be lowered: a part of it, and an
# absolute number.
MARGIN = 0.2
MARGIN_MIN = 5

Numbers = dict[str, dict[str, int]]


def current() -> Numbers:
    """Returns the present numbers, by name of the number and by crate. Zeros are left out."""
    numbers: Numbers = {kind: {} for kind in [*prose.BAD_KINDS, "circles"]}
    for part, files in prose.parts().items():
        counts, _ = prose.measure(files)
        for kind in prose.BAD_KINDS:
            numbers[kind][part] = counts[kind]
    numbers["circles"] = circles.largest_circles()
    return {kind: {part: number for part, number in by_part.items() if number} for kind, by_part in numbers.items()}


def recorded() -> Numbers:
    return json.loads(FILE.read_text())


def compare(numbers: Numbers, record: Numbers) -> tuple[list[str], list[str]]:
    """Returns the numbers above their record, and the numbers so far below that the record must be
    lowered."""
    higher, lower = [], []
    for kind, by_part in numbers.items():
        for part in sorted({*by_part, *record.get(kind, {})}):
            number, allowed = by_part.get(part, 0), record.get(kind, {}).get(part, 0)
            where = f"tests/tools/circles --list {part}" if kind == "circles" else f"tests/tools/prose --list {part}"
            if number > allowed:
                higher.append(f"{part}: {kind} has risen from {allowed} to {number}; `{where}` shows each place")
            elif allowed - number > max(MARGIN_MIN, MARGIN * allowed):
                lower.append(f"{part}: {kind} has fallen from {allowed} to {number}: lower the record, by `tests/tools/tidy --record`")
    return higher, lower


def lower() -> None:
    """Lowers every record to its present number; raises none, except for parts that have no record
    yet."""
    record = recorded() if FILE.exists() else {}
    known = {part for by_part in record.values() for part in by_part}
    numbers = {
        kind: {
            part: number if part not in known else min(number, record.get(kind, {}).get(part, 0))
            for part, number in by_part.items()
        }
        for kind, by_part in current().items()
    }
    text = json.dumps({kind: {p: n for p, n in sorted(by.items()) if n} for kind, by in numbers.items()}, indent=1)
    FILE.write_text(text + "\n")
