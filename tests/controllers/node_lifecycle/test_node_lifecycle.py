"""Nodes that are heard and not heard, with the controller at work on a real API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.controller import ControllerContext, ControllerDescriptor
from nodeward.controllers.node_lifecycle.controller import LEASES, NodeLifecycleController
from nodeward.machinery.transport import Request, Response
from tests.controllers.node_lifecycle.fleet import Fleet, run


def status_of(node: Node) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in node.status.conditions}


def test_a_node_that_is_ready_loses_the_taint_it_was_born_with() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", ready="False")
        assert await fleet.marks("n") == ["not-ready:NoSchedule"]
        await fleet.say("n", "Ready", "True")
        await fleet.pass_time(0.1)
        assert await fleet.marks("n") == []

    run(main)


def test_a_cordon_and_a_pressure_come_and_go_with_their_taints() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.client.patch(Node, "n", {"spec": {"unschedulable": True}})
        await fleet.say("n", "DiskPressure", "True")
        await fleet.pass_time(0.1)
        assert sorted(await fleet.marks("n")) == ["disk-pressure:NoSchedule", "unschedulable:NoSchedule"]
        await fleet.client.patch(Node, "n", {"spec": {"unschedulable": False}})
        await fleet.say("n", "DiskPressure", "False")
        await fleet.pass_time(0.1)
        assert await fleet.marks("n") == []

    run(main)


def test_silence_becomes_unknown_after_the_grace_period_and_taints_follow() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        await fleet.run_pod("p", "n")
        await fleet.pass_time(30)
        fleet.cut_off("n")
        await fleet.pass_time(49)
        assert status_of(await fleet.node("n"))["Ready"] == ("True", "")
        await fleet.pass_time(7)
        stopped = ("Unknown", "NodeStatusUnknown")
        never = ("Unknown", "NodeStatusNeverUpdated")
        assert status_of(await fleet.node("n")) == {
            "Ready": stopped,
            "MemoryPressure": stopped,
            "DiskPressure": never,
            "PIDPressure": never,
        }
        assert await fleet.marks("n") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        pod = await fleet.client.get(Pod, "p", "default")
        assert [(each.type, each.status) for each in pod.status.conditions] == [("Ready", "False")]
        assert await fleet.events("node-controller", "NodeNotReady") == [
            "Normal NodeNotReady n: Node n status is now: NodeNotReady",
            "Warning NodeNotReady p: Node is not ready",
        ]
        assert (await fleet.marks("other"), status_of(await fleet.node("other"))["Ready"]) == (
            [],
            ("True", ""),
        )

    run(main)


def test_a_node_that_is_heard_again_is_open_again_at_once() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        fleet.cut_off("n")
        await fleet.pass_time(60)
        assert await fleet.driven() == ["n"]
        await fleet.return_("n")
        await fleet.pass_time(0.1)
        assert await fleet.marks("n") == []
        await fleet.pass_time(300)
        assert (await fleet.marks("n"), await fleet.events("node-controller", "NodeNotReady")) == (
            [],
            ["Normal NodeNotReady n: Node n status is now: NodeNotReady"],
        )

    run(main)


def test_a_node_that_says_itself_that_it_is_not_ready_drives_pods_away_too() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        await fleet.say("n", "Ready", "False")
        await fleet.pass_time(6)
        assert await fleet.marks("n") == ["not-ready:NoSchedule", "not-ready:NoExecute"]
        fleet.cut_off("n")
        await fleet.pass_time(60)
        assert await fleet.marks("n") == ["unreachable:NoSchedule", "unreachable:NoExecute"]

    run(main)


def test_a_node_that_never_reports_is_unknown_after_the_startup_period() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("other")
        await fleet.register("n", ready="")
        fleet.cut_off("n")
        await fleet.pass_time(59)
        assert status_of(await fleet.node("n")) == {}
        await fleet.pass_time(7)
        assert status_of(await fleet.node("n"))["Ready"] == ("Unknown", "NodeStatusNeverUpdated")
        await fleet.pass_time(300)
        assert await fleet.marks("n") == ["unreachable:NoSchedule", "unreachable:NoExecute"]

    run(main)


def test_nodes_of_one_zone_are_emptied_one_by_one() -> None:
    async def main(fleet: Fleet) -> None:
        names = [f"n{number}" for number in range(10)]
        await fleet.register(*names)
        fleet.cut_off("n0", "n1", "n2", "n3")
        await fleet.pass_time(56)
        counts = []
        for _ in range(5):
            counts.append(len(await fleet.driven()))
            await fleet.pass_time(10)
        assert counts == [1, 2, 3, 4, 4]
        evictions = fleet.cluster.runner.metrics.counter("node_collector_evictions_total", "", ("zone",))
        assert evictions.value("") == 4

    run(main)


def test_zones_have_limits_of_their_own() -> None:
    async def main(fleet: Fleet) -> None:
        for zone in ("a", "b"):
            await fleet.register(*(f"{zone}{number}" for number in range(4)), zone=zone)
        fleet.cut_off("a0", "b0")
        await fleet.pass_time(56)
        assert await fleet.driven() == ["a0", "b0"]

    run(main)


def test_a_small_zone_in_which_most_nodes_fail_is_not_emptied_any_further() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register(*(f"a{number}" for number in range(5)), zone="a")
        await fleet.register("b0", zone="b")
        fleet.cut_off("a0", "a1", "a2")
        await fleet.pass_time(600)
        assert await fleet.driven() == []
        await fleet.return_("a2")
        await fleet.pass_time(30)
        assert await fleet.driven() == ["a0", "a1"]

    run(main)


def test_when_all_zones_are_lost_nobody_is_driven_away_and_time_starts_anew_after_it() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("a0", "a1", zone="a")
        await fleet.register("b0", zone="b")
        fleet.cut_off("a0")
        await fleet.pass_time(60)
        assert await fleet.driven() == ["a0"]
        fleet.cut_off("a1", "b0")
        await fleet.pass_time(60)
        assert await fleet.driven() == []
        assert await fleet.marks("a0") == ["unreachable:NoSchedule"]
        await fleet.pass_time(600)
        assert await fleet.driven() == []
        # Zone b is back: zone a is lost alone now, and others can take its pods.
        await fleet.return_("b0")
        await fleet.pass_time(30)
        assert await fleet.driven() == ["a0", "a1"]

    run(main)


def test_nodes_that_do_not_count_do_not_change_the_state_of_their_zone() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("a0", "a1", "a2", "a3", zone="a")
        for name in ("a1", "a2"):
            labels = {"node.kubernetes.io/exclude-disruption": ""}
            await fleet.client.patch(Node, name, {"metadata": {"labels": labels}})
        fleet.cut_off("a0", "a1", "a2")
        await fleet.pass_time(90)
        assert await fleet.driven() == ["a0", "a1", "a2"]
        size = fleet.cluster.runner.metrics.gauge("node_collector_zone_size", "", ("zone",))
        unhealthy = fleet.cluster.runner.metrics.gauge(
            "node_collector_unhealthy_nodes_in_zone", "", ("zone",)
        )
        assert (dict(size.values), dict(unhealthy.values)) == ({(":\x00:a",): 2}, {(":\x00:a",): 1})

    run(main)


def test_a_pod_given_to_a_node_that_is_not_ready_is_not_ready() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        fleet.cut_off("n")
        await fleet.pass_time(60)
        for name, node in (("late", "n"), ("fine", "other")):
            await fleet.run_pod(name, "")
            await fleet.client.bind(name, "default", node)
        await fleet.pass_time(1)
        assert await fleet.events("node-controller", "NodeNotReady") == [
            "Normal NodeNotReady n: Node n status is now: NodeNotReady",
            "Warning NodeNotReady late: Node is not ready",
        ]

    run(main)


def test_nodes_that_come_and_go_are_told_of() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        await fleet.pass_time(1)
        await fleet.client.delete(Node, "n")
        await fleet.pass_time(1)
        assert await fleet.events("node-controller", "RegisteredNode", "RemovingNode") == [
            "Normal RegisteredNode n: Node n event: Registered Node n in Controller",
            "Normal RegisteredNode other: Node other event: Registered Node other in Controller",
            "Normal RemovingNode n: Node n event: Removing Node n from Controller",
        ]

    run(main)


def test_a_node_made_again_under_the_same_name_starts_with_a_clean_slate() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        fleet.cut_off("n")
        await fleet.pass_time(60)
        await fleet.client.delete(Node, "n")
        await fleet.client.delete(Lease, "n", LEASES)
        await fleet.register("n")
        await fleet.pass_time(30)
        assert await fleet.marks("n") == []

    run(main)


def test_a_lease_that_this_controller_has_not_heard_of_yet_keeps_its_node_alive() -> None:
    """The informer is behind, not the node: the API is asked before anybody is declared lost."""

    def deaf(context: ControllerContext) -> NodeLifecycleController:
        made = NodeLifecycleController(context)
        leases = context.informers.informer(Lease, namespace=LEASES)
        leases._handlers = ()
        return made

    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        await fleet.pass_time(300)
        assert await fleet.marks("n") == []
        fleet.cut_off("n")
        await fleet.pass_time(120)
        assert await fleet.marks("n") == ["unreachable:NoSchedule", "unreachable:NoExecute"]

    run(
        main, (ControllerDescriptor("node-lifecycle-controller", deaf, "node-controller", "node-controller"),)
    )


def test_a_write_whose_answer_is_lost_has_all_its_consequences_once() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "other")
        await fleet.run_pod("p", "n")
        lost: list[str] = []

        async def alter(request: Request, ask: Callable[[Request], Awaitable[Response]]) -> Response:
            answer = await ask(request)
            if request.method == "PATCH" and len(lost) < 2:
                lost.append(request.path)
                return Response(status=500, headers={}, body=b"{}")
            return answer

        fleet.cut_off("n")
        await fleet.pass_time(45)
        fleet.cluster.transports["node-controller"].alter = alter
        await fleet.pass_time(20)
        assert lost == ["/api/v1/nodes/n/status", "/api/v1/nodes/n"]
        assert await fleet.marks("n") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert len(await fleet.events("node-controller", "NodeNotReady")) == 2

    run(main)
