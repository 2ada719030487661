"""A node that can crash between any two steps: the real container manager of the static policy in a small world.

Its disk, its runtime and the files of its pods outlive the manager; each of their actions is a step, and a fuse can
make any of them the last one before a crash (`Crash`). The world checks what must be true whenever a container loses
CPUs: its file said so for at least the whole delay, and the CPUs it started with are not among them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.cpu.cpu_metrics import CPUMetrics
from nodeward.kubelet.cpu.policy_setup import make_container_manager
from nodeward.kubelet.cpu.state_file import decode
from nodeward.kubelet.cpu.static_cpus import ManagerParts, StaticCPUs
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.disk import MemoryDisk
from nodeward.kubelet.node_services import NodeServices
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerStarted,
    ResourcesApplied,
    ResourcesRefused,
    Runtime,
)
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.clock import Clock, Timer
from nodeward.machinery.metrics import Metrics
from tests.kubelet.cpu.static_nodes import STATE_FILE, resizing_node

Key = tuple[str, str]
ALL_CPUS = range(12)


class Crash(BaseException):
    """The kubelet is killed."""


class _Alarm:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class HandClock:
    """A clock that is moved by hand; its wall time can be set to anything."""

    def __init__(self) -> None:
        self.elapsed_ns = 0
        self.wall_ns = 0
        self._alarms: list[tuple[int, int, _Alarm]] = []
        self._number = 0

    def monotonic_ns(self) -> int:
        return self.elapsed_ns

    def now_ns(self) -> int:
        return self.wall_ns + self.elapsed_ns

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        alarm = _Alarm(callback)
        self._number += 1
        heapq.heappush(self._alarms, (self.elapsed_ns + round(seconds * SECOND_NS), self._number, alarm))
        return alarm

    def advance(self, seconds: float) -> None:
        """Let time pass, and call who waits for it."""
        end_ns = self.elapsed_ns + round(seconds * SECOND_NS)
        while self._alarms and self._alarms[0][0] <= end_ns:
            at_ns, _, alarm = heapq.heappop(self._alarms)
            self.elapsed_ns = max(self.elapsed_ns, at_ns)
            if alarm.callback is not None:
                alarm.callback()
        self.elapsed_ns = end_ns

    def forget_alarms(self) -> None:
        self._alarms.clear()

    # -- what the container manager does not ask for

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def yield_now(self) -> None:
        raise NotImplementedError

    def timeout(self, seconds: float | None) -> Any:
        raise NotImplementedError

    def hold(self, reason: str = "") -> AbstractContextManager[None]:
        return nullcontext()


class _Disk(MemoryDisk):
    def __init__(self, step: Callable[[], None], look: Callable[[bytes], None]) -> None:
        super().__init__()
        self._step, self._look = step, look

    def write(self, path: str, data: bytes) -> None:
        self._step()
        self._look(data)
        super().write(path, data)
        self._step()


class _Services:
    has_disk = True

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk


class CrashingNode:
    """A node of 12 CPUs, CPU 0 reserved, with a pass each second."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.disk = _Disk(self._step, self._check_write)
        #: what the kubelet has allocated, as its other checkpoint says
        self.pods: dict[str, Pod] = {}
        #: the pod that is being admitted
        self._newcomer: Pod | None = None
        #: the CPUs running containers really have
        self.in_force: dict[Key, CPUSet] = {}
        self.originals: dict[Key, CPUSet] = {}
        #: what the files show, and since when they do not show each of the other CPUs
        self.files: dict[Key, CPUSet] = {}
        self.since_ns: dict[Key, dict[int, int]] = {}
        self.files_fail = False
        self.late_files: list[Callable[[], None]] | None = None
        self.runtime_refuses = False
        self.delay_ns = 0
        #: steps until the crash; None: no crash
        self.fuse: int | None = None
        self.manager: StaticCPUs
        self.boot(5)

    def _step(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse <= 0:
                self.fuse = None
                raise Crash

    # -- the kubelet

    def boot(self, delay: int) -> None:
        """Start a kubelet from what the disk says; its pods are admitted as they were allocated."""
        self.clock.forget_alarms()
        self.late_files = None if self.late_files is None else []
        self._newcomer = None
        self.delay_ns = delay * SECOND_NS
        specification = resizing_node(
            machine=CPUDescription(cores_per_numa=6, threads=2),
            delay=f"{delay}s" if delay else "",
            cpuManagerReconcilePeriod="1s",
        )
        clock = cast(Clock, self.clock)
        parts = ManagerParts(clock, TimerWheel(clock), cast(Runtime, self), CPUMetrics(Metrics()))
        services = cast(NodeServices, _Services(self.disk))
        made = make_container_manager(specification, services, self, parts)
        assert isinstance(made, StaticCPUs)
        self.manager = made
        for pod in list(self.pods.values()):
            assert made.admit(pod) is None, "a pod that runs is not refused"
        made.on_pods_known()

    def start(self, pod: Pod) -> bool:
        """Admit a pod and start its containers."""
        uid = pod.metadata.uid
        self._newcomer = pod
        refusal = self.manager.admit(pod)
        if refusal is not None:
            self._newcomer = None
            self.manager.release(uid)
            return False
        self._step()
        self.pods[uid] = pod
        self._newcomer = None
        for container in pod.spec.containers:
            self._step()
            self._start_container(uid, container.name)
        return True

    def _start_container(self, uid: str, name: str) -> None:
        cpus = CPUSet.parse(self.manager.cpuset(uid, name))
        key = uid, name
        self.in_force[key] = cpus
        if (assigned := self.manager.cpus.state.assigned(uid, name)) is not None:
            self.originals.setdefault(key, assigned)
        self._show(uid)
        now_ns = self.clock.now_ns()
        self.manager.on_runtime_event(ContainerStarted(uid, name, f"id-{uid}-{name}", "i", "i", now_ns))

    def restart_container(self, uid: str, name: str) -> None:
        """The container ends, and is started again; its delay goes on."""
        self.in_force.pop((uid, name), None)
        self.manager.on_runtime_event(
            ContainerExited(uid, name, f"id-{uid}-{name}", 1, "Error", self.clock.now_ns())
        )
        self._step()
        self._start_container(uid, name)

    def resize(self, pod: Pod) -> bool:
        """Ask for other CPUs; what is accepted is written down afterwards."""
        if self.manager.resize(pod) is not None:
            return False
        self._step()
        self.pods[pod.metadata.uid] = pod
        return True

    def stop(self, uid: str) -> None:
        """End a pod."""
        del self.pods[uid]
        for kept in (self.in_force, self.files, self.since_ns, self.originals):
            for key in [key for key in kept if key[0] == uid]:
                del kept[key]
        self.manager.release(uid)

    # -- what the manager sees: NodePods and Runtime

    def active(self) -> Collection[Pod]:
        return [*self.pods.values(), *((self._newcomer,) if self._newcomer is not None else ())]

    def running_id(self, uid: str, container: str) -> str | None:
        return f"id-{uid}-{container}" if (uid, container) in self.in_force else None

    def cpus_in_force(self, uid: str, container: str) -> str | None:
        cpus = self.in_force.get((uid, container))
        return None if cpus is None else str(cpus)

    def refresh_own_fields(self, uid: str, written: Callable[[str], None]) -> None:
        self._step()
        if self.files_fail:
            written("No space left on device")
        elif self.late_files is not None:
            self.late_files.append(lambda: self._write(uid, written))
        else:
            self._write(uid, written)

    def _write(self, uid: str, written: Callable[[str], None]) -> None:
        self._show(uid)
        self._step()
        written("")

    def _show(self, uid: str) -> None:
        for key in self.in_force:
            if key[0] == uid:
                shown = self.files[key] = CPUSet.parse(self.manager.assigned_cpuset(*key))
                known = self.since_ns.get(key, {})
                self.since_ns[key] = {
                    cpu: known.get(cpu, self.clock.elapsed_ns) for cpu in ALL_CPUS if cpu not in shown
                }

    def write_late_files(self) -> None:
        late, self.late_files = self.late_files or [], None
        for write in late:
            write()

    def sync(self, uid: str) -> None:
        pass

    def record(self, uid: str, event: RecordEvent) -> None:
        pass

    def update_resources(self, uid: str, container: str, resources: ContainerResources) -> None:
        self._step()
        key = uid, container
        if self.runtime_refuses or key not in self.in_force:
            self.manager.on_runtime_event(ResourcesRefused(uid, container, "refused"))
            return
        cpus = CPUSet.parse(resources.cpuset or "")
        if key in self.originals:
            assert self.originals[key] <= cpus, "a CPU that the container started with is taken away"
            for cpu in self.in_force[key] - cpus:
                assert cpu in self.since_ns.get(key, {}), f"CPU {cpu} is taken away before the file says so"
        self.in_force[key] = cpus
        self._step()
        self.manager.on_runtime_event(
            ResourcesApplied(uid, container, f"id-{uid}-{container}", ContainerResources(cpuset=str(cpus)))
        )

    def _check_write(self, data: bytes) -> None:
        """A state in which a container has fewer CPUs comes no sooner than the whole delay after its notice.

        What is in the state is applied soon, by this kubelet or, with another delay, by the next.
        """
        before = self.disk.read(STATE_FILE)
        if before is None or not self.delay_ns:
            return
        old, new = (decode(each.decode(), "static", keeps_baselines=True).entries for each in (before, data))
        for (uid, name), cpus in self.in_force.items():
            kept = new.get(uid, {}).get(name)
            had = old.get(uid, {}).get(name, CPUSet.EMPTY)
            if kept is None:
                continue
            for cpu in (had - kept) & cpus:
                since = self.since_ns.get((uid, name), {}).get(cpu)
                assert since is not None, f"CPU {cpu} is given up before the file says so"
                waited_ns = self.clock.elapsed_ns - since
                assert waited_ns >= self.delay_ns, f"CPU {cpu} is given up after {waited_ns} ns"

    # -- what must be true at any moment

    def check(self) -> None:
        """Check the state in memory, and that the checkpoint alone gives a valid one."""
        policy = self.manager.cpus.policy
        stored = self.disk.read(STATE_FILE)
        assert stored is not None
        written = decode(stored.decode(), "static", keeps_baselines=True)
        policy.start(written)
        for state in (self.manager.cpus.state, written):
            taken = state.default
            for containers in state.entries.values():
                for cpus in containers.values():
                    assert not taken & cpus, "a CPU is in two sets"
                    taken |= cpus
                    assert not cpus & policy.reserved
            assert taken == policy.topology.all_cpus
        for (uid, name), originals in self.originals.items():
            for state in (self.manager.cpus.state, written):
                assigned = state.assigned(uid, name)
                assert assigned is not None
                assert originals <= assigned, "the originals leave"
            assert originals <= self.in_force.get((uid, name), originals)
