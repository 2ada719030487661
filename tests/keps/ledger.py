"""The ledger: every statement of the five KEPs, and the mark that ties a test to what it proves.

`docs/keps/kep-NNNN.md` holds one table row per statement: `| id | statement | where | kind |`, where kind is `test`
or `docs: reason` for what only a document can settle. `@statement("5328-D41")` on a test says that it proves that row.
Ids carry the number of their KEP everywhere but in the page itself, whose name already says it. A page that cannot be
read is an error with its line, never a shorter ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

KEPS = {
    "5328": "Node Declared Features",
    "5471": "Extended Toleration Operators",
    "5233": "Node Readiness Gates",
    "6122": "Configurable Scaling Delay",
    "5945": "DRA Optional Node Preparation",
}


def statement(*ids: str, part: str | None = None) -> pytest.MarkDecorator:
    """Mark a test as the proof of these statements, named like `5328-D41`.

    With a part (one of the components the ledger names under *where*) the test shows only what that component does;
    the statement is proven when all its parts are. A statement with several parts needs the part named; a test that
    shows several has a mark for each.
    """
    return pytest.mark.statement(*ids) if part is None else pytest.mark.statement(*ids, part=part)


class LedgerError(ValueError):
    """A page of the ledger that cannot be read: file, line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement of a KEP, and how it is settled: by a test, or (with a reason) by documentation alone."""

    id: str
    text: str
    where: str
    docs_reason: str | None

    @property
    def kep(self) -> str:
        return self.id.partition("-")[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """The components that have to show it."""
        return tuple(part.strip() for part in self.where.split(","))


def entries(kep: str, page: str, name: str) -> Iterator[Entry]:
    """The statements of one page, in order."""
    seen: dict[str, int] = {}
    inside = False
    for number, line in enumerate(page.splitlines(), start=1):
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells == ["id", "statement", "where", "kind"]:
            inside = True
            continue
        if not inside or set("".join(cells)) <= set("-: "):
            continue
        if len(cells) != 4:
            raise LedgerError(
                f"{name}:{number}: {len(cells)} cells; a row is | id | statement | where | kind |"
            )
        short, text, where, kind = cells
        if not short or not text or not where:
            raise LedgerError(f"{name}:{number}: an empty cell")
        if short in seen:
            raise LedgerError(f"{name}:{number}: {short} is already on line {seen[short]}")
        seen[short] = number
        yield Entry(f"{kep}-{short}", text, where, _docs_reason(kind, f"{name}:{number}"))


def _docs_reason(kind: str, place: str) -> str | None:
    if kind == "test":
        return None
    word, _, reason = kind.partition(":")
    if word != "docs" or not reason.strip():
        raise LedgerError(f"{place}: kind {kind!r}; it is `test` or `docs: reason`")
    return reason.strip()


def read_ledger(root: Path = ROOT) -> dict[str, Entry]:
    """Every statement by its full id, KEP by KEP."""
    found: dict[str, Entry] = {}
    for kep in KEPS:
        path = root / "docs" / "keps" / f"kep-{kep}.md"
        if not path.exists():
            raise LedgerError(f"{path.relative_to(root)}: no such page")
        for entry in entries(kep, path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()):
            found[entry.id] = entry
    return found
