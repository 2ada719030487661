"""The CPUs of containers that are local processes: which are in force, and how they are changed.

The process runtime has one `ContainerCPUSets`; what takes long is called from a thread, one at a time for a container.
Where the machine allows it a container has a cgroup (`cpuset_cgroups`), and one write moves it. Elsewhere Linux keeps
the CPUs of each thread by itself (its affinity), so every thread of every process is moved, and those born meanwhile
too (`tree.pin`).

What must stay true: the note says which CPUs are in force; while they are changed thread by thread it names both sets,
so that after a crash in the middle every thread is recognised and moved; a move that fails puts back what was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.runtime.process import cpuset_cgroups, notes, tree
from nodeward.kubelet.runtime.process.notes import Plan

#: Sets remembered of moves that failed.
_MOST_TRIED: Final = 4


class ContainerCPUSets:
    """How one runtime sets the CPUs of its containers. `may_use_cgroups`: by cgroups, if the machine allows it."""

    def __init__(self, root: str, *, may_use_cgroups: bool) -> None:
        self._root = root
        self._may_use_cgroups = may_use_cgroups
        #: those this process may use, and so its containers
        self.present = CPUSet.EMPTY
        #: the cgroup below which containers have theirs; "": they have none
        self.cgroups = ""

    def start(self) -> None:
        """Find out which CPUs there are, and whether cgroups can be made."""
        self.present = CPUSet(os.sched_getaffinity(0))
        if self._may_use_cgroups:
            self.cgroups = cpuset_cgroups.find_base(self._root, str(self.present))

    def stop(self) -> None:
        """Leave nothing behind, if no container is left."""
        if self.cgroups:
            cpuset_cgroups.remove(self.cgroups)

    def prepare(self, plan: Plan) -> None:
        """Make the cgroup of a container that is about to start. Raises OSError."""
        if plan["cgroup"]:
            cpuset_cgroups.make(plan["cgroup"], str(CPUSet(plan["cpus"]) or self.present), str(self.present))

    def sweep(self, container_ids: Iterable[str]) -> None:
        """Remove cgroups of containers that are gone."""
        if self.cgroups:
            cpuset_cgroups.sweep(self.cgroups, container_ids)

    def move(self, directory: str, pid: int, plan: Plan, wanted: str, known: Sequence[str]) -> None:
        """Let a container run on the CPUs `wanted` ("": on all). Raises OSError, and then nothing has changed.

        known: what its threads were allowed so far, in force first.
        """
        cpus = CPUSet.parse(wanted) or self.present
        # A container from before an upgrade of the agent has no cgroup.
        if cgroup := plan.get("cgroup"):
            cpuset_cgroups.set_cpus(cgroup, str(cpus))
            notes.write(directory, notes.CPUSET, [wanted])
            return
        old = [CPUSet.parse(each) or self.present for each in known]
        notes.write(directory, notes.CPUSET, with_tried(known, wanted))
        try:
            tree.pin(pid, plan["id"], cpus, old)
            notes.write(directory, notes.CPUSET, [wanted])
        except OSError:
            with suppress(OSError):
                tree.pin(pid, plan["id"], old[0], [*old, cpus])
            raise


def read_note(directory: str) -> tuple[str, ...]:
    """The lists of CPUs that were set since the start; the first is in force, others were tried when the agent died."""
    found = notes.read(directory, notes.CPUSET)
    return tuple(found) if isinstance(found, list) else () if found is None else (str(found),)


def with_tried(known: Sequence[str], wanted: str) -> tuple[str, ...]:
    """What threads may have from now on: what is in force, and the sets tried last."""
    tried = list(dict.fromkeys((*known[1:], wanted)))
    return (known[0], *tried[-_MOST_TRIED:])
