"""Answers into objects: an `ObjectReader` turns the bytes of one object, or of a list, into what a caller wants.

Callers name a struct type (all of a kind, or only the fields they need), `dict` for plain JSON values, or bring a
`projection`, a function from an object's bytes to whatever they keep. Nobody keeps the bytes.

What must stay true: an answer that cannot be read is `BadAnswer`, the world's error, never half an object. Lists
of typed objects carry kind and version in every item, although servers leave them out there.

Called by the client and its watches; controllers bring readers of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from nodeward.api import codec
from nodeward.api.fields import KubeStruct, KubeTop
from nodeward.api.meta import ListMeta
from nodeward.api.scheme import Kind
from nodeward.base.errors import WorldError
from nodeward.base.invariant import invariant
from nodeward.base.quantity import QuantityError

T = TypeVar("T")

_UNREADABLE = (msgspec.DecodeError, QuantityError, UnicodeDecodeError, RecursionError)


class BadAnswer(WorldError):
    """The server answered with something that cannot be read as what was asked for."""


class ObjectReader(Protocol[T]):
    """How one caller wants objects."""

    def one(self, body: bytes, kind: Kind | None = None) -> T:
        """Return an object that stands alone; `kind` fills in what a list item leaves out."""
        ...

    def page(self, body: bytes, kind: Kind) -> tuple[list[T], ListMeta]:
        """Return the items of a list, and where it goes on."""
        ...


class _List(KubeStruct, Generic[T]):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] | None = None


class _Structs(Generic[T]):
    """Objects as structs of one type."""

    def __init__(self, type_: type[T]) -> None:
        # Whether the type is a struct was checked by `_reader_of_type`; a type variable cannot say so.
        struct: Any = type_
        list_of: Any = _List
        self._type = struct
        self._decode: Any = codec.decoder(struct).decode
        self._decode_list: Any = codec.decoder(list_of[struct]).decode
        self._has_kind = issubclass(type_, KubeTop)

    def one(self, body: bytes, kind: Kind | None = None) -> T:
        try:
            obj: T = self._decode(body)
        except _UNREADABLE:
            obj = self._read_with_patience(body)
        if kind is not None and isinstance(obj, KubeTop):
            _name(obj, kind)
        return obj

    def page(self, body: bytes, kind: Kind) -> tuple[list[T], ListMeta]:
        try:
            listed = self._decode_list(body)
        except _UNREADABLE:
            raw_items, meta = raw_page(body, kind)
            return [self.one(bytes(raw), kind) for raw in raw_items], meta
        items: list[T] = listed.items or []
        if self._has_kind:
            for item in items:
                _name(cast(KubeTop, item), kind)
        return items, listed.metadata

    def _read_with_patience(self, body: bytes) -> T:
        """Decode again with nulls as absent fields, as Kubernetes reads them. Servers in Go write some."""
        try:
            obj: T = codec.read(body, self._type)
            return obj
        except _UNREADABLE as error:
            raise BadAnswer(f"the server's answer is no {self._type.__name__}: {error}") from error


def _name(obj: KubeTop, kind: Kind) -> None:
    if not obj.kind:
        obj.kind = kind.name
        obj.api_version = kind.api_version


class _Projection(Generic[T]):
    """Objects as whatever a function makes of their bytes."""

    def __init__(self, project: Callable[[bytes], T]) -> None:
        self._project = project

    def one(self, body: bytes, kind: Kind | None = None) -> T:
        try:
            return self._project(body)
        except _UNREADABLE as error:
            raise BadAnswer(f"the server's answer cannot be read: {error}") from error

    def page(self, body: bytes, kind: Kind) -> tuple[list[T], ListMeta]:
        items, meta = raw_page(body, kind)
        return [self.one(bytes(item)) for item in items], meta


_RAW_LIST = msgspec.json.Decoder(_List[msgspec.Raw])


def raw_page(body: bytes, kind: Kind) -> tuple[list[msgspec.Raw], ListMeta]:
    """Return the items of a list, unread."""
    try:
        listed = _RAW_LIST.decode(body)
    except _UNREADABLE as error:
        raise BadAnswer(f"the server's answer is no list of {kind.qualified_resource}: {error}") from error
    return listed.items or [], listed.metadata


def projection(project: Callable[[bytes], T]) -> ObjectReader[T]:
    """Read objects with a function of their bytes; it may raise msgspec's errors."""
    return _Projection(project)


@functools.cache
def _reader_of_type(type_: type[Any]) -> ObjectReader[Any]:
    if type_ is dict:
        return _Projection(codec.parse_tree)
    if type_ is bytes:
        return _Projection(bytes)
    invariant(issubclass(type_, msgspec.Struct), f"objects are read as structs, dict or bytes, not {type_!r}")
    return _Structs(type_)


def reader_of(wanted: type[T] | ObjectReader[T]) -> ObjectReader[T]:
    """Return the reader for a type (made once), or the reader itself."""
    if isinstance(wanted, type):
        return _reader_of_type(cast(Any, wanted))
    return wanted
