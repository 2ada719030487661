"""What the CPU manager asks of the kubelet around it: which pods there are, and which of their containers run.

`agent_pods.AgentPods` is the implementation on top of a kubelet's pod workers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from nodeward.api.core_v1.pod import Pod


class NodePods(Protocol):
    """The pods of one node."""

    def active(self) -> Collection[Pod]:
        """Return the pods of which something runs or will run."""
        ...

    def running_id(self, uid: str, container: str) -> str | None:
        """Return the id of a running container; None if it does not run."""
        ...
