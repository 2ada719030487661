"""Every kind that is stored has rules, whichever way it is looked up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nodeward.api.scheme import KINDS, Kind
from nodeward.validation.registry import VALIDATORS
from tests.validation.tables import context, read

_STORED = [kind for kind in KINDS if kind.is_stored and kind.name != "ComponentStatus"]


@pytest.mark.parametrize("kind", _STORED, ids=lambda kind: f"{kind.api_version} {kind.name}")
def test_a_stored_kind_has_rules_for_what_can_be_done_to_it(kind: Kind) -> None:
    rules = next(rules for type_, rules in VALIDATORS.items() if type_ is kind.type)
    assert (rules.status is not None) == kind.has_status


@pytest.mark.parametrize("kind", _STORED, ids=lambda kind: f"{kind.api_version} {kind.name}")
def test_an_empty_object_is_told_that_it_needs_a_name(kind: Kind) -> None:
    type_ = next(type_ for type_ in VALIDATORS if type_ is kind.type)
    errors = [str(error) for error in VALIDATORS[type_].create(read(type_, {}), context())]
    assert "metadata.name: Required value: name or generateName is required" in errors
    assert ("metadata.namespace: Required value" in errors) == kind.is_namespaced


def test_the_rules_every_kind_shares_do_not_bring_in_the_rules_of_all_kinds() -> None:
    program = (
        "import sys, nodeward.validation.meta.metadata; print('nodeward.validation.pod.pod' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
