"""Amounts of resources, as Kubernetes writes them: `100m`, `1.5Gi`, `12e6`.

In goes text (or a JSON number), out come exact integers and the text the real API server would answer with.
A quantity is a whole number of nanos (10^-9), so sums and comparisons never round. It also remembers the family
of suffixes it was written in (`Format`), because that decides how it prints.

What must stay true: immutable; equality, order and hash look at the amount only (`1000m == 1`); printing and parsing
again gives an equal quantity with the same text; text already in Kubernetes' accepted shape is kept letter by letter.

Used by every component.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from nodeward.base.errors import NodewardError

_NANO: Final = 10**9
_MICRO: Final = 10**6
_INT64_MAX: Final = 2**63 - 1

# Unlike upstream: longer texts and larger exponents are refused. Nobody means them, and an exact integer with a
# million digits is a way to stop a server.
_LONGEST_TEXT: Final = 1024
_LARGEST_EXPONENT: Final = 1024

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

# The scanner is looser than the expression in the message (a bare "m" is zero milli), as upstream's is.
_SHAPE: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)")


class QuantityError(NodewardError, ValueError):
    """The text is not a quantity. The message is the one Kubernetes gives."""


class Format(Enum):
    """The family of suffixes a quantity prints with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES: Final = ("", *_BINARY)


class Quantity:
    """An exact amount and the way it is written. Make one with `parse`, `of_int`, `of_milli` or `of_nanos`."""

    __slots__ = ("_text", "format", "nanos")

    #: The amount in units of 10^-9, exactly.
    nanos: Final[int]
    format: Final[Format]

    def __init__(self, nanos: int, format: Format, text: str = "") -> None:  # noqa: A002
        self.nanos = nanos
        self.format = format
        self._text = text

    @staticmethod
    def parse(text: str) -> Quantity:
        """Return the quantity `text` stands for; `QuantityError` if none. Repeated texts cost one lookup."""
        return _parse(text)

    @staticmethod
    def from_json(value: str | int | float | bytes | None) -> Quantity:
        """Return a quantity from decoded JSON, or from the raw JSON literal when given bytes.

        Upstream reads the literal, so `1e3` keeps its exponent; a decoded float has lost that, and its
        shortest text is taken instead.
        """
        if value is None or value == b"null":
            return ZERO
        if isinstance(value, bool):
            raise QuantityError(_WRONG_FORMAT)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
            if len(value) >= 2 and value[0] == value[-1] == '"':
                value = value[1:-1]
        return _parse(value.strip() if isinstance(value, str) else repr(value))

    @staticmethod
    def of_int(amount: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        return Quantity(amount * _NANO, format)

    @staticmethod
    def of_milli(amount: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        return Quantity(amount * _MICRO, format)

    @staticmethod
    def of_nanos(amount: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        return Quantity(amount, format)

    @property
    def value(self) -> int:
        """Whole units, fractions rounded away from zero. Unlike upstream: never overflows."""
        return _divide_away_from_zero(self.nanos, _NANO)

    @property
    def milli_value(self) -> int:
        """Thousandths, smaller fractions rounded away from zero. Unlike upstream: never overflows."""
        return _divide_away_from_zero(self.nanos, _MICRO)

    @property
    def is_zero(self) -> bool:
        return self.nanos == 0

    @property
    def sign(self) -> int:
        return (self.nanos > 0) - (self.nanos < 0)

    def __str__(self) -> str:
        text = self._text
        if not text:
            text = self._text = _canonical(self.nanos, self.format)
        return text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, written as the left side is (as the right side, when the left is zero)."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        """The difference, written as the left side is (as the right side, when the left is zero)."""
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)


ZERO: Final = Quantity(0, Format.DECIMAL_SI)


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    if not text:
        raise QuantityError(_WRONG_FORMAT)
    if len(text) > _LONGEST_TEXT:
        raise QuantityError(_WRONG_NUMBER)
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise QuantityError(_WRONG_FORMAT)
    sign, whole, fraction, suffix = match.groups("")
    digits = (whole or "0") + fraction
    number = int(digits)
    binary = _BINARY.get(suffix)
    if binary is not None:
        plain = not fraction and len(digits) + binary * 3 // 10 <= 14
        form = Format.BINARY_SI
        kept = plain and number & 7 != 0
        nanos = _scale_up((number << binary), 9 - len(fraction))
        if not plain:
            nanos = min(nanos, _INT64_MAX * _NANO)
        if 0 < nanos < _NANO:
            form = Format.DECIMAL_SI
    else:
        exponent, form = _decimal_suffix(suffix)
        scale = exponent - len(fraction)
        plain = len(digits) <= 18 and scale >= -9
        kept = plain and scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
        nanos = _scale_up(number, scale + 9)
    if not plain and not _has_digit(text[: match.start(4)]):
        raise QuantityError(_WRONG_NUMBER)
    return Quantity(-nanos if sign == "-" else nanos, form, text if kept else "")


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _decimal_suffix(suffix: str) -> tuple[int, Format]:
    exponent = _DECIMAL.get(suffix)
    if exponent is not None:
        return exponent, Format.DECIMAL_SI
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise QuantityError(_WRONG_SUFFIX)
    exponent = int(match.group(1))
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(_WRONG_SUFFIX)
    return exponent, Format.DECIMAL_EXPONENT


def _scale_up(number: int, places: int) -> int:
    """`number` x 10^`places`. What does not fit is rounded up: who asks for a little gets a little, never nothing."""
    power: int = 10 ** abs(places)
    return number * power if places >= 0 else -(-number // power)


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _canonical(nanos: int, form: Format) -> str:
    if nanos == 0:
        return "0"
    if form is Format.BINARY_SI:
        # Small and broken amounts print in decimal, so that no precision is lost.
        if -1024 * _NANO < nanos < 1024 * _NANO or nanos % _NANO:
            form = Format.DECIMAL_SI
        else:
            return _canonical_binary(nanos // _NANO)
    # Unlike upstream: amounts past the largest suffix keep it (`1000E`); upstream would drop the suffix.
    largest = 18 if form is Format.DECIMAL_SI else None
    exponent = -9
    while nanos % 1000 == 0 and exponent != largest:
        nanos //= 1000
        exponent += 3
    if form is Format.DECIMAL_SI:
        return f"{nanos}{_DECIMAL_NAMES[exponent]}"
    return f"{nanos}e{exponent}" if exponent else str(nanos)


def _canonical_binary(amount: int) -> str:
    step = 0
    while amount % 1024 == 0 and step < 6:
        amount //= 1024
        step += 1
    return f"{amount}{_BINARY_NAMES[step]}"
