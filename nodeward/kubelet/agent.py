"""One node as its agent knows it: what it is, the object the API has, and the pods it takes care of.

Plain state without tasks or sockets, a few kilobytes each; the `Host` drives it, alone or with thousands of others.
A restart of a kubelet (an upgrade, a changed gate) is another `Agent` for the same name: nothing of the old one but
what the disk, the runtime and the API know is in it.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.kubelet.allocation import Allocation
from nodeward.kubelet.container_manager import ContainerManager
from nodeward.kubelet.dra.dra_manager import DRAManager
from nodeward.kubelet.node.features import DeclaredFeatures
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.lease import LeaseCore
from nodeward.kubelet.node.node_conditions import ALL_WELL, NodeFacts
from nodeward.kubelet.node.node_core import NodeCore
from nodeward.kubelet.node.specification import NodeSpecification
from nodeward.kubelet.node_services import NodeServices
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.pods.probing import ProbePlan, ProbeWorker


class ManagedPod:
    """One pod an agent takes care of, and what was written about it."""

    __slots__ = ("agent", "is_to_be_deleted", "life", "plans", "sent", "sent_version", "wake_ns", "workers")

    def __init__(self, agent: Agent, life: PodLifecycle) -> None:
        self.agent: Final = agent
        self.life: Final = life
        #: the status last written, until the API shows it or a later one; and the version that made
        self.sent: PodStatus | None = None
        self.sent_version = 0
        self.is_to_be_deleted = False
        #: when it is looked at again (its own deadlines), 0: not
        self.wake_ns = 0
        self.plans: tuple[ProbePlan, ...] = ()
        self.workers: tuple[ProbeWorker, ...] = ()

    @property
    def uid(self) -> str:
        return self.life.pod.metadata.uid


class Agent:
    """One node of one kubelet run."""

    __slots__ = (
        "allocation",
        "check_ns",
        "container_manager",
        "core",
        "dra",
        "facts",
        "failures",
        "features",
        "is_cut_off",
        "is_registered",
        "lease",
        "lease_ns",
        "measured_gates",
        "node",
        "outcomes",
        "pending_resizes",
        "pods",
        "retry_resizes_ns",
        "rules",
        "services",
        "specification",
    )

    def __init__(
        self,
        specification: NodeSpecification,
        features: DeclaredFeatures,
        rules: LifecycleRules,
        started_ns: int,
        services: NodeServices,
        container_manager: ContainerManager,
        dra: DRAManager,
    ) -> None:
        """`started_ns` is of the monotonic clock."""
        self.specification: Final = specification
        self.features: Final = features
        self.rules: Final = rules
        self.services: Final = services
        self.container_manager: Final = container_manager
        self.dra: Final = dra
        self.core: Final = NodeCore(specification, features, started_ns)
        self.lease: Final = LeaseCore(specification.name, specification.settings.lease_seconds, started_ns)
        self.allocation: Final = Allocation(specification, features, services, container_manager)
        #: by uid
        self.pods: Final[dict[str, ManagedPod]] = {}
        #: as the API has it; None until it is known there
        self.node: Node | None = None
        self.is_registered = False
        #: nothing gets through to the API server, and nothing back
        self.is_cut_off = False
        self.facts: NodeFacts = ALL_WELL
        #: results of gates' probes not yet looked at
        self.outcomes: dict[str, ProbeOutcome] = {}
        self.failures = 0
        #: uids of pods whose resize is to be tried, in order; and when all are tried again at the latest (monotonic)
        self.pending_resizes: tuple[str, ...] = ()
        self.retry_resizes_ns = 0
        #: the readiness gates that have a gauge
        self.measured_gates: tuple[str, ...] = ()
        #: when node and lease are looked at next (monotonic); an older deadline that comes up means nothing
        self.check_ns = 0
        self.lease_ns = 0

    @property
    def name(self) -> str:
        return self.specification.name

    def stop(self) -> None:
        """The kubelet stops: containers run on, claims stay prepared, and no more is done for them."""
        self.container_manager.stop()
        self.dra.stop()
