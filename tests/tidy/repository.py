"""The repository as the tidy tests see it: its modules, parsed once, and its text files.

Files are found by walking, not by asking git, so that the rules also hold in an unpacked archive.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_TEXT = frozenset(
    {".py", ".md", ".toml", ".lock", ".yaml", ".yml", ".json", ".sh", ".txt", ".cfg", ".proto", ""}
)
_GENERATED = frozenset({"__pycache__", "build", "dist"})


@dataclass(frozen=True, slots=True)
class Module:
    """One Python module: `nodeward/api/meta.py` is `nodeward.api.meta`; a package is named like its folder."""

    path: str
    name: str
    source: str
    tree: ast.Module
    #: everything in the tree: walked once, looked at by many rules
    nodes: tuple[ast.AST, ...]

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def lines(self) -> int:
        return self.source.count("\n")


def module(path: str, source: str) -> Module:
    """A module that need not exist: the tests of the rules make some up."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    tree = ast.parse(source, path)
    return Module(path, name, source, tree, tuple(ast.walk(tree)))


def text_files() -> list[str]:
    """Every text file that belongs to the project, as a path from the root, in order."""
    return sorted(_walk())


def _walk() -> Iterator[str]:
    for folder, folders, files in os.walk(ROOT):
        inside = Path(folder)
        folders[:] = [
            name
            for name in folders
            if name not in _GENERATED
            and not name.endswith(".egg-info")
            and (not name.startswith(".") or name == ".ci")
            and not (inside / name / "pyvenv.cfg").exists()
        ]
        yield from (
            (inside / name).relative_to(ROOT).as_posix()
            for name in files
            if Path(name).suffix in _TEXT and not name.startswith(".")
        )


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "nodeward").rglob("*.py"))
    return tuple(module(path, read(path)) for path in paths)


def documents() -> list[str]:
    """Every page of documentation."""
    return [path for path in text_files() if path.endswith(".md")]


def imported(where: Module, known: frozenset[str]) -> list[tuple[str, int]]:
    """Which of the `known` modules a module imports, at any depth of its code, and on which line.

    A text that is exactly the name of a module counts too: that is how the command line names what it imports late.
    """
    found: list[tuple[str, int]] = []
    for node in where.nodes:
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(where, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.append((inner if inner in known else base, node.lineno))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known:
            found.append((node.value, node.lineno))
    return [(name, line) for name, line in found if name in known and name != where.name]


def _absolute(where: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = where.name.split(".")
    base = parts[: len(parts) - node.level + where.is_package]
    return ".".join((*base, node.module) if node.module else base)


def settle(findings: Iterable[str], allowed: Sequence[str] = ()) -> None:
    """Fail on every finding that is not allowed, and on every allowance that is no longer needed."""
    found = sorted(findings)
    excused = tuple(allowed)
    new = [text for text in found if not text.startswith(excused)] if excused else found
    idle = [entry for entry in excused if not any(text.startswith(entry) for text in found)]
    problems = new + [f"{entry}: allowed, but no longer found: take it off the list" for entry in idle]
    assert not problems, "\n" + "\n".join(problems)
