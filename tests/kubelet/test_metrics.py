"""What a kubelet counts, and under which names."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.features import Gates
from nodeward.kubelet.metrics import KubeletMetrics
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import hosted, specification


@pytest.mark.parametrize(
    ("reason", "counted"),
    [
        ("PodFeatureUnsupported", "PodFeatureUnsupported"),
        ("OutOfcpu", "OutOfcpu"),
        ("OutOfexample.com/fan", "OutOfExtendedResources"),
        ("NodeAffinity", "Other"),
        ("TaintToleration", "Other"),
    ],
)
def test_rejections_are_counted_by_reasons_that_are_few(reason: str, counted: str) -> None:
    metrics = KubeletMetrics(Metrics())
    metrics.rejected(reason)
    assert metrics.admission_rejections.values == {(counted,): 1}


def test_the_page_has_the_names_of_kubernetes() -> None:
    metrics = KubeletMetrics(Metrics())
    metrics.rejected("PodFeatureUnsupported")
    metrics.started_pods.inc()
    metrics.gate_timeouts.inc("example.com/Agent")
    page = metrics.all.text().decode()
    assert 'kubelet_admission_rejections_total{reason="PodFeatureUnsupported"} 1.0' in page
    assert "kubelet_started_pods_total 1.0" in page
    assert 'kubelet_node_readiness_gate_timeouts_total{condition_type="example.com/Agent"} 1.0' in page


def test_pods_and_containers_are_counted_as_they_start_run_and_go() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await each.run_pod("p", "n1")
            await each.run_pod("crashes", "n1", c="crashes=2,crash-after=1s")
            await clock.sleep(8)  # the second pod waits for its third start
            assert {
                'kubelet_started_containers_total{container_type="container"} 3.0',
                "kubelet_running_pods 2.0",
                'kubelet_running_containers{container_state="running"} 1.0',
                'kubelet_desired_pods{static=""} 2.0',
                'kubelet_active_pods{static=""} 2.0',
                'kubelet_active_pods{static="true"} 0.0',
            } <= set(each.host.metrics.all.text().decode().splitlines())
            await each.client.delete(Pod, "p", "default", grace_period=0)
            await each.client.delete(Pod, "crashes", "default", grace_period=0)
            await clock.sleep(40)
            assert "kubelet_running_pods 0.0" in each.host.metrics.all.text().decode()

    run_virtual(main)


def test_kubelets_of_one_process_count_together() -> None:
    metrics = Metrics()
    first, second = KubeletMetrics(metrics), KubeletMetrics(metrics)
    for kubelet, names in ((first, ("a",)), (second, ("b", "c"))):
        rules = LifecycleRules(Gates.of("1.37"))
        lives = [PodLifecycle(Pod(metadata=ObjectMeta(name=name)), 0, rules) for name in names]
        kubelet.follow(lambda lives=lives: lives)  # type: ignore[misc]
    assert 'kubelet_desired_pods{static=""} 3.0' in metrics.text().decode()
