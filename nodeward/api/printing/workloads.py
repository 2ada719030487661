"""Printers of workloads, their scale and revisions, and disruption budgets."""

from __future__ import annotations

from nodeward.api.apps_v1 import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from nodeward.api.autoscaling_v1 import Scale
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.api.printing.cells import NONE, age, container_cells, labels_text, selector_cell, selector_text
from nodeward.api.printing.printer import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cells, Column, Printer


def _replication_controller(obj: ReplicationController, now_ns: int) -> Cells:
    template = obj.spec.template
    return [
        obj.metadata.name,
        obj.spec.replicas or 0,
        obj.status.replicas,
        obj.status.ready_replicas,
        age(obj, now_ns),
        *container_cells(template.spec.containers if template is not None else ()),
        labels_text(obj.spec.selector),
    ]


def _replica_set(obj: ReplicaSet, now_ns: int) -> Cells:
    return [
        obj.metadata.name,
        obj.spec.replicas or 0,
        obj.status.replicas,
        obj.status.ready_replicas,
        age(obj, now_ns),
        *container_cells(obj.spec.template.spec.containers),
        selector_cell(obj.spec.selector),
    ]


def _deployment(obj: Deployment, now_ns: int) -> Cells:
    selector = selector_text(obj.spec.selector)
    return [
        obj.metadata.name,
        f"{obj.status.ready_replicas}/{obj.spec.replicas or 0}",
        obj.status.updated_replicas,
        obj.status.available_replicas,
        age(obj, now_ns),
        *container_cells(obj.spec.template.spec.containers),
        "<invalid>" if selector is None else selector,
    ]


def _stateful_set(obj: StatefulSet, now_ns: int) -> Cells:
    return [
        obj.metadata.name,
        f"{obj.status.ready_replicas}/{obj.spec.replicas or 0}",
        age(obj, now_ns),
        *container_cells(obj.spec.template.spec.containers),
    ]


def _daemon_set(obj: DaemonSet, now_ns: int) -> Cells:
    return [
        obj.metadata.name,
        obj.status.desired_number_scheduled,
        obj.status.current_number_scheduled,
        obj.status.number_ready,
        obj.status.updated_number_scheduled,
        obj.status.number_available,
        labels_text(obj.spec.template.spec.node_selector),
        age(obj, now_ns),
        *container_cells(obj.spec.template.spec.containers),
        selector_cell(obj.spec.selector),
    ]


def _controller_revision(obj: ControllerRevision, now_ns: int) -> Cells:
    owner = next((ref for ref in obj.metadata.owner_references if ref.controller), None)
    controller = NONE
    if owner is not None:
        group = owner.api_version.rpartition("/")[0]
        controller = f"{owner.kind}.{group}".rstrip(".").lower() + f"/{owner.name}"
    return [obj.metadata.name, controller, obj.revision, age(obj, now_ns)]


def _scale(obj: Scale, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.spec.replicas, obj.status.replicas, age(obj, now_ns)]


def _disruption_budget(obj: PodDisruptionBudget, now_ns: int) -> Cells:
    least, most = obj.spec.min_available, obj.spec.max_unavailable
    return [
        obj.metadata.name,
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        obj.status.disruptions_allowed,
        age(obj, now_ns),
    ]


_DESIRED = Column("Desired", "integer", description="Pods that should exist.")
_CURRENT = Column("Current", "integer", description="Pods that exist.")
_READY = Column("Ready", "integer", description="Pods that are ready.")
_READY_OF = Column("Ready", description="Ready pods of the desired ones.")
_WIDE = (CONTAINERS, IMAGES, SELECTOR)

REPLICATION_CONTROLLER = Printer((NAME, _DESIRED, _CURRENT, _READY, AGE, *_WIDE), _replication_controller)
REPLICA_SET = Printer((NAME, _DESIRED, _CURRENT, _READY, AGE, *_WIDE), _replica_set)
DEPLOYMENT = Printer(
    (
        NAME,
        _READY_OF,
        Column("Up-to-date", description="Pods made from the current template."),
        Column("Available", description="Pods that have been ready for long enough."),
        AGE,
        *_WIDE,
    ),
    _deployment,
)
STATEFUL_SET = Printer((NAME, _READY_OF, AGE, CONTAINERS, IMAGES), _stateful_set)
DAEMON_SET = Printer(
    (
        NAME,
        Column("Desired", "integer", description="Nodes that should run the pod."),
        Column("Current", "integer", description="Nodes that should run the pod and do."),
        Column("Ready", "integer", description="Nodes on which the pod is ready."),
        Column("Up-to-date", "integer", description="Nodes that run the pod from the current template."),
        Column("Available", "integer", description="Nodes on which the pod has been ready for long enough."),
        Column("Node Selector", description="Labels of the nodes that should run the pod."),
        AGE,
        *_WIDE,
    ),
    _daemon_set,
)
CONTROLLER_REVISION = Printer(
    (
        NAME,
        Column("Controller", description="Object whose state this is."),
        Column("Revision", description="Number of the state; a larger one is newer."),
        AGE,
    ),
    _controller_revision,
)
SCALE = Printer(
    (
        Column("Name", description="Name of the scaled object."),
        Column("Desired", "integer", description="Instances that should exist."),
        Column("Available", "integer", description="Instances that exist."),
        AGE,
    ),
    _scale,
)
POD_DISRUPTION_BUDGET = Printer(
    (
        NAME,
        Column("Min Available", description="Pods that must stay available."),
        Column("Max Unavailable", description="Pods that may be unavailable."),
        Column("Allowed Disruptions", "integer", description="Pods that may be evicted now."),
        AGE,
    ),
    _disruption_budget,
)
