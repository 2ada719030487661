"""The pods of one agent, as its container manager and its DRA manager see them.

The `Host` makes one for each node. The agent is looked up by name whenever it is asked, because the managers are made
before their agent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.agent import Agent, ManagedPod
from nodeward.kubelet.pod_manager import PodManager
from nodeward.kubelet.pods.commands import RecordEvent


class AgentPods:
    """The pods of the agent with a name; `pods` are those of the whole host."""

    def __init__(self, name: str, agents: Mapping[str, Agent], pods: PodManager) -> None:
        self._name = name
        self._agents = agents
        self._pods = pods

    def active(self) -> Collection[Pod]:
        agent = self._agents.get(self._name)
        if agent is None:
            return ()
        return [managed.life.pod for managed in agent.pods.values() if not managed.life.is_finished]

    def uids(self) -> Collection[str]:
        """The uids of the pods the node takes care of."""
        agent = self._agents.get(self._name)
        return agent.pods if agent is not None else ()

    def running_id(self, uid: str, container: str) -> str | None:
        managed = self._managed(uid)
        return managed.life.running_id(container) or None if managed is not None else None

    def cpus_in_force(self, uid: str, container: str) -> str | None:
        managed = self._managed(uid)
        return managed.life.cpus_in_force(container) if managed is not None else None

    def _managed(self, uid: str) -> ManagedPod | None:
        agent = self._agents.get(self._name)
        return agent.pods.get(uid) if agent is not None else None

    def refresh_own_fields(self, uid: str, written: Callable[[str], None]) -> None:
        self._pods.refresh_own_fields(uid, written)

    def sync(self, uid: str) -> None:
        self._pods.sync(uid)

    def record(self, uid: str, event: RecordEvent) -> None:
        self._pods.record(uid, event)
