"""The vocabulary in which kinds are described: one struct per type, with facts about each field beside its type.

A description says everything the rest of the system needs to know of a field: its JSON name and type (msgspec decodes
and encodes from it), whether an empty value is written, how lists merge, which values are usual, what is required.
`nodeward.api.schema` compiles the descriptions; patches, server-side apply, unknown-field checks and OpenAPI read the
result.

Emptiness follows Kubernetes: a plain field with its zero value is the same as an absent one and is not written, `T |
None` distinguishes absent from zero, and `always(...)`, `nested(...)` mark fields that are written even when empty. A
list that is always written is written as null when it is empty: Kubernetes stores no difference between the two.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import msgspec

from nodeward.base.quantity import Quantity

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrString: TypeAlias = int | str

_TIME = r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$"
#: RFC 3339, whole seconds when written by us.
Time: TypeAlias = Annotated[str, msgspec.Meta(pattern=_TIME)]
#: RFC 3339 with six digits of a second when written by us.
MicroTime: TypeAlias = Annotated[str, msgspec.Meta(pattern=_TIME, title="MicroTime")]
#: JSON that is carried along unparsed.
RawJson: TypeAlias = msgspec.Raw

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListMap:
    """A list whose items are identified by these fields: each may have its own owner in server-side apply."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True, slots=True)
class Merge:
    """How a strategic merge patch treats a list: merged by `key` ("" for plain values)."""

    key: str
    retain_keys: bool = False


@dataclass(frozen=True, slots=True)
class Keyed:
    """`ListMap` and `Merge` by the same single key, the usual case."""

    key: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """The usual values, for `kubectl explain`; validation says which are refused."""

    values: tuple[str, ...]

    def __init__(self, *values: str) -> None:
        object.__setattr__(self, "values", values)


class Marker:
    """A fact about a field that needs no arguments."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


#: A list of plain values without repeats; each may have its own owner.
SET = Marker("SET")
#: A map or struct that is owned and replaced whole.
ATOMIC = Marker("ATOMIC")
#: A reference that is owned field by field although its type is atomic.
GRANULAR = Marker("GRANULAR")
#: A struct that a strategic merge patch replaces whole.
REPLACE = Marker("REPLACE")
#: A union in a strategic merge patch: fields the patch does not name are cleared.
RETAIN_KEYS = Marker("RETAIN_KEYS")
#: OpenAPI calls the field required.
REQUIRED = Marker("REQUIRED")


class KubeStruct(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Part of an object."""


class KubeTop(KubeStruct):
    """What may stand at the top of a request or an answer."""

    kind: str = ""
    api_version: str = ""


#: A field whose JSON name is not the camel case of its Python name.
field = msgspec.field


def always(zero: T, name: str | None = None) -> T:
    """Declare a plain field that is written even when it is zero."""
    result: T = msgspec.field(default_factory=lambda: zero, name=name)
    return result


# Not `list` and `dict` themselves: of those, msgspec knows that empty is the default, and would not write it.
def _no_items() -> list[Any]:
    return []


def _no_entries() -> dict[str, Any]:
    return {}


def always_list(name: str | None = None) -> Any:
    """Declare a list that is written even when it is empty."""
    return msgspec.field(default_factory=_no_items, name=name)


if TYPE_CHECKING:
    RequiredList: TypeAlias = list[T]
else:

    class RequiredList:
        """`RequiredList[T]`: to the type checker and to our code a list; in JSON it may be null, which is empty."""

        def __class_getitem__(cls, item: Any) -> Any:
            return list[item] | None


class NullList(list[Any]):
    """A required list that is absent, as opposed to one that was sent empty."""


def _no_required_items() -> list[Any]:
    return NullList()


def required_list(name: str | None = None) -> Any:
    """Declare a `RequiredList` field: written as null when it is empty. Its struct is a `WithRequiredLists`."""
    return msgspec.field(default_factory=_no_required_items, name=name)


@functools.cache
def required_lists(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the fields of a struct that are `required_list()`."""
    found = msgspec.structs.fields(struct)
    return tuple(info.name for info in found if info.default_factory is _no_required_items)


class WithRequiredLists(KubeStruct):
    """A struct with a `required_list()`: null, once it is read, is an empty list."""

    def __post_init__(self) -> None:
        for name in required_lists(type(self)):
            if getattr(self, name) is None:
                setattr(self, name, NullList())


def always_dict(name: str | None = None) -> Any:
    """Declare a map that is written even when it is empty."""
    return msgspec.field(default_factory=_no_entries, name=name)


def always_null(name: str | None = None) -> Any:
    """Declare a time or a pointer that is written as null when it is not set."""
    return msgspec.field(default_factory=lambda: None, name=name)


def always_zero_quantity(name: str | None = None) -> Any:
    """Declare a quantity that is written as 0 when it is not set."""
    return msgspec.field(default_factory=lambda: Quantity.parse("0"), name=name)


def nested(struct: type[T], name: str | None = None) -> T:
    """Declare a struct that is always there, and written as {} when empty."""
    result: T = msgspec.field(default_factory=struct, name=name)
    return result
