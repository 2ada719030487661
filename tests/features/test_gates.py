"""Gates answer as those of Kubernetes do, from flags, in every version."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nodeward
from nodeward.api.context import Context
from nodeward.base.errors import ConfigError
from nodeward.base.invariant import InvariantBroken
from nodeward.features import CATALOGUE, NEWEST, OLDEST, Gates, Stage, describe, parse
from nodeward.features.catalogue import ALIASES

VERSIONS = [f"1.{minor}" for minor in range(OLDEST, NEWEST + 1)]


def refusal(version: str, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        Gates.of(version, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "on_in"),
    [
        ("NodeDeclaredFeatures", ["1.36", "1.37", "1.38"]),
        ("TaintTolerationComparisonOperators", []),
        ("InPlacePodVerticalScaling", VERSIONS),
        ("InPlacePodLevelResourcesVerticalScaling", ["1.36", "1.37", "1.38"]),
        ("InPlacePodVerticalScalingExclusiveCPUs", []),
        ("ContainerRestartRules", ["1.35", "1.36", "1.37", "1.38"]),
        ("DRADeviceTaintRules", ["1.37", "1.38"]),
        ("AllowOverwriteTerminationGracePeriodSeconds", []),
        ("NodeReadinessGates", []),
    ],
)
def test_each_version_has_its_own_defaults(name: str, on_in: list[str]) -> None:
    assert [version for version in VERSIONS if Gates.of(version).enabled(name)] == on_in


def test_a_flag_changes_only_the_gates_it_names() -> None:
    gates = Gates.of("1.37", " TaintTolerationComparisonOperators = true ,, SchedulerAsyncPreemption=F")
    plain = Gates.of("1.37")
    changed = [name for name in CATALOGUE if gates.enabled(name) is not plain.enabled(name)]
    assert changed == ["SchedulerAsyncPreemption", "TaintTolerationComparisonOperators"]


def test_asking_for_a_name_that_is_no_gate_is_our_bug() -> None:
    with pytest.raises(InvariantBroken, match='feature "NoSuchGate" is not registered in FeatureGate'):
        Gates.of("1.37").enabled("NoSuchGate")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo", "missing bool value for Foo"),
        (
            "Foo=maybe",
            'invalid value of Foo=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ("Xyzzy=true", "unrecognized feature gate: Xyzzy"),
        (
            "nodedeclaredfeature=true",
            'unrecognized feature gate: nodedeclaredfeature (did you mean "NodeDeclaredFeatures"?)',
        ),
        (
            "NodeDeclaredFeatures=false",
            "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
        ),
        (
            "PodLevelResourceManagers=true,PodLevelResources=false,"
            "InPlacePodLevelResourcesVerticalScaling=false,PodLevelResourcesFixDefaulting=false,"
            "PodLevelResourcesFixKubeletQOSClass=false",
            "PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources]",
        ),
        (
            "NodeDeclaredFeatures=false,InPlacePodVerticalScaling=false",
            "[cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true, "
            "cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true]",
        ),
        (
            "DRAOptionalNodeOperations=true,DRAOptionalNodePreparation=false",
            "feature gate DRAOptionalNodePreparation is set to true and false, by two of its names",
        ),
    ],
)
def test_a_wrong_flag_says_what_kubernetes_says(text: str, message: str) -> None:
    assert refusal("1.37", text) == message


def test_a_gate_cannot_be_set_before_it_exists() -> None:
    assert refusal("1.34", "NodeDeclaredFeatures=true") == (
        "cannot set feature gate NodeDeclaredFeatures to true, feature is PreAlpha at emulated version 1.34, "
        "min compatibility version 1.33"
    )
    assert refusal("1.36", "NodeReadinessGates=true").startswith("cannot set feature gate NodeReadinessGates")
    assert Gates.of("1.37", "NodeReadinessGates=true").enabled("NodeReadinessGates")


def test_a_gate_that_is_locked_today_can_be_switched_off_in_the_past() -> None:
    children = (
        "InPlacePodLevelResourcesVerticalScaling=false,InPlacePodVerticalScalingInitContainers=false,"
        "RestartAllContainersOnContainerExits=false,ExtendWebSocketsToKubelet=false"
    )
    assert not Gates.of("1.36", f"NodeDeclaredFeatures=false,{children}").enabled("NodeDeclaredFeatures")
    assert "depends on features that are disabled: [NodeDeclaredFeatures]" in refusal(
        "1.36", "NodeDeclaredFeatures=false"
    )


def test_setting_a_locked_gate_to_its_value_is_accepted_with_a_warning() -> None:
    gates = Gates.of("1.37", "NodeDeclaredFeatures=true")
    assert gates == Gates.of("1.37")
    assert gates.warnings == (
        "setting GA feature gate NodeDeclaredFeatures=true. It will be removed in a future release.",
    )


@pytest.mark.parametrize("text", ["AllAlpha=true,{0}", "{0},AllAlpha=true"])
def test_an_explicit_value_wins_over_all_alpha_in_any_order(text: str) -> None:
    gates = Gates.of(
        "1.35", text.format("NodeDeclaredFeatures=true,TaintTolerationComparisonOperators=false")
    )
    assert gates.enabled("InPlacePodVerticalScalingExclusiveCPUs")
    assert not gates.enabled("TaintTolerationComparisonOperators")


def test_all_beta_false_switches_off_only_beta_gates() -> None:
    stages = {name: (stage, on) for name, stage, on in Gates.of("1.37", "AllBeta=false")}
    assert {on for stage, on in stages.values() if stage == "BETA"} == {False}
    assert stages["NodeDeclaredFeatures"] == ("", True)


@pytest.mark.parametrize("alias", ["DRAOptionalNodeOperations", "DRAOptionalNodePreparation"])
def test_the_upstream_name_of_optional_node_preparation_is_accepted(alias: str) -> None:
    gates = Gates.of("1.37", f"{alias}=true")
    assert gates.enabled("DRAOptionalNodePreparation")
    assert gates.as_flag() == f"{alias}=true"
    assert Gates.of("1.37", gates.as_flag()) == gates


def test_whether_the_upstream_name_was_used_can_be_asked() -> None:
    for text, was_used in (
        ("", False),
        ("AllAlpha=true,AllBeta=true", False),
        ("DRAOptionalNodePreparation=true", False),
        ("DRAOptionalNodeOperations=true", True),
        ("DRAOptionalNodeOperations=false", False),
    ):
        assert Gates.of("1.37", text).enabled("DRAOptionalNodeOperations") is was_used, text


def test_a_default_may_wait_until_no_older_version_is_left() -> None:
    assert not Gates.of("1.37").enabled("DRAFractionalCapacityRange")
    assert Gates.of("1.37", min_compatibility="1.37").enabled("DRAFractionalCapacityRange")
    assert Gates.of("1.38").enabled("DRAFractionalCapacityRange")


@pytest.mark.parametrize("version", ["1.33", "1.39", "v1.37", "1.37.1", ""])
def test_a_version_that_cannot_be_emulated_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match="emulation version"):
        Gates.of(version)


def test_metrics_leave_out_gates_that_do_not_exist_yet() -> None:
    seen = {name: stage for name, stage, _ in Gates.of("1.34")}
    assert "NodeDeclaredFeatures" not in seen
    assert seen["MultiCIDRServiceAllocator"] == ""
    assert seen["ContainerRestartRules"] == "ALPHA"


def test_help_lists_what_can_be_chosen() -> None:
    lines = describe("1.37")
    assert "TaintTolerationComparisonOperators=true|false (ALPHA - default=false)" in lines
    assert "PodLevelResources=true|false (BETA - default=true)" in lines
    assert not [line for line in lines if line.startswith("NodeDeclaredFeatures=")]


NEEDED = {need for gate in CATALOGUE.values() for need in gate.needs}
#: Gates that can be set either way without a thought for others: nobody needs them, they need nobody.
FREE = sorted(
    name
    for name, stage, _ in Gates.of("1.37")
    if stage in ("ALPHA", "BETA") and name not in NEEDED and not CATALOGUE[name].needs and name[:3] != "All"
)


@given(st.dictionaries(st.sampled_from(FREE), st.booleans()))
def test_gates_survive_being_written_as_a_flag(values: dict[str, bool]) -> None:
    gates = Gates.of_mapping("1.37", values)
    assert all(gates.enabled(name) is value for name, value in values.items())
    assert Gates.of("1.37", gates.as_flag()) == gates
    assert parse(gates.as_flag()).items() <= values.items()


@pytest.mark.parametrize("minor", range(OLDEST, NEWEST + 1))
def test_no_gate_needs_one_that_is_less_stable_or_off_by_default(minor: int) -> None:
    order = {Stage.DEPRECATED: 0, Stage.PRE_ALPHA: 1, Stage.ALPHA: 1, Stage.BETA: 2, Stage.GA: 3}
    for gate in CATALOGUE.values():
        spec = gate.at(minor, minor - 1)
        for need in gate.needs:
            other = CATALOGUE[need].at(minor, minor - 1)
            if Stage.PRE_ALPHA not in (spec.stage, other.stage):
                assert order[spec.stage] <= order[other.stage], (gate.name, need)
            assert other.default or not spec.default, (gate.name, need)


def test_histories_only_move_forward() -> None:
    order = {Stage.ALPHA: 1, Stage.BETA: 2, Stage.GA: 3, Stage.DEPRECATED: 4}
    for gate in CATALOGUE.values():
        for before, after in zip(gate.specs, gate.specs[1:], strict=False):
            assert before.since <= after.since, gate.name
            assert order[before.stage] <= order[after.stage], gate.name
            assert not before.is_locked or after.is_locked, gate.name
    assert set(ALIASES.values()) <= CATALOGUE.keys()
    assert not ALIASES.keys() & CATALOGUE.keys()


def gates_asked_for(tree: ast.Module) -> set[str]:
    """Names passed to `.on(...)` and `.enabled(...)`, and constants called `..._GATE`."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    asked = {value for name, value in constants.items() if name.endswith("_GATE")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            argument = node.args[0]
            if node.func.attr in ("on", "enabled"):
                value = argument.value if isinstance(argument, ast.Constant) else None
                if isinstance(argument, ast.Name):
                    value = constants.get(argument.id)
                if isinstance(value, str):
                    asked.add(value)
    return asked


def test_every_gate_the_code_asks_for_is_in_the_catalogue() -> None:
    asked = set()
    for path in sorted(Path(nodeward.__file__).parent.rglob("*.py")):
        asked |= gates_asked_for(ast.parse(path.read_text()))
    assert "NodeDeclaredFeatures" in asked
    assert "TaintTolerationComparisonOperators" in asked
    assert sorted(asked - CATALOGUE.keys()) == []


def test_the_api_layer_can_ask_them() -> None:
    assert Context(Gates.of("1.37")).on("NodeDeclaredFeatures")


def test_a_version_knows_a_gate_from_its_first_step_on_by_all_its_names() -> None:
    assert [Gates.of(f"1.{minor}").knows("NodeReadinessGates") for minor in (34, 36, 37, 38)] == [
        False,
        False,
        True,
        True,
    ]
    assert Gates.of("1.37").knows("DRAOptionalNodeOperations")
    assert not Gates.of("1.36").knows("DRAOptionalNodeOperations")
    with pytest.raises(InvariantBroken, match="NoSuchGate"):
        Gates.of("1.37").knows("NoSuchGate")
