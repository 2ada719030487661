"""What calls cost at most, by function: the libraries' own rules.

Called by `estimate.py`, which has the rules of the standard functions. A rule is given the call and returns the cost of
the call itself, without its arguments, and the size of its result if it is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType, TypeKind
from nodeward.cel.ranges import LARGEST, LIST_COST, ONE, REGEX, TRAVERSAL, UNKNOWN, Range, exactly
from nodeward.cel.syntax_tree import Literal, Node

_WRAP: Final = 2**64


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument or receiver: its node, type, the path it was reached by, and its size if known."""

    node: Node | None
    type: CelType
    path: tuple[str, ...] | None
    size: Range | None


@dataclass(frozen=True, slots=True)
class CallToEstimate:
    """A call under one of its overloads."""

    function: str
    overload: str
    target: Operand | None
    arguments: list[Operand]
    size_of_path: Callable[[tuple[str, ...]], int | None]

    def size(self, operand: Operand) -> Range:
        """Return the size of an operand, or the unknown one."""
        if operand.size is not None:
            return operand.size
        bound = self.size_of_path(operand.path) if operand.path else None
        return UNKNOWN if bound is None else Range(0, bound)


#: Cost of the call itself, and the size of its result.
CallEstimate: TypeAlias = tuple[Range, Range | None]


def estimate_library_call(call: CallToEstimate) -> CallEstimate | None:
    """Return what a call of a library's function costs; None for functions without a rule here."""
    if (by_overload := _OVERLOADS.get(call.overload)) is not None and (
        found := by_overload(call)
    ) is not None:
        return found
    rule = _FUNCTIONS.get(call.function)
    return None if rule is None else rule(call)


def _fixed(_call: CallToEstimate) -> CallEstimate:
    return ONE, None


def _traversal(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None:
        return None
    item = _element(call)
    if item is not None:
        each = ONE
        if item.type.kind in (TypeKind.STRING, TypeKind.BYTES):
            each = each.plus(call.size(item).scaled(TRAVERSAL))
        return call.size(call.target).times(each), None
    if call.function == "includes":
        return call.size(call.target).times(ONE), None
    return call.size(call.target).scaled(TRAVERSAL), None


def _element(call: CallToEstimate) -> Operand | None:
    """Return what a list (the receiver) holds."""
    target = call.target
    if target is None or not target.type.parameters:
        return None
    path = None if target.path is None else (*target.path, "@items")
    return Operand(None, target.type.parameters[0], path, None)


def _parse_first(call: CallToEstimate) -> CallEstimate | None:
    return (call.size(call.arguments[0]).scaled(TRAVERSAL), None) if call.arguments else None


def _url(call: CallToEstimate) -> CallEstimate | None:
    if len(call.arguments) != 1:
        return None
    size = call.size(call.arguments[0])
    return size.scaled(TRAVERSAL), size


def _transform(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return size.scaled(TRAVERSAL), size


def _replace(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None or len(call.arguments) < 2:
        return None
    size, old, new = call.size(call.target), call.size(call.arguments[0]), call.size(call.arguments[1])
    kept_low = kept_high = 0
    if old.low == 0:
        most, kept_high = min(size.high + 1, LARGEST), size.high
    elif new.high <= old.low:
        most, kept_high = 0, size.high
    else:
        most = math.ceil(float(size.high) / float(old.low))
    if old.high == 0:
        least, kept_low = min(size.low + 1, LARGEST), size.low
    elif old.high <= new.low:
        least, kept_low = 0, size.low
    else:
        least = math.ceil(float(size.low) / float(old.high))
    result = Range(least, most).times(new).plus(Range(kept_low, kept_high))
    return size.scaled(2 * TRAVERSAL), result


def _split(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = size.high
    if (
        len(call.arguments) > 1
        and isinstance(limit := call.arguments[1].node, Literal)
        and type(limit.value) is int
    ):
        most = limit.value % _WRAP
    return size.scaled(2 * TRAVERSAL), Range(0, most)


def _join(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None:
        return None
    count = call.size(call.target)
    item = _element(call)
    size = Range(0, 0) if item is None else count.times(call.size(item))
    if call.arguments:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(call.size(call.arguments[0]).times(separators))
    return size.scaled(TRAVERSAL), size


def _find(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None or not call.arguments:
        return None
    size = call.size(call.target)
    cost = size.plus(ONE).scaled(TRAVERSAL).times(call.size(call.arguments[0]).scaled(REGEX))
    return cost, Range(0, size.high)


def _ip(call: CallToEstimate) -> CallEstimate | None:
    return (ONE, None) if call.overload == "cidr_ip" else _parse_first(call)


def _is_canonical(call: CallToEstimate) -> CallEstimate | None:
    return (call.size(call.arguments[0]).scaled(2 * TRAVERSAL), None) if call.arguments else None


_ADDRESS: Final = Range(4, 16)


def _contains_ip(call: CallToEstimate) -> CallEstimate | None:
    if not call.arguments:
        return None
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL)
    if call.overload == "cidr_contains_ip_string":
        cost = cost.plus(call.size(call.arguments[0]).scaled(TRAVERSAL))
    return cost, None


def _contains_cidr(call: CallToEstimate) -> CallEstimate | None:
    if not call.arguments:
        return None
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL).plus(_ADDRESS.scaled(TRAVERSAL)).plus(ONE)
    if call.overload == "cidr_contains_cidr_string":
        cost = cost.plus(call.size(call.arguments[0]).scaled(TRAVERSAL))
    return cost, None


def _validate(call: CallToEstimate) -> CallEstimate | None:
    if not call.arguments:
        return None
    return call.size(call.arguments[0]).scaled(TRAVERSAL).scaled(128 * REGEX), None


_CONSTANT_EQUALITY: Final = frozenset({"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"})


def _equals(call: CallToEstimate) -> CallEstimate | None:
    left, right = call.arguments
    if left.type.name != right.type.name or left.type.kind not in (TypeKind.OPAQUE, TypeKind.STRUCT):
        return None
    if left.type.name in _CONSTANT_EQUALITY:
        return ONE, None
    if left.type.name == "kubernetes.NamedFormat":
        return Range(1, 64).scaled(TRAVERSAL), None
    if left.type.name == "kubernetes.URL":
        size = ONE if right.size is None else right.size
        return Range(1, size.high).scaled(TRAVERSAL), None
    return None


# --- cel-go's own libraries


def _whole(operand: Operand, default: int) -> int:
    """Return the value of a literal integer that is not negative."""
    if not isinstance(operand.node, Literal) or type(operand.node.value) is not int:
        return default
    return max(operand.node.value, 0)


def _new_list(factor: float, size: Range) -> CallEstimate:
    return size.scaled(factor).plus(ONE).plus(exactly(LIST_COST)), size


def _slice(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None or len(call.arguments) != 2:
        return None
    size = call.size(call.target)
    start, end = _whole(call.arguments[0], 0), _whole(call.arguments[1], size.high)
    return _new_list(1, exactly((end - start) % _WRAP))


def _list_range(call: CallToEstimate) -> CallEstimate | None:
    return _new_list(1, exactly(_whole(call.arguments[0], LARGEST)))


def _reverse(call: CallToEstimate) -> CallEstimate | None:
    return None if call.target is None else _new_list(1, call.size(call.target))


def _flatten(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None:
        return None
    depth = _whole(call.arguments[0], LARGEST) if call.arguments else 1
    return _new_list(float(depth), call.size(call.target))


def _distinct(call: CallToEstimate) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return _new_list(2.0, size.times(size))


def _sort(kind: CelType, *, is_by_keys: bool) -> Callable[[CallToEstimate], CallEstimate | None]:
    def rule(call: CallToEstimate) -> CallEstimate | None:
        keys = call.arguments[0] if is_by_keys else call.target
        if keys is None:
            return None
        size = call.size(keys)
        factor = 2.0 + (TRAVERSAL if kind.kind in (TypeKind.STRING, TypeKind.BYTES) else 0.0)
        return _new_list(factor, size.times(size))

    return rule


def _sets(factor: float) -> Callable[[CallToEstimate], CallEstimate | None]:
    def rule(call: CallToEstimate) -> CallEstimate | None:
        left, right = call.arguments
        return call.size(left).times(call.size(right)).scaled(factor).plus(ONE), None

    return rule


_Rule: TypeAlias = Callable[[CallToEstimate], CallEstimate | None]

_COMPARABLE: Final = (t.INT, t.UINT, t.DOUBLE, t.BOOL, t.DURATION, t.TIMESTAMP, t.STRING, t.BYTES)
_OVERLOADS: Final[dict[str, _Rule]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _list_range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{f"list_{kind.name}_sort": _sort(kind, is_by_keys=False) for kind in _COMPARABLE},
    **{f"list_{kind.name}_sortByAssociatedKeys": _sort(kind, is_by_keys=True) for kind in _COMPARABLE},
}
_FUNCTIONS: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversal),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transform),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parse_first),
    **dict.fromkeys(
        (
            "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",
            "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger",
            "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch",
            "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason",
            "error", "errored", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery",
        ),
        _fixed,
    ),
    "check": lambda _call: (exactly(350_000), None),
    "url": _url,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}  # fmt: skip
