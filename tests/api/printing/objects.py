"""Objects for the printing tests, from their JSON form, and their rows."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from nodeward.api.meta import KubeObject
from nodeward.api.printing import PRINTERS, printer_for
from nodeward.api.scheme import SCHEME
from nodeward.base.quantity import Quantity
from nodeward.base.timestamp import parse_rfc3339

T = TypeVar("T", bound=KubeObject)

CREATED = "2026-11-15T06:00:00Z"
#: ten minutes after everything here was created
NOW = parse_rfc3339("2026-11-15T06:10:00Z")


def ago(minutes: int) -> str:
    return f"2026-11-15T06:{10 - minutes:02d}:00Z"


def _quantity(type_: type, value: Any) -> Any:
    if type_ is Quantity:
        return Quantity.from_json(value)
    raise NotImplementedError(type_)


def decode(type_: type[T], value: dict[str, Any]) -> T:
    return msgspec.convert(value, type_, dec_hook=_quantity)


def row(api_version: str, kind: str, **body: Any) -> dict[str, Any]:
    """The cells of an object that was created ten minutes ago, by column."""
    group = api_version.rpartition("/")[0]
    assert (group, kind) in PRINTERS
    found = SCHEME.by_name(api_version, kind)
    assert found is not None
    assert issubclass(found.type, KubeObject)
    metadata = {"name": "x", "creationTimestamp": CREATED} | body.pop("metadata", {})
    obj = decode(found.type, json.loads(json.dumps({"metadata": metadata, **body})))
    printer = printer_for(group, kind)
    cells = printer.cells(obj, NOW)
    return dict(zip((column.name for column in printer.columns), cells, strict=True))
