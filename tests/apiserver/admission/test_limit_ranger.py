"""Containers get the namespace's defaults and stay in its ranges."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.cluster import LimitRange, LimitRangeItem, LimitRangeSpec
from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    VolumeResourceRequirements,
)
from nodeward.apiserver.admission.limit_ranger import ANNOTATION, LimitRanger
from tests.apiserver.admission.world import (
    admitted,
    amounts,
    asking,
    copy,
    create,
    forbidden,
    meta,
    pod,
    update,
    world,
)


def limited(*items: LimitRangeItem) -> LimitRanger:
    made = LimitRange(metadata=meta("limits", "default"), spec=LimitRangeSpec(limits=list(items)))
    return LimitRanger(world(made))


DEFAULTS = LimitRangeItem(
    type="Container",
    default=amounts(cpu="200m", memory="1Gi"),
    default_request=amounts(cpu="100m", memory="512Mi"),
)


def test_what_containers_do_not_say_is_filled_in_and_written_down() -> None:
    made = admitted(
        limited(DEFAULTS),
        create(pod(containers=[asking("a"), asking("b", cpu="1")], init_containers=[asking("i")])),
    )
    a, b = made.spec.containers
    assert a.resources.requests == amounts(cpu="100m", memory="512Mi")
    assert b.resources.limits == amounts(cpu="1", memory="1Gi")
    assert made.metadata.annotations[ANNOTATION] == (
        "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for container a; "
        "cpu, memory request for container b; memory limit for container b; "
        "cpu, memory request for init container i; cpu, memory limit for init container i"
    )


def test_a_pod_that_says_everything_is_not_changed() -> None:
    full = pod(containers=[asking("c", amounts(cpu="1", memory="1Gi"), cpu="1", memory="1Gi")])
    before = copy(full)
    assert admitted(limited(DEFAULTS), create(full)) == before


@pytest.mark.parametrize(
    ("bounds", "requests", "limits", "why"),
    [
        (
            {"min": amounts(cpu="100m")},
            {},
            {},
            "minimum cpu usage per Container is 100m.  No request is specified",
        ),
        (
            {"min": amounts(cpu="100m")},
            amounts(cpu="50m"),
            {},
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            {"min": amounts(cpu="100m")},
            amounts(cpu="100m"),
            {"cpu": "90m"},
            "minimum cpu usage per Container is 100m, but limit is 90m",
        ),
        (
            {"max": amounts(memory="1Gi")},
            {},
            {},
            "maximum memory usage per Container is 1Gi.  No limit is specified",
        ),
        (
            {"max": amounts(memory="1Gi")},
            {},
            {"memory": "2Gi"},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"max": amounts(memory="1Gi")},
            amounts(memory="2Gi"),
            {"memory": "1Gi"},
            "maximum memory usage per Container is 1Gi, but request is 2Gi",
        ),
        (
            {"max_limit_request_ratio": amounts(cpu="1500m")},
            amounts(cpu="3"),
            {"cpu": "5"},
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.666667",
        ),
        (
            {"max_limit_request_ratio": amounts(cpu="2")},
            {},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"max_limit_request_ratio": amounts(cpu="2")},
            amounts(cpu="1"),
            {},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
    ],
)
def test_a_container_outside_the_range_is_refused(
    bounds: dict[str, Any], requests: Any, limits: dict[str, str], why: str
) -> None:
    plugin = limited(LimitRangeItem(type="Container", **bounds))
    assert forbidden(plugin, create(pod(containers=[asking("c", requests, **limits)]))) == why


def test_everything_that_is_wrong_is_named_at_once() -> None:
    plugin = limited(LimitRangeItem(type="Container", max=amounts(cpu="1", memory="1Gi")))
    greedy = asking("c", cpu="2", memory="2Gi")
    assert forbidden(plugin, create(pod(containers=[greedy, copy(greedy)]))) == (
        "[maximum cpu usage per Container is 1, but limit is 2, "
        "maximum memory usage per Container is 1Gi, but limit is 2Gi]"
    )


def test_a_pod_is_measured_as_a_whole() -> None:
    plugin = limited(LimitRangeItem(type="Pod", max=amounts(cpu="1")))
    two = [asking("a", cpu="600m"), asking("b", cpu="600m")]
    assert forbidden(plugin, create(pod(containers=two))) == (
        "maximum cpu usage per Pod is 1, but limit is 1200m"
    )
    whole = ResourceRequirements(limits=amounts(cpu="1"))
    admitted(plugin, create(pod(containers=two, resources=whole)))


def test_a_resize_is_measured_but_no_other_update() -> None:
    plugin = limited(LimitRangeItem(type="Container", max=amounts(cpu="1")))
    old = pod(containers=[asking("c", cpu="1")])
    new = pod(containers=[asking("c", cpu="2")])
    admitted(plugin, update(new, old))
    admitted(plugin, update(new, old, "status"))
    assert "limit is 2" in forbidden(plugin, update(new, old, "resize"))
    old.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    admitted(plugin, update(new, old, "resize"))


def test_claims_are_measured_by_what_they_request() -> None:
    plugin = limited(
        LimitRangeItem(type="PersistentVolumeClaim", min=amounts(storage="1Gi"), max=amounts(storage="2Gi"))
    )

    def claim(size: str) -> PersistentVolumeClaim:
        resources = VolumeResourceRequirements(requests=amounts(storage=size))
        return PersistentVolumeClaim(
            metadata=meta("v", "default"), spec=PersistentVolumeClaimSpec(resources=resources)
        )

    admitted(plugin, create(claim("2Gi")))
    assert forbidden(plugin, create(claim("3Gi"))) == (
        "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    )
    assert forbidden(plugin, update(claim("500Mi"), claim("2Gi"))) == (
        "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"
    )
