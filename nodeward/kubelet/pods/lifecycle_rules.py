"""What a node decides for all its pods alike: gates, addresses, and how patient it is.

In come the gates, the node's addresses and what the kubelet configuration says; the lives of pods only read it, so
one object serves all pods of a node, and all nodes of a pool that have no address of their own.

What must stay true: frozen; gates are asked once, here, since a fleet asks them a million times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from nodeward.base.duration import MINUTE_NS, SECOND_NS
from nodeward.features.gates import Gates
from nodeward.machinery.backoff import Curve

#: A start that failed for another reason than its image is tried again after this.
RETRY_NS: Final = 10 * SECOND_NS
#: What happened is shown this long before the waiting for the next try is.
NOTICE_NS: Final = 2 * SECOND_NS
#: A container that ran this long is not crashing: the next failure counts as the first.
STABLE_NS: Final = 10 * MINUTE_NS
#: No container is stopped with less, whatever is left of the grace period.
LEAST_GRACE_SECONDS: Final = 2
#: Termination messages of all containers of a pod together, in bytes.
MESSAGE_BYTES: Final = 12 * 1024

_IMAGE_CURVE: Final = Curve(initial=10.0, cap=300.0)


@dataclass(frozen=True, slots=True)
class LifecycleRules:
    """The rules of one node for the lives of its pods."""

    gates: Gates
    #: the node's addresses, first the one of the preferred family
    host_ips: tuple[str, ...] = ()
    #: what container ids begin with in the status ("containerd" gives `containerd://...`); empty: ids are whole
    runtime_type: str = ""
    #: `crashLoopBackOff.maxContainerRestartPeriod` of the configuration; None: it does not say
    max_restart_seconds: float | None = None
    crash_curve: Curve = field(init=False)
    image_curve: Curve = field(init=False, default=_IMAGE_CURVE)
    has_restart_rules: bool = field(init=False)
    has_restart_all: bool = field(init=False)
    has_sandbox_condition: bool = field(init=False)
    has_generation: bool = field(init=False)
    has_container_resources: bool = field(init=False)
    has_pod_resources: bool = field(init=False)
    #: init containers that end can be resized while they run
    has_init_resize: bool = field(init=False)
    has_recursive_read_only: bool = field(init=False)
    #: images are checked against the pod's credentials, which the event about a present image says
    has_image_checks: bool = field(init=False)
    #: readiness is proven anew after a restart of the agent
    forgets_readiness: bool = field(init=False)

    def __post_init__(self) -> None:
        on = self.gates.enabled
        initial, cap = 10.0, 300.0
        if on("ReduceDefaultCrashLoopBackOffDecay"):
            initial, cap = 1.0, 60.0
        if self.max_restart_seconds is not None and on("KubeletCrashLoopBackOffMax"):
            cap = self.max_restart_seconds
        made = {
            "crash_curve": Curve(initial=min(initial, cap), cap=cap),
            "has_restart_rules": on("ContainerRestartRules"),
            "has_restart_all": on("ContainerRestartRules") and on("RestartAllContainersOnContainerExits"),
            "has_sandbox_condition": on("PodReadyToStartContainersCondition"),
            "has_generation": on("PodObservedGenerationTracking"),
            "has_container_resources": on("InPlacePodVerticalScaling"),
            "has_pod_resources": on("InPlacePodLevelResourcesVerticalScaling"),
            "has_init_resize": on("InPlacePodVerticalScalingInitContainers"),
            "has_recursive_read_only": on("RecursiveReadOnlyMounts"),
            "has_image_checks": on("KubeletEnsureSecretPulledImages"),
            "forgets_readiness": on("ChangeContainerStatusOnKubeletRestart"),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def container_id(self, bare: str) -> str:
        """A container's id as the status shows it."""
        return f"{self.runtime_type}://{bare}" if self.runtime_type and bare else bare
