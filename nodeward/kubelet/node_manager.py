"""The node manager: registration, status, readiness gates, and the lease that says a node is alive.

The decisions are the cores' (`node.core`, `node.lease`); here their requests are sent and their deadlines kept. Work
on one node is never done twice at once (the queues see to that), and a node nobody can reach waits with a backoff.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from nodeward.api import codec
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.kubelet_events import KubeletEvents
from nodeward.kubelet.metrics import KubeletMetrics
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.lease import NAMESPACE, Create, Outcome
from nodeward.kubelet.node.node_conditions import NodeEvent
from nodeward.kubelet.node.registration import reconcile, retry_after_seconds
from nodeward.kubelet.timer_wheel import GRID_NS, TimerWheel
from nodeward.machinery.backoff import Curve, KeyedBackoff
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.eager import EagerTasks
from nodeward.machinery.request_parts import path_of
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.readiness import GateState, LabelChanges, label_changes, views

LOG: Final = logging.getLogger(__name__)

_SPREAD_NS: Final = 100 * SECOND_NS
#: After an outage, however long, the node is heard of within seconds.
_STATUS_RETRY: Final = Curve(initial=0.005, cap=10.0)
_MERGE: Final = {"content-type": PatchType.MERGE.value}


class NodeManager:
    """The nodes of one host. `registered` is called for each once the API knows it."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        chance: Chance,
        wheel: TimerWheel,
        events: KubeletEvents,
        metrics: KubeletMetrics,
        registered: Callable[[Agent], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._chance = chance
        self._wheel = wheel
        self._events = events
        self._metrics = metrics
        self._registered = registered
        self._node_kind = client.kind_of(Node)
        self._lease_kind = client.kind_of(Lease)
        self._leases = path_of(self._lease_kind, NAMESPACE)
        self.agents: Final[dict[str, Agent]] = {}
        #: names of nodes to look at, and of those whose lease is due
        self.queue: Final[WorkQueue[str]] = WorkQueue(
            clock, name="node_status", backoff=KeyedBackoff(_STATUS_RETRY)
        )
        self.lease_queue: Final[WorkQueue[str]] = WorkQueue(clock, name="node_lease")
        self._probes = EagerTasks(lambda error: LOG.warning("%s", error), (WorldError, OSError))

    def add(self, agent: Agent) -> None:
        """Look after a node from now on; one of the same name is not looked after any more."""
        self.agents[agent.name] = agent
        self.queue.add(agent.name)

    def remove(self, name: str) -> Agent | None:
        """No more is written for the node; its object stays, as when a kubelet stops."""
        self._metrics.gate_satisfied.forget("node", name)
        return self.agents.pop(name, None)

    def on_node_changed(self, node: Node) -> None:
        """Handle a newer version of the object."""
        agent = self.agents.get(node.metadata.name)
        if agent is None or agent.is_cut_off or not agent.is_registered:
            return
        if not self._took(agent, node):
            return
        self.queue.add(agent.name)

    def on_node_deleted(self, name: str) -> None:
        """Somebody deleted the object: the kubelet registers again only when it starts anew, as upstream's."""
        agent = self.agents.get(name)
        if agent is not None and agent.is_registered:
            LOG.warning(
                "node %s was deleted from the API; its kubelet must be restarted to register it", name
            )
            agent.lease.node_is("")

    def _took(self, agent: Agent, node: Node) -> bool:
        """What the API has, from the watch or as the answer to a write: the one may be older than the other."""
        known, meta = agent.node, node.metadata
        if (
            known is not None
            and known.metadata.uid == meta.uid
            and int(meta.resource_version or "0") <= int(known.metadata.resource_version or "0")
        ):
            return False
        agent.node = node
        if agent.lease.node_is(meta.uid):
            self.lease_queue.add(agent.name)
        return True

    # -- status

    async def sync(self, name: str) -> float | None:
        """One look at a node; gives the seconds after which a failure is tried again."""
        agent = self.agents.get(name)
        if agent is None or agent.is_cut_off:
            return None
        if not agent.is_registered:
            if not agent.specification.settings.register_node:
                return await self._find(agent)
            return await self._register(agent)
        node = agent.node
        if node is None:
            return None
        now_ns, mono_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        outcomes, agent.outcomes = agent.outcomes, {}
        step = agent.core.step(node, agent.facts, now_ns, mono_ns, outcomes)
        for gate in step.expired_gates:
            self._metrics.gate_timeouts.inc(gate)
        if agent.core.readiness is not None:
            self._measure_gates(agent, node)
        if step.patch is not None:
            try:
                written = await self._client.patch(
                    Node, name, step.patch, kind=self._node_kind, subresource="status"
                )
            except ApiError as error:
                if error.reason == "NotFound":
                    return None
                raise
            self._took(agent, written)
            agent.core.reported(mono_ns, self._chance)
        for event in step.events:
            self._events.about_node(agent, event)
        if step.gate_labels:
            await self._write_gate_labels(agent, step.gate_labels)
        when_ns = step.next_check_ns
        if step.patch is None:
            # What a node says of itself changes only by what wakes it: the next look is due with the next report.
            when_ns = max(when_ns, agent.core.quiet_until_ns(node, agent.facts) or 0)
        self._check_at(agent, when_ns)
        self._probe_gates(agent)
        return None

    def _check_at(self, agent: Agent, when_ns: int) -> None:
        if agent.check_ns == when_ns:
            return
        agent.check_ns = when_ns

        def due() -> None:
            if agent.check_ns == when_ns and self.agents.get(agent.name) is agent:
                self.queue.add(agent.name)

        self._wheel.at(when_ns, due)

    async def _register(self, agent: Agent) -> float | None:
        now_ns, mono_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        node, events = agent.core.first_node(agent.facts, now_ns)
        try:
            made = await self._create(node)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return await self._register_again(agent)
            return self._failed(agent, error)
        except WorldError as error:
            return self._failed(agent, error)
        agent.core.reported(mono_ns, self._chance)
        self._is_known(agent, made)
        for event in events:
            self._events.about_node(agent, event)
        return None

    async def _create(self, node: Node) -> Node:
        """Create the object. If the API server refuses it, it may be for the label of a gate: then without those."""
        try:
            return await self._client.create(node)
        except ApiError as error:
            own = label_changes((), node.metadata.labels).remove
            if error.code != 403 or not own:
                raise
            kept = {key: value for key, value in node.metadata.labels.items() if key not in own}
            bare = replace(node, metadata=replace(node.metadata, labels=kept))
            return await self._client.create(bare)

    async def _register_again(self, agent: Agent) -> float | None:
        """The name is there: from before a restart, or somebody made it by hand."""
        try:
            node = await self._client.get(Node, agent.name)
            changes = reconcile(node, agent.specification)
            if changes.spec_patch is not None:
                node = await self._client.patch(Node, agent.name, changes.spec_patch)
            if changes.status_patch is not None:
                node = await self._client.patch(Node, agent.name, changes.status_patch, subresource="status")
        except (ApiError, WorldError) as error:
            return self._failed(agent, error)
        self._is_known(agent, node)
        return None

    async def _find(self, agent: Agent) -> float | None:
        """Somebody else makes the object: wait until it is there."""
        try:
            node = await self._client.get(Node, agent.name)
        except (ApiError, WorldError) as error:
            return self._failed(agent, error)
        self._is_known(agent, node)
        return None

    def _failed(self, agent: Agent, error: Exception) -> float:
        agent.failures += 1
        if agent.failures == 1:
            LOG.warning("node %s cannot be registered yet: %s", agent.name, error)
        return retry_after_seconds(agent.failures)

    def _is_known(self, agent: Agent, node: Node) -> None:
        if self.agents.get(agent.name) is not agent:
            return  # it was stopped meanwhile
        agent.node = node
        agent.is_registered = True
        agent.failures = 0
        agent.lease.node_is(node.metadata.uid)
        self._metrics.node_name.set(1, agent.name)
        self.lease_queue.add(agent.name)
        self.queue.add(agent.name)
        self._registered(agent)

    # -- readiness gates (KEP-5233)

    def _measure_gates(self, agent: Agent, node: Node) -> None:
        """Set the gauge of every gate; the gauge of a gate that was removed goes."""
        gauge = self._metrics.gate_satisfied
        present = {
            each.gate.condition_type: each
            for each in views(node.spec.readiness_gates, node.status.conditions)
        }
        for gone in [name for name in agent.measured_gates if name not in present]:
            gauge.remove(agent.name, gone)
        for name, view in present.items():
            gauge.set(float(view.state is GateState.HOLDS), agent.name, name)
        agent.measured_gates = tuple(present)

    async def _write_gate_labels(self, agent: Agent, changes: LabelChanges) -> None:
        """Write labels of gates; one that is refused costs no other, and is told once."""
        labels = changes.patch()
        try:
            await self._patch_labels(agent, labels)
            return
        except ApiError as error:
            if error.code != 403:
                raise
        for key, value in labels.items():
            try:
                await self._patch_labels(agent, {key: value})
            except ApiError as error:
                if error.code != 403 or agent.core.readiness is None:
                    raise
                agent.core.readiness.label_refused(key)
                message = f"Node {agent.name} cannot change the label {key} of its readiness gate: {error}"
                LOG.warning("%s", message)
                self._events.about_node(agent, NodeEvent("Warning", "ReadinessGateLabelRefused", message))

    async def _patch_labels(self, agent: Agent, labels: dict[str, str | None]) -> None:
        body = {"metadata": {"labels": labels}}
        kind = self._node_kind
        try:
            written = await self._client.patch(Node, agent.name, body, kind=kind, subresource="status")
        except ApiError as error:
            if error.reason == "NotFound":
                return
            raise
        self._took(agent, written)

    def _probe_gates(self, agent: Agent) -> None:
        readiness, node = agent.core.readiness, agent.node
        if readiness is None or node is None:
            return
        now_ns = self._clock.monotonic_ns()
        for gate, probe in readiness.probes_due(node, now_ns):
            self._probes.start(self._ask_gate(agent, gate, probe))
        due_ns = readiness.next_probe_ns(node)
        if due_ns is not None and due_ns < agent.check_ns:
            self._check_at(agent, max(due_ns, now_ns))

    async def _ask_gate(self, agent: Agent, gate: str, probe: GateProbe) -> None:
        try:
            outcome = await agent.services.prober.gate_probe(probe)
        except WorldError as error:
            outcome = ProbeOutcome(False, str(error))
        self._note(agent, gate, outcome)

    def _note(self, agent: Agent, gate: str, outcome: ProbeOutcome) -> None:
        self._metrics.gate_probes.inc(gate, "success" if outcome.is_success else "failure")
        agent.outcomes[gate] = outcome
        self.queue.add(agent.name)

    # -- lease

    async def renew(self, name: str) -> None:
        """Send what the lease asks for, and set its next deadline."""
        agent = self.agents.get(name)
        if agent is None or agent.is_cut_off:
            return
        request = agent.lease.request(self._clock.now_ns())
        if request is None:
            return
        try:
            if isinstance(request, Create):
                await self._client.create(request.lease, kind=self._lease_kind)
            else:
                await self._client.raw(
                    "PATCH", f"{self._leases}/{name}", body=codec.encode(request.patch), headers=_MERGE
                )
            outcome = Outcome.DONE
        except ApiError as error:
            reasons = {"AlreadyExists": Outcome.EXISTS, "NotFound": Outcome.GONE}
            outcome = reasons.get(error.reason, Outcome.FAILED)
        except WorldError:
            outcome = Outcome.FAILED
        agent.lease.ended(outcome, self._clock.monotonic_ns(), self._chance)
        self.renew_at(agent)

    def renew_at(self, agent: Agent) -> None:
        """Wake up when the lease is due."""
        grid_ns = self._lease_grid_ns()
        when_ns = agent.lease_ns = (agent.lease.next_ns + grid_ns // 2) // grid_ns * grid_ns

        def due() -> None:
            if agent.lease_ns == when_ns and self.agents.get(agent.name) is agent:
                self.lease_queue.add(agent.name)

        self._wheel.at(when_ns, due)

    def _lease_grid_ns(self) -> int:
        """Renewals of a few nodes go together, those of thousands are spread: about ten are due at a time."""
        return max(GRID_NS, min(SECOND_NS, _SPREAD_NS // max(len(self.agents), 1)))

    async def stop(self) -> None:
        """Abandon what is under way."""
        self.queue.shut_down()
        self.lease_queue.shut_down()
        await self._probes.stop()
