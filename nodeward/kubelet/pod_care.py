"""Taking care of pods: admission, the commands their lives ask for, probes, and the status told to the API.

Every pod has a pure life (`pods.lifecycle`); here its commands are carried out, by the runtime and by the node's
services (volumes, environments, hooks, probes). Nothing here waits: a command that takes time goes on as a task and
comes back with what happened; one that does not (simulated nodes) is over at once.

What must stay true: whatever happens to a pod while a command is carried out is handled after it, in order; a pod is
forgotten only when both the node and the API have nothing of it left.
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.kubelet.agent import Agent, Held
from nodeward.kubelet.config_error import CONFIG_ERROR, NotConfigured
from nodeward.kubelet.container_request import container_of, container_request
from nodeward.kubelet.metrics import KubeletMetrics
from nodeward.kubelet.mirror_pods import MirrorPods
from nodeward.kubelet.node.admission import Refusal, admit, is_static, warn_of_update
from nodeward.kubelet.node.room import Room
from nodeward.kubelet.node.specification import bare_node
from nodeward.kubelet.pods.commands import (
    Command,
    DeleteFromApi,
    RemoveContainer,
    RemovePod,
    RunHook,
    StartContainer,
    StartSandbox,
    StopContainer,
    Tell,
    UpdateResources,
)
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.probing import ProbeWorker, unhealthy
from nodeward.kubelet.probing.answer import Answer
from nodeward.kubelet.runtime.interface import (
    FoundPod,
    PodGone,
    Runtime,
    RuntimeEvent,
)
from nodeward.kubelet.status_patch import status_patch, version_of
from nodeward.kubelet.telling import Teller
from nodeward.kubelet.wheel import Wheel
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import EagerTasks
from nodeward.machinery.workqueue import WorkQueue

LOG: Final = logging.getLogger(__name__)

_TERMINAL: Final = ("Succeeded", "Failed")
#: Tells a pod's life what happened at a time, and gives what is to be done.
_Happen: TypeAlias = Callable[[int], list[Command]]


class PodCare:
    """The pods of all agents of one host."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        runtime: Runtime,
        wheel: Wheel,
        teller: Teller,
        metrics: KubeletMetrics,
    ) -> None:
        self._client = client
        self._clock = clock
        self._runtime = runtime
        self._wheel = wheel
        self._teller = teller
        self._metrics = metrics
        self._kind = client.kind_of(Pod)
        #: uids of pods whose status may have to be told
        self.queue: Final[WorkQueue[str]] = WorkQueue(clock, name="pod_status")
        self._held: dict[str, Held] = {}
        self._mirrors = MirrorPods(client, clock)
        #: what ran before this host started, until its pod is seen
        self.found: Final[dict[str, FoundPod]] = {}
        #: what happened while a command was carried out
        self._events: deque[RuntimeEvent | tuple[Held, _Happen]] = deque()
        self._is_busy = False
        self._tasks = EagerTasks(lambda error: LOG.warning("%s", error), (ApiError, WorldError, OSError))
        self._is_stopped = False

    # -- questions

    def __len__(self) -> int:
        return len(self._held)

    def get(self, uid: str) -> Held | None:
        return self._held.get(uid)

    # -- from the API

    def see(self, agent: Agent, pod: Pod) -> None:
        """A pod of a registered node, new or in a newer version."""
        held = self._held.get(pod.metadata.uid)
        if held is None or held.agent is not agent:
            self._take(agent, pod)
            return
        if held.sent is not None and int(pod.metadata.resource_version or "0") >= held.sent_version:
            held.sent = None
        before = held.life.pod
        if before.metadata.generation != pod.metadata.generation:
            text = warn_of_update(before, pod, agent.features)
            if text:
                self._teller.about_pod(agent, pod, Tell("Warning", "FailedNodeDeclaredFeaturesCheck", text))
        self._act(held, lambda now: held.life.update(pod, now))
        if _shows_other_fields(before, pod) and agent.services.volumes.needs_refresh(pod):
            self._tasks.start(agent.services.volumes.refresh(pod))

    def lose(self, uid: str) -> None:
        """The API knows the pod no more."""
        held = self._held.get(uid)
        if held is not None:
            self._act(held, held.life.gone)
        else:
            # No kubelet took care of it, or the one that did is stopped: what runs of it is nobody's.
            self._runtime.remove_pod(uid)

    # -- static pods, and what the API shows of them

    def see_static(self, agent: Agent, pod: Pod) -> None:
        """A pod from a file of the node, which need not be registered."""
        if pod.metadata.uid not in self._held:
            self._take(agent, pod)

    def see_mirror(self, pod: Pod) -> None:
        """The API's copy of a static pod."""
        held = self._mirrors.saw(pod, self._held)
        if held is None:
            self._tasks.start(self._mirrors.delete(pod))
            return
        if held.sent is not None and int(pod.metadata.resource_version or "0") >= held.sent_version:
            held.sent = None
        self.queue.add(held.uid)

    def lose_mirror(self, pod: Pod) -> None:
        """The copy is gone; if what it showed is not, there will be another."""
        held = self._mirrors.lost(pod, self._held)
        if held is not None:
            held.sent = None
            self.queue.add(held.uid)

    # -- admission

    def _admit(self, agent: Agent, pod: Pod) -> Refusal | None:
        """Whether the node takes a pod. One it took before has its room, whoever else was looked at meanwhile."""
        node = agent.node or bare_node(agent.specification)
        admitted = agent.services.admitted
        room = Room() if pod.metadata.uid in admitted else agent.room
        refusal = admit(pod, node, room, agent.specification.settings.gates, agent.features)
        if refusal is None:
            admitted.add(pod)
        else:
            admitted.remove(pod.metadata.uid)
        return refusal

    def _take(self, agent: Agent, pod: Pod) -> None:
        uid = pod.metadata.uid
        found = self.found.pop(uid, None)
        if found is None and pod.status.phase:
            found = self._runtime.adopt(pod)
        is_over = pod.status.phase in _TERMINAL
        life = PodLifecycle(pod, self._clock.now_ns(), agent.rules, found)
        held = self._held[uid] = agent.held[uid] = Held(agent, life)
        if not is_over and pod.metadata.deletion_timestamp is None:
            refusal = self._admit(agent, pod)
            if refusal is not None:
                self._metrics.rejected(refusal.reason)
                if found is not None:
                    agent.room.add(pod)  # until it has stopped, it has its place
                self._act(held, lambda now: life.reject(refusal.reason, refusal.message, now))
                return
            agent.room.add(pod)
            if found is None:
                self._metrics.started_pods.inc()
        elif found is not None and not is_over:
            agent.room.add(pod)
        self._act(held, life.start)
        if agent.services.volumes.needs_refresh(pod):
            self._refresh_later(held)

    def drop_strangers(
        self, agent: Agent, own: Collection[str], is_known: Callable[[FoundPod], bool]
    ) -> None:
        """Remove what is left of pods that went from the API while no kubelet was there; `own` are the node's pods."""
        for uid in [uid for uid, found in self.found.items() if not is_known(found)]:
            self._runtime.remove_pod(uid)
        self._tasks.start(agent.services.keep_only(own))

    def forget_agent(self, agent: Agent) -> None:
        """The kubelet is gone, its containers are not: they are found again by the next one."""
        for uid, held in agent.held.items():
            if self._held.get(uid) is held:
                del self._held[uid]
        agent.held.clear()

    # -- from the runtime

    def told(self, event: RuntimeEvent) -> None:
        if self._is_stopped:
            return
        self._events.append(event)
        if not self._is_busy:
            self._drain()

    def _drain(self) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, tuple):
                self._act(*event)
                continue
            held = self._held.get(event.uid)
            if held is None:
                if isinstance(event, PodGone):
                    self.found.pop(event.uid, None)
                continue
            self._act(held, functools.partial(held.life.happened, event))
            # Of one that is forgotten by now everything goes anyway.
            if isinstance(event, PodGone) and held.uid in self._held:
                self._tasks.start(held.agent.services.volumes.unmount(held.uid))

    # -- commands

    def _act(self, held: Held, happen: _Happen) -> None:
        """Something happens to a pod: do what its life asks for, and settle. What comes too late is nobody's."""
        if self._is_busy:
            self._events.append((held, happen))
            return
        if self._held.get(held.uid) is not held:
            return
        self._is_busy = True
        now_ns = self._clock.now_ns()
        try:
            for command in happen(now_ns):
                self._do(held, command)
            self._settle(held, now_ns)
        finally:
            self._is_busy = False
        if self._events:
            self._drain()

    def _do(self, held: Held, command: Command) -> None:
        pod, runtime = held.life.pod, self._runtime
        match command:
            case StartSandbox():
                self._tasks.start(self._start_sandbox(held))
            case StartContainer(name, attempt):
                self._tasks.start(self._start_container(held, name, attempt))
            case StopContainer(name, grace):
                runtime.stop_container(pod.metadata.uid, name, grace)
            case RemoveContainer(id_):
                runtime.remove_container(pod.metadata.uid, id_)
            case RemovePod():
                runtime.remove_pod(pod.metadata.uid)
            case RunHook(name, kind, seconds):
                self._tasks.start(self._run_hook(held, name, kind, seconds))
            case UpdateResources(name, resources):
                runtime.update_resources(pod.metadata.uid, name, resources)
            case Tell():
                self._teller.about_pod(held.agent, pod, command)
            case DeleteFromApi():
                held.is_to_be_deleted = True

    def _settle(self, held: Held, now_ns: int) -> None:
        life, agent = held.life, held.agent
        uid = life.pod.metadata.uid
        if life.is_finished:
            agent.room.remove(uid)
            agent.services.admitted.remove(uid)
        if life.is_gone:
            if self._held.get(uid) is held:
                del self._held[uid]
            agent.held.pop(uid, None)
            agent.room.remove(uid)
            self._tasks.start(agent.services.volumes.forget(uid))
            mirror = self._mirrors.forget(uid)
            if mirror is not None:
                self._tasks.start(self._mirrors.delete(mirror))
            return
        self.queue.add(uid)
        wake_ns = life.next_deadline_ns() or 0
        if wake_ns and wake_ns != held.wake_ns:
            self._wheel.at(
                self._clock.monotonic_ns() + max(wake_ns - now_ns, 0), lambda: self._wake(held, wake_ns)
            )
        held.wake_ns = wake_ns
        plans = life.probes()
        if plans is not held.plans:
            self._plan_probes(held, now_ns)

    def _wake(self, held: Held, wake_ns: int) -> None:
        if held.wake_ns == wake_ns and self._held.get(held.uid) is held:
            held.wake_ns = 0
            self._act(held, held.life.tick)

    # -- probes

    def _plan_probes(self, held: Held, now_ns: int) -> None:
        plans = held.plans = tuple(held.life.probes())
        workers = []
        for plan in plans:
            worker = next((each for each in held.workers if each.plan == plan), None)
            if worker is None:
                worker = ProbeWorker(plan, now_ns)
                self._schedule_probe(held, worker, now_ns)
            workers.append(worker)
        held.workers = tuple(workers)

    def _schedule_probe(self, held: Held, worker: ProbeWorker, now_ns: int) -> None:
        wait_ns = max(worker.next_ns - now_ns, 0)
        self._wheel.at(self._clock.monotonic_ns() + wait_ns, lambda: self._probe(held, worker))

    def _probe(self, held: Held, worker: ProbeWorker) -> None:
        if worker not in held.workers or self._held.get(held.uid) is not held or worker.is_on_hold:
            return
        worker.began(self._clock.now_ns())
        self._tasks.start(self._ask_probe(held, worker))

    async def _ask_probe(self, held: Held, worker: ProbeWorker) -> None:
        prober = held.agent.services.prober
        try:
            answer = await prober.probe(held.life.pod, lambda: self._current(held), worker.plan)
        except WorldError as error:
            answer = Answer(None, str(error))
        self._judge(held, worker, answer.ok, answer.text)

    def _judge(self, held: Held, worker: ProbeWorker, ok: bool | None, text: str) -> None:
        now_ns = self._clock.now_ns()
        verdict = worker.result(ok, now_ns)
        if not worker.is_on_hold:
            self._schedule_probe(held, worker, now_ns)
        if verdict is None and ok:
            return
        plan = worker.plan
        if verdict is not None or ok is None:
            self._act(held, lambda now: held.life.probed(plan.container, plan.kind, ok, text, now))
        else:
            self._teller.about_pod(held.agent, held.life.pod, unhealthy(plan.container, plan.kind, text))

    # -- what may take time

    async def _start_sandbox(self, held: Held) -> None:
        pod = held.life.pod
        try:
            logs = await held.agent.services.volumes.mount(pod)
        except WorldError as error:
            text = str(error)
            self._teller.about_pod(held.agent, pod, Tell("Warning", "FailedMount", text))
            self._act(held, lambda now: held.life.volumes_failed(text, now))
            return
        if self._held.get(held.uid) is held and not held.life.is_terminating:
            self._runtime.start_sandbox(pod, logs)

    async def _start_container(self, held: Held, name: str, attempt: int) -> None:
        pod, services = held.life.pod, held.agent.services
        try:
            request = await container_request(
                services.volumes,
                services.environment,
                pod,
                lambda: self._current(held),
                name,
                attempt,
                held.life.allocated(name),
            )
        except WorldError as error:
            reason = error.reason if isinstance(error, NotConfigured) else CONFIG_ERROR
            text = str(error)
            self._act(held, lambda now: held.life.config_failed(name, reason, text, now))
            return
        if held.life.is_terminating:
            # It was to end while this was worked out: it need not wait for a start that nobody wants.
            self._act(held, lambda now: held.life.config_failed(name, "", "", now))
        elif self._held.get(held.uid) is held:
            self._runtime.start_container(request)

    async def _run_hook(self, held: Held, name: str, kind: str, seconds: float) -> None:
        pod = self._current(held)
        ok, text = await held.agent.services.hooks.run(pod, container_of(pod, name), kind, seconds)
        self._act(held, lambda now: held.life.hook_done(name, kind, ok, text, now))

    def _refresh_later(self, held: Held) -> None:
        """Volumes follow the API as long as the pod is there."""
        wait_ns = held.agent.specification.settings.sync_ns

        def due() -> None:
            if self._held.get(held.uid) is held:
                if not held.life.is_finished:
                    self._tasks.start(held.agent.services.volumes.refresh(self._current(held)))
                self._refresh_later(held)

        self._wheel.at(self._clock.monotonic_ns() + wait_ns, due)

    def current(self, uid: str) -> Pod | None:
        """A pod that is taken care of, with the status as its node knows it."""
        held = self._held.get(uid)
        return self._current(held) if held is not None else None

    def _current(self, held: Held) -> Pod:
        """The pod with the status as this node knows it, which the API may not know yet."""
        return msgspec.structs.replace(held.life.pod, status=held.life.status(self._clock.now_ns()))

    async def stop(self) -> None:
        """Abandon what is under way."""
        self._is_stopped = True
        self.queue.shut_down()
        await self._tasks.stop()

    # -- to the API

    async def tell_api(self, uid: str) -> None:
        """Write the status if it differs; then delete the object if that is due."""
        held = self._held.get(uid)
        if held is None or held.agent.is_cut_off:
            return
        life, pod = held.life, held.life.pod
        if is_static(pod):
            mirror = await self._mirrors.of(held)
            if mirror is None:
                return
            pod = mirror
        status = life.status(self._clock.now_ns())
        if status is not held.sent:
            patch = status_patch(pod, held.sent or pod.status, status)
            if patch is not None:
                try:
                    answer: bytes = await self._client.patch(
                        bytes,
                        pod.metadata.name,
                        patch,
                        namespace=pod.metadata.namespace,
                        kind=self._kind,
                        subresource="status",
                    )
                except ApiError as error:
                    if error.reason in ("NotFound", "Conflict"):
                        return  # it is gone, or another one has its name: the watch tells
                    if error.reason != "Invalid" or not held.is_to_be_deleted:
                        raise
                    # Nobody needs to know any more, and it would be refused for ever.
                    LOG.warning("pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
                else:
                    held.sent = status
                    held.sent_version = version_of(answer)
        if held.is_to_be_deleted:
            await self._delete(held)

    async def _delete(self, held: Held) -> None:
        meta = held.life.pod.metadata
        try:
            await self._client.delete(self._kind, meta.name, meta.namespace, grace_period=0, uid=meta.uid)
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise
        held.is_to_be_deleted = False


def _shows_other_fields(before: Pod, after: Pod) -> bool:
    """Whether files that show the pod's own fields may have to be written anew."""
    old, new = before.metadata, after.metadata
    return old.generation != new.generation or old.labels != new.labels or old.annotations != new.annotations
