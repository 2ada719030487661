"""The field numbers fit the structs: every field has one, and nothing is nested without end."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from nodeward.api.meta import DeleteOptions
from nodeward.api.protobuf.messages import JsonPlace, Message, message_of
from nodeward.api.protobuf.reading import read_envelope
from nodeward.api.schema import Schema, Shape, schema_of
from nodeward.api.scheme import SCHEME, Kind
from tests.api.protobuf.go_messages import envelope

#: Fields that upstream does not have: there is no number they could be sent under.
_OURS = {"core_v1.NodeSpec": {"readinessGates"}}
#: A custom resource elsewhere: those are never sent this way.
_CUSTOM = "readiness_v1alpha1."


def _names(message: Message) -> Iterator[str]:
    for field in message.fields.values():
        if field.place is JsonPlace.HERE and isinstance(field.inside, Message):
            yield from _names(field.inside)
        else:
            yield field.name


def _structs(schema: Schema, above: tuple[type, ...] = ()) -> Iterator[type[msgspec.Struct]]:
    """Every struct inside; fails when one is inside itself."""
    if schema.shape is Shape.STRUCT:
        assert schema.python_type not in above
        yield schema.python_type
        for inner in schema.fields.values():
            yield from _structs(inner, (*above, schema.python_type))
    elif schema.item is not None:
        yield from _structs(schema.item, above)


def _all_structs() -> list[type[msgspec.Struct]]:
    tops = [kind.type for kind in SCHEME.kinds]
    tops += [sub.type for kind in SCHEME.kinds for sub in kind.subresources if sub.type]
    return list(
        dict.fromkeys(struct for top in (*tops, DeleteOptions) for struct in _structs(schema_of(top)))
    )


def test_every_field_of_every_kind_has_a_number() -> None:
    structs = _all_structs()
    assert len(structs) > 300
    for struct in structs:
        message = message_of(struct)
        if message.name == "core_v1.NodeReadinessGate":
            assert not message.fields
            continue
        if message.name.startswith(_CUSTOM):
            assert not message.fields
            continue
        sent = list(_names(message))
        assert len(sent) == len(set(sent)), message.name
        wanted = set(schema_of(struct).fields) - _OURS.get(message.name, set())
        # Of a whole object, version and kind stand in the envelope.
        wanted -= {"apiVersion", "kind"} - set(sent)
        assert set(sent) == wanted, message.name


@pytest.mark.parametrize("kind", SCHEME.kinds, ids=lambda kind: f"{kind.api_version} {kind.name}")
def test_every_kind_can_be_sent(kind: Kind) -> None:
    assert read_envelope(envelope(kind.api_version, kind.name, b"")) == (
        kind.api_version,
        kind.name,
        {"apiVersion": kind.api_version, "kind": kind.name},
    )


def _depth(message: Message) -> int:
    inside = (field.inside for field in message.fields.values())
    return 1 + max((_depth(part) for part in inside if isinstance(part, Message)), default=0)


def test_nesting_is_bounded_by_the_types_whatever_is_sent() -> None:
    assert max(_depth(message_of(kind.type)) for kind in SCHEME.kinds) < 20
