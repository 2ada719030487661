"""Types of expressions: what the checker computes with, and what `type(x)` gives at run time.

Used by declarations, checker, cost estimate and the values. Types are immutable and compared by structure.
`dyn` and `google.protobuf.Any` both stand for a value of unknown type; they differ in how they print, and only `dyn`
may be iterated over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final


class TypeKind(Enum):
    """The sort of a type; parameters and name say the rest."""

    DYN = auto()
    ANY = auto()
    ERROR = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    INT = auto()
    NULL = auto()
    STRING = auto()
    TIMESTAMP = auto()
    UINT = auto()
    LIST = auto()
    MAP = auto()
    TYPE = auto()
    OPAQUE = auto()
    STRUCT = auto()
    PARAM = auto()


@dataclass(frozen=True, slots=True)
class CelType:
    """One type: its kind, the name values of it have at run time, and its type parameters."""

    kind: TypeKind
    name: str
    parameters: tuple[CelType, ...] = ()
    #: A message of `google.protobuf` that wraps a plain value, so that it may be null.
    is_wrapper: bool = field(default=False, compare=False)

    @property
    def is_dynamic(self) -> bool:
        return self.kind in _DYNAMIC

    def __str__(self) -> str:
        """Write the type as messages about the result of an expression do."""
        if self.kind is TypeKind.PARAM:
            return f"<{self.name}>"
        if self.is_wrapper:
            return f"wrapper({self.name})"
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


_DYNAMIC: Final = frozenset({TypeKind.DYN, TypeKind.ANY})

DYN: Final = CelType(TypeKind.DYN, "dyn")
ANY: Final = CelType(TypeKind.ANY, "google.protobuf.Any")
ERROR: Final = CelType(TypeKind.ERROR, "error")
BOOL: Final = CelType(TypeKind.BOOL, "bool")
BYTES: Final = CelType(TypeKind.BYTES, "bytes")
DOUBLE: Final = CelType(TypeKind.DOUBLE, "double")
DURATION: Final = CelType(TypeKind.DURATION, "google.protobuf.Duration")
INT: Final = CelType(TypeKind.INT, "int")
NULL: Final = CelType(TypeKind.NULL, "null_type")
STRING: Final = CelType(TypeKind.STRING, "string")
TIMESTAMP: Final = CelType(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
UINT: Final = CelType(TypeKind.UINT, "uint")
TYPE: Final = CelType(TypeKind.TYPE, "type")
LIST: Final = CelType(TypeKind.LIST, "list", (DYN,))
MAP: Final = CelType(TypeKind.MAP, "map", (DYN, DYN))

OPTIONAL_NAME: Final = "optional_type"
#: Kinds whose values have a fixed size.
SCALARS: Final = frozenset(
    {TypeKind.BOOL, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.TIMESTAMP, TypeKind.UINT}
)

_WRAPPED: Final = {
    "Bool": BOOL, "Bytes": BYTES, "Double": DOUBLE, "Float": DOUBLE, "Int32": INT, "Int64": INT, "String": STRING,
    "UInt32": UINT, "UInt64": UINT,
}  # fmt: skip
#: Messages that wrap a plain value in their field `value`.
WRAPPERS: Final = {
    f"google.protobuf.{name}Value": CelType(kind.kind, kind.name, is_wrapper=True)
    for name, kind in _WRAPPED.items()
}

_SHORT_NAMES: Final = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
    TypeKind.TIMESTAMP: "timestamp",
}


def list_of(element: CelType) -> CelType:
    return CelType(TypeKind.LIST, "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType(TypeKind.MAP, "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType(TypeKind.OPAQUE, OPTIONAL_NAME, (value,))


def type_of(value: CelType) -> CelType:
    return CelType(TypeKind.TYPE, "type", (value,))


def parameter(name: str) -> CelType:
    return CelType(TypeKind.PARAM, name)


def opaque(name: str) -> CelType:
    return CelType(TypeKind.OPAQUE, name)


def struct(name: str) -> CelType:
    return CelType(TypeKind.STRUCT, name)


def unwrap_optional(kind: CelType) -> tuple[CelType, bool]:
    """Return what an optional holds, and whether the type is an optional at all."""
    if kind.kind is TypeKind.OPAQUE and kind.name == OPTIONAL_NAME:
        return kind.parameters[0], True
    return kind, False


def is_scalar(kind: CelType) -> bool:
    inner, _ = unwrap_optional(kind)
    return inner.kind in SCALARS


def display(kind: CelType) -> str:
    """Write the type as the checker's messages do."""
    if (short := _SHORT_NAMES.get(kind.kind)) is not None:
        return short
    if not kind.parameters:
        return f"wrapper({kind.name})" if kind.is_wrapper else kind.name
    return f"{kind.name}({', '.join(map(display, kind.parameters))})"


def display_call(arguments: list[CelType], *, is_member: bool) -> str:
    """Write the types a function is applied to: `(int, string)`, or `string.(int)` for a member function."""
    receiver = f"{display(arguments[0])}." if is_member else ""
    return f"{receiver}({', '.join(display(each) for each in arguments[int(is_member) :])})"
