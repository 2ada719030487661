"""YAML (or JSON) text as plain values that know on which line each of them stands, for errors people can act on.

In go bytes and what to call them; out come documents. Not YAML, a key given twice and nesting without end are each a
`ConfigError` with name and line. A field is named as in error messages: `spec.containers[0].name`.

Called by the scheduler, the kubelet, the cluster assembly and the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from nodeward.base.errors import ConfigError

_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document, or a part of one."""

    shown: str
    tree: Any
    root: yaml.Node

    def line(self, field: str) -> int:
        """Return the line of a field, or of the innermost part on the way to it that is there."""
        line = _first_line(self.root)
        node: yaml.Node | None = self.root
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

    def fault(self, field: str, what: str) -> ConfigError:
        return ConfigError(self.told(field, what))

    def told(self, field: str, what: str) -> str:
        """Return what is wrong with a field, with its place in front."""
        at = f"{self.shown}:{self.line(field)}"
        return f"{at}: {field}: {what}" if field else f"{at}: {what}"

    def inside(self, *steps: int | str) -> YamlDocument:
        """Return a part of it, which knows its lines as well."""
        tree, node = self.tree, self.root
        for step in steps:
            tree = tree[step]
            node = _child(node, step) or node
        return YamlDocument(self.shown, tree, node)


def documents(text: bytes, shown: str) -> Iterator[YamlDocument]:
    """Return the documents of a text that are not empty."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while loader.check_node():
            root: yaml.Node = loader.get_node()
            _check_keys(root, shown)
            tree = loader.construct_document(root)
            if tree is not None:
                yield YamlDocument(shown, tree, root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{shown}:{mark.line + 1}" if mark is not None else shown
        raise ConfigError(f"{where}: not YAML: {getattr(error, 'problem', None) or error}") from error
    except RecursionError:
        raise ConfigError(f"{shown}: nests too deep") from None
    finally:
        loader.dispose()


def called(value: object) -> str:
    """Return what a value is, in words."""
    names = {
        str: "a text",
        list: "a list",
        dict: "a map",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), type(value).__name__)


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
    """Refuse a key that is given twice: the loader would keep one silently."""
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
