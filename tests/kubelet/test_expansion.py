"""References to variables in texts, as upstream's own table of cases has them."""

from __future__ import annotations

import pytest

from nodeward.kubelet.expansion import expand

KNOWN = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(VAR_A)", "A"),
        ("___$(VAR_B)___", "___B___"),
        ("$(VAR_A)$(VAR_B)-$(VAR_C)", "AB-C"),
        ("$$(VAR_B)_$(VAR_A)", "$(VAR_B)_A"),
        ("$$$(VAR_A)", "$A"),
        ("$$$$(VAR_A)", "$$(VAR_A)"),
        ("$VAR_A", "$VAR_A"),
        ("$(VAR_REF)", "$(VAR_A)"),
        ("foo$(VAR_EMPTY)bar", "foobar"),
        ("$(VAR_DNE)", "$(VAR_DNE)"),
        ("$(VAR_A", "$(VAR_A"),
        ("$()", "$()"),
        ("$((VAR_A))", "$((VAR_A))"),
        ("\n$(VAR_A)$", "\nA$"),
        ("f000-$$VAR_A", "f000-$VAR_A"),
    ],
)
def test_references_are_replaced_and_all_else_stays(text: str, expanded: str) -> None:
    assert expand(text, KNOWN) == expanded


def test_the_first_map_that_has_a_name_counts() -> None:
    assert expand("$(A)$(B)", {"A": "1"}, {"A": "2", "B": "3"}) == "13"
