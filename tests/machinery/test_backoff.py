"""Waits grow with failures, stop at the cap, and spread by luck."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.backoff import RETRY_CURVE, Backoff, Curve, KeyedBackoff
from nodeward.machinery.clock import SeededChance


def test_a_failing_object_is_retried_after_5_ms_doubling_up_to_1000_s() -> None:
    waits = [RETRY_CURVE.wait(failures) for failures in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[17] == 0.005 * 2**17
    assert waits[18:] == [1000.0, 1000.0]


@given(
    st.floats(0.001, 10), st.floats(1, 10), st.floats(1, 1000), st.integers(0, 10**6), st.integers(0, 10**6)
)
def test_waits_never_shrink_and_never_pass_the_cap(
    initial: float, factor: float, over: float, failures: int, more: int
) -> None:
    curve = Curve(initial=initial, cap=initial * over, factor=factor)
    assert initial <= curve.wait(failures) <= curve.wait(failures + more) <= curve.cap


@given(st.integers(), st.integers(0, 30), st.floats(0, 2))
def test_jitter_adds_at_most_its_share(seed: int, failures: int, jitter: float) -> None:
    curve = Curve(initial=1.0, cap=60.0, jitter=jitter)
    plain = curve.wait(failures)
    assert plain <= curve.wait_with_luck(failures, SeededChance(seed)) <= plain * (1 + jitter) * (1 + 1e-12)


def test_jitter_spreads_those_who_failed_together() -> None:
    curve = Curve(initial=1.0, cap=60.0, jitter=0.5)
    assert len({curve.wait_with_luck(3, SeededChance(seed)) for seed in range(100)}) == 100


def test_success_starts_small_again() -> None:
    backoff = Backoff(Curve(initial=1.0, cap=5.0), SeededChance(0))
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.failures == 5
    backoff.reset()
    assert backoff.next() == 1.0


def test_keys_fail_independently() -> None:
    backoff: KeyedBackoff[str] = KeyedBackoff(Curve(initial=1.0, cap=5.0, jitter=0.1), SeededChance(0))
    first, second = backoff.next("a"), backoff.next("a")
    assert 1.0 <= first <= 1.1
    assert 2.0 <= second <= 2.2
    assert 1.0 <= backoff.next("b") <= 1.1
    assert (backoff.failures("a"), backoff.failures("b"), backoff.failures("c")) == (2, 1, 0)
    backoff.forget("a")
    backoff.forget("never seen")
    assert backoff.failures("a") == 0


def test_senseless_curves_are_refused() -> None:
    for initial, cap, factor, jitter in (
        (2.0, 1.0, 2.0, 0.0),
        (-1.0, 1.0, 2.0, 0.0),
        (1, 2, 0.5, 0),
        (1, 2, 2, -1),
    ):
        with pytest.raises(InvariantBroken):
            Curve(initial=initial, cap=cap, factor=factor, jitter=jitter)
    with pytest.raises(InvariantBroken):
        KeyedBackoff[str](Curve(initial=1.0, cap=2.0, jitter=0.1))
