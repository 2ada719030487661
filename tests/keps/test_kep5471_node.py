"""KEP-5471 on the node: which pods a kubelet takes under a NoExecute taint, by its version and whatever its gate says.

Each kubelet is the real one under the identity of its node; only containers are simulated.
"""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.ledger import statement
from tests.keps.node_identity import NodeWorld, node_world

GATE = "TaintTolerationComparisonOperators"
SLA = "example.com/sla"
TAINTED = {"spec": {"taints": [{"key": SLA, "value": "950", "effect": "NoExecute"}]}}
REFUSED = (
    "Failed",
    "TaintToleration",
    "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
)


def pod(name: str, operator: str, value: str = "", **spec: Any) -> Pod:
    """A pod with one toleration, bound to the node by whoever made it."""
    toleration = {"key": SLA, "operator": operator, "effect": "NoExecute"} | (
        {"value": value} if value else {}
    )
    container = {"name": "main", "image": "busybox"}
    spec = {"nodeName": "n1", "containers": [container], "tolerations": [toleration], **spec}
    return from_tree({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)


async def state(world: NodeWorld, name: str) -> tuple[str, str, str]:
    """(phase, reason, message) of a pod."""
    status = (await world.pod(name)).status
    return status.phase, status.reason, status.message


async def started(world: NodeWorld, name: str) -> str:
    """When the pod's container started: another time after it was started again."""
    (container,) = (await world.pod(name)).status.container_statuses
    assert container.state.running is not None
    return container.state.running.started_at or ""


@statement("5471-T24", part="kubelet")
@pytest.mark.parametrize("version", ["1.35", "1.37"])
def test_a_kubelet_honours_numbers_whatever_its_own_gate_says(version: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=f"{GATE}=true") as world:
            kubelet = await world.start_kubelet("n1", version=version, feature_gates=f"{GATE}=false")
            await world.client.patch(Node, "n1", TAINTED)
            await world.pass_time(15)
            await world.add(pod("good", "Gt", "900"), pod("bad", "Gt", "950"), pod("low", "Lt", "951"))
            await world.pass_time(10)
            assert (await state(world, "good"))[0] == "Running"
            assert (await state(world, "low"))[0] == "Running"
            # A number that does not hold is none that is tolerated, whoever bound the pod.
            assert await state(world, "bad") == REFUSED
            before = await started(world, "good")
            # Rolled back and forth: every start of a kubelet judges its pods anew.
            for is_on in ("true", "false"):
                await kubelet.restart(feature_gates=f"{GATE}={is_on}")
                await world.pass_time(30)
                assert (await state(world, "good"))[0] == "Running"
                assert await started(world, "good") == before, "the container was left alone"

    run_virtual(main)


@statement("5471-T30", part="kubelet")
def test_a_kubelet_older_than_the_operators_refuses_such_a_pod_and_runs_all_others() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=f"{GATE}=true") as world:
            kubelet = await world.start_kubelet("n1", version="1.34")
            await world.client.patch(Node, "n1", TAINTED)
            await world.pass_time(15)
            await world.add(pod("numeric", "Gt", "900"), pod("equal", "Equal", "950"), pod("any", "Exists"))
            await world.pass_time(10)
            assert await state(world, "numeric") == REFUSED
            assert [(await state(world, name))[0] for name in ("equal", "any")] == ["Running", "Running"]
            events = await world.events("numeric")
            assert [reason for reason, _ in events] == ["TaintToleration"]
            # NoSchedule is no matter of kubelets, old or new.
            soft = {"spec": {"taints": [{"key": SLA, "value": "950", "effect": "NoSchedule"}]}}
            await world.client.patch(Node, "n1", soft)
            await world.pass_time(15)
            await world.add(pod("soft", "Gt", "900"))
            await world.pass_time(10)
            assert (await state(world, "soft"))[0] == "Running"
            # Upgraded, it takes what it refused.
            await world.client.patch(Node, "n1", TAINTED)
            await kubelet.restart(version="1.35")
            await world.pass_time(15)
            await world.add(pod("again", "Gt", "900"))
            await world.pass_time(10)
            assert (await state(world, "again"))[0] == "Running"

    run_virtual(main)
