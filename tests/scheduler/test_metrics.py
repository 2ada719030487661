"""What a scheduler shows on its page of metrics, under kube-scheduler's names."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.scheduler.running import Cluster, cluster, node, pod

PROFILE = "default-scheduler"


def page(world: Cluster) -> dict[tuple[str, ...], float]:
    """Every number by its name and the values of its labels in the order of their names."""
    families = text_string_to_metric_families(world.scheduler.metrics.text().decode())
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_attempts_queues_and_plugins_are_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "9"}))
            await world.add_pods(
                pod("p", "1"), pod("q", "1"), pod("gated", schedulingGates=[{"name": "example.com/g"}])
            )
            shown = page(world)
            assert shown["scheduler_schedule_attempts_total", PROFILE, "scheduled"] == 1
            assert shown["scheduler_schedule_attempts_total", PROFILE, "unschedulable"] == 1
            assert shown["scheduler_pending_pods", "unschedulable"] == 1
            assert shown["scheduler_pending_pods", "gated"] == 1
            assert shown["scheduler_pending_pods", "active"] == 0
            assert shown["scheduler_unschedulable_pods", "NodeResourcesFit", PROFILE] == 1
            assert shown["scheduler_queue_incoming_pods_total", "UnscheduledPodAdd", "active"] == 2
            assert shown["scheduler_cache_size", "nodes"] == 1
            assert shown["scheduler_cache_size", "pods"] == 1
            assert shown["scheduler_preemption_attempts_total",] == 1
            fit = ("scheduler_plugin_evaluation_total", "Filter", "NodeResourcesFit", PROFILE)
            assert shown[*fit, "Success"] == 1
            assert shown[*fit, "Unschedulable"] == 1
            assert shown["scheduler_scheduling_algorithm_duration_seconds_count",] == 2
            assert shown["scheduler_scheduling_attempt_duration_seconds_count", PROFILE, "scheduled"] == 1
            assert shown["scheduler_pod_scheduling_sli_duration_seconds_count", "1"] == 1
            assert shown["scheduler_pod_scheduling_attempts_count",] == 1
            points = "scheduler_framework_extension_point_duration_seconds_count"
            assert shown[points, "Bind", PROFILE, "Success"] == 1

    run_virtual(main)


def test_every_tenth_decision_is_timed_plugin_by_plugin() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"), node("b"))
            await world.add_pods(*(pod(f"p{number}", "10m") for number in range(30)))
            shown = page(world)
            timed = "scheduler_plugin_execution_duration_seconds_count"
            assert shown[timed, "Filter", "NodeResourcesFit", "Success"] == 3
            points = "scheduler_framework_extension_point_duration_seconds_count"
            assert shown[points, "Filter", PROFILE, "Success"] == 3

    run_virtual(main)
