"""Quantities in expressions: `quantity("1Gi").isGreaterThan(...)`.

The amounts are `nodeward.base.quantity.Quantity`; this module gives them a type and functions.
"""

from __future__ import annotations

from typing import Final

from nodeward.base.quantity import Format, Quantity, QuantityError
from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.values import INT_MAX, INT_MIN, EvaluationError, ExtensionValue

QUANTITY: Final = t.struct("kubernetes.Quantity")


class QuantityValue(ExtensionValue):
    """A quantity as expressions see it."""

    __slots__ = ("amount",)
    cel_type = QUANTITY

    def __init__(self, amount: Quantity) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __str__(self) -> str:
        return str(self.amount)


class ComputedQuantity(QuantityValue):
    """The result of `add` or `sub`. As upstream, nothing can be compared with it when it stands on the right."""

    __slots__ = ()
    is_comparable = False


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(Quantity.parse(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _nanos(value: QuantityValue) -> int:
    return value.amount.nanos


def _is_integer(value: QuantityValue) -> bool:
    whole = value.amount.value
    return INT_MIN <= whole <= INT_MAX and Quantity.of_int(whole) == value.amount


def _as_integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.amount.value


def _approximate(value: QuantityValue) -> float:
    return _nanos(value) / _nanos(_of_int(1))


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    return (_nanos(left) > _nanos(right)) - (_nanos(left) < _nanos(right))


def _of_int(amount: int) -> QuantityValue:
    return QuantityValue(Quantity.of_int(amount, Format.DECIMAL_EXPONENT))


def _add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    return ComputedQuantity(left.amount + right.amount)


def _subtract(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    return ComputedQuantity(left.amount - right.amount)


def _member(
    name: str, id_: str, other: tuple[t.CelType, ...], result: t.CelType, run: Implementation
) -> Function:
    return Function(name, (Overload(id_, (QUANTITY, *other), result, run, is_member=True),))


QUANTITIES: Final = (
    Function("quantity", (Overload("string_to_quantity", (t.STRING,), QUANTITY, _parse),)),
    Function("isQuantity", (Overload("is_quantity_string", (t.STRING,), t.BOOL, _is_quantity),)),
    Function("sign", (Overload("quantity_sign", (QUANTITY,), t.INT, lambda value: value.amount.sign),)),
    _member(
        "isGreaterThan", "quantity_is_greater_than", (QUANTITY,), t.BOOL, lambda a, b: _compare(a, b) > 0
    ),
    _member("isLessThan", "quantity_is_less_than", (QUANTITY,), t.BOOL, lambda a, b: _compare(a, b) < 0),
    _member("compareTo", "quantity_compare_to", (QUANTITY,), t.INT, _compare),
    _member("asApproximateFloat", "quantity_get_float", (), t.DOUBLE, _approximate),
    _member("asInteger", "quantity_get_int", (), t.INT, _as_integer),
    _member("isInteger", "quantity_is_integer", (), t.BOOL, _is_integer),
    Function(
        "add",
        (
            Overload("quantity_add", (QUANTITY, QUANTITY), QUANTITY, _add, is_member=True),
            Overload(
                "quantity_add_int",
                (QUANTITY, t.INT),
                QUANTITY,
                lambda a, b: _add(a, _of_int(b)),
                is_member=True,
            ),
        ),
    ),
    Function(
        "sub",
        (
            Overload("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, _subtract, is_member=True),
            Overload(
                "quantity_sub_int",
                (QUANTITY, t.INT),
                QUANTITY,
                lambda a, b: _subtract(a, _of_int(b)),
                is_member=True,
            ),
        ),
    ),
)
