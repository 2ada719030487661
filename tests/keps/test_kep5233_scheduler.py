"""KEP-5233 in the scheduler: general pods wait until every gate of a node holds; daemon pods do not.

Against a real API server in process, in virtual time; the test plays kubelet and reporters.
"""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.features.gates import Gates
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.queue.queued_pod import Place
from nodeward.scheduler.settings import ProfileSettings, SchedulerSettings, default_profile
from tests.keps.ledger import statement
from tests.scheduler.running import Cluster, cluster, node, pod

NETWORK, STORAGE, GPU = "example.com/NetworkReady", "example.com/StorageReady", "example.com/GpuReady"


def gate(name: str) -> dict[str, Any]:
    return {"conditionType": name, "timeoutSeconds": 300, "failureAction": "BypassWithWarning"}


def condition(name: str, status: str, reason: str = "Said") -> dict[str, str]:
    return {"type": name, "status": status, "reason": reason}


def gated(
    name: str, *conditions: dict[str, str], gates: tuple[str, ...] = (NETWORK,), ready: str = "True"
) -> Node:
    return node(
        name,
        readinessGates=[gate(each) for each in gates],
        status={"conditions": [condition("Ready", ready), *conditions]},
    )


async def report(world: Cluster, name: str, *conditions: dict[str, str], ready: str = "True") -> None:
    body = {"status": {"conditions": [condition("Ready", ready), *conditions]}}
    await world.patch_node(name, body, status=True)


async def waits(world: Cluster, name: str) -> bool:
    await world.add_pods(pod(name))
    return not await world.where(name)


def attempts(world: Cluster, name: str) -> int:
    queue = world.scheduler.engine.queue
    waiting = [*queue.pods_in(Place.UNSCHEDULABLE), *queue.pods_in(Place.BACKOFF)]
    return next(each.attempts for each in waiting if each.pod.name == name)


@statement("5233-R7", part="scheduler")
@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_while_ready_is_not_true_nobody_comes_whatever_the_gates_say(ready: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(gated("n", condition(NETWORK, "True"), ready=ready))
            assert await waits(world, "p")
            await report(world, "n", condition(NETWORK, "True"))
            assert await world.where("p") == "n"

    run_virtual(main)


@statement("5233-R8", part="scheduler")
@statement("5233-R9", part="scheduler")
@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ((), True),
        ((condition(NETWORK, "False"),), True),
        ((condition(NETWORK, "Unknown", "NodeRestarted"),), True),
        ((condition(NETWORK, "Unknown", "NodeStatusUnknown"),), True),
        ((condition(NETWORK, "Unknown", "TimeoutExceeded"),), False),
        ((condition(NETWORK, "True"),), False),
        ((condition(NETWORK, "False", "TimeoutExceeded"),), True),
    ],
)
def test_a_gate_holds_pods_off_until_it_is_true_or_given_up(
    said: tuple[dict[str, str], ...], is_held: bool
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(gated("n", *said))
            assert await waits(world, "p") is is_held

    run_virtual(main)


@statement("5233-R10", part="scheduler")
def test_the_node_opens_when_the_last_of_its_gates_holds() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            names = (NETWORK, STORAGE, GPU)
            await world.add_nodes(gated("n", gates=names))
            assert await waits(world, "p")
            for count in (1, 2):
                await report(world, "n", *(condition(each, "True") for each in names[:count]))
                await world.pass_time(30)
                assert not await world.where("p")
            await report(world, "n", *(condition(each, "True") for each in names))
            assert await world.where("p") == "n"

    run_virtual(main)


def _without_plugin(gates: Gates) -> SchedulerSettings:
    whole = default_profile(gates)
    uses = tuple(use for use in whole.plugins if use.name != "NodeReadinessGates")
    return SchedulerSettings((ProfileSettings(whole.name, uses),), leader_elect=False)


@statement("5233-R11", part="scheduler")
@statement("5233-R38", part="scheduler")
def test_without_gates_or_without_the_plugin_nothing_changes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("plain", labels={"which": "plain"}), gated("held"))
            await world.add_pods(pod("p", nodeSelector={"which": "plain"}))
            assert await world.where("p") == "plain"
            # Removing the gates opens the node at once.
            selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["held"]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [selector]}}
            await world.add_pods(pod("q", affinity={"nodeAffinity": required}))
            assert not await world.where("q")
            await world.patch_node("held", {"spec": {"readinessGates": None}})
            assert await world.where("q") == "held"
            # And so does a scheduler without the plugin.
            await world.patch_node("held", {"spec": {"readinessGates": [gate(NETWORK)]}})
            await world.scheduler.stop()
            world.scheduler = world.new_scheduler(_without_plugin(world.gates))
            await world.scheduler.start()
            await world.add_pods(pod("r", affinity={"nodeAffinity": required}))
            assert await world.where("r") == "held"

    run_virtual(main)


@statement("5233-R12", part="scheduler")
@pytest.mark.parametrize("host_network", [True, False])
def test_pods_of_a_daemon_set_are_let_through_and_others_wait(host_network: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(gated("n"))
            owner = {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": "d",
                "uid": "u",
                "controller": True,
            }
            other = {**owner, "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}
            await world.add_pods(
                pod("daemon", metadata={"ownerReferences": [owner]}, hostNetwork=host_network),
                pod("replica", metadata={"ownerReferences": [other]}, hostNetwork=host_network),
                pod("nobodys", hostNetwork=host_network),
            )
            assert await world.places() == {"daemon": "n", "replica": "", "nobodys": ""}

    run_virtual(main)


@statement("5233-R13", part="scheduler")
@statement("5233-R14", part="scheduler")
def test_a_gate_that_fails_again_holds_new_pods_off_and_leaves_others_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(gated("n", condition(NETWORK, "True")))
            await world.add_pods(pod("first"))
            await report(world, "n", condition(NETWORK, "False"))
            assert await waits(world, "second")
            await world.pass_time(400)
            first = await world.client.get(Pod, "first", "default")
            assert (first.spec.node_name, first.metadata.deletion_timestamp) == ("n", None)
            await report(world, "n", condition(NETWORK, "True"))
            assert await world.where("second") == "n"

    run_virtual(main)


@statement("5233-R15")
def test_a_true_condition_a_removed_gate_and_a_timeout_wake_the_pod_and_nothing_else_does() -> None:
    async def opened(world: Cluster, how: str) -> None:
        if how == "condition":
            await report(world, "n", condition(NETWORK, "True"))
        elif how == "timeout":
            await report(world, "n", condition(NETWORK, "Unknown", "TimeoutExceeded"))
        else:
            await world.patch_node("n", {"spec": {"readinessGates": []}})

    def played(how: str) -> None:
        async def main(clock: VirtualClock) -> None:
            async with cluster(clock) as world:
                await world.add_nodes(gated("n", condition(NETWORK, "False")))
                assert await waits(world, "p")
                await world.pass_time(20)
                beat = {**condition("Ready", "True"), "lastHeartbeatTime": "2026-01-01T00:01:00Z"}
                body = {"status": {"conditions": [beat, condition(NETWORK, "False")]}}
                await world.patch_node("n", body, status=True)
                await report(world, "n", condition(NETWORK, "False"), condition(STORAGE, "True"))
                await world.pass_time(20)
                assert attempts(world, "p") == 1
                await opened(world, how)
                assert await world.where("p") == "n", how

        run_virtual(main)

    for how in ("condition", "timeout", "gate removed"):
        played(how)


@statement("5233-R24", part="scheduler")
@statement("5233-R9", part="scheduler")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_gate_that_timed_out_opens_the_node_with_its_taint_and_wakes_only_pods_that_tolerate_it(
    effect: str,
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            mark = {"key": "example.com/no-net", "effect": effect}
            tainting = {**gate(NETWORK), "failureAction": "Taint", "readinessTaint": mark}
            ready = condition("Ready", "True")
            await world.add_nodes(node("n", readinessGates=[tainting], status={"conditions": [ready]}))
            await world.add_pods(pod("plain"), pod("tolerant", tolerations=[{"operator": "Exists", **mark}]))
            await report(world, "n", condition(NETWORK, "Unknown", "TimeoutExceeded"))
            await world.pass_time(20)
            assert await world.places() == {"plain": "", "tolerant": ""}
            assert (attempts(world, "plain"), attempts(world, "tolerant")) == (1, 1)
            await world.patch_node("n", {"spec": {"taints": [mark]}})
            await world.pass_time(20)
            assert await world.places() == {"plain": "", "tolerant": "n"}
            assert attempts(world, "plain") == 1, "the taint is no reason to try it again"
            # The reporter recovers, then the controller takes the taint off.
            await report(world, "n", condition(NETWORK, "True"))
            await world.patch_node("n", {"spec": {"taints": None}})
            assert await world.where("plain") == "n"

    run_virtual(main)


@statement("5233-R36", part="scheduler")
def test_nodes_with_and_without_gates_live_side_by_side() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("old"), gated("held"), gated("open", condition(NETWORK, "True")))
            await world.add_pods(*(pod(f"p{number}", "1") for number in range(6)))
            places = sorted((await world.places()).values())
            assert places == ["old", "old", "old", "open", "open", "open"]

    run_virtual(main)


@statement("5233-R41")
def test_the_event_names_the_gate_and_the_node_shows_its_condition() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(gated("a", condition(NETWORK, "False", "AgentStarting")), gated("b"))
            await world.add_pods(pod("p"))
            (event,) = await world.events("p")
            assert event[:2] == ("Warning", "FailedScheduling")
            assert event[2].startswith("0/2 nodes are available:")
            assert NETWORK in event[2]
            stored = await world.client.get(Node, "a")
            shown = {each.type: (each.status, each.reason) for each in stored.status.conditions}
            assert shown[NETWORK] == ("False", "AgentStarting")

    run_virtual(main)
