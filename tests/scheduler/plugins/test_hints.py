"""Which events wake a pod that a plugin rejected, and which leave it alone."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from nodeward.scheduler.framework.pod import PodView
from tests.scheduler.cache.objects import node, pod
from tests.scheduler.plugins import profile

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
PLUGINS: dict[str, Any] = {plugin.name: plugin for plugin in profile.plugins()}


def woken(name: str, resource: Resource, action: Action, view: PodView, old: Any, new: Any) -> QueueingHint:
    """What the plugin makes of an event; one it did not register leaves the pod alone."""
    for each in PLUGINS[name].events_to_register():
        if each.event.covers(ClusterEvent(resource, action)):
            return QUEUE if each.hint is None else QueueingHint(each.hint(view, old, new))
    return SKIP


def on_node(name: str, action: Action, view: PodView, old: Node | None, new: Node) -> QueueingHint:
    return woken(name, Resource.NODE, action, view, old, new)


PLAIN, CORDONED = node("n"), node("n", unschedulable=True)
WEB = {"key": "dedicated", "value": "web", "effect": "NoSchedule"}
SLOW, FAST = ({"key": "sla", "value": value, "effect": "NoSchedule"} for value in ("5", "900"))
GATE = [{"conditionType": "net", "timeoutSeconds": 5}]
READY, NET = {"type": "Ready", "status": "True"}, {"type": "net", "status": "True"}
FEATURE = "VolumeBindMountOptions"
MOUNT = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
NEEDS = pod("p", initContainers=[{"name": "i", "image": "i", "volumeMounts": [MOUNT]}])


def gated(*conditions: Any) -> Node:
    return node("n", readinessGates=GATE, status={"conditions": list(conditions)})


LATE = {"type": "net", "status": "Unknown", "reason": "TimeoutExceeded"}
TOLERANT = pod("p", tolerations=[{"key": "dedicated", "operator": "Exists"}])


def failing(condition: Any = None, *taints: Any) -> Node:
    """A ready node whose gate asks for the taint WEB when its time is over."""
    gate = {**GATE[0], "failureAction": "Taint", "readinessTaint": WEB}
    conditions = [READY] if condition is None else [READY, condition]
    return node("n", readinessGates=[gate], taints=list(taints), status={"conditions": conditions})


def declaring(*features: str) -> Node:
    return node("n", status={"declaredFeatures": list(features)})


@pytest.mark.parametrize(
    ("plugin", "action", "view", "old", "new", "hint"),
    [
        ("NodeName", Action.ADD, pod("p", nodeName="n"), None, PLAIN, QUEUE),
        ("NodeUnschedulable", Action.ADD, pod("p"), None, PLAIN, QUEUE),
        ("NodeUnschedulable", Action.ADD, pod("p"), None, CORDONED, SKIP),
        ("NodeUnschedulable", Action.UPDATE_NODE_TAINT, pod("p"), CORDONED, PLAIN, QUEUE),
        ("NodeUnschedulable", Action.UPDATE_NODE_TAINT, pod("p"), PLAIN, PLAIN, SKIP),
        ("TaintToleration", Action.ADD, pod("p"), None, PLAIN, QUEUE),
        ("TaintToleration", Action.ADD, pod("p"), None, node("n", taints=[WEB]), SKIP),
        ("TaintToleration", Action.UPDATE_NODE_TAINT, pod("p"), node("n", taints=[WEB]), PLAIN, QUEUE),
        ("TaintToleration", Action.UPDATE_NODE_TAINT, pod("p"), PLAIN, PLAIN, SKIP),
        (
            "TaintToleration",
            Action.UPDATE_NODE_TAINT,
            pod("p", tolerations=[{"key": "sla", "operator": "Gt", "value": "99"}]),
            node("n", taints=[SLOW]),
            node("n", taints=[FAST]),
            QUEUE,
        ),
        (
            "NodeAffinity",
            Action.UPDATE_NODE_LABEL,
            pod("p", nodeSelector={"zone": "a"}),
            PLAIN,
            node("n", labels={"zone": "a"}),
            QUEUE,
        ),
        (
            "NodeAffinity",
            Action.UPDATE_NODE_LABEL,
            pod("p", nodeSelector={"zone": "a"}),
            node("n", labels={"zone": "a"}),
            node("n", labels={"zone": "a", "disk": "b"}),
            SKIP,
        ),
        ("NodeAffinity", Action.ADD, pod("p", nodeSelector={"zone": "a"}), None, PLAIN, SKIP),
        ("NodePorts", Action.ADD, pod("p"), None, PLAIN, QUEUE),
        ("NodeResourcesFit", Action.ADD, pod("p", requests={"cpu": "4"}), None, PLAIN, QUEUE),
        ("NodeResourcesFit", Action.ADD, pod("p", requests={"cpu": "5"}), None, PLAIN, SKIP),
        (
            "NodeResourcesFit",
            Action.UPDATE_NODE_ALLOCATABLE,
            pod("p", requests={"cpu": "1"}),
            node("n", allocatable={"cpu": "2", "pods": "9"}),
            node("n", allocatable={"cpu": "3", "pods": "9"}),
            QUEUE,
        ),
        (
            "NodeResourcesFit",
            Action.UPDATE_NODE_ALLOCATABLE,
            pod("p", requests={"cpu": "1"}),
            node("n", allocatable={"cpu": "2", "pods": "9"}),
            node("n", allocatable={"cpu": "2", "memory": "3Gi", "pods": "9"}),
            SKIP,
        ),
        ("NodeDeclaredFeatures", Action.ADD, NEEDS, None, declaring(FEATURE), QUEUE),
        ("NodeDeclaredFeatures", Action.ADD, NEEDS, None, PLAIN, SKIP),
        (
            "NodeDeclaredFeatures",
            Action.UPDATE_NODE_DECLARED_FEATURE,
            NEEDS,
            PLAIN,
            declaring(FEATURE),
            QUEUE,
        ),
        ("NodeDeclaredFeatures", Action.UPDATE_NODE_DECLARED_FEATURE, NEEDS, PLAIN, declaring("Other"), SKIP),
        ("NodeDeclaredFeatures", Action.UPDATE_NODE_CONDITION, NEEDS, PLAIN, declaring(FEATURE), SKIP),
        (
            "NodeReadinessGates",
            Action.UPDATE_NODE_CONDITION,
            pod("p"),
            gated(READY),
            gated(READY, NET),
            QUEUE,
        ),
        ("NodeReadinessGates", Action.UPDATE_NODE_CONDITION, pod("p"), gated(NET), gated(NET), SKIP),
        ("NodeReadinessGates", Action.UPDATE_NODE_READINESS_GATE, pod("p"), gated(READY), PLAIN, QUEUE),
        ("NodeReadinessGates", Action.ADD, pod("p"), None, gated(READY), SKIP),
        ("NodeReadinessGates", Action.UPDATE_NODE_CONDITION, pod("p"), failing(), failing(LATE), SKIP),
        ("NodeReadinessGates", Action.UPDATE_NODE_TAINT, pod("p"), failing(LATE), failing(LATE, WEB), SKIP),
        ("NodeReadinessGates", Action.UPDATE_NODE_TAINT, TOLERANT, failing(LATE), failing(LATE, WEB), QUEUE),
        ("NodeReadinessGates", Action.UPDATE_NODE_TAINT, TOLERANT, failing(NET), failing(LATE, WEB), SKIP),
        (
            "NodeReadinessGates",
            Action.UPDATE_NODE_CONDITION,
            pod("p"),
            failing(LATE, WEB),
            failing(NET, WEB),
            SKIP,
        ),
        ("NodeReadinessGates", Action.UPDATE_NODE_TAINT, pod("p"), failing(NET, WEB), failing(NET), QUEUE),
    ],
)
def test_a_change_of_a_node_wakes_those_it_helps(
    plugin: str, action: Action, view: PodView, old: Node | None, new: Node, hint: QueueingHint
) -> None:
    assert on_node(plugin, action, view, old, new) is hint


HTTP = [{"containerPort": 80, "hostPort": 80}]


@pytest.mark.parametrize(
    ("plugin", "action", "view", "old", "new", "hint"),
    [
        ("NodePorts", Action.DELETE, pod("p", ports=HTTP), pod("o", ports=HTTP, nodeName="n"), None, QUEUE),
        ("NodePorts", Action.DELETE, pod("p", ports=HTTP), pod("o", nodeName="n"), None, SKIP),
        ("NodePorts", Action.DELETE, pod("p", ports=HTTP), pod("o", ports=HTTP), None, SKIP),
        ("NodeResourcesFit", Action.DELETE, pod("p"), pod("o", nodeName="n"), None, QUEUE),
        ("NodeResourcesFit", Action.DELETE, pod("p"), pod("o"), None, SKIP),
        (
            "NodeResourcesFit",
            Action.UPDATE_POD_SCALE_DOWN,
            pod("p", requests={"cpu": "1"}),
            pod("o", requests={"cpu": "2"}, nodeName="n"),
            pod("o", requests={"cpu": "1"}, nodeName="n"),
            QUEUE,
        ),
        (
            "NodeResourcesFit",
            Action.UPDATE_POD_SCALE_DOWN,
            pod("p", requests={"memory": "1Gi"}),
            pod("o", requests={"cpu": "2"}, nodeName="n"),
            pod("o", requests={"cpu": "1"}, nodeName="n"),
            SKIP,
        ),
    ],
)
def test_a_change_of_a_running_pod_wakes_those_it_helps(
    plugin: str, action: Action, view: PodView, old: PodView, new: PodView | None, hint: QueueingHint
) -> None:
    after = new.pod if new is not None else None
    assert woken(plugin, Resource.ASSIGNED_POD, action, view, old.pod, after) is hint


CORDON_TOLERATED = pod("p", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])


@pytest.mark.parametrize(
    ("plugin", "action", "old", "new", "hint"),
    [
        ("NodeUnschedulable", Action.UPDATE_POD_TOLERATION, pod("p"), CORDON_TOLERATED, QUEUE),
        ("NodeUnschedulable", Action.UPDATE_POD_TOLERATION, pod("p"), pod("p"), SKIP),
        ("TaintToleration", Action.UPDATE_POD_TOLERATION, pod("p"), CORDON_TOLERATED, QUEUE),
        ("NodeReadinessGates", Action.UPDATE_POD_TOLERATION, pod("p"), TOLERANT, QUEUE),
        ("NodeResourcesFit", Action.UPDATE_POD_SCALE_DOWN, pod("p"), pod("p"), QUEUE),
        ("NodeDeclaredFeatures", Action.UPDATE_OTHER, NEEDS, pod("p"), QUEUE),
        ("NodeDeclaredFeatures", Action.UPDATE_POD_LABEL, NEEDS, NEEDS, SKIP),
        ("SchedulingGates", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, pod("p"), pod("p"), QUEUE),
        ("SchedulingGates", Action.UPDATE_POD_LABEL, pod("p"), pod("p"), SKIP),
    ],
)
def test_a_change_of_the_pod_itself_wakes_it_if_it_matters(
    plugin: str, action: Action, old: PodView, new: PodView, hint: QueueingHint
) -> None:
    assert woken(plugin, Resource.UNSCHEDULED_POD, action, new, old.pod, new.pod) is hint
