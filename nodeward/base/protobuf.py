"""Protobuf message classes built from a table, so that there are no generated files and no compiler to run.

Called when a module that speaks a gRPC protocol is imported (`store/etcd_wire/messages.py`,
`kubelet/runtime/cri/messages.py`). In: a table from message to its fields, each `"name=number kind"`. A kind is a
scalar, `strings` for a map of text to text, or the name of another message of the table; `*` before it marks a
repeated field, `|` one of a choice (at most one choice a message). Out: one class per message. Fields left out of the
table are skipped by protobuf when they come in; enumerations are declared as numbers, which is the same on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto

_SCALARS: Final = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}
_MAP: Final = "strings"


def message_classes(package: str, messages: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Build the class of every message. The classes have no static types, hence Any."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package.replace('.', '/')}.proto", package=package, syntax="proto3"
    )
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _add_field(message, f".{package}", text)
    # A pool of our own: another library in this process may have loaded the same protocol under the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in messages
    }


def _add_field(message: descriptor_pb2.DescriptorProto, scope: str, text: str) -> None:
    declared, marked_kind = text.split(" ")
    name, number = declared.split("=")
    kind = marked_kind.lstrip("|*")
    is_repeated = marked_kind.startswith("*") or kind == _MAP
    field = message.field.add(
        name=name,
        number=int(number),
        label=_Field.LABEL_REPEATED if is_repeated else _Field.LABEL_OPTIONAL,
        type=_SCALARS.get(kind, _Field.TYPE_MESSAGE),
    )
    if kind == _MAP:
        field.type_name = f"{scope}.{message.name}.{_add_map_entry(message, name)}"
    elif kind not in _SCALARS:
        field.type_name = f"{scope}.{kind}"
    if marked_kind.startswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="choice")
        field.oneof_index = 0


def _add_map_entry(message: descriptor_pb2.DescriptorProto, field_name: str) -> str:
    """Add the message that protobuf wants for the entries of a map; return its name, which is prescribed."""
    entry_name = "".join(part.capitalize() for part in field_name.split("_")) + "Entry"
    entry = message.nested_type.add(name=entry_name)
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    return entry_name
