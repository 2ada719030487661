"""Values taken out of a tree one by one, with everything that is wrong about them written down and none of it raised.

A `ConfigFields` is one map of the file with the names it may have. Asking it for a value of the wrong type, or out of
range, notes a problem with file, line, field, the bad value and what is allowed, and gives the default: so that one
run tells all. What is null counts as absent, as in Kubernetes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from nodeward.base.duration import SECOND_NS, DurationError, parse_duration
from nodeward.base.fielderror import invalid, not_supported
from nodeward.base.fieldpath import FieldPath
from nodeward.base.problems import Problems
from nodeward.base.yaml_text import called

#: What 32 bits hold: weights and counts of the file are no larger.
LARGEST_INT32: Final = 2**31 - 1
LARGEST_INT64: Final = 2**63 - 1


class ConfigFields:
    """One map, at one place, with the names it may have."""

    def __init__(self, tree: Any, path: FieldPath, problems: Problems, known: Sequence[str]) -> None:
        self.path: Final = path
        self.problems: Final = problems
        self._known = known
        if tree is not None and not isinstance(tree, dict):
            problems.say(path, f"want a map, got {called(tree)}")
        self.tree: Final[dict[str, Any]] = tree if isinstance(tree, dict) else {}
        for name in self.tree:
            if name not in known:
                problems.say(path.child(str(name)), f"unknown field{nearest(str(name), known)}")

    def has(self, name: str) -> bool:
        return self.tree.get(name) is not None

    def at(self, name: str) -> FieldPath:
        return self.path.child(name)

    def wrong(self, name: str, value: object, what: str) -> None:
        self.problems.add(invalid(self.at(name), value, what))

    # -- plain values

    def text(self, name: str, default: str = "", *, among: Sequence[str] = ()) -> str:
        value = self.tree.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self._mistyped(name, value, "a text")
            return default
        if among and value not in among:
            self.problems.add(not_supported(self.at(name), value, among))
            return default
        return value

    def truth(self, name: str, *, default: bool = False) -> bool:
        value = self.tree.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._mistyped(name, value, "true or false")
            return default
        return value

    def whole(
        self,
        name: str,
        default: int,
        *,
        low: int,
        high: int = LARGEST_INT32,
        must: str = "",
        zero_is: int = 0,
    ) -> int:
        """A whole number from `low` to `high`; `zero_is` is what nought stands for, if for something else."""
        value = self.tree.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self._mistyped(name, value, "a whole number")
            return default
        value = value or zero_is
        if not low <= value <= high:
            self.wrong(name, value, must or f"must be from {low} to {high}")
            return default
        return value

    def number(self, name: str, default: float) -> float:
        value = self.tree.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._mistyped(name, value, "a number")
            return default
        return float(value)

    def seconds(self, name: str, default: float) -> float:
        """A span of time as Go writes it, `15s`; nought means the default."""
        value = self.tree.get(name)
        if value is None:
            return default
        try:
            span = parse_duration(value) if isinstance(value, str) else None
        except DurationError:
            span = None
        if span is None:
            self.wrong(name, value, "want a span of time, for example 15s or 1m30s")
            return default
        return span / SECOND_NS or default

    def _mistyped(self, name: str, value: object, wanted: str) -> None:
        self.wrong(name, value, f"want {wanted}, got {called(value)}")

    # -- parts

    def part(self, name: str, known: Sequence[str]) -> ConfigFields:
        return ConfigFields(self.tree.get(name), self.at(name), self.problems, known)

    def items(self, name: str) -> list[tuple[FieldPath, Any]]:
        value = self.tree.get(name)
        if value is not None and not isinstance(value, list):
            self._mistyped(name, value, "a list")
            return []
        return [(self.at(name).index(number), each) for number, each in enumerate(value or ())]

    def parts(self, name: str, known: Sequence[str]) -> list[ConfigFields]:
        return [ConfigFields(each, path, self.problems, known) for path, each in self.items(name)]

    def texts(self, name: str) -> list[tuple[FieldPath, str]]:
        found: list[tuple[FieldPath, str]] = []
        for path, each in self.items(name):
            if isinstance(each, str):
                found.append((path, each))
            else:
                self.problems.add(invalid(path, each, f"want a text, got {called(each)}"))
        return found


def nearest(name: str, known: Iterable[str]) -> str:
    """The nearest of the known names, in brackets, or all of them."""
    names = list(known)
    by_small = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), by_small, n=1)
    return f" (did you mean {by_small[near[0]]}?)" if near else f" (there are: {', '.join(names)})"
