"""Values into values of other types: `int("3")`, `string(1.5)`, `timestamp("2024-01-01T00:00:00Z")`.

Called by the libraries; a text that cannot be converted raises EvaluationError with cel-go's words. `show` writes a
value as messages do.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from nodeward.base.duration import SECOND_NS, DurationError, parse_duration
from nodeward.cel import arithmetic as a
from nodeward.cel.cel_types import BOOL, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, CelType
from nodeward.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelMap,
    Duration,
    EvaluationError,
    ExtensionValue,
    OptionalValue,
    Timestamp,
    Uint,
    Value,
    find_key,
)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_UNSIGNED: Final = re.compile(r"[0-9]{1,40}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def conversion_error(source: CelType, wanted: CelType) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{wanted}'")


def text_to_int(text: str) -> int:
    value = int(text) if _INTEGER.fullmatch(text) else INT_MAX + 1
    if INT_MIN <= value <= INT_MAX:
        return value
    raise conversion_error(STRING, INT)


def text_to_uint(text: str) -> Uint:
    value = int(text) if _UNSIGNED.fullmatch(text) else -1
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise conversion_error(STRING, UINT)


def text_to_double(text: str) -> float:
    if _DECIMAL.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    if found := _NOT_FINITE.fullmatch(text):
        if found[2].lower() == "nan":
            if not found[1]:
                return math.nan
        else:
            return -math.inf if found[1] == "-" else math.inf
    raise conversion_error(STRING, DOUBLE)


def text_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise conversion_error(STRING, BOOL)


def bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def double_to_int(value: float) -> int:
    if not (-(2.0**63) < value < 2.0**63):
        raise EvaluationError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    if not (0 <= value < 2.0**64):
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(value))


def text_to_duration(text: str) -> Duration:
    try:
        return Duration(parse_duration(text))
    except DurationError:
        raise conversion_error(STRING, DURATION) from None


def text_to_timestamp(text: str) -> Timestamp:
    match = _RFC3339.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        moment = datetime(year or 1, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise conversion_error(STRING, TIMESTAMP) from None
    nanoseconds = int((match[7] or "0")[:9].ljust(9, "0"))
    zone = 0
    if match[8]:
        hours, minutes = int(match[9]), int(match[10])
        if hours > 24 or minutes > 60:
            raise conversion_error(STRING, TIMESTAMP)
        zone = (hours * 3600 + minutes * 60) * (-1 if match[8] == "-" else 1)
    since = moment - _EPOCH
    seconds = since.days * 86400 + since.seconds - zone
    return a.timestamp_or_overflow((seconds - (0 if year else 366 * 86400)) * SECOND_NS + nanoseconds, zone)


def to_text(value: Value) -> str:
    """Convert as `string(value)` does."""
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, Duration):
        return f"{_shortest(value.nanoseconds / SECOND_NS)}s"
    if isinstance(value, Timestamp):
        return _rfc3339(value)
    if isinstance(value, bytes):
        return bytes_to_text(value)
    return value if isinstance(value, str) else show(value)


def _shortest(value: float) -> str:
    """Write with as few digits as needed, never with an exponent."""
    text = repr(value)
    if "e" in text:
        text = f"{value:.20f}".rstrip("0")
    return text.removesuffix(".0").removesuffix(".")


def _rfc3339(moment: Timestamp) -> str:
    seconds, nanoseconds = divmod(moment.nanoseconds, SECOND_NS)
    date = datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds + moment.zone - a.MIN_SECONDS)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    minutes = abs(moment.zone) // 60
    zone = f"{'-' if moment.zone < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if moment.zone else "Z"
    return f"{date.year:04d}{date.strftime('-%m-%dT%H:%M:%S')}{fraction}{zone}"


def show_double(value: float) -> str:
    """Write a number as Go's `%g` does."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, power = _digits(value)
    if -4 <= power < 6:
        return _shortest(value)
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _digits(value: float) -> tuple[str, str, int]:
    """Return the sign, the shortest digits that give the number back, and the power of ten of the first."""
    text = repr(abs(value))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    power = int(exponent or 0) + len(whole) - 1 - leading
    return "-" if value < 0 else "", digits.rstrip("0") or "0", power


def show(value: Value) -> str:
    """Write a value as it appears in messages."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, dict | CelMap):
        return "{" + ", ".join(f"{show(key)}: {show(find_key(value, key)[0])}" for key in value) + "}"
    if isinstance(value, OptionalValue):
        return f"optional({show(value.value)})" if value.has_value else "optional.none()"
    if isinstance(value, CelType | ExtensionValue):
        return str(value)
    return to_text(value)
