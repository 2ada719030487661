"""The runtime of local processes: the agent's side, which starts supervisors and hears of their ends.

Commands are taken at once and carried out by tasks; what blocks is done in threads. The books here are only what the
directories say (`keeping`), so an agent that comes back has the same ones.

What must stay true: a container is started by one task, which ends in one `ContainerStarted` or `ContainerFailed`;
its exit is told once, by whoever hears of the supervisor's end; `PodGone` comes after all of them.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSetError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.features.declared.abilities import MOUNT_OPTIONS, able
from nodeward.kubelet.runtime.cdi import CDI_DIRECTORIES, with_devices
from nodeward.kubelet.runtime.images import is_reachable, is_well_formed, why_missing
from nodeward.kubelet.runtime.interface import (
    ContainerFailed,
    ContainerRequest,
    ContainerStarted,
    ExecRequest,
    ExecResult,
    FoundPod,
    ImagePulled,
    Listener,
    PodGone,
    ResourcesApplied,
    ResourcesRefused,
    RuntimeEvent,
    SandboxFailed,
    SandboxStarted,
)
from nodeward.kubelet.runtime.process import cpuset_cgroups, keeping, launching, rootfs, tree
from nodeward.kubelet.runtime.process.books import (
    ADDRESS,
    BookedContainer,
    BookedPod,
    cpusets_of,
    exit_of,
    found_pod,
    image_id_of,
    resources_of,
)
from nodeward.kubelet.runtime.process.container_cpus import ContainerCPUSets, read_note, with_tried
from nodeward.kubelet.runtime.process.execing import ProcessExec, start_exec
from nodeward.kubelet.runtime.process.launch_plan import Unfit, plan_of
from nodeward.kubelet.runtime.process.notes import STARTED, Plan, Started
from nodeward.kubelet.runtime.process.waiting import ProcessWatch, read_all, reap
from nodeward.kubelet.runtime.resources import ContainerResources, memory_refusal, usable_cpuset
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.eager import own_task

LOG: Final = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 0.02
_MOST_SWEEPS: Final = 250
#: A process that is just becoming another program carries no mark for a moment.
_QUIET_SWEEPS: Final = 3
VERSION: Final = "process://1"
#: The most an exec_sync gives back.
MOST_OUTPUT: Final = 16 * 1024
_SETTLE_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 5.0


class ProcessRuntime:
    """Local processes as containers, with everything about them under one directory."""

    version: str = VERSION

    def __init__(
        self,
        root: Path,
        clock: Clock,
        chance: Chance,
        *,
        may_mount: bool = True,
        has_pidfd: bool = True,
        may_use_cgroups: bool = True,
        cdi_directories: Sequence[str | Path] = CDI_DIRECTORIES,
    ) -> None:
        """`root` is an absolute directory for this runtime alone; the flags: what to try on this machine."""
        self.abilities: Mapping[str, str] = able()
        self._root = str(root.absolute())
        self._clock, self._chance = clock, chance
        self._may_mount, self._has_pidfd = may_mount, has_pidfd
        self._cdi_directories = cdi_directories
        self._listener: Listener = _nobody
        self._pods: dict[str, BookedPod] = {}
        self._way = rootfs.NONE
        self._lock = -1
        self._nursery = launching.Nursery()
        self._is_found = False
        self._cpus = ContainerCPUSets(self._root, may_use_cgroups=may_use_cgroups)
        #: what is let end when the agent goes, starts and removals of the dead, and what is not
        self._unfinished: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    # -- coming and going

    async def start(self, listener: Listener) -> None:
        try:
            os.makedirs(self._root, mode=0o700, exist_ok=True)
            lock = os.open(f"{self._root}/agent.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WorldError(f"the process runtime cannot use {self._root}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise WorldError(f"another agent has its containers in {self._root}") from None
        self._lock = lock
        self._listener = listener
        await asyncio.to_thread(self._cpus.start)
        if self._may_mount:
            self._way = await asyncio.to_thread(launching.possible_way, self._root)
        if self._way == rootfs.NONE:
            LOG.warning(
                "this machine allows no mount namespaces (as root, or unprivileged user namespaces): "
                "containers start without their volumes and find them through NODEWARD_MOUNTS"
            )
        else:
            self.abilities = able(MOUNT_OPTIONS)

    async def stop(self) -> None:
        self._listener = _nobody
        for task in self._tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with self._clock.timeout(_PATIENCE_SECONDS):
                await asyncio.gather(*self._unfinished, *self._tasks, return_exceptions=True)
        for container in self._containers():
            await self._end_execs(container)
            if container.timer is not None:
                container.timer.cancel()
            if container.watch is not None:
                container.watch.close()
        self._pods.clear()
        self._is_found = False
        await asyncio.to_thread(self._nursery.close)
        await asyncio.to_thread(self._cpus.stop)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def recover(self) -> Sequence[FoundPod]:
        if not self._is_found:
            self._is_found = True
            for kept in await self._settled():
                self._take_over(kept)
            self._cpus.sweep([each.id for each in self._containers()])
        return [found_pod(pod) for pod in self._pods.values()]

    async def _settled(self) -> list[keeping.KeptPod]:
        while True:
            try:
                return await asyncio.to_thread(keeping.find_all, self._root, self._clock.now_ns())
            except keeping.Unsettled:
                await self._clock.sleep(_SETTLE_SECONDS)

    def _take_over(self, kept: keeping.KeptPod) -> None:
        if kept.uid in self._pods:
            return
        pod = self._pods[kept.uid] = BookedPod(kept.uid, kept.namespace, kept.name)
        for each in sorted(kept.containers, key=lambda each: (each.plan["attempt"], each.started["at_ns"])):
            plan = each.plan
            container = BookedContainer(
                each.directory, plan["name"], plan["id"], plan["attempt"], plan["image"], plan, each.started
            )
            container.cpusets = read_note(each.directory)
            pod.containers[container.id] = container
            if each.exited is not None:
                container.exited = exit_of(kept.uid, container, each.exited)
                container.over.set()
            else:
                self._watch(pod, container)

    def adopt(self, pod: Pod) -> FoundPod | None:
        """Real processes that `recover` did not find are gone."""
        return None

    # -- commands

    def start_sandbox(self, pod: Pod, log_directory: str = "") -> None:
        uid, meta = pod.metadata.uid, pod.metadata
        mine = self._pods.get(uid)
        if mine is not None and mine.is_removing:
            self._tell(SandboxFailed(uid, "the pod is being removed"))
            return
        try:
            keeping.make_pod(self._root, uid, meta.namespace, meta.name)
        except OSError as error:
            self._tell(SandboxFailed(uid, f"{error.filename}: {error.strerror}"))
            return
        if mine is None:
            self._pods[uid] = BookedPod(uid, meta.namespace, meta.name)
        self._tell(SandboxStarted(uid, f"sandbox-{uid}", (ADDRESS,)))

    def start_container(self, request: ContainerRequest) -> None:
        uid, name, image = request.pod.metadata.uid, request.container.name, request.container.image
        pod = self._pods.get(uid)
        before = pod.latest(name) if pod is not None else None
        refusal = why_missing(image, request.container.image_pull_policy)
        if pod is None or pod.is_removing:
            refusal = ("CreateContainerError", "the pod has no sandbox")
        elif before is not None and not before.over.is_set():
            refusal = ("CreateContainerError", f"container {name!r} runs already")
        if pod is None or refusal is not None:
            self._tell(ContainerFailed(uid, name, *(refusal or ("", ""))))
            return
        self._tell(ImagePulled(uid, name, image, was_present=True))
        id_ = self._chance.randbytes(32).hex()
        directory = f"{keeping.pod_directory(self._root, uid)}/{id_}"
        container = pod.containers[id_] = BookedContainer(directory, name, id_, request.attempt, image)
        self._spawn(self._start(pod, container, request), self._unfinished)

    def stop_container(self, uid: str, container: str, grace_seconds: float) -> None:
        pod = self._pods.get(uid)
        found = pod.latest(container) if pod is not None else None
        if found is not None:
            self._stop(found, grace_seconds)

    def remove_container(self, uid: str, container_id: str) -> None:
        pod = self._pods.get(uid)
        found = pod.containers.get(container_id) if pod is not None else None
        if pod is not None and found is not None and found.exited is not None:
            del pod.containers[container_id]
            self._spawn(self._forget(found), self._unfinished)

    def remove_pod(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            self._tell(PodGone(uid))
        elif not pod.is_removing:
            pod.is_removing = True
            for container in pod.containers.values():
                self._stop(container, 0)
            self._spawn(self._remove(pod), self._tasks)

    def update_resources(self, uid: str, container: str, resources: ContainerResources) -> None:
        """Set CPUs; shares, quotas and memory take a cgroup, which a process has none of."""
        pod = self._pods.get(uid)
        found = pod.latest(container) if pod is not None else None
        if found is None or found.started is None or found.exited is not None:
            self._tell(ResourcesRefused(uid, container, f"container {container!r} does not run"))
            return
        if resources.cpuset is None:
            self._spawn(self._check_memory(uid, found, found.started["pid"], resources), self._tasks)
            return
        try:
            cpuset = usable_cpuset(resources.cpuset, self._cpus.present)
        except CPUSetError as error:
            self._tell(ResourcesRefused(uid, container, f"cpuset {resources.cpuset!r}: {error}"))
            return
        self._spawn(self._pin(uid, found, found.started["pid"], cpuset), self._tasks)

    # -- answers

    async def exec(self, request: ExecRequest) -> ProcessExec:
        pod = self._pods.get(request.uid)
        found = pod.latest(request.container) if pod is not None else None
        if found is None or found.started is None or found.exited is not None:
            raise WorldError(f"container {request.container!r} does not run")
        async with found.while_entering():
            session = await start_exec(
                self._clock, request, found.directory, found.started["pid"], self._has_pidfd
            )
        found.execs = [each for each in found.execs if not each.ended.is_set()]
        found.execs.append(session)
        if found.over.is_set():
            await session.kill()
        return session

    @own_task
    async def exec_sync(self, request: ExecRequest, timeout: float) -> ExecResult:
        parts = bytearray()
        try:
            async with self._clock.timeout(timeout or None):
                session = await self.exec(request)
                try:
                    async for _, data in session.output():
                        parts += data[: MOST_OUTPUT - len(parts)]
                    return ExecResult(await session.wait(), bytes(parts))
                finally:
                    await session.kill()
        except TimeoutError:
            raise TimeoutError(f"command {request.command!r} timed out after {timeout:g} s") from None

    def forward_address(self, pod: Pod) -> str:
        """Processes listen on the machine itself."""
        return ADDRESS

    def has_image(self, image: str) -> bool:
        return is_well_formed(image) and is_reachable(image)

    def images(self) -> Mapping[str, int]:
        """An image is only a name here: nothing is stored."""
        return {}

    # -- inside: one container

    async def _pin(self, uid: str, container: BookedContainer, pid: int, cpuset: str) -> None:
        """Commands of one container are carried out in the order they came."""
        async with container.pinning:
            known, plan = cpusets_of(container), container.plan
            if plan is None:
                return
            try:
                await asyncio.to_thread(self._cpus.move, container.directory, pid, plan, cpuset, known)
            except OSError as error:
                why = f"cannot run on CPUs {cpuset}: {error.strerror}"
                container.cpusets = with_tried(known, cpuset)
                self._tell(ResourcesRefused(uid, container.name, why))
                return
            container.cpusets = (cpuset,)
            self._tell(ResourcesApplied(uid, container.name, container.id, resources_of(container)))

    async def _check_memory(
        self, uid: str, container: BookedContainer, pid: int, wanted: ContainerResources
    ) -> None:
        """Nothing limits the memory of a process; a limit below what is in use is refused nevertheless."""
        usage = await asyncio.to_thread(tree.memory_bytes, pid) if wanted.memory_bytes else 0
        if refusal := memory_refusal(container.name, wanted, usage):
            self._tell(ResourcesRefused(uid, container.name, refusal))
        else:
            self._tell(ResourcesApplied(uid, container.name, container.id, resources_of(container)))

    async def _start(self, pod: BookedPod, container: BookedContainer, request: ContainerRequest) -> None:
        try:
            request, cpus = with_devices(request, self._cdi_directories), self._cpus
            plan = container.plan = plan_of(request, container.id, self._way, cpus.present, cpus.cgroups)
            kind, value = await self._launch(container.directory, plan)
        except Unfit as error:
            self._not_started(pod, container, error.reason, str(error))
            return
        except (OSError, WorldError) as error:
            self._not_started(pod, container, "CreateContainerError", str(error))
            return
        if kind != STARTED:
            await self._forget(container)
            self._not_started(pod, container, value["reason"], value["message"])
            return
        started: Started = value
        container.started = started
        self._watch(pod, container)
        self._tell(
            ContainerStarted(
                pod.uid,
                container.name,
                container.id,
                container.image,
                image_id_of(container.image),
                started["at_ns"],
                container.attempt,
            )
        )
        if container.kill_ns is not None and not container.over.is_set():
            # It was to stop before it ran.
            left = max(container.kill_ns - self._clock.monotonic_ns(), 0) / SECOND_NS
            container.kill_ns = None
            self._stop(container, left)

    async def _launch(self, directory: str, plan: Plan) -> tuple[str, Any]:
        """Start the supervisor and hear how that went."""

        def begin() -> int:
            self._cpus.prepare(plan)
            keeping.make_container(directory, plan)
            return self._nursery.spawn_shim(directory)

        answer = await read_all(await asyncio.to_thread(begin))
        if not answer:
            raise WorldError(f"the supervisor failed: {_last_line(f'{directory}/trouble')}")
        kind, value = json.loads(answer)
        return kind, value

    def _not_started(self, pod: BookedPod, container: BookedContainer, reason: str, message: str) -> None:
        pod.containers.pop(container.id, None)
        container.over.set()
        self._tell(ContainerFailed(pod.uid, container.name, reason, message))

    def _stop(self, container: BookedContainer, grace_seconds: float) -> None:
        if container.over.is_set():
            return
        kill_ns = self._clock.monotonic_ns() + int(grace_seconds * SECOND_NS)
        if container.kill_ns is not None and kill_ns >= container.kill_ns:
            return
        is_first, container.kill_ns = container.kill_ns is None, kill_ns
        if container.started is None:
            return  # `_start` sees to it
        if container.timer is not None:
            container.timer.cancel()
            container.timer = None
        if grace_seconds <= 0:
            container.signal(signal.SIGUSR1)
            return
        if is_first:
            container.signal(signal.SIGTERM)
        container.timer = self._clock.call_later(grace_seconds, lambda: container.signal(signal.SIGUSR1))

    def _watch(self, pod: BookedPod, container: BookedContainer) -> None:
        started = container.started
        if started is None:
            return
        # After a reboot the numbers mean nothing.
        ticks = started["shim_ticks"] if started["boot"] == tree.boot_id() else -1

        def ended() -> None:
            reap(started["shim"])
            self._spawn(self._ended(pod, container), self._tasks)

        container.watch = ProcessWatch(self._clock, started["shim"], ticks, ended, self._has_pidfd)

    async def _ended(self, pod: BookedPod, container: BookedContainer) -> None:
        plan = container.plan
        if plan is None or container.exited is not None:
            return
        exited = await asyncio.to_thread(keeping.ending, container.directory, plan, self._clock.now_ns())
        if exited["reason"] == keeping.UNKNOWN:
            await self._sweep(plan["id"])
        if container.timer is not None:
            container.timer.cancel()
            container.timer = None
        container.exited = await asyncio.to_thread(exit_of, pod.uid, container, exited)
        container.over.set()
        self._tell(container.exited)
        await self._end_execs(container)

    async def _sweep(self, container_id: str) -> None:
        """Without a supervisor: whoever forked, or became another program, while the others were ended."""
        quiet = 0
        for _ in range(_MOST_SWEEPS):
            await self._clock.sleep(_SWEEP_SECONDS)
            left = await asyncio.to_thread(tree.marked, container_id)
            quiet = 0 if left else quiet + 1
            if quiet == _QUIET_SWEEPS:
                return
            tree.kill_all(left)
        LOG.warning("container %s: some of its processes cannot be ended", container_id)

    async def _end_execs(self, container: BookedContainer) -> None:
        execs, container.execs = container.execs, []
        for session in execs:
            if not session.ended.is_set():
                await session.kill()

    # -- inside: pods

    async def _remove(self, pod: BookedPod) -> None:
        for container in list(pod.containers.values()):
            await container.over.wait()
        for container in list(pod.containers.values()):
            await self._forget(container)
        await asyncio.to_thread(keeping.remove, keeping.pod_directory(self._root, pod.uid))
        self._pods.pop(pod.uid, None)
        self._tell(PodGone(pod.uid))

    async def _forget(self, container: BookedContainer) -> None:
        """Remove what is left of a container that has ended."""
        plan = container.plan
        if plan is not None and plan.get("cgroup"):
            await asyncio.to_thread(cpuset_cgroups.remove, plan["cgroup"])
        await asyncio.to_thread(keeping.remove, container.directory)

    def _containers(self) -> list[BookedContainer]:
        return [each for pod in self._pods.values() for each in pod.containers.values()]

    def _spawn(self, work: Coroutine[Any, Any, None], kept: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(work)
        kept.add(task)
        task.add_done_callback(kept.discard)

    def _tell(self, event: RuntimeEvent) -> None:
        self._listener(event)


def _last_line(path: str) -> str:
    try:
        lines = Path(path).read_text(errors="replace").strip().splitlines()
    except OSError:
        return "it said nothing"
    return lines[-1] if lines else "it said nothing"


def _nobody(event: RuntimeEvent) -> None:
    """Before an agent is there, and after."""
