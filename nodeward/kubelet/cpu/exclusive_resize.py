"""Resize of exclusive CPUs in place (KEP-5554): which CPUs a container gets or gives up, and which resizes cannot be.

The CPU manager asks for it when a pod is admitted with operation resize, and the container manager beforehand whether
a resize is feasible at all. Scale-ups and scale-downs without a delay change the `CPUState`; a scale-down with a delay
is left to `scale_delay` (KEP-6122).

What must stay true: a container never loses a CPU it started with; a larger set holds the whole smaller one; CPUs come
from where the container's others are (same core, uncore cache, NUMA node, socket), unless an option says otherwise; the
base of every computation is the assignment in the state, never a set that waits for its delay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import quote
from nodeward.kubelet.container_manager import ResizeRefusal
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.exclusive_requests import pod_cpus
from nodeward.kubelet.cpu.scale_delay import ScaleDelays
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.kubelet.pods.resize_texts import INFEASIBLE
from nodeward.kubelet.topology_manager.hints import Hints
from nodeward.rules.pod_resources import has_pod_level

PROHIBITED: Final = "prohibitedCPUAllocationError"
INCONSISTENT: Final = "inconsistentCPUAllocationError"
NO_ORIGINAL: Final = "getOriginalCPUSetError"
NOT_ALLOCATED: Final = "resizeAllocateCPUsError"


def infeasible(detail: str, message: str) -> ResizeRefusal:
    """Return the refusal of a resize that is not tried again before the pod's spec changes."""
    return ResizeRefusal(True, INFEASIBLE, f"{detail}: {message}", detail)


class ExclusiveResize:
    """The resizes of one node's exclusive CPUs. `delay_of` tells how long a scale-down of a pod waits."""

    def __init__(
        self,
        policy: StaticPolicy,
        state: CPUState,
        delay_of: Callable[[Pod], int],
        monotonic_ns: Callable[[], int],
    ) -> None:
        self._policy: Final = policy
        self._state: Final = state
        self._delay_of: Final = delay_of
        self._monotonic_ns: Final = monotonic_ns
        self.delays: Final = ScaleDelays()

    def check(self, pod: Pod, changed: Collection[str]) -> ResizeRefusal | None:
        """Say why a resize can never be done; `changed` are the containers that ask for another amount of CPU."""
        uid = pod.metadata.uid
        for container in _containers(pod):
            name = container.name
            current, wanted = self._state.assigned(uid, name), self._policy.exclusive_cpus(pod, container)
            if name not in changed or (current is None and not wanted):
                continue
            shown = f"container {quote(name)}"
            if current is None:
                return infeasible(INCONSISTENT, f"{shown} shares its CPUs and asks for {wanted} of its own")
            if has_pod_level(pod.spec):
                return infeasible(
                    NOT_ALLOCATED,
                    f"{shown} is in a pod with pod-level resources, whose CPUs cannot be resized",
                )
            if not wanted:
                asked = container.resources.requests["cpu"]
                return infeasible(
                    INCONSISTENT, f"{shown} has CPUs {current} of its own and asks for {asked}, a part of one"
                )
            original = self._original(uid, name)
            if original is None:
                return infeasible(NO_ORIGINAL, f"which CPUs {shown} started with is not known")
            if wanted < len(original):
                return infeasible(
                    PROHIBITED,
                    f"{shown} started with CPUs {original} and asks for {wanted}; it cannot have fewer"
                    f" than {len(original)}",
                )
        return None

    def hints(self, pod: Pod, container: Container) -> Hints:
        """Return the NUMA nodes on which a container can have its new CPUs; None if it asks for what it has."""
        uid, name = pod.metadata.uid, container.name
        wanted = self._policy.exclusive_cpus(pod, container)
        current = self._changing(uid, name, wanted)
        if current is None:
            return None
        return self._hints(current, self._original(uid, name) or CPUSet.EMPTY, wanted)

    def pod_hints(self, pod: Pod) -> Hints:
        """Return the NUMA nodes on which a whole pod can have its new CPUs; None if it asks for what it has."""
        uid = pod.metadata.uid
        asked = {each.name: self._policy.exclusive_cpus(pod, each) for each in _containers(pod)}
        if all(self._changing(uid, name, wanted) is None for name, wanted in asked.items()):
            return None
        originals = CPUSet.EMPTY.union(*self._state.baselines.get(uid, {}).values())
        return self._hints(self._state.assigned_in_pod(uid), originals, pod_cpus(pod, with_pod_level=False))

    def allocate(self, pod: Pod, container: Container, affinity: int | None) -> None:
        """Give a container its new CPUs, now or after its delay. Raises `ResourceRefused` or `AssignmentError`."""
        uid, name = pod.metadata.uid, container.name
        wanted = self._policy.exclusive_cpus(pod, container)
        current, original = self._changing(uid, name, wanted), self._original(uid, name)
        if current is None or original is None or wanted < len(original):
            return
        self._policy.check_smt_alignment(self._state, wanted, held=len(current))
        if wanted < len(current):
            cpus = original | self._choose(current - original, original, wanted - len(original), affinity)
            # Asked for after the set was chosen: the delay is never shorter than it should be.
            if delay_ns := self._delay_of(pod):
                self.delays.start(uid, name, cpus, delay_ns, self._monotonic_ns())
                return
        else:
            free = self._policy.available(self._state)
            if self._policy.options.full_pcpus_only:
                free -= self._policy.reserved_physical
            cpus = current | self._choose(free, current, wanted - len(current), affinity)
        self.delays.cancel(uid, name)
        self._policy.reassign(self._state, uid, name, cpus)

    def apply_due(self, now_ns: int) -> list[tuple[str, str]]:
        """Make every pre-assignment that is due the assignment, and return the containers."""
        due = self.delays.due(now_ns)
        for uid, name, cpus in due:
            self._policy.reassign(self._state, uid, name, cpus)
            self.delays.cancel(uid, name)
        return [(uid, name) for uid, name, _ in due]

    def without_delays(self) -> None:
        """Give up all held CPUs at once, on a state that is restored afterwards: could a resize be done later?"""
        for uid, name, cpus in list(self.delays.all_waiting()):
            self._policy.reassign(self._state, uid, name, cpus)
            self.delays.cancel(uid, name)

    def _changing(self, uid: str, container: str, wanted: int) -> CPUSet | None:
        """Return the assignment of a container that asks for another number than it has, or waits for; else None."""
        current = self._state.assigned(uid, container)
        if current is None or wanted == 0:
            return None
        waiting = self.delays.waiting(uid, container)
        return None if len(current if waiting is None else waiting.cpus) == wanted else current

    def _original(self, uid: str, container: str) -> CPUSet | None:
        return self._state.baselines.get(uid, {}).get(container)

    def _hints(self, current: CPUSet, originals: CPUSet, wanted: int) -> Hints:
        if wanted >= len(current):
            return self._policy.numa_hints(self._policy.available(self._state), current, wanted)
        return self._policy.numa_hints(current - originals, originals, wanted)

    def _choose(self, free: CPUSet, near: CPUSet, wanted: int, affinity: int | None) -> CPUSet:
        """Take CPUs close to some, from the NUMA nodes that the topology manager chose first."""
        if wanted > len(free):
            return self._policy.take(free, wanted)  # says how many are missing
        taken = CPUSet.EMPTY
        if affinity is not None:
            aligned = free & self._policy.cpus_near(affinity)
            taken = self._take_close(aligned, near, min(wanted, len(aligned)))
        return taken | self._take_close(free - taken, near | taken, wanted - len(taken))

    def _take_close(self, free: CPUSet, near: CPUSet, wanted: int) -> CPUSet:
        taken = CPUSet.EMPTY
        for around, most in self._surroundings(free, near, wanted):
            part = (free - taken) & around
            if amount := min(wanted - len(taken), len(part), most):
                taken |= self._policy.take(part, amount)
        return taken | self._policy.take(free - taken, wanted - len(taken))

    def _surroundings(self, free: CPUSet, near: CPUSet, wanted: int) -> Iterator[tuple[CPUSet, int]]:
        """Yield CPUs around some, from the closest to the farthest, and how many of them may be taken."""
        options, topology = self._policy.options, self._policy.topology
        if options.distribute_across_numa:
            # As many on each NUMA node as if all were distributed anew.
            anew = self._policy.take(free | near, len(near) + wanted) if wanted else CPUSet.EMPTY
            for node in topology.numa_nodes:
                cpus = topology.cpus_in_numa_nodes((node,))
                yield cpus, max(len(anew & cpus) - len(near & cpus), 0)
            return
        if not options.distribute_across_cores:
            yield topology.whole_cores(near), wanted
        if options.prefer_align_by_uncore_cache:
            yield topology.whole_uncore_caches(near), wanted
        yield topology.cpus_in_numa_nodes({topology.details[cpu].numa_node for cpu in near}), wanted
        yield topology.cpus_in_sockets({topology.details[cpu].socket for cpu in near}), wanted


def _containers(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.init_containers
    yield from pod.spec.containers
