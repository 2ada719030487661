"""Kubernetes objects from files: YAML or JSON, one or many per file, with errors that name file, line and field.

Takes a path ("-" is standard input) and the wanted kinds; returns typed objects in file order. A `List`, as `kubectl
get -o yaml` writes it, stands for its items. Nothing is defaulted. A field that is unknown, given twice or of the wrong
type is a `ConfigError`; a file is read whole or not at all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from nodeward.api.codec import encode, read, stray_fields
from nodeward.api.meta import KubeObject
from nodeward.api.schema import schema_of
from nodeward.api.scheme import SCHEME
from nodeward.base.errors import ConfigError
from nodeward.base.yaml_text import YamlDocument, called, documents

K = TypeVar("K", bound=KubeObject)

_WRONG: Final = re.compile(r"Expected `(?P<wanted>.+?)`, got `(?P<got>.+?)`")
_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


def objects(path: str, *wanted: type[KubeObject]) -> list[KubeObject]:
    """Return all objects of a file; each must be of a wanted kind."""
    return [_object(part, wanted) for part in _parts(path)]


def some(path: str, wanted: type[K]) -> list[K]:
    """Return all objects of a file, which has at least one, all of one kind."""
    found = [each for each in objects(path, wanted) if isinstance(each, wanted)]
    if not found:
        raise ConfigError(f"{_shown(path)}: no {wanted.__name__} in it")
    return found


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path


def _parts(path: str) -> Iterator[YamlDocument]:
    shown = _shown(path)
    try:
        text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from error
    for document in documents(text, shown):
        yield from _items(document)


def _items(part: YamlDocument) -> Iterator[YamlDocument]:
    if not isinstance(part.tree, dict):
        raise part.fault("", f"want a Kubernetes object, got {called(part.tree)}")
    items = part.tree.get("items")
    if part.tree.get("kind") != "List" or not isinstance(items, list):
        yield part
        return
    for number in range(len(items)):
        yield from _items(part.inside("items", number))


def _object(part: YamlDocument, wanted: tuple[type[KubeObject], ...]) -> KubeObject:
    api_version, name = (part.tree.get(field) for field in ("apiVersion", "kind"))
    for field, value in (("apiVersion", api_version), ("kind", name)):
        if not isinstance(value, str) or not value:
            raise part.fault("", f"{field} is missing")
    kind = SCHEME.by_name(str(api_version), str(name))
    names = " or ".join(type_.__name__ for type_ in wanted)
    type_ = next((each for each in wanted if kind is not None and kind.type is each), None)
    if type_ is None:
        raise part.fault("kind", f"{api_version} {name}, want {names}")
    for stray in stray_fields(part.tree, schema_of(type_)):
        raise part.fault(stray, "unknown field")
    try:
        return read(encode(part.tree), type_)
    except msgspec.ValidationError as error:
        raise _wrong_value(part, str(error)) from error
    except (TypeError, msgspec.MsgspecError) as error:
        raise part.fault("", str(error)) from error


def _wrong_value(part: YamlDocument, text: str) -> ConfigError:
    match = _AT.match(text)
    what, field = (match["what"], match["path"] or "") if match else (text, "")
    wrong = _WRONG.match(what)
    if wrong is not None:
        what = f"want {wrong['wanted'].removesuffix(' | null')}, got {wrong['got']}"
    return part.fault(field, what)
