"""What the topology manager asks of the managers that hand out resources near NUMA nodes.

The CPU manager implements `HintProvider`; `topology_admission` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Protocol

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import NodewardError
from nodeward.kubelet.topology_manager.hints import Hints


class AdmitOperation(Enum):
    """Why a pod is admitted."""

    ADD = "add"
    RESIZE = "resize"


class ResourceRefused(NodewardError):
    """The pod cannot be admitted; `reason` becomes the reason in its status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason


class HintProvider(Protocol):
    """A manager of one kind of resource. `affinity` is the set of NUMA nodes that was chosen, None for any.

    `allocate` and `allocate_pod` raise `ResourceRefused`, or any other `NodewardError` for an unexpected refusal.
    """

    def hints(self, pod: Pod, container: Container, operation: AdmitOperation) -> Mapping[str, Hints]: ...

    def pod_hints(self, pod: Pod, operation: AdmitOperation) -> Mapping[str, Hints]: ...

    def allocate(
        self, pod: Pod, container: Container, affinity: int | None, operation: AdmitOperation
    ) -> None: ...

    def allocate_pod(self, pod: Pod, affinity: int | None, operation: AdmitOperation) -> None: ...
