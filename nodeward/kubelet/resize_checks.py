"""Resizes a node can never do, whatever else runs on it, and the order in which pending ones are tried.

`infeasible` is upstream's resize handler: the first check of a resize, before resources are counted. `order_of` sorts
the queue. Called by the allocation and the resize manager of a node; pure.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.features.gates import Gates
from nodeward.kubelet.container_manager import ResizeRefusal
from nodeward.kubelet.pods.resize_texts import INFEASIBLE
from nodeward.kubelet.pods.resource_info import CPU, MEMORY, amount
from nodeward.rules.pod_resources import pod_requests
from nodeward.rules.qos import GUARANTEED, pod_qos

STATIC = "static"


def infeasible(pod: Pod, allocated: Pod, gates: Gates, cpu_policy: str) -> ResizeRefusal | None:
    """Return why a pod can never have what it asks for; `allocated` is the pod with what it has."""
    if not gates.enabled("InPlacePodVerticalScaling"):
        return _never("InPlacePodVerticalScaling is disabled", "feature_gate_off")
    if pod.spec.resources != allocated.spec.resources and not gates.enabled(
        "InPlacePodLevelResourcesVerticalScaling"
    ):
        return _never("InPlacePodLevelResourcesVerticalScaling is disabled", "plr_feature_gate_off")
    if (
        cpu_policy == STATIC
        and not gates.enabled("InPlacePodVerticalScalingExclusiveCPUs")
        and pod_qos(pod) == GUARANTEED
        and _changes_cpu(pod, allocated)
    ):
        return _never(
            'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
            "guaranteed_pod_cpu_manager_static_policy",
        )
    return None


def _never(message: str, detail: str) -> ResizeRefusal:
    return ResizeRefusal(True, INFEASIBLE, message, detail)


def _changes_cpu(pod: Pod, allocated: Pod) -> bool:
    pairs = zip(
        (*pod.spec.init_containers, *pod.spec.containers),
        (*allocated.spec.init_containers, *allocated.spec.containers),
        strict=True,
    )
    return any(
        amount(one.resources, "requests", CPU) != amount(other.resources, "requests", CPU)
        for one, other in pairs
    )


def changes_of(pod: Pod, allocated: Pod, *, with_pod_level: bool) -> tuple[bool, bool]:
    """Return whether a resize raises, and whether it lowers, the pod's requests of cpu or memory."""
    new = pod_requests(pod, with_pod_level=with_pod_level)
    old = pod_requests(allocated, with_pod_level=with_pod_level)
    pairs = [(new.get(name), old.get(name)) for name in (CPU, MEMORY)]
    raises = any(one is not None and (other is None or one > other) for one, other in pairs)
    lowers = any(other is not None and (one is None or one < other) for one, other in pairs)
    return raises, lowers


def order_of(pod: Pod, is_increase: bool, pending_since: str | None) -> tuple[Any, ...]:
    """Return the place of a pending resize in the queue: smaller ones are tried first.

    Resizes that raise nothing come first, then higher priorities, then Guaranteed pods, then those that have waited
    longest; one that was never tried has not waited yet.
    """
    return (
        is_increase,
        -(pod.spec.priority or 0),
        pod_qos(pod) != GUARANTEED,
        pending_since is None,
        pending_since or "",
    )
