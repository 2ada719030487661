"""The static policy of the CPU manager: exclusive CPUs for containers of Guaranteed pods that ask for whole CPUs.

The CPU manager calls it for each container at admission (`allocate`), for removed ones (`remove`), and at its own start
(`start`); the topology manager asks it for hints. It changes the `CPUState` it is given and nothing else.

What must stay true: no CPU is in two exclusive sets, except that a pod's containers may reuse the CPUs of its init
containers that end before them; reserved CPUs are never exclusive; a failed allocation of a container changes nothing;
an allocation survives a change of options.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import quote
from nodeward.base.errors import ConfigError, NodewardError
from nodeward.kubelet.config.cpu_options import ALIGN_BY_SOCKET, CpuManagerOptions
from nodeward.kubelet.cpu.assignment import AssignmentError, take_distributed, take_packed
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.exclusive_requests import container_cpus, empty_shared_pool, pod_cpus
from nodeward.kubelet.cpu.topology import CPUTopology
from nodeward.kubelet.topology_manager.hint_provider import ResourceRefused
from nodeward.kubelet.topology_manager.hints import (
    Hints,
    TopologyHint,
    all_combinations,
    mask_of,
    numa_nodes_of,
)
from nodeward.rules.pod_resources import has_pod_level, is_sidecar

SINGLE_NUMA_NODE: Final = "single-numa-node"


class InvalidState(NodewardError):
    """The checkpoint does not fit this machine and configuration; the kubelet must not start."""


class StaticPolicy:
    """One node's static policy. `reserved` CPUs are never exclusive, `reserved_physical` adds their core siblings."""

    name: Final = "static"

    def __init__(
        self,
        topology: CPUTopology,
        options: CpuManagerOptions,
        *,
        reserved_count: int,
        reserved: CPUSet = CPUSet.EMPTY,
        topology_policy: str = "none",
        with_pod_level: bool = False,
    ) -> None:
        """Reserve CPUs: those listed, else `reserved_count` of the machine's choice. Raises `ConfigError`.

        with_pod_level: feature gate PodLevelResourceManagers is on.
        """
        self.topology: Final = topology
        self.options: Final = options
        self.with_pod_level: Final = with_pod_level
        #: CPUs that the next containers of a pod may use again; for the pod that was admitted last only.
        self._reusable: dict[str, CPUSet] = {}
        if options.align_by_socket:
            _check_align_by_socket(topology, topology_policy)
        if not reserved:
            try:
                reserved = self.take(topology.all_cpus, reserved_count)
            except AssignmentError:
                reserved = CPUSet.EMPTY
        if len(reserved) != reserved_count:
            raise ConfigError(
                "[cpumanager] unable to reserve the required amount of CPUs"
                f" (size of {reserved} did not equal {reserved_count})"
            )
        missing = reserved - topology.all_cpus
        if missing:
            raise ConfigError(
                "[cpumanager] unable to build the reserved physical CPUs from the reserved set:"
                f" unknown CPU ID: {next(iter(missing))}"
            )
        self.reserved: Final = reserved
        self.reserved_physical: Final = topology.whole_cores(reserved)
        self.allocatable: Final = topology.all_cpus - reserved

    def start(self, state: CPUState) -> None:
        """Check a restored state, or make the first one. Raises `InvalidState`."""
        usable = self.allocatable if self.options.strict_reservation else self.topology.all_cpus
        default = state.default
        if not default:
            if state.entries:
                raise InvalidState("default cpuset cannot be empty")
            state.default = usable
            return
        if self.options.strict_reservation:
            if wrong := self.reserved & default:
                raise InvalidState(
                    f"some of strictly reserved cpus: {_quoted(wrong)}"
                    f" are present in defaultCpuSet: {_quoted(default)}"
                )
        elif not self.reserved <= default:
            raise InvalidState(
                f"not all reserved cpus: {_quoted(self.reserved)}"
                f" are present in defaultCpuSet: {_quoted(default)}"
            )
        for uid, containers in sorted(state.entries.items()):
            for container, cpus in sorted(containers.items()):
                if cpus & default:
                    raise InvalidState(
                        f"pod: {uid}, container: {container} cpuset: {_quoted(cpus)}"
                        f" overlaps with default cpuset {_quoted(default)}"
                    )
        known = default | state.all_assigned()
        if self.with_pod_level:
            known = known.union(*state.pod_entries.values())
        if known != usable:
            raise InvalidState(
                f"current set of available CPUs {_quoted(usable)}"
                f" doesn't match with CPUs in state {_quoted(known)}"
            )

    def available(self, state: CPUState) -> CPUSet:
        """Return the CPUs that can become exclusive."""
        return state.default - self.reserved

    def allocate(self, state: CPUState, pod: Pod, container: Container, affinity: int | None) -> None:
        """Give a container its exclusive CPUs, if it asks for some and has none yet.

        affinity: the NUMA nodes that the topology manager chose. Raises `ResourceRefused` or `AssignmentError`.
        """
        wanted = self.exclusive_cpus(pod, container)
        if wanted == 0:
            return
        uid = pod.metadata.uid
        cpus = state.assigned(uid, container.name)
        if cpus is None:
            self.check_smt_alignment(state, wanted)
            cpus = self._allocate(state, wanted, affinity, self._reusable.get(uid, CPUSet.EMPTY))
            state.assign(uid, container.name, cpus)
        self._keep_reusable(pod, container, cpus)

    def allocate_pod(self, state: CPUState, pod: Pod, affinity: int | None) -> None:
        """Give a pod with pod-level resources one set of CPUs and divide it among its containers.

        Raises `ResourceRefused` or `AssignmentError`.
        """
        uid, wanted = pod.metadata.uid, pod_cpus(pod, with_pod_level=self.with_pod_level)
        if wanted == 0:
            return
        if (why := empty_shared_pool(pod)) is not None:
            raise ResourceRefused("EmptyPodSharedPoolError", why)
        self.check_smt_alignment(state, wanted)
        whole = self._allocate(state, wanted, affinity, CPUSet.EMPTY)
        state.pod_entries[uid] = whole
        given: dict[str, CPUSet] = {}
        pool = whole
        for container in pod.spec.init_containers:
            cpus = self.exclusive_cpus(pod, container)
            if cpus:
                given[container.name] = self.take(pool, cpus)
                if is_sidecar(container):
                    pool -= given[container.name]
            elif not is_sidecar(container):
                given[container.name] = pool
        for container in pod.spec.containers:
            if cpus := self.exclusive_cpus(pod, container):
                given[container.name] = self.take(pool, cpus)
                pool -= given[container.name]
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            state.assign(uid, container.name, given.get(container.name, pool))

    def remove(self, state: CPUState, uid: str, container: str) -> None:
        """Forget a container and return its CPUs to the shared set, unless containers of its pod still hold them."""
        released = state.assigned(uid, container)
        if released is None:
            return
        state.remove(uid, container)
        if self.with_pod_level and uid in state.pod_entries:
            if uid not in state.entries:
                state.default |= state.pod_entries.pop(uid)
            return
        state.default |= released - state.assigned_in_pod(uid)

    def reassign(self, state: CPUState, uid: str, container: str, cpus: CPUSet) -> None:
        """Give a container another exclusive set; what it gains leaves the shared set, what it loses joins it."""
        before = state.assigned(uid, container) or CPUSet.EMPTY
        state.assign(uid, container, cpus)
        state.default = (state.default - cpus) | (before - state.assigned_in_pod(uid))

    def hints(self, state: CPUState, pod: Pod, container: Container) -> Hints:
        """Return the NUMA nodes on which a container can get its exclusive CPUs."""
        wanted = self.exclusive_cpus(pod, container)
        if wanted == 0:
            return None
        uid = pod.metadata.uid
        assigned = state.assigned(uid, container.name)
        if assigned is None:
            return self.numa_hints(self.available(state), self._reusable.get(uid, CPUSet.EMPTY), wanted)
        return self.numa_hints(assigned, CPUSet.EMPTY, wanted) if len(assigned) == wanted else []

    def pod_hints(self, state: CPUState, pod: Pod) -> Hints:
        """Return the NUMA nodes on which a whole pod can get its exclusive CPUs."""
        wanted = 0 if self._is_unmanaged(pod) else pod_cpus(pod, with_pod_level=self.with_pod_level)
        if wanted == 0:
            return None
        if has_pod_level(pod.spec) and empty_shared_pool(pod) is not None:
            return []
        uid = pod.metadata.uid
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            cpus = state.assigned(uid, container.name)
            if cpus is not None and len(cpus) != self.exclusive_cpus(pod, container):
                return []
        assigned = state.assigned_in_pod(uid)
        if len(assigned) == wanted:
            return self.numa_hints(assigned, CPUSet.EMPTY, wanted)
        reusable = self._reusable.get(uid, CPUSet.EMPTY) | assigned
        return self.numa_hints(self.available(state), reusable, wanted)

    def exclusive_cpus(self, pod: Pod, container: Container) -> int:
        """Return the number of CPUs this policy gives to a container for itself."""
        if self._is_unmanaged(pod):
            return 0
        return container_cpus(pod, container, with_pod_level=self.with_pod_level)

    def reuse(self, uid: str, cpus: CPUSet) -> None:
        """Let the next containers of a pod, and of no other, use these CPUs again."""
        self._reusable = {uid: cpus}

    def _is_unmanaged(self, pod: Pod) -> bool:
        return has_pod_level(pod.spec) and not self.with_pod_level

    def _keep_reusable(self, pod: Pod, container: Container, cpus: CPUSet) -> None:
        reusable = self._reusable.get(pod.metadata.uid, CPUSet.EMPTY)
        ends = any(each.name == container.name and not is_sidecar(each) for each in pod.spec.init_containers)
        self.reuse(pod.metadata.uid, reusable | cpus if ends else reusable - cpus)

    def check_smt_alignment(self, state: CPUState, wanted: int, *, held: int = 0) -> None:
        """Refuse an amount that is not made of whole cores, if those are asked for. `held`: of these it has some."""
        per_core = self.topology.cpus_per_core
        if not self.options.full_pcpus_only:
            return
        if wanted % per_core:
            why = f"requested {wanted} cpus not multiple cpus per core = {per_core}"
            raise ResourceRefused("SMTAlignmentError", f"SMT Alignment Error: {why}")
        free = len(state.default - self.reserved_physical)
        if wanted - held > free:
            raise ResourceRefused(
                "SMTAlignmentError",
                "SMT Alignment Error: not enough free physical CPUs:"
                f" available physical CPUs = {free}, requested CPUs = {wanted}, CPUs per core = {per_core}",
            )

    def _allocate(self, state: CPUState, wanted: int, affinity: int | None, reusable: CPUSet) -> CPUSet:
        """Move CPUs out of the shared set: first those near `affinity`, then what is still missing."""
        free = self.available(state) | reusable
        taken = CPUSet.EMPTY
        if affinity is not None:
            aligned = free & self.cpus_near(affinity)
            taken = self.take(aligned, min(wanted, len(aligned)))
        taken |= self.take(free - taken, wanted - len(taken))
        state.default -= taken
        return taken

    def cpus_near(self, affinity: int) -> CPUSet:
        """Return all CPUs of a set of NUMA nodes, or of their sockets with option align-by-socket."""
        nodes = numa_nodes_of(affinity)
        if self.options.align_by_socket:
            return self.topology.cpus_in_sockets(self.topology.sockets_of_numa_nodes(nodes))
        return self.topology.cpus_in_numa_nodes(nodes)

    def take(self, free: CPUSet, wanted: int) -> CPUSet:
        """Return CPUs of `free` as the options ask for. Raises `AssignmentError`."""
        options = self.options
        if options.distribute_across_numa:
            return take_distributed(
                self.topology,
                free,
                wanted,
                group=self.topology.cpus_per_core if options.full_pcpus_only else 1,
                spread=options.distribute_across_cores,
                align_by_socket=options.align_by_socket,
            )
        return take_packed(
            self.topology,
            free,
            wanted,
            spread=options.distribute_across_cores,
            align_by_uncore=options.prefer_align_by_uncore_cache,
        )

    def numa_hints(self, free: CPUSet, reusable: CPUSet, wanted: int) -> list[TopologyHint]:
        """Return every combination of NUMA nodes that has the CPUs; those of the least possible size are preferred."""
        nodes = self.topology.numa_nodes
        total = {node.id: node.bits.bit_count() for node in nodes.values()}
        matching = {node.id: (node.bits & free.bits).bit_count() for node in nodes.values()}
        must_have = {node.id for node in nodes.values() if node.bits & reusable.bits}
        smallest = len(nodes)
        found: list[tuple[int, ...]] = []
        for combination in all_combinations(list(nodes)):
            if len(combination) < smallest and sum(total[node] for node in combination) >= wanted:
                smallest = len(combination)
            has = len(reusable) + sum(matching[node] for node in combination)
            if has >= wanted and must_have.issubset(combination):
                found.append(combination)
        return [TopologyHint(mask_of(each), self._is_preferred(each, smallest)) for each in found]

    def _is_preferred(self, combination: tuple[int, ...], smallest: int) -> bool:
        topology = self.topology
        if self.options.align_by_socket:
            per_socket = len(topology.numa_nodes) // topology.socket_count
            if per_socket and len(topology.sockets_of_numa_nodes(combination)) == -(-smallest // per_socket):
                return True
        return len(combination) == smallest


def _check_align_by_socket(topology: CPUTopology, topology_policy: str) -> None:
    if topology_policy == SINGLE_NUMA_NODE:
        # The spelling is upstream's: people search for it.
        raise ConfigError(
            f"Topolgy manager {SINGLE_NUMA_NODE} policy is incompatible with"
            f" CPUManager {ALIGN_BY_SOCKET} policy option"
        )
    if topology.socket_count > len(topology.numa_nodes):
        raise ConfigError(
            "Align by socket is not compatible with hardware"
            " where number of sockets are more than number of NUMA"
        )


def _quoted(cpus: CPUSet) -> str:
    return quote(str(cpus))
