"""Structs as OpenAPI schemas.

In go compiled schemas (`nodeward.api.schema`); out come the JSON objects that stand in `definitions` (version 2) or
`components.schemas` (version 3). The two differ in little things, which a `Dialect` holds. Each definition is made
once and shared by the documents that contain it; nobody may change one.

Descriptions come from the text files in `nodeward.api.openapi.descriptions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from nodeward.api.meta import ListMeta
from nodeward.api.openapi import names
from nodeward.api.openapi.descriptions import ANY_LIST, META, words_for
from nodeward.api.schema import Schema, Shape, schema_of

JsonObject: TypeAlias = dict[str, Any]
#: (group, version, kind)
GroupVersionKind: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between OpenAPI 2 and 3."""

    ref_prefix: str
    #: nothing may stand beside a `$ref` in version 3, so it is wrapped
    has_bare_refs: bool
    has_defaults: bool
    quantity: JsonObject
    int_or_string: JsonObject


V2 = Dialect(
    ref_prefix="#/definitions/",
    has_bare_refs=True,
    has_defaults=False,
    quantity={"type": "string"},
    int_or_string={"type": "string", "format": "int-or-string"},
)
V3 = Dialect(
    ref_prefix="#/components/schemas/",
    has_bare_refs=False,
    has_defaults=True,
    quantity={"oneOf": [{"type": "string"}, {"type": "number"}]},
    int_or_string={"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
)

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", bytes: "string"}
_NAMED_FORMATS = {
    "date-time": names.TIME,
    "micro-time": names.MICRO_TIME,
    "quantity": names.QUANTITY,
    "int-or-string": names.INT_OR_STRING,
}
_OWN_WORDS = {
    names.TIME: "A moment in RFC 3339, to the second.",
    names.MICRO_TIME: "A moment in RFC 3339, to the microsecond.",
    names.FIELDS: "A set of fields as a tree of JSON objects.",
    names.PATCH: "A change to an object, in the form the content type says.",
    names.QUANTITY: "An amount: a decimal number with a suffix, such as 500m, 2, 1.5Gi or 1e3.",
    names.INT_OR_STRING: "A number, or a string such as a percentage or a name.",
    names.RAW_EXTENSION: "An object that is carried along unread.",
    names.WATCH_EVENT: "One change, as a watch sends it.",
}


def group_version_kind(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "kind": kind, "version": version}


@dataclass(slots=True)
class _Definition:
    schema: JsonObject
    #: names of the definitions it mentions
    mentions: list[str] = field(default_factory=list)


class Definitions:
    """All definitions of one dialect, made when first needed."""

    def __init__(
        self,
        dialect: Dialect,
        kinds: Mapping[type[msgspec.Struct], list[GroupVersionKind]],
        lists: Mapping[str, tuple[type[msgspec.Struct], GroupVersionKind]],
    ) -> None:
        """Set up. `kinds`: the kinds of a struct; `lists`: the item and the kind of each list, by definition name."""
        self._dialect = dialect
        self._kinds = kinds
        self._lists = lists
        self._structs: dict[str, type[msgspec.Struct]] = {}
        self._made: dict[str, _Definition] = {
            names.TIME: _Definition({"type": "string", "format": "date-time"}),
            names.MICRO_TIME: _Definition({"type": "string", "format": "date-time"}),
            names.FIELDS: _Definition({"type": "object"}),
            names.PATCH: _Definition({"type": "object"}),
            names.RAW_EXTENSION: _Definition({"type": "object"}),
            names.QUANTITY: _Definition(dict(dialect.quantity)),
            names.INT_OR_STRING: _Definition(dict(dialect.int_or_string)),
            names.WATCH_EVENT: self._watch_event(),
        }
        for name, definition in self._made.items():
            definition.schema = {"description": _OWN_WORDS[name], **definition.schema}

    def name_of(self, struct: type[msgspec.Struct]) -> str:
        """Return the name of the struct's definition, and register the struct."""
        name = names.definition_name(struct)
        self._structs[name] = struct
        return name

    def ref(self, name: str) -> JsonObject:
        return {"$ref": f"{self._dialect.ref_prefix}{name}"}

    def closure(self, wanted: Iterable[str], group_versions: Iterable[tuple[str, str]]) -> JsonObject:
        """Return the wanted definitions and all they refer to, by name.

        Options and watch events may be named with any group and version that is served.
        """
        found: dict[str, _Definition] = {}
        pending = list(wanted)
        while pending:
            name = pending.pop()
            if name not in found:
                found[name] = self._definition(name)
                pending.extend(found[name].mentions)
        result = {name: found[name].schema for name in sorted(found)}
        spread = sorted({("", "v1"), *group_versions})
        for name, kind in ((names.DELETE_OPTIONS, "DeleteOptions"), (names.WATCH_EVENT, "WatchEvent")):
            if name in result:
                kinds = [group_version_kind(group, version, kind) for group, version in spread]
                result[name] = result[name] | {"x-kubernetes-group-version-kind": kinds}
        return result

    def _definition(self, name: str) -> _Definition:
        made = self._made.get(name)
        if made is None:
            made = (
                self._list(*self._lists[name]) if name in self._lists else self._struct(self._structs[name])
            )
            self._made[name] = made
        return made

    def _struct(self, struct: type[msgspec.Struct]) -> _Definition:
        definition = _Definition({})
        schema = schema_of(struct)
        kinds = self._kinds.get(struct)
        words = words_for(names.module(struct), struct.__name__, is_kind=bool(kinds))
        always = _always_written(struct) if self._dialect.has_defaults else {}
        properties = {
            name: _described(words.get(name), self._field(value, definition, always.get(name)))
            for name, value in schema.fields.items()
        }
        definition.schema |= _described(words.get(""), {"type": "object"})
        if properties:
            definition.schema["properties"] = dict(sorted(properties.items()))
        required = [name for name, value in schema.fields.items() if value.is_required]
        if required:
            definition.schema["required"] = required
        if schema.is_atomic:
            definition.schema["x-kubernetes-map-type"] = "atomic"
        if kinds:
            definition.schema["x-kubernetes-group-version-kind"] = [group_version_kind(*k) for k in kinds]
        return definition

    def _list(self, item: type[msgspec.Struct], kind: GroupVersionKind) -> _Definition:
        definition = _Definition({})
        properties: dict[str, JsonObject] = {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": self._mention(item, definition)},
            "kind": {"type": "string"},
            "metadata": self._struct_field(schema_of(ListMeta), definition),
        }
        words = words_for(META, ANY_LIST, is_kind=True)
        definition.schema |= {
            "description": f"A list of {names.definition_name(item).rpartition('.')[2]} objects.",
            "type": "object",
            "properties": {name: _described(words.get(name), value) for name, value in properties.items()},
            "required": ["items"],
            "x-kubernetes-group-version-kind": [group_version_kind(*kind)],
        }
        return definition

    def _watch_event(self) -> _Definition:
        definition = _Definition({})
        carried = self._named(names.RAW_EXTENSION, definition, is_item=False)
        definition.schema = {
            "type": "object",
            "properties": {
                "object": _described("The object as it is now, or a Status for ERROR.", carried),
                "type": _described("ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.", {"type": "string"}),
            },
            "required": ["type", "object"],
        }
        return definition

    def _mention(self, struct: type[msgspec.Struct], definition: _Definition) -> JsonObject:
        return self._named(self.name_of(struct), definition, is_item=True)

    def _named(self, name: str, definition: _Definition, *, is_item: bool) -> JsonObject:
        definition.mentions.append(name)
        ref = self.ref(name)
        return ref if is_item or self._dialect.has_bare_refs else {"allOf": [ref]}

    def _struct_field(self, schema: Schema, definition: _Definition) -> JsonObject:
        result = self._named(self.name_of(schema.python_type), definition, is_item=False)
        if self._dialect.has_defaults and not schema.is_nullable:
            result["default"] = {}
        return result

    def _field(self, schema: Schema, definition: _Definition, default: Any) -> JsonObject:
        result = self._value(schema, definition, is_item=False)
        if default is not None and schema.shape is Shape.SCALAR and "type" in result:
            result["default"] = default
        if schema.values:
            result["enum"] = list(schema.values)
        if schema.shape is Shape.LIST and not schema.is_bool_too:
            result |= _list_facts(schema)
        elif schema.shape is Shape.MAP and schema.is_atomic:
            result["x-kubernetes-map-type"] = "atomic"
        elif schema.is_granular:
            result["x-kubernetes-map-type"] = "granular"
        return result | _patch_facts(schema)

    def _value(self, schema: Schema, definition: _Definition, *, is_item: bool) -> JsonObject:
        match schema.shape:
            case Shape.STRUCT if is_item:
                return self._mention(schema.python_type, definition)
            case Shape.STRUCT:
                return self._struct_field(schema, definition)
            case Shape.LIST if schema.is_bool_too:  # OpenAPI 2 has no word for one form or the other
                return {"x-kubernetes-preserve-unknown-fields": True}
            case Shape.LIST if schema.item is not None:
                return {"type": "array", "items": self._value(schema.item, definition, is_item=True)}
            case Shape.MAP if schema.item is not None and schema.item.shape is not Shape.ANY:
                item = self._value(schema.item, definition, is_item=True)
                return {"type": "object", "additionalProperties": item}
            case Shape.MAP:
                return {"type": "object"}
            case Shape.ANY if schema.format == "fields":
                return self._named(names.FIELDS, definition, is_item=is_item)
            case Shape.ANY:
                return self._named(names.RAW_EXTENSION, definition, is_item=is_item)
        if schema.format in _NAMED_FORMATS:
            return self._named(_NAMED_FORMATS[schema.format], definition, is_item=is_item)
        scalar = {"type": _TYPES[schema.python_type]}
        if schema.format:
            scalar["format"] = schema.format
        return scalar


def _described(text: str | None, schema: JsonObject) -> JsonObject:
    return {"description": text, **schema} if text else schema


def _list_facts(schema: Schema) -> JsonObject:
    if schema.is_keyed:
        return {
            "x-kubernetes-list-map-keys": list(schema.list_keys),
            "x-kubernetes-list-type": "map",
        }
    return {"x-kubernetes-list-type": "set" if schema.is_set else "atomic"}


def _patch_facts(schema: Schema) -> JsonObject:
    facts: JsonObject = {}
    if schema.merge_key:
        facts["x-kubernetes-patch-merge-key"] = schema.merge_key
    strategies = ["merge"] * (schema.merge_key is not None) + ["retainKeys"] * schema.retain_keys
    strategies += ["replace"] * schema.is_replaced
    if strategies:
        facts["x-kubernetes-patch-strategy"] = ",".join(strategies)
    return facts


def _always_written(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the zero values of fields that are always written, by JSON name."""
    written: dict[str, Any] = msgspec.to_builtins(struct(), enc_hook=str)
    return written
