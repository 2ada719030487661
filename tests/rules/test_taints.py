"""Taints keep pods away, make nodes unwelcome, and end pods, as listed and in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.rules.taint_columns import TaintSets
from nodeward.rules.taints import (
    NO_EXECUTE,
    blocking_taint,
    first_untolerated,
    is_same,
    seconds_until_eviction,
    unwelcome,
    with_effect,
    without,
)

_A = Taint(key="a", value="1", effect="NoSchedule")
_B = Taint(key="b", value="2", effect="PreferNoSchedule")
_C = Taint(key="c", value="3", effect="NoExecute")
_ALL = [_A, _B, _C]


def _exists(key: str, effect: str = "", seconds: int | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", effect=effect, toleration_seconds=seconds)


def test_the_first_untolerated_taint_is_named_and_soft_ones_do_not_block() -> None:
    assert blocking_taint(_ALL, [], numeric=True) is _A
    assert blocking_taint(_ALL, [_exists("a")], numeric=True) is _C
    assert blocking_taint(_ALL, [_exists("a"), _exists("c")], numeric=True) is None
    assert blocking_taint([_B], [], numeric=True) is None
    assert first_untolerated(_ALL, [], NO_EXECUTE, numeric=True) is _C
    assert with_effect(_ALL, "NoSchedule", "NoExecute") == [_A, _C]


def test_soft_taints_are_counted_and_only_tolerations_for_them_help() -> None:
    soft = [Taint(key=f"k{n}", value=str(n), effect="PreferNoSchedule") for n in range(3)]
    assert unwelcome(soft, [], numeric=True) == 3
    assert unwelcome(soft, [_exists("k0"), _exists("k1", "NoSchedule")], numeric=True) == 2
    above = Toleration(key="k2", operator="Gt", value="1", effect="PreferNoSchedule")
    assert unwelcome(soft, [above], numeric=True) == 2
    assert unwelcome(soft, [above], numeric=False) == 3


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([_exists("c", "NoExecute")], None),
        ([_exists("c", "NoExecute", 30)], 30),
        ([_exists("c", "NoExecute", -5)], 0),
        ([_exists("c", "NoExecute", 0)], 0),
        ([_exists("c", "NoExecute", 60), _exists("c", "NoExecute", 5)], 60),
        ([Toleration(key="c", operator="Gt", value="2", effect="NoExecute", toleration_seconds=7)], 7),
        ([Toleration(key="c", operator="Gt", value="3", effect="NoExecute", toleration_seconds=7)], 0),
    ],
)
def test_a_running_pod_may_stay_as_long_as_its_first_covering_toleration_says(
    tolerations: list[Toleration], seconds: int | None
) -> None:
    assert seconds_until_eviction([_A, _C], tolerations, numeric=True) == seconds


def test_the_shortest_of_several_taints_counts_and_one_untolerated_taint_ends_it() -> None:
    second = Taint(key="d", effect="NoExecute")
    both = [_exists("c", "NoExecute", 30), _exists("d", "NoExecute", 10)]
    assert seconds_until_eviction([_C, second], both, numeric=True) == 10
    assert seconds_until_eviction([_C, second], both[:1], numeric=True) == 0
    assert seconds_until_eviction([_A, _B], [], numeric=True) is None


def test_with_the_gate_off_a_pod_that_relied_on_a_number_goes_at_once() -> None:
    above = [Toleration(key="c", operator="Gt", value="2", effect="NoExecute")]
    assert seconds_until_eviction([_C], above, numeric=True) is None
    assert seconds_until_eviction([_C], above, numeric=False) == 0


def test_a_taint_is_told_by_key_and_effect() -> None:
    assert is_same(_A, Taint(key="a", value="other", effect="NoSchedule"))
    assert not is_same(_A, Taint(key="a", value="1", effect="NoExecute"))
    assert without(_ALL, Taint(key="b", effect="PreferNoSchedule")) == [_A, _C]


_TAINTS = st.lists(
    st.builds(
        Taint,
        key=st.sampled_from(["a", "b"]),
        value=st.sampled_from(["1", "2", "3", "x"]),
        effect=st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    ),
    max_size=3,
)
_TOLERATIONS = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(["", "a", "b"]),
        operator=st.sampled_from(["", "Equal", "Exists", "Lt", "Gt"]),
        value=st.sampled_from(["1", "2", "3", "x"]),
        effect=st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"]),
    ),
    max_size=3,
)


@given(st.lists(_TAINTS, max_size=6), st.lists(_TOLERATIONS, max_size=4), st.booleans())
def test_columns_answer_as_the_plain_rules_do_also_for_sets_that_come_later(
    nodes: list[list[Taint]], pods: list[list[Toleration]], numeric: bool
) -> None:
    sets = TaintSets(numeric=numeric)
    ids: list[int] = []
    for taints in nodes:
        ids.append(sets.id_of(taints))
        column = np.array(ids, np.int32)
        for tolerations in pods:
            fits = [blocking_taint(each, tolerations, numeric=numeric) is None for each in nodes[: len(ids)]]
            counts = [unwelcome(each, tolerations, numeric=numeric) for each in nodes[: len(ids)]]
            assert sets.are_tolerated(tolerations, column).tolist() == fits
            assert sets.unwelcome(tolerations, column).tolist() == counts


def test_nodes_with_equal_taints_share_an_id_whatever_their_times() -> None:
    sets = TaintSets(numeric=True)
    dated = Taint(key="a", value="1", effect="NoSchedule", time_added="2026-01-01T00:00:00Z")
    assert sets.id_of([_A]) == sets.id_of([dated])
    assert sets.id_of([_A, _B]) != sets.id_of([_B, _A])
    assert len(sets) == 3


@given(st.lists(_TAINTS, min_size=1, max_size=6), st.lists(_TOLERATIONS, max_size=4), st.data())
def test_sets_that_are_forgotten_change_no_answer_about_the_others(
    nodes: list[list[Taint]], pods: list[list[Toleration]], data: st.DataObject
) -> None:
    sets = TaintSets(numeric=True)
    ids = [sets.id_of(taints) for taints in nodes]
    for tolerations in pods:
        sets.judge(tolerations)
    kept = data.draw(st.lists(st.sampled_from(range(len(nodes))), min_size=1))
    column = sets.keep_only(np.array([ids[each] for each in kept], np.int32))
    assert len(sets) == len({ids[each] for each in kept})
    for tolerations in pods:
        fits = [blocking_taint(nodes[each], tolerations, numeric=True) is None for each in kept]
        assert sets.are_tolerated(tolerations, column).tolist() == fits
    assert [sets.id_of(nodes[each]) for each in kept] == column.tolist()
