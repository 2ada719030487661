"""Which type may stand for which, with type parameters bound on the way.

Used by the checker. `Bindings` maps the names of type parameters to types. A check either succeeds and keeps what it
bound, or fails and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType, TypeKind


class Bindings:
    """What type parameters stand for. Changes are an attempt until they are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, CelType] = {}
        self._attempt: dict[str, CelType] = {}

    def get(self, name: str) -> CelType | None:
        found = self._attempt.get(name)
        return self._kept.get(name) if found is None else found

    def bind(self, name: str, kind: CelType) -> None:
        self._attempt[name] = kind

    def settle(self, is_kept: bool) -> bool:
        """Keep or drop what was bound since the last time; return the decision."""
        if is_kept:
            self._kept.update(self._attempt)
        self._attempt.clear()
        return is_kept


_NULLABLE = frozenset(
    {TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP, TypeKind.NULL}
)
_CONTAINERS = frozenset({TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP})


def assign_all(bindings: Bindings, left: Sequence[CelType], right: Sequence[CelType]) -> bool:
    """Check each type of the left against the right one at its place; binds parameters."""
    return len(left) == len(right) and all(
        assign(bindings, mine, theirs) for mine, theirs in zip(left, right, strict=True)
    )


def assign(bindings: Bindings, left: CelType, right: CelType) -> bool:
    """Check that the types agree; binds parameters."""
    if right.kind is TypeKind.PARAM:
        is_valid, was_bound = _bind(bindings, left, right)
        if is_valid or was_bound:
            return is_valid
    if left.kind is TypeKind.PARAM:
        return _bind(bindings, right, left)[0]
    if _is_wild(left) or _is_wild(right):
        return True
    if left.kind is TypeKind.NULL or right.kind is TypeKind.NULL:
        other = right if left.kind is TypeKind.NULL else left
        return other.kind in _NULLABLE or other.is_wrapper
    if left.kind is TypeKind.TYPE:
        return right.kind is TypeKind.TYPE
    if left.kind in _CONTAINERS:
        return (
            left.kind is right.kind
            and left.name == right.name
            and assign_all(bindings, left.parameters, right.parameters)
        )
    return left == right


def _is_wild(kind: CelType) -> bool:
    return kind.is_dynamic or kind.kind is TypeKind.ERROR


def _bind(bindings: Bindings, value: CelType, param: CelType) -> tuple[bool, bool]:
    """Try to let a parameter stand for a type; tells whether it may, and whether it was bound before."""
    if value == param:
        return True, True
    if (bound := bindings.get(param.name)) is not None:
        if value == bound:
            return True, True
        if assign(bindings, value, bound):
            general = most_general(value, bound)
            if not _mentions(bindings, param, general):
                bindings.bind(param.name, general)
            return True, True
        return False, True
    if _mentions(bindings, param, value):
        return False, False
    bindings.bind(param.name, value)
    return True, False


def _mentions(bindings: Bindings, param: CelType, within: CelType) -> bool:
    """Tell whether the parameter occurs in the type, bound parameters followed."""
    if param == within:
        return True
    if within.kind is TypeKind.PARAM:
        bound = bindings.get(within.name)
        return bound is not None and _mentions(bindings, param, bound)
    return any(_mentions(bindings, param, each) for each in within.parameters)


def most_general(left: CelType, right: CelType) -> CelType:
    """Return the less specific of two types that agree."""
    return left if _is_equal_or_wider(left, right) else right


def _is_equal_or_wider(left: CelType, right: CelType) -> bool:
    if left.is_dynamic or left.kind is TypeKind.PARAM:
        return True
    if right.is_dynamic or right.kind is TypeKind.PARAM or left.kind is not right.kind:
        return False
    if left.kind is TypeKind.TYPE:
        return True
    if left.kind in _CONTAINERS:
        return (
            left.name == right.name
            and len(left.parameters) == len(right.parameters)
            and all(
                _is_equal_or_wider(mine, theirs)
                for mine, theirs in zip(left.parameters, right.parameters, strict=True)
            )
        )
    return left == right


def substitute(bindings: Bindings, kind: CelType, *, free_is_dyn: bool = False) -> CelType:
    """Replace bound parameters by what they stand for; free ones by `dyn` if asked to."""
    if kind.kind is TypeKind.PARAM:
        bound = bindings.get(kind.name)
        if bound is not None:
            return substitute(bindings, bound, free_is_dyn=free_is_dyn)
        return t.DYN if free_is_dyn else kind
    if not kind.parameters:
        return kind
    inner = tuple(substitute(bindings, each, free_is_dyn=free_is_dyn) for each in kind.parameters)
    return CelType(kind.kind, kind.name, inner)


def rename_parameters(kind: CelType, fresh: dict[str, CelType]) -> CelType:
    """Replace the parameters of a declaration by fresh ones."""
    if kind.kind is TypeKind.PARAM:
        return fresh[kind.name]
    if not kind.parameters:
        return kind
    return CelType(kind.kind, kind.name, tuple(rename_parameters(each, fresh) for each in kind.parameters))


def parameter_names(kinds: Sequence[CelType]) -> set[str]:
    """Return the names of all parameters in these types."""
    found: set[str] = set()
    for kind in kinds:
        found |= {kind.name} if kind.kind is TypeKind.PARAM else parameter_names(kind.parameters)
    return found


def is_equivalent(left: CelType, right: CelType) -> bool:
    """Compare types, taking any two type parameters for the same."""
    if left.kind is not right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind is not TypeKind.PARAM and left.name != right.name:
        return False
    return all(is_equivalent(*pair) for pair in zip(left.parameters, right.parameters, strict=True))
