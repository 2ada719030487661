"""A mutant: one rule of Nodeward, broken on purpose, and the statements of a KEP whose tests must notice.

The tables (`kep5328.py`, `kep5471.py`, ...) list mutants; `tables.py` joins them; `runner.py` runs them. The text to
break must stand exactly once in its file, so that a table which no longer fits the code is an error and never a rule
left unbroken.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class TableError(ValueError):
    """A row of a table that does not fit the code: which mutant, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """Replace `text` by `broken` in `file` (a path in the repository): a test of one of `statements` must fail."""

    name: str
    file: str
    text: str
    broken: str
    statements: tuple[str, ...]

    def applied_to(self, root: Path) -> str:
        """Return the broken source of the file below this root."""
        path = root / self.file
        if not path.is_file():
            raise TableError(f"{self.name}: there is no file {self.file}")
        source = path.read_text(encoding="utf-8")
        times = source.count(self.text)
        if times != 1:
            raise TableError(
                f"{self.name}: the text stands {times} times in {self.file}, and must stand once"
            )
        if self.text == self.broken:
            raise TableError(f"{self.name}: the broken text is the text itself")
        return source.replace(self.text, self.broken)
