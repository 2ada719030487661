"""Which nodes a daemon set is for, by what its template and the nodes say."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplateSpec
from nodeward.controllers.daemonset.placement import (
    NodeEligibility,
    Placement,
    pinned,
    target_of,
    tolerations_of,
)
from nodeward.rules.affinity import fits_node
from tests.scheduler.running import node

YES, NO, STAY = NodeEligibility(True, True), NodeEligibility(False, False), NodeEligibility(False, True)


def template(**spec: Any) -> PodTemplateSpec:
    return from_tree({"spec": {"containers": [{"name": "a", "image": "a"}], **spec}}, PodTemplateSpec)


def taint(key: str, effect: str, value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, "value": value}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    }


SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}


@pytest.mark.parametrize(
    ("spec", "parts", "eligible"),
    [
        ({}, {}, YES),
        ({"nodeSelector": {"disk": "ssd"}}, {}, NO),
        ({"nodeSelector": {"disk": "ssd"}}, {"labels": {"disk": "ssd"}}, YES),
        ({"affinity": required(SSD)}, {"labels": {"disk": "hdd"}}, NO),
        ({"affinity": required(SSD)}, {"labels": {"disk": "ssd"}}, YES),
        ({"nodeName": "n1"}, {}, YES),
        ({"nodeName": "n2"}, {}, NO),
        ({}, {"taints": [taint("dedicated", "NoSchedule")]}, STAY),
        ({}, {"taints": [taint("dedicated", "NoExecute")]}, NO),
        ({}, {"taints": [taint("dedicated", "PreferNoSchedule")]}, YES),
        (
            {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            {"taints": [taint("dedicated", "NoExecute")]},
            YES,
        ),
        ({}, {"taints": [taint("node.kubernetes.io/not-ready", "NoExecute")]}, YES),
        ({}, {"taints": [taint("node.kubernetes.io/unreachable", "NoExecute")]}, YES),
        # A node that is not ready takes no new daemon pods without being asked, but keeps those it has.
        ({}, {"taints": [taint("node.kubernetes.io/not-ready", "NoSchedule")]}, STAY),
        ({}, {"taints": [taint("node.kubernetes.io/disk-pressure", "NoSchedule")]}, YES),
        ({}, {"taints": [taint("node.kubernetes.io/memory-pressure", "NoSchedule")]}, YES),
        ({}, {"taints": [taint("node.kubernetes.io/pid-pressure", "NoSchedule")]}, YES),
        ({}, {"taints": [taint("node.kubernetes.io/unschedulable", "NoSchedule")]}, YES),
        ({}, {"taints": [taint("node.kubernetes.io/network-unavailable", "NoSchedule")]}, STAY),
        (
            {"hostNetwork": True},
            {"taints": [taint("node.kubernetes.io/network-unavailable", "NoSchedule")]},
            YES,
        ),
    ],
)
def test_a_node_is_for_a_daemon_set_if_selectors_affinity_and_taints_agree(
    spec: dict[str, Any], parts: dict[str, Any], eligible: NodeEligibility
) -> None:
    assert Placement(template(**spec), numeric=True).on(node("n1", **parts)) == eligible


@pytest.mark.parametrize(
    ("value", "numeric", "eligible"), [("900", True, YES), ("700", True, NO), ("900", False, NO)]
)
def test_numbers_are_compared_only_if_this_component_knows_how(
    value: str, numeric: bool, eligible: NodeEligibility
) -> None:
    tolerations = [{"key": "sla", "operator": "Gt", "value": "800", "effect": "NoExecute"}]
    placed = Placement(template(tolerations=tolerations), numeric=numeric)
    assert placed.on(node("n1", taints=[taint("sla", "NoExecute", value)])) == eligible


def test_a_template_s_own_toleration_of_the_same_taint_is_replaced() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    spec = template(tolerations=[{**own, "tolerationSeconds": 5}, {"key": "mine", "operator": "Exists"}]).spec
    found = [(each.key, each.toleration_seconds) for each in tolerations_of(spec)]
    assert found[0] == ("mine", None)
    assert ("node.kubernetes.io/not-ready", None) in found
    assert len(found) == 7


@pytest.mark.parametrize("affinity", [None, required(SSD), {"podAntiAffinity": {}}])
def test_a_daemon_pod_fits_its_own_node_and_no_other(affinity: dict[str, Any] | None) -> None:
    spec = template(**({"affinity": affinity} if affinity else {})).spec
    made = pinned(spec, "n1")
    assert [fits_node(made, node(name, labels={"disk": "ssd"})) for name in ("n1", "n2")] == [True, False]
    assert target_of(Pod(spec=made)) == "n1"
    assert made.affinity is not None
    assert (made.affinity.pod_anti_affinity is not None) == (affinity == {"podAntiAffinity": {}})


def test_a_pod_on_a_node_is_meant_for_that_node_whatever_its_affinity_says() -> None:
    assert target_of(Pod(spec=PodSpec(node_name="n2", affinity=pinned(PodSpec(), "n1").affinity))) == "n2"
    assert target_of(Pod()) is None
