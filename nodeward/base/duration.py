"""Spans of time as Go writes them (`1h2m3.5s`) and as `kubectl` shows them (`5d3h`).

In goes text, out come whole nanoseconds, and back. What must stay true: texts, results and error messages are those
of Go's `time` package, because flags, config files and API fields are full of them; a duration fits 64 bits.

Used by every component.
"""

from __future__ import annotations

from typing import Final

from nodeward.base.errors import NodewardError

NANOSECOND_NS: Final = 1
MICROSECOND_NS: Final = 1000
MILLISECOND_NS: Final = 10**6
SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
HOUR_NS: Final = 60 * MINUTE_NS

_UNITS: Final = {
    "ns": NANOSECOND_NS,
    "us": MICROSECOND_NS,
    "µs": MICROSECOND_NS,
    "μs": MICROSECOND_NS,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
}
_DIGITS: Final = "0123456789"
_LARGEST: Final = 2**63 - 1


class DurationError(NodewardError, ValueError):
    """The text is not a duration. The message is Go's."""


def quote(text: str) -> str:
    """`text` as Go's `time` package quotes it: printable ASCII as it is, every other byte as `\\xNN`."""
    parts = ['"']
    for byte in text.encode("utf-8", "surrogatepass"):
        if byte < 0x20 or byte >= 0x80:
            parts.append(f"\\x{byte:02x}")
        elif byte in b'"\\':
            parts.append(f"\\{chr(byte)}")
        else:
            parts.append(chr(byte))
    parts.append('"')
    return "".join(parts)


def parse_duration(text: str) -> int:
    """Nanoseconds in `text`, for example `-1.5h` or `300ms`; `DurationError` if it is no duration."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {quote(text)}")
    total = 0
    while rest:
        amount, rest = _one_term(rest, text)
        total += amount
        if total > _LARGEST + 1:
            raise DurationError(f"time: invalid duration {quote(text)}")
    if text[0] == "-":
        return -total
    if total > _LARGEST:
        raise DurationError(f"time: invalid duration {quote(text)}")
    return total


def _one_term(rest: str, text: str) -> tuple[int, str]:
    """Return the first `<number><unit>` of `rest` in nanoseconds, and what follows it."""
    whole, rest = _split_digits(rest)
    # Nineteen digits hold every 64-bit number; longer ones are too large anyway.
    significant = whole.lstrip("0")
    number = int(significant or "0") if len(significant) <= 19 else _LARGEST + 2
    fraction = ""
    if rest.startswith("."):
        fraction, rest = _split_digits(rest[1:])
    if number > _LARGEST + 1 or not (whole or fraction):
        raise DurationError(f"time: invalid duration {quote(text)}")
    end = next(
        (at for at, character in enumerate(rest) if character == "." or character in _DIGITS), len(rest)
    )
    name, rest = rest[:end], rest[end:]
    if not name:
        raise DurationError(f"time: missing unit in duration {quote(text)}")
    unit = _UNITS.get(name)
    if unit is None:
        raise DurationError(f"time: unknown unit {quote(name)} in duration {quote(text)}")
    return number * unit + _fraction_of(unit, fraction), rest


def _split_digits(text: str) -> tuple[str, str]:
    rest = text.lstrip(_DIGITS)
    return text[: len(text) - len(rest)], rest


def _fraction_of(unit: int, fraction: str) -> int:
    """Return the part of `unit` after the decimal point, rounded as Go does, which goes through a float."""
    number, scale = 0, 1.0
    for digit in fraction:
        longer = number * 10 + int(digit)
        if longer > _LARGEST:
            break
        number, scale = longer, scale * 10.0
    return int(float(number) * (unit / scale))


def format_duration(nanoseconds: int) -> str:
    """Return the shortest exact text, as Go prints it: `0s`, `1.5ms`, `1h0m0.5s`."""
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    amount = abs(nanoseconds)
    if amount < MICROSECOND_NS:
        return f"{sign}{amount}ns"
    if amount < MILLISECOND_NS:
        return f"{sign}{_decimal(amount, 3)}µs"
    if amount < SECOND_NS:
        return f"{sign}{_decimal(amount, 6)}ms"
    minutes, below = divmod(amount, MINUTE_NS)
    text = f"{_decimal(below, 9)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(amount: int, places: int) -> str:
    whole, fraction = divmod(amount, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0") if fraction else str(whole)


def human_duration(nanoseconds: int) -> str:
    """Return an age as `kubectl get` shows it, in two or three digits: `119s`, `4m5s`, `3h20m`, `5d3h`, `2y30d`."""
    # A clock may be a moment behind the server's; that is not worth alarming anybody.
    if nanoseconds <= -2 * SECOND_NS:
        return "<invalid>"
    seconds = max(nanoseconds, 0) // SECOND_NS
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def short_human_duration(nanoseconds: int) -> str:
    """Return an age in one unit, the largest that is not zero: `59s`, `1m`, `23h`, `364d`, `1y`."""
    if nanoseconds <= -2 * SECOND_NS:
        return "<invalid>"
    seconds = max(nanoseconds, 0) // SECOND_NS
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    hours = seconds // 3600
    if hours < 24:
        return f"{hours}h"
    days = hours // 24
    return f"{days}d" if days < 365 else f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
