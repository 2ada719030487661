"""`make mutants`: say which broken rules are noticed. Exits 1 when one is not, 2 when a table does not fit the code."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.mutants.mutant import TableError
from tests.mutants.runner import KILLED, Result, run_all
from tests.mutants.tables import chosen


def _report(result: Result) -> None:
    sys.stdout.write(f"{result.word:9} {result.mutant.name}: {result.detail}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants, or numbers of KEPs; default: all")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument(
        "--seconds", type=float, default=300, help="how long the tests of one mutant may take"
    )
    parser.add_argument(
        "--part", default="1/1", metavar="K/N", help="only every N-th mutant, beginning with the K-th"
    )
    options = parser.parse_args(arguments)
    try:
        first, _, step = str(options.part).partition("/")
        mutants = chosen(options.names)[int(first) - 1 :: int(step)]
        if options.list:
            for mutant in mutants:
                sys.stdout.write(f"{mutant.name}  {mutant.file}  {' '.join(mutant.statements)}\n")
            return 0
        if not mutants:
            sys.stdout.write("there is no mutant in this part of the tables\n")
            return 0
        began = time.perf_counter()
        results = run_all(mutants, options.jobs, options.seconds, _report)
    except TableError as wrong:
        sys.stderr.write(f"mutants: {wrong}\n")
        return 2
    killed = sum(result.word == KILLED for result in results)
    sys.stdout.write(f"{killed} of {len(results)} mutants killed in {time.perf_counter() - began:.0f} s\n")
    return 0 if killed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
