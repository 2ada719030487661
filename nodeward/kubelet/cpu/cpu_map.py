"""The map of a node's CPUs: where each CPU is, which container owns it, and what is held in a scale-down delay.

The container manager of the static policy returns a `CPUMap` (`ContainerManager.cpu_map`), made by `map_of` from its
topology, state and timers. The kubelet's server shows it as JSON at /debug/cpus, and `nodeward cpus` prints that.

What must stay true: a map is a value of one moment; it holds UIDs only, names are added by who shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.topology import CPUTopology

#: A container by pod UID and name.
ContainerKey: TypeAlias = tuple[str, str]


class PendingCPUs(NamedTuple):
    """A smaller set that a container gets when its scale-down delay is over (KEP-6122)."""

    cpus: CPUSet
    #: until the delay is over; 0: it is over, and the next reconcile pass applies the set
    left_ns: int


class ContainerCPUs(NamedTuple):
    """The exclusive CPUs of one container."""

    uid: str
    container: str
    #: as in the state file
    assigned: CPUSet
    pending: PendingCPUs | None = None
    #: what the runtime was last told; None: nothing yet
    applied: CPUSet | None = None

    @property
    def held(self) -> CPUSet:
        """The CPUs that the container loses when its delay is over."""
        return CPUSet.EMPTY if self.pending is None else self.assigned - self.pending.cpus


@dataclass(frozen=True, slots=True)
class CPUMap:
    """The CPUs of one node at one moment."""

    topology: CPUTopology
    #: CPUs that are never exclusive
    reserved: CPUSet
    #: CPUs of all containers without exclusive ones
    shared: CPUSet
    #: by pod UID and container name
    containers: tuple[ContainerCPUs, ...] = ()
    scale_delay_ns: int = 0
    #: CPU manager policy options, as the kubelet's configuration has them
    options: Mapping[str, str] | None = None


_NO_PENDING: Final[Mapping[ContainerKey, PendingCPUs]] = {}
_NOT_APPLIED: Final[Mapping[ContainerKey, CPUSet]] = {}


def map_of(
    topology: CPUTopology,
    reserved: CPUSet,
    state: CPUState,
    pending: Mapping[ContainerKey, PendingCPUs] = _NO_PENDING,
    applied: Mapping[ContainerKey, CPUSet] = _NOT_APPLIED,
    *,
    scale_delay_ns: int = 0,
    options: Mapping[str, str] | None = None,
) -> CPUMap:
    """Return the map of a state. pending: the sets of running delays; applied: what the runtime was last told."""
    containers = tuple(
        ContainerCPUs(uid, name, cpus, pending.get((uid, name)), applied.get((uid, name)))
        for uid, entries in sorted(state.entries.items())
        for name, cpus in sorted(entries.items())
    )
    return CPUMap(topology, reserved, state.default, containers, scale_delay_ns, options)
