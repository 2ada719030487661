"""Pools of simulated nodes in one process, on any API server; a pool can be changed while it runs.

`set_pool` makes a pool what it should be: missing nodes are started, nodes too many are stopped and their objects
deleted, and an upgrade (another version, other gates or settings) restarts the kubelets of the others, some at a time.
It can be cancelled at any moment and called again with something else: every node remembers what it runs.

What must stay true: a node whose kubelets are what they should be is never restarted; a restart leaves containers
running, a reboot leaves none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError, WorldError
from nodeward.cluster.description import NodeState, Pool
from nodeward.cluster.pools import models, node_name, specification
from nodeward.features.declared import FRAMEWORK, Framework
from nodeward.kubelet.cpu.state_file import StateFileError
from nodeward.kubelet.cpu.static_policy import InvalidState
from nodeward.kubelet.host import Host
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.behaviour import USUAL, Behaviour
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.simulated.machines import SimulatedMachines
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.workqueue import WorkQueue

LOG: Final = logging.getLogger(__name__)

_DELETERS: Final = 8
#: How often an upgrade looks whether the nodes it restarted are back.
_LOOK_SECONDS: Final = 0.5
#: No request is under way for longer.
_LATE_SECONDS: Final = 60.0
_AS_USUAL: Final = NodeState()


@dataclass(slots=True)
class RunningPool:
    """A pool as it should be, and what its nodes run."""

    pool: Pool
    place: int
    models: tuple[NodeModel, ...]
    #: by number
    nodes: dict[int, NodeSpecification] = field(default_factory=dict)
    #: whether its kubelets are down
    is_stopped: bool = False


class Fleet:
    """`start` it, set pools, `stop` it: containers and objects stay as they are."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        chance: Chance,
        *,
        expected_nodes: int = 1,
        metrics: Metrics | None = None,
        endpoint_port: int = 0,
        framework: Framework = FRAMEWORK,
    ) -> None:
        """`endpoint_port` is where the kubelets' server listens, if there is one."""
        self._endpoint_port = endpoint_port
        self._client = client
        self._clock = clock
        self.runtime: Final = SimRuntime(clock, self._behaviour)
        machines = SimulatedMachines(client, clock, chance.child("machines"), self.runtime)
        self.host: Final = Host(
            client,
            clock,
            chance,
            self.runtime,
            machines,
            expected_nodes=expected_nodes,
            metrics=metrics,
            framework=framework,
        )
        self.pools: Final[dict[str, RunningPool]] = {}
        self._states: Mapping[str, NodeState] = {}
        #: nodes that are gone, whose objects are to go too
        self._leaving: WorkQueue[str] = WorkQueue(clock, name="leaving_nodes")
        self._deleters: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Hear of all pods and nodes there are."""
        await self.host.start()
        for pod in self.host.heard_pods():
            self.runtime.reserve(pod)
        self._deleters = [
            asyncio.create_task(self._delete_nodes(), name="delete nodes") for _ in range(_DELETERS)
        ]

    async def stop(self) -> None:
        self._leaving.shut_down()
        for task in self._deleters:
            task.cancel()
        await asyncio.gather(*self._deleters, return_exceptions=True)
        await self.host.stop()

    def __len__(self) -> int:
        """How many nodes there are."""
        return sum(len(running.nodes) for running in self.pools.values())

    @property
    def is_healthy(self) -> bool:
        """Whether it works, or has not begun yet."""
        return not self._deleters or self.host.is_healthy

    # -- pools

    async def set_pool(self, pool: Pool) -> None:
        """Make a pool what it should be; returns when all its nodes are."""
        if pool.runtime != "sim":
            raise ConfigError(
                f"pool {pool.name!r}: runtime {pool.runtime!r}: a fleet has simulated nodes only"
            )
        running = self.pools.get(pool.name)
        if running is None:
            running = RunningPool(pool, self._free_place(), self._models(pool))
            self.pools[pool.name] = running
        elif not pool.has_same_kubelets(running.pool):
            running.models = self._models(pool)
        running.pool = pool
        for number in sorted(number for number in running.nodes if number >= pool.nodes):
            self._take_away(node_name(pool, number))
            del running.nodes[number]
        was_stopped, running.is_stopped = running.is_stopped, False
        for number in range(pool.nodes):
            if was_stopped or number not in running.nodes:
                self._run(running, number)
        if was_stopped:
            await self._wait_for(running, list(running.nodes))
        await self._upgrade(running)

    def stop_pool(self, name: str) -> None:
        """Stop all kubelets of a pool; `set_pool` starts them again. Containers and objects stay as they are."""
        running = self.pools[name]
        running.is_stopped = True
        for number in running.nodes:
            self.host.stop_node(node_name(running.pool, number))

    def remove_pool(self, name: str) -> None:
        """All its nodes go."""
        running = self.pools.pop(name)
        for number in running.nodes:
            self._take_away(node_name(running.pool, number))

    async def _upgrade(self, running: RunningPool) -> None:
        pool, shared = running.pool, running.models
        old = [
            number
            for number, node in sorted(running.nodes.items())
            if node.model is not shared[number % len(shared)]
        ]
        step = pool.at_once or max(-(-pool.nodes // 10), 1)
        for first in range(0, len(old), step):
            if first:
                await self._clock.sleep(pool.pause_ns / SECOND_NS)
            batch = old[first : first + step]
            for number in batch:
                self.host.stop_node(node_name(pool, number))
                self._run(running, number)
            await self._wait_for(running, batch)

    async def _wait_for(self, running: RunningPool, numbers: Sequence[int]) -> None:
        """Return when the kubelets of these nodes have registered, or cannot."""
        while not all(self._is_back(node_name(running.pool, number)) for number in numbers):
            await self._clock.sleep(_LOOK_SECONDS)

    def _is_back(self, name: str) -> bool:
        agent = self.host.agent(name)
        return agent is None or agent.is_registered or agent.is_cut_off

    def _run(self, running: RunningPool, number: int) -> None:
        """Start a kubelet with what its pool says now."""
        state = self._states.get(node_name(running.pool, number), _AS_USUAL)
        node = specification(running.pool, running.models, running.place, number, state.boots)
        running.nodes[number] = node
        try:
            self.host.add_node(node)
        except (ConfigError, StateFileError, InvalidState) as error:
            # As a kubelet that exits at its start: its containers run on, and the node goes NotReady.
            LOG.error("node %s: its kubelet does not start: %s", node.name, error)
            return
        if state.is_cut_off:
            self.host.cut_off(node.name)

    def _take_away(self, name: str) -> None:
        """The machine is gone, and all that ran on it."""
        agent = self.host.agent(name)
        uids = list(agent.pods) if agent is not None else []
        self.host.stop_node(name)
        for uid in uids:
            self.runtime.remove_pod(uid)
        self.runtime.forget_node(name)
        self.host.machines.discard(name)
        self._leaving.add(name)
        if agent is not None and not agent.is_registered:
            # Its registration may be on its way, and overtake the deletion.
            self._leaving.add_after(name, _LATE_SECONDS)

    def _models(self, pool: Pool) -> tuple[NodeModel, ...]:
        return models(pool, self.runtime, endpoint_port=self._endpoint_port)

    def _free_place(self) -> int:
        taken = {running.place for running in self.pools.values()}
        return next(place for place in range(len(taken) + 1) if place not in taken)

    def _behaviour(self, pod: Pod) -> Behaviour:
        running = self.pools.get(pod.spec.node_name.rpartition("-")[0])
        return running.pool.behaviour if running is not None else USUAL

    # -- what happens to nodes

    def set_states(self, states: Mapping[str, NodeState]) -> None:
        """Cut nodes off, connect them again, reboot them; of those that are not named nothing is the matter."""
        before, self._states = self._states, states
        for running in self.pools.values():
            for number in running.nodes:
                name = node_name(running.pool, number)
                was, now = before.get(name, _AS_USUAL), states.get(name, _AS_USUAL)
                if was is now or was == now:
                    continue
                if now.boots != was.boots:
                    self._reboot(running, number)
                if now.is_cut_off:
                    self.host.cut_off(name)
                else:
                    self.host.reconnect(name)

    def _reboot(self, running: RunningPool, number: int) -> None:
        name = node_name(running.pool, number)
        agent = self.host.agent(name)
        uids = list(agent.pods) if agent is not None else []
        self.host.stop_node(name)
        self.runtime.lose_power(uids)
        self._run(running, number)

    # -- objects of nodes that are gone

    async def _delete_nodes(self) -> None:
        queue = self._leaving
        while (name := await queue.get()) is not None:
            try:
                if self.host.agent(name) is None:  # else it was wanted again meanwhile
                    await self._client.delete(Node, name)
                queue.forget(name)
            except ApiError as error:
                if error.reason == "NotFound":
                    queue.forget(name)
                else:
                    LOG.warning("node %s cannot be deleted yet: %s", name, error)
                    queue.add_rate_limited(name)
            except WorldError as error:
                LOG.warning("node %s cannot be deleted yet: %s", name, error)
                queue.add_rate_limited(name)
            finally:
                queue.done(name)
