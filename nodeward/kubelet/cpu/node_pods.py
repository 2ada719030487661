"""What the CPU manager asks of the kubelet around it: its pods, which of their containers run, files and events.

`agent_pods.AgentPods` is the implementation on top of a kubelet's pod workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.pods.commands import RecordEvent


class NodePods(Protocol):
    """The pods of one node."""

    def active(self) -> Collection[Pod]:
        """Return the pods of which something runs or will run."""
        ...

    def running_id(self, uid: str, container: str) -> str | None:
        """Return the id of a running container; None if it does not run."""
        ...

    def cpus_in_force(self, uid: str, container: str) -> str | None:
        """Return the CPUs a container from before a restart has, as the runtime says; None if that is not known."""
        ...

    def refresh_own_fields(self, uid: str, written: Callable[[str], None]) -> None:
        """Write the downward API files of a pod at once, then call `written` with "" or what went wrong."""
        ...

    def sync(self, uid: str) -> None:
        """Look at a pod again: its containers have what they were to have."""
        ...

    def record(self, uid: str, event: RecordEvent) -> None:
        """Record an event about a pod."""
        ...
