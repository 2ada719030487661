"""What is said about a pod and every node of a cluster."""

from __future__ import annotations

from typing import Any

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.features.declared import Version
from nodeward.features.gates import Gates
from nodeward.scheduler.config import read_scheduler_config
from nodeward.scheduler.explanation import NodeExplanation, PluginRejection, PodExplanation, explain_pod
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.settings import ProfileSettings, default_profile
from tests.scheduler.cache import objects
from tests.scheduler.plugins.profile import GATES

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def explained(
    pod: Pod,
    nodes: list[Node],
    pods: list[Pod] | None = None,
    *,
    profile: ProfileSettings | None = None,
    gates: Gates = GATES,
) -> PodExplanation:
    chosen = profile or default_profile(gates)
    return explain_pod(pod, nodes, pods or [], FixedListers(), chosen, gates, Version.parse("1.37"))


def pod(name: str = "new", **more: Any) -> Pod:
    return objects.pod(name, **more).pod


def profile_of(text: str) -> ProfileSettings:
    (found,) = read_scheduler_config((HEAD + text).encode(), "c.yaml", GATES).profiles
    return found


def by_name(found: PodExplanation) -> dict[str, NodeExplanation]:
    return {node.name: node for node in found.nodes}


def test_every_plugin_that_rejects_a_node_is_named_not_only_the_first() -> None:
    node = objects.node(
        "n",
        allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"},
        unschedulable=True,
        taints=[{"key": "a", "effect": "NoSchedule"}],
    )
    found = explained(pod(requests={"cpu": "2", "memory": "64Mi"}, nodeSelector={"disk": "ssd"}), [node])
    assert by_name(found)["n"].verdicts == (
        PluginRejection("NodeUnschedulable", ("node(s) were unschedulable",), False),
        PluginRejection(
            "TaintToleration",
            ("node(s) had untolerated taint(s)",),
            False,
            ("node(s) had untolerated taint {a: }",),
        ),
        PluginRejection("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), False),
        PluginRejection("NodeResourcesFit", ("Too many pods", "Insufficient cpu"), False),
    )


def test_the_sentence_is_that_of_the_event_with_one_reason_of_each_node() -> None:
    taint = [{"key": "a", "effect": "NoSchedule"}]
    nodes = [
        objects.node("cordoned", unschedulable=True, taints=taint),
        objects.node("tainted", taints=taint),
        objects.node("small", allocatable={"cpu": "1", "memory": "8Gi", "pods": "9"}),
    ]
    found = explained(pod(requests={"cpu": "2"}), nodes)
    assert found.sentence == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable. In detail: 1 node(s) had untolerated taint {a: }."
    )
    assert found.fitting == ()


def test_without_nodes_there_is_nothing_to_explain() -> None:
    assert explained(pod(), []).sentence == "no nodes available to schedule pods"


def test_what_preemption_may_help_with_is_told_from_what_it_may_not() -> None:
    nodes = [objects.node("full"), objects.node("small", allocatable={"cpu": "1", "pods": "9"})]
    tenant = pod("tenant", requests={"cpu": "3"}, nodeName="full")
    found = by_name(explained(pod(requests={"cpu": "2"}), nodes, [tenant]))
    assert [verdict.resolvable for name in ("full", "small") for verdict in found[name].verdicts] == [
        True,
        False,
    ]


def test_nodes_that_fit_come_best_first_with_what_each_plugin_gives_them() -> None:
    nodes = [
        objects.node("busy"),
        objects.node("empty"),
        objects.node("unloved", taints=[{"key": "a", "effect": "PreferNoSchedule"}]),
    ]
    found = explained(pod(requests={"cpu": "1"}), nodes, [pod("t", requests={"cpu": "2"}, nodeName="busy")])
    assert [node.name for node in found.fitting] == ["empty", "busy", "unloved"]
    assert found.sentence == "fits on 3 of 3 nodes, best: empty"
    scores = found.fitting[0].scores
    assert (scores["TaintToleration"], found.fitting[2].scores["TaintToleration"]) == (300, 0)
    assert found.fitting[0].total == sum(scores.values())


def test_a_missing_feature_is_named() -> None:
    mount = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
    container = {"name": "i", "image": "i", "volumeMounts": [mount]}
    found = explained(pod(initContainers=[container]), [objects.node("old")])
    assert found.sentence == (
        "0/1 nodes are available: 1 node(s) did not match node declared features: VolumeBindMountOptions."
    )


def test_a_gate_that_does_not_hold_is_named() -> None:
    node = objects.node("n", readinessGates=[{"conditionType": "example.com/net"}])
    (found,) = explained(pod(), [node]).nodes
    (verdict,) = found.verdicts
    assert verdict.plugin == "NodeReadinessGates"
    assert "example.com/net" in verdict.reasons[0]


def test_a_gate_that_timed_out_names_the_taint_the_node_still_lacks() -> None:
    mark = {"key": "example.com/no-net", "effect": "NoSchedule"}
    gate = {"conditionType": "example.com/net", "readinessTaint": mark}
    late = {"type": "example.com/net", "status": "Unknown", "reason": "TimeoutExceeded"}
    conditions = [{"type": "Ready", "status": "True"}, late]
    node = objects.node("n", readinessGates=[gate], status={"conditions": conditions})
    tolerant = pod(tolerations=[{"key": "example.com/no-net", "operator": "Exists"}])
    assert explained(tolerant, [node]).sentence == (
        "0/1 nodes are available: 1 node(s) had unsatisfied readiness gates: example.com/net (timed out, waiting for "
        "its taint example.com/no-net:NoSchedule)."
    )


def test_a_gated_pod_is_held_and_still_explained() -> None:
    found = explained(pod(schedulingGates=[{"name": "quota"}, {"name": "review"}]), [objects.node("n")])
    assert found.held == (
        PluginRejection("SchedulingGates", ("waiting for scheduling gates: [quota review]",), False),
    )
    assert found.sentence == "fits on 1 of 1 nodes, best: n"


def test_a_pod_that_has_a_node_is_explained_as_if_it_had_none() -> None:
    bound = pod(nodeName="a", requests={"cpu": "3"})
    found = explained(bound, [objects.node("a"), objects.node("b")], [bound])
    assert [node.name for node in found.fitting] == ["a", "b"]


def test_pods_that_ended_take_nothing_and_nominated_ones_do() -> None:
    ended = pod("ended", requests={"cpu": "4"}, nodeName="n", status={"phase": "Succeeded"})
    promised = pod("promised", requests={"cpu": "4"}, priority=5, status={"nominatedNodeName": "n"})
    nodes = [objects.node("n")]
    assert explained(pod(requests={"cpu": "1"}), nodes, [ended]).fitting
    assert not explained(pod(requests={"cpu": "1"}), nodes, [promised]).fitting
    assert explained(pod(requests={"cpu": "1"}, priority=6), nodes, [promised]).fitting


def test_nodes_a_pod_does_not_name_are_rejected_by_the_plugin_that_read_the_name() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    found = explained(pod(affinity={"nodeAffinity": affinity}), [objects.node("a"), objects.node("b")])
    assert by_name(found)["a"].verdicts == (
        PluginRejection("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), False),
    )
    assert by_name(found)["b"].fits


def test_a_pod_rejected_as_such_is_rejected_by_every_node() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}
    }
    found = explained(pod(affinity={"nodeAffinity": affinity}), [objects.node("a"), objects.node("b")])
    assert found.sentence == "0/2 nodes are available: pod affinity terms conflict."
    assert {node.verdicts for node in found.nodes} == {
        (PluginRejection("NodeAffinity", ("pod affinity terms conflict",), False),)
    }


def test_a_profile_decides_who_is_asked() -> None:
    cordoned = objects.node("n", unschedulable=True)
    without = profile_of("profiles:\n- plugins: {filter: {disabled: [{name: NodeUnschedulable}]}}")
    assert explained(pod(), [cordoned], profile=without).fitting
    weighed = profile_of("profiles:\n- plugins: {score: {enabled: [{name: TaintToleration, weight: 9}]}}")
    (node,) = explained(pod(), [objects.node("n")], profile=weighed).fitting
    assert node.scores["TaintToleration"] == 900
