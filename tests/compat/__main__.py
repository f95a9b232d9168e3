"""Compares by hand, with servers that run already (MongoDB with --noscripting):

    cd tests && python -m compat PORT ORACLE_PORT [FAMILY …]                           the cases of these families, or all
    cd tests && python -m compat PORT ORACLE_PORT --random 100000 [--seed 1] [KIND …]  random commands
    cd tests && python -m compat PORT ORACLE_PORT --mutate 100000 [--seed 1] [FAMILY …]  the cases, each with a part changed

A family is named by any part of its name.
"""

import argparse
import sys
from collections import Counter

from compat.ask import Pair, table
from compat.cases import blocks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("oracle_port", type=int)
    parser.add_argument("names", nargs="*", help="parts of families' names, or kinds of random commands")
    parser.add_argument("--store", default="embedded", help="the store behind PORT, for differences of one store alone")
    parser.add_argument("--random", type=int, default=0, metavar="COUNT", help="ask random commands")
    parser.add_argument("--mutate", type=int, default=0, metavar="COUNT", help="ask changed cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=30, help="print no more differences than this")
    parser.add_argument("--messages", action="store_true", help="compare the texts of errors everywhere")
    options = parser.parse_args()
    pair, tally = Pair(options.port, options.oracle_port, options.store), Counter()
    if options.random:
        from compat.generate import run

        differences = run(pair, options.seed, options.random, tally, options.names)
    elif options.mutate:
        from compat.generate import mutate

        differences = mutate.run(pair, options.seed, options.mutate, tally, options.names)
    else:
        chosen = [block for block in blocks() if not options.names or any(name in block.family for name in options.names)]
        for block in chosen:
            block.messages |= options.messages
        differences = [difference for block in chosen for difference in pair.run(block, tally)]
    for difference in differences[: options.show]:
        print(f"{difference}\n")
    print(table(tally))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
