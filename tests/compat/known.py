"""Differences that are known wherever they appear, each with its reason and how it is recognized.

One that belongs to a single case stands beside that case (`differs`).
"""

import decimal
import re

from compat.compare import code_of, same, shown

ENGINE = "MongoDB 6.0 runs leading $group and $lookup stages in a second engine; its first, asked as well, answers as we do"
LAST_DIGIT = "MongoDB's decimal library is not correctly rounded: the last of 34 digits, or whether zeros follow"
NO_TEXT = "MongoDB cuts letters of several bytes in two and answers with what is no UTF-8"
FIRST_MET = "which of several mistakes is met first; for one of the documents or fields alone MongoDB answers as we do"
HALF_DONE = "of a write that fails MongoDB leaves behind what it has written so far"
PLACE_KEPT = "a field that one stage takes away and a later one sets keeps its place in MongoDB"
READ_BACK = "MongoDB 6.0 cannot read back $elemMatch with $all where its optimizer writes out a $match"

TAKING = {"$project", "$unset", "$unwind", "$replaceRoot", "$replaceWith"}
SETTING = {"$project", "$set", "$addFields", "$unwind", "$lookup", "$graphLookup"}
NUMBER = re.compile(r"Decimal128\('(-?)([0-9.]+)(E[+-]\d+)?'\)")


def _rounded(match: re.Match) -> str:
    with decimal.localcontext(prec=31):
        return str((+decimal.Decimal("".join(part or "" for part in match.groups()))).normalize())


def _last_digit(command, ours: str, theirs: str) -> bool:
    if not re.search(r"\$(pow|exp|ln|log|log10|sqrt|a?(sin|cos|tan)h?|atan2|(degrees|radians)To)", str(command)):
        return False
    return "Decimal128" in theirs and NUMBER.sub(_rounded, ours) == NUMBER.sub(_rounded, theirs)


def _stages(command) -> list[str]:
    """The names of all stages, those of pipelines within stages in their places."""
    if isinstance(command, dict):
        return [name for key, value in command.items() for name in [key, *_stages(value)]]
    return [name for value in command for name in _stages(value)] if isinstance(command, list) else []


def _place_kept(command, ours: str, theirs: str) -> bool:
    names = _stages(command)
    first = next((place for place, name in enumerate(names) if name in TAKING), len(names))
    return sorted(ours) == sorted(theirs) and not ours.startswith("error") and not SETTING.isdisjoint(names[first + 1 :])


KNOWN = {
    LAST_DIGIT: _last_digit,
    NO_TEXT: lambda command, ours, theirs: "a message that is no text" in theirs,
    PLACE_KEPT: _place_kept,
    READ_BACK: lambda command, ours, theirs: "Failed to optimize" in theirs and "unknown top level operator: $eq" in theirs,
}


def known_reason(command: dict, ours: bytes, theirs: bytes, asked) -> str | None:
    """Why two answers differ. `asked` puts more questions to MongoDB."""
    our, their = shown(ours, 1 << 24), shown(theirs, 1 << 24)
    for reason, applies in KNOWN.items():
        if applies(command, our, their):
            return reason
    if asked.wrote_before_failing():
        return HALF_DONE
    code = code_of(ours)
    if code and code_of(theirs) and any(code == code_of(answer) for answer in asked.alone()):
        return FIRST_MET
    answer = asked.classic()
    return ENGINE if answer is not None and same(command, ours, answer) else None
