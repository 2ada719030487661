"""Classes made from a table speak protobuf as generated ones do."""

from __future__ import annotations

import pytest

from nodeward.base.protobuf import message_classes

_TABLE = {
    "Inner": ("text=1 string",),
    "Outer": ("number=1 int64", "items=2 *Inner", "labels=3 strings", "a=4 |Inner", "b=5 |bool"),
}


def test_fields_of_every_kind_survive_the_wire() -> None:
    classes = message_classes("sample.one", _TABLE)
    sent = classes["Outer"](number=7, items=[classes["Inner"](text="x")], labels={"k": "v"}, b=True)
    got = classes["Outer"].FromString(sent.SerializeToString())
    assert (got.number, [each.text for each in got.items], dict(got.labels)) == (7, ["x"], {"k": "v"})
    assert got.WhichOneof("choice") == "b"


def test_the_bytes_are_those_of_the_published_encoding() -> None:
    classes = message_classes("sample.two", _TABLE)
    assert classes["Outer"](number=150).SerializeToString() == b"\x08\x96\x01"
    assert classes["Outer"](a=classes["Inner"](text="hi")).SerializeToString() == b"\x22\x04\x0a\x02hi"


def test_one_of_a_choice_replaces_the_other() -> None:
    classes = message_classes("sample.three", _TABLE)
    outer = classes["Outer"](b=True)
    outer.a.text = "now this"
    assert outer.WhichOneof("choice") == "a"


def test_fields_that_the_table_does_not_name_are_skipped() -> None:
    more = message_classes("sample.four", {"Outer": ("number=1 int64", "other=9 string")})
    fewer = message_classes("sample.five", {"Outer": ("number=1 int64",)})
    assert fewer["Outer"].FromString(more["Outer"](number=1, other="x").SerializeToString()).number == 1


def test_two_protocols_may_have_a_message_of_one_name() -> None:
    first = message_classes("sample.six", {"KeyValue": ("key=1 string",)})
    second = message_classes("sample.six", {"KeyValue": ("key=1 bytes",)})
    assert first["KeyValue"](key="k").SerializeToString() == second["KeyValue"](key=b"k").SerializeToString()


def test_a_kind_that_is_nowhere_is_an_error_at_import() -> None:
    with pytest.raises(TypeError):
        message_classes("sample.seven", {"Outer": ("number=1 int46",)})
