"""Values in error messages look as a Go server shows them."""

from __future__ import annotations

import msgspec

from nodeward.api.core_v1.references import Taint
from nodeward.api.go_form import go_form
from nodeward.api.meta import ManagedFieldsEntry, ObjectMeta


def test_a_struct_is_shown_under_the_names_of_its_go_fields() -> None:
    shown = go_form(Taint(key="k", effect="NoSchedule"))
    assert (shown["Key"], shown["Effect"]) == ("k", "NoSchedule")


def test_fields_of_a_manager_are_shown_as_a_tree_and_never_as_an_address_in_memory() -> None:
    entry = ManagedFieldsEntry(manager="m", fields_v1=msgspec.Raw(b'{"f:spec":{}}'))
    [shown] = go_form(ObjectMeta(name="a", managed_fields=[entry]))["managedFields"]
    assert shown["fieldsV1"] == {"f:spec": {}}
