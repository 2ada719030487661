"""How fast zones may be emptied: states, rates, and who waits for what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.duration import SECOND_NS
from nodeward.controllers.node_lifecycle.zones import (
    ClusterDisruption,
    EvictionRates,
    TokenBucket,
    ZoneCensus,
    Zones,
    ZoneState,
    zone_of,
)
from tests.controllers.node_lifecycle.nodes import node

RATES = EvictionRates()


@pytest.mark.parametrize(
    ("ready", "not_ready", "state", "rate"),
    [
        (10, 0, ZoneState.NORMAL, 0.1),
        (0, 0, ZoneState.NORMAL, 0.1),
        # Two nodes that fail are two nodes, however small the zone.
        (1, 2, ZoneState.NORMAL, 0.1),
        (2, 3, ZoneState.PARTIAL, 0.0),
        (9, 11, ZoneState.PARTIAL, 0.0),
        (46, 54, ZoneState.NORMAL, 0.1),
        (45, 55, ZoneState.PARTIAL, 0.01),
        (22, 28, ZoneState.PARTIAL, 0.0),
        (22, 29, ZoneState.PARTIAL, 0.01),
        (0, 1, ZoneState.FULL, 0.1),
        (0, 100, ZoneState.FULL, 0.1),
    ],
)
def test_the_state_of_a_zone_and_its_rate(ready: int, not_ready: int, state: ZoneState, rate: float) -> None:
    census = ZoneCensus(ready, not_ready)
    assert (census.state(RATES), RATES.of(census.state(RATES), census.size)) == (state, rate)


def test_the_name_of_a_zone() -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    assert zone_of(node()) == ""
    assert zone_of(node(labels={zone: "a"})) == ":\x00:a"
    assert zone_of(node(labels={zone: "a", region: "r"})) == "r:\x00:a"
    assert zone_of(node(labels={zone: "a", "failure-domain.beta.kubernetes.io/zone": "b"})) == ":\x00:b"


def test_a_bucket_gives_one_at_once_and_then_one_each_time() -> None:
    bucket = TokenBucket(0.1, 0)
    assert [at for at in range(31) if bucket.take(at * SECOND_NS)] == [0, 10, 20, 30]
    assert bucket.wait_seconds(34 * SECOND_NS) == 6.0


def test_a_slower_rate_holds_from_now_on_and_none_gives_nothing() -> None:
    bucket = TokenBucket(0.1, 0)
    assert bucket.take(0)
    bucket.change(0.01, 5 * SECOND_NS)
    assert bucket.wait_seconds(5 * SECOND_NS) == 100.0
    bucket.change(0.0, 10 * SECOND_NS)
    assert (bucket.take(1000 * SECOND_NS), bucket.wait_seconds(1000 * SECOND_NS)) == (False, None)
    bucket.change(0.1, 1000 * SECOND_NS)
    assert not bucket.take(1009 * SECOND_NS)
    assert bucket.take(1010 * SECOND_NS)


def test_who_waited_for_nothing_gets_a_token_at_the_new_rate_too() -> None:
    bucket = TokenBucket(0.1, 0)
    bucket.change(0.01, 5 * SECOND_NS)
    assert bucket.take(5 * SECOND_NS)


def rates(zones: Zones) -> dict[str, float]:
    return {name: zone.bucket.rate for name, zone in zones.of.items()}


def test_one_lost_zone_is_emptied_at_the_usual_rate_and_all_lost_zones_are_not() -> None:
    zones = Zones(RATES)
    assert zones.assess({"a": ZoneCensus(10, 0), "b": ZoneCensus(10, 0)}, 0) is ClusterDisruption.NONE
    assert zones.assess({"a": ZoneCensus(0, 10), "b": ZoneCensus(10, 0)}, SECOND_NS) is ClusterDisruption.NONE
    assert rates(zones) == {"a": 0.1, "b": 0.1}
    assert (
        zones.assess({"a": ZoneCensus(0, 10), "b": ZoneCensus(0, 10)}, 2 * SECOND_NS)
        is ClusterDisruption.BEGINS
    )
    assert (
        zones.assess({"a": ZoneCensus(0, 10), "b": ZoneCensus(0, 10)}, 3 * SECOND_NS)
        is ClusterDisruption.NONE
    )
    assert rates(zones) == {"a": 0.0, "b": 0.0}
    assert (
        zones.assess({"a": ZoneCensus(0, 10), "b": ZoneCensus(1, 9)}, 4 * SECOND_NS) is ClusterDisruption.ENDS
    )
    assert rates(zones) == {"a": 0.1, "b": 0.0}


def test_zones_without_nodes_are_forgotten_and_nodes_that_do_not_count_lose_nothing() -> None:
    zones = Zones(RATES)
    zones.assess({"a": ZoneCensus(1, 0), "b": ZoneCensus(1, 0)}, 0)
    assert zones.assess({"a": ZoneCensus(1, 0)}, SECOND_NS) is ClusterDisruption.NONE
    assert list(zones.of) == ["a"]
    # All that counts is lost; a zone of uncounted nodes says nothing about that.
    assert zones.assess({"a": ZoneCensus(0, 1), "c": ZoneCensus()}, 2 * SECOND_NS) is ClusterDisruption.BEGINS


def test_an_empty_cluster_is_not_a_lost_one() -> None:
    assert Zones(RATES).assess({}, 0) is ClusterDisruption.NONE


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from((0.0, 0.01, 0.1, 1.0)), st.booleans()), max_size=40
    )
)
def test_a_bucket_never_gives_more_than_its_fastest_rate_allows(
    steps: list[tuple[int, float, bool]],
) -> None:
    bucket, now, given_at, fastest = TokenBucket(0.1, 0), 0, [-(10**18)], 0.1
    for wait, rate, is_change in steps:
        now += wait * SECOND_NS
        if is_change:
            fastest = max(fastest, rate)
            bucket.change(rate, now)
        if bucket.take(now):
            assert now - given_at[-1] >= SECOND_NS / fastest
            given_at.append(now)
