"""The questions a framework answers, with features made for the purpose: no rule here knows a real one."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.features import (
    Feature,
    FeatureError,
    Framework,
    NodeConfiguration,
    PodInfo,
    Requirements,
    Version,
)
from nodeward.features.declared import name_fault
from nodeward.validation.core.node import declared_feature_fault
from tests.features.declared.objects import V137, Switches, feature, info, node


def needs_host_network(pod: PodInfo) -> bool:
    return pod.spec.host_network


def test_a_feature_without_a_gate_cannot_be_made() -> None:
    with pytest.raises(FeatureError, match="needs at least one feature gate"):
        Requirements((), {"cpuManagerPolicy": "static"})


def test_a_feature_nobody_acts_on_cannot_be_made() -> None:
    with pytest.raises(FeatureError, match="feature Idle: nobody acts on it"):
        Feature(name="Idle", requirements=Requirements(("Idle",)))


def test_all_gates_and_all_settings_are_needed() -> None:
    framework = Framework([feature("F", requirements=Requirements(("A", "B"), {"k": "v", "l": "w"}))])
    full = {"k": "v", "l": "w", "more": "x"}

    def declared(gates: dict[str, bool], settings: dict[str, str]) -> tuple[str, ...]:
        return framework.discover_node_features(NodeConfiguration(V137, Switches(gates), settings))

    assert declared({"A": True, "B": True}, full) == ("F",)
    assert declared({"A": True, "B": False}, full) == ()
    assert declared({"A": True, "B": True}, {"k": "v", "l": "other"}) == ()
    assert declared({"A": True, "B": True}, {"k": "v"}) == ()


def test_a_node_on_which_the_framework_is_off_declares_nothing() -> None:
    framework = Framework([feature("F")])
    gates = Switches({"F": True, "NodeDeclaredFeatures": False})
    assert framework.discover_node_features(NodeConfiguration(V137, gates)) == ()


def test_the_list_is_sorted_bytewise_whatever_the_order_of_the_registry() -> None:
    names = ["B", "AZ", "Aa", "A/b", "A"]
    framework = Framework([feature(name) for name in names])
    config = NodeConfiguration(None, Switches(dict.fromkeys(names, True)))
    assert framework.discover_node_features(config) == ("A", "A/b", "AZ", "Aa", "B")


def test_inference_asks_only_features_that_still_matter() -> None:
    framework = Framework(
        [
            feature("Ended", max_version=Version.parse("1.36")),
            feature("Ending", max_version=Version.parse("1.37")),
            feature("Unbounded", update_rule=lambda old, new: old.spec.host_network != new.spec.host_network),
            feature("Unneeded", scheduling_rule=needs_host_network),
        ]
    )
    assert framework.infer_for_pod_scheduling(info(), V137).names() == ("Ending", "Unbounded")
    both = framework.infer_for_pod_scheduling(info(host_network=True), V137)
    assert both.names() == ("Ending", "Unbounded", "Unneeded")
    assert framework.infer_for_pod_update(info(), info(host_network=True), V137).names() == ("Unbounded",)
    assert framework.infer_for_pod_update(info(), info(), V137).is_empty


def test_without_a_target_version_nothing_is_inferred() -> None:
    framework = Framework([feature("F")])
    with pytest.raises(FeatureError, match=r"^target version cannot be nil$"):
        framework.infer_for_pod_scheduling(info(), None)
    with pytest.raises(FeatureError, match=r"^target version cannot be nil$"):
        framework.infer_for_pod_update(info(), info(), None)


def test_a_node_may_list_names_nobody_knows_in_any_order() -> None:
    framework = Framework([feature("A"), feature("B")])
    required = framework.feature_set(["A", "B"])
    assert framework.match_node(required, node("Z", "B", "A")).is_match
    result = framework.match_node(required, node("Aa", "Z"))
    assert (result.is_match, result.unsatisfied) == (False, ("A", "B"))


def test_what_needs_nothing_matches_every_node() -> None:
    framework = Framework([feature("A")])
    assert framework.match_node(framework.feature_set([]), node()).is_match


def test_no_node_is_an_error_not_a_mismatch() -> None:
    framework = Framework([feature("A")])
    with pytest.raises(FeatureError, match=r"^node cannot be nil$"):
        framework.match_node(framework.feature_set(["A"]), None)


def test_requirements_are_told_and_typos_too() -> None:
    needs = Requirements(("Gate",), {"key": "value"})
    framework = Framework([feature("RestartAll", requirements=needs)])
    assert framework.get_feature_requirements("RestartAll") == needs
    with pytest.raises(FeatureError) as caught:
        framework.get_feature_requirements("restartall")
    assert str(caught.value) == "feature 'restartall' not registered (did you mean \"RestartAll\"?)"
    with pytest.raises(FeatureError) as caught:
        framework.get_feature_requirements("Xyzzy")
    assert str(caught.value) == "feature 'Xyzzy' not registered"


def test_a_bad_entry_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    long = "A" * 254
    with caplog.at_level(logging.ERROR):
        framework = Framework([feature(name) for name in ("Good", "bad", "Good", long, "Fine")])
    assert framework.table.names == ("Fine", "Good")
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    bad, twice, too_long = (record.getMessage() for record in caplog.records)
    assert "'bad' is left out: must be UpperCamelCase" in bad
    assert "'Good' is left out: is registered twice" in twice
    assert "no more than 253 characters" in too_long


@given(st.one_of(st.text("Aab1/-é_", max_size=8), st.integers(250, 256).map(lambda size: "A" * size)))
def test_the_library_and_the_api_server_refuse_the_same_names(name: str) -> None:
    assert bool(name_fault(name)) is bool(declared_feature_fault(name))
