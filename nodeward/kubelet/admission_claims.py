"""Read the claims of a pod before the pod is admitted, so that its node features are known (KEP-5945).

A kubelet that cannot skip node operations refuses pods whose claims need that. The pod manager hands in such a pod and
admits it when it comes back with its claims. Versions that come meanwhile replace it.

What must stay true: a pod comes back once, in its newest version, unless it or its kubelet is gone by then; claims that
cannot be read do not hold up admission, as they are checked again before the pod starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.kubelet.agent import Agent
from nodeward.machinery.eager import EagerTasks


class AdmissionClaims:
    """The pods of one host whose claims are being read; `admit` gets each back."""

    def __init__(
        self, tasks: EagerTasks, admit: Callable[[Agent, Pod, Sequence[ResourceClaim]], None]
    ) -> None:
        self._tasks = tasks
        self._admit = admit
        self._reading: dict[str, tuple[Agent, Pod]] = {}

    def read(self, agent: Agent, pod: Pod) -> None:
        """Read the claims of a pod, or note its newer version."""
        uid = pod.metadata.uid
        is_reading = uid in self._reading
        self._reading[uid] = (agent, pod)
        if not is_reading:
            self._tasks.start(self._read(agent, pod))

    async def _read(self, agent: Agent, pod: Pod) -> None:
        claims = await agent.dra.fetch_claims(pod)
        newest = self._reading.pop(pod.metadata.uid, None)
        if newest is not None:
            self._admit(*newest, claims)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._reading.pop(uid, None)

    def forget_agent(self, agent: Agent) -> None:
        """The kubelet stops; its next run sees the pods again."""
        for uid in [uid for uid, (its, _) in self._reading.items() if its is agent]:
            del self._reading[uid]
