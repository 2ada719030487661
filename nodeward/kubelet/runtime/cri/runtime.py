"""Real containers: the agent's `Runtime` by way of CRI.

Every command is a task of its own; within a pod they find each other by the tables here: a start that is under way is
stopped rather than waited for, a removal waits for whatever is under way.

What must stay true: what `interface.py` promises, also while the runtime is away for a time: what must happen in the
end (stops, removals) is tried until it has happened, what may fail (sandboxes, starts) fails and is told.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSetError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.features.declared.abilities import MOUNT_OPTIONS, able
from nodeward.kubelet.runtime.cri.calls import Calls, CriError
from nodeward.kubelet.runtime.cri.cgroup_driver import find_driver
from nodeward.kubelet.runtime.cri.container_config import target_of
from nodeward.kubelet.runtime.cri.container_start import Start, Starter
from nodeward.kubelet.runtime.cri.container_stop import Stopper
from nodeward.kubelet.runtime.cri.endings import exited, image_of
from nodeward.kubelet.runtime.cri.execution import StreamedExec, execute
from nodeward.kubelet.runtime.cri.linux_resources import all_cpus, changed, in_force
from nodeward.kubelet.runtime.cri.messages import EXITED, message
from nodeward.kubelet.runtime.cri.pulling import ImagePuller, NotStarted
from nodeward.kubelet.runtime.cri.recovery import recover
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.cri.sandboxes import AUTO, Sandbox, Sandboxes
from nodeward.kubelet.runtime.cri.watching import Running, Watcher
from nodeward.kubelet.runtime.interface import (
    ContainerFailed,
    ContainerRequest,
    ContainerStarted,
    ExecRequest,
    ExecResult,
    FoundPod,
    Listener,
    PodGone,
    ResourcesApplied,
    ResourcesRefused,
    RuntimeEvent,
    SandboxFailed,
    SandboxStarted,
)
from nodeward.kubelet.runtime.resources import ContainerResources, memory_refusal
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import own_task

LOG: Final = logging.getLogger(__name__)

#: How long `start` waits for an answer.
_GREETING_SECONDS: Final = 10.0
#: The list of images is asked for anew this often, as long as nothing is pulled.
_IMAGES_SECONDS: Final = 30.0
#: How long `stop` waits for what is nearly done.
_FINISH_SECONDS: Final = 2.0
_MOST_OUTPUT: Final = 16 * 1024
_LOCALHOST: Final = "127.0.0.1"
_NOT_CREATED: Final = "CreateContainerError"


@dataclass(slots=True)
class _Pod:
    sandbox: Sandbox | None = None
    sandbox_task: asyncio.Task[None] | None = None
    starts: dict[str, Start] = field(default_factory=dict)
    start_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    #: container id -> when it will be killed
    stops: dict[str, int] = field(default_factory=dict)
    removal: asyncio.Task[None] | None = None
    updating: asyncio.Lock = field(default_factory=asyncio.Lock)


class CriRuntime:
    """Containers of one node. `socket`: the path of the runtime's unix socket.

    `network`: "auto", "pod" or "host" (see the package); `host_ips`: the node's addresses, which pods in its network
    have.
    """

    def __init__(
        self,
        socket: str,
        clock: Clock,
        *,
        settings: NodeSettings | None = None,
        network: str = AUTO,
        host_ips: Sequence[str] = (),
    ) -> None:
        self.version: str = "unknown://"
        self.abilities: Mapping[str, str] = able()
        self._socket = socket.removeprefix("unix://")
        self._clock = clock
        self._settings = settings or NodeSettings()
        self._network = network
        self._host_ips = tuple(host_ips)
        self._opened: Calls | None = None
        self._listener: Listener = _nobody
        self._pods: dict[str, _Pod] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        #: those that are short, and that nobody would do again
        self._finishing: set[asyncio.Task[None]] = set()

    # -- life

    async def start(self, listener: Listener) -> None:
        self._opened = self._call = call = Calls(self._socket)
        self._watcher = Watcher(call, self._clock, self._tell)
        self._images = ImagePuller(call, self._clock, self._tell)
        try:
            told = await call("Version", seconds=_GREETING_SECONDS)
            await self._images.refresh()
            driver = self._settings.cgroup_driver or await find_driver(call)
            features = (await call("Status")).features
        except CriError as error:
            await self.stop()
            raise WorldError(
                f"no container runtime answers CRI v1 at unix://{self._socket}: {error.details}; "
                "is it running, and may this user open the socket?"
            ) from None
        settings = replace(self._settings, cgroup_driver=driver)
        self._sandboxes = Sandboxes(call, settings, self._network, self._host_ips)
        self._starter = Starter(call, self._images, settings)
        self._stopper = Stopper(call, self._clock, self._watcher, self._sandboxes, settings.cgroup_root)
        self.version = f"{told.runtime_name}://{told.runtime_version}"
        self.abilities = abilities_of(features)
        self._listener = listener
        self._spawn(self._watcher.run())
        self._spawn(self._watch_images())

    async def stop(self) -> None:
        self._listener = _nobody
        if self._finishing:
            await asyncio.wait(list(self._finishing), timeout=_FINISH_SECONDS)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def recover(self) -> Sequence[FoundPod]:
        under_way = {uid for uid, mine in self._pods.items() if mine.starts}
        pods = []
        for found in await recover(self._call, self._sandboxes, under_way):
            pods.append(found.pod)
            mine = self._pods.setdefault(found.pod.uid, _Pod())
            if mine.sandbox_task is None or mine.sandbox_task.done():
                mine.sandbox = found.sandbox
            for each in found.pod.containers:
                if each.exited is not None:
                    self._watcher.forget(each.id)
                elif each.id not in self._watcher:
                    self._watcher.add(Running(found.pod.uid, each.name, each.id, each.started_ns))
        return pods

    def adopt(self, pod: Pod) -> FoundPod | None:
        return None

    # -- commands

    def start_sandbox(self, pod: Pod, log_directory: str = "") -> None:
        mine = self._pods.setdefault(pod.metadata.uid, _Pod())
        if mine.sandbox_task is None or mine.sandbox_task.done():
            mine.sandbox_task = self._spawn(self._start_sandbox(pod, log_directory, mine.removal))

    def start_container(self, request: ContainerRequest) -> None:
        uid, name = request.pod.metadata.uid, request.container.name
        mine = self._pods.get(uid)
        if mine is None or mine.sandbox is None or mine.removal is not None:
            self._tell(ContainerFailed(uid, name, _NOT_CREATED, "the pod has no sandbox"))
        elif name in mine.starts or self._watcher.get(uid, name) is not None:
            self._tell(ContainerFailed(uid, name, _NOT_CREATED, f"container {name!r} runs already"))
        else:
            start = mine.starts[name] = Start(request.attempt)
            mine.start_tasks[name] = self._spawn(self._start_container(mine, mine.sandbox, request, start))

    def stop_container(self, uid: str, container: str, grace_seconds: float) -> None:
        mine = self._pods.get(uid)
        if mine is None:
            return
        if container in mine.starts:
            mine.starts[container].stop(grace_seconds)
            return
        running = self._watcher.get(uid, container)
        if running is None:
            return
        kill_ns = self._clock.monotonic_ns() + int(grace_seconds * SECOND_NS)
        if kill_ns < mine.stops.get(running.id, kill_ns + 1):
            mine.stops[running.id] = kill_ns
            self._spawn(self._stop_container(mine, running.id, kill_ns))

    def remove_container(self, uid: str, container_id: str) -> None:
        if container_id not in self._watcher:
            self._finish(self._spawn(self._stopper.remove_container(container_id)))

    def remove_pod(self, uid: str) -> None:
        mine = self._pods.setdefault(uid, _Pod())
        if mine.removal is None:
            for start in mine.starts.values():
                start.stop(0)
            under_way = [*mine.start_tasks.values(), *([mine.sandbox_task] if mine.sandbox_task else [])]
            mine.removal = self._spawn(self._remove_pod(uid, mine, under_way))

    def update_resources(self, uid: str, container: str, resources: ContainerResources) -> None:
        running = self._watcher.get(uid, container)
        if running is None:
            self._tell(ResourcesRefused(uid, container, f"container {container!r} does not run"))
            return
        try:
            linux = changed(resources)
        except CPUSetError as error:
            self._tell(ResourcesRefused(uid, container, f"cpuset {resources.cpuset!r}: {error}"))
            return
        mine = self._pods.setdefault(uid, _Pod())
        self._spawn(self._update(mine, running, resources, linux))

    # -- answers

    async def exec(self, request: ExecRequest) -> StreamedExec:
        container_id = self._running(request).id
        return await execute(
            self._call, container_id, request, lambda: container_id in self._watcher, self._clock
        )

    @own_task
    async def exec_sync(self, request: ExecRequest, timeout: float) -> ExecResult:
        running = self._running(request)
        try:
            # The runtime counts whole seconds only; leaving the call ends the command, too.
            async with self._clock.timeout(timeout):
                answer = await self._call(
                    "ExecSync",
                    seconds=timeout + _GREETING_SECONDS,
                    container_id=running.id,
                    cmd=request.command,
                    timeout=math.ceil(timeout),
                )
        except CriError as error:
            if error.is_late:
                raise TimeoutError(f"command took longer than {timeout:g}s") from None
            raise
        return ExecResult(answer.exit_code, (answer.stdout + answer.stderr)[:_MOST_OUTPUT])

    def forward_address(self, pod: Pod) -> str:
        """A pod on the host's network is this machine."""
        status = pod.status
        return status.pod_ip if status.pod_ip and status.pod_ip != status.host_ip else _LOCALHOST

    def has_image(self, image: str) -> bool:
        return self._images.has(image)

    def images(self) -> Mapping[str, int]:
        return self._images.sizes()

    # -- what takes time

    async def _start_sandbox(self, pod: Pod, logs: str, removal: asyncio.Task[None] | None) -> None:
        uid = pod.metadata.uid
        if removal is not None:
            await asyncio.wait((removal,))
        mine = self._pods.setdefault(uid, _Pod())
        mine.sandbox_task = asyncio.current_task()
        try:
            mine.sandbox = await self._sandboxes.run(pod, logs)
        except WorldError as error:
            self._tell(SandboxFailed(uid, str(error)))
            return
        self._tell(SandboxStarted(uid, mine.sandbox.id, mine.sandbox.ips))

    async def _start_container(
        self, mine: _Pod, sandbox: Sandbox, request: ContainerRequest, start: Start
    ) -> None:
        uid, name = request.pod.metadata.uid, request.container.name
        target = self._watcher.get(uid, target_of(request.pod, name))
        try:
            container_id, image_id = await self._starter.run(
                request,
                start,
                sandbox.id,
                is_on_host_network=sandbox.is_on_host_network,
                target_id=target.id if target is not None else "",
            )
            answer = await self._status_of(container_id, request, image_id)
            status = answer.status
        except WorldError as error:
            del mine.starts[name]
            reason = error.reason if isinstance(error, NotStarted) else _NOT_CREATED
            self._tell(ContainerFailed(uid, name, reason, str(error)))
            return
        del mine.starts[name]
        self._watcher.add(Running(uid, name, container_id, status.started_at))
        self._tell(
            ContainerStarted(
                uid,
                name,
                container_id,
                image_of(status),
                status.image_ref,
                status.started_at,
                request.attempt,
                in_force(answer),
            )
        )
        if status.state == EXITED:
            self._watcher.ended(exited(status))
        elif start.grace_seconds is not None:
            self.stop_container(uid, name, start.grace_seconds)

    async def _status_of(self, container_id: str, request: ContainerRequest, image_id: str) -> Any:
        """It has started: whatever the runtime says about it now, nobody must think otherwise."""
        try:
            return await self._call("ContainerStatus", container_id=container_id, verbose=True)
        except CriError as error:
            LOG.warning("container %s: %s", container_id, error)
            status = message("ContainerStatus")(
                image={"image": request.container.image}, image_ref=image_id, started_at=self._clock.now_ns()
            )
            return message("ContainerStatusResponse")(status=status)

    async def _stop_container(self, mine: _Pod, container_id: str, kill_ns: int) -> None:
        await self._stopper.stop(container_id, kill_ns)
        mine.stops.pop(container_id, None)

    async def _remove_pod(self, uid: str, mine: _Pod, under_way: list[asyncio.Task[None]]) -> None:
        if under_way:
            await asyncio.wait(under_way)
        await self._stopper.remove_pod(uid)
        if self._pods.get(uid) is mine:
            del self._pods[uid]
        self._tell(PodGone(uid))

    async def _memory_refusal(self, running: Running, wanted: ContainerResources) -> str:
        """A runtime may kill a container that uses more than its new limit: ask it how much that is."""
        if not wanted.memory_bytes:
            return ""
        memory = (await self._call("ContainerStats", container_id=running.id)).stats.memory
        return memory_refusal(
            running.name, wanted, memory.usage_bytes.value or memory.working_set_bytes.value
        )

    async def _update(self, mine: _Pod, running: Running, wanted: ContainerResources, linux: Any) -> None:
        """Commands of one pod are carried out in the order they came; what is in force is read back."""
        async with mine.updating:
            try:
                refusal = await self._memory_refusal(running, wanted)
                if refusal:
                    self._tell(ResourcesRefused(running.uid, running.name, refusal))
                    return
                await self._call("UpdateContainerResources", container_id=running.id, linux=linux)
                answer = await self._call("ContainerStatus", container_id=running.id, verbose=True)
            except CriError as error:
                self._tell(ResourcesRefused(running.uid, running.name, str(error)))
                return
            resources = in_force(answer) or ContainerResources()
            if wanted.cpuset == "" and resources.cpuset == all_cpus():
                resources = replace(resources, cpuset="")
            self._tell(ResourcesApplied(running.uid, running.name, running.id, resources))

    async def _watch_images(self) -> None:
        while True:
            await self._clock.sleep(_IMAGES_SECONDS)
            try:
                await self._images.refresh()
            except CriError as error:
                LOG.info("images: %s", error)

    # -- inside

    def _running(self, request: ExecRequest) -> Running:
        running = self._watcher.get(request.uid, request.container)
        if running is None:
            raise WorldError(f"container {request.container!r} does not run")
        return running

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # A bug, in the care of one container: it must be seen, and must not stop the others.
            LOG.error("a task of the container runtime failed", exc_info=error)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    def _tell(self, event: RuntimeEvent) -> None:
        self._listener(event)


def abilities_of(features: Any) -> Mapping[str, str]:
    """What the runtime says of itself, as far as this agent can make use of it.

    User namespaces on the node's network are not among it, whatever the runtime can do: the agent sets up none.
    """
    return able(MOUNT_OPTIONS) if features.mount_options else able()


def _nobody(event: RuntimeEvent) -> None:
    """Before an agent is there, and after."""
