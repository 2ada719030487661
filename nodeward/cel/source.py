"""The text of an expression and the errors that point into it.

`Source` turns offsets into lines and columns; `Issues` collects what lexer, parser, checker and validators object to
and writes it as cel-go does: one block per error with the line and a mark below the column.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

#: An error without a place in the text.
NOWHERE: Final = (-1, -1)

_MOST_ISSUES: Final = 100
_LONGEST_SNIPPET: Final = 16_384


@dataclass(frozen=True, slots=True)
class Issue:
    """One error: line (from 1) and column (from 0), and what is wrong."""

    line: int
    column: int
    message: str


class Source:
    """The text, with the offsets at which its lines start."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]

    def location(self, offset: int) -> tuple[int, int]:
        """Return line (from 1) and column (from 0) of an offset."""
        if offset < 0:
            return NOWHERE
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def snippet(self, line: int) -> str | None:
        """Return the text of a line; None when there is no such line."""
        if not self.text or not 1 <= line <= len(self._starts):
            return None
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[start:end]


class Issues:
    """Errors about one source, in the order found; at most a hundred are written."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: list[Issue] = []
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def report(self, offset: int, message: str) -> None:
        self.report_at(self.source.location(offset), message)

    def report_at(self, location: tuple[int, int], message: str) -> None:
        self._count += 1
        if self._count <= _MOST_ISSUES:
            self._found.append(Issue(*location, message))

    def display(self) -> str:
        """Write all errors, sorted by their place."""
        ordered = sorted(self._found, key=lambda issue: (issue.line, issue.column))
        lines = [self._one(issue) for issue in ordered]
        if self._count > _MOST_ISSUES:
            lines.append(f"{self._count - _MOST_ISSUES} more errors were truncated")
        return "\n".join(lines)

    def _one(self, issue: Issue) -> str:
        head = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
        snippet = self.source.snippet(issue.line)
        if snippet is None or len(snippet.encode()) > _LONGEST_SNIPPET:
            return head
        snippet = snippet.replace("\t", " ")
        before = "".join("." if character.isascii() else "．" for character in snippet[: issue.column])
        here = snippet[issue.column : issue.column + 1]
        return f"{head}\n | {snippet}\n | {before}{'^' if here.isascii() else '＾'}"
