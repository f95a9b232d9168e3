"""The repository checks itself: the map is true, files stay readable, nothing is in it that does not belong."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]

LINES_MAX = 700
# Longer, and why.
LONG_FILES = {
    "Cargo.lock": "generated",
    "tests/node/package-lock.json": "generated",
    "fuzz/Cargo.lock": "generated",
}

# Put together here, so that this file does not trip over itself.
FORBIDDEN = [
    r"drop-in repla" + r"cement for MongoDB",
    r"(?<![\w.])/wor" + r"k/(?:w|t|main|tools|shared)\b",
    r"artifac" + r"tory",
    r"\bTO" + r"DO\b|\bFIX" + r"ME\b",
]


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listing.decode().split("\0") if name and (ROOT / name).is_file()]


def text(name: str) -> str:
    try:
        return (ROOT / name).read_text()
    except UnicodeDecodeError:
        return ""


def paths_in(document: str) -> set[str]:
    """Paths that a document names: targets of links, and what stands in back quotes and begins like a folder of ours."""
    content = text(document)
    folder = Path(document).parent
    links = {target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", content) if "://" not in target}
    linked = {os.path.normpath(folder / target) for target in links if target}
    quoted = re.findall(r"`((?:crates|tests|docs|fuzz|\.ci)/[\w./-]*|Makefile|Cargo\.toml)`", content)
    return linked | set(quoted)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_in_a_document_exists(document):
    missing = [path for path in paths_in(document) if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_make_target_in_a_document_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text(document))) <= targets


def test_every_crate_is_on_the_map():
    crates = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    on_the_map = set(re.findall(r"\(crates/([\w-]+)[/)]", text("ARCHITECTURE.md")))
    assert crates == on_the_map


def test_every_document_can_be_reached_from_the_readme():
    linked, queue = set(), ["README.md"]
    while queue:
        document = queue.pop()
        for path in paths_in(document):
            path = str(Path(path))
            if path.endswith(".md") and path not in linked:
                linked.add(path)
                queue.append(path)
    assert {document for document in DOCUMENTS if document != "README.md"} <= linked


def test_files_are_not_too_long():
    lengths = {name: text(name).count("\n") for name in tracked() if name not in LONG_FILES}
    assert not {name: length for name, length in lengths.items() if length > LINES_MAX}


def test_every_module_says_what_it_is():
    without = [
        name for name in tracked()
        if re.match(r"crates/[\w-]+/(src|tests|benches|examples)/.*\.rs$", name)
        and not name.endswith("tests.rs") and "/tests/" not in name
        and not text(name).startswith("//!")
    ]
    assert not without


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_forbidden(pattern):
    found = [name for name in tracked() if re.search(pattern, text(name), re.IGNORECASE if pattern.isalpha() else 0)]
    assert not found


def test_the_lock_file_names_no_registry():
    resolved = re.findall(r'"resolved": "([^"]+)"', text("tests/node/package-lock.json"))
    assert all("://" not in where for where in resolved)


def test_unsafe_code_is_argued():
    for name in tracked():
        if not re.match(r"crates/.*\.rs$", name):
            continue
        lines = text(name).splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bunsafe\s*(\{|impl|fn|extern)", line) and not line.strip().startswith("//"):
                above = "\n".join(lines[max(0, number - 6) : number + 1])
                assert "SAFETY" in above, f"{name}:{number + 1}"
