"""The plugins that are shipped, one file each, in the order they are asked in.

A new plugin is a file and a line here. The order and the weights are those of Kubernetes' default profile.
"""

from typing import Final

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.scheduler.plugins import node_volume_limits, volume_binding, volume_restrictions, volume_zone
from nodeward.scheduler.plugins.default_binder import DefaultBinder
from nodeward.scheduler.plugins.default_preemption import DefaultPreemption
from nodeward.scheduler.plugins.image_locality import ImageLocality
from nodeward.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from nodeward.scheduler.plugins.node_affinity import NodeAffinity
from nodeward.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from nodeward.scheduler.plugins.node_name import NodeName
from nodeward.scheduler.plugins.node_ports import NodePorts
from nodeward.scheduler.plugins.node_readiness_gates import NodeReadinessGates
from nodeward.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from nodeward.scheduler.plugins.node_resources_fit import NodeResourcesFit
from nodeward.scheduler.plugins.node_unschedulable import NodeUnschedulable
from nodeward.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from nodeward.scheduler.plugins.pod_topology_spread import PodTopologySpread
from nodeward.scheduler.plugins.priority_sort import PrioritySort
from nodeward.scheduler.plugins.scheduling_gates import SchedulingGates
from nodeward.scheduler.plugins.setting import Setting, Shipped
from nodeward.scheduler.plugins.spread_constraints import KINDS as SELECTING_KINDS
from nodeward.scheduler.plugins.taint_toleration import TaintToleration
from nodeward.scheduler.plugins.volume_binding import VolumeBinding
from nodeward.scheduler.plugins.volume_restrictions import VolumeRestrictions
from nodeward.scheduler.plugins.volume_zone import VolumeZone

REGISTRY: Final = (
    Shipped("SchedulingGates", lambda _: SchedulingGates()),
    Shipped("PrioritySort", lambda _: PrioritySort()),
    Shipped("NodeName", lambda _: NodeName()),
    Shipped("NodeUnschedulable", NodeUnschedulable),
    Shipped("TaintToleration", TaintToleration, weight=3),
    Shipped("NodeAffinity", NodeAffinity, weight=2),
    Shipped("NodePorts", lambda _: NodePorts()),
    Shipped("NodeResourcesFit", NodeResourcesFit, weight=1),
    Shipped("VolumeRestrictions", VolumeRestrictions, kinds=volume_restrictions.KINDS),
    Shipped("NodeVolumeLimits", NodeVolumeLimits, kinds=node_volume_limits.KINDS),
    Shipped("VolumeBinding", VolumeBinding, kinds=volume_binding.KINDS),
    Shipped("VolumeZone", VolumeZone, kinds=volume_zone.KINDS),
    Shipped("PodTopologySpread", PodTopologySpread, weight=2, kinds=SELECTING_KINDS),
    Shipped("InterPodAffinity", InterPodAffinity, weight=2, kinds=(Namespace,)),
    Shipped("DefaultPreemption", DefaultPreemption, kinds=(PodDisruptionBudget,)),
    Shipped("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocation, weight=1),
    Shipped("DefaultBinder", DefaultBinder),
    Shipped("ImageLocality", lambda _: ImageLocality(), weight=1),
    Shipped("NodeDeclaredFeatures", NodeDeclaredFeatures, gate="NodeDeclaredFeatures"),
    Shipped("NodeReadinessGates", NodeReadinessGates, gate="NodeReadinessGates"),
)

__all__ = ["REGISTRY", "Setting", "Shipped"]
