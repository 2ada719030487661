"""Objects as `meta.k8s.io` Tables and PartialObjectMetadata, the forms a client may ask for instead of the objects.

Takes decoded objects, and their bytes where they are wanted whole; returns the bytes of the answer. Nothing here knows
a kind: the printer comes from the registry of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

from nodeward.api.errors import bad_request
from nodeward.api.meta import KubeObject, ListMeta, ObjectMeta
from nodeward.api.printing.printer import Cells, Column, Printer, RowCondition
from nodeward.base import fielderror
from nodeward.base.fieldpath import FieldPath
from nodeward.base.quantity import Quantity

#: How much of each object a table carries along.
Include: TypeAlias = Literal["Metadata", "Object", "None"]
#: The versions of the group `meta.k8s.io`.
MetaVersion: TypeAlias = Literal["v1", "v1beta1"]

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_INCLUDES = ("Metadata", "Object", "None")


class _Partial(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: ObjectMeta | msgspec.Raw


class _PartialList(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: ListMeta
    items: list[_Partial]


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Row(msgspec.Struct, omit_defaults=True):
    cells: Cells
    conditions: Sequence[RowCondition] = ()
    #: null when nothing was asked for, never absent
    object: _Partial | msgspec.Raw | KubeObject | None = msgspec.field(default_factory=lambda: None)


class _Table(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: ListMeta
    column_definitions: Sequence[Column] | None
    rows: list[_Row]


def _hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"cannot encode {value!r}")


_encoder = msgspec.json.Encoder(enc_hook=_hook)
_decode_metadata = msgspec.json.Decoder(_MetadataOnly).decode


def parse_include(value: str) -> Include:
    """Read the `includeObject` parameter of a request; `ApiError` when it is unknown."""
    if not value:
        return "Metadata"
    if value not in _INCLUDES:
        error = fielderror.invalid(
            FieldPath("includeObject"), value, "must be 'Metadata', 'Object', 'None', or empty"
        )
        raise bad_request(f"Unable to convert to Table as requested: {error}")
    return cast(Include, value)


def build_table(
    printer: Printer,
    objects: Sequence[tuple[KubeObject, bytes | None]],
    *,
    now_ns: int,
    include: Include,
    metadata: ListMeta,
    has_headers: bool,
    is_list: bool,
    version: MetaVersion,
) -> bytes:
    """Make the table of the objects with `printer`. See `nodeward.api.printing.table` for the arguments."""
    api_version = f"meta.k8s.io/{version}"
    if is_list and printer.list_cells is not None:
        all_cells = printer.list_cells([obj for obj, _ in objects], now_ns)
    else:
        all_cells = [printer.cells(obj, now_ns) for obj, _ in objects]
    rows = [
        _Row(cells, printer.conditions(obj), _row_object(obj, raw, include, api_version))
        for (obj, raw), cells in zip(objects, all_cells, strict=True)
    ]
    columns = printer.columns if has_headers else None
    return _encoder.encode(_Table("Table", api_version, metadata, columns, rows))


def _row_object(
    obj: KubeObject, raw: bytes | None, include: Include, api_version: str
) -> _Partial | msgspec.Raw | KubeObject | None:
    if include == "Object":
        return obj if raw is None else msgspec.Raw(raw)
    # The bookmark that ends the initial events of a watch is known by its annotation, so it must travel along.
    if include == "Metadata" or obj.metadata.annotations.get(_INITIAL_EVENTS_END) == "true":
        return _Partial("PartialObjectMetadata", api_version, obj.metadata)
    return None


def _partial(obj: KubeObject | bytes, api_version: str) -> _Partial:
    metadata = _decode_metadata(obj).metadata if isinstance(obj, bytes) else obj.metadata
    return _Partial("PartialObjectMetadata", api_version, metadata)


def partial_metadata(obj: KubeObject | bytes, *, version: MetaVersion = "v1") -> bytes:
    """Return one object, given whole or encoded, as PartialObjectMetadata."""
    return _encoder.encode(_partial(obj, f"meta.k8s.io/{version}"))


def partial_metadata_list(
    objects: Iterable[KubeObject | bytes],
    *,
    resource_version: str,
    continue_: str = "",
    remaining: int | None = None,
    version: MetaVersion = "v1",
) -> bytes:
    """Return a list as PartialObjectMetadataList."""
    api_version = f"meta.k8s.io/{version}"
    metadata = ListMeta(
        resource_version=resource_version, continue_=continue_, remaining_item_count=remaining
    )
    items = [_partial(obj, api_version) for obj in objects]
    return _encoder.encode(_PartialList("PartialObjectMetadataList", api_version, metadata, items))
