"""What is imported is declared, what is declared is imported, and every version is pinned."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from typing import Any, cast

from tests.tidy.repository import Module, modules, read, settle

#: What a distribution is imported as, where that is not its name.
IMPORTED_AS = {
    "pyyaml": "yaml",
    "grpcio": "grpc",
    "protobuf": "google",
    "prometheus-client": "prometheus_client",
}


def _project() -> dict[str, Any]:
    return cast(dict[str, Any], tomllib.loads(read("pyproject.toml"))["project"])


def _names(requirements: Iterable[str]) -> set[str]:
    return {_plain(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in requirements}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pins(path: str) -> dict[str, str]:
    lines = [line for line in read(path).splitlines() if line and not line.startswith(("#", "-r "))]
    return {_plain(name): version for name, _, version in (line.partition("==") for line in lines)}


def outside(inside: Iterable[Module]) -> set[str]:
    """The top-level names that are imported from neither here nor the standard library."""
    found: set[str] = set()
    for each in inside:
        for node in each.nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"nodeward"}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    declared = {IMPORTED_AS.get(name, name) for name in _names(_project()["dependencies"])}
    used = outside(modules())
    settle(
        [
            *(f"{name}: imported, but not in pyproject.toml" for name in used - declared),
            *(f"{name}: in pyproject.toml, but not imported" for name in declared - used),
        ]
    )


def test_every_dependency_is_pinned() -> None:
    runtime, dev = _pins("requirements.lock"), _pins("requirements-dev.lock")
    assert all(re.fullmatch(r"[\w.]+", version) for version in (*runtime.values(), *dev.values()))
    settle(f"{name}: not in requirements.lock" for name in _names(_project()["dependencies"]) - set(runtime))
    wanted = _names(_project()["optional-dependencies"]["dev"])
    settle(f"{name}: not in requirements-dev.lock" for name in wanted - set(dev))
    assert not set(runtime) & set(dev), "pinned twice"


def test_every_dependency_has_its_reason() -> None:
    page = read("docs/decisions/0002-dependencies.md").lower()
    settle(
        f"{name}: no word about it"
        for name in _names(_project()["dependencies"])
        if f"**{name}**" not in page
    )
