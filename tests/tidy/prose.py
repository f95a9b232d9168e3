"""Measures how plain the prose is: words of a kind, per 1,000 words.

    tests/tools/prose                  # a line per crate, for the tests and the documents, and the total of the crates
    tests/tools/prose query store      # the lines of those crates
    tests/tools/prose --list query     # every place in that crate, with the column it counts in
    tests/tools/prose --list all       # every place
    tests/tools/prose --path FOLDER    # the same for Rust code elsewhere, for comparison

Columns:
- what       headless clauses: `what` (or `whatever`, `that which`) as the subject of a verb ("what is kept", "what comes
             first"), and sentences that begin with `Which` or `Where` and are not questions
- who        who, whom, whoever, somebody, someone, nobody, anybody, everybody
- lie        lie, stand and tell, in all their forms, for "be stored", "be" and "indicate"
             (but not "stands for", "tell … apart", "lay out")
- terms      paraphrases for which the field has a term ("reckoned", "one behind the other", "goes away")
- returns    return, returns
- must       must, should
- names      type names that say nothing about the role (`Found`, `Way`, `Place`); a count, not a rate
- long       lines of prose over 100 columns; a count, not a rate

The prose of Rust is its `//` comments, of Python its comments and docstrings, of Markdown the text. Code in back quotes and
in fenced blocks does not count.
"""

import argparse
import io
import json
import os
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS_MAX = 100

COMMENT = re.compile(
    r"""(?P<line>//[^\n]*)
      | /\*.*?\*/
      | b?r(?P<hashes>\#*)".*?"(?P=hashes)
      | b?"(?:[^"\\]|\\.)*"
      | b?'(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.))'""",
    re.VERBOSE | re.DOTALL,
)

# Words in -s behind `what` that are nouns or pronouns and no verbs: "what clients send" is left alone.
NO_VERBS = (
    "its this others us clients documents statements keys rows events fields indexes readers writers servers workers "
    "drivers users plans values queries commands caches columns tables sessions tests stores collections operators "
    "conditions names numbers members replicas routers filters connections"
).split()
VERB = (
    r"(?:is|was|are|were|be|has|had|does|did|can|cannot|could|may|might|must|shall|should|will|would|came|went|became|stood|lay"
    r"|remained|followed|happened|changed|counted|mattered|met|made|took|told|held|fit|fits"
    rf"|(?!(?:{'|'.join(NO_VERBS)})\b)[a-z]+(?<!s)(?<!u)s)"
)
PATTERNS = {
    "what": rf"\b(?:what(?:ever)?|that which)\s+(?:\w+ly\s+|else\s+|once\s+|then\s+|not\s+)?{VERB}\b"
    r"|(?:\A|(?<=[.:;]\s))Wh(?:ich|ere)\b(?![^.]*\?)",
    "who": r"\b(?:who|whom|whoever|whomever|somebody|someone|nobody|anybody|anyone|everybody)\b",
    "lie": r"\b(?:lies?|lain|lying|lay(?! out| something| down)|stand(?:s|ing)?(?! for\b| alone\b|-alone)|stood"
    r"|(?:tells?|telling|told)(?!(?:\s+\w+){1,3}\s+(?:apart|from)\b))\b",
    "terms": r"\b(?:reckon(?:s|ed|ing)?|in vain|hope[sd]?|surprises?|glimpses?|breath|to and fro|one behind the other"
    r"|goes away|taken? away|let go of|made anew|begins? anew|looked at|looks? at|spell(?:ed|ing)s?|mistakes?|owed|crowd|of its own accord"
    r"|by itself alone|this and that|no more than that|and the like)\b",
    "returns": r"\breturns?\b",
    "must": r"\b(?:must|should)\b",
}
COMPILED = {kind: re.compile(pattern, re.IGNORECASE if kind != "what" else 0) for kind, pattern in PATTERNS.items()}
COMPILED["what"] = re.compile(PATTERNS["what"].replace(r"\b(?:what", r"\b(?:[Ww]hat"))
KINDS = list(PATTERNS)
# Kinds that only fall, by crate (see records.py).
BAD_KINDS = ["what", "who", "lie", "terms", "names", "long"]

# Names that say nothing about a type's role.
NAMES = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) "
    r"(Kept|Making|Depends|Looked|Uses|Watch|Found|Way|Ways|Place|Wanted|Known|Reading|Shape|Rows|Bounds|Question|Answer|Thing|Whole|Other)\b"
)

Line = tuple[int, str, str]


def rust_comments(source: str) -> list[Line]:
    """Returns (number of the line, prose, the whole line) of each line that has a `//` comment."""
    lines = source.split("\n")
    found, fenced, last = [], False, -1
    for match in COMMENT.finditer(source):
        if match["line"] is None:
            continue
        number = source.count("\n", 0, match.start())
        prose = re.sub(r"^//[/!]?\s?", "", match["line"])
        if number != last + 1:
            fenced = False
        last = number
        if prose.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if not fenced:
            found.append((number + 1, re.sub(r"`[^`]*`", "`", prose), lines[number]))
    return found


def blocks(found: list[tuple[int, str, str]]) -> list[list[tuple[int, str]]]:
    """Returns the lines of `found` by block: consecutive lines, so that a sentence may go over their ends."""
    grouped: list[list[tuple[int, str]]] = []
    for number, prose, _ in found:
        if grouped and grouped[-1][-1][0] == number - 1:
            grouped[-1].append((number, prose))
        else:
            grouped.append([(number, prose)])
    return grouped


def python_comments(source: str) -> list[Line]:
    """Like `rust_comments`, for the comments and docstrings of Python."""
    lines = source.split("\n")
    found = []
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found.append((token.start[0], token.string.lstrip("#! "), lines[token.start[0] - 1]))
        elif token.type == tokenize.STRING and previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            for number in range(token.start[0], token.end[0] + 1):
                prose = lines[number - 1].strip().replace('"""', "")
                found.append((number, re.sub(r"`[^`]*`", "`", prose), lines[number - 1]))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type
    return found


def markdown_text(source: str) -> list[Line]:
    """Like `rust_comments`, for the text of Markdown, without code and tables."""
    found, fenced = [], False
    for number, line in enumerate(source.split("\n"), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.startswith(("    ", "|", "```")):
            found.append((number, re.sub(r"`[^`]*`|\]\([^)]*\)", "`", line), line))
    return found


READERS = {".rs": rust_comments, ".py": python_comments, ".md": markdown_text}


def is_long(file: Path, line: str) -> bool:
    """Returns whether a line of prose is too long; a link may be as long as it is."""
    begins = {".rs": "//", ".py": ("#", '"""'), ".md": ""}[file.suffix]
    prose = line.lstrip().startswith(begins) or file.suffix == ".py" and not re.search(r"[=({]", line)
    return len(line) > COLUMNS_MAX and prose and " " in line.strip()[COLUMNS_MAX // 2 :]


def measure(files: list[Path]) -> tuple[dict[str, int], list[tuple[str, Path, int, str]]]:
    """Returns counts by kind, with `words`, `names` and `long`, and the places: (kind, file, line, text)."""
    counts = dict.fromkeys([*KINDS, "names", "long", "words"], 0)
    places = []

    def add(kind: str, file: Path, number: int, line: str) -> None:
        counts[kind] += 1
        places.append((kind, file, number, line.strip()))

    for file in files:
        source = file.read_text(errors="replace")
        found = READERS[file.suffix](source)
        whole = {number: line for number, _, line in found}
        is_generated = "<!-- Generated from" in source
        for number, _, line in found:
            if is_long(file, line) and not is_generated:
                add("long", file, number, line)
        for number, line in enumerate(source.split("\n"), 1):
            if file.suffix == ".rs" and NAMES.match(line):
                add("names", file, number, line)
        for block in blocks(found):
            text, starts = "", []
            for number, prose in block:
                starts.append((len(text), number))
                text += prose + "\n"
            counts["words"] += len(re.findall(r"[^\W\d_][\w'’-]*", text))
            for kind, pattern in COMPILED.items():
                for match in pattern.finditer(text):
                    number = max(line for start, line in starts if start <= match.start())
                    add(kind, file, number, whole[number])
    return counts, places


def rust_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.rs") if "target" not in path.parts)


def parts() -> dict[str, list[Path]]:
    """Returns the files of each crate, of the fuzz targets, of the tests in Python, and of the documents."""
    crates = {path.parent.name: rust_files(path.parent) for path in sorted(ROOT.glob("crates/*/Cargo.toml"))}
    tests = sorted(path for path in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("fuzz/*.py")] if "node_modules" not in path.parts and path != Path(__file__))
    documents = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return {**crates, "fuzz": rust_files(ROOT / "fuzz"), "tests": tests, "docs": documents}


def print_row(name: str, counts: dict[str, int]) -> None:
    rates = (f"{1000 * counts[kind] / max(1, counts['words']):>8.2f}" for kind in KINDS)
    print(f"{name:<20} {counts['words']:>7} {''.join(rates)} {counts['names']:>6} {counts['long']:>6}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("crates", nargs="*", help="only these crates, or `tests`, `docs`, `fuzz`")
    arguments.add_argument("--list", metavar="CRATE", help="print every place in this crate, or in `all` (without returns and must)")
    arguments.add_argument("--path", type=Path, action="append", help="measure the Rust files of this folder instead")
    arguments.add_argument("--json", action="store_true", help="print the counts as JSON")
    asked = arguments.parse_args()
    try:
        report(asked)
    except BrokenPipeError:
        os._exit(0)


def report(asked: argparse.Namespace) -> None:
    files = {str(path): rust_files(path) for path in asked.path} if asked.path else parts()
    if asked.list:
        for name in files if asked.list == "all" else [asked.list]:
            for kind, file, number, line in sorted(measure(files[name])[1], key=lambda place: place[1:3]):
                if kind in BAD_KINDS:
                    print(f"{file.relative_to(ROOT)}:{number}: {kind}: {line}")
        return
    measured = {name: measure(files[name])[0] for name in asked.crates or files}
    if asked.json:
        print(json.dumps(measured, indent=2))
        return
    print(f"{'':<20} {'words':>7} {''.join(f'{kind:>8}' for kind in KINDS)} {'names':>6} {'long':>6}")
    for name, counts in measured.items():
        print_row(name, counts)
    crates = [counts for name, counts in measured.items() if name not in ("tests", "docs")]
    print_row("total of Rust", {kind: sum(counts[kind] for counts in crates) for kind in [*KINDS, "names", "long", "words"]})
