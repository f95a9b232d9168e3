"""The bench works: a small run of each experiment, so that it cannot rot. It measures nothing here."""

import json
import os
import re

import pytest

from support import selkie

pytestmark = pytest.mark.selkie_only


def bench(*arguments: str) -> str:
    done = selkie.run("bench", *arguments, timeout_s=240)
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


def test_kv(store):
    """Every way to a row; MariaDB's where that is the store."""
    mariadbd = "mariadbd" if store == "mariadb" else "none"
    printed = bench("kv", "--rows", "500", "--seconds", "0.2", "--rounds", "2", "--connections", "2", "--mariadbd", mariadbd)
    assert "SQLite in the process, prepared" in printed and "Selkie on SQLite" in printed
    assert ("MariaDB, TCP compressed, text" in printed) == (store == "mariadb")
    assert ("MariaDB, embedded, prepared" in printed) == selkie.has_embedded_mariadb()


def test_memory(server):
    printed = bench("memory", "--uri", server.uri, "--documents", "2000", "--large", "20000", "--connections", "50")
    assert "peak while reading it through" in printed


def test_indexes(server, store, request):
    """With the plain table in MariaDB where that is the store; 2500 is no whole number of its inserts."""
    plain = ["--sql", request.getfixturevalue("mariadb").url()] if store == "mariadb" else []
    printed = bench("indexes", "--uri", server.uri, "--documents", "2500", "--iterations", "2", *plain)
    assert "sort by index, limit 10" in printed
    # Each of ten works but $sample, and its indexes.
    assert printed.count("| MariaDB, plain table |") == (10 if plain else 0)


def test_wekan(server):
    printed = bench("wekan", "--uri", server.uri, "--quick")
    assert "8 sessions, 20 polls a second each" in printed


@pytest.fixture
def start(store) -> list[str]:
    """Options for experiments that start their servers themselves: MariaDB too where that is the store."""
    return ["--mariadbd", "mariadbd"] if store == "mariadb" else []


def test_cars_by_mode(store):
    mariadbd = "mariadbd" if store == "mariadb" else "none"
    mongod = os.environ.get("MONGOD")
    sockets = ["--unix-sockets"] if store == "embedded" else []
    printed = bench("cars", "--modes", "all", "--mariadbd", mariadbd, "--iterations", "3", *sockets, *(["--mongod", mongod] if mongod else []))
    assert "embedded, none | embedded, documents" in printed
    assert store != "mariadb" or "MariaDB, none | MariaDB, results | MariaDB, documents" in printed


def test_warm(start):
    printed = bench("warm", "--documents", "4000", "--operations", "2000", *start)
    assert "| what it matters to |" in printed and " its collection |" in printed


def test_invalidation(start):
    printed = bench("invalidation", "--documents", "1000", "--filters", "50", "--writes", "200", *start)
    assert "{n: {$gte: …, $lt: …}}" in printed


def test_hits(start):
    printed = bench("hits", "--small", "2000", "--large", "10", *start)
    assert "plain buffer" in printed


def test_slice(store):
    if store != "embedded":
        pytest.skip("it starts both stores")
    mongod = os.environ.get("MONGOD")
    printed = bench("slice", "--seconds", "0.5", "--rounds", "1", "--posts", "50", "--posts", "1", *(["--mongod", mongod] if mongod else []))
    assert "p99 at most 5 medians" in printed and "Selkie, MariaDB" in printed


def test_sql(store):
    if store != "mariadb":
        pytest.skip("there is no SQL without MariaDB")
    printed = bench("sql", "--connections", "1,4", "--seconds", "0.2", "--rounds", "1", "--rows", "200")
    assert printed.count("through Selkie, cached") == 2


def test_report(store, tmp_path):
    mongod = os.environ.get("MONGOD")
    if store != "embedded" or not mongod:
        pytest.skip("it starts both stores, and MongoDB")
    bench("report", "--quick", "--mongod", mongod, "--out", str(tmp_path))
    report = (tmp_path / "report.md").read_text()
    assert report.count("(published)") + report.count("| published ") >= 9 and report.count("`selkie bench ") >= 4
    # What it shows is there.
    for name in re.findall(r"\]\(([\w-]+\.(?:png|html))\)", report):
        assert (tmp_path / name).stat().st_size > 1000


def test_compare(store, tmp_path):
    if store != "embedded":
        pytest.skip("it starts both stores")
    mongod = os.environ.get("MONGOD")
    printed = bench("compare", "--quick", "--no-large", *(["--mongod", mongod] if mongod else []))
    assert "Selkie, MariaDB" in printed


def test_a_uri_that_nobody_serves():
    done = selkie.run("bench", "cars", "--uri", "mongodb://127.0.0.1:1")
    assert done.returncode != 0 and "127.0.0.1:1" in done.stderr
