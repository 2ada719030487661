"""What a declared feature is (KEP-5328): when a node has it, and when a pod needs it.

A feature is a value: a name, what a node must have set to declare it, and up to two rules that look at a pod. Whether
a node declares it follows from the requirements and from nothing else, so that what a program predicts for a node
that does not exist yet is what the node will say.

What must stay true: no feature without a feature gate (declared features are temporary), and none that nobody acts
on: it has a rule, or it names the component that reads it from the node.

Used by each feature of this package and by the kubelet; calls `errors`, `shapes` and `version`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from nodeward.features.declared.errors import FeatureError
from nodeward.features.declared.shapes import AnyGates, AnyPodSpec, AnyResourceClaim
from nodeward.features.declared.version import Version

#: The framework's own gate: a node on which it is off declares nothing.
NODE_DECLARED_FEATURES_GATE: Final = "NodeDeclaredFeatures"
#: The longest name a node may declare, in bytes.
MAX_NAME: Final = 253
_NAME: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NodeConfiguration:
    """What is known of a node before it exists: enough to tell what it will declare."""

    #: the version of the kubelet; None if it does not matter
    version: Version | None
    gates: AnyGates
    #: settings of the node beside gates, such as what its container runtime supports
    static_config: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class PodInfo:
    """A pod and what belongs to it, as far as it is known."""

    spec: AnyPodSpec
    status: object = None
    #: the claims the pod refers to, those already allocated with their results
    resource_claims: Sequence[AnyResourceClaim] = ()


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a node must have to declare a feature: all these gates on, and all these settings."""

    gates: tuple[str, ...]
    static_config: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        if not self.gates:
            raise FeatureError("a declared feature needs at least one feature gate: it must be able to end")

    def met_by(self, config: NodeConfiguration) -> bool:
        return all(config.gates.enabled(gate) for gate in self.gates) and all(
            config.static_config.get(key) == value for key, value in self.static_config.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One declared feature."""

    name: str
    requirements: Requirements
    #: whether a pod may only be placed on nodes that have the feature
    scheduling_rule: Callable[[PodInfo], bool] | None = None
    #: the fields of the pod's spec that this rule reads, as paths like "containers[*].image": pods that are equal in
    #: them need the feature alike. None: the rule is asked of every pod
    scheduling_fields: tuple[str, ...] | None = None
    #: whether the step from an old pod to a new one needs the feature on the pod's node
    update_rule: Callable[[PodInfo, PodInfo], bool] | None = None
    #: the last version in which the feature matters; afterwards every node has it
    max_version: Version | None = None
    #: who reads the name from the node itself, where no rule says it all
    direct_consumer: str = ""

    def __post_init__(self) -> None:
        if not (self.scheduling_rule or self.update_rule or self.direct_consumer):
            raise FeatureError(
                f"feature {self.name}: nobody acts on it; give it a rule or name its direct consumer"
            )

    def discover(self, config: NodeConfiguration) -> bool:
        """Tell whether a node so configured has the feature."""
        return self.requirements.met_by(config)

    def infer_for_scheduling(self, pod: PodInfo) -> bool:
        return self.scheduling_rule is not None and self.scheduling_rule(pod)

    def infer_for_update(self, old: PodInfo, new: PodInfo) -> bool:
        return self.update_rule is not None and self.update_rule(old, new)

    def matters_in(self, version: Version | None) -> bool:
        """Tell whether the feature is still worth a word in a version."""
        return version is None or self.max_version is None or version <= self.max_version


def name_fault(name: str) -> str:
    """Return what is wrong with the name of a feature; "" if nothing. The API server refuses the same names."""
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        return f"must be no more than {MAX_NAME} characters"
    if not _NAME.fullmatch(name):
        return "must be UpperCamelCase segments of letters and digits, such as MyFeature or MyFeature/mySubFeature"
    return ""
