"""Matching of regular expressions in time linear in the text, as RE2 does.

Called by `matches`, `find` and `findAll`. A pattern becomes a small program that is run for all possible paths at
once, so no pattern takes exponential time. Patterns that cannot backtrack much are also translated for Python's `re`,
which is used on short texts only. Compiled patterns are cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from nodeward.cel.library.regex_syntax import (
    Alternatives,
    Assertion,
    Chars,
    RegexError,
    RegexNode,
    Repeat,
    Sequence,
    in_category,
    parse_regex,
)
from nodeward.cel.values import EvaluationError

#: The longest text given to Python's `re`; one unbounded repetition takes at most the square of it.
_SHORT: Final = 256
_MOST_INSTRUCTIONS: Final = 20_000

_CHAR, _SPLIT, _JUMP, _ASSERT, _MATCH = range(5)


class _Program:
    """Instructions for one pattern: (operation, first target, second target, characters or assertion)."""

    def __init__(self, tree: RegexNode, pattern: str) -> None:
        self.code: list[tuple[int, int, int, Chars | str | None]] = []
        self._pattern = pattern
        self._emit(tree)
        self.code.append((_MATCH, 0, 0, None))

    def _add(self, operation: int, first: int = 0, second: int = 0, what: Chars | str | None = None) -> int:
        if len(self.code) >= _MOST_INSTRUCTIONS:
            raise RegexError("expression too large", self._pattern)
        self.code.append((operation, first, second, what))
        return len(self.code) - 1

    def _emit(self, node: RegexNode) -> None:
        match node:
            case Chars():
                self._add(_CHAR, what=node)
            case Assertion():
                self._add(_ASSERT, what=node.name)
            case Sequence():
                for item in node.items:
                    self._emit(item)
            case Alternatives():
                self._emit_alternatives(node)
            case Repeat():
                self._emit_repeat(node)

    def _emit_alternatives(self, node: Alternatives) -> None:
        jumps: list[int] = []
        for item in node.items[:-1]:
            split = self._add(_SPLIT)
            self._emit(item)
            jumps.append(self._add(_JUMP))
            self.code[split] = (_SPLIT, split + 1, len(self.code), None)
        self._emit(node.items[-1])
        for jump in jumps:
            self.code[jump] = (_JUMP, len(self.code), 0, None)

    def _emit_repeat(self, node: Repeat) -> None:
        for _ in range(node.least):
            self._emit(node.item)
        if node.most is None:
            split = self._add(_SPLIT)
            self._emit(node.item)
            self._add(_JUMP, split)
            self._aim(split, split + 1, len(self.code), node.is_lazy)
            return
        splits: list[int] = []
        for _ in range(node.most - node.least):
            splits.append(self._add(_SPLIT))
            self._emit(node.item)
        for split in splits:
            self._aim(split, split + 1, len(self.code), node.is_lazy)

    def _aim(self, split: int, into: int, past: int, is_lazy: bool) -> None:
        self.code[split] = (_SPLIT, past, into, None) if is_lazy else (_SPLIT, into, past, None)


def _holds(name: str, text: str, at: int) -> bool:
    if name == "text-start":
        return at == 0
    if name == "text-end":
        return at == len(text)
    if name == "line-start":
        return at == 0 or text[at - 1] == "\n"
    if name == "line-end":
        return at == len(text) or text[at] == "\n"
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return (before is not after) is (name == "word")


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _fits(chars: Chars, character: str) -> bool:
    forms = {character, character.swapcase()} if chars.is_folded else {character}
    codes = [ord(each) for each in forms if len(each) == 1]
    found = any(low <= code <= high for code in codes for low, high in chars.ranges) or any(
        in_category(character, category) for category in chars.categories
    )
    return found is not chars.is_negated


class CompiledRegex:
    """A pattern ready to match."""

    def __init__(self, pattern: str) -> None:
        tree = parse_regex(pattern)
        self._code = _Program(tree, pattern).code
        self._fast = re.compile(_python(tree)) if _is_tame(tree) else None
        self._memo: dict[tuple[int, str], bool] = {}

    def is_match(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in the text."""
        if self._fast is not None and len(text) <= _SHORT:
            return self._fast.search(text) is not None
        return self._run(text, 0, any_match=True) is not None

    def find(self, text: str) -> str:
        """Return the leftmost match, empty when there is none."""
        return next(self._spans(text), "")

    def find_all(self, text: str, limit: int) -> list[str]:
        """Return the matches from left to right, at most `limit` (a negative number: all)."""
        found: list[str] = []
        spans = self._spans(text)
        while limit < 0 or len(found) < limit:
            span = next(spans, None)
            if span is None:
                break
            found.append(span)
        return found

    def _spans(self, text: str) -> Iterator[str]:
        at, last_end = 0, -1
        while at <= len(text):
            span = self._run(text, at, any_match=False)
            if span is None:
                return
            start, end = span
            if start == end and end == last_end:  # an empty match right after another does not count
                at = max(end, at) + 1
                continue
            yield text[start:end]
            last_end = end
            at = end if end > start else end + 1

    def _run(self, text: str, start: int, *, any_match: bool) -> tuple[int, int] | None:
        """Follow all paths at once; of several matches the leftmost counts, and of those the preferred path."""
        code, best = self._code, None
        threads: list[tuple[int, int]] = []
        for at in range(start, len(text) + 1):
            seen: set[int] = set()
            ready: list[tuple[int, int]] = []
            for target, begin in threads:
                self._follow(target, begin, text, at, seen, ready)
            if best is None:
                self._follow(0, at, text, at, seen, ready)
            threads = []
            character = text[at] if at < len(text) else ""
            for target, begin in ready:
                if code[target][0] == _MATCH:
                    best = (begin, at)
                    if any_match:
                        return best
                    break
                if character and self._is_fit(target, character):
                    threads.append((target + 1, begin))
            if not threads and best is not None:
                break
        return best

    def _is_fit(self, target: int, character: str) -> bool:
        found = self._memo.get((target, character))
        if found is None:
            chars = self._code[target][3]
            found = isinstance(chars, Chars) and _fits(chars, character)
            if len(self._memo) < 10_000:
                self._memo[target, character] = found
        return found

    def _follow(
        self, target: int, begin: int, text: str, at: int, seen: set[int], ready: list[tuple[int, int]]
    ) -> None:
        """Go through splits, jumps and assertions to the instructions that need a character."""
        pending = [target]
        while pending:
            here = pending.pop()
            if here in seen:
                continue
            seen.add(here)
            operation, first, second, what = self._code[here]
            if operation == _JUMP:
                pending.append(first)
            elif operation == _SPLIT:
                pending += (second, first)
            elif operation == _ASSERT:
                if _holds(str(what), text, at):
                    pending.append(here + 1)
            else:
                ready.append((here, begin))


def _is_tame(node: RegexNode) -> bool:
    """Tell whether backtracking stays harmless: at most one repetition, and nothing in it repeats."""
    try:
        return _weight(node) <= 1
    except RegexError:
        return False


def _weight(node: RegexNode) -> int:
    match node:
        case Chars():
            return 2 if node.categories or node.is_folded or node.is_negated else 0
        case Repeat():
            return 2 if _weight(node.item) or isinstance(node.item, Alternatives) else 1
        case Sequence() | Alternatives():
            return sum(_weight(each) for each in node.items)
        case _:
            return 0


_PYTHON_ASSERTIONS: Final = {
    "text-start": r"\A", "text-end": r"\Z", "line-start": r"(?:^)", "line-end": r"(?=\n|\Z)",
    "word": r"(?a:\b)", "not-word": r"(?a:\B)",
}  # fmt: skip


def _python(node: RegexNode) -> str:
    """Write a tame pattern for Python's `re`."""
    match node:
        case Chars():
            ranges = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in node.ranges)
            return f"[{ranges}]" if ranges else r"(?!)"
        case Assertion():
            return r"(?:\A|(?<=\n))" if node.name == "line-start" else _PYTHON_ASSERTIONS[node.name]
        case Sequence():
            return "".join(f"(?:{_python(each)})" for each in node.items)
        case Alternatives():
            return "(?:" + "|".join(_python(each) for each in node.items) + ")"
        case Repeat():
            most = "" if node.most is None else str(node.most)
            return f"(?:{_python(node.item)}){{{node.least},{most}}}{'?' if node.is_lazy else ''}"


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> CompiledRegex:
    return CompiledRegex(pattern)


def compile_regex(pattern: str) -> CompiledRegex:
    """Return the compiled pattern; raises EvaluationError with Go's message when it is not RE2."""
    try:
        return _compiled(pattern)
    except RegexError as error:
        raise EvaluationError(str(error)) from None
