"""A module imports its own package and layers below it, never above or sideways (ARCHITECTURE.md draws them)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.tidy.repository import Module, imported, module, modules, read, settle

#: From top to bottom; packages of one layer do not know each other.
LAYERS = (
    ("cli", "web"),
    ("rehearsal", "bench"),
    ("cluster",),
    ("apiserver", "kubelet", "controllers", "autoscaler", "dra"),
    ("scheduler",),
    ("machinery",),
    ("validation",),
    ("cel",),
    ("rules", "store"),
    ("api", "features"),
    ("base",),
)
#: Beyond the layers: who must not know whom, and why.
FORBIDDEN = (("store", "api", "a store keeps bytes and never looks inside them"),)

DEPTH = {package: depth for depth, layer in enumerate(LAYERS) for package in layer}


def breaches(inside: Sequence[Module]) -> list[str]:
    """Every import that goes up or sideways."""
    known = frozenset(each.name for each in inside)
    found: list[str] = []
    for each in inside:
        mine = package_of(each.name)
        for target, line in imported(each, known):
            theirs = package_of(target)
            if why := _objection(mine, theirs):
                found.append(f"{each.path}:{line}: imports {target}: {why}")
    return found


def package_of(name: str) -> str:
    parts = name.split(".")
    if parts[1:] == ["__main__"]:
        return "cli"
    return parts[1] if len(parts) > 1 else ""


def _objection(mine: str, theirs: str) -> str:
    if not theirs or mine == theirs:
        return ""
    if theirs not in DEPTH:
        return f"{theirs} stands in no layer; give it one in tests/tidy/test_layers.py"
    if not mine or DEPTH[theirs] < DEPTH[mine]:
        return f"{mine or 'the package itself'} lies below {theirs}; pass in what it needs instead"
    if DEPTH[theirs] == DEPTH[mine]:
        return f"{mine} and {theirs} are siblings; they meet through the API or a layer below"
    return next((why for above, below, why in FORBIDDEN if (above, below) == (mine, theirs)), "")


def test_every_package_stands_in_a_layer() -> None:
    packages = {package_of(each.name) for each in modules()} - {""}
    assert packages <= set(DEPTH), sorted(packages - set(DEPTH))


def test_no_module_imports_upward_or_sideways() -> None:
    settle(breaches(modules()))


def test_architecture_page_draws_the_same_layers_in_the_same_order() -> None:
    page = read("ARCHITECTURE.md").partition("```")[2].partition("```")[0]
    drawn = [tuple(_names(line)) for line in page.splitlines() if _names(line)]
    assert drawn == list(LAYERS)


def _names(line: str) -> list[str]:
    """The packages at the start of a line of the drawing: `rules | store      pure questions ...`."""
    names = [part.strip() for part in line.partition("  ")[0].split("|")]
    return names if all(name in DEPTH for name in names) else []


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        pytest.param("nodeward/api/pod.py", "from nodeward.store import memory", "below store", id="upward"),
        pytest.param("nodeward/rules/qos.py", "import nodeward.store.memory", "siblings", id="sideways"),
        pytest.param(
            "nodeward/base/size.py",
            "def f():\n    from nodeward.store.memory import Memory",
            "nodeward/base/size.py:2",
            id="inside a function",
        ),
        pytest.param("nodeward/api/pod.py", "from ..store import memory", "below store", id="relative"),
        pytest.param("nodeward/api/pod.py", "LATE = 'nodeward.store.memory'", "below store", id="by name"),
        pytest.param(
            "nodeward/store/etcd.py", "import nodeward.api.pod", "never looks inside", id="forbidden"
        ),
        pytest.param("nodeward/new/thing.py", "import nodeward.new2.x", "no layer", id="no layer"),
    ],
)
def test_the_rule_sees_an_import(path: str, source: str, complaint: str) -> None:
    others = [
        module(other, "")
        for other in (
            "nodeward/store/memory.py",
            "nodeward/api/pod.py",
            "nodeward/new2/x.py",
            "nodeward/__init__.py",
        )
        if other != path
    ]
    (found,) = breaches([module(path, source), *others])
    assert complaint in found


def test_the_rule_lets_imports_go_down() -> None:
    source = "from nodeward.store import memory\nimport nodeward\nimport os"
    inside = [module("nodeward/cli/up.py", source), module("nodeward/store/memory.py", "")]
    assert breaches(inside) == []
