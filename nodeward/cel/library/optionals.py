"""Optional values: `optional.of`, `orValue`, `.?`, `[?]`, `first`, `last`.

`or`, `orValue`, `.?` and `[?]` are declared here and carried out by the planners, as they do not evaluate all of their
arguments.
"""

from __future__ import annotations

from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.conversions import show
from nodeward.cel.declarations import Function, Overload
from nodeward.cel.values import NONE, EvaluationError, OptionalValue, Value, is_zero

_K, _V = t.parameter("K"), t.parameter("V")
_OPTIONAL, _LIST, _MAP = t.optional_of(_V), t.list_of(_V), t.map_of(_K, _V)


def _of_non_zero(value: Value) -> OptionalValue:
    return NONE if is_zero(value) else OptionalValue(value)


def _first(items: list[Value]) -> OptionalValue:
    return OptionalValue(items[0]) if items else NONE


def _last(items: list[Value]) -> OptionalValue:
    return OptionalValue(items[-1]) if items else NONE


def _unwrap(items: list[Value]) -> list[Value]:
    for item in items:
        if not isinstance(item, OptionalValue):
            raise EvaluationError(f"value {show(item)} is not optional")
    return [item.value for item in items if item.has_value]


OPTIONALS: Final = (
    Function("optional.of", (Overload("optional_of", (_V,), _OPTIONAL, OptionalValue),)),
    Function(
        "optional.ofNonZeroValue", (Overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero),)
    ),
    Function("optional.none", (Overload("optional_none", (), _OPTIONAL, lambda: NONE),)),
    Function("value", (Overload("optional_value", (_OPTIONAL,), _V, OptionalValue.get, is_member=True),)),
    Function(
        "hasValue",
        (Overload("optional_hasValue", (_OPTIONAL,), t.BOOL, lambda value: value.has_value, is_member=True),),
    ),
    Function("or", (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, is_member=True),)),
    Function("orValue", (Overload("optional_orValue_value", (_OPTIONAL, _V), _V, is_member=True),)),
    Function("_?._", (Overload("select_optional_field", (t.DYN, t.STRING), _OPTIONAL),)),
    Function(
        "_[?_]",
        (
            Overload("list_optindex_optional_int", (_LIST, t.INT), _OPTIONAL),
            Overload("optional_list_optindex_optional_int", (t.optional_of(_LIST), t.INT), _OPTIONAL),
            Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
            Overload("optional_map_optindex_optional_value", (t.optional_of(_MAP), _K), _OPTIONAL),
        ),
    ),
    Function(
        "_[_]",
        (
            Overload("optional_list_index_int", (t.optional_of(_LIST), t.INT), _OPTIONAL),
            Overload("optional_map_index_value", (t.optional_of(_MAP), _K), _OPTIONAL),
        ),
    ),
    Function("last", (Overload("list_last", (_LIST,), _OPTIONAL, _last, is_member=True),)),
    Function("first", (Overload("list_first", (_LIST,), _OPTIONAL, _first, is_member=True),)),
    Function("optional.unwrap", (Overload("optional_unwrap", (t.list_of(_OPTIONAL),), _LIST, _unwrap),)),
    Function(
        "unwrapOpt",
        (Overload("optional_unwrapOpt", (t.list_of(_OPTIONAL),), _LIST, _unwrap, is_member=True),),
    ),
)
