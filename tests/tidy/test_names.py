"""One name, one meaning: a class name stands once, and so does a module's name inside a component.

Private classes (`_Observed`) are seen in their own module only and may share a name. An entry of the list below that
is no longer needed fails the test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.tidy.repository import Module, module, modules, settle

#: Two things that Kubernetes (or Prometheus) itself calls the same. These stay.
UPSTREAM = (
    "Counter",  # a metric; a counter of a DRA device
    "EndpointPort",
    "Event",  # core/v1 and events.k8s.io/v1
    "EventSeries",
    "NodeAffinity",  # the API type; the scheduler plugin
    "ResourceClaim",  # the object; a container's reference to one
    "Status",  # the API type; what a scheduler plugin returns
    "TokenRequest",
)
#: Modules that have the same role in every package that has one.
ROLES = frozenset({"__init__", "controller", "events", "metrics", "plan", "runtime", "settings", "status"})
#: Components whose modules are named after the kind they are about: `defaults/pod.py`, `printing/pods.py`.
BY_KIND = ("api", "validation")


def shared_class_names(inside: Sequence[Module]) -> Iterator[str]:
    """Every public class name that two modules define."""
    places: dict[str, list[str]] = {}
    for each in inside:
        for node in each.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(each.path)
    for name, paths in places.items():
        if len(paths) > 1:
            yield f"class {name}: {', '.join(paths)}: name each after its role"


def shared_module_names(inside: Sequence[Module]) -> Iterator[str]:
    """Every module name that stands twice in one component and is not a role."""
    places: dict[str, list[str]] = {}
    for each in inside:
        parts = each.path.removesuffix(".py").split("/")
        if len(parts) > 2 and parts[-1] not in ROLES and parts[1] not in BY_KIND:
            places.setdefault(f"{parts[1]}: {parts[-1]}.py", []).append(each.path)
    for name, paths in places.items():
        if len(paths) > 1:
            yield f"{name}: {', '.join(paths)}: name each after what it is about"


def test_a_class_name_stands_once() -> None:
    settle(shared_class_names(modules()), [f"class {name}:" for name in UPSTREAM])


def test_a_module_name_stands_once_in_a_component() -> None:
    settle(shared_module_names(modules()), ())


def test_the_rule_sees_two_classes_of_one_name() -> None:
    inside = [
        module("nodeward/a/x.py", "class Plan: ...\nclass _Own: ..."),
        module("nodeward/b/y.py", "class Plan: ...\nclass _Own: ..."),
    ]
    (found,) = shared_class_names(inside)
    assert found.startswith("class Plan: nodeward/a/x.py, nodeward/b/y.py")


def test_the_rule_sees_two_modules_of_one_name() -> None:
    paths = (
        "kubelet/a/starting",
        "kubelet/b/starting",
        "kubelet/a/status",
        "kubelet/b/status",
        "store/starting",
    )
    (found,) = shared_module_names([module(f"nodeward/{path}.py", "") for path in paths])
    assert found.startswith("kubelet: starting.py: nodeward/kubelet/a/starting.py")
