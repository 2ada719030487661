"""OpenAPI version 2 in protobuf, the only form in which client-go reads `/openapi/v2`.

Takes the document as JSON objects; returns the bytes of an `openapi.v2.Document` message. The tables below map keys to
fields of messages, for the parts of OpenAPI that are used here. Values of unknown keys are lost, except extensions
(`x-...`), which are sent as JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

Encoder: TypeAlias = Callable[[Any], bytes]
#: JSON key -> field number, how to encode the value, whether the value is a list of such
_Fields: TypeAlias = Mapping[str, tuple[int, Encoder, bool]]

_BYTES = 2
_SMALL = tuple(bytes([number]) for number in range(0x80))


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _SMALL[number]
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _delimited(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _string(value: str) -> bytes:
    return value.encode()


def _any(value: Any) -> bytes:
    """Encode any JSON value as text, which YAML readers read."""
    return _delimited(2, msgspec.json.encode(value))


def _named(name: str, value: bytes) -> bytes:
    return _delimited(1, name.encode()) + _delimited(2, value)


def _message(fields: _Fields, extensions: int, value: Mapping[str, Any]) -> bytes:
    """Encode a message with plain fields, and extensions under the given number."""
    return b"".join(_parts(fields, extensions, value))


def _parts(fields: _Fields, extensions: int, value: Mapping[str, Any]) -> Iterator[bytes]:
    for key, content in value.items():
        if key.startswith("x-"):
            yield _delimited(extensions, _named(key, _any(content)))
        elif key in fields:
            number, encode, is_repeated = fields[key]
            if isinstance(content, bool):
                yield _varint(number << 3) + _varint(content)
            elif is_repeated:
                yield from (_delimited(number, encode(item)) for item in content)
            else:
                yield _delimited(number, encode(content))


def _map_of(encode: Encoder, number: int = 1) -> Encoder:
    """Encode a map, which protobuf writes as a list of named values."""

    def encode_map(value: Mapping[str, Any]) -> bytes:
        return b"".join(_delimited(number, _named(name, encode(item))) for name, item in value.items())

    return encode_map


def _inside(number: int, encode: Encoder) -> Encoder:
    """Encode a message whose only field is another one."""
    return lambda value: _delimited(number, encode(value))


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(_SCHEMA, 31, value)


def _parameter(value: Mapping[str, Any]) -> bytes:
    match value["in"]:
        case "body":
            parameter = _delimited(1, _message(_BODY_PARAMETER, 6, value))
        case "query":
            parameter = _delimited(2, _delimited(3, _message(_QUERY_PARAMETER, 23, value)))
        case _:
            parameter = _delimited(2, _delimited(4, _message(_PATH_PARAMETER, 22, value)))
    return _delimited(1, parameter)


def _response(value: Mapping[str, Any]) -> bytes:
    return _delimited(1, _message(_RESPONSE, 5, value))


def _operation(value: Mapping[str, Any]) -> bytes:
    return _message(_OPERATION, 13, value)


def _path_item(value: Mapping[str, Any]) -> bytes:
    return _message(_PATH_ITEM, 10, value)


def _api_key(value: Mapping[str, Any]) -> bytes:
    return _delimited(2, _message(_API_KEY, 5, value))


def _info(value: Mapping[str, Any]) -> bytes:
    return _message({"title": (1, _string, False), "version": (2, _string, False)}, 7, value)


def _string_array(value: list[str]) -> bytes:
    return b"".join(_delimited(1, _string(item)) for item in value)


_SCHEMA: _Fields = {
    "$ref": (1, _string, False),
    "format": (2, _string, False),
    "description": (4, _string, False),
    "default": (5, _any, False),
    "required": (19, _string, True),
    "enum": (20, _any, True),
    "additionalProperties": (21, _inside(1, _schema), False),
    "type": (22, _inside(1, _string), False),
    "items": (23, _inside(1, _schema), False),
    "properties": (25, _map_of(_schema), False),
}
_BODY_PARAMETER: _Fields = {
    "description": (1, _string, False),
    "name": (2, _string, False),
    "in": (3, _string, False),
    "required": (4, _string, False),
    "schema": (5, _schema, False),
}
_QUERY_PARAMETER: _Fields = {
    "in": (2, _string, False),
    "description": (3, _string, False),
    "name": (4, _string, False),
    "type": (6, _string, False),
    "uniqueItems": (20, _string, False),
}
_PATH_PARAMETER: _Fields = {
    "required": (1, _string, False),
    "in": (2, _string, False),
    "description": (3, _string, False),
    "name": (4, _string, False),
    "type": (5, _string, False),
    "uniqueItems": (19, _string, False),
}
_RESPONSE: _Fields = {
    "description": (1, _string, False),
    "schema": (2, _inside(1, _schema), False),
}
_OPERATION: _Fields = {
    "tags": (1, _string, True),
    "description": (3, _string, False),
    "operationId": (5, _string, False),
    "produces": (6, _string, True),
    "consumes": (7, _string, True),
    "parameters": (8, _parameter, True),
    "responses": (9, _map_of(_response), False),
    "schemes": (10, _string, True),
}
_PATH_ITEM: _Fields = {
    "get": (2, _operation, False),
    "put": (3, _operation, False),
    "post": (4, _operation, False),
    "delete": (5, _operation, False),
    "patch": (8, _operation, False),
    "parameters": (9, _parameter, True),
}
_API_KEY: _Fields = {
    "type": (1, _string, False),
    "name": (2, _string, False),
    "in": (3, _string, False),
    "description": (4, _string, False),
}
_DOCUMENT: _Fields = {
    "swagger": (1, _string, False),
    "info": (2, _info, False),
    "paths": (8, _map_of(_path_item, number=2), False),
    "definitions": (9, _map_of(_schema), False),
    "security": (12, _map_of(_string_array), True),
    "securityDefinitions": (13, _map_of(_api_key), False),
}


def encode_swagger(document: Mapping[str, Any]) -> bytes:
    """Encode the whole document."""
    return _message(_DOCUMENT, 16, document)
