"""Objects in memory: bytes in parts, joined always the same bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.apiserver.item import SHORTEST, Item, ItemInterner, join_items

LONG = b'{"f:spec":{' + b'"f:x":{},' * 40 + b'"f:y":{}}}'
PIECES = st.sampled_from(
    [
        b'"fieldsV1":',
        b'}},{"manager":',
        b"}}]",
        b'},"subresource":',
        LONG,
        b'{"metadata":{',
        b"x",
        b"",
        b'"spec":{}',
    ]
)


def _stored(fields: bytes, name: bytes = b"a") -> bytes:
    return b'{"metadata":{"name":"%b","managedFields":[{"manager":"m","fieldsV1":%b}]},"spec":{}}' % (
        name,
        fields,
    )


@given(st.lists(st.lists(PIECES, max_size=8).map(b"".join), max_size=6))
def test_an_item_is_always_the_bytes_it_was_made_of(objects: list[bytes]) -> None:
    sharer = ItemInterner()
    items = [sharer.item(number, data) for number, data in enumerate(objects)]
    assert [item.data for item in items] == objects
    assert [item.size for item in items] == [len(data) for data in objects]
    assert join_items(items) == b",".join(objects)


def test_replicas_share_the_text_that_says_who_set_their_fields() -> None:
    sharer = ItemInterner()
    one, two = sharer.item(1, _stored(LONG, b"a")), sharer.item(2, _stored(LONG, b"b"))
    assert isinstance(one._parts, tuple)
    assert isinstance(two._parts, tuple)
    assert one._parts[1] is two._parts[1]
    assert one._parts[1] == LONG


def test_every_entry_of_managed_fields_is_shared() -> None:
    data = (
        b'{"metadata":{"managedFields":[{"manager":"a","fieldsV1":%b},{"manager":"b","fieldsV1":%b,"subresource":"status"}]}}'
        % (LONG, LONG)
    )
    item = ItemInterner().item(1, data)
    assert isinstance(item._parts, tuple)
    assert item._parts[1] is item._parts[3]
    assert item.data == data


def test_short_texts_are_not_worth_sharing() -> None:
    item = ItemInterner().item(1, _stored(b'{"f:a":{}}'))
    assert isinstance(item._parts, bytes)
    assert len(b'{"f:a":{}}') < SHORTEST


def test_what_stands_in_a_part_is_found_in_the_item() -> None:
    item = ItemInterner().item(1, _stored(LONG))
    assert b'"spec":' in item
    assert b'"nodeName":' not in item
    assert item == Item(1, _stored(LONG))
