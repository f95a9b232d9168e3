"""Records a history on a server that runs already, and checks it. It has to be a replica set or a
router.

    cd tests && python -m histories mongodb://127.0.0.1:27017 [--seconds 10] [--clients 8]

The database `histories` is dropped. The history is kept in the file `history.jsonl`.
"""

import argparse
import contextlib
import sys
from pathlib import Path

import pymongo

from .stream import Follower
from .workload import prepare, read_all, record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("uri")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", type=Path, default=Path("history.jsonl"))
    parser.add_argument("--no-stream", action="store_true", help="follow no change stream")
    options = parser.parse_args()

    def connect(**more):
        return pymongo.MongoClient(options.uri, **more)

    with connect() as client, contextlib.ExitStack() as stack:
        collection = client.histories.lists
        prepare(collection)
        follower = None if options.no_stream else stack.enter_context(Follower(connect, "histories"))
        history = record(connect, "histories", options.seconds, options.seed, options.clients, resolves=True)
        read_all(collection, history)
        if follower:
            history.streams.append(follower.finish(collection))
    verdict = history.check(options.file)
    print(verdict.stdout + verdict.stderr, end="")
    return verdict.returncode


if __name__ == "__main__":
    sys.exit(main())
