"""What a cluster consists of, as values: versions and gates of its parts, and its pools of nodes.

Every part has gates of its own, because in a real cluster every part has its own version: an API server of 1.37, a
scheduler of 1.36 and nodes of 1.35 are one description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from nodeward.api.core_v1.references import Taint
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.features import FRAMEWORK, Framework, Gates
from nodeward.features.gates import parse
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.dra.described_drivers import DriverDescription
from nodeward.kubelet.runtime.behaviour import USUAL, Behaviour
from nodeward.scheduler.settings import SchedulerSettings

RuntimeName = Literal["sim", "process", "cri"]
RUNTIMES: Final[tuple[RuntimeName, ...]] = ("sim", "process", "cri")

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes that are alike. Changing the version or the gates of a pool restarts its kubelets."""

    name: str
    nodes: int = 1
    #: the Kubernetes version of its kubelets, like "1.36"
    version: str = "1.37"
    #: as --feature-gates has them
    feature_gates: str = ""
    runtime: RuntimeName = "sim"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    #: nodes take turns
    zones: tuple[str, ...] = ()
    #: cpu, memory and so on; what is not said is as usual
    capacity: Mapping[str, Quantity] = field(default_factory=dict)
    #: sockets, NUMA nodes and cores of simulated nodes; None: as many single cores as `capacity` says
    cpus: CPUDescription | None = None
    #: fields of a KubeletConfiguration; the gates are those of the pool
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    #: the DRA drivers of simulated nodes
    drivers: tuple[DriverDescription, ...] = ()
    #: how simulated containers behave unless their pod says otherwise
    behaviour: Behaviour = USUAL
    #: how many kubelets an upgrade restarts at a time (0: a tenth of them), and the pause before the next ones
    at_once: int = 0
    pause_ns: int = SECOND_NS

    def gates(self) -> Gates:
        """Of its kubelets."""
        try:
            return Gates.of(self.version, self.feature_gates)
        except ConfigError as error:
            raise ConfigError(f"pool {self.name!r}: {error}") from None

    def kubelet_settings(self) -> KubeletSettings:
        """What its kubelets are told. Raises a ConfigError if that makes no sense with its version and gates."""
        gates = self.gates()
        given = parse(self.feature_gates)
        settings = load_tree(self.kubelet, f"pool {self.name!r}", self.version, given)
        return replace(settings, gates=gates)

    def upgraded(self, version: str = "", feature_gates: str | None = None) -> Pool:
        """The pool with another version, or other gates."""
        kept = self.feature_gates if feature_gates is None else feature_gates
        return replace(self, version=version or self.version, feature_gates=kept)

    def has_same_kubelets(self, other: Pool) -> bool:
        """Whether a kubelet of this pool could belong to the other: number, behaviour and pace are not its own."""
        alike = replace(other, nodes=self.nodes, behaviour=self.behaviour, at_once=0, pause_ns=0)
        return replace(self, at_once=0, pause_ns=0) == alike


@dataclass(frozen=True, slots=True)
class NodeState:
    """What is the matter with one node of a pool."""

    #: its network is gone
    is_cut_off: bool = False
    #: how often it was rebooted
    boots: int = 0


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What a fleet's file says, and the file itself."""

    text: str
    pools: tuple[Pool, ...]
    nodes: Mapping[str, NodeState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """A cluster. Parts that are None are not run."""

    #: of the control plane, unless a part says otherwise
    version: str = "1.37"
    gates: Gates = field(default_factory=lambda: Gates.of("1.37"))
    pools: tuple[Pool, ...] = ()
    #: nodes that can be changed through the API while the cluster runs; besides `pools`, which cannot
    fleet: FleetPlan | None = None
    #: the ConfigMap in kube-system that says which nodes there are; empty: nobody asks
    fleet_map: str = ""
    #: who holds that map, in the words of its Lease: another process must have another name
    fleet_holder: str = "nodeward-fleet"
    #: where the container runtime of `cri` nodes listens
    cri_socket: str = ""
    has_scheduler: bool = True
    scheduler: SchedulerSettings | None = None
    #: the declared features all parts know (KEP-5328)
    features: Framework = FRAMEWORK
    #: the scheduler's and the controllers' own gates; None: as the API server's
    scheduler_gates: Gates | None = None
    controller_gates: Gates | None = None
    has_controllers: bool = True
    #: names as --controllers takes them
    controllers: tuple[str, ...] = ("*",)
