"""Disruption budgets and evictions: policy/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.fields import (
    REPLACE,
    Int32,
    Int64,
    IntOrString,
    Keyed,
    KubeStruct,
    OneOf,
    Time,
    always,
    nested,
)
from nodeward.api.meta import Condition, DeleteOptions, KubeObject, LabelSelector


class Eviction(KubeObject):
    delete_options: DeleteOptions | None = None


class PodDisruptionBudgetSpec(KubeStruct):
    min_available: IntOrString | None = None
    selector: Annotated[LabelSelector | None, REPLACE] = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: Annotated[str | None, OneOf("AlwaysAllow", "IfHealthyBudget")] = None


class PodDisruptionBudgetStatus(KubeStruct):
    observed_generation: Int64 = 0
    disrupted_pods: dict[str, Time] = {}
    disruptions_allowed: Int32 = always(0)
    current_healthy: Int32 = always(0)
    desired_healthy: Int32 = always(0)
    expected_pods: Int32 = always(0)
    conditions: Annotated[list[Condition], Keyed("type")] = []


class PodDisruptionBudget(KubeObject):
    spec: PodDisruptionBudgetSpec = nested(PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = nested(PodDisruptionBudgetStatus)
