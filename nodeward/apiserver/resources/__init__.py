"""The strategies: how each kind behaves when it is written. A kind that is not listed here uses the plain `Strategy`.

Read by `apiserver/api.py`. A new kind with behaviour of its own is one class and one line in `STRATEGIES`.
"""

from __future__ import annotations

from nodeward.api.scheme import Kind
from nodeward.apiserver.resources.devices import (
    DeviceTaintRules,
    ResourceClaims,
    ResourceClaimTemplates,
    ResourceSlices,
)
from nodeward.apiserver.resources.events import CoreEvents, EventsV1
from nodeward.apiserver.resources.namespaces import Namespaces
from nodeward.apiserver.resources.nodes import Nodes
from nodeward.apiserver.resources.pods import Pods
from nodeward.apiserver.resources.priorities import PriorityClasses
from nodeward.apiserver.resources.services import Services
from nodeward.apiserver.resources.simple import SIMPLE
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.apiserver.resources.trimmed import CSIDrivers, EndpointSlices, ServiceAccounts
from nodeward.apiserver.resources.volumes import PersistentVolumeClaims, PersistentVolumes
from nodeward.apiserver.resources.workloads import (
    CronJobs,
    DaemonSets,
    Deployments,
    Jobs,
    PodTemplates,
    ReplicaSets,
    ReplicationControllers,
    Templated,
)

#: (group, resource) -> its strategy
STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("", "events"): CoreEvents,
    ("", "namespaces"): Namespaces,
    ("", "nodes"): Nodes,
    ("", "persistentvolumeclaims"): PersistentVolumeClaims,
    ("", "persistentvolumes"): PersistentVolumes,
    ("", "pods"): Pods,
    ("", "serviceaccounts"): ServiceAccounts,
    ("", "services"): Services,
    ("", "podtemplates"): PodTemplates,
    ("", "replicationcontrollers"): ReplicationControllers,
    ("apps", "daemonsets"): DaemonSets,
    ("apps", "deployments"): Deployments,
    ("apps", "replicasets"): ReplicaSets,
    ("apps", "statefulsets"): Templated,
    ("batch", "cronjobs"): CronJobs,
    ("batch", "jobs"): Jobs,
    ("discovery.k8s.io", "endpointslices"): EndpointSlices,
    ("events.k8s.io", "events"): EventsV1,
    ("storage.k8s.io", "csidrivers"): CSIDrivers,
    ("scheduling.k8s.io", "priorityclasses"): PriorityClasses,
    ("resource.k8s.io", "devicetaintrules"): DeviceTaintRules,
    ("resource.k8s.io", "resourceclaims"): ResourceClaims,
    ("resource.k8s.io", "resourceclaimtemplates"): ResourceClaimTemplates,
    ("resource.k8s.io", "resourceslices"): ResourceSlices,
    **SIMPLE,
}


def make_strategy(kind: Kind, stored: Kind) -> Strategy:
    """Make the strategy of `kind`, whose objects are stored in the form of `stored` (mostly `kind` itself)."""
    return STRATEGIES.get((kind.group, kind.resource), Strategy)(stored, kind)
