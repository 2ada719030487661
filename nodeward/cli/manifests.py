"""Kubernetes objects from files: YAML or JSON, one or many in a file, with mistakes told by file, line and field.

In goes a path ("-" is standard input) and the kinds that are wanted there; out come typed objects in the order they
stand. A `List`, as `kubectl get -o yaml` writes it, stands for its items. Nothing is filled in. A field nobody knows,
given twice or of the wrong type is a `ConfigError`; a file is read whole or not at all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml

from nodeward.api.codec import encode, read, stray_fields
from nodeward.api.meta import KubeObject
from nodeward.api.schema import schema_of
from nodeward.api.scheme import SCHEME
from nodeward.base.errors import ConfigError

K = TypeVar("K", bound=KubeObject)

_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_WRONG: Final = re.compile(r"Expected `(?P<wanted>.+?)`, got `(?P<got>.+?)`")
_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Part:
    """One object as it stands in a file."""

    shown: str
    tree: Any
    root: yaml.Node

    def fault(self, field: str, what: str) -> ConfigError:
        at = f"{self.shown}:{_line(self.root, field)}"
        return ConfigError(f"{at}: {field}: {what}" if field else f"{at}: {what}")


def objects(path: str, *wanted: type[KubeObject]) -> list[KubeObject]:
    """All objects of a file; each must be of a wanted kind."""
    return [_object(part, wanted) for part in _parts(path)]


def some(path: str, wanted: type[K]) -> list[K]:
    """All objects of a file, which has at least one, all of one kind."""
    found = [each for each in objects(path, wanted) if isinstance(each, wanted)]
    if not found:
        raise ConfigError(f"{_shown(path)}: no {wanted.__name__} in it")
    return found


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path


def _parts(path: str) -> Iterator[_Part]:
    shown = _shown(path)
    try:
        text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from error
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while loader.check_node():
            root: yaml.Node = loader.get_node()
            _check_keys(root, shown)
            tree = loader.construct_document(root)
            if tree is not None:
                yield from _items(_Part(shown, tree, root))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{shown}:{mark.line + 1}" if mark is not None else shown
        raise ConfigError(f"{where}: not YAML: {getattr(error, 'problem', None) or error}") from error
    except RecursionError:
        raise ConfigError(f"{shown}: nests too deep") from None
    finally:
        loader.dispose()


def _items(part: _Part) -> Iterator[_Part]:
    if not isinstance(part.tree, dict):
        raise part.fault("", f"want a Kubernetes object, got {_called(part.tree)}")
    items = part.tree.get("items")
    if part.tree.get("kind") != "List" or not isinstance(items, list):
        yield part
        return
    root = _child(part.root, "items")
    for number, item in enumerate(items):
        inner = _child(root, number) if root is not None else None
        yield from _items(_Part(part.shown, item, inner or part.root))


def _object(part: _Part, wanted: tuple[type[KubeObject], ...]) -> KubeObject:
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


def _wrong_value(part: _Part, text: str) -> ConfigError:
    match = _AT.match(text)
    what, field = (match["what"], match["path"] or "") if match else (text, "")
    wrong = _WRONG.match(what)
    if wrong is not None:
        what = f"want {wrong['wanted'].removesuffix(' | null')}, got {wrong['got']}"
    return part.fault(field, what)


# -- lines


def _line(root: yaml.Node, field: str) -> int:
    """The line of a field, or of the innermost part on the way to it that is there."""
    line = _first_line(root)
    node: yaml.Node | None = root
    for number, name in _STEP.findall(field):
        if isinstance(node, yaml.MappingNode):
            key = next((key for key, _ in node.value if key.value == name), None)
            if key is None:
                break
            line = _first_line(key)
        node = _child(node, int(number) if number else name)
        if node is None:
            break
        if number:
            line = _first_line(node)
    return line


def _first_line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _child(node: yaml.Node | None, step: int | str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def _check_keys(root: yaml.Node, shown: str) -> None:
    """Of a key that is given twice the loader would keep one and say nothing."""
    seen_nodes: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending.extend(reversed(node.value))
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise ConfigError(f"{shown}:{_first_line(key)}: a key must be a plain text")
                if key.value in lines and key.value != "<<":
                    first = lines[key.value]
                    raise ConfigError(f"{shown}:{_first_line(key)}: {key.value}: already on line {first}")
                lines[key.value] = _first_line(key)
            pending.extend(value for _, value in reversed(node.value))


def _called(value: object) -> str:
    names = {str: "a text", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
