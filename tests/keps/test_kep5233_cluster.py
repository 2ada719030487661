"""KEP-5233 from end to end: kubelets, scheduler and controllers together, in virtual time."""

from __future__ import annotations

from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.clusters import World, world
from tests.keps.ledger import statement
from tests.scheduler.running import pod

NETWORK = "example.com/NetworkReady"
GATE = "NodeReadinessGates=true"


def gated(seconds: int = 120, action: str = "BypassWithWarning") -> Pool:
    gate = {"conditionType": NETWORK, "timeoutSeconds": seconds, "failureAction": action}
    return Pool(name="n", feature_gates=GATE, kubelet={"nodeReadinessGates": [gate]})


async def report(each: World, status: str) -> None:
    said: dict[str, Any] = {"type": NETWORK, "status": status, "reason": "Said"}
    await each.patch_node("n-0", {"status": {"conditions": [said]}}, status=True)


async def phase(each: World, name: str) -> tuple[str, str]:
    found = await each.pod(name)
    return found.status.phase, found.spec.node_name


@statement("5233-R13", part="kubelet")
def test_a_gate_that_fails_evicts_nobody_and_a_restarted_kubelet_goes_on_with_what_it_has() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, gated(3600), gates=GATE) as each:
            await report(each, "True")
            await each.add(pod("p"))
            assert await phase(each, "p") == ("Running", "n-0")
            await report(each, "False")
            await each.fleet.host.restart_node(each.fleet.pools["n"].nodes[0])
            # One that was bound while the gate held, and whose kubelet sees it only now.
            late = pod("late")
            late.spec.node_name = "n-0"
            await each.add(late, pod("waits"))
            await each.pass_time(600)
            assert await phase(each, "p") == ("Running", "n-0")
            assert (await each.pod("p")).status.container_statuses[0].restart_count == 0
            assert await phase(each, "late") == ("Running", "n-0")
            assert await phase(each, "waits") == ("Pending", "")

    run_virtual(main)


@statement("5233-R43", part="kubelet")
def test_metrics_per_gate_and_a_count_of_timeouts() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, gated(60), gates=GATE) as each:
            labels = f'{{condition_type="{NETWORK}",node="n-0"}}'

            def page() -> str:
                return each.fleet.host.metrics.all.text().decode()

            assert f"kubelet_node_readiness_gate_satisfied{labels} 0.0" in page().replace(
                f'{{node="n-0",condition_type="{NETWORK}"}}', labels
            )
            await each.pass_time(90)
            assert f'kubelet_node_readiness_gate_timeouts_total{{condition_type="{NETWORK}"}} 1.0' in page()
            await report(each, "True")
            await each.pass_time(15)
            assert f"kubelet_node_readiness_gate_satisfied{labels} 1.0" in page().replace(
                f'{{node="n-0",condition_type="{NETWORK}"}}', labels
            )

    run_virtual(main)


def test_a_pod_is_placed_by_the_timeout_of_a_gate_nobody_reports() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, gated(100), gates=GATE) as each:
            await each.add(pod("p"))
            await each.pass_time(60)
            assert await phase(each, "p") == ("Pending", "")
            await each.pass_time(60)
            assert await phase(each, "p") == ("Running", "n-0")
            await each.client.delete(Pod, "p", "default")

    run_virtual(main)
