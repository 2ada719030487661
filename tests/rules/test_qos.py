"""Quality of service follows from requests and limits of cpu and memory, of all containers or of the pod."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.quantity import Quantity
from nodeward.rules.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class


def _container(requests: str, limits: str) -> Container:
    def amounts(text: str) -> dict[str, Quantity]:
        pairs = (pair.split("=") for pair in text.split())
        return {name: Quantity.parse(amount) for name, amount in pairs}

    return Container(resources=ResourceRequirements(requests=amounts(requests), limits=amounts(limits)))


_FULL = ("cpu=1 memory=1Gi", "cpu=1 memory=1Gi")


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([("", "")], BEST_EFFORT),
        ([("example.com/gpu=1", "example.com/gpu=1")], BEST_EFFORT),
        ([_FULL], GUARANTEED),
        ([("cpu=1000m memory=1024Mi", "cpu=1 memory=1Gi")], GUARANTEED),
        ([_FULL, _FULL], GUARANTEED),
        ([_FULL, ("", "")], BURSTABLE),
        ([("cpu=1", "")], BURSTABLE),
        ([("cpu=1", "cpu=1")], BURSTABLE),
        ([("cpu=1 memory=1Gi", "cpu=2 memory=1Gi")], BURSTABLE),
    ],
)
def test_the_class_of_containers(containers: list[tuple[str, str]], expected: str) -> None:
    spec = PodSpec(containers=[_container(*each) for each in containers])
    assert qos_class(spec) == expected


def test_init_containers_count_and_the_pod_as_a_whole_overrides() -> None:
    spec = PodSpec(containers=[_container(*_FULL)], init_containers=[_container("", "")])
    assert qos_class(spec) == BURSTABLE
    spec.resources = _container(*_FULL).resources
    assert qos_class(spec) == GUARANTEED
