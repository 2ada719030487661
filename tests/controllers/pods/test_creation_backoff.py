"""What was refused is tried again later and later, unless it changed."""

from __future__ import annotations

from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.controllers.pods.creation_backoff import CreationBackoff
from nodeward.machinery.backoff import Curve
from nodeward.machinery.clock import VirtualClock

OWNER = ObjectMeta(uid="u", generation=1)


def patience() -> tuple[CreationBackoff[str], VirtualClock]:
    clock = VirtualClock()
    return CreationBackoff(clock, Curve(initial=1.0, cap=8.0)), clock


def test_waits_grow_to_the_cap() -> None:
    each, _ = patience()
    assert [each.refused("k", OWNER) for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]


def test_nothing_is_tried_before_the_wait_is_over() -> None:
    each, clock = patience()
    assert each.seconds_left("k", OWNER) == 0
    each.refused("k", OWNER)
    clock.elapsed_ns = 400_000_000
    assert each.seconds_left("k", OWNER) == 0.6
    clock.elapsed_ns = SECOND_NS
    assert each.seconds_left("k", OWNER) == 0


def test_a_changed_owner_or_another_by_the_same_name_starts_anew() -> None:
    each, _ = patience()
    for other in (ObjectMeta(uid="u", generation=2), ObjectMeta(uid="v", generation=1)):
        each.refused("k", OWNER)
        each.refused("k", OWNER)
        assert each.seconds_left("k", other) == 0
        assert each.refused("k", other) == 1.0
        each.forget("k")


def test_a_success_is_a_new_start() -> None:
    each, _ = patience()
    each.refused("k", OWNER)
    each.forget("k")
    assert each.refused("k", OWNER) == 1.0
