"""RFC 6902: a list of steps, applied one after the other.

In come a JSON tree and a decoded patch; out goes the changed tree. The edges of the standard are those of a
Kubernetes API server: `replace` of a missing member adds it, negative indices count from the end, a missing
`value` is null. A patch that is no patch is a bad request; a step that does not fit the document is 422 with a
message that says nothing more, as clients know it.

The document is never written to: containers are copied the first time a step touches them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from nodeward.api.errors import ApiError, bad_request, request_entity_too_large, unprocessable

MAX_OPERATIONS = 10_000
#: Steps of the kind `copy` may add this much to a document, or a short patch could fill the memory.
MAX_COPIED_BYTES = 3 * 1024 * 1024

_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


def apply_json_patch(document: Any, patch: object) -> Any:
    """Return the document after all steps of the patch."""
    steps = _checked(patch)
    return _Patching(document).run(steps)


def _checked(patch: object) -> list[dict[str, Any]]:
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, "Go value of type []handlers.jsonPatchOp")
    for step in patch:
        if step is None:
            continue
        if not isinstance(step, dict):
            raise _undecodable(step, "Go value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = step.get(name)
            if value is not None and not isinstance(value, str):
                raise _undecodable(value, f"Go struct field jsonPatchOp.{name} of type string")
    if len(patch) > MAX_OPERATIONS:
        raise request_entity_too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        )
    return [step or {} for step in patch]


def _undecodable(value: object, target: str) -> ApiError:
    match value:
        case bool():
            word = "bool"
        case int() | float():
            word = "number"
        case str():
            word = "string"
        case list():
            word = "array"
        case _:
            word = "object"
    return bad_request(f"error decoding patch: json: cannot unmarshal {word} into {target}")


class _Patching:
    """One run of a patch over one document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        # Containers made during this run: only these may be written to. Held, so that an id stays theirs.
        self._own: dict[int, Any] = {}
        self._copied = 0

    def run(self, steps: list[dict[str, Any]]) -> Any:
        for step in steps:
            match step.get("op"):
                case "add":
                    self._add(_path(step, "path"), step.get("value"))
                case "remove":
                    self._remove(_path(step, "path"))
                case "replace":
                    self._replace(_path(step, "path"), step.get("value"))
                case "move":
                    source, target = _path(step, "from"), _path(step, "path")
                    self._add(target, self._remove(source))
                case "copy":
                    source, target = _path(step, "from"), _path(step, "path")
                    self._add(target, self._copy(self._get(source)))
                case "test":
                    self._test(_path(step, "path"), step.get("value"))
                case _:
                    raise unprocessable()
        return self._document

    def _parent(self, path: str) -> tuple[dict[str, Any] | list[Any], str]:
        """Return the container that holds the last part of the path, ready to be changed, and that part."""
        parts = path.split("/")
        if len(parts) < 2:
            raise unprocessable()
        here = self._document = self._owned(self._document)
        for part in parts[1:-1]:
            name = _unescaped(part)
            if isinstance(here, dict):
                child = here.get(name)
                if not isinstance(child, dict | list):
                    raise unprocessable()
                here[name] = here = self._owned(child)
            else:
                at = _existing_index(name, len(here))
                child = here[at]
                if not isinstance(child, dict | list):
                    raise unprocessable()
                here[at] = here = self._owned(child)
        return here, _unescaped(parts[-1])

    def _owned(self, container: Any) -> Any:
        if not isinstance(container, dict | list):
            raise unprocessable()
        if id(container) in self._own:
            return container
        fresh = container.copy()
        self._own[id(fresh)] = fresh
        return fresh

    def _get(self, path: str) -> Any:
        parent, name = self._parent(path)
        if isinstance(parent, dict):
            return parent.get(name)
        return parent[_existing_index(name, len(parent))]

    def _add(self, path: str, value: Any) -> None:
        parent, name = self._parent(path)
        if isinstance(parent, dict):
            parent[name] = value
        elif name == "-":
            parent.append(value)
        else:
            parent.insert(_existing_index(name, len(parent) + 1), value)

    def _remove(self, path: str) -> Any:
        parent, name = self._parent(path)
        if isinstance(parent, list):
            return parent.pop(_existing_index(name, len(parent)))
        if name not in parent:
            raise unprocessable()
        return parent.pop(name)

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise unprocessable()
            self._document = value
            return
        parent, name = self._parent(path)
        if isinstance(parent, dict):
            parent[name] = value
        else:
            parent[_existing_index(name, len(parent))] = value

    def _copy(self, value: Any) -> Any:
        encoded = msgspec.json.encode(value)
        self._copied += len(encoded)
        if self._copied > MAX_COPIED_BYTES:
            raise unprocessable()
        return msgspec.json.decode(encoded)

    def _test(self, path: str, value: Any) -> None:
        found = self._document if path == "" else self._get(path)
        if not _same(found, value):
            raise unprocessable()


def _path(step: dict[str, Any], name: str) -> str:
    path = step.get(name)
    if not isinstance(path, str):
        raise unprocessable()
    return path


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _existing_index(text: str, length: int) -> int:
    if not _INDEX.fullmatch(text):
        raise unprocessable()
    index = int(text)
    if index < 0:
        index += length
    if not 0 <= index < length:
        raise unprocessable()
    return index


def _same(one: Any, two: Any) -> bool:
    """Tell whether two values are equal as JSON: 1, 1.0 and true are three different things."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return len(one) == len(two) and all(k in two and _same(v, two[k]) for k, v in one.items())
    if isinstance(one, list):
        return len(one) == len(two) and all(map(_same, one, two))
    return bool(one == two)
