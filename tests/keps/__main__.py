"""`make keps`: run every test that proves a statement of a KEP, and say what is proven, settled in words, or open.

Fails when a test names an unknown statement, and when a test that names one fails or is skipped. Arguments go to
pytest.
"""

from __future__ import annotations

import sys

import pytest

from tests.keps.ledger import KEPS, ROOT, LedgerError, read_ledger
from tests.keps.proving import Gathering, judge, marked_files


def main(arguments: list[str]) -> int:
    try:
        ledger = read_ledger()
    except LedgerError as unreadable:
        sys.stderr.write(f"{unreadable}\n")
        return 1
    gathering = Gathering()
    files = [str(path) for path in marked_files(ROOT / "tests")]
    code = pytest.main(["-m", "statement", "--no-header", "-q", *arguments, *files], plugins=[gathering])
    verdict = judge(ledger, gathering.outcomes())
    sys.stdout.write("\n".join(["", *verdict.lines, ""]))
    titles = ", ".join(f"{kep} {title}" for kep, title in KEPS.items())
    sys.stdout.write(f"Statements: docs/keps ({titles}).\n")
    for problem in verdict.problems:
        sys.stderr.write(f"keps: {problem}\n")
    return (
        1 if verdict.problems or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else 0
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
