"""Kubelets in one process: one real node, or thousands of simulated ones, that share informers, queues and timers.

`start` connects the runtime and fills the informers; `add_node` starts a kubelet, `stop_node` ends one (its pods go on
running, its object stays), `restart_node` is both, with other versions, gates or settings: an upgrade. `cut_off` and
`reconnect` take a node's network away and give it back.

What must stay true: nothing is written for a node that was stopped or cut off; a failure costs one key of one queue a
delay, never a worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.invariant import InvariantBroken
from nodeward.features.declared import FRAMEWORK, Framework
from nodeward.kubelet.agent import Agent, ManagedPod
from nodeward.kubelet.agent_pods import AgentPods
from nodeward.kubelet.cpu.policy_setup import make_container_manager
from nodeward.kubelet.cpu.static_cpus import ManagerParts
from nodeward.kubelet.dra.dra_manager import DRAManager, DRAParts
from nodeward.kubelet.kubelet_events import KubeletEvents
from nodeward.kubelet.metrics import KubeletMetrics
from nodeward.kubelet.mirror_pods import mirrored_uid
from nodeward.kubelet.node.admission import is_static
from nodeward.kubelet.node.features import DeclaredFeatures, discover
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.node_manager import NodeManager
from nodeward.kubelet.node_services import Machines, NodeServices
from nodeward.kubelet.pod_manager import PodManager
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.pods.state import SOURCE_ANNOTATION
from nodeward.kubelet.runtime.interface import FoundPod, Runtime
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.informer import Informer
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import EventRecorder
from nodeward.machinery.workqueue import WorkQueue

LOG: Final = logging.getLogger(__name__)

#: Writes under way at a time, by what they are.
_POD_WORKERS: Final = 64
_NODE_WORKERS: Final = 32
_LEASE_WORKERS: Final = 16
#: From this many nodes on, only what goes wrong is told as an event.
_QUIET_FROM: Final = 50
_BY_NODE: Final = "node"
#: Models whose features are remembered: pools are made of few, and every upgrade is another.
_MODELS_KEPT: Final = 256


class Host:
    """`only_node`: the one node this process may ask about, as a kubelet with a node's own rights; "": any.

    `machines` gives each node what it has beside the runtime.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        chance: Chance,
        runtime: Runtime,
        machines: Machines,
        *,
        only_node: str = "",
        expected_nodes: int = 1,
        metrics: Metrics | None = None,
        framework: Framework = FRAMEWORK,
    ) -> None:
        """`framework` knows the features the nodes may declare and the pods may need (KEP-5328)."""
        self._clock = clock
        self._framework = framework
        self._chance = chance
        self.runtime: Final = runtime
        self.machines: Final = machines
        self.metrics: Final = KubeletMetrics(metrics or Metrics())
        self._wheel = TimerWheel(clock)
        self._recorder = EventRecorder(client, chance.child("events"), component="kubelet")
        events = KubeletEvents(self._recorder, record_normal=expected_nodes < _QUIET_FROM)
        self.pods: Final = PodManager(client, clock, runtime, self._wheel, events, self.metrics)
        machines.connect(self.pods.current, self.pods.assigned_cpus)
        self.nodes: Final = NodeManager(
            client, clock, chance.child("nodes"), self._wheel, events, self.metrics, self._registered
        )
        pods_of = f"spec.nodeName={only_node}" if only_node else "spec.nodeName!="
        self._pod_informer = Informer(client, Pod, chance.child("pods"), field_selector=pods_of)
        self._node_informer = Informer(
            client,
            Node,
            chance.child("node watch"),
            field_selector=f"metadata.name={only_node}" if only_node else "",
        )
        self._pod_informer.add_index(_BY_NODE, lambda pod: (pod.spec.node_name,))
        self._pod_informer.add_handler(
            on_add=self._pod_seen, on_update=self._pod_changed, on_delete=self._pod_gone
        )
        self._node_informer.add_handler(
            on_add=self.nodes.on_node_changed,
            on_update=lambda _, new: self.nodes.on_node_changed(new),
            on_delete=lambda node: self.nodes.on_node_deleted(node.metadata.name),
        )
        self._parts = ManagerParts(clock, self._wheel, runtime, self.metrics.cpus)
        self._dra_parts = DRAParts(
            client, clock, self._wheel, self.metrics.dra, self.pods.tasks, self.pods.retry_start
        )
        self._features: dict[int, tuple[NodeModel, DeclaredFeatures]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()

    # -- life

    async def start(self) -> None:
        """Connect the runtime, hear of all pods and nodes; then nodes can be added."""
        await self.begin()
        await self.wait_heard()

    async def begin(self) -> None:
        """Connect the runtime only: a node with pods of its own (static ones) does not wait for the API."""
        await self.runtime.start(self.pods.on_runtime_event)
        for found in await self.runtime.recover():
            self.pods.found[found.uid] = found
        self._task = asyncio.create_task(self._run(), name="kubelet host")
        self._task.add_done_callback(_mourn)

    async def wait_heard(self) -> None:
        """Until the API has told all pods and nodes. Raises what ended the host instead."""
        await self._is_ready.wait()
        if self._task is not None and self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """At once; containers go on running."""
        self._wheel.stop()
        if self._task is not None:
            # First those who begin things, then what they began.
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        for agent in self.nodes.agents.values():
            agent.stop()
        await self.nodes.stop()
        await self.pods.stop()
        await self.machines.aclose()
        await self._recorder.aclose()
        await self.runtime.stop()

    @property
    def is_healthy(self) -> bool:
        """Whether the host works."""
        return self._task is not None and not self._task.done()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pod_informer.run())
                group.create_task(self._node_informer.run())
                await self._pod_informer.wait_synced()
                await self._node_informer.wait_synced()
                crews: tuple[tuple[int, WorkQueue[str], Callable[[str], Awaitable[float | None]]], ...] = (
                    (_POD_WORKERS, self.pods.status.queue, self._sync_status),
                    (_NODE_WORKERS, self.nodes.queue, self.nodes.sync),
                    (_LEASE_WORKERS, self.nodes.lease_queue, self._renew),
                )
                for count, queue, handle in crews:
                    for _ in range(count):
                        group.create_task(_work(queue, handle))
                self._is_ready.set()
        finally:
            self._is_ready.set()

    async def _sync_status(self, uid: str) -> None:
        await self.pods.status.sync(uid)

    async def _renew(self, name: str) -> None:
        await self.nodes.renew(name)

    # -- nodes

    def add_node(self, specification: NodeSpecification, services: NodeServices | None = None) -> Agent:
        """Start a kubelet. `services`: other ones than the host's machines would give it.

        Raises `ConfigError`, or what is wrong with a state file of the node.
        """
        model, name = specification.model, specification.name
        services = services or self.machines.services(specification)
        pods = AgentPods(name, self.nodes.agents, self.pods)
        agent = Agent(
            specification,
            self._features_of(model),
            _rules_of(specification),
            self._clock.monotonic_ns(),
            services,
            make_container_manager(specification, services, pods, self._parts),
            DRAManager(name, model.gates, services, pods.uids, self._dra_parts),
        )
        if name in self.nodes.agents:
            self.nodes.agents[name].stop()
        agent.dra.start()
        self.nodes.add(agent)
        return agent

    def add_nodes(self, specifications: Iterable[NodeSpecification]) -> None:
        for each in specifications:
            self.add_node(each)

    def stop_node(self, name: str) -> None:
        """The kubelet ends: its pods run on, nobody looks after them, its lease runs out."""
        agent = self.nodes.remove(name)
        if agent is None:
            return
        agent.stop()
        left = [*agent.pods]
        self.pods.forget_agent(agent)
        present = {pod.metadata.uid for pod in self._pod_informer.by_index(_BY_NODE, name)}
        for uid in left:
            if uid not in present:
                self.pods.on_pod_deleted(
                    uid
                )  # the API has forgotten it already: nobody will ask for it again

    async def restart_node(
        self, specification: NodeSpecification, services: NodeServices | None = None
    ) -> Agent:
        """Another kubelet for the same node: what runs is found again, everything else is worked out anew."""
        self.stop_node(specification.name)
        mine = {pod.metadata.uid for pod in self._pod_informer.by_index(_BY_NODE, specification.name)}
        for found in await self.runtime.recover():
            if found.uid in mine:
                self.pods.found[found.uid] = found
        return self.add_node(specification, services)

    def cut_off(self, name: str) -> None:
        """The node's network is gone: it goes on by itself, unheard and unhearing."""
        agent = self.nodes.agents.get(name)
        if agent is not None:
            agent.is_cut_off = True

    def reconnect(self, name: str) -> None:
        """What happened meanwhile is told, and heard of."""
        agent = self.nodes.agents.get(name)
        if agent is None or not agent.is_cut_off:
            return
        agent.is_cut_off = False
        node = self._node_informer.get(name)
        if node is not None:
            self.nodes.on_node_changed(node)
        else:
            self.nodes.on_node_deleted(name)
        self.nodes.queue.add(name)
        self.nodes.lease_queue.add(name)
        present = set()
        for pod in self._pod_informer.by_index(_BY_NODE, name):
            present.add(pod.metadata.uid)
            self._pod_seen(pod)
        for uid, managed in [*agent.pods.items()]:
            if uid not in present and not is_static(managed.life.pod):
                self.pods.on_pod_deleted(uid)
        for uid in list(agent.pods):
            self.pods.status.enqueue(uid)

    def agent(self, name: str) -> Agent | None:
        return self.nodes.agents.get(name)

    def find_pod(self, namespace: str, name: str) -> ManagedPod | None:
        """A pod some node here takes care of."""
        pod = self._pod_informer.get(name, namespace)
        return self.pods.get(mirrored_uid(pod) or pod.metadata.uid) if pod is not None else None

    def _features_of(self, model: NodeModel) -> DeclaredFeatures:
        """Found once for a model; a model that is gone leaves its number to another, so it is looked at too."""
        known = self._features.get(id(model))
        if known is None or known[0] is not model:
            known = self._features[id(model)] = (model, discover(model, self._framework))
            while len(self._features) > _MODELS_KEPT:
                del self._features[next(iter(self._features))]
        return known[1]

    # -- the API tells

    def _registered(self, agent: Agent) -> None:
        """The node is known: take care of its pods, the oldest first, as they were admitted before."""
        pods = self._pod_informer.by_index(_BY_NODE, agent.name)
        self.pods.drop_strangers(agent, {*agent.pods, *(pod.metadata.uid for pod in pods)}, self._is_known)
        # A node whose disk is new goes by what an earlier kubelet has said of its pods.
        admitted = agent.services.admitted if pods else ()
        is_new = {
            pod.metadata.uid: pod.metadata.uid not in admitted and not pod.status.start_time for pod in pods
        }
        for pod in sorted(
            pods, key=lambda pod: (is_new[pod.metadata.uid], pod.metadata.creation_timestamp or "")
        ):
            self._pod_seen(pod)
        agent.container_manager.on_pods_known()
        agent.dra.on_pods_known()
        self.pods.on_pods_added(agent)
        for uid, managed in agent.pods.items():
            if is_static(managed.life.pod):
                self.pods.status.enqueue(uid)

    def _is_known(self, found: FoundPod) -> bool:
        """Whether the API has a pod that the runtime found, of whatever node: a runtime may serve several."""
        pod = self._pod_informer.get(found.name, found.namespace)
        return self.pods.get(found.uid) is not None or (pod is not None and pod.metadata.uid == found.uid)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.uid != new.metadata.uid:
            self._pod_gone(old)  # and another made with its name, while nobody could tell
        self._pod_seen(new)

    def heard_pods(self) -> Sequence[Pod]:
        """All pods the API has told of, of whatever node."""
        return self._pod_informer.list()

    def _pod_seen(self, pod: Pod) -> None:
        agent = self.nodes.agents.get(pod.spec.node_name)
        if agent is not None and agent.is_registered and not agent.is_cut_off:
            if mirrored_uid(pod):
                self.pods.on_mirror_changed(pod)
            else:
                self.pods.on_pod_changed(agent, _from_api(pod))

    def _pod_gone(self, pod: Pod) -> None:
        agent = self.nodes.agents.get(pod.spec.node_name)
        if agent is None or not agent.is_cut_off or pod.metadata.uid not in agent.pods:
            if mirrored_uid(pod):
                self.pods.on_mirror_deleted(pod)
            else:
                self.pods.on_pod_deleted(pod.metadata.uid)


def _mourn(task: asyncio.Task[None]) -> None:
    """A host that ends by itself leaves its nodes to go NotReady: somebody must hear why."""
    if not task.cancelled() and (error := task.exception()) is not None:
        LOG.critical("the kubelets of this process have stopped working", exc_info=error)


def _rules_of(specification: NodeSpecification) -> LifecycleRules:
    model = specification.model
    settings = model.settings
    return LifecycleRules(
        settings.gates,
        specification.addresses,
        model.runtime_version.partition("://")[0],
        settings.max_restart_ns / SECOND_NS,
    )


def _from_api(pod: Pod) -> Pod:
    """Whatever its annotations say (they may be copied from a static pod), this one is not from a file."""
    if not is_static(pod):
        return pod
    annotations = {**pod.metadata.annotations, SOURCE_ANNOTATION: "api"}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


async def _work(queue: WorkQueue[str], handle: Callable[[str], Awaitable[float | None]]) -> None:
    """One worker, until the queue is shut down."""
    while (key := await queue.get()) is not None:
        try:
            again = await handle(key)
        except InvariantBroken:
            raise
        except (ApiError, WorldError) as error:
            LOG.info("%s: %s: %s", queue.name, key, error)
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)
        finally:
            queue.done(key)
