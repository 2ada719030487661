"""Where `Lt` and `Gt` tolerations are used, and what becomes of it where the gate is switched off (KEP-5471).

`nodeward tolerations` asks before a rollback. In goes an object of any kind that holds tolerations, directly (a pod, a
claim) or in a template (a workload); out come the numeric ones with the paths of their fields. For a pod and its node
the answer says what a control plane without the gate makes of it, by the rules the components themselves use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nodeward.api.apps_v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodTemplate, ReplicationController
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.meta import KubeObject
from nodeward.api.resource_v1 import DeviceRequest, ResourceClaim, ResourceClaimTemplate
from nodeward.rules.taints import seconds_until_eviction
from nodeward.rules.tolerations import NUMERIC, AnyToleration

#: The kinds that may hold tolerations, in the order they are listed: what makes pods before the pods.
KINDS: Final[tuple[type[KubeObject], ...]] = (
    Deployment,
    StatefulSet,
    DaemonSet,
    CronJob,
    Job,
    ReplicaSet,
    ReplicationController,
    PodTemplate,
    Pod,
    ResourceClaimTemplate,
    ResourceClaim,
)

_WORKLOADS: Final = (Deployment, StatefulSet, DaemonSet, Job, ReplicaSet, ReplicationController)


@dataclass(frozen=True, slots=True)
class NumericUse:
    """One toleration that compares numbers, and the path of its field in the object."""

    path: str
    toleration: AnyToleration

    def __str__(self) -> str:
        """The toleration in one word group: key, operator, value, and the effect and seconds if it has any."""
        each = self.toleration
        effect = f":{each.effect}" if each.effect else ""
        seconds = f" for {each.toleration_seconds}s" if each.toleration_seconds is not None else ""
        return f"{each.key} {each.operator} {each.value}{effect}{seconds}"


def numeric_uses(obj: KubeObject) -> list[NumericUse]:
    """Return the tolerations of an object that use `Lt` or `Gt`, in the order of their fields."""
    return [
        NumericUse(f"{path}[{index}]", toleration)
        for path, tolerations in _tolerations(obj)
        for index, toleration in enumerate(tolerations)
        if toleration.operator in NUMERIC
    ]


def without_gate(obj: KubeObject, node: Node | None) -> str:
    """Return the effect on an object that uses the operators once the gate is off; `node`: the pod's, if known."""
    if isinstance(obj, Pod):
        return _pod_without_gate(obj, node)
    if isinstance(obj, ResourceClaim):
        return "stays allocated" if obj.status.allocation is not None else "matches no tainted device"
    return "new pods are refused" if not isinstance(obj, ResourceClaimTemplate) else "new claims are refused"


def _pod_without_gate(pod: Pod, node: Node | None) -> str:
    if is_terminal(pod):
        return "has ended"
    if not pod.spec.node_name:
        return "waits for a node without such a taint"
    if node is None:
        return "unknown: its node is not there"
    tolerations = pod.spec.tolerations
    before = seconds_until_eviction(node.spec.taints, tolerations, numeric=True)
    after = seconds_until_eviction(node.spec.taints, tolerations, numeric=False)
    if after == before:
        return "goes on"
    return "is evicted" if not after else f"is evicted after {after}s"


def _tolerations(obj: KubeObject) -> Iterator[tuple[str, Sequence[AnyToleration]]]:
    """Return every list of tolerations in an object, with its path."""
    if isinstance(obj, Pod):
        yield "spec.tolerations", obj.spec.tolerations
    elif isinstance(obj, PodTemplate):
        yield "template.spec.tolerations", obj.template.spec.tolerations
    elif isinstance(obj, CronJob):
        template = obj.spec.job_template.spec.template
        yield "spec.jobTemplate.spec.template.spec.tolerations", template.spec.tolerations
    elif isinstance(obj, ResourceClaim):
        yield from _devices(obj.spec.devices.requests, "spec.devices.requests")
    elif isinstance(obj, ResourceClaimTemplate):
        yield from _devices(obj.spec.spec.devices.requests, "spec.spec.devices.requests")
    elif isinstance(obj, _WORKLOADS) and obj.spec.template is not None:
        yield "spec.template.spec.tolerations", obj.spec.template.spec.tolerations


def _devices(requests: Iterable[DeviceRequest], path: str) -> Iterator[tuple[str, Sequence[AnyToleration]]]:
    for index, request in enumerate(requests):
        if request.exactly is not None:
            yield f"{path}[{index}].exactly.tolerations", request.exactly.tolerations
        for number, wish in enumerate(request.first_available):
            yield f"{path}[{index}].firstAvailable[{number}].tolerations", wish.tolerations
