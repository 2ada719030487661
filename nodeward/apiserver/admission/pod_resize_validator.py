"""PodResizeValidator: refuses a resize beyond the node's allocatable resources, or on a node that cannot resize.

Only the `resize` subresource is checked, and only when it changed the spec. What other pods use is not considered: that
may change, and the kubelet defers a resize that has to wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.meta import StatusCause
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.environment import Environment
from nodeward.base.fielderror import quote
from nodeward.base.quantity import ZERO, Quantity
from nodeward.rules.pod_resources import pod_requests

_OS_LABEL: Final = "kubernetes.io/os"
NODE_CAPACITY: Final = "NodeCapacity"
UNSUPPORTED_PLATFORM: Final = "UnsupportedPlatform"


class PodResizeValidator(AdmissionPlugin):
    name: ClassVar[str] = "PodResizeValidator"

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._is_on = env.context.on("InPlacePodVerticalScaling")

    def validate(self, write: Write) -> None:
        if not self._is_on or write.operation != "UPDATE" or not write.is_about("pods", "resize"):
            return
        new: Pod = write.new
        node_name = new.spec.node_name
        if not node_name or new.metadata.generation == write.old.metadata.generation:
            return
        node = self.env.peek(Node, node_name)
        if node is None:
            raise write.refuse(f"node {quote(node_name)} not found")
        system = node.metadata.labels.get(_OS_LABEL, "linux")
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {quote(node_name)} is {quote(system)}"
            raise _with_cause(write.refuse(why), UNSUPPORTED_PLATFORM)
        lacking = _lacking(new, node.status.allocatable)
        if lacking:
            why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
            raise _with_cause(write.refuse(why), NODE_CAPACITY)


def _lacking(pod: Pod, allocatable: Mapping[str, Quantity]) -> list[str]:
    wanted = pod_requests(pod)
    found: list[str] = []
    cpu, cpu_there = wanted.get("cpu", ZERO), allocatable.get("cpu", ZERO)
    if cpu > cpu_there:
        found.append(f"cpu, requested: {cpu.milli_value}, allocatable: {cpu_there.milli_value}")
    memory, memory_there = wanted.get("memory", ZERO), allocatable.get("memory", ZERO)
    if memory > memory_there:
        found.append(f"memory, requested: {memory.value}, allocatable: {memory_there.value}")
    return found


def _with_cause(error: ApiError, reason: str) -> ApiError:
    """Add a machine-readable cause to the refusal."""
    if error.status.details is not None:
        error.status.details.causes.append(StatusCause(reason=reason))
    return error
