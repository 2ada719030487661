"""The map of a node's CPUs as text: one letter for each CPU, in rows of threads, and who the letters are.

    node n1: CPU manager policy static, scale-delay-time 5s
    16 CPUs: 2 reserved, 9 shared, 5 exclusive, 1 of them held

    socket 0, NUMA node 0
       0-7   R . A A a . B B
      8-15   R . . . . . . .

    A   default/web/app   2-4   holds 4 until 20:41:07 UTC (for 3.2s), then keeps 2-3
    B   default/db/main   6-7

A column is a core, a double space divides caches; a small letter is a CPU that its owner loses when its delay is over.
Pure; `nodeward cpus` prints it. What must stay true: every CPU is shown exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from nodeward.base.cpuset import CPUSet
from nodeward.cli.listing import aligned

RESERVED: Final = "R"
SHARED: Final = "."
_LETTERS: Final = "ABCDEFGHIJKLMNOPQSTUVWXYZ"


class ShownCPU(msgspec.Struct, rename="camel", frozen=True):
    cpu: int
    socket: int
    numa_node: int
    uncore_cache: int
    core: int


class ShownContainer(msgspec.Struct, rename="camel", frozen=True):
    """One owner. `pending` and what follows is there while a delay is running."""

    uid: str
    container: str
    assigned: str
    namespace: str = ""
    pod: str = ""
    applied: str | None = None
    pending: str | None = None
    held: str = ""
    held_seconds: float = 0.0
    held_until: str = ""

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod}/{self.container}" if self.pod else f"{self.uid}/{self.container}"


class CPUPage(msgspec.Struct, rename="camel", frozen=True):
    """What a kubelet answers at /debug/cpus; only the first two fields with policy none."""

    node: str
    policy: str
    options: Mapping[str, str] = {}
    scale_delay: str = "0s"
    reserved: str = ""
    shared: str = ""
    cpus: tuple[ShownCPU, ...] = ()
    containers: tuple[ShownContainer, ...] = ()

    def counts(self) -> tuple[int, int, int, int, int]:
        """The numbers of CPUs: all, reserved, shared (reserved ones apart), exclusive, held."""
        reserved, shared = CPUSet.parse(self.reserved), CPUSet.parse(self.shared)
        exclusive = CPUSet.EMPTY.union(*(CPUSet.parse(each.assigned) for each in self.containers))
        held = CPUSet.EMPTY.union(*(CPUSet.parse(each.held) for each in self.containers))
        return len(self.cpus), len(reserved), len(shared - reserved), len(exclusive), len(held)


def as_text(page: CPUPage) -> str:
    """Format the map of one node."""
    if not page.cpus:
        return (
            f"node {page.node}: CPU manager policy {page.policy}: no container has CPUs of its own, all share all.\n"
            "With cpuManagerPolicy: static in the kubelet's configuration, containers of Guaranteed pods with a whole\n"
            "number of CPUs get CPUs of their own."
        )
    said = [f"CPU manager policy {page.policy}"]
    said += [f"{name}={value}" for name, value in sorted(page.options.items())]
    count, reserved, shared, exclusive, held = page.counts()
    numbers = f"{count} CPUs: {reserved} reserved, {shared} shared, {exclusive} exclusive"
    lines = [f"node {page.node}: {', '.join(said)}", numbers + (f", {held} of them held" if held else "")]
    letters = [_letter(number) for number in range(len(page.containers))]
    marks = _marks(page, letters)
    groups = list(dict.fromkeys((each.socket, each.numa_node) for each in page.cpus))
    for socket, numa in sorted(groups):
        inside = [each for each in page.cpus if (each.socket, each.numa_node) == (socket, numa)]
        lines += ["", f"socket {socket}, NUMA node {numa}", *_rows(inside, marks)]
    lines += ["", *_legend(page, letters)]
    return "\n".join(lines)


def as_table(pages: Sequence[CPUPage], notes: Sequence[str]) -> str:
    """Format one line for each node, and notes on those that did not answer."""
    rows: list[Sequence[str]] = [("NODE", "POLICY", "CPUS", "RESERVED", "SHARED", "EXCLUSIVE", "HELD")]
    for page in pages:
        counts = [str(each) for each in page.counts()] if page.cpus else ["-"] * 5
        rows.append((page.node, page.policy, *counts))
    return "\n".join([*aligned(rows), *notes])


def _letter(number: int) -> str:
    """A, B, ..., Z, AA, AB, ...; without R, which means reserved."""
    text = ""
    while True:
        number, rest = divmod(number, len(_LETTERS))
        text = _LETTERS[rest] + text
        if not number:
            return text
        number -= 1


def _marks(page: CPUPage, letters: Sequence[str]) -> dict[int, str]:
    marks = dict.fromkeys(CPUSet.parse(page.shared), SHARED) | dict.fromkeys(
        CPUSet.parse(page.reserved), RESERVED
    )
    for letter, each in zip(letters, page.containers, strict=True):
        marks |= dict.fromkeys(CPUSet.parse(each.assigned), letter)
        marks |= dict.fromkeys(CPUSet.parse(each.held), letter.lower())
    return marks


def _rows(cpus: Sequence[ShownCPU], marks: Mapping[int, str]) -> list[str]:
    """One row for each thread of the cores of a NUMA node, a column for each core."""
    threads: dict[int, list[ShownCPU]] = {}
    for each in sorted(cpus, key=lambda each: (each.uncore_cache, each.core, each.cpu)):
        threads.setdefault(each.core, []).append(each)
    depth = max(len(each) for each in threads.values())
    rows = []
    for number in range(depth):
        row = [each[number] if number < len(each) else None for each in threads.values()]
        rows.append((str(CPUSet(each.cpu for each in row if each is not None)), row))
    wide = max((len(mark) for mark in marks.values()), default=1)
    label = max(len(text) for text, _ in rows)
    caches = [each[0].uncore_cache for each in threads.values()]
    return [f"  {text:>{label}}  {_cells(row, caches, marks, wide)}".rstrip() for text, row in rows]


def _cells(row: Iterable[ShownCPU | None], caches: Sequence[int], marks: Mapping[int, str], wide: int) -> str:
    text, before = "", caches[0]
    for cpu, cache in zip(row, caches, strict=True):
        text += "  " if cache != before else ""
        text += " " + (marks.get(cpu.cpu, "?") if cpu is not None else "").ljust(wide)
        before = cache
    return text


def _legend(page: CPUPage, letters: Sequence[str]) -> list[str]:
    rows: list[tuple[str, str, str, str]] = []
    for letter, each in zip(letters, page.containers, strict=True):
        note = ""
        if each.pending is not None:
            clock = each.held_until.partition("T")[2][:8]
            left = f"{each.held_seconds:.1f}s"
            note = f"holds {each.held} until {clock} UTC (for {left}), then keeps {each.pending}"
        elif each.applied is not None and each.applied != each.assigned:
            note = f"still runs on {each.applied}"
        rows.append((letter, each.name, each.assigned, note))
    rows.append((RESERVED, "reserved, never exclusive", page.reserved, ""))
    rows.append((SHARED, "shared by all other containers", page.shared, ""))
    return aligned(rows)
