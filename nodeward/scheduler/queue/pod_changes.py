"""What an update of a pod may mean to waiting pods: which events it amounts to.

In go two versions of a pod, out come events: one for each thing schedulers care about, or the general one if it is
none of them. What a waiting pod changes is its own business (Kubernetes' label: TargetPod); what a pod on a node
changes is everybody's.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.rules.pod_resources import pod_requests, resize_is_infeasible
from nodeward.scheduler.framework.events import Action, ClusterEvent, Resource
from nodeward.scheduler.framework.pod import PodView


def _own(action: Action, label: str) -> ClusterEvent:
    return ClusterEvent(Resource.UNSCHEDULED_POD, action, f"TargetPod{label}")


#: Per kind of change: the event of the pod itself, the event of a pod on a node.
_EVENTS: Final = {
    action: (_own(action, label), ClusterEvent(Resource.ASSIGNED_POD, action, f"AssignedPod{label}"))
    for action, label in (
        (Action.UPDATE_POD_LABEL, "UpdatePodLabel"),
        (Action.UPDATE_POD_SCALE_DOWN, "UpdatePodScaleDown"),
        (Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, "UpdatePodSchedulingGatesEliminated"),
        (Action.UPDATE_POD_TOLERATION, "UpdatePodToleration"),
        (Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, "UpdatePodGeneratedResourceClaim"),
        (Action.UPDATE_OTHER, "Update"),
    )
}


def pod_changes(old: PodView, new: PodView) -> list[ClusterEvent]:
    """The events an update amounts to; never none."""
    before, after = old.pod, new.pod
    found: list[Action] = []
    if before.metadata.labels != after.metadata.labels:
        found.append(Action.UPDATE_POD_LABEL)
    if _is_scaled_down(before, after):
        found.append(Action.UPDATE_POD_SCALE_DOWN)
    if before.spec.scheduling_gates and not after.spec.scheduling_gates:
        found.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # Tolerations can be added, never changed or taken away.
    if len(before.spec.tolerations) != len(after.spec.tolerations):
        found.append(Action.UPDATE_POD_TOLERATION)
    if (
        before.status.resource_claim_statuses != after.status.resource_claim_statuses
        or before.status.extended_resource_claim_status != after.status.extended_resource_claim_status
    ):
        found.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    is_assigned = bool(after.spec.node_name)
    return [_EVENTS[action][is_assigned] for action in found or (Action.UPDATE_OTHER,)]


def _is_scaled_down(before: Pod, after: Pod) -> bool:
    """Whether it takes less of anything. What a resize still holds counts as taken."""
    if before.spec == after.spec and _held(before) == _held(after):
        # Most updates only report progress, and adding up requests is the dearest thing here.
        return False
    asked = pod_requests(after, with_status=True, with_pod_status=True)
    return any(
        name not in asked or asked[name] < quantity
        for name, quantity in pod_requests(before, with_status=True, with_pod_status=True).items()
    )


def _held(pod: Pod) -> tuple[object, ...]:
    """Everything in the status that requests are worked out from."""
    status = pod.status
    return (
        [
            (one.name, one.allocated_resources, one.resources)
            for one in (*status.init_container_statuses, *status.container_statuses)
        ],
        resize_is_infeasible(pod),
        (status.allocated_resources, status.resources) if pod.spec.resources is not None else None,
    )
