"""The phases of a pod, and which of them are terminal.

Everybody who asks whether a pod has ended asks here: controllers, scheduler, kubelet, quota, eviction, printing.
Calls nothing. What must stay true: a terminal phase never changes again, and no container of such a pod runs or will
run again.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import Pod

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
TERMINAL: Final = (SUCCEEDED, FAILED)


def is_terminal(pod: Pod) -> bool:
    """Tell whether the pod has ended: none of its containers runs or will run again."""
    return pod.status.phase in TERMINAL
