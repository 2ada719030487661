"""What a pod asks for, worked out from its JSON alone: the rules of Kubernetes, written down a second time."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

Tree = dict[str, Any]
Amounts = dict[str, int]

UNITS = {"": 1, "k": 10**3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
#: What a container that says nothing counts for when nodes are compared.
UNSAID = {"cpu": 100, "memory": 200 * 2**20}


@functools.cache
def amount(name: str, text: str) -> int:
    """CPU in thousandths, all else in ones; whatever is left over counts as one more."""
    number, milli, unit = re.fullmatch(r"(\d+)(m?)(\w*)", text).groups()  # type: ignore[union-attr]
    thousandths = int(number) * (1 if milli else 1000) * UNITS[unit]
    return thousandths if name == "cpu" else -(-thousandths // 1000)


def amounts(listed: Tree | None) -> Amounts:
    return {name: amount(name, text) for name, text in (listed or {}).items()}


def plus(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def largest(several: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for each in several:
        for name, number in each.items():
            found[name] = max(found.get(name, number), number)
    return found


def requests(pod: Tree, *, is_placed: bool, fill: bool = False) -> Amounts:
    """What it asks for; of a placed pod also what it was promised and has. `fill`: count what was not said."""

    def spec_of(container: Tree, status: Tree) -> Amounts:
        return amounts(container.get("resources", {}).get("requests"))

    def allocated(container: Tree, status: Tree) -> Amounts:
        listed = status.get("allocatedResources")
        return amounts(listed) if listed else spec_of(container, status)

    def actual(container: Tree, status: Tree) -> Amounts:
        listed = status.get("resources", {}).get("requests")
        return amounts(listed) if listed else allocated(container, status)

    ways = (spec_of, allocated, actual) if is_placed else (spec_of,)
    found = largest(_together(pod, way, fill=fill) for way in ways)
    for name, number in amounts(pod["spec"].get("resources", {}).get("requests")).items():
        found[name] = number
    return plus(found, amounts(pod["spec"].get("overhead")))


def _together(pod: Tree, way: Callable[[Tree, Tree], Amounts], *, fill: bool) -> Amounts:
    statuses = {each["name"]: each for each in pod.get("status", {}).get("containerStatuses", ())}

    def of(container: Tree) -> Amounts:
        said = way(container, statuses.get(container["name"], {}))
        return UNSAID | said if fill else said

    running: Amounts = {}
    for container in pod["spec"]["containers"]:
        running = plus(running, of(container))
    sidecars: Amounts = {}
    starting: list[Amounts] = []
    for container in pod["spec"].get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            running = plus(running, of(container))
            sidecars = plus(sidecars, of(container))
            starting.append(sidecars)
        else:
            starting.append(plus(sidecars, of(container)))
    return largest([running, *starting])
