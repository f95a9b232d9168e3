"""The program `bench`: a small run of each experiment, to check that it works. No result is
checked."""

import json
import os
import re

import pytest

from support import selkie
from support.authority import Authority
from support.tls import TlsServer

pytestmark = pytest.mark.selkie_only

MARIADB = ["--mariadbd", "mariadbd"]


@pytest.fixture
def gateway(store) -> list[str]:
    """Options for experiments that start their servers: MariaDB too if that is the store."""
    return MARIADB if store == "mariadb" else []


@pytest.fixture
def mongod() -> list[str]:
    """The option that starts MongoDB too, if $MONGOD names it."""
    return ["--mongod", os.environ["MONGOD"]] if "MONGOD" in os.environ else []


def bench(*arguments: str) -> str:
    done = selkie.run(*arguments, timeout_s=240, name="bench")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_cars(server, tmp_path):
    file = tmp_path / "cars.json"
    uri = f"one={server.uri}"
    printed = bench("cars", "--uri", uri, "--uri", f"two={server.uri}", "--iterations", "5", "--loads", "1", "--json", str(file))
    assert "| Make = Toyota" in printed
    rows = json.loads(file.read_text())["rows"]
    assert len(rows) == 12
    assert all(row["ratio"] > 0 and row["cpu_us"] > 0 for row in rows)


def test_load(server):
    works = [part for work in ("point", "insert", "insert-many", "update", "mixed") for part in ("--work", work)]
    printed = bench("load", "--uri", server.uri, *works, "--connections", "4", "--seconds", "0.2", "--rounds", "1",
                    "--documents", "200", "--batch", "50")
    assert printed.count("4 connections") == 5


def test_kv(store, gateway):
    """All methods to read a row, on MariaDB if that is the store."""
    printed = bench("kv", "--rows", "500", "--seconds", "0.1", "--rounds", "1", "--connections", "2", *gateway)
    assert "SQLite in the process, prepared" in printed and "Selkie on SQLite" in printed
    assert ("MariaDB, TCP compressed, text" in printed) == (store == "mariadb")
    assert ("MariaDB, embedded, prepared" in printed) == ("embedded MariaDB" in bench("--version"))


def test_memory(server):
    printed = bench("memory", "--uri", server.uri, "--documents", "2000", "--large", "20000", "--connections", "50")
    assert "peak while iterating it" in printed


def test_indexes(server, store, request):
    """With the plain table if MariaDB is the store. 2500 documents are not a multiple of its
    inserts."""
    plain = ["--sql", request.getfixturevalue("mariadb").url()] if store == "mariadb" else []
    printed = bench("indexes", "--uri", server.uri, "--documents", "2500", "--iterations", "2",
                    "--settle-seconds", "1", *plain)
    assert "sort by index, limit 10" in printed
    # Each of ten works but $sample, and its indexes.
    assert printed.count("| MariaDB, plain table |") == (10 if plain else 0)


def test_wekan(server):
    printed = bench("wekan", "--uri", server.uri, "--quick")
    assert "8 sessions, 20 polls a second each" in printed


def test_cars_by_mode(store, gateway, mongod):
    sockets = ["--unix-sockets"] if store == "embedded" else []
    printed = bench("cars", "--modes", "all", "--iterations", "3", *sockets, *gateway, *mongod)
    assert "embedded, none | embedded, documents" in printed
    assert store != "mariadb" or "MariaDB, none | MariaDB, results | MariaDB, documents" in printed


def test_hit_rate(gateway):
    printed = bench("hit-rate", "--documents", "4000", "--operations", "2000", *gateway)
    assert " affected replies |" in printed and " its collection |" in printed


def test_invalidation_cost(gateway):
    printed = bench("invalidation-cost", "--documents", "1000", "--filters", "10", "--writes", "50", *gateway)
    assert "{n: {$gte: …, $lt: …}}" in printed


def test_hit_cost(gateway):
    printed = bench("hit-cost", "--small", "2000", "--large", "10", *gateway)
    assert "replayed bytes" in printed


def test_slice(store, mongod):
    if store != "embedded":
        pytest.skip("it starts both stores")
    printed = bench("slice", "--seconds", "0.5", "--rounds", "1", "--posts", "50", "--posts", "1", *MARIADB, *mongod)
    assert "p99 at most 5 medians" in printed and "Selkie, MariaDB" in printed


def test_transfers(store, mongod):
    if store != "embedded":
        pytest.skip("it starts both stores")
    brief = ["transfers", "--seconds", "0.5", "--rounds", "1", "--connections", "4", *MARIADB]
    printed = re.sub(" +", " ", bench(*brief, *mongod))
    assert all(f"4 connections, 0 conflicts | Selkie, {name}" in printed for name in ("embedded", "MariaDB"))
    bench(*brief, "--accounts", "2", "--shared")


def test_streams(store, mongod):
    if store != "embedded":
        pytest.skip("it starts both stores")
    streams = ["--streams", "0", "--streams", "20", "--events", "20"]
    printed = bench("streams", "--seconds", "0.5", "--rounds", "1", *streams, *MARIADB, *mongod)
    assert "arrival of an event" in printed and "20 streams" in printed
    assert "no log" in printed and "Selkie, MariaDB" in printed


def test_sql(store, gateway):
    if store != "mariadb":
        pytest.skip("there is no SQL without MariaDB")
    printed = bench("sql", "--connections", "1,4", "--seconds", "0.2", "--rounds", "1", "--rows", "200", *gateway)
    assert printed.count("through Selkie, cached") == 2


def test_report(store, mongod, tmp_path):
    if store != "embedded" or not mongod:
        pytest.skip("it starts both stores, and MongoDB")
    bench("report", "--quick", *mongod, *MARIADB, "--out", str(tmp_path))
    report = (tmp_path / "report.md").read_text()
    assert report.count("(published)") + report.count("| published ") >= 9 and report.count("\n`bench ") + report.count("\n`simulate ") >= 4
    # Every plot that it shows exists.
    for name in re.findall(r"\]\(([\w-]+\.(?:png|html))\)", report):
        assert (tmp_path / name).stat().st_size > 1000


def test_compare(store, mongod):
    if store != "embedded":
        pytest.skip("it starts both stores")
    printed = bench("compare", "--quick", "--no-large", *MARIADB, *mongod)
    assert "Selkie, MariaDB" in printed


@pytest.mark.parametrize("option, kind, measures", [
    ("--tls", "TLS", ("point read, 16 connections", "all 10,000")),
    ("--auth", "login", ("point read, 16 connections",)),
])
def test_compare_pairs(store, mongod, option, kind, measures):
    if store != "embedded":
        pytest.skip("it starts both stores")
    printed = bench("compare", option, "--quick", *MARIADB, *mongod)
    cells = [tuple(cell.strip() for cell in line.split("|")[1:3]) for line in printed.splitlines()]
    for name in ("Selkie, embedded", "Selkie, MariaDB", *(["MongoDB"] if mongod else [])):
        for measure in measures:
            assert {(measure, name), (measure, f"{name}, {kind}")} <= set(cells), printed


def test_a_uri_with_tls(store, tmp_path):
    if store != "embedded":
        pytest.skip("one store is enough")
    authority = Authority(tmp_path / "ca")
    options = ("--tls", "require", "--tls-certificate", str(authority.issue("server.pem")))
    server = TlsServer(tmp_path, *options, ca=authority.file).start()
    try:
        uri = f"mongodb://localhost:{server.port}/?tls=true&tlsCAFile={authority.file}"
        assert "point read, 4 connections" in bench("load", "--uri", uri, "--connections", "4", "--seconds", "0.2")
        other = uri.replace(str(authority.file), str(Authority(tmp_path / "other").file))
        assert "certificate" in selkie.run("load", "--uri", other, name="bench").stderr
    finally:
        server.remove()


def test_a_uri_without_a_server():
    done = selkie.run("cars", "--uri", "mongodb://127.0.0.1:1", name="bench")
    assert done.returncode != 0 and "127.0.0.1:1" in done.stderr
