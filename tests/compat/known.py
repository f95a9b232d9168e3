"""Differences that are known wherever they appear, each with its reason and how it is recognized.

One that belongs to a single case stands beside that case (`differs`).
"""

import decimal
import re

from compat.compare import same, shown

ENGINE = "MongoDB 6.0 runs leading $group and $lookup stages in a second engine, which has codes of its own; its first gives ours"
LAST_DIGIT = "MongoDB's decimal library is not correctly rounded: the last of 34 digits, or whether zeros follow"
MAX_KEY = "in that second engine MongoDB 6.0.5 mistakes MinKey and MaxKey for documents, and code for text"
NO_TEXT = "MongoDB cuts letters of several bytes in two and answers with what is no UTF-8"
OPTIMIZED = "which error is met first depends on what the optimizer has moved or left out"

NUMBER = re.compile(r"Decimal128\('(-?)([0-9.]+)(E[+-]\d+)?'\)")


def _rounded(match: re.Match) -> str:
    with decimal.localcontext(prec=31):
        return str((+decimal.Decimal("".join(part or "" for part in match.groups()))).normalize())


def _last_digit(command, ours: str, theirs: str) -> bool:
    if not re.search(r"\$(pow|exp|ln|log|log10|sqrt|a?(sin|cos|tan)h?|atan2|(degrees|radians)To)", str(command)):
        return False
    return "Decimal128" in theirs and NUMBER.sub(_rounded, ours) == NUMBER.sub(_rounded, theirs)


KNOWN = {
    LAST_DIGIT: _last_digit,
    MAX_KEY: lambda command, ours,
        theirs: "{'': MaxKey()}" in theirs or "{'': MinKey()}" in theirs or "Code(" in ours and "$group" in str(command),
    NO_TEXT: lambda command, ours, theirs: "a message that is no text" in theirs,
}


def known_reason(command: dict, ours: bytes, theirs: bytes, classic) -> str | None:
    """Why two answers differ; `classic` gives MongoDB's answer from its first engine, or `None`."""
    our, their = shown(ours, 1 << 24), shown(theirs, 1 << 24)
    for reason, applies in KNOWN.items():
        if applies(command, our, their):
            return reason
    if "aggregate" in command and our.startswith("error") and their.startswith("error"):
        answer = classic()
        return ENGINE if answer is not None and same(command, ours, answer) else None
    return None
