"""The kinds this system serves: one line each, in the order discovery lists the groups.

A `Kind` ties a struct type to its names in URLs, tables and discovery. Routes, discovery, OpenAPI, storage keys and
printing all follow from this list; a kind without behaviour of its own needs nothing but its line here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from nodeward.api import apps_v1 as apps
from nodeward.api import authentication_v1 as authentication
from nodeward.api import authorization_v1 as authorization
from nodeward.api import autoscaling_v1 as autoscaling
from nodeward.api import batch_v1 as batch
from nodeward.api import coordination_v1 as coordination
from nodeward.api import discovery_v1 as discovery
from nodeward.api import events_v1 as events
from nodeward.api import node_v1 as runtime
from nodeward.api import policy_v1 as policy
from nodeward.api import rbac_v1 as rbac
from nodeward.api import readiness_v1alpha1 as readiness
from nodeward.api import resource_v1 as resource
from nodeward.api import scheduling_v1 as scheduling
from nodeward.api import storage_v1 as storage
from nodeward.api.core_v1 import cluster, node, pod, service
from nodeward.api.core_v1 import storage as volumes
from nodeward.api.errors import qualified
from nodeward.api.fields import KubeTop

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CHANGE = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource, as `pods/NAME/binding`."""

    name: str
    verbs: tuple[str, ...]
    #: what travels; None: the parent's own kind
    type: type[KubeTop] | None = None
    group: str = ""
    version: str = ""
    kind: str = ""
    #: its answer is no object but a stream of bytes
    is_stream: bool = False


STATUS = Subresource("status", _CHANGE)
SCALE = Subresource("scale", _CHANGE, autoscaling.Scale, "autoscaling", "v1", "Scale")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object in one version."""

    group: str
    version: str
    name: str
    type: type[KubeTop]
    resource: str
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    #: the resource in whose form objects of this kind are stored, if that is another one (events.k8s.io)
    stored_as: str = ""

    @property
    def singular(self) -> str:
        return self.name.lower()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_resource(self) -> str:
        return qualified(self.group, self.resource)

    @property
    def is_stored(self) -> bool:
        """Whether objects of this kind are stored; reviews, for example, are only answered."""
        return "get" in self.verbs

    @property
    def has_status(self) -> bool:
        return any(sub.name == "status" for sub in self.subresources)

    def subresource(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, of one object, or of a subresource."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if self.is_namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.resource)
        parts.extend(part for part in (name, subresource) if part)
        return "/".join(parts)

    def __repr__(self) -> str:
        return f"Kind({self.api_version}, {self.name})"


def _kind(group: str, name: str, type_: type[KubeTop], resource: str = "", **facts: Any) -> Kind:
    for plural in ("short_names", "categories"):
        if isinstance(facts.get(plural), str):
            facts[plural] = tuple(facts[plural].split())
    version = facts.pop("version", "v1")
    return Kind(group, version, name, type_, resource or f"{name.lower()}s", **facts)


_CLUSTER: dict[str, Any] = {"is_namespaced": False}
_REVIEW: dict[str, Any] = {"verbs": ("create",)}
_WITH_STATUS: dict[str, Any] = {"subresources": (STATUS,)}
_WORKLOAD: dict[str, Any] = {"subresources": (SCALE, STATUS), "categories": "all"}

_CONNECT = ("create", "get")
_PROXY = Subresource(
    "proxy", ("create", "delete", "get", "patch", "update"), kind="NodeProxyOptions", is_stream=True
)
_POD_SUBRESOURCES = (
    Subresource("attach", _CONNECT, kind="PodAttachOptions", is_stream=True),
    Subresource("binding", ("create",), pod.Binding, kind="Binding"),
    Subresource("ephemeralcontainers", _CHANGE),
    Subresource("eviction", ("create",), policy.Eviction, "policy", "v1", "Eviction"),
    Subresource("exec", _CONNECT, kind="PodExecOptions", is_stream=True),
    Subresource("log", ("get",), is_stream=True),
    Subresource("portforward", _CONNECT, kind="PodPortForwardOptions", is_stream=True),
    Subresource("resize", _CHANGE),
    STATUS,
)
_TOKEN = Subresource(
    "token", ("create",), authentication.TokenRequest, "authentication.k8s.io", "v1", "TokenRequest"
)
_NAMESPACE_VERBS = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

# fmt: off
CORE = (
    _kind("", "Binding", pod.Binding, **_REVIEW),
    _kind("", "ComponentStatus", cluster.ComponentStatus, "componentstatuses", short_names="cs", verbs=("get", "list"), **_CLUSTER),
    _kind("", "ConfigMap", cluster.ConfigMap, short_names="cm"),
    _kind("", "Endpoints", service.Endpoints, "endpoints", short_names="ep"),
    _kind("", "Event", cluster.Event, short_names="ev"),
    _kind("", "LimitRange", cluster.LimitRange, short_names="limits"),
    _kind("", "Namespace", cluster.Namespace, short_names="ns", verbs=_NAMESPACE_VERBS, subresources=(Subresource("finalize", ("update",)), STATUS), **_CLUSTER),
    _kind("", "Node", node.Node, short_names="no", subresources=(_PROXY, STATUS), **_CLUSTER),
    _kind("", "PersistentVolumeClaim", volumes.PersistentVolumeClaim, short_names="pvc", **_WITH_STATUS),
    _kind("", "PersistentVolume", volumes.PersistentVolume, short_names="pv", **_CLUSTER, **_WITH_STATUS),
    _kind("", "Pod", pod.Pod, short_names="po", categories="all", subresources=_POD_SUBRESOURCES),
    _kind("", "PodTemplate", pod.PodTemplate),
    _kind("", "ReplicationController", pod.ReplicationController, short_names="rc", **_WORKLOAD),
    _kind("", "ResourceQuota", cluster.ResourceQuota, short_names="quota", **_WITH_STATUS),
    _kind("", "Secret", cluster.Secret),
    _kind("", "ServiceAccount", cluster.ServiceAccount, short_names="sa", subresources=(_TOKEN,)),
    _kind("", "Service", service.Service, short_names="svc", categories="all", **_WITH_STATUS),
)
APPS = (
    _kind("apps", "ControllerRevision", apps.ControllerRevision),
    _kind("apps", "DaemonSet", apps.DaemonSet, short_names="ds", categories="all", **_WITH_STATUS),
    _kind("apps", "Deployment", apps.Deployment, short_names="deploy", **_WORKLOAD),
    _kind("apps", "ReplicaSet", apps.ReplicaSet, short_names="rs", **_WORKLOAD),
    _kind("apps", "StatefulSet", apps.StatefulSet, short_names="sts", **_WORKLOAD),
)
EVENTS = (_kind("events.k8s.io", "Event", events.Event, short_names="ev", stored_as="events"),)
AUTHENTICATION = (
    _kind("authentication.k8s.io", "SelfSubjectReview", authentication.SelfSubjectReview, **_CLUSTER, **_REVIEW),
    _kind("authentication.k8s.io", "TokenReview", authentication.TokenReview, **_CLUSTER, **_REVIEW),
)
AUTHORIZATION = (
    _kind("authorization.k8s.io", "LocalSubjectAccessReview", authorization.LocalSubjectAccessReview, **_REVIEW),
    _kind("authorization.k8s.io", "SelfSubjectAccessReview", authorization.SelfSubjectAccessReview, **_CLUSTER, **_REVIEW),
    _kind("authorization.k8s.io", "SelfSubjectRulesReview", authorization.SelfSubjectRulesReview, **_CLUSTER, **_REVIEW),
    _kind("authorization.k8s.io", "SubjectAccessReview", authorization.SubjectAccessReview, **_CLUSTER, **_REVIEW),
)
BATCH = (
    _kind("batch", "CronJob", batch.CronJob, short_names="cj", categories="all", **_WITH_STATUS),
    _kind("batch", "Job", batch.Job, categories="all", **_WITH_STATUS),
)
POLICY = (_kind("policy", "PodDisruptionBudget", policy.PodDisruptionBudget, short_names="pdb", **_WITH_STATUS),)
_RBAC = "rbac.authorization.k8s.io"
RBAC = (
    _kind(_RBAC, "ClusterRoleBinding", rbac.ClusterRoleBinding, **_CLUSTER),
    _kind(_RBAC, "ClusterRole", rbac.ClusterRole, **_CLUSTER),
    _kind(_RBAC, "RoleBinding", rbac.RoleBinding),
    _kind(_RBAC, "Role", rbac.Role),
)
STORAGE = (
    _kind("storage.k8s.io", "CSIDriver", storage.CSIDriver, **_CLUSTER),
    _kind("storage.k8s.io", "CSINode", storage.CSINode, **_CLUSTER, **_WITH_STATUS),
    _kind("storage.k8s.io", "CSIStorageCapacity", storage.CSIStorageCapacity, "csistoragecapacities"),
    _kind("storage.k8s.io", "StorageClass", storage.StorageClass, "storageclasses", short_names="sc", **_CLUSTER),
    _kind("storage.k8s.io", "VolumeAttachment", storage.VolumeAttachment, **_CLUSTER, **_WITH_STATUS),
    _kind("storage.k8s.io", "VolumeAttributesClass", storage.VolumeAttributesClass, "volumeattributesclasses", short_names="vac", **_CLUSTER),
)
SCHEDULING = (_kind("scheduling.k8s.io", "PriorityClass", scheduling.PriorityClass, "priorityclasses", short_names="pc", **_CLUSTER),)
COORDINATION = (_kind("coordination.k8s.io", "Lease", coordination.Lease),)
RUNTIME = (_kind("node.k8s.io", "RuntimeClass", runtime.RuntimeClass, "runtimeclasses", **_CLUSTER),)
DISCOVERY = (_kind("discovery.k8s.io", "EndpointSlice", discovery.EndpointSlice),)
RESOURCE = (
    _kind("resource.k8s.io", "DeviceClass", resource.DeviceClass, "deviceclasses", **_CLUSTER),
    _kind("resource.k8s.io", "DeviceTaintRule", resource.DeviceTaintRule, **_CLUSTER, **_WITH_STATUS),
    _kind("resource.k8s.io", "ResourceClaim", resource.ResourceClaim, **_WITH_STATUS),
    _kind("resource.k8s.io", "ResourceClaimTemplate", resource.ResourceClaimTemplate),
    _kind("resource.k8s.io", "ResourceSlice", resource.ResourceSlice, **_CLUSTER),
)
#: Not of Kubernetes itself: as node-readiness-controller's CustomResourceDefinition has it.
READINESS = (
    _kind("readiness.node.x-k8s.io", "NodeReadinessRule", readiness.NodeReadinessRule, version="v1alpha1", short_names="nrr", **_CLUSTER, **_WITH_STATUS),
)
# fmt: on

#: Every kind served, group by group.
KINDS: tuple[Kind, ...] = (
    *CORE, *APPS, *EVENTS, *AUTHENTICATION, *AUTHORIZATION, *BATCH, *POLICY, *RBAC, *STORAGE, *SCHEDULING,
    *COORDINATION, *RUNTIME, *DISCOVERY, *RESOURCE, *READINESS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """A set of kinds, looked up by resource, name or type."""

    kinds: tuple[Kind, ...]
    _by_resource: dict[tuple[str, str, str], Kind] = dataclass_field(default_factory=dict, repr=False)
    _by_name: dict[tuple[str, str], Kind] = dataclass_field(default_factory=dict, repr=False)
    _by_type: dict[type[KubeTop], Kind] = dataclass_field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, kinds: Iterable[Kind] = KINDS) -> Scheme:
        scheme = cls(tuple(kinds))
        for kind in scheme.kinds:
            scheme._by_resource[kind.group, kind.version, kind.resource] = kind
            scheme._by_name[kind.api_version, kind.name] = kind
            scheme._by_type[kind.type] = kind
        return scheme

    def by_resource(self, group: str, version: str, resource: str) -> Kind | None:
        """Return the kind of `("apps", "v1", "deployments")`."""
        return self._by_resource.get((group, version, resource))

    def by_name(self, api_version: str, name: str) -> Kind | None:
        """Return the kind of `("apps/v1", "Deployment")`."""
        return self._by_name.get((api_version, name))

    def by_type(self, type_: type[KubeTop]) -> Kind:
        """Return the kind a struct describes."""
        return self._by_type[type_]

    def groups(self) -> tuple[str, ...]:
        """Return the groups, in the order discovery lists them, core first."""
        return tuple(dict.fromkeys(kind.group for kind in self.kinds))


#: The scheme of everything this system serves. A value, never changed.
SCHEME = Scheme.of()
