"""`"%s has %d".format([name, 3])`: the clauses of a format text, at run time and for the validator.

`format_text` is the function; `check_format` finds wrong clauses in literals at compile time and is called by the
validators.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nodeward.base.fielderror import quote
from nodeward.cel import cel_types as t
from nodeward.cel.conversions import to_text
from nodeward.cel.values import (
    COST_EXCEEDED,
    CelMap,
    CostLimitExceeded,
    Duration,
    EvaluationAborted,
    EvaluationError,
    Timestamp,
    Uint,
    Value,
    find_key,
    type_name,
    type_of_value,
)

_K: Final = t.TypeKind
_CLAUSE: Final = re.compile(r"(?:\.([0-9]*))?")
#: Unlike upstream: more digits are refused. Nobody means them, and they are a way to fill memory.
_MOST_DIGITS: Final = 1000
#: Unlike upstream: lists and maps with more entries are not formatted, as the cost of a format does not depend on them.
_MOST_ENTRIES: Final = 1000

#: What a clause may format, as messages say it, and the types it takes.
CLAUSES: Final[dict[str, tuple[str, frozenset[t.TypeKind]]]] = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps, was given %s",
        frozenset({
            _K.LIST, _K.MAP, _K.INT, _K.UINT, _K.DOUBLE, _K.BOOL, _K.STRING,
            _K.TIMESTAMP, _K.BYTES, _K.DURATION, _K.TYPE, _K.NULL,
        }),
    ),
    "d": ("decimal clause can only be used on integers, was given %s", frozenset({_K.INT, _K.UINT})),
    "f": (
        "fixed-point clause can only be used on doubles, was given %s",
        frozenset({_K.DOUBLE, _K.STRING}),
    ),
    "e": (
        "scientific clause can only be used on doubles, was given %s",
        frozenset({_K.DOUBLE, _K.STRING}),
    ),
    "b": (
        "only integers and bools can be formatted as binary, was given %s",
        frozenset({_K.INT, _K.UINT, _K.BOOL}),
    ),
    "x": (
        "only integers, byte buffers, and strings can be formatted as hex, was given %s",
        frozenset({_K.INT, _K.UINT, _K.STRING, _K.BYTES}),
    ),
    "o": ("octal clause can only be used on integers, was given %s", frozenset({_K.INT, _K.UINT})),
}  # fmt: skip
CLAUSES["X"] = CLAUSES["x"]
_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def scan(
    pattern: str, count: int, clause: Callable[[int, str, int | None], str], *, ends_first: bool = False
) -> str:
    """Go over a format text and replace its clauses; `clause` is given index, letter and precision.

    `ends_first`: of a text that ends too early and has too few arguments, the end is reported.
    """
    result: list[str] = []
    at = index = 0
    while at < len(pattern):
        if pattern[at] != "%":
            end = pattern.find("%", at)
            end = len(pattern) if end < 0 else end
            result.append(pattern[at:end])
            at = end
            continue
        if pattern.startswith("%%", at):
            result.append("%")
            at += 2
            continue
        is_at_end = at + 1 >= len(pattern)
        if index >= count and not (is_at_end and ends_first):
            raise EvaluationError(f"index {index} out of range")
        if is_at_end:
            raise EvaluationError("unexpected end of string")
        letter, precision, at = _read_clause(pattern, at + 1)
        result.append(clause(index, letter, precision))
        index += 1
    return "".join(result)


def _read_clause(pattern: str, at: int) -> tuple[str, int | None, int]:
    match = _CLAUSE.match(pattern, at)
    assert match is not None
    digits = match[1]
    wrong = "could not parse formatting clause: "
    if match.end() >= len(pattern):
        raise EvaluationError(
            wrong + "error while parsing precision: could not find end of precision specifier"
        )
    precision: int | None = None
    if digits is not None:
        if not digits or len(digits) > 18:
            reason = f"strconv.Atoi: parsing {quote(digits)}: {'value out of range' if digits else 'invalid syntax'}"
            raise EvaluationError(
                f"{wrong}error while parsing precision: error while converting precision to integer: {reason}"
            )
        precision = int(digits)
    letter = pattern[match.end()]
    if letter not in CLAUSES:
        raise EvaluationError(f'{wrong}unrecognized formatting clause "{letter}"')
    return letter, precision, match.end() + 1


def format_text(pattern: str, items: list[Value]) -> str:
    """Return the text with its clauses replaced by the items."""

    def clause(index: int, letter: str, precision: int | None) -> str:
        try:
            return _format_one(letter, items[index], 6 if precision is None else precision)
        except EvaluationAborted:
            raise
        except EvaluationError as error:
            raise EvaluationError(f"error during formatting: {error}") from None

    return scan(pattern, len(items), clause)


def _format_one(letter: str, value: Value, precision: int) -> str:
    message, kinds = CLAUSES[letter]
    if type_of_value(value).kind not in kinds:
        raise EvaluationError(message % type_name(value))
    if precision > _MOST_DIGITS:
        raise EvaluationError(f"precision {precision} exceeds maximum allowed precision {_MOST_DIGITS}")
    match letter:
        case "s":
            return _plain(value)
        case "d":
            return str(int(value))
        case "f" | "e":
            return _decimal(letter, value, precision, message)
        case "b":
            return format(int(value), "b")
        case "o":
            return format(int(value), "o")
        case _:
            return _hexadecimal(value, letter)


def _decimal(letter: str, value: float | str, precision: int, message: str) -> str:
    if isinstance(value, str):
        if value not in _NOT_FINITE:
            raise EvaluationError(message % "string")
        value = _NOT_FINITE[value]
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "-∞"
    if letter == "f":
        return f"{value:,.{precision}f}"
    mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
    superscript = str(abs(int(exponent))).rjust(2, "0").translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}\u202f×\u202f10{'⁻' if exponent.startswith('-') else ''}{superscript}"


def _hexadecimal(value: int | str | bytes, letter: str) -> str:
    if isinstance(value, int):
        return format(int(value), letter)
    digits = (value.encode() if isinstance(value, str) else value).hex()
    return digits.upper() if letter == "X" else digits


def _plain(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, list | tuple | dict | CelMap) and len(value) > _MOST_ENTRIES:
        raise CostLimitExceeded(COST_EXCEEDED)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_nested(each) for each in value)}]"
    if isinstance(value, dict | CelMap):
        pairs = sorted((_nested_key(key), _nested(find_key(value, key)[0])) for key in value)
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    return str(value) if isinstance(value, t.CelType) else to_text(value)


def _nested_key(key: Value) -> str:
    if not isinstance(key, str | int):
        raise EvaluationError(f"no formatting function for map key of type {type_name(key)}")
    return _nested(key)


def _nested(value: Value) -> str:
    """Write a member of a list or map: texts are quoted, numbers have six digits."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return f"b{quote(to_text(value))}"
    if isinstance(value, float):
        text = f"{value:.6f}".replace("nan", "NaN").replace("inf", "Inf")
        return f'"{"+" if text == "Inf" else ""}{text}"' if "n" in text.lower() else text
    if isinstance(value, Timestamp):
        return f"timestamp({quote(to_text(value))})"
    if isinstance(value, Duration):
        return f"duration({quote(to_text(value))})"
    if isinstance(value, bool | int | Uint | list | tuple | dict | CelMap | t.CelType | None):
        return _plain(value)
    raise EvaluationError(f"no formatting function for {type_name(value)}")
