"""Functions of lists: cel-go's list library (version 3), sets, and Kubernetes' own (`sum`, `min`, `isSorted`, ...)."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from nodeward.cel import arithmetic as a
from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType
from nodeward.cel.conversions import show
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.values import (
    COST_EXCEEDED,
    LONGEST_LIST,
    CelMap,
    CostLimitExceeded,
    Duration,
    EvaluationError,
    GrowingMap,
    JoinedList,
    Uint,
    Value,
    compare_equal,
    contains,
    find_key,
    no_overload,
    type_of_value,
)

_T, _A, _K, _V = t.parameter("T"), t.parameter("A"), t.parameter("K"), t.parameter("V")
_LIST_T, _LIST_DYN = t.list_of(_T), t.list_of(t.DYN)
_MAP: Final = t.map_of(_K, _V)
COMPARABLE: Final = (t.INT, t.UINT, t.DOUBLE, t.BOOL, t.DURATION, t.TIMESTAMP, t.STRING, t.BYTES)
_SHORT_NAMES: Final = {t.DURATION: "duration", t.TIMESTAMP: "timestamp"}
_ZEROS: Final = {t.INT: 0, t.UINT: Uint(0), t.DOUBLE: 0.0, t.DURATION: Duration(0)}


def _slice(items: list[Value], start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: Value, depth: int = 1) -> list[Value]:
    if not isinstance(items, list | tuple) or type(depth) is not int:
        raise EvaluationError(f"no such overload: {type_of_value(items)}.flatten()")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    result: list[Value] = []
    for item in items:
        if isinstance(item, list | tuple) and depth > 0:
            result += _flatten(item, depth - 1)
        else:
            result.append(item)
    return result


def _range(count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    if count > LONGEST_LIST:
        raise CostLimitExceeded(COST_EXCEEDED)
    return list(range(count))


def _distinct(items: list[Value]) -> list[Value]:
    seen: set[tuple[type, Value]] = set()
    result: list[Value] = []
    for item in items:
        if type(item) in (int, str, bool):
            if (type(item), item) in seen:
                continue
            if type(item) is not int or not contains(result, item):
                seen.add((type(item), item))
                result.append(item)
        elif not contains(result, item):
            result.append(item)
    return result


def _sort(items: list[Value]) -> list[Value]:
    return _sort_by_keys(items, items)


def _sort_by_keys(items: list[Value], keys: Value) -> list[Value]:
    if not isinstance(keys, list | tuple) or len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    first = type(keys[0])
    if first not in a.COMPARABLE:
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not first for key in keys):
        raise EvaluationError("list elements must have the same type")
    order = cmp_to_key(a.compare)
    return [items[index] for index in sorted(range(len(items)), key=lambda index: order(keys[index]))]


def _is_sorted(items: list[Value]) -> bool:
    for item in items:
        if type(item) not in a.COMPARABLE:
            raise no_overload()
    return all(_order(left, right) <= 0 for left, right in pairwise(items))


def _order(left: Value, right: Value) -> int:
    try:
        return a.compare(left, right)
    except EvaluationError:
        return 0


def _sum(zero: Value) -> Implementation:
    def run(items: list[Value]) -> Value:
        total = zero
        for item in items:
            total = a.add(total, item)
        return total

    return run


def _extreme(name: str, wanted: int) -> Implementation:
    def run(items: list[Value]) -> Value:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for item in items:
            if type(item) not in a.COMPARABLE:
                raise no_overload()
            if _order(best, item) == wanted:
                best = item
        return best

    return run


def _index_of(items: list[Value], item: Value) -> int:
    return next((at for at, each in enumerate(items) if compare_equal(each, item) is True), -1)


def _last_index_of(items: list[Value], item: Value) -> int:
    return next((at for at in reversed(range(len(items))) if compare_equal(items[at], item) is True), -1)


def _includes(target: Value, item: Value) -> bool:
    if isinstance(target, list | tuple):
        return any(compare_equal(each, item) is True for each in target)
    return compare_equal(target, item) is True


def _sets_contain(items: list[Value], wanted: list[Value]) -> bool:
    return all(contains(items, item) for item in wanted)


def _sets_equivalent(items: list[Value], others: list[Value]) -> bool:
    return _sets_contain(items, others) and _sets_contain(others, items)


def _sets_intersect(items: list[Value], others: list[Value]) -> bool:
    return any(contains(others, item) for item in items)


def insert_entry(mapping: Value, key: Value, value: Value) -> CelMap:
    """Return the map with one more entry; a key that is already there is an error."""
    if find_key(mapping, key)[1]:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    result = mapping if type(mapping) is GrowingMap else _copied(mapping)
    result.insert(key, value)
    return result


def _insert_map(mapping: Value, update: Value) -> CelMap:
    for key in update:
        mapping = insert_entry(mapping, key, find_key(update, key)[0])
    return mapping if isinstance(mapping, CelMap) else _copied(mapping)


def _copied(mapping: dict[str, Value] | CelMap) -> CelMap:
    result = CelMap()
    for key in mapping:
        result.insert(key, find_key(mapping, key)[0])
    return result


def _member(
    id_: str, arguments: tuple[CelType, ...], result: CelType, run: Implementation | None = None
) -> Overload:
    return Overload(id_, arguments, result, run, is_member=True)


def _name(kind: CelType) -> str:
    return _SHORT_NAMES.get(kind, kind.name)


_LISTS: Final = frozenset({list, tuple, JoinedList})

CEL_LISTS: Final = (
    Function("slice", (_member("list_slice", (_LIST_T, t.INT, t.INT), _LIST_T, _slice),)),
    Function(
        "flatten",
        (
            _member("list_flatten", (t.list_of(_LIST_T),), _LIST_T, _flatten),
            _member("list_flatten_int", (_LIST_DYN, t.INT), _LIST_DYN, _flatten),
        ),
        is_guarded=False,
    ),
    Function(
        "sort",
        tuple(_member(f"list_{kind.name}_sort", (t.list_of(kind),), t.list_of(kind)) for kind in COMPARABLE),
        _sort,
        _LISTS,
    ),
    Function(
        "@sortByAssociatedKeys",
        tuple(
            _member(f"list_{kind.name}_sortByAssociatedKeys", (_LIST_T, t.list_of(kind)), _LIST_T)
            for kind in COMPARABLE
        ),
        _sort_by_keys,
        _LISTS,
    ),
    Function("lists.range", (Overload("lists_range", (t.INT,), t.list_of(t.INT), _range),)),
    Function("reverse", (_member("list_reverse", (_LIST_T,), _LIST_T, lambda items: items[::-1]),)),
    Function("distinct", (_member("list_distinct", (_LIST_T,), _LIST_T, _distinct),)),
)

SETS: Final = tuple(
    Function(f"sets.{name}", (Overload(f"list_sets_{name}_list", (_LIST_T, _LIST_T), t.BOOL, run),))
    for name, run in (
        ("contains", _sets_contain),
        ("equivalent", _sets_equivalent),
        ("intersects", _sets_intersect),
    )
)

TWO_VARIABLES: Final = (
    Function(
        "cel.@mapInsert",
        (
            Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, insert_entry),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_map),
        ),
    ),
)

KUBERNETES_LISTS: Final = (
    Function(
        "isSorted",
        tuple(
            _member(f"list_{_name(kind)}_is_sorted_bool", (t.list_of(kind),), t.BOOL, _is_sorted)
            for kind in COMPARABLE
        ),
    ),
    Function(
        "sum",
        tuple(
            _member(f"list_{_name(kind)}_sum_{_name(kind)}", (t.list_of(kind),), kind, _sum(zero))
            for kind, zero in _ZEROS.items()
        ),
    ),
    *(
        Function(
            name,
            tuple(
                _member(
                    f"list_{_name(kind)}_{name}_{_name(kind)}",
                    (t.list_of(kind),),
                    kind,
                    _extreme(name, wanted),
                )
                for kind in COMPARABLE
            ),
        )
        for name, wanted in (("max", -1), ("min", 1))
    ),
    Function("indexOf", (_member("list_a_index_of_int", (t.list_of(_A), _A), t.INT, _index_of),)),
    Function(
        "lastIndexOf", (_member("list_a_last_index_of_int", (t.list_of(_A), _A), t.INT, _last_index_of),)
    ),
)

#: Only where lists may be attributes of devices, and for every expression from 1.37 on.
INCLUDES: Final = (
    Function("includes", (_member("list_includes_dyn_dyn", (t.DYN, t.DYN), t.BOOL, _includes),)),
)
