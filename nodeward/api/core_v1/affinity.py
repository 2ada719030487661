"""Where a pod wants to be: affinity to nodes and pods, spreading over topologies."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import NodeSelector, NodeSelectorTerm
from nodeward.api.fields import REQUIRED, Int32, KubeStruct, OneOf, always, nested
from nodeward.api.meta import LabelSelector


class PreferredSchedulingTerm(KubeStruct):
    weight: Annotated[Int32, REQUIRED] = always(0)
    preference: Annotated[NodeSelectorTerm, REQUIRED] = nested(NodeSelectorTerm)


class NodeAffinity(KubeStruct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []


class PodAffinityTerm(KubeStruct):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: Annotated[str, REQUIRED] = always("")
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(KubeStruct):
    weight: Annotated[Int32, REQUIRED] = always(0)
    pod_affinity_term: Annotated[PodAffinityTerm, REQUIRED] = nested(PodAffinityTerm)


class PodAffinity(KubeStruct):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class PodAntiAffinity(KubeStruct):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(KubeStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(KubeStruct):
    max_skew: Annotated[Int32, REQUIRED] = always(0)
    topology_key: Annotated[str, REQUIRED] = always("")
    when_unsatisfiable: Annotated[str, OneOf("DoNotSchedule", "ScheduleAnyway"), REQUIRED] = always("")
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Annotated[str | None, OneOf("Honor", "Ignore")] = None
    node_taints_policy: Annotated[str | None, OneOf("Honor", "Ignore")] = None
    match_label_keys: list[str] = []
