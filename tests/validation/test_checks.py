"""The checks every kind's rules are written in, and how a kind is put together from steps."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.references import SecretReference
from nodeward.api.core_v1.volume_sources import ISCSIVolumeSource
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.base.fielderror import FieldError, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label
from nodeward.validation.checks import (
    Distinct,
    Fields,
    Rule,
    between,
    both,
    check_distinct,
    check_not_negative,
    check_present,
    choice,
    each,
    form,
    given,
    most,
    named,
    one_of,
    under,
    unless_empty,
    unless_none,
)
from nodeward.validation.kinds import changed, kind, made
from tests.validation.tables import context

AT = ROOT.child("spec", "field")


def _texts(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        (check_present, "", "Required value"),
        (check_present, "x", ""),
        (given, None, "Required value"),
        (given, False, ""),
        (one_of("A", "B"), None, ""),
        (one_of("A", "B"), "B", ""),
        (one_of("A", "B"), "", 'Unsupported value: "": supported values: "A", "B"'),
        (choice("A", "B"), "", "Required value"),
        (choice("A", "B"), None, "Required value"),
        (choice("A", "B"), "C", 'Unsupported value: "C": supported values: "A", "B"'),
        (form(dns_label), None, ""),
        (form(dns_label), "a.b", 'Invalid value: "a.b": must not contain dots'),
        (named(dns_label), "", "Required value"),
        (named(dns_label), "a.b", 'Invalid value: "a.b": must not contain dots'),
        (unless_empty(form(dns_label)), "", ""),
        (unless_none(check_present), None, ""),
        (most(3), "abc", ""),
        (most(3), "äbc", "Too long: may not be more than 3 bytes"),
        (between(1, 3), 4, "Invalid value: 4: must be between 1 and 3, inclusive"),
        (between(1, 3), None, ""),
        (check_not_negative, -1, "Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_a_check_answers_in_the_words_of_kubernetes(rule: Rule, value: Any, words: str) -> None:
    assert _texts(rule(value, AT)) == ([f"spec.field: {words}"] if words else [])


def test_a_table_reports_in_its_own_order_under_the_names_of_the_struct() -> None:
    table = Fields(
        ISCSIVolumeSource,
        lun=between(0, 255),
        target_portal=check_present,
        initiator_name=under("initiatorname", given),
        secret_ref=Fields(SecretReference, name=check_present),
    )
    assert _texts(table(ISCSIVolumeSource(lun=256), ROOT.child("iscsi"))) == [
        "iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
        "iscsi.targetPortal: Required value",
        "iscsi.initiatorname: Required value",
    ]
    assert table(None, AT) == []


def test_a_table_of_a_field_that_is_not_there_is_refused_when_it_is_made() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        Fields(ISCSIVolumeSource, nonsense=check_present)


def test_items_are_reported_by_their_place_and_repeats_where_they_come_again() -> None:
    assert _texts(each(both(check_present, most(1)))(["a", "", "bc"], AT)) == [
        "spec.field[1]: Required value",
        "spec.field[2]: Too long: may not be more than 1 byte",
    ]
    assert _texts(check_distinct(["a", "b", "a", "a"], AT)) == [
        'spec.field[2]: Duplicate value: "a"',
        'spec.field[3]: Duplicate value: "a"',
    ]
    shown = Distinct()
    assert shown.add(("TCP", 80), AT, 80) == []
    assert _texts(shown.add(("TCP", 80), AT, 80)) == ["spec.field: Duplicate value: 80"]


class _Thing(KubeObject):
    size: int = 0


def _size(new: _Thing, old: _Thing | None, ctx: object) -> list[FieldError]:
    path: FieldPath = ROOT.child("size" if old is None else "changedSize")
    return [] if new.size else [required(path)]


def test_a_kind_asks_for_its_steps_in_the_order_given() -> None:
    name = made(dns_label, namespaced=False)
    thing = _Thing(metadata=ObjectMeta(name="a.b"))
    bad_name = 'metadata.name: Invalid value: "a.b": must not contain dots'
    no_version = 'metadata.resourceVersion: Invalid value: "": must be specified for an update'
    usual = kind(dns_label, _size, namespaced=False)
    assert _texts(usual.create(thing, context())) == [bad_name, "size: Required value"]
    assert _texts(usual.update(thing, thing, context())) == [no_version, "changedSize: Required value"]
    assert usual.status is None
    other = kind(dns_label, _size, update=(_size, changed, name), status=_size)
    assert _texts(other.update(thing, thing, context())) == [
        "changedSize: Required value",
        no_version,
        bad_name,
    ]
    assert other.status is not None
    assert _texts(other.status(thing, thing, context())) == [no_version, "changedSize: Required value"]
