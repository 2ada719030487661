"""Values at run time, and what is equal.

Most values are Python's own: bool, int, float, str, bytes, None, list, and dict with text as keys (objects of the
API). The rest is here: unsigned integers, times, optionals and maps whose keys are not all text. Every Python value has
one type (`type_of_value`). Used by the planners and all libraries; errors are `EvaluationError`.

What must stay true: `True` is never taken for `1`; equality between numbers of different types goes by amount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import NodewardError
from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType

Value: TypeAlias = Any

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


#: Unlike upstream: longer lists are not made. Joining lists costs one, so their length is not bounded by cost.
LONGEST_LIST: Final = 1_000_000
COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class EvaluationError(NodewardError):
    """An expression has no value for these inputs. The message is the one cel-go gives.

    `cost` is what the evaluation had cost by then, if it was counted.
    """

    cost: int | None = None


class EvaluationAborted(EvaluationError):
    """The whole evaluation ends; `||` and its like do not absorb this error."""


class CostLimitExceeded(EvaluationAborted):
    """Evaluation was stopped because it would have cost more than allowed."""


def no_overload() -> EvaluationError:
    return EvaluationError("no such overload")


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


class Timestamp:
    """A moment in nanoseconds since 1970, and the offset from UTC (seconds) it was written with."""

    __slots__ = ("nanoseconds", "zone")

    def __init__(self, nanoseconds: int, zone: int = 0) -> None:
        self.nanoseconds = nanoseconds
        self.zone = zone

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


class OptionalValue:
    """A value that may be absent; `NONE` is the absent one."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: Value, has_value: bool = True) -> None:
        self.value = value
        self.has_value = has_value

    def get(self) -> Value:
        if not self.has_value:
            raise EvaluationError("optional.none() dereference")
        return self.value


NONE: Final = OptionalValue(None, has_value=False)


class GrowingList(list[Any]):
    """The list that a comprehension collects into; adding to it changes it."""

    __slots__ = ()


class JoinedList(list[Any]):
    """Two lists one after the other, not copied: joining costs the same whatever the size.

    The list below is empty; length, items and iteration are those of the two parts.
    """

    __slots__ = ("_left", "_length", "_right")

    def __init__(self, left: Sequence[Value], right: Sequence[Value]) -> None:
        super().__init__()
        self._length = len(left) + len(right)
        if self._length > LONGEST_LIST:
            raise CostLimitExceeded(COST_EXCEEDED)
        self._left = left
        self._right = right

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return self._length > 0

    def __iter__(self) -> Iterator[Value]:
        pending: list[Sequence[Value]] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, JoinedList):
                pending += (part._right, part._left)
            else:
                yield from part

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        part: Sequence[Value] = self
        while isinstance(part, JoinedList):
            split = len(part._left)
            if index < split:
                part = part._left
            else:
                part, index = part._right, index - split
        return part[index]

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None


class CelMap:
    """A map made by an expression: keys of any type, kept apart by type, found across number types."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[tuple[type, Value], tuple[Value, Value]] | None = None) -> None:
        #: (Python type of the key, key) -> (key, value)
        self.entries = {} if entries is None else entries

    def insert(self, key: Value, value: Value) -> None:
        self.entries[type(key), key] = (key, value)

    def remove(self, key: Value) -> None:
        self.entries.pop((type(key), key), None)

    def find(self, key: Value) -> tuple[Value, Value] | None:
        """Return the entry of this key, or of an equal number of another type."""
        kind = type(key)
        if (found := self.entries.get((kind, key))) is not None:
            return found
        if kind is float and key.is_integer():
            return self.entries.get((int, int(key))) or self.entries.get((Uint, int(key)))
        if kind is int or kind is Uint:
            return self.entries.get((Uint if kind is int else int, key))
        return None

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Value]:
        return (key for key, _value in self.entries.values())


class GrowingMap(CelMap):
    """The map that a comprehension collects into; inserting changes it."""

    __slots__ = ()


def is_map(value: Value) -> bool:
    return isinstance(value, dict | CelMap)


def find_key(mapping: Mapping[str, Value] | CelMap, key: Value) -> tuple[Value, bool]:
    """Return the value of a key and whether there is one; a map with a default has one for every text."""
    if isinstance(mapping, CelMap):
        found = mapping.find(key)
        return (None, False) if found is None else (found[1], True)
    if type(key) is not str:
        default = getattr(mapping, "__missing__", None)
        return (None, False) if default is None else (default(key), True)
    try:
        return mapping[key], True  # not get(): the attributes of a device have a default
    except KeyError:
        return None, False


def has_key(mapping: Mapping[str, Value] | CelMap, key: Value) -> bool:
    """Tell whether the map itself holds the key, whatever default it has."""
    if isinstance(mapping, CelMap):
        return mapping.find(key) is not None
    return type(key) is str and key in mapping


_TYPES: Final[dict[type, CelType]] = {
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
    list: t.LIST,
    tuple: t.LIST,
    GrowingList: t.LIST,
    JoinedList: t.LIST,
    dict: t.MAP,
    CelMap: t.MAP,
    GrowingMap: t.MAP,
    Duration: t.DURATION,
    Timestamp: t.TIMESTAMP,
    OptionalValue: t.optional_of(t.DYN),
    CelType: t.TYPE,
}


class ExtensionValue:
    """A value of a type that a library adds. It can be compared with values of its own type only."""

    __slots__ = ()
    cel_type: CelType
    #: Whether other values can be compared with it when it stands on the right.
    is_comparable: ClassVar[bool] = True


def type_of_value(value: Value) -> CelType:
    """Return the type of a value at run time."""
    if (found := _TYPES.get(type(value))) is not None:
        return found
    if isinstance(value, ExtensionValue):
        return value.cel_type
    return next(kind for python, kind in _TYPES.items() if isinstance(value, python))


def type_name(value: Value) -> str:
    return type_of_value(value).name


_PLAIN: Final = frozenset({int, str, bool, bytes, Uint, Duration, Timestamp, type(None)})
_NUMBERS: Final = frozenset({int, Uint, float})


def equal(left: Value, right: Value) -> bool:
    """Compare as `==` does; raises EvaluationError for values of a library's types that cannot be compared."""
    found = compare_equal(left, right)
    if isinstance(found, EvaluationError):
        raise found
    return found


def compare_equal(left: Value, right: Value) -> bool | EvaluationError:
    """Compare as `==` does, with an error as a result."""
    kind, other = type(left), type(right)
    if kind is other and kind in _PLAIN:
        return bool(left == right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _equal_numbers(left, right)
    if left is None or right is None:
        return left is right
    if isinstance(left, ExtensionValue):
        if isinstance(right, ExtensionValue) and right.cel_type is left.cel_type and right.is_comparable:
            return bool(left == right)
        return no_overload()
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and _equal_lists(left, right)
    if isinstance(left, dict | CelMap):
        return isinstance(right, dict | CelMap) and _equal_maps(left, right)
    if kind is OptionalValue:
        return other is OptionalValue and _equal_optionals(left, right)
    if kind is CelType:
        return other is CelType and left.name == right.name
    return False


def _equal_numbers(left: float, right: float) -> bool:
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def _equal_lists(left: Sequence[Value], right: Sequence[Value]) -> bool:
    # As upstream: elements that cannot be compared do not make lists different.
    return len(left) == len(right) and all(
        compare_equal(mine, theirs) is not False for mine, theirs in zip(left, right, strict=True)
    )


def _equal_maps(left: dict[str, Value] | CelMap, right: dict[str, Value] | CelMap) -> bool:
    if len(left) != len(right):
        return False
    for key in left:
        theirs, is_there = find_key(right, key)
        if not is_there or compare_equal(find_key(left, key)[0], theirs) is False:
            return False
    return True


def _equal_optionals(left: OptionalValue, right: OptionalValue) -> bool | EvaluationError:
    if not (left.has_value and right.has_value):
        return left.has_value == right.has_value
    return compare_equal(left.value, right.value)


def contains(items: Sequence[Value], wanted: Value) -> bool:
    return any(compare_equal(wanted, item) is True for item in items)


def is_zero(value: Value) -> bool:
    """Tell whether `optional.ofNonZeroValue` takes the value for absent."""
    if value is None:
        return True
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    if isinstance(value, Timestamp):
        return value.nanoseconds == -62135596800 * SECOND_NS
    if isinstance(value, ExtensionValue | CelType | OptionalValue):
        return False
    return not len(value) if isinstance(value, str | bytes | list | tuple | dict | CelMap) else not value


def size_of(value: Value) -> int:
    """Return the size that costs are computed from: of texts, lists and maps; 1 for everything else."""
    if isinstance(value, str | bytes | list | tuple | dict | CelMap):
        return len(value)
    if isinstance(value, ExtensionValue):
        return int(getattr(value, "cost_size", 1))
    return 1
