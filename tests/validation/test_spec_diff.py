"""What a refused change of a spec shows, also of specs that are very long."""

from __future__ import annotations

from nodeward.api.core_v1.container import Container, EnvVar
from nodeward.api.core_v1.pod import PodSpec
from nodeward.validation.spec_diff import spec_diff


def _spec(variables: int, changed: int) -> PodSpec:
    env = [EnvVar(name=f"n{i}", value="new" if i == changed else "old") for i in range(variables)]
    return PodSpec(containers=[Container(name="c", env=env)])


def test_a_change_is_shown_the_same_way_in_a_short_spec_and_in_one_of_many_thousand_lines() -> None:
    def shown(variables: int) -> list[str]:
        return spec_diff(_spec(variables, -1), _spec(variables, 2)).splitlines()

    assert shown(1000) == shown(5)
    assert '-     "Value": "old",' in shown(1000)
    assert '+     "Value": "new",' in shown(1000)


def test_long_specs_that_do_not_differ_show_nothing() -> None:
    assert spec_diff(_spec(1000, -1), _spec(1000, -1)) == ""


def test_what_was_added_at_the_end_of_a_long_spec_is_shown_alone() -> None:
    lines = spec_diff(_spec(1000, -1), _spec(1001, -1)).splitlines()
    assert len(lines) < 20
    assert any('"n1000"' in line for line in lines if line.startswith("+"))
