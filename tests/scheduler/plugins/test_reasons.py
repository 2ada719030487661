"""What plugins say when a pod does not fit, word for word, and whether preemption could help."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.features.gates import Gates
from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.plugins.priority_sort import PrioritySort
from nodeward.scheduler.plugins.scheduling_gates import SchedulingGates
from nodeward.scheduler.plugins.taint_toleration import TaintToleration
from tests.scheduler.cache.objects import new_table, node, pod
from tests.scheduler.plugins import profile

_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}


def _by_name(*terms: list[str]) -> dict[str, Any]:
    wishes = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in term]}
        for term in terms
    ]
    required = {"nodeSelectorTerms": wishes}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def judged(view: PodView, **about: Any) -> Status:
    """What is said of the one node there is, which is called `n`."""
    table = new_table()
    labels, status = about.pop("labels", {"zone": "a"}), about.pop("status", {})
    table.upsert_node(node("n", labels=labels, status=status, **about))
    table.assume(pod("old", requests={"cpu": "3"}, ports=[{"containerPort": 1, "hostPort": 80}]), "n")
    said = PodClasses(table, profile.plugins(), profile.WEIGHTS).explain(view)
    return said.rejected["n"]


_MOUNT = {
    "initContainers": [
        {
            "name": "i",
            "image": "i",
            "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}],
        }
    ]
}


@pytest.mark.parametrize(
    ("spec", "about", "plugin", "code", "reason"),
    [
        (
            {"nodeName": "other"},
            {},
            "NodeName",
            Code.UNRESOLVABLE,
            "node(s) didn't satisfy plugin(s) [NodeName]",
        ),
        ({}, {"unschedulable": True}, "NodeUnschedulable", Code.UNRESOLVABLE, "node(s) were unschedulable"),
        (
            {"tolerations": [{"key": "sla", "operator": "Gt", "value": "99"}]},
            {"taints": [{"key": "sla", "value": "99", "effect": "NoExecute"}]},
            "TaintToleration",
            Code.UNRESOLVABLE,
            "node(s) had untolerated taint(s)",
        ),
        (
            {"nodeSelector": {"zone": "b"}},
            {},
            "NodeAffinity",
            Code.UNRESOLVABLE,
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _ZONE}}},
            {},
            "NodeAffinity",
            Code.UNRESOLVABLE,
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {"affinity": _by_name(["n", "m"])},
            {},
            "NodeAffinity",
            Code.UNRESOLVABLE,
            "pod affinity terms conflict",
        ),
        (
            {"affinity": _by_name(["m"])},
            {},
            "NodeAffinity",
            Code.UNRESOLVABLE,
            "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        ),
        (
            {"ports": [{"containerPort": 1, "hostPort": 80, "hostIP": "10.0.0.1"}]},
            {},
            "NodePorts",
            Code.UNSCHEDULABLE,
            "node(s) didn't have free ports for the requested pod ports",
        ),
        ({"requests": {"cpu": "2"}}, {}, "NodeResourcesFit", Code.UNSCHEDULABLE, "Insufficient cpu"),
        ({"requests": {"memory": "9Gi"}}, {}, "NodeResourcesFit", Code.UNRESOLVABLE, "Insufficient memory"),
        ({}, {"allocatable": {"pods": "1"}}, "NodeResourcesFit", Code.UNSCHEDULABLE, "Too many pods"),
        (
            {"requests": {"example.com/gpu": "1"}},
            {},
            "NodeResourcesFit",
            Code.UNRESOLVABLE,
            "Insufficient example.com/gpu",
        ),
        (
            _MOUNT,
            {},
            "NodeDeclaredFeatures",
            Code.UNRESOLVABLE,
            "node(s) did not match node declared features: VolumeBindMountOptions",
        ),
        (
            {},
            {"readinessGates": [{"conditionType": "net", "timeoutSeconds": 9}]},
            "NodeReadinessGates",
            Code.UNRESOLVABLE,
            "node(s) had unsatisfied readiness gates: Ready, net",
        ),
    ],
)
def test_the_reason_is_the_one_users_know(
    spec: dict[str, Any], about: dict[str, Any], plugin: str, code: Code, reason: str
) -> None:
    assert judged(pod("p", **spec), **about) == Status(code, (reason,), plugin)


def test_all_that_is_lacking_is_named_in_one_order() -> None:
    asked = {"example.com/gpu": "1", "memory": "9Gi", "ephemeral-storage": "1", "cpu": "2"}
    status = judged(pod("p", requests=asked), allocatable={"pods": "1", "cpu": "4", "memory": "8Gi"})
    assert status.reasons == (
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/gpu",
    )


def test_with_the_gate_off_numeric_tolerations_match_nothing() -> None:
    plugin = TaintToleration(profile.context(gates=Gates.of("1.37")))
    table = new_table(numeric=False)
    taint = {"key": "sla", "value": "100", "effect": "NoSchedule"}
    row = table.upsert_node(node("n", taints=[taint]))
    view = pod("p", tolerations=[{"key": "sla", "operator": "Gt", "value": "99"}])
    classes = PodClasses(table, [plugin], {})
    assert classes.choose(view) is None
    assert plugin.filter(classes.cycle(view), view, table.view(row)).code is Code.UNRESOLVABLE


def test_a_node_whose_soft_taint_is_tolerated_is_preferred() -> None:
    table = new_table()
    for name, value in (("bad", "5"), ("good", "900"), ("worse", "x")):
        taint = {"key": "sla", "value": value, "effect": "PreferNoSchedule"}
        table.upsert_node(node(name, taints=[taint]))
    view = pod("p", tolerations=[{"key": "sla", "operator": "Gt", "value": "99"}])
    assert PodClasses(table, profile.plugins(), profile.WEIGHTS).choose(view) == table.row_of("good")


def test_gated_pods_do_not_enter_the_queue() -> None:
    plugin = SchedulingGates(profile.context())
    gated = pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}])
    assert plugin.pre_enqueue(gated).reasons == ("waiting for scheduling gates: [a b]",)
    assert plugin.pre_enqueue(pod("p")).is_success


def test_the_higher_priority_goes_first_and_then_the_older() -> None:
    class Waiting:
        def __init__(self, priority: int, timestamp: float) -> None:
            self.pod = pod("p", priority=priority)
            self.timestamp = timestamp

    less = PrioritySort(profile.context()).less
    assert less(Waiting(5, 9), Waiting(1, 1))
    assert less(Waiting(5, 1), Waiting(5, 2))
    assert not less(Waiting(5, 2), Waiting(5, 1))


def test_the_registry_calls_every_plugin_by_its_name() -> None:
    assert [each.name for each in REGISTRY] == [plugin.name for plugin in profile.plugins()]
