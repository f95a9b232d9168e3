"""The drivers' path from Node.js: the driver itself, Mongoose, mongosh, with each compressor."""

import pytest

from support.node import NODE, run


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
