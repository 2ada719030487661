"""Pod workers: carry out what the lives of pods ask for, and tell them what came of it.

Every pod has a pure life (`pods.lifecycle`). The pod manager hands in what happens to a pod (`act`), the runtime its
events (`on_runtime_event`); commands go to the runtime and to the node's services. Nothing here waits: a command that
takes time goes on as a task and comes back with what happened; one that does not (simulated nodes) is over at once.

What must stay true: whatever happens to a pod while a command is carried out is handled after it, in order; a pod is
forgotten only when both the node and the API have nothing of it left.
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.kubelet.agent import ManagedPod
from nodeward.kubelet.config_error import CONFIG_ERROR, NotConfigured
from nodeward.kubelet.container_request import container_of, container_request
from nodeward.kubelet.dra.claim_reading import DRAError
from nodeward.kubelet.kubelet_events import KubeletEvents
from nodeward.kubelet.pods.commands import (
    Command,
    DeleteFromApi,
    RecordEvent,
    RemoveContainer,
    RemovePod,
    RunHook,
    StartContainer,
    StartSandbox,
    StopContainer,
    UnprepareResources,
    UpdateResources,
)
from nodeward.kubelet.prober_manager import Happening, ProberManager
from nodeward.kubelet.resize_manager import POD_TERMINATED, PODS_REMOVED, ResizeManager
from nodeward.kubelet.resize_metrics import ResizeMetrics
from nodeward.kubelet.runtime.interface import PodGone, Runtime, RuntimeEvent
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import EagerTasks

LOG: Final = logging.getLogger(__name__)


class PodWorkers:
    """The workers of all pods of one host.

    `changed` is called with a pod whose status may have changed, `forgotten` with one of which nothing is left.
    """

    def __init__(
        self,
        clock: Clock,
        runtime: Runtime,
        wheel: TimerWheel,
        events: KubeletEvents,
        resize_metrics: ResizeMetrics,
        changed: Callable[[str], None],
        forgotten: Callable[[ManagedPod], None],
    ) -> None:
        self._clock = clock
        self._runtime = runtime
        self._wheel = wheel
        self._events = events
        self._changed = changed
        self._forgotten = forgotten
        #: by uid
        self.pods: Final[dict[str, ManagedPod]] = {}
        self.tasks: Final = EagerTasks(
            lambda error: LOG.warning("%s", error), (ApiError, WorldError, OSError)
        )
        self._probers = ProberManager(clock, wheel, events, self.tasks, self.act, self.current)
        self.resizes: Final = ResizeManager(clock, wheel, resize_metrics, self.act, self.refresh_volumes)
        #: what happened while a command was carried out
        self._waiting: deque[RuntimeEvent | tuple[ManagedPod, Happening]] = deque()
        self._is_busy = False
        self._is_stopped = False

    def add(self, managed: ManagedPod) -> None:
        """Work for a pod from now on."""
        self.pods[managed.uid] = managed.agent.pods[managed.uid] = managed

    def _has(self, managed: ManagedPod) -> bool:
        return self.pods.get(managed.uid) is managed

    def current(self, managed: ManagedPod) -> Pod:
        """The pod with the status as its node knows it, which the API may not know yet."""
        return msgspec.structs.replace(managed.life.pod, status=managed.life.status(self._clock.now_ns()))

    # -- what happens

    def on_runtime_event(self, event: RuntimeEvent) -> None:
        """Handle an event of the runtime, now or after the command that is being carried out."""
        if self._is_stopped:
            return
        self._waiting.append(event)
        if not self._is_busy:
            self._drain()

    def act(self, managed: ManagedPod, happening: Happening) -> None:
        """Something happens to a pod: do what its life asks for. What comes too late is dropped."""
        if self._is_busy:
            self._waiting.append((managed, happening))
            return
        if not self._has(managed):
            return
        self._is_busy = True
        now_ns = self._clock.now_ns()
        try:
            for command in happening(now_ns):
                self._do(managed, command)
            self._settle(managed, now_ns)
        finally:
            self._is_busy = False
        if self._waiting:
            self._drain()

    def _drain(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            if isinstance(event, tuple):
                self.act(*event)
                continue
            managed = self.pods.get(event.uid)
            if managed is None:
                continue
            self.act(managed, functools.partial(managed.life.happened, event))
            # Of a pod that is forgotten by now everything goes anyway.
            if isinstance(event, PodGone) and managed.uid in self.pods:
                self.tasks.start(managed.agent.services.volumes.unmount(managed.uid))

    # -- commands

    def _do(self, managed: ManagedPod, command: Command) -> None:
        pod, runtime = managed.life.pod, self._runtime
        match command:
            case StartSandbox():
                self.tasks.start(self._start_sandbox(managed))
            case UnprepareResources():
                self.tasks.start(self._unprepare(managed))
            case StartContainer(name, attempt):
                self.tasks.start(self._start_container(managed, name, attempt))
            case StopContainer(name, grace):
                runtime.stop_container(pod.metadata.uid, name, grace)
            case RemoveContainer(id_):
                runtime.remove_container(pod.metadata.uid, id_)
            case RemovePod():
                runtime.remove_pod(pod.metadata.uid)
            case RunHook(name, kind, seconds):
                self.tasks.start(self._run_hook(managed, name, kind, seconds))
            case UpdateResources(name, resources):
                uid = pod.metadata.uid
                if managed.agent.container_manager.has_exclusive_cpus(uid, name):
                    resources = replace(resources, cpu_quota_us=None)
                runtime.update_resources(uid, name, resources)
            case RecordEvent():
                self._events.about_pod(managed.agent, pod, command)
            case DeleteFromApi():
                managed.is_to_be_deleted = True

    def _settle(self, managed: ManagedPod, now_ns: int) -> None:
        """After a pod's commands: free its resources, forget it, or set its timers and probes."""
        life, agent = managed.life, managed.agent
        uid = life.pod.metadata.uid
        is_counted = uid in agent.allocation.capacity
        if agent.pending_resizes and life.is_terminating:
            self.resizes.forget(managed, now_ns)
        if life.is_finished:
            agent.allocation.release(uid)
            if is_counted:
                self.resizes.on_released(agent, POD_TERMINATED)
        if life.is_gone:
            if self._has(managed):
                del self.pods[uid]
            agent.pods.pop(uid, None)
            agent.allocation.forget(uid)
            if is_counted and not life.is_finished:
                self.resizes.on_released(agent, PODS_REMOVED)
            self.tasks.start(agent.services.volumes.forget(uid))
            self._forgotten(managed)
            return
        if life.resize is not None:
            for command in self.resizes.settle(managed, now_ns):
                self._do(managed, command)
        self._changed(uid)
        wake_ns = life.next_deadline_ns() or 0
        if wake_ns and wake_ns != managed.wake_ns:
            at_ns = self._clock.monotonic_ns() + max(wake_ns - now_ns, 0)
            self._wheel.at(at_ns, lambda: self._wake(managed, wake_ns))
        managed.wake_ns = wake_ns
        if life.probes() is not managed.plans:
            self._probers.plan(managed, now_ns)

    def _wake(self, managed: ManagedPod, wake_ns: int) -> None:
        if managed.wake_ns == wake_ns and self._has(managed):
            managed.wake_ns = 0
            self.act(managed, managed.life.tick)

    # -- what may take time

    async def _start_sandbox(self, managed: ManagedPod) -> None:
        pod = managed.life.pod
        try:
            logs = await managed.agent.services.volumes.mount(pod)
        except WorldError as error:
            text = str(error)
            self._events.about_pod(managed.agent, pod, RecordEvent("Warning", "FailedMount", text))
            self.act(managed, lambda now: managed.life.volumes_failed(text, now))
            return
        if pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None:
            if not self._has(managed) or managed.life.is_terminating:
                return
            try:
                await managed.agent.dra.prepare(pod)
            except DRAError as error:
                self._prepare_failed(managed, pod, error)
                return
        if self._has(managed) and not managed.life.is_terminating:
            self._runtime.start_sandbox(pod, logs)

    def _prepare_failed(self, managed: ManagedPod, pod: Pod, error: DRAError) -> None:
        text = f"Failed to prepare dynamic resources: {error}"
        self._events.about_pod(
            managed.agent, pod, RecordEvent("Warning", "FailedPrepareDynamicResources", text)
        )
        retry_ns = managed.agent.dra.retry_ns(managed.uid)
        self.act(managed, lambda now: managed.life.prepare_failed(retry_ns, now))

    async def _unprepare(self, managed: ManagedPod) -> None:
        dra = managed.agent.dra
        try:
            await dra.unprepare(managed.uid)
        except DRAError as error:
            meta = managed.life.pod.metadata
            LOG.warning("pod %s/%s does not end: %s", meta.namespace, meta.name, error)
            self.act(managed, lambda now: managed.life.unprepare_failed(dra.retry_ns(managed.uid), now))
        else:
            self.act(managed, managed.life.unprepared)

    async def _start_container(self, managed: ManagedPod, name: str, attempt: int) -> None:
        life, services, cpus = managed.life, managed.agent.services, managed.agent.container_manager
        try:
            cdi_ids = managed.agent.dra.cdi_ids(life.pod, container_of(life.pod, name))
            request = await container_request(
                services.volumes,
                services.environment,
                life.pod if life.resize is None else life.allocated_pod(),
                lambda: self.current(managed),
                name,
                attempt,
                life.allocated(name),
                cpus.cpuset(managed.uid, name),
                has_cpu_quota=not cpus.has_exclusive_cpus(managed.uid, name),
                cdi_ids=cdi_ids,
            )
        except WorldError as error:
            reason = error.reason if isinstance(error, NotConfigured) else CONFIG_ERROR
            text = str(error)
            self.act(managed, lambda now: life.config_failed(name, reason, text, now))
            return
        if life.is_terminating:
            # The pod began to end while this was worked out: it need not wait for a start that nobody wants.
            self.act(managed, lambda now: life.config_failed(name, "", "", now))
        elif self._has(managed):
            self._runtime.start_container(request)

    async def _run_hook(self, managed: ManagedPod, name: str, kind: str, seconds: float) -> None:
        pod = self.current(managed)
        ok, text = await managed.agent.services.hooks.run(pod, container_of(pod, name), kind, seconds)
        self.act(managed, lambda now: managed.life.hook_done(name, kind, ok, text, now))

    # -- volumes that follow the API

    def refresh_volumes(self, managed: ManagedPod, pod: Pod) -> None:
        """Write files of a pod anew, if it has any that follow the API."""
        volumes = managed.agent.services.volumes
        if volumes.needs_refresh(pod):
            self.tasks.start(volumes.refresh(pod))

    def refresh_own_fields(self, managed: ManagedPod, written: Callable[[str], None]) -> None:
        """Write files that show a pod's own fields at once, then call `written` with "" or what went wrong."""
        self.tasks.start(self._refresh_own_fields(managed, written))

    async def _refresh_own_fields(self, managed: ManagedPod, written: Callable[[str], None]) -> None:
        trouble = ""
        try:
            await managed.agent.services.volumes.refresh_own_fields(self.current(managed))
        except (WorldError, OSError) as error:
            trouble = str(error) or repr(error)
        written(trouble)

    def keep_volumes_fresh(self, managed: ManagedPod) -> None:
        """Refresh a pod's volumes again and again, as long as the pod is there."""
        if not managed.agent.services.volumes.needs_refresh(managed.life.pod):
            return

        def due() -> None:
            if self._has(managed):
                if not managed.life.is_finished:
                    self.refresh_volumes(managed, self.current(managed))
                self.keep_volumes_fresh(managed)

        wait_ns = managed.agent.specification.settings.sync_ns
        self._wheel.at(self._clock.monotonic_ns() + wait_ns, due)

    async def stop(self) -> None:
        """Abandon what is under way."""
        self._is_stopped = True
        await self.tasks.stop()
