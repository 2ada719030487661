"""Readiness rules with their controller at work on a real API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.cluster.identities import controller_client
from nodeward.controllers.runner import Runner
from nodeward.features import Gates
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.rules.readiness_rules import FINALIZER
from tests.controllers.cluster import Altered, cluster
from tests.controllers.readiness_rules.rules import (
    CNI,
    DISK,
    KEY,
    READINESS_RULES,
    Scene,
    a_node,
    a_pod,
    a_rule,
    run,
)


def test_a_node_is_held_until_it_reports_and_again_when_it_fails() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_node("other", pool="b"), a_rule())
        assert (await scene.marks(), await scene.marks("other")) == (["network:NoSchedule"], [])
        await scene.say("n", CNI, "True")
        assert await scene.marks() == []
        await scene.say("n", CNI, "False")
        assert await scene.marks() == ["network:NoSchedule"]
        added = ("TaintAdded", "AddTaint", f"Taint '{KEY}:NoSchedule' added by rule 'net'")
        removed = ("TaintRemoved", "RemoveTaint", f"Taint '{KEY}:NoSchedule' removed by rule 'net'")
        # The second addition is the first event, counted twice.
        assert await scene.told() == [added, removed]

    run(main)


def test_the_status_says_what_each_node_lacks() -> None:
    async def main(scene: Scene) -> None:
        conditions = [
            {"type": CNI, "requiredStatus": "True"},
            {"type": DISK, "requiredStatus": "False", "defaultStatus": "False"},
        ]
        rule = a_rule(conditions=conditions)
        await scene.make(a_node("up", (CNI, "True")), a_node("down", (CNI, "False"), (DISK, "False")), rule)
        status = (await scene.rule()).status
        assert (status.observed_generation, status.applied_nodes) == (1, ["down", "up"])
        found = {
            each.node_name: (each.taint_status, [one.current_status for one in each.condition_results])
            for each in status.node_evaluations
        }
        assert found == {"up": ("Absent", ["True", "Unknown"]), "down": ("Present", ["False", "False"])}
        assert status.dry_run_results is None

    run(main)


def test_any_of_several_conditions_may_be_enough() -> None:
    async def main(scene: Scene) -> None:
        conditions = [{"type": kind, "requiredStatus": "True"} for kind in (CNI, DISK)]
        rule = a_rule(conditions=conditions, conditionPolicy="anyOf")
        await scene.make(a_node("none"), a_node("one", (DISK, "True"), (CNI, "False")), rule)
        assert (await scene.marks("none"), await scene.marks("one")) == (["network:NoSchedule"], [])

    run(main)


def test_a_node_that_bootstrapped_once_is_never_held_again() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_rule(enforcementMode="bootstrap-only"), a_node(), a_node("fit", (CNI, "True")))
        assert await scene.marks() == ["network:NoSchedule"]
        await scene.say("n", CNI, "True")
        key = f"readiness.k8s.io/bootstrap-completed-{(await scene.rule()).metadata.uid}"
        assert (await scene.node()).metadata.annotations[key] == '{"rule-name":"net"}'
        assert (await scene.node("fit")).metadata.annotations[key] == '{"rule-name":"net"}'
        await scene.say("n", CNI, "False")
        assert await scene.marks() == []
        assert 'node_readiness_bootstrap_completed_total{rule="net"} 2.0' in scene.metrics()

    run(main)


def test_a_node_that_another_controller_let_in_by_name_stays_let_in() -> None:
    async def main(scene: Scene) -> None:
        node = a_node()
        node.metadata.annotations["readiness.k8s.io/bootstrap-completed-net"] = "true"
        await scene.make(node, a_rule(enforcementMode="bootstrap-only"))
        assert await scene.marks() == []

    run(main)


def test_a_taint_that_is_there_already_is_adopted_once() -> None:
    async def main(scene: Scene) -> None:
        taint = {"key": KEY, "effect": "NoSchedule", "value": "by-kubelet"}
        await scene.make(a_node(taints=[taint]), a_rule())
        await scene.say("n", DISK, "True")
        await scene.pass_time()
        adopted = ("TaintAdopted", "AdoptTaint", f"Taint '{KEY}:NoSchedule' is now managed by rule 'net'")
        assert await scene.told() == [adopted]
        await scene.say("n", CNI, "True")
        assert await scene.marks() == []

    run(main)


def test_a_deleted_rule_takes_its_taints_along_and_nothing_else() -> None:
    async def main(scene: Scene) -> None:
        other = {"key": "example.com/other", "effect": "NoSchedule"}
        await scene.make(*(a_node(f"n{number}", taints=[other]) for number in range(5)), a_rule())
        assert (await scene.rule()).metadata.finalizers == [FINALIZER]
        await scene.client.delete(NodeReadinessRule, "net")
        await scene.pass_time()
        assert not await scene.cluster.exists(NodeReadinessRule, "net")
        for number in range(5):
            left = [each.key for each in (await scene.node(f"n{number}")).spec.taints]
            assert "example.com/other" in left
            assert KEY not in left
        assert not [line for line in scene.metrics() if 'rule="net"' in line]

    run(main)


def test_a_node_that_leaves_the_selector_loses_the_taint() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_rule())
        await scene.client.patch(Node, "n", {"metadata": {"labels": {"pool": "b"}}})
        await scene.pass_time()
        assert await scene.marks() == []
        assert (await scene.rule()).status.node_evaluations == []

    run(main)


def test_a_node_that_leaves_the_selector_leaves_the_status_too() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node("n", (CNI, "True")), a_node("stays", (CNI, "True")), a_rule())
        await scene.client.patch(Node, "n", {"metadata": {"labels": {"pool": "b"}}})
        await scene.pass_time()
        assert (await scene.rule()).status.applied_nodes == ["stays"]

    run(main)


def test_a_node_that_is_gone_leaves_the_status() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_node("stays"), a_rule())
        await scene.client.delete(Node, "n")
        await scene.pass_time()
        status = (await scene.rule()).status
        assert status.applied_nodes == [each.node_name for each in status.node_evaluations] == ["stays"]

    run(main)


def test_a_dry_run_touches_no_node_and_names_the_pods() -> None:
    async def main(scene: Scene) -> None:
        taint = {"key": KEY, "effect": "NoExecute"}
        stays = [{"key": KEY, "operator": "Exists"}]
        minute = [{"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
        rule = a_rule(taint=taint, dryRun=True)
        await scene.make(a_node(), a_node("fit", (CNI, "True")), rule)
        await scene.make(
            a_pod("goes", "n"),
            a_pod("stays", "n", tolerations=stays),
            a_pod("later", "n", tolerations=minute),
            a_pod("elsewhere", "fit"),
            a_pod("waits"),
            a_pod("waits-elsewhere", nodeSelector={"pool": "b"}),
        )
        results = (await scene.rule()).status.dry_run_results
        assert results is not None
        assert await scene.marks() == []
        assert (results.affected_nodes, results.taints_to_add, results.taints_to_remove) == (2, 1, 0)
        assert results.risky_operations == 1
        assert results.pods_evicted is not None
        assert results.pods_held is not None
        gone = [(each.name, each.node_name, each.after_seconds) for each in results.pods_evicted.pods]
        assert gone == [("goes", "n", 0), ("later", "n", 60)]
        assert [(each.name, each.node_name) for each in results.pods_held.pods] == [
            ("goes", "n"),
            ("waits", ""),
        ]
        assert results.summary == (
            "would add 1 taints, 1 nodes have missing conditions, would evict 2 pods, would hold 2 pods"
        )
        await scene.client.patch(
            NodeReadinessRule, "net", {"spec": {"dryRun": False}}, patch_type=PatchType.MERGE
        )
        await scene.pass_time()
        after = await scene.rule()
        assert (after.status.dry_run_results, after.status.observed_generation) == (None, 2)
        assert await scene.marks() == ["network:NoExecute"]

    run(main)


def test_what_fails_on_one_rule_does_not_keep_others_away() -> None:
    async def refuse(request: Request, pass_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if request.method == "PATCH" and b"readiness.k8s.io/disk" in request.body:
            return Response(403, {}, b"")
        return await pass_on(request)

    async def main(scene: Scene) -> None:
        scene.cluster.transports["node-readiness-controller"].alter = refuse
        disk = a_rule(
            "disk",
            taint={"key": "readiness.k8s.io/disk", "effect": "NoSchedule"},
            conditions=[{"type": DISK, "requiredStatus": "True"}],
        )
        await scene.make(a_node(), disk, a_rule())
        assert await scene.marks() == ["network:NoSchedule"]
        (failure,) = (await scene.rule("disk")).status.failed_nodes
        assert (failure.node_name, failure.reason) == ("n", "EvaluationError")
        assert failure.message.startswith("failed to add taint: ")
        scene.cluster.transports["node-readiness-controller"].alter = None
        await scene.pass_time(30)
        assert (await scene.rule("disk")).status.failed_nodes == []
        assert await scene.marks() == ["network:NoSchedule", "disk:NoSchedule"]

    run(main)


def test_a_taint_somebody_removed_by_hand_comes_back() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_rule())
        node = await scene.node()
        node.spec.taints = [Taint(key="example.com/mine", effect="NoSchedule")]
        await scene.client.update(node)
        await scene.pass_time()
        assert await scene.marks() == ["network:NoSchedule"]

    run(main)


def test_a_cluster_without_rules_is_asked_again_and_then_served() -> None:
    served = False

    async def missing(request: Request, pass_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if "nodereadinessrules" in request.path and not served:
            return Response(404, {}, b"404 page not found")
        return await pass_on(request)

    async def inner(clock: VirtualClock) -> None:
        nonlocal served
        async with cluster(clock, controllers=()) as each:

            def client_for(name: str) -> Client:
                way = Altered(controller_client(each.server, name).transport)
                way.alter = missing
                return Client(way, clock=clock, component=name, retry=None)

            gates = Gates.of("1.37")
            runner = Runner(client_for, clock, SeededChance(5), gates=gates, controllers=READINESS_RULES)
            await runner.start()
            await runner.settled()
            scene = Scene(each)
            await scene.make(a_node(), a_rule())
            assert await scene.marks() == []
            served = True
            await scene.pass_time(31)
            assert await scene.marks() == ["network:NoSchedule"]
            await runner.stop()

    run_virtual(inner)


def test_nothing_is_written_while_nothing_happens() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_node("fit", (CNI, "True")), a_rule(), a_pod("p", "n"))
        before = (
            (await scene.rule()).metadata.resource_version,
            (await scene.node()).metadata.resource_version,
        )
        await scene.pass_time(600)
        assert before == (
            (await scene.rule()).metadata.resource_version,
            (await scene.node()).metadata.resource_version,
        )

    run(main)


def test_what_is_counted_has_the_names_of_node_readiness_controller() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_node("fit", (CNI, "True")), a_rule())
        await scene.say("n", CNI, "True")
        found = scene.metrics()
        for line in (
            "node_readiness_rules_total 1.0",
            'node_readiness_taint_operations_total{operation="add",rule="net"} 1.0',
            'node_readiness_taint_operations_total{operation="remove",rule="net"} 1.0',
            'node_readiness_rule_nodes{rule="net",state="held"} 0.0',
            'node_readiness_rule_nodes{rule="net",state="released"} 2.0',
            'node_readiness_nodes_by_state{rule="net",state="ready"} 2.0',
        ):
            assert line in found
        assert any(
            line.startswith(f'node_readiness_condition_failures_total{{condition="{CNI}",rule="net"}}')
            for line in found
        )

    run(main)


def test_a_rule_made_again_under_its_name_is_another_rule() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_rule(enforcementMode="bootstrap-only"))
        await scene.say("n", CNI, "True")
        await scene.client.delete(NodeReadinessRule, "net")
        await scene.pass_time()
        await scene.say("n", CNI, "False")
        await scene.make(a_rule(enforcementMode="bootstrap-only"))
        assert await scene.marks() == ["network:NoSchedule"]

    run(main)


def test_another_controller_goes_on_where_the_last_one_stopped() -> None:
    async def main(scene: Scene) -> None:
        await scene.make(a_node(), a_node("leaves"), a_node("dies"), a_rule())
        await scene.cluster.runner.stop()
        await scene.client.delete(Node, "dies")
        await scene.client.patch(Node, "leaves", {"metadata": {"labels": {"pool": "b"}}})
        runner = Runner(
            lambda name: controller_client(scene.cluster.server, name),
            scene.clock,
            SeededChance(6),
            gates=Gates.of("1.37"),
            controllers=READINESS_RULES,
        )
        await runner.start()
        await scene.say("n", CNI, "True")
        await scene.pass_time()
        assert (await scene.marks(), await scene.marks("leaves")) == ([], [])
        assert (await scene.rule()).status.applied_nodes == ["n"]
        assert [each.node_name for each in (await scene.rule()).status.node_evaluations] == ["n"]
        assert "TaintAdopted" not in [reason for reason, _, _ in await scene.told()]
        await runner.stop()

    run(main)
