"""The program `simulate`: every shipped scenario runs and its checks hold; errors name line and
key."""

import json
import os

import pytest

from support import selkie

pytestmark = pytest.mark.selkie_only

SCENARIOS = ["slice-cache", "slice-cache-preallocated", "time-series", "queue", "account-transfers-two-phase", "theatre"]
QUICK = ["--quick", "--users", "50"]


def simulate(*arguments: str, timeout_s: float = 120):
    return selkie.run(*arguments, timeout_s=timeout_s, name="simulate")


def test_plots(server, tmp_path):
    folder = tmp_path / "plots"
    done = simulate("queue", *QUICK, "--uri", server.uri, "--plot", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["queue-publish.png", "queue-work.png", "queue.html"]
    assert (folder / "queue-work.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "queue.html").read_text()
    assert page.count("<svg") == 2 and "no job is lost" in page


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_shipped(server, tmp_path, scenario):
    file = tmp_path / "figures.json"
    done = simulate(scenario, *QUICK, "--uri", f"one={server.uri}", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text())
    (one,) = figures["servers"]
    assert one["checks"] and all(check["holds"] for check in one["checks"])
    assert not any(operation["errors"] for operation in one["operations"])
    users = sum(sum(operation[kind] for kind in ("done", "stopped", "failed", "abandoned")) for operation in one["operations"])
    assert users == 100
    for operation in one["operations"]:
        times, sending = operation["times"], operation["times_from_sending"]
        assert times["count"] == operation["done"] + operation["stopped"]
        assert times["min_ms"] <= times["p75_ms"] <= times["p95_ms"] <= times["p99_ms"] <= times["max_ms"]
        assert sending["mean_ms"] <= times["mean_ms"]
    assert "selkie_simulate" not in server.client().list_database_names()


def test_metadata(server):
    done = simulate("metadata", *QUICK, "--set", "assets=1000", "--uri", server.uri)
    assert done.returncode == 0, done.stdout + done.stderr


def test_transactions(server):
    """Transactions are started and committed; a server without them is skipped."""
    mongod = os.environ.get("MONGOD")
    done = simulate("account-transfers", *QUICK, "--uri", server.uri)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has no transactions" in done.stdout or "| transfer" in done.stdout
    if mongod:
        done = simulate("account-transfers", *QUICK, "--set", "accounts=10", "--mongod", mongod)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "| · credit" in done.stdout


SLOW = """
[run]
processes = 1
pool = 1
iterations = 1
users-per-second = 2000
overtime-seconds = 1
[[operation]]
name = "wait"
[[operation.step]]
command = { find = "waits", filter = { "$expr" = { "$gt" = [{ "$size" = { "$range" = [0, 1000000] } }, 0] } } }
[[setup]]
insert = "waits"
count = 3
document = { a = 1 }
"""


def test_a_server_that_does_not_keep_up(server, tmp_path):
    scenario, file = tmp_path / "slow.toml", tmp_path / "figures.json"
    scenario.write_text(SLOW)
    done = simulate(str(scenario), "--uri", server.uri, "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "did not keep up" in done.stdout
    (one,) = json.loads(file.read_text())["servers"]
    assert one["load"]["achieved_per_second"] < 2000
    # The times of users include their wait for the one connection.
    (wait,) = one["operations"]
    assert wait["times"]["max_ms"] >= wait["times_from_sending"]["max_ms"] or wait["abandoned"] > 0


def test_a_check_that_does_not_hold(server, tmp_path):
    scenario = tmp_path / "wrong.toml"
    scenario.write_text(
        "[[operation]]\nname = 'put'\n[[operation.step]]\ncommand = { insert = 'a', documents = [{ n = 1 }] }\n"
        "[[check]]\nname = 'there are more'\ncommand = { count = 'a' }\nresult = 'n'\nequals = \"{done('put') + 1}\"\n"
    )
    done = simulate(str(scenario), *QUICK, "--uri", server.uri)
    assert done.returncode == 1
    assert "CHECK FAILED: there are more: 100 instead of 101" in done.stdout


def test_errors_of_the_server_are_reported(server, tmp_path):
    scenario = tmp_path / "errors.toml"
    scenario.write_text("[[operation]]\nname = 'x'\n[[operation.step]]\ncommand = { noSuchCommand = 1 }\n")
    done = simulate(str(scenario), *QUICK, "--uri", server.uri)
    assert "100 users of \"x\" failed with 59: no such command: 'noSuchCommand'" in done.stdout


def test_errors_name_line_and_key(tmp_path):
    scenario = tmp_path / "mistake.toml"
    scenario.write_text("[values]\nposts = 3\n[[setup]]\ninsert = 'posts'\ncount = '{psts}'\ndocument = { a = 1 }\n")
    done = simulate(str(scenario))
    assert done.returncode == 1
    assert 'mistake.toml:5: count: unknown name "psts"; did you mean "posts"?' in done.stderr
    done = simulate("no-such-scenario")
    assert done.returncode == 1 and "--list" in done.stderr


def test_list_and_print():
    listed = simulate("--list").stdout
    assert all(name in listed for name in SCENARIOS)
    assert "preallocated = 10" in simulate("--print", "slice-cache-preallocated").stdout
