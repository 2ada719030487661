"""Containers that are a description: they start, run, crash and stop as their pod's annotations say, on any clock.

One runtime serves a whole fleet. A container that neither waits nor ends costs no timer and no task: its events are
told before the command returns. The runtime outlives the agents it serves; across processes a container lives as
long as its pod's status says that it runs (`adopt`). Commands in a container find its variables and volumes through
the view that `look_inside` was given.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.features.declared.abilities import MOUNT_OPTIONS, USER_NAMESPACES_HOST_NETWORK, able
from nodeward.kubelet.pods.container_life import POST_START
from nodeward.kubelet.runtime.behaviour import IMAGE_FAILURES, USUAL, Behaviour, behaviour_of
from nodeward.kubelet.runtime.images import why_missing
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerRequest,
    ContainerStarted,
    ExecRequest,
    ExecResult,
    FoundPod,
    ImagePulled,
    ImagePulling,
    Listener,
    PodGone,
    ResourcesApplied,
    ResourcesRefused,
    RuntimeEvent,
    SandboxStarted,
)
from nodeward.kubelet.runtime.resources import (
    ContainerResources,
    kernel_resources,
    memory_refusal,
    plain_cpuset,
    usable_cpuset,
)
from nodeward.kubelet.runtime.sim_records import (
    SimContainer,
    SimPod,
    found_pod,
    instant,
    last_id,
    statuses,
)
from nodeward.kubelet.simulated.container_view import ContainerView
from nodeward.kubelet.simulated.exec_session import SimExec, run_to_end
from nodeward.machinery.clock import Clock

VERSION: Final = "sim://1"
#: A simulated container has whatever namespaces and mounts its pod asks for.
ABILITIES: Final = able(MOUNT_OPTIONS, USER_NAMESPACES_HOST_NETWORK)
_SIGKILL_CODE: Final = 137
#: What `exec_sync` gives back at most.
MOST_OUTPUT: Final = 16 * 1024
#: What is shown of a container that was running when its machine went down.
_UNKNOWN_CODE: Final = 255
#: Pods have addresses in 10.64.0.0/10.
_FIRST_NETWORK: Final = 64
_NETWORKS: Final = 64
#: How the status shows the ids of containers.
_OWN_ID: Final = re.compile(r"sim://[0-9a-f]{64}")
#: Gives the inside of a container: of a pod's uid, its name, the variables it was started with, if they are known, and
#: the CPUs it may use ("": all of its node).
LookInside: TypeAlias = Callable[[str, str, Mapping[str, str] | None, str], Awaitable[ContainerView | None]]


class SimRuntime:
    """Simulated containers, of one node or of thousands."""

    version: str = VERSION

    def __init__(
        self,
        clock: Clock,
        usual: Behaviour | Callable[[Pod], Behaviour] = USUAL,
        abilities: Mapping[str, str] = ABILITIES,
    ) -> None:
        """`usual` is how containers behave whose pod does not say; it may differ from pod to pod."""
        self.abilities: Mapping[str, str] = abilities
        self._clock = clock
        self._usual_of: Callable[[Pod], Behaviour] = usual if callable(usual) else lambda _: usual
        self._listener: Listener = _nobody
        self._look_inside: LookInside = _nothing
        self._pods: dict[str, SimPod] = {}
        #: what each node has pulled, by the node's name
        self._images: dict[str, dict[str, int]] = {}
        #: the CPUs of nodes whose machine is described; others have any
        self._cpus: dict[str, CPUSet] = {}
        self._last_address = 0
        self._last_id = 0

    def __len__(self) -> int:
        """How many pods it has."""
        return len(self._pods)

    def look_inside(self, look: LookInside) -> None:
        """Learn how to find what a command in a container sees."""
        self._look_inside = look

    def describe_cpus(self, node: str, cpus: CPUSet) -> None:
        """Learn which CPUs a node has: no container there may run on others."""
        self._cpus[node] = cpus

    async def start(self, listener: Listener) -> None:
        self._listener = listener

    async def stop(self) -> None:
        self._listener = _nobody

    async def recover(self) -> Sequence[FoundPod]:
        return [found_pod(pod) for pod in self._pods.values()]

    def adopt(self, pod: Pod) -> FoundPod | None:
        """Rebuild what the status says is running; what had ended stays ended."""
        if pod.metadata.uid in self._pods:
            return found_pod(self._pods[pod.metadata.uid])
        shown = statuses(pod)
        if not any(status.state.running or status.state.terminated for status in shown):
            return None
        meta = pod.metadata
        mine = SimPod(meta.uid, meta.namespace, meta.name, pod.spec.node_name, pod.status.pod_ip)
        self._pods[mine.uid] = mine
        # Sidecars stand among the init containers and do not end by themselves.
        ending = {each.name for each in pod.spec.init_containers if each.restart_policy != "Always"}
        for status in shown:
            container = self._adopted(pod, status, status.name in ending)
            if container is not None:
                mine.containers[container.name] = container
                self._images.setdefault(pod.spec.node_name, {})[container.image] = 0
        return found_pod(mine)

    def _adopted(self, pod: Pod, status: ContainerStatus, is_init: bool) -> SimContainer | None:
        running, ended = status.state.running, status.state.terminated
        if running is None and ended is None:
            return None
        usual = self._usual_of(pod)
        try:
            behaviour = behaviour_of(pod.metadata.annotations, status.name, usual)
        except ValueError:
            behaviour = usual  # somebody wrote that after it was started: it runs on
        id_ = status.container_id.rpartition("/")[2]
        container = SimContainer(status.name, id_, status.restart_count, status.image, behaviour, is_init)
        if status.resources is not None:
            container.resources = kernel_resources(status.resources)
        if ended is not None:
            container.started_ns = instant(ended.started_at)
            container.exited = ContainerExited(
                pod.metadata.uid,
                status.name,
                id_,
                ended.exit_code,
                ended.reason,
                instant(ended.finished_at),
                container.started_ns,
            )
        elif running is not None:
            container.started_ns = instant(running.started_at)
            self._live_on(pod.metadata.uid, container)
        return container

    def reserve(self, pod: Pod) -> None:
        """A pod of an earlier run: its address and the ids of its containers are not given to others."""
        parts = pod.status.pod_ip.split(".")
        if len(parts) == 4 and parts[0] == "10" and all(part.isdecimal() for part in parts):
            high, middle, low = (int(part) for part in parts[1:])
            if _FIRST_NETWORK <= high < _FIRST_NETWORK + _NETWORKS:
                number = (high - _FIRST_NETWORK) << 16 | middle << 8 | low
                self._last_address = max(self._last_address, number)
        for status in statuses(pod):
            for shown in (status.container_id, last_id(status)):
                if _OWN_ID.fullmatch(shown):
                    self._last_id = max(self._last_id, int(shown.rpartition("/")[2], 16))

    # -- commands

    def start_sandbox(self, pod: Pod, log_directory: str = "") -> None:
        uid = pod.metadata.uid
        mine = self._pods.get(uid)
        if mine is None:
            meta = pod.metadata
            mine = self._pods[uid] = SimPod(
                uid, meta.namespace, meta.name, pod.spec.node_name, self._address()
            )
        self._tell(SandboxStarted(uid, f"sandbox-{uid}", (mine.ip,)))

    def start_container(self, request: ContainerRequest) -> None:
        uid, name, image = request.pod.metadata.uid, request.container.name, request.container.image
        mine = self._pods.get(uid)
        if mine is None:
            self._tell(ContainerFailed(uid, name, "CreateContainerError", "the pod has no sandbox"))
            return
        try:
            behaviour = behaviour_of(request.pod.metadata.annotations, name, self._usual_of(request.pod))
        except ValueError as error:
            self._tell(ContainerFailed(uid, name, "CreateContainerConfigError", str(error)))
            return
        try:
            cpuset = self._usable(mine, request.cpuset)
        except CPUSetError as error:
            self._tell(
                ContainerFailed(uid, name, "CreateContainerError", f"cpuset {request.cpuset!r}: {error}")
            )
            return
        before = mine.containers.get(name)
        if before is not None and before.exited is None and not before.started_ns:
            # Asked for by an agent that was stopped before it ran: this request takes its place.
            if before.timer is not None:
                before.timer.cancel()
        elif before is not None and before.exited is None:
            self._tell(ContainerFailed(uid, name, "CreateContainerError", f"container {name!r} runs already"))
            return
        images = self._images.setdefault(request.pod.spec.node_name, {})
        if image not in images:
            missing = why_missing(image, request.container.image_pull_policy)
            if missing is not None:
                self._tell(ContainerFailed(uid, name, *missing))
                return
        is_init = any(each.name == name for each in request.pod.spec.init_containers)
        is_service = request.container.restart_policy == "Always"
        self._last_id += 1
        container = SimContainer(
            name, f"{self._last_id:064x}", request.attempt, image, behaviour, is_init and not is_service
        )
        container.env = request.env or None
        container.resources = kernel_resources(
            request.container.resources, cpuset, has_quota=request.has_cpu_quota
        )
        mine.containers[name] = container
        wait_ns = behaviour.start_delay_ns
        is_present = image in images
        if not is_present and behaviour.pull_time_ns:
            self._tell(ImagePulling(uid, name, image))
            wait_ns += behaviour.pull_time_ns
        if wait_ns:
            seconds = behaviour.pull_time_ns / SECOND_NS
            self._later(container, wait_ns, lambda: self._begin(uid, container, images, is_present, seconds))
        else:
            self._begin(uid, container, images, is_present, 0.0)

    def stop_container(self, uid: str, container: str, grace_seconds: float) -> None:
        mine = self._pods.get(uid)
        found = mine.containers.get(container) if mine is not None else None
        if found is None or found.exited is not None:
            return
        now = self._clock.now_ns()
        kill_ns = now + int(grace_seconds * SECOND_NS)
        if found.asked_ns is None:
            found.asked_ns = now
        elif kill_ns >= found.kill_ns:
            return
        found.kill_ns = kill_ns
        if not found.started_ns:
            # It never ran, and never will.
            self._end(uid, found, _SIGKILL_CODE, "ContainerStatusUnknown")
            return
        # Whatever comes first; of two at once, the milder.
        ways = [(found.asked_ns + found.behaviour.stop_delay_ns, 1, found.behaviour.stop_code)]
        if found.ends_ns is not None:
            ways.append((found.ends_ns, 0, found.end_code))
        ways.append((kill_ns, 2, _SIGKILL_CODE))
        end_ns, _, code = min(ways)
        if end_ns <= now:
            self._end(uid, found, code, "")
        else:
            self._later(found, end_ns - now, lambda: self._end(uid, found, code, ""))

    def remove_container(self, uid: str, container_id: str) -> None:
        mine = self._pods.get(uid)
        if mine is not None:
            for name, container in list(mine.containers.items()):
                if container.id == container_id and container.exited is not None:
                    del mine.containers[name]

    def remove_pod(self, uid: str) -> None:
        mine = self._pods.get(uid)
        if mine is not None:
            for container in list(mine.containers.values()):
                if container.exited is None:
                    self._end(uid, container, _SIGKILL_CODE, "")
            # Whoever heard of an end may have removed it already.
            self._pods.pop(uid, None)
        self._tell(PodGone(uid))

    def lose_power(self, uids: Iterable[str]) -> None:
        """The machine of these pods went down: what ran has ended, and nobody was told why."""
        for uid in uids:
            mine = self._pods.get(uid)
            for container in list(mine.containers.values()) if mine is not None else ():
                if container.exited is not None:
                    continue
                if container.timer is not None:
                    container.timer.cancel()
                    container.timer = None
                container.exited = self._exit(uid, container, _UNKNOWN_CODE, "Unknown")

    def update_resources(self, uid: str, container: str, resources: ContainerResources) -> None:
        mine = self._pods.get(uid)
        found = mine.containers.get(container) if mine is not None else None
        if mine is None or found is None or not found.started_ns or found.exited is not None:
            self._tell(ResourcesRefused(uid, container, f"container {container!r} does not run"))
            return
        try:
            cpuset = None if resources.cpuset is None else self._usable(mine, resources.cpuset)
        except CPUSetError as error:
            self._tell(ResourcesRefused(uid, container, f"cpuset {resources.cpuset!r}: {error}"))
            return
        if refusal := memory_refusal(container, resources, found.behaviour.memory_use_bytes):
            self._tell(ResourcesRefused(uid, container, refusal))
            return
        found.resources = found.resources.with_changes(replace(resources, cpuset=cpuset))
        self._tell(ResourcesApplied(uid, container, found.id, found.resources))

    # -- answers

    def is_well(self, uid: str, container: str, kind: str, now_ns: int) -> bool:
        """What a probe (liveness, readiness, startup) of a container says."""
        mine = self._pods.get(uid)
        found = mine.containers.get(container) if mine is not None else None
        if found is None or not found.started_ns or found.exited is not None:
            return False
        age_ns, behaviour = now_ns - found.started_ns, found.behaviour
        if kind == "liveness":
            return behaviour.unhealthy_after_ns is None or age_ns < behaviour.unhealthy_after_ns
        return age_ns >= behaviour.ready_after_ns

    def hook_code(self, uid: str, container: str, kind: str) -> int:
        """What a hook (postStart, preStop) of a container is said to end with; 0: nothing is said."""
        mine = self._pods.get(uid)
        found = mine.containers.get(container) if mine is not None else None
        if found is None:
            return 0
        return found.behaviour.post_start_code if kind == POST_START else found.behaviour.pre_stop_code

    async def exec(self, request: ExecRequest) -> SimExec:
        return SimExec(request, await self._inside(request), self._clock)

    async def exec_sync(self, request: ExecRequest, timeout: float) -> ExecResult:
        result = await run_to_end(request, await self._inside(request), self._clock, timeout=timeout)
        return ExecResult(result.code, (result.output + result.errors)[:MOST_OUTPUT])

    async def _inside(self, request: ExecRequest) -> ContainerView | None:
        container = self._running(request)
        cpuset = container.resources.cpuset or ""
        return await self._look_inside(request.uid, request.container, container.env, cpuset)

    def forward_address(self, pod: Pod) -> str:
        raise WorldError(f"pod {pod.metadata.name} is simulated, so nothing listens on its ports")

    def has_image(self, image: str) -> bool:
        return any(image in images for images in self._images.values())

    def images(self) -> Mapping[str, int]:
        return {image: size for images in self._images.values() for image, size in images.items()}

    def forget_node(self, name: str) -> None:
        """The node is gone with all it had pulled."""
        self._images.pop(name, None)
        self._cpus.pop(name, None)

    # -- inside

    def _begin(
        self, uid: str, container: SimContainer, images: dict[str, int], was_present: bool, seconds: float
    ) -> None:
        behaviour = container.behaviour
        if behaviour.fails not in IMAGE_FAILURES:
            images.setdefault(container.image, 0)
            self._tell(ImagePulled(uid, container.name, container.image, was_present, seconds))
        if behaviour.fails:
            container.exited = ContainerExited(
                uid, container.name, "", 128, "StartError", self._clock.now_ns()
            )
            self._tell(ContainerFailed(uid, container.name, behaviour.fails, f"simulated: {container.image}"))
            return
        if not self._is_awaited(uid, container):
            return  # whoever heard of the image stopped it
        now = self._clock.now_ns()
        container.started_ns = now
        # Whoever hears of the start may stop it at once: what comes next is settled before.
        self._live_on(uid, container)
        started = ContainerStarted(
            uid,
            container.name,
            container.id,
            container.image,
            f"simulated:{container.image}",
            now,
            container.attempt,
        )
        ended = container.exited
        container.exited = None
        self._tell(started)
        if ended is not None and self._is_known(uid, container) and container.exited is None:
            container.exited = ended
            self._tell(ended)

    def _live_on(self, uid: str, container: SimContainer) -> None:
        """Settle when it ends by itself, from when it started."""
        behaviour, now = container.behaviour, self._clock.now_ns()
        if container.attempt < behaviour.crashes:
            lasts_ns, code = behaviour.crash_after_ns, behaviour.exit_code or 1
        elif behaviour.run_time_ns is not None:
            lasts_ns, code = behaviour.run_time_ns, behaviour.exit_code
        elif container.is_init:
            lasts_ns, code = 0, behaviour.exit_code
        else:
            return
        ends_ns = container.started_ns + lasts_ns
        container.ends_ns, container.end_code = ends_ns, code
        if ends_ns > now:
            self._later(container, ends_ns - now, lambda: self._end(uid, container, code, ""))
        else:
            container.exited = self._exit(uid, container, code, "", ends_ns)

    def _exit(
        self, uid: str, container: SimContainer, code: int, reason: str, at_ns: int | None = None
    ) -> ContainerExited:
        return ContainerExited(
            uid,
            container.name,
            container.id,
            code,
            reason or ("Completed" if code == 0 else "Error"),
            self._clock.now_ns() if at_ns is None else at_ns,
            container.started_ns,
        )

    def _end(self, uid: str, container: SimContainer, code: int, reason: str) -> None:
        if container.exited is not None or not self._is_known(uid, container):
            return
        if container.timer is not None:
            container.timer.cancel()
            container.timer = None
        container.exited = self._exit(uid, container, code, reason)
        if container.started_ns:
            self._tell(container.exited)
        else:
            self._tell(ContainerFailed(uid, container.name, "RunContainerError", "stopped before it started"))

    def _later(self, container: SimContainer, wait_ns: int, callback: Callable[[], None]) -> None:
        if container.timer is not None:
            container.timer.cancel()

        def due() -> None:
            container.timer = None
            if container.exited is None:
                callback()

        container.timer = self._clock.call_later(wait_ns / SECOND_NS, due)

    def _usable(self, pod: SimPod, cpuset: str) -> str:
        """A list of CPUs in its shortest form. Raises `CPUSetError` if the pod's node has not all of them."""
        if not cpuset:
            return ""
        present = self._cpus.get(pod.node)
        return plain_cpuset(cpuset) if present is None else usable_cpuset(cpuset, present)

    def _is_known(self, uid: str, container: SimContainer) -> bool:
        mine = self._pods.get(uid)
        return mine is not None and mine.containers.get(container.name) is container

    def _is_awaited(self, uid: str, container: SimContainer) -> bool:
        return container.exited is None and self._is_known(uid, container)

    def _running(self, request: ExecRequest) -> SimContainer:
        mine = self._pods.get(request.uid)
        found = mine.containers.get(request.container) if mine is not None else None
        if found is None or not found.started_ns or found.exited is not None:
            raise WorldError(f"container {request.container!r} does not run")
        return found

    def _address(self) -> str:
        self._last_address += 1
        number = self._last_address
        return f"10.{_FIRST_NETWORK + (number >> 16) % _NETWORKS}.{number >> 8 & 255}.{number & 255}"

    def _tell(self, event: RuntimeEvent) -> None:
        self._listener(event)


def _nobody(event: RuntimeEvent) -> None:
    """Before an agent is there, and after."""


async def _nothing(uid: str, container: str, env: Mapping[str, str] | None, cpuset: str) -> None:
    """Nobody has told what is inside of containers."""
