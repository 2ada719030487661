"""Bitmaps are sets: every operation agrees with Python's own sets, for one node and for a column of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.features.declared import (
    FeatureError,
    FeatureSet,
    FeatureTable,
    Framework,
    feature_matrix,
    match_column,
)
from tests.features.declared.objects import feature

#: Tables of all sizes around the borders of words, up to 500 features.
SIZES = st.one_of(st.sampled_from([1, 63, 64, 65, 127, 128, 129, 500]), st.integers(1, 500))


def named(number: int) -> str:
    return f"Feature{number:03}"


def table_of(size: int) -> FeatureTable:
    return FeatureTable(tuple(named(number) for number in range(size)))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[FeatureTable, set[str], list[set[str]]]:
    """A table, what a pod needs, and what some nodes list; nodes also list names nobody knows."""
    size = draw(SIZES)
    numbers = st.sets(st.integers(0, size - 1), max_size=size)
    needed = draw(st.one_of(st.sets(st.integers(0, size - 1), max_size=3), numbers))
    nodes = []
    for _ in range(draw(st.integers(0, 6))):
        listed = draw(numbers)
        if draw(st.booleans()):
            listed |= needed
        nodes.append(
            {named(number) for number in listed} | draw(st.sets(st.sampled_from(["New", "Newer/x"])))
        )
    return table_of(size), {named(number) for number in needed}, nodes


@given(worlds())
@settings(max_examples=200)
def test_matching_bitmaps_is_matching_sets(world: tuple[FeatureTable, set[str], list[set[str]]]) -> None:
    table, needed, nodes = world
    required = table.set_of(needed)
    present = [table.set_of(sorted(each, reverse=True)) for each in nodes]
    for listed, have in zip(nodes, present, strict=True):
        assert required.is_subset_of(have) is needed.issubset(listed)
        assert (required - have).names() == tuple(sorted(needed - listed))
        assert set((required | have).names()) == needed | (listed & {*table.names})
    column = match_column(required.as_words(), feature_matrix(table, present))
    assert column.tolist() == [needed <= listed for listed in nodes]


@given(worlds())
def test_the_framework_names_exactly_what_is_missing(
    world: tuple[FeatureTable, set[str], list[set[str]]],
) -> None:
    table, needed, nodes = world
    framework = Framework([feature(name) for name in table.names])
    required = framework.feature_set(needed)
    for listed in nodes:
        result = framework.match_node_feature_set(required, framework.feature_set(listed))
        assert result.unsatisfied == tuple(sorted(needed - listed))
        assert result.is_match is not bool(needed - listed)


@given(SIZES, st.data())
def test_words_and_text_hold_the_same_bits(size: int, data: st.DataObject) -> None:
    table = table_of(size)
    bits = data.draw(st.integers(0, (1 << size) - 1))
    some = FeatureSet(table, bits)
    words = some.as_words()
    assert sum(word << (64 * number) for number, word in enumerate(words)) == bits
    assert len(words) == (size + 63) // 64
    assert all(0 <= word < 1 << 64 for word in words)
    assert int(str(some)[::-1], 2) == bits
    assert len(some) == len(some.names()) == bits.bit_count()
    assert table.set_of(some.names()) == some
    assert all((name in some) is (name in some.names()) for name in (*table.names, "Unknown"))


def test_a_set_is_true_when_something_is_in_it() -> None:
    table = table_of(3)
    assert not table.set_of([])
    assert table.set_of([]).is_empty
    assert table.set_of(["Feature002"])
    assert FeatureTable(()).set_of(["A"]).as_words() == (0,)


def test_a_row_of_the_matrix_can_be_overwritten_when_a_node_changes() -> None:
    table = table_of(130)
    need = table.set_of([named(1), named(129)])
    matrix = feature_matrix(table, [table.set_of([]), need])
    assert match_column(need.as_words(), matrix).tolist() == [False, True]
    matrix[0] = need.as_words()
    matrix[1] = table.set_of([named(1)]).as_words()
    assert match_column(need.as_words(), matrix).tolist() == [True, False]


def test_bits_of_different_registries_never_meet() -> None:
    mine, theirs = table_of(3).set_of(["Feature000"]), table_of(4).set_of(["Feature000"])
    for compare in (mine.is_subset_of, mine.__sub__, mine.__or__):
        with pytest.raises(FeatureError, match="different registries"):
            compare(theirs)
    assert mine.is_subset_of(table_of(3).set_of(["Feature000"])), "equal tables are as good as one"
    with pytest.raises(FeatureError, match="3 words cannot be matched with rows of 1"):
        match_column((0, 0, 0), feature_matrix(table_of(3), [mine]))


@pytest.mark.parametrize("names", [("B", "A"), ("A", "A")])
def test_a_table_is_sorted_and_has_each_name_once(names: tuple[str, ...]) -> None:
    with pytest.raises(FeatureError, match="sorted, each once"):
        FeatureTable(names)
