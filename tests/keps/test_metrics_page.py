"""The metrics the proposals name, as whoever watches a `nodeward up` reads them: on the API server's one page."""

from __future__ import annotations

from collections import Counter

from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import Caller
from tests.keps.clusters import World, world
from tests.keps.ledger import statement
from tests.keps.test_kep5233_controllers import CNI, GATE, gate, gated
from tests.keps.test_kep5328_scheduler import needy
from tests.scheduler.running import pod


async def page_of(each: World) -> list[str]:
    """The lines of /metrics, with the labels of each in the order of their names."""
    answer = await Caller.of(each.cluster.server).send("GET", "/metrics")
    assert answer.status == 200
    return [_ordered(line) for line in (answer.body or b"").decode().splitlines()]


def _ordered(line: str) -> str:
    if line.startswith("#") or "{" not in line:
        return line
    name, _, rest = line.partition("{")
    labels, _, value = rest.rpartition("}")
    return f"{name}{{{','.join(sorted(labels.split(',')))}}}{value}"


def has(lines: list[str], start: str, *labels: str) -> bool:
    return any(line.startswith(start) and all(label in line for label in labels) for line in lines)


@statement("5328-D49")
@statement("5471-T33")
def test_the_page_of_the_server_shows_what_scheduler_and_kubelets_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, Pool(name="old", version="1.34")) as each:
            refused = needy("bound")
            refused.spec.node_name = "old-0"
            alike = [
                needy(f"waits{number}", metadata={"labels": {"unlike": f"{number}"}}) for number in range(20)
            ]
            await each.add(refused, pod("fits"), *alike)
            lines = await page_of(each)
            assert 'kubelet_admission_rejections_total{reason="PodFeatureUnsupported"} 1.0' in lines
            held = 'plugin="NodeDeclaredFeatures",profile="default-scheduler"'
            assert f"scheduler_unschedulable_pods{{{held}}} 20.0" in lines
            assert 'scheduler_pending_pods{queue="unschedulable"} 20.0' in lines
            timed = "scheduler_plugin_execution_duration_seconds_count"
            assert has(lines, timed, 'plugin="NodeDeclaredFeatures"')
            admitted = "apiserver_admission_controller_admission_duration_seconds_count"
            assert has(lines, admitted, 'name="NodeDeclaredFeatureValidator"')
            assert has(lines, "scheduler_plugin_evaluation_total", 'plugin="TaintToleration"')
            assert has(lines, "scheduler_framework_extension_point_duration_seconds_count", "Filter")

    run_virtual(main)


@statement("5233-R43", part="kubelet")
@statement("5233-R43", part="controllers")
def test_the_page_of_the_server_shows_what_became_of_gates() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, gated(gate("Taint")), gates=GATE) as each:
            label = f'condition_type="{CNI}"'
            lines = await page_of(each)
            assert f'kubelet_node_readiness_gate_satisfied{{{label},node="gated-0"}} 0.0' in lines
            await each.pass_time(90)
            lines = await page_of(each)
            assert f"kubelet_node_readiness_gate_timeouts_total{{{label}}} 1.0" in lines
            assert f'node_readiness_gate_failures_total{{action="Taint",{label}}} 1.0' in lines

    run_virtual(main)


def test_every_family_is_described_once_and_every_sample_is_there_once() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, Pool(name="n", version="1.37")) as each:
            await each.add(pod("p"))
            lines = await page_of(each)
            for component in ("apiserver_", "scheduler_", "kubelet_", "workqueue_"):
                assert has(lines, component), component
            described = Counter(tuple(line.split()[:3]) for line in lines if line.startswith("#"))
            assert {name: count for name, count in described.items() if count > 1} == {}
            samples = Counter(line.rpartition(" ")[0] for line in lines if not line.startswith("#"))
            assert {name: count for name, count in samples.items() if count > 1} == {}
            assert 'workqueue_depth{name="deployment"} 0.0' in lines
            assert has(lines, "workqueue_adds_total", 'name="node_lifecycle_controller"')

    run_virtual(main)
