"""A tree compared with its shape: everything that is wrong is written down, and what is right is kept.

Nothing is raised on the way, so that one run tells all; `Problems.settle` raises in the end. A value of the wrong
type is told and left out, as if the file had not said it, and the rules are then asked about the rest. What is null
counts as absent, as in Kubernetes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final

from nodeward.base.duration import DurationError, parse_duration
from nodeward.base.problems import Problems
from nodeward.base.quantity import Quantity, QuantityError
from nodeward.base.yaml_text import called
from nodeward.kubelet.config.shape import ListOf, MapOf, Part, Plain, Shape

_BITS: Final = {Plain.INT32: 31, Plain.INT64: 63}
_ABSENT: Final = object()


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name nobody knows; case does not matter to it."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f' (did you mean "{by_lower[found[0]]}"?)' if found else ""


def cleaned(tree: Any, shape: Part, problems: Problems, at: str = "") -> dict[str, Any]:
    """The tree without what does not fit the shape, which is told."""
    found = _cleaned(tree, shape, problems, at)
    return found if isinstance(found, dict) else {}


def _cleaned(tree: Any, shape: Shape, problems: Problems, at: str) -> Any:
    if tree is None:
        return _ABSENT
    match shape:
        case Part(fields):
            if not isinstance(tree, dict):
                return _mistyped(tree, "a map", problems, at)
            for name in tree:
                if name not in fields:
                    problems.say(_below(at, name), f"unknown field{nearest(str(name), fields)}")
            inner = {name: (tree[name], fields[name]) for name in tree if name in fields}
        case MapOf(item):
            if not isinstance(tree, dict):
                return _mistyped(tree, "a map", problems, at)
            inner = {name: (value, item) for name, value in tree.items()}
        case ListOf(item):
            if not isinstance(tree, list):
                return _mistyped(tree, "a list", problems, at)
            items = [_cleaned(value, item, problems, f"{at}[{i}]") for i, value in enumerate(tree)]
            return [value for value in items if value is not _ABSENT]
        case _:
            return _plain(tree, shape, problems, at)
    kept = {
        str(name): _cleaned(value, its, problems, _below(at, name)) for name, (value, its) in inner.items()
    }
    return {name: value for name, value in kept.items() if value is not _ABSENT}


def _plain(value: Any, wanted: Plain, problems: Problems, at: str) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    fits = False
    match wanted:
        case Plain.MAP:
            fits = isinstance(value, dict)
        case Plain.TEXT:
            fits = isinstance(value, str)
        case Plain.TRUTH:
            fits = isinstance(value, bool)
        case Plain.NUMBER:
            fits = is_number or isinstance(value, float)
        case Plain.INT32 | Plain.INT64:
            bits = _BITS[wanted]
            fits = is_number and -(2**bits) <= value < 2**bits
        case Plain.INT_OR_TEXT:
            fits = is_number or isinstance(value, str)
        case Plain.QUANTITY:
            fits = _is_quantity(value)
        case Plain.SPAN | Plain.SPAN_OR_NS:
            if is_number and wanted is Plain.SPAN_OR_NS:
                return value
            return _span(value, wanted, problems, at)
    return value if fits else _mistyped(value, wanted.value, problems, at)


def _span(value: Any, wanted: Plain, problems: Problems, at: str) -> Any:
    """Nanoseconds; a bare number is told apart, because it is the usual mistake."""
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except DurationError as error:
            problems.wrong(at, value, f"{error}; want {wanted.value}")
            return _ABSENT
    if isinstance(value, int | float) and not isinstance(value, bool):
        problems.wrong(at, value, f'a number has no unit; want {wanted.value} ("{value}s" for seconds)')
        return _ABSENT
    return _mistyped(value, wanted.value, problems, at)


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        Quantity.from_json(value)
    except QuantityError:
        return False
    return True


def _mistyped(value: Any, wanted: str, problems: Problems, at: str) -> Any:
    problems.wrong(at, value, f"want {wanted}, got {called(value)}")
    return _ABSENT


def _below(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)
