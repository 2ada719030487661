"""Whole OpenAPI documents: one for everything in version 2, one for each group and version in version 3.

Called by `apiserver/documents.py`. Documents are made when first asked for, encoded once and kept. A document's hash is
its ETag and is in the index of version 3, so that clients can cache it for as long as the hash is the same.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from nodeward.api.meta import DeleteOptions, Status
from nodeward.api.openapi import names
from nodeward.api.openapi.definitions import (
    V2,
    V3,
    Definitions,
    Dialect,
    GroupVersionKind,
    JsonObject,
    group_version_kind,
)
from nodeward.api.openapi.operations import Operation, Parameter, Path, operations_of
from nodeward.api.openapi.protobuf import encode_swagger
from nodeward.api.scheme import Kind, Scheme

JSON = "application/json"
#: What clients before OpenAPI version 3 ask for, and what they are told they get.
PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_V2_OLD_NAME = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#: Headers for an answer whose hash the client named; `Expires` is added by whoever knows the time.
IMMUTABLE = {"Cache-Control": "public, immutable", "Vary": "Accept"}

_ANSWERS = {"200": "OK", "201": "Created", "202": "Accepted"}
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_UNAUTHORIZED: JsonObject = {"401": {"description": "Unauthorized"}}
_BEARER: JsonObject = {
    "BearerToken": {
        "description": "Bearer token.",
        "in": "header",
        "name": "authorization",
        "type": "apiKey",
    }
}


@dataclass(frozen=True, eq=False)
class OpenApiDocument:
    """An encoded document."""

    body: bytes
    content_type: str
    #: without quotes; also the `hash` in the index
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hash", hashlib.sha512(self.body).hexdigest().upper())

    @property
    def etag(self) -> str:
        return f'"{self.hash}"'

    @functools.cached_property
    def gzipped(self) -> bytes:
        """The compressed document; made once, with no time of day in it."""
        return gzip.compress(self.body, compresslevel=5, mtime=0)


class OpenApi:
    """The OpenAPI documents of one server."""

    def __init__(self, scheme: Scheme, kubernetes_version: str) -> None:
        self._scheme = scheme
        major, minor, patch = [*kubernetes_version.removeprefix("v").split("."), "0"][:3]
        self._info = {"title": "Kubernetes", "version": f"v{major}.{minor}.{patch}"}
        self._by_path = {
            _document_path(group, version): (group, version)
            for group, version in dict.fromkeys((kind.group, kind.version) for kind in scheme.kinds)
        }

    # -- version 3

    @functools.cached_property
    def _documents_v3(self) -> dict[str, OpenApiDocument]:
        """All documents of version 3: the index needs their hashes, and every client starts with it."""
        definitions = _definitions(V3, self._scheme)
        return {
            path: self._document_v3(group, version, definitions)
            for path, (group, version) in self._by_path.items()
        }

    def _document_v3(self, group: str, version: str, definitions: Definitions) -> OpenApiDocument:
        kinds = [k for k in self._scheme.kinds if k.group == group and k.version == version]
        paths, schemas = _content(kinds, definitions, [(group, version)], _operation_v3)
        content = {
            "openapi": "3.0.0",
            "info": self._info,
            "paths": paths,
            "components": {"schemas": schemas, "securitySchemes": _BEARER},
        }
        return OpenApiDocument(msgspec.json.encode(content), JSON)

    @functools.cached_property
    def index_v3(self) -> OpenApiDocument:
        """Return `/openapi/v3`: where the documents are."""
        paths = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash}"}
            for path, document in sorted(self._documents_v3.items())
        }
        return OpenApiDocument(msgspec.json.encode({"paths": paths}), JSON)

    def v3(self, path: str) -> OpenApiDocument | None:
        """Return `/openapi/v3/<path>`: "api/v1" or "apis/apps/v1"; None if there is no such document.

        The answer to a request that names the document's hash (`?hash=`) may be cached for ever (`IMMUTABLE`, and
        Expires a year ahead); one that names another hash is redirected (301) to where the index points.
        """
        return self._documents_v3.get(path) if path in self._by_path else None

    # -- version 2

    def _content_v2(self) -> JsonObject:
        definitions = _definitions(V2, self._scheme)
        paths, schemas = _content(self._scheme.kinds, definitions, self._by_path.values(), _operation_v2)
        return {
            "swagger": "2.0",
            "info": self._info,
            "paths": paths,
            "definitions": schemas,
            "securityDefinitions": _BEARER,
            "security": [{"BearerToken": []}],
        }

    @functools.cached_property
    def v2(self) -> OpenApiDocument:
        """Return `/openapi/v2` as JSON."""
        return OpenApiDocument(msgspec.json.encode(self._content_v2()), JSON)

    @functools.cached_property
    def v2_protobuf(self) -> OpenApiDocument:
        """Return `/openapi/v2` as protobuf, the only form client-go reads there."""
        return OpenApiDocument(encode_swagger(self._content_v2()), PROTOBUF_V2)


def _document_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _definitions(dialect: Dialect, scheme: Scheme) -> Definitions:
    kinds: dict[type[msgspec.Struct], list[GroupVersionKind]] = {Status: [("", "v1", "Status")]}
    lists: dict[str, tuple[type[msgspec.Struct], GroupVersionKind]] = {}
    for kind in scheme.kinds:
        _add(kinds, kind.type, (kind.group, kind.version, kind.name))
        if "list" in kind.verbs:
            list_kind = (kind.group, kind.version, f"{kind.name}List")
            lists[names.list_definition_name(kind)] = (kind.type, list_kind)
        for sub in kind.subresources:
            if sub.type is not None:
                _add(kinds, sub.type, (sub.group, sub.version or kind.version, sub.kind))
    return Definitions(dialect, kinds, lists)


def _add(
    kinds: dict[type[msgspec.Struct], list[GroupVersionKind]],
    struct: type[msgspec.Struct],
    gvk: GroupVersionKind,
) -> None:
    known = kinds.setdefault(struct, [])
    if gvk not in known:
        known.append(gvk)


def _content(
    kinds: Iterable[Kind],
    definitions: Definitions,
    group_versions: Iterable[tuple[str, str]],
    render: Callable[[Operation, Definitions], JsonObject],
) -> tuple[JsonObject, JsonObject]:
    """Return the paths, and the definitions they need."""
    kinds = list(kinds)
    _announce(kinds, definitions)
    found = sorted((path for kind in kinds for path in operations_of(kind)), key=lambda path: path.path)
    wanted = {names.WATCH_EVENT: None}
    paths: JsonObject = {}
    for path in found:
        paths[path.path] = _path_item(path, definitions, render)
        for operation in path.operations:
            wanted |= dict.fromkeys(name for name in (operation.body, operation.answer) if name)
    return paths, definitions.closure(wanted, group_versions)


def _announce(kinds: Iterable[Kind], definitions: Definitions) -> None:
    """Register the structs that operations refer to by name."""
    definitions.name_of(DeleteOptions)
    definitions.name_of(Status)
    for kind in kinds:
        definitions.name_of(kind.type)
        for sub in kind.subresources:
            if sub.type is not None:
                definitions.name_of(sub.type)


def _path_item(
    path: Path, definitions: Definitions, render: Callable[[Operation, Definitions], JsonObject]
) -> JsonObject:
    parameter = _parameter_v3 if render is _operation_v3 else _parameter_v2
    item: JsonObject = {operation.method: render(operation, definitions) for operation in path.operations}
    return item | {"parameters": [parameter(p) for p in path.parameters]}


def _common(operation: Operation) -> JsonObject:
    return {
        "description": operation.description,
        "operationId": operation.id,
        "tags": [operation.tag],
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": group_version_kind(*operation.kind),
    }


def _media_types(operation: Operation) -> list[str]:
    return [JSON, f"{JSON};stream=watch"] if operation.is_list else [JSON]


@functools.cache
def _parameter_v3(parameter: Parameter) -> JsonObject:
    return _parameter(parameter) | {"schema": {"type": parameter.type, "uniqueItems": True}}


@functools.cache
def _parameter_v2(parameter: Parameter) -> JsonObject:
    return _parameter(parameter) | {"type": parameter.type, "uniqueItems": True}


def _parameter(parameter: Parameter) -> JsonObject:
    facts: JsonObject = {
        "description": parameter.description,
        "in": parameter.place,
        "name": parameter.name,
    }
    return facts | {"required": True} if parameter.place == "path" else facts


def _operation_v3(operation: Operation, definitions: Definitions) -> JsonObject:
    result = _common(operation)
    if operation.parameters:
        result["parameters"] = [_parameter_v3(p) for p in operation.parameters]
    if operation.body is not None:
        schema = {"schema": definitions.ref(operation.body)}
        body: dict[str, Any] = {
            "content": dict.fromkeys(_PATCHES if operation.is_patch else ("*/*",), schema)
        }
        if operation.action not in ("delete", "deletecollection"):
            body["required"] = True
        result["requestBody"] = body
    answer = {"schema": definitions.ref(operation.answer)}
    content = dict.fromkeys(_media_types(operation), answer)
    result["responses"] = {
        code: {"description": _ANSWERS[code], "content": content} for code in operation.codes
    } | _UNAUTHORIZED
    return result


def _operation_v2(operation: Operation, definitions: Definitions) -> JsonObject:
    result = _common(operation)
    parameters = [_parameter_v2(p) for p in operation.parameters]
    if operation.body is not None:
        body: JsonObject = {"in": "body", "name": "body", "schema": definitions.ref(operation.body)}
        if operation.action not in ("delete", "deletecollection"):
            body["required"] = True
        parameters.insert(0, body)
    if parameters:
        result["parameters"] = parameters
    result["consumes"] = list(_PATCHES) if operation.is_patch else ["*/*"]
    result["produces"] = _media_types(operation)
    result["schemes"] = ["https"]
    schema = definitions.ref(operation.answer)
    result["responses"] = {
        code: {"description": _ANSWERS[code], "schema": schema} for code in operation.codes
    } | _UNAUTHORIZED
    return result
