"""The checks: each returns a list of failures, which is empty if all is well.

`tests/test_tidy.py` runs them under pytest, `crates/error/tests/tidy.rs` under `cargo test`, and
`tests/tools/tidy` alone.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import layers, records

ROOT = Path(__file__).resolve().parents[2]

LINES_MAX = 600
# Longer files, with the reason.
LONG_FILES = {
    "Cargo.lock": "generated",
    "tests/node/package-lock.json": "generated",
    "fuzz/Cargo.lock": "generated",
    "CHANGELOG.md": "grows with each release",
    "tests/authorization/matrix.json": "generated",
    "docs/reference/configuration.md": "generated",
    "docs/reference/selkie.toml": "generated",
    "tests/tidy/records.json": "generated",
    "tests/compat/cases/scripts.py": "a list of cases",
    "tests/compat/cases/catalog.py": "a list of cases",
    "tests/blackbox/test_sql_clients.py": "to be divided",
    "crates/commands/src/read.rs": "to be divided",
}
ARCHITECTURE_LINES_MAX = 200

# Written in parts, so that this file does not contain them.
FORBIDDEN = [
    r"drop-in repla" + r"cement for MongoDB",
    r"(?<![\w.])/wor" + r"k/(?:w|t|main|tools|shared)\b",
    r"artifac" + r"tory",
    r"\bTO" + r"DO\b|\bFIX" + r"ME\b",
]


def documents() -> list[str]:
    pages = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    return ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", *pages]


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listing.decode().split("\0") if name and (ROOT / name).is_file()]


def text(name: str) -> str:
    try:
        return (ROOT / name).read_text()
    except UnicodeDecodeError:
        return ""


def paths_in(document: str) -> set[str]:
    """Returns the paths that a document names: targets of links, and quoted paths that begin with a
    folder of the repository."""
    content = text(document)
    folder = Path(document).parent
    links = {target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", content) if "://" not in target}
    linked = {os.path.normpath(folder / target) for target in links if target}
    quoted = re.findall(r"`((?:crates|tests|docs|fuzz|\.ci)/[\w./-]*|Makefile|Cargo\.toml)`", content)
    return linked | set(quoted)


def paths_exist() -> list[str]:
    return [
        f"{document}: there is no {path}"
        for document in documents() for path in sorted(paths_in(document)) if not (ROOT / path).exists()
    ]


def make_targets_exist() -> list[str]:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    return [
        f"{document}: there is no `make {target}`"
        for document in documents() for target in sorted(set(re.findall(r"`make ([a-z-]+)", text(document))) - targets)
    ]


def every_crate_is_on_the_map() -> list[str]:
    crates = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    on_the_map = set(re.findall(r"\(crates/([\w-]+)[/)]", text("ARCHITECTURE.md")))
    return [f"ARCHITECTURE.md: {crate} is only one of map and folder" for crate in sorted(crates ^ on_the_map)]


def architecture_is_short() -> list[str]:
    lines = text("ARCHITECTURE.md").count("\n")
    return [f"ARCHITECTURE.md has {lines} lines"] if lines > ARCHITECTURE_LINES_MAX else []


def every_document_is_linked() -> list[str]:
    """Every document must be reachable from the README."""
    linked, queue = set(), ["README.md"]
    while queue:
        for path in paths_in(queue.pop()):
            path = str(Path(path))
            if path.endswith(".md") and path not in linked:
                linked.add(path)
                queue.append(path)
    return [f"{page} is not reachable from README.md" for page in documents() if page not in linked | {"README.md"}]


def files_are_short() -> list[str]:
    lengths = {name: text(name).count("\n") for name in tracked() if name not in LONG_FILES}
    return [f"{name} has {length} lines" for name, length in lengths.items() if length > LINES_MAX]


def every_module_has_a_header() -> list[str]:
    return [
        f"{name} does not begin with //!" for name in tracked()
        if re.match(r"crates/[\w-]+/(src|tests|benches|examples)/.*\.rs$", name)
        and not name.endswith("tests.rs") and "/tests/" not in name
        and not text(name).startswith("//!")
    ]


def nothing_forbidden() -> list[str]:
    return [
        f"{name} contains {pattern}" for pattern in FORBIDDEN for name in tracked()
        if re.search(pattern, text(name), re.IGNORECASE if pattern.isalpha() else 0)
    ]


def the_lock_file_names_no_registry() -> list[str]:
    resolved = re.findall(r'"resolved": "([^"]+)"', text("tests/node/package-lock.json"))
    return [url for url in resolved if "://" in url]


def unsafe_code_is_justified() -> list[str]:
    failures = []
    for name in tracked():
        if not re.match(r"crates/.*\.rs$", name):
            continue
        lines = text(name).splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bunsafe\s*(\{|impl|fn|extern)", line) and not line.strip().startswith("//"):
                if "SAFETY" not in "\n".join(lines[max(0, number - 6) : number + 1]):
                    failures.append(f"{name}:{number + 1}: unsafe without a SAFETY comment")
    return failures


def features(packages: list[str]) -> set[str]:
    """Returns all packages of a build with their features, or nothing if cargo cannot list them."""
    selected = [word for package in packages for word in ("-p", package)]
    command = ["cargo", "tree", "--offline", "--prefix", "none", "-e", "normal,build", "-f", "{p} {f}", *selected]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return {line.removesuffix(" (*)").rstrip() for line in listing.stdout.splitlines()}


def one_build_serves_all_programs() -> list[str]:
    """`make build` and `make programs` must enable the same features, or cargo compiles crates twice."""
    if shutil.which("cargo") is None:
        return []
    alone, together = features(["selkie"]), features(["selkie", "bench", "histories", "simulate", "truth"])
    return [f"{line}: other features in `make programs`" for line in sorted(alone - together)]


def prose_and_circles() -> list[str]:
    """Headless clauses, paraphrases, long lines and circles of files only become fewer."""
    higher, lower = records.compare(records.current(), records.recorded())
    return higher + lower


CHECKS = {
    check.__name__: check
    for check in (
        paths_exist, make_targets_exist, every_crate_is_on_the_map, architecture_is_short, every_document_is_linked,
        files_are_short, every_module_has_a_header, nothing_forbidden, the_lock_file_names_no_registry,
        unsafe_code_is_justified, one_build_serves_all_programs, layers.crates_know_only_lower_layers, layers.pure_crates_do_no_io,
        prose_and_circles,
    )
}
