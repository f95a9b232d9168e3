"""The drivers' path from Node.js: the driver itself, Mongoose, mongosh, with each compressor."""

import os
import subprocess
from pathlib import Path

import pytest

NODE = Path(__file__).resolve().parents[1] / "node"


def run(program: list[str], home: Path) -> str:
    # mongosh keeps a history and a log in the home folder; not in the user's.
    environment = {**os.environ, "HOME": str(home), "NODE_NO_WARNINGS": "1"}
    done = subprocess.run(
        program, cwd=NODE, env=environment, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def address(server, path: str, compressor: str) -> str:
    options = "" if compressor == "none" else f"?compressors={compressor}"
    return f"{server.uri}/{path}{options}"


@pytest.mark.parametrize("script", ["driver.mjs", "mongoose.mjs"])
def test_script(server, compressor, script, database_name, tmp_path):
    output = run(["node", script, address(server, "", compressor), database_name], tmp_path)
    assert output.count("ok ") >= 5


def test_mongosh(server, compressor, database_name, tmp_path):
    program = [str(NODE / "node_modules" / ".bin" / "mongosh"), "--quiet", "--norc"]
    output = run([*program, address(server, database_name, compressor), "--file", "shell.js"], tmp_path)
    assert "ok shell" in output
