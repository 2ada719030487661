"""Sorted keys and prefixes, against plain sorting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.store import sortedkeys
from nodeward.store.keys import prefix_end
from nodeward.store.sortedkeys import SortedKeys

#: real text only: half of a surrogate pair is none
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(texts, texts)
def test_a_prefix_is_exactly_the_range_up_to_its_end(prefix: str, key: str) -> None:
    end = prefix_end(prefix)
    assert key.startswith(prefix) == (prefix <= key and (end is None or key < end))
    if end is not None:
        end.encode()  # is real text


@given(
    st.text(st.sampled_from("\ud7ff\ue000\U0010ffff"), max_size=3),
    st.text(st.sampled_from("\ud7ff\ue000\U0010ffff")),
)
def test_prefixes_at_the_edges_of_unicode_end_where_they_should(prefix: str, key: str) -> None:
    end = prefix_end(prefix)
    assert key.startswith(prefix) == (prefix <= key and (end is None or key < end))


def test_order_by_code_point_is_the_byte_order_of_utf8() -> None:
    keys = ["\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    assert sorted(keys) == sorted(keys, key=str.encode) == keys


def check_against_sorted(keys: SortedKeys, model: set[str], low: str, end: str | None, limit: int) -> None:
    wanted = sorted(key for key in model if key >= low and (end is None or key < end))
    assert keys.between(low, end) == wanted
    assert keys.between(low, end, limit) == (wanted[:limit] if limit else wanted)
    assert keys.count(low, end) == len(wanted)


@given(
    st.sets(texts, max_size=20),
    st.lists(texts, max_size=60),
    texts,
    st.none() | texts,
    st.integers(0, 5),
)
def test_keys_added_and_removed_stay_in_order(
    first: set[str], toggled: list[str], low: str, end: str | None, limit: int
) -> None:
    model = set(first)
    keys = SortedKeys(first)
    for key in toggled:
        if key in model:
            keys.remove(key)
        else:
            keys.add(key)
        model ^= {key}
    check_against_sorted(keys, model, low, end, limit)


def test_many_blocks_are_split_and_emptied_in_order() -> None:
    names = [f"{number * 7919 % 10_007:05}" for number in range(4 * sortedkeys._BLOCK)]
    keys = SortedKeys()
    for name in names:
        keys.add(name)
    model = set(names)
    check_against_sorted(keys, model, "01234", "08000", 1500)
    for name in names[: 3 * sortedkeys._BLOCK]:
        keys.remove(name)
        model.remove(name)
    check_against_sorted(keys, model, "01234", None, 700)
    for name in sorted(model):
        keys.remove(name)
    check_against_sorted(keys, set(), "", None, 0)
    keys.add("again")
    check_against_sorted(keys, {"again"}, "", None, 0)
    check_against_sorted(SortedKeys(names), set(names), "00500", "09000", 5)
