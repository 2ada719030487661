"""Until when a pod stays: the first toleration counts, the shortest time wins, clocks start once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.base.duration import SECOND_NS
from nodeward.controllers.taint_eviction.deadlines import EvictionDeadline, stay
from nodeward.rules.taints import seconds_until_eviction

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def taint(key: str, value: str = "", effect: str = "NoExecute") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def tolerate(key: str, seconds: int | None = None, operator: str = "Exists", value: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect="NoExecute", toleration_seconds=seconds)


def ask(
    taints: list[Taint],
    tolerations: list[Toleration],
    before: EvictionDeadline,
    at: int,
    *,
    numeric: bool = True,
) -> EvictionDeadline:
    return stay(taints, tolerations, before.since, at * SECOND_NS, numeric=numeric)


def end(found: EvictionDeadline) -> int | None:
    return None if found.end_ns is None else found.end_ns // SECOND_NS


@pytest.mark.parametrize(
    ("taints", "tolerations", "ends"),
    [
        ([], [], None),
        ([taint("a", effect="NoSchedule")], [], None),
        ([taint("a")], [], 100),
        ([taint("a")], [tolerate("a")], None),
        ([taint("a")], [tolerate("a", 30)], 130),
        ([taint("a")], [tolerate("a", 0)], 100),
        ([taint("a")], [tolerate("a", -5)], 100),
        ([taint("a"), taint("b")], [tolerate("a", 30)], 100),
        ([taint("a"), taint("b")], [tolerate("a", 30), tolerate("b", 20)], 120),
        ([taint("a"), taint("b")], [tolerate("a", 30), tolerate("b")], 130),
        # The first that covers it decides, as they are listed.
        ([taint("a")], [tolerate("a", 30), tolerate("a")], 130),
        ([taint("a")], [tolerate("a"), tolerate("a", 30)], None),
        ([taint("a", "950")], [tolerate("a", None, "Gt", "900")], None),
        ([taint("a", "950")], [tolerate("a", 60, "Gt", "900")], 160),
        ([taint("a", "900")], [tolerate("a", 60, "Gt", "900")], 100),
        ([taint("a", "5")], [tolerate("a", 60, "Lt", "10")], 160),
    ],
)
def test_when_a_pod_goes(taints: list[Taint], tolerations: list[Toleration], ends: int | None) -> None:
    assert end(ask(taints, tolerations, EvictionDeadline(), 100)) == ends


def test_with_the_gate_off_a_number_covers_nothing() -> None:
    found = ask(
        [taint("a", "950")], [tolerate("a", None, "Gt", "900")], EvictionDeadline(), 100, numeric=False
    )
    assert end(found) == 100


def test_looking_again_changes_nothing() -> None:
    taints, tolerations = [taint("a")], [tolerate("a", 30)]
    found = ask(taints, tolerations, EvictionDeadline(), 100)
    assert ask(taints, tolerations, found, 120) == found


def test_a_second_taint_brings_the_end_forward_and_takes_it_along_when_it_goes() -> None:
    tolerations = [tolerate("a", 300), tolerate("b", 10)]
    first = ask([taint("a")], tolerations, EvictionDeadline(), 0)
    both = ask([taint("a"), taint("b")], tolerations, first, 100)
    left = ask([taint("a")], tolerations, both, 105)
    assert (end(first), end(both), end(left)) == (300, 110, 300)


def test_a_taint_that_comes_back_starts_anew() -> None:
    tolerations = [tolerate("a", 30)]
    first = ask([taint("a")], tolerations, EvictionDeadline(), 0)
    gone = ask([], tolerations, first, 10)
    assert (end(gone), end(ask([taint("a")], tolerations, gone, 20))) == (None, 50)


def test_from_not_ready_to_unreachable_is_one_failure() -> None:
    tolerations = [tolerate(NOT_READY, 300), tolerate(UNREACHABLE, 300)]
    first = ask([taint(NOT_READY)], tolerations, EvictionDeadline(), 0)
    swapped = ask([taint(UNREACHABLE)], tolerations, first, 100)
    back = ask([taint(NOT_READY)], tolerations, swapped, 200)
    assert (end(swapped), end(back)) == (300, 300)


def test_a_value_that_changes_is_the_same_taint_and_a_limit_begins_when_it_limits() -> None:
    tolerations = [tolerate("a", None, "Gt", "900"), tolerate("a", 60, "Gt", "500")]
    fine = ask([taint("a", "950")], tolerations, EvictionDeadline(), 0)
    low = ask([taint("a", "800")], tolerations, fine, 100)
    lower = ask([taint("a", "700")], tolerations, low, 130)
    fine_again = ask([taint("a", "901")], tolerations, lower, 140)
    worst = ask([taint("a", "500")], tolerations, fine_again, 150)
    assert [end(each) for each in (fine, low, lower, fine_again, worst)] == [None, 160, 160, None, 150]


_KEYS = st.sampled_from(("a", "b", NOT_READY, UNREACHABLE))
_TAINTS = st.lists(
    st.builds(taint, _KEYS, st.sampled_from(("", "5", "50"))), max_size=3, unique_by=lambda each: each.key
)
_TOLERATIONS = st.lists(
    st.builds(
        tolerate,
        _KEYS,
        st.none() | st.integers(-1, 60),
        st.sampled_from(("Exists", "Gt", "Lt")),
        st.just("20"),
    ),
    max_size=5,
)


@given(_TOLERATIONS, st.lists(st.tuples(_TAINTS, st.integers(0, 40)), min_size=1, max_size=8))
def test_the_end_is_never_later_than_if_the_taints_were_new_and_never_before_the_first_limit(
    tolerations: list[Toleration], history: list[tuple[list[Taint], int]]
) -> None:
    known, now = EvictionDeadline(), 0
    for taints, wait in history:
        now += wait
        known = ask(taints, tolerations, known, now)
        fresh = seconds_until_eviction(taints, tolerations, numeric=True)
        assert (known.end_ns is None) == (fresh is None)
        if fresh is not None and known.end_ns is not None:
            assert known.end_ns <= (now + fresh) * SECOND_NS
            assert all(since <= now * SECOND_NS for since in known.since.values())
