"""What the marked tests say about the ledger: run them, gather their outcomes, count.

In goes the ledger and the outcome of every marked test; out comes one line per KEP with the open ids, and the problems
that make `make keps` fail: a mark that names no statement, a proof that failed or was skipped, a test for a
statement that the ledger calls documentation-only. A statement of which only some parts are proven is open, and its id
says what is missing: `T22(scheduler)`. A mark that names no part proves nothing of a statement that has several: what
a test of one component shows must not count for the others.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.keps.ledger import KEPS, Entry

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

_PROPERTY: Final = "statement"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Write the marks of a test among its properties: its reports carry them from a worker to the `Gathering`.

    A hook of pytest: `tests/conftest.py` imports it.
    """
    item.user_properties.extend(
        (_PROPERTY, [[str(each) for each in mark.args], mark.kwargs.get("part")])
        for mark in item.iter_markers("statement")
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test ended that claims to prove these statements, or one part of them."""

    test: str
    ids: tuple[str, ...]
    result: str
    part: str | None = None


@dataclass
class Gathering:
    """A pytest plugin that keeps the outcome of every marked test, run in this process or by workers (pytest-xdist).

    A test that was collected and has no outcome counts as skipped; what it claims is unknown.
    """

    collected: dict[str, None] = field(default_factory=dict)
    claims: dict[str, list[tuple[tuple[str, ...], str | None]]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected.update(dict.fromkeys(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        self.collected.update(dict.fromkeys(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        claims: list[Any] = [claim for name, claim in report.user_properties if name == _PROPERTY]
        self.claims.setdefault(report.nodeid, [(tuple(ids), part) for ids, part in claims])
        before = self.results.get(report.nodeid)
        if report.failed:
            self.results[report.nodeid] = FAILED
        elif report.skipped and before != FAILED:
            self.results[report.nodeid] = SKIPPED
        elif report.when == "call" and before is None:
            self.results[report.nodeid] = PASSED

    def outcomes(self) -> list[Outcome]:
        return [
            Outcome(test, ids, self.results.get(test, SKIPPED), part)
            for test in self.collected
            for ids, part in self.claims.get(test) or [((), None)]
        ]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Lines to print and reasons to fail."""

    lines: list[str]
    problems: list[str]


def judge(ledger: Mapping[str, Entry], outcomes: Iterable[Outcome]) -> Verdict:
    """Count what is proven: tests name the statement, or each of its parts, and every one of them passed."""
    shown: dict[str, set[str]] = {}
    broken: set[str] = set()
    problems: list[str] = []
    for outcome in outcomes:
        if not outcome.ids:
            is_known = outcome.result == PASSED
            problems.append(
                f"{outcome.test}: {'the mark names no statement' if is_known else outcome.result}"
            )
        for name in outcome.ids:
            entry = ledger.get(name)
            if entry is None:
                problems.append(f"{outcome.test}: there is no statement {name}")
                continue
            problems.extend(f"{outcome.test}: {text}" for text in _complaints(entry, outcome))
            if outcome.result != PASSED:
                broken.add(name)
            shown.setdefault(name, set()).update(_shown(entry, outcome))
    missing = {
        name: [part for part in entry.parts if name in broken or part not in shown.get(name, ())]
        for name, entry in ledger.items()
        if entry.docs_reason is None
    }
    return Verdict([line for kep in KEPS for line in _count(kep, ledger, missing)], problems)


def _shown(entry: Entry, outcome: Outcome) -> tuple[str, ...]:
    """The parts of a statement that one test proves."""
    if outcome.part is not None:
        return (outcome.part,)
    return entry.parts if len(entry.parts) == 1 else ()


def _complaints(entry: Entry, outcome: Outcome) -> Iterable[str]:
    if entry.docs_reason is not None:
        yield f"{entry.id} is documentation-only in the ledger"
    if outcome.part is None and len(entry.parts) > 1:
        yield f"{entry.id} has several parts ({', '.join(entry.parts)}); the mark must name one"
    if outcome.part is not None and outcome.part not in entry.parts:
        yield f"{entry.id} has no part {outcome.part!r}; it has {', '.join(entry.parts)}"
    if outcome.result != PASSED:
        yield f"{outcome.result}, so {entry.id} is not proven"


def _count(kep: str, ledger: Mapping[str, Entry], missing: Mapping[str, list[str]]) -> Iterable[str]:
    mine = [entry for entry in ledger.values() if entry.kep == kep]
    docs = sum(entry.docs_reason is not None for entry in mine)
    still_open = [_open(entry, missing[entry.id]) for entry in mine if missing.get(entry.id)]
    yield f"KEP-{kep}  proven {len(mine) - docs - len(still_open)}/{len(mine)}  docs {docs}  open {len(still_open)}"
    if still_open:
        ids = " ".join(still_open)
        yield textwrap.fill(ids, 110, initial_indent="  open: ", subsequent_indent="        ")


def _open(entry: Entry, missing: list[str]) -> str:
    short = entry.id.partition("-")[2]
    return short if len(missing) == len(entry.parts) else f"{short}({','.join(missing)})"


def marked_files(tests: Path) -> list[Path]:
    """The test files that mention the mark: collecting only these takes seconds off every run."""
    return [
        path for path in sorted(tests.rglob("test_*.py")) if "@statement(" in path.read_text(encoding="utf-8")
    ]
