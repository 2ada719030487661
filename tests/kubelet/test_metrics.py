"""What a kubelet counts, and under which names."""

from __future__ import annotations

import pytest

from nodeward.kubelet.metrics import KubeletMetrics
from nodeward.machinery.metrics import Metrics


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
