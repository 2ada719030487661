"""A resize is described by what it changes, and refused where it cannot be done in place."""

from __future__ import annotations

import copy

import pytest

from nodeward.api.core_v1.container import Container, ContainerResizePolicy, ResourceRequirements
from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.quantity import Quantity
from nodeward.rules.resize import ResizeChange, changes, keeps_qos, restarts, why_not_in_place


def _amounts(**amounts: str) -> dict[str, Quantity]:
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in amounts.items()}


def _spec(requests: dict[str, Quantity], limits: dict[str, Quantity] | None = None) -> PodSpec:
    resources = ResourceRequirements(requests=requests, limits=limits or {})
    return PodSpec(containers=[Container(name="app", resources=resources)])


def test_changes_name_container_side_resource_and_both_amounts() -> None:
    old, new = _spec(_amounts(cpu="2", memory="1Gi")), _spec(_amounts(cpu="1", memory="1Gi"))
    (change,) = changes(old, new)
    assert change == ResizeChange("app", "requests", "cpu", Quantity.parse("2"), Quantity.parse("1"))
    assert not change.grows
    assert changes(new, old)[0].grows
    assert changes(old, copy.deepcopy(old)) == []


def test_equal_amounts_in_other_words_are_no_change() -> None:
    assert changes(_spec(_amounts(cpu="1")), _spec(_amounts(cpu="1000m"))) == []


def test_a_limit_that_comes_is_less_and_a_request_that_comes_is_more() -> None:
    (limit,) = changes(_spec({}), _spec({}, _amounts(cpu="1")))
    (request,) = changes(_spec({}), _spec(_amounts(cpu="1")))
    assert (limit.grows, request.grows) == (False, True)


def test_the_pod_as_a_whole_is_seen_too() -> None:
    old, new = _spec({}), _spec({})
    old.resources = ResourceRequirements(requests=_amounts(cpu="1"))
    new.resources = ResourceRequirements(requests=_amounts(cpu="3"))
    (change,) = changes(old, new)
    assert (change.container, change.resource, change.grows) == ("", "cpu", True)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (_spec(_amounts(cpu="1")), _spec(_amounts(cpu="2")), ""),
        (_spec(_amounts(cpu="1")), _spec(_amounts(cpu="2"), _amounts(cpu="4")), ""),
        (_spec(_amounts(cpu="1")), _spec({}), "requests.cpu of container 'app' cannot be removed"),
        (
            _spec({}),
            _spec(_amounts(cpu="1")),
            "the quality of service would change from BestEffort to Burstable",
        ),
        (
            _spec(_amounts(cpu="1", ephemeral_storage="1Gi")),
            _spec(_amounts(cpu="1", ephemeral_storage="2Gi")),
            "ephemeral-storage of container 'app' cannot be changed in place, only cpu and memory can",
        ),
        (
            _spec(_amounts(cpu="1")),
            PodSpec(containers=[Container(name="other")]),
            "containers may not be added, removed, renamed or reordered",
        ),
    ],
)
def test_why_a_change_cannot_be_made_in_place(old: PodSpec, new: PodSpec, why: str) -> None:
    assert why_not_in_place(old, new) == why


def test_guaranteed_stays_guaranteed_only_if_both_sides_move() -> None:
    one, two = _amounts(cpu="1", memory="1Gi"), _amounts(cpu="2", memory="1Gi")
    assert keeps_qos(_spec(one, one), _spec(two, two))
    assert not keeps_qos(_spec(one, one), _spec(one, two))


def test_a_container_restarts_only_for_the_resource_it_asked_to() -> None:
    old, new = _spec(_amounts(cpu="1", memory="1Gi")), _spec(_amounts(cpu="2", memory="1Gi"))
    container = new.containers[0]
    container.resize_policy = [
        ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")
    ]
    assert not restarts(container, changes(old, new))
    container.resources.requests = _amounts(cpu="2", memory="2Gi")
    assert restarts(container, changes(old, new))
