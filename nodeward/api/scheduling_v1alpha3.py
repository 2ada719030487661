"""The parts of scheduling.k8s.io/v1alpha3 that batch/v1 refers to."""

from __future__ import annotations

from typing import Annotated, Any

from nodeward.api.fields import REQUIRED, Int32, KubeStruct, always


class TopologyConstraint(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")


class WorkloadPodGroupDisruptionMode(KubeStruct):
    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class WorkloadPodGroupGangSchedulingPolicy(KubeStruct):
    min_count: Int32 | None = None


class WorkloadPodGroupResourceClaim(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class WorkloadPodGroupSchedulingConstraints(KubeStruct):
    topology: list[TopologyConstraint] = []


class WorkloadPodGroupSchedulingPolicy(KubeStruct):
    basic: dict[str, Any] | None = None
    gang: WorkloadPodGroupGangSchedulingPolicy | None = None
