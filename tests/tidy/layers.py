"""The crate graph: each crate depends on crates of lower layers only."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# From the bottom to the top. A new crate goes into the lowest layer that its dependencies allow.
LAYERS = [
    {"error", "steps", "strict-toml", "mariadb-wire", "tls", "charts", "frame-mutator"},
    {"document", "mariadb-embedded", "runtime"},
    {"audit", "auth", "values", "mongo-wire", "shorthand", "mariadb-client", "harness"},
    {"geo", "fulltext", "mariadb-binlog", "bench", "histories", "simulate", "truth"},
    {"query"},
    {"aggregate"},
    {"update"},
    {"store"},
    {"cache", "shared-cache", "index-keys", "store-testing", "sql-classify"},
    {"access", "sql-filter"},
    {"store-sqlite", "store-mariadb", "service"},
    {"server"},
    {"commands", "sql-session"},
    {"mongo-session"},
    {"selkie"},
]

# They compute, and neither wait nor read or write anything.
PURE = {
    "auth", "error", "document", "values", "geo", "fulltext", "query", "aggregate", "update", "mongo-wire", "mariadb-wire",
    "sql-classify", "index-keys", "access", "strict-toml",
}
IO = {"tokio", "rustix", "rusqlite", "socket2", "nix", "tempfile"}


def dependencies(crate: str) -> set[str]:
    """Returns the names in `[dependencies]`, without those for tests."""
    manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text()
    section = re.search(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", manifest, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^([a-z][\w-]*)", section.group(1), re.MULTILINE) if section else []
    return {name.removeprefix("selkie-") for name in names}


def crates() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))


def crates_know_only_lower_layers() -> list[str]:
    layer_of = {crate: number for number, layer in enumerate(LAYERS) for crate in layer}
    failures = [f"{crate} has no layer in tests/tidy/layers.py" for crate in crates() if crate not in layer_of]
    for crate in crates():
        for other in sorted(dependencies(crate) & set(layer_of)):
            if layer_of[other] >= layer_of.get(crate, 0):
                failures.append(f"{crate} depends on {other}, which is in no lower layer")
    return failures


def pure_crates_do_no_io() -> list[str]:
    return [f"{crate} depends on {other}" for crate in sorted(PURE & set(crates())) for other in sorted(dependencies(crate) & IO)]
