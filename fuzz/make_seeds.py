"""Writes seeds for the fuzz targets of the query language: commands of the comparison suite's generator, as BSON.

    python fuzz/make_seeds.py fuzz/corpus [--count N]

libFuzzer changes bytes; without seeds it would take long to come upon the name of an operator.
"""

import argparse
import sys
from pathlib import Path

import bson

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from compat.generate.commands import Commands  # noqa: E402


def query(commands: Commands) -> dict:
    return commands.pick(commands.filter, commands.projection, commands.sort, lambda: {"$expr": commands.expression(3)})()


def update(commands: Commands) -> dict:
    return {**commands.statement(), "d": commands.document(1)}


def pipeline(commands: Commands) -> dict:
    return {"pipeline": commands.pipeline(), "documents": commands.documents(1, 4)}


TARGETS = {"query_parse": query, "update_parse": update, "pipeline_parse": pipeline}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--count", type=int, default=500)
    options = parser.parse_args()
    for target, make in TARGETS.items():
        folder = options.corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(options.count):
            (folder / f"seed-{number}").write_bytes(bson.encode(make(Commands(number))))


if __name__ == "__main__":
    main()
