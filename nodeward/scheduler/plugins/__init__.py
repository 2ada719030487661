"""The plugins that are shipped, one file each, in the order they are asked in.

A new plugin is a file and a line here; its class declares everything else. The order and the weights are those of
Kubernetes' default profile.
"""

from typing import Final

from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.plugins.default_binder import DefaultBinder
from nodeward.scheduler.plugins.default_preemption import DefaultPreemption
from nodeward.scheduler.plugins.dynamic_resources import DynamicResources
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
from nodeward.scheduler.plugins.taint_toleration import TaintToleration
from nodeward.scheduler.plugins.volume_binding import VolumeBinding
from nodeward.scheduler.plugins.volume_restrictions import VolumeRestrictions
from nodeward.scheduler.plugins.volume_zone import VolumeZone

REGISTRY: Final[tuple[type[Plugin], ...]] = (
    SchedulingGates,
    PrioritySort,
    NodeName,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    DefaultBinder,
    ImageLocality,
    NodeDeclaredFeatures,
    NodeReadinessGates,
)
