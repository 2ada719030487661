"""Bytes to structs and back: requests, storage, and the trees that patches work on.

* `decode(kind, body)` reads what a client sent, with Kubernetes' error texts for what cannot be read.
* `stray_fields(tree, schema)` names the fields nobody knows; `duplicate_fields(body)` those given twice.
* Stored form: the object without kind, apiVersion and resourceVersion, so that it starts with `{"metadata":{` and
  the revision, known only once the write is committed, can be spliced in without decoding (`with_revision`).
* `to_tree`/`from_tree` turn structs into plain JSON values and back.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any, TypeVar, cast

import msgspec

from nodeward.api.apps_v1 import ControllerRevision
from nodeward.api.errors import ApiError, bad_request
from nodeward.api.fields import KubeTop
from nodeward.api.meta import KubeObject
from nodeward.api.null_lists import encode_with_nulls
from nodeward.api.schema import Schema, Shape, schema_of
from nodeward.api.scheme import SCHEME, Kind
from nodeward.api.times import TimeError, settle_times, time_fault
from nodeward.base.go_json import go_json
from nodeward.base.invariant import invariant
from nodeward.base.quantity import Quantity, QuantityError

S = TypeVar("S", bound=msgspec.Struct)
K = TypeVar("K", bound=KubeObject)

_STORED_START = b'{"metadata":{'


def _decode_hook(type_: type, value: Any) -> Any:
    if type_ is Quantity:
        return Quantity.from_json(value)
    raise NotImplementedError(f"nothing decodes {type_!r}")


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"nothing encodes {type(value)!r}")


@functools.cache
def _decoder(type_: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, dec_hook=_decode_hook)


def decoder(type_: type[S]) -> msgspec.json.Decoder[S]:
    """Return the decoder of one struct type; it ignores unknown fields, wrong types are errors."""
    return _decoder(type_)


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook)
_TREE = msgspec.json.Decoder()
_ZEROS: dict[Any, Any] = {str: "", bytes: "", bool: False, int: 0, float: 0, Quantity: "0", object: 0}

#: Any struct or JSON value as compact JSON.
encode = _ENCODER.encode


_IN_ORDER = msgspec.json.Encoder(enc_hook=_encode_hook, order="deterministic")


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON but for the order of keys (to Python alone, 1 is True)."""
    return bool(one == other) and _IN_ORDER.encode(one) == _IN_ORDER.encode(other)


def _tree_hook(value: Any) -> Any:
    return _TREE.decode(value) if isinstance(value, msgspec.Raw) else _encode_hook(value)


def to_tree(value: Any) -> Any:
    """Convert a struct to plain dicts, lists and values, exactly as it would be written."""
    return msgspec.to_builtins(value, enc_hook=_tree_hook)


def from_tree(tree: Any, type_: type[S]) -> S:
    """Convert a tree to a struct. Raises `msgspec.ValidationError` as `decoder` does."""
    return read(_ENCODER.encode(tree), type_)


def parse_tree(body: bytes) -> Any:
    """Parse JSON bytes to plain values; raises `msgspec.DecodeError`."""
    try:
        return _TREE.decode(body)
    except RecursionError:
        raise msgspec.DecodeError("exceeded max depth") from None
    except UnicodeDecodeError:
        return _TREE.decode(body.decode("utf-8", "replace"))


def read(body: bytes, type_: type[S]) -> S:
    """Decode JSON bytes as a struct, as lenient as Kubernetes: null means absent, broken UTF-8 is replaced."""
    try:
        return decoder(type_).decode(body)
    except msgspec.ValidationError:
        tree = without_nulls(parse_tree(body), schema_of(type_))
        return decoder(type_).decode(_ENCODER.encode(tree))
    except RecursionError:
        raise msgspec.DecodeError("exceeded max depth") from None
    except UnicodeDecodeError:
        return read(body.decode("utf-8", "replace").encode(), type_)


def without_nulls(tree: Any, schema: Schema | None) -> Any:
    """Return the tree without fields that are null; fields the schema does not know are left alone.

    A null among the items of a list or the entries of a map is the zero value of its type, as in Go.
    """
    if schema is None or schema.shape is Shape.ANY:
        return tree
    if isinstance(tree, dict):
        if schema.shape is Shape.STRUCT:
            fields = schema.fields
            return {
                key: without_nulls(value, fields.get(key)) for key, value in tree.items() if value is not None
            }
        entries = {key: _item_without_nulls(value, schema.item) for key, value in tree.items()}
        return {key: value for key, value in entries.items() if value is not None}
    if isinstance(tree, list):
        return [_item_without_nulls(item, schema.item) for item in tree]
    return tree


def _item_without_nulls(item: Any, schema: Schema | None) -> Any:
    if item is not None or schema is None:
        return without_nulls(item, schema)
    match schema.shape:
        case Shape.STRUCT:
            return {}
        case Shape.SCALAR:
            return _ZEROS.get(schema.python_type)
        case _:
            return None


def decode(body: bytes, kind: Kind, type_: type[KubeTop] | None = None) -> KubeTop:
    """Decode what a client sent as an object of `kind` (or, for a subresource, of `type_`); raises `ApiError` 400."""
    wanted = type_ or kind.type
    try:
        obj = read(body, wanted)
        settle_times(obj, body)
    except TimeError as error:
        raise _not_read(
            obj.kind or wanted.__name__, obj.api_version or "v1", wanted.__name__, str(error)
        ) from None
    except msgspec.ValidationError as error:
        raise _wrong_type(body, wanted, error) from None
    except (msgspec.DecodeError, QuantityError) as error:
        raise unreadable(body, wanted.__name__, error) from None
    if obj.kind or obj.api_version:
        check_kind(obj.api_version, obj.kind, kind, wanted)
    return obj


def check_kind(api_version: str, name: str, kind: Kind, wanted: type[KubeTop]) -> None:
    """Refuse an object that names another kind; one that names none is accepted."""
    expected = kind.api_version if wanted is kind.type else ""
    if (not api_version or not expected or api_version == expected) and name in ("", wanted.__name__):
        return
    known = SCHEME.by_name(api_version, name)
    if known is None:
        why = f'no kind "{name}" is registered for version "{api_version}" in scheme "nodeward"'
    else:
        inner = kind.group.split(".")[0] or "core"
        why = f"converting (v1.{name}) to ({inner}.{wanted.__name__}): unknown conversion"
    raise bad_request(
        f'{name} in version "{_version(api_version)}" cannot be handled as a {wanted.__name__}: {why}'
    )


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*)`)?")
_GO_TYPES = {"int": "int32", "str": "string", "bool": "bool", "array": "[]", "object": "map[string]string"}
_JSON_TYPES = {
    "str": "string",
    "int": "number",
    "float": "number",
    "array": "array",
    "object": "object",
    "bool": "bool",
}


def _wrong_type(body: bytes, type_: type[KubeTop], error: msgspec.ValidationError) -> ApiError:
    """Make the error for a field of the wrong type, in the words of a Go server, which clients know."""
    name = type_.__name__
    try:
        tree = parse_tree(body)
    except msgspec.DecodeError as worse:
        return unreadable(body, name, worse)
    if not isinstance(tree, dict):
        return unreadable(body, name, error)
    said = tree.get("kind") or name
    version = _version(str(tree.get("apiVersion") or "v1"))
    match = _EXPECTED.match(str(error))
    if match:
        wanted, got, path = match[1], match[2], match[3] or ""
        wanted = _GO_TYPES.get(wanted.split(" | ")[0], wanted)
        why = f"json: cannot unmarshal {_JSON_TYPES.get(got, got)} into Go struct field {said}.{path} of type {wanted}"
    else:
        why = time_fault(str(error), tree, schema_of(type_)) or str(error)
    return _not_read(said, version, name, why)


def _not_read(said: str, api_version: str, name: str, why: str) -> ApiError:
    return bad_request(f'{said} in version "{_version(api_version)}" cannot be handled as a {name}: {why}')


def unreadable(body: bytes, name: str, error: Exception) -> ApiError:
    """Make the error for a body that is not JSON, or not an object."""
    text = str(error)
    if "truncated" in text:
        text = "unexpected end of JSON input"
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        text = f"couldn't get version/kind; json parse error: {text}"
    return bad_request(
        f"the object provided is unrecognized (must be of type {name}): {text} ({_summary(body)})"
    )


def _summary(body: bytes, limit: int = 30) -> str:
    if not body:
        return "<empty>"
    more = " ..." if len(body) > limit else ""
    if body[:1] == b"{":
        return body[:limit].decode("utf-8", "replace") + more
    return body[:limit].hex() + more


def stray_fields(tree: Any, schema: Schema, at: str = "") -> list[str]:
    """Return the paths of fields the schema does not have, in the order they stand."""
    found: list[str] = []
    _stray(tree, schema, at, found)
    return found


def _stray(tree: Any, schema: Schema, at: str, found: list[str]) -> None:
    shape = schema.shape
    if shape is Shape.STRUCT:
        if type(tree) is not dict:
            return
        fields = schema.fields
        for key, value in tree.items():
            inner = fields.get(key)
            if inner is None:
                found.append(f"{at}.{key}" if at else key)
            elif inner.shape is not Shape.SCALAR and inner.shape is not Shape.ANY:
                _stray(value, inner, f"{at}.{key}" if at else key, found)
    elif shape is Shape.LIST:
        item = cast(Schema, schema.item)
        if type(tree) is list and item.shape is not Shape.SCALAR:
            for position, value in enumerate(tree):
                _stray(value, item, f"{at}[{position}]", found)
    elif shape is Shape.MAP:
        item = cast(Schema, schema.item)
        if type(tree) is dict and item.shape is not Shape.SCALAR:
            for key, value in tree.items():
                _stray(value, item, f"{at}.{key}", found)


@functools.cache
def _strict_decoder(type_: type) -> msgspec.json.Decoder[Any]:
    """Make a decoder that only checks, in C, that every field is known."""
    return msgspec.json.Decoder(_strict(schema_of(type_)))


def _strict(schema: Schema) -> Any:
    match schema.shape:
        case Shape.STRUCT:
            return _strict_struct(schema.python_type) | None
        case Shape.LIST | Shape.MAP:
            inner = _strict(cast(Schema, schema.item))
            if inner is Any:
                return Any
            of = (
                list.__class_getitem__(inner)
                if schema.shape is Shape.LIST
                else dict.__class_getitem__((str, inner))
            )
            return of | None
        case _:
            return Any


@functools.cache
def _strict_struct(type_: type) -> Any:
    fields = [
        (f"f{number}", _strict(inner), msgspec.field(default=None, name=name))
        for number, (name, inner) in enumerate(schema_of(type_).fields.items())
    ]
    return msgspec.defstruct(type_.__name__, fields, forbid_unknown_fields=True)


def has_stray_fields(body: bytes, type_: type) -> bool:
    """Tell whether there are unknown fields; `stray_fields` says which. Cheap if there are none."""
    try:
        _strict_decoder(type_).decode(body)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return True
    return False


def may_have_duplicates(body: bytes) -> bool:
    """Return False if no object gives a field twice; `duplicate_fields` is exact, and much slower."""
    try:
        plain = _ENCODER.encode(_TREE.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True
    # Every field ends in a quote and a colon; one given twice is lost on the way.
    return plain.count(b'":') != body.count(b'":')


class _Pairs(list[tuple[str, Any]]):
    """One JSON object as its pairs, in order, repeats kept."""


def duplicate_fields(body: bytes) -> list[str]:
    """Return the paths of fields that are given more than once in one object."""
    seen_repeat = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal seen_repeat
        plain = dict(pairs)
        if len(plain) != len(pairs):
            seen_repeat = True
        return plain

    text = body.decode("utf-8", "replace")
    # Numbers do not matter here, and reading one of thousands of digits would fail.
    json.loads(text, object_pairs_hook=note, parse_int=str)
    if not seen_repeat:
        return []
    found: list[str] = []
    _walk_pairs(json.loads(text, object_pairs_hook=_Pairs, parse_int=str), "", found)
    return found


def _walk_pairs(value: Any, at: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, inner in value:
            path = f"{at}.{key}" if at else key
            if key in seen and path not in found:
                found.append(path)
            seen.add(key)
            _walk_pairs(inner, path, found)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _walk_pairs(inner, f"{at}[{position}]", found)


def to_stored(obj: KubeObject) -> bytes:
    """Encode the bytes the store keeps. The object keeps its kind and version for the answer."""
    kind, api_version, meta = obj.kind, obj.api_version, obj.metadata
    revision = meta.resource_version
    obj.kind = obj.api_version = meta.resource_version = ""
    if isinstance(obj, ControllerRevision) and obj.data is not None:
        # Controllers compare the bytes of what it holds with what Go writes.
        value = _ENCODER.encode(msgspec.structs.replace(obj, data=msgspec.Raw(go_json(obj.data))))
    else:
        value = encode_with_nulls(obj, encode)
    obj.kind, obj.api_version, meta.resource_version = kind, api_version, revision
    invariant(value.startswith(_STORED_START), "a stored object starts with its metadata")
    return value


def with_revision(value: bytes, revision: int) -> bytes:
    """Return stored bytes with their resourceVersion: a list item."""
    return b'{"metadata":{"resourceVersion":"%d",%b' % (revision, value[13:])


@functools.cache
def answer_prefix(api_version: str, name: str) -> bytes:
    """Return what turns a list item into a whole object: its kind and version."""
    return b'{"kind":"%b","apiVersion":"%b",' % (name.encode(), api_version.encode())


def stand_alone(kind: Kind, item: bytes) -> bytes:
    """Return a list item as a whole object."""
    return answer_prefix(kind.api_version, kind.name) + item[1:]
