"""What a node can never resize, in upstream's words, and who comes first among those that wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.kubelet.resize_checks import changes_of, infeasible, order_of
from nodeward.kubelet.resize_metrics import priority_bucket

STATIC_TEXT = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'


def amounts(cpu: str, memory: str = "64Mi") -> dict[str, Quantity]:
    return {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}


def guaranteed(cpu: str, memory: str = "64Mi") -> Pod:
    size = ResourceRequirements(requests=amounts(cpu, memory), limits=amounts(cpu, memory))
    return Pod(spec=PodSpec(containers=[Container(name="c", resources=size)]))


def burstable(cpu: str) -> Pod:
    size = ResourceRequirements(requests=amounts(cpu))
    return Pod(spec=PodSpec(containers=[Container(name="c", resources=size)]))


@pytest.mark.parametrize(
    ("new", "old", "policy", "gates", "expected"),
    [
        (guaranteed("2"), guaranteed("1"), "static", "", STATIC_TEXT),
        (guaranteed("1500m"), guaranteed("500m"), "static", "", STATIC_TEXT),
        (guaranteed("2"), guaranteed("1"), "none", "", ""),
        (guaranteed("1", "1Gi"), guaranteed("1"), "static", "", ""),
        (burstable("2"), burstable("1"), "static", "", ""),
        (guaranteed("2"), guaranteed("1"), "static", "InPlacePodVerticalScalingExclusiveCPUs=true", ""),
    ],
    ids=["static", "part of a CPU", "no policy", "memory only", "burstable", "gate on"],
)
def test_exclusive_cpus_are_resized_only_with_their_gate(
    new: Pod, old: Pod, policy: str, gates: str, expected: str
) -> None:
    found = infeasible(new, old, Gates.of("1.37", gates), policy)
    assert (found.message if found is not None else "") == expected
    if found is not None:
        assert (found.is_infeasible, found.reason) == (True, "Infeasible")
        assert found.detail == "guaranteed_pod_cpu_manager_static_policy"


def test_gates_of_the_node_that_are_off_make_a_resize_infeasible() -> None:
    old = burstable("1")
    whole = replace(old, spec=replace(old.spec, resources=ResourceRequirements(requests=amounts("2"))))
    off = Gates.of("1.37", "InPlacePodLevelResourcesVerticalScaling=false")
    found = infeasible(whole, old, off, "none")
    assert found is not None
    assert (found.message, found.detail) == (
        "InPlacePodLevelResourcesVerticalScaling is disabled",
        "plr_feature_gate_off",
    )
    assert infeasible(burstable("2"), old, off, "none") is None, "containers are resized without it"
    older = Gates.of("1.34", "InPlacePodVerticalScaling=false")
    found = infeasible(burstable("2"), old, older, "none")
    assert found is not None
    assert (found.message, found.detail) == ("InPlacePodVerticalScaling is disabled", "feature_gate_off")


def test_what_raises_nothing_comes_first_then_priority_then_guaranteed_then_age() -> None:
    def place(
        pod: Pod, *, raises: bool = True, priority: int = 0, since: str | None = None
    ) -> tuple[object, ...]:
        return order_of(replace(pod, spec=replace(pod.spec, priority=priority)), raises, since)

    ordered = [
        place(burstable("1"), raises=False),
        place(burstable("1"), priority=9),
        place(guaranteed("1"), since="2026-01-02T00:00:00Z"),
        place(burstable("1"), since="2026-01-01T00:00:00Z"),
        place(burstable("1"), since="2026-01-02T00:00:00Z"),
        place(burstable("1")),
        place(guaranteed("1"), priority=-1),
    ]
    assert sorted(ordered) == ordered


def test_a_resize_may_raise_one_resource_and_lower_another() -> None:
    both = changes_of(guaranteed("2", "32Mi"), guaranteed("1", "64Mi"), with_pod_level=True)
    assert both == (True, True)
    assert changes_of(guaranteed("1"), guaranteed("1"), with_pod_level=True) == (False, False)
    assert changes_of(
        burstable("1"), Pod(spec=PodSpec(containers=[Container(name="c")])), with_pod_level=True
    ) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("priority", "bucket"),
    [
        (2_000_001_000, "system-critical"),
        (1_999_999_999, "high"),
        (99_999, "medium"),
        (None, "normal"),
        (-1, "low"),
        (-1000, "very-low"),
    ],
)
def test_metrics_name_the_class_of_a_priority(priority: int | None, bucket: str) -> None:
    pod = burstable("1")
    assert priority_bucket(replace(pod, spec=replace(pod.spec, priority=priority))) == bucket
