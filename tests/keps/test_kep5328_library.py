"""KEP-5328, the library: what features are, how nodes come to have them and pods to need them."""

from __future__ import annotations

import ast
import importlib

import pytest

from nodeward.api.core_v1.container import Container, ContainerRestartRule
from nodeward.features import (
    CATALOGUE,
    FRAMEWORK,
    FeatureError,
    Framework,
    Gates,
    NodeConfiguration,
    PodInfo,
    Requirements,
    Stage,
    Version,
)
from nodeward.features.catalogue import ALIASES
from nodeward.features.declared import REGISTRY, Feature, FeatureTable, feature_matrix, match_column
from nodeward.features.declared.abilities import POD_RESIZE, able
from nodeward.machinery.clock import RealClock
from tests.features.declared.objects import V137, Switches, allocated, config, feature, info, node, resources
from tests.keps.ledger import statement
from tests.tidy.repository import imported, modules

RESTART_ALL = "RestartAllContainersOnContainerExits"
POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
INIT = "InPlacePodVerticalScalingInitContainers"
MINORS = ("1.34", "1.35", "1.36", "1.37", "1.38")
EACH = pytest.mark.parametrize("feature", REGISTRY, ids=lambda feature: feature.name)


def restarting() -> PodInfo:
    rule = ContainerRestartRule(action="RestartAllContainers")
    return info(containers=[Container(name="c", restart_policy_rules=[rule])])


def met(feature: Feature) -> NodeConfiguration:
    """A node with exactly what a feature asks for."""
    wanted = feature.requirements
    return NodeConfiguration(V137, Switches(dict.fromkeys(wanted.gates, True)), wanted.static_config)


# -- what may be a feature


@statement("5328-D2")
def test_the_names_are_pinned_because_a_new_one_is_a_change_of_the_api() -> None:
    assert FRAMEWORK.table.names == (
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DraOptionalNodePreparation",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "InPlacePodVerticalScalingMemoryBackedVolumes",
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
        "VolumeBindMountOptions",
    )


@statement("5328-D3")
@EACH
def test_every_feature_hangs_on_a_gate_that_exists(feature: Feature) -> None:
    assert feature.requirements.gates
    assert all(ALIASES.get(gate, gate) in CATALOGUE for gate in feature.requirements.gates)


@statement("5328-D4", "5328-D62")
@EACH
def test_every_feature_is_younger_than_the_framework(feature: Feature) -> None:
    framework = CATALOGUE["NodeDeclaredFeatures"].specs[0].since
    for gate in feature.requirements.gates:
        assert CATALOGUE[ALIASES.get(gate, gate)].specs[0].since >= framework


@statement("5328-D5", part="library")
@pytest.mark.parametrize("version", MINORS)
def test_the_same_configuration_gives_the_same_list(version: str) -> None:
    again = [FRAMEWORK.discover_node_features(config(version)) for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert list(again[0]) == sorted({*again[0]})


@statement("5328-D6")
def test_every_feature_is_acted_on() -> None:
    with pytest.raises(FeatureError, match="nobody acts on it"):
        Feature(name="Idle", requirements=Requirements(("Idle",)))
    unread = [each.name for each in REGISTRY if each.scheduling_rule is None and each.update_rule is None]
    assert unread == ["DRANodeAllocatableResources", "DRAOptionalNodeOperations", "ExtendWebSocketsToKubelet"]
    assert all(each.direct_consumer for each in REGISTRY if each.name in unread)


@statement("5328-D7")
def test_a_resize_of_exclusive_cpus_needs_no_feature() -> None:
    assert "InPlacePodVerticalScalingExclusiveCPUs" not in FRAMEWORK.table.names
    old, new = (
        info(containers=[Container(name="c", resources=resources(cpu=cpu, memory="1Gi"))])
        for cpu in ("1", "2")
    )
    required = FRAMEWORK.infer_for_pod_update(old, new, V137)
    assert FRAMEWORK.match_node(required, node()).is_match


@statement("5328-D8")
def test_settings_that_only_work_together_are_one_name() -> None:
    gate = "UserNamespacesHostNetworkSupport"
    runtime = {"runtime__userNamespacesHostNetwork": "true"}
    before = FRAMEWORK.discover_node_features(config())
    both = FRAMEWORK.discover_node_features(config(gates=f"{gate}=true", **runtime))
    assert both == (*before, gate)
    assert FRAMEWORK.discover_node_features(config(gates=f"{gate}=true")) == before
    assert FRAMEWORK.discover_node_features(config(**runtime)) == before


@statement("5328-D9")
def test_a_node_that_says_nothing_is_like_one_that_lacks_the_feature() -> None:
    required = FRAMEWORK.infer_for_pod_scheduling(restarting(), V137)
    off = FRAMEWORK.discover_node_features(config(gates=f"{RESTART_ALL}=false"))
    assert RESTART_ALL not in off
    silent, without = node(), node(*off)
    assert FRAMEWORK.match_node(required, silent) == FRAMEWORK.match_node(required, without)
    assert not FRAMEWORK.match_node(required, silent).is_match
    assert FRAMEWORK.match_node(required, node(*FRAMEWORK.discover_node_features(config()))).is_match


@statement("5328-D17")
def test_a_feature_that_has_ended_is_declared_no_more() -> None:
    gates = Switches({"Old": True, "Kept": True})
    ending = [feature("Old", max_version=Version.parse("1.36")), feature("Kept")]

    def declared(version: str, registry: list[Feature]) -> tuple[str, ...]:
        return Framework(registry).discover_node_features(NodeConfiguration(Version.parse(version), gates))

    assert declared("1.36", ending) == ("Kept", "Old")
    assert declared("1.37", ending) == ("Kept",)
    assert declared("1.36", ending[1:]) == ("Kept",), "an entry that is removed is gone"


#: Who may read a node's list, and what for. Anybody else asks the library.
READERS = {
    "nodeward/api/": "the field itself: its type, its storage",
    "nodeward/validation/core/node.py": "the validation of the field",
    "nodeward/features/declared/": "the library",
    "nodeward/apiserver/resources/nodes.py": "drops the field if the feature is off",
    "nodeward/apiserver/admission/node_declared_feature_validator.py": "slices: a named direct consumer",
    "nodeward/scheduler/cache/table.py": "hands the list to the library, and keeps its words as a column",
    "nodeward/scheduler/plugins/node_declared_features.py": "hands the list to the library, node by node",
    "nodeward/scheduler/node_changes.py": "tells that the list has changed, so that pods waiting for it wake",
    "nodeward/kubelet/node/status.py": "writes the list, and sees whether others have",
    "nodeward/apiserver/subresources/translating.py": "streams: the named direct consumer of WebSockets to the kubelet",
    "nodeward/rules/devices/taking.py": "devices: the named direct consumer of skipped node operations",
    "nodeward/scheduler/plugins/dynamic_resources.py": "the same, for claims that are allocated",
    "nodeward/scheduler/plugins/dra/claim_explainer.py": "tells nodes apart that see the same devices, for why",
    "nodeward/scheduler/plugins/dra/node_fits.py": "tells nodes apart that see the same devices",
    "nodeward/autoscaler/templates.py": "copies the list of a node to the template of the next",
}
#: Who may know a single feature: the direct consumers that features name.
CONSUMERS = {
    "nodeward/apiserver/admission/node_declared_feature_validator.py": {"DRANodeAllocatableResources"},
    "nodeward/apiserver/subresources/translating.py": {"ExtendWebSocketsToKubelet"},
    "nodeward/kubelet/server/streams.py": {"ExtendWebSocketsToKubelet"},
    # A claim allocated in the cycle that places its pod is no requirement of the pod yet (design decision 8).
    "nodeward/kubelet/dra/skipping.py": {"DRAOptionalNodeOperations", "DraOptionalNodePreparation"},
    "nodeward/rules/devices/allocator.py": {"DraOptionalNodePreparation"},
    "nodeward/rules/devices/node_operations.py": {"DRAOptionalNodeOperations", "DraOptionalNodePreparation"},
    "nodeward/scheduler/plugins/dynamic_resources.py": {"DraOptionalNodePreparation"},
    "nodeward/scheduler/plugins/dra/node_fits.py": {
        "DRAOptionalNodeOperations",
        "DraOptionalNodePreparation",
    },
}


@statement("5328-D18")
def test_no_component_has_rules_of_its_own_about_features() -> None:
    names = {*FRAMEWORK.table.names} - CATALOGUE.keys() - ALIASES.keys()
    assert names, "without a name that is no gate this would prove less"
    files_of = {
        module.name: feature.name
        for module in modules()
        if module.path.startswith("nodeward/features/declared/") and not module.is_package
        for feature in [getattr(importlib.import_module(module.name), "FEATURE", None)]
        if feature is not None
    }
    assert sorted(files_of.values()) == list(FRAMEWORK.table.names)
    files = frozenset(files_of)
    for module in modules():
        if module.path.startswith("nodeward/features/declared/"):
            continue
        # Most modules need not be walked: they do not even contain the letters.
        if "declared_features" in module.source:
            assert not _reads(module.tree) or module.path.startswith(tuple(READERS)), module.path
        texts = [f'"{name}"' for name in names if f'"{name}"' in module.source]
        assert not texts, module.path
        known = (
            {name for name, _ in imported(module, files)} if "nodeward.features" in module.source else set()
        )
        assert {files_of[name] for name in known} == CONSUMERS.get(module.path, set()), module.path


def _reads(tree: ast.Module) -> list[int]:
    attributes = (each for each in ast.walk(tree) if isinstance(each, ast.Attribute))
    return [each.lineno for each in attributes if each.attr == "declared_features"]


# -- discovery


@statement("5328-D19")
@EACH
def test_no_feature_comes_from_configuration_alone(feature: Feature) -> None:
    off = NodeConfiguration(V137, Switches(), feature.requirements.static_config)
    assert not feature.discover(off)
    with pytest.raises(FeatureError, match="at least one feature gate"):
        Requirements((), {"cpuManagerPolicy": "static"})


@statement("5328-D34", part="library")
@pytest.mark.parametrize(
    ("version", "gates", "declared"),
    [
        ("1.34", "", ""),
        ("1.35", "", ""),
        ("1.35", f"NodeDeclaredFeatures=true,{RESTART_ALL}=true", RESTART_ALL),
        ("1.36", f"{RESTART_ALL}=false", f"ExtendWebSocketsToKubelet {POD_LEVEL} {INIT}"),
        ("1.37", "", f"ExtendWebSocketsToKubelet {POD_LEVEL} {INIT} {RESTART_ALL}"),
    ],
)
def test_the_list_of_a_node_that_does_not_exist_yet_follows_from_its_configuration(
    version: str, gates: str, declared: str
) -> None:
    parsed, switched = Version.parse(f"v{version}.2"), Gates.of(version, gates)
    resizes = NodeConfiguration(parsed, switched, able(POD_RESIZE))
    assert FRAMEWORK.discover_node_features(resizes) == tuple(declared.split())
    # The same version and gates on a kubelet that resizes nothing.
    without = [name for name in declared.split() if name not in (POD_LEVEL, INIT)]
    assert FRAMEWORK.discover_node_features(NodeConfiguration(parsed, switched)) == tuple(without)


@statement("5328-D39")
def test_alpha_beta_and_stable_features_are_declared_alike() -> None:
    name = INIT
    stages = {}
    for version in ("1.36", "1.37"):
        gates = Gates.of(version)
        stages[{gate: stage for gate, stage, _ in gates}[name]] = FRAMEWORK.discover_node_features(
            config(version, kubelet__podResize="true")
        )
    assert name in stages[Stage.BETA.value]
    assert name in stages[Stage.GA.value]
    assert CATALOGUE[name].at(37, 36).is_locked
    alpha = FRAMEWORK.discover_node_features(config("1.37", "DRAOptionalNodePreparation=true"))
    assert "DraOptionalNodePreparation" in alpha


@statement("5328-D60")
def test_the_framework_is_off_in_alpha_and_on_from_beta_with_a_feature_from_the_start() -> None:
    on = {version: Gates.of(version).enabled("NodeDeclaredFeatures") for version in MINORS}
    assert on == {"1.34": False, "1.35": False, "1.36": True, "1.37": True, "1.38": True}
    switched = f"NodeDeclaredFeatures=true,{RESTART_ALL}=true,{POD_LEVEL}=true"
    first = config("1.35", switched, kubelet__podResize="true")
    assert FRAMEWORK.discover_node_features(first) == (POD_LEVEL, RESTART_ALL)


# -- inference


@statement("5328-D20")
def test_the_last_version_is_included() -> None:
    framework = Framework([feature("Ends", max_version=Version.parse("1.36")), feature("Stays")])

    def needed(target: str) -> tuple[str, ...]:
        return framework.infer_for_pod_scheduling(info(), Version.parse(target)).names()

    assert needed("1.35") == needed("1.36") == ("Ends", "Stays")
    assert needed("1.37") == needed("1.36.1") == needed("2.0") == ("Stays",)


@statement("5328-D21")
def test_all_registered_features_are_asked() -> None:
    both = info(
        allocated(True),
        containers=[
            Container(name="c", restart_policy_rules=[ContainerRestartRule(action="RestartAllContainers")])
        ],
    )
    names = FRAMEWORK.infer_for_pod_scheduling(both, V137).names()
    assert names == ("DraOptionalNodePreparation", RESTART_ALL)
    old, new = (
        info(
            resources=resources(cpu=cpu), init_containers=[Container(name="i", resources=resources(cpu=cpu))]
        )
        for cpu in ("1", "2")
    )
    needed = FRAMEWORK.infer_for_pod_update(old, new, V137).names()
    assert needed == (POD_LEVEL, INIT)


@statement("5328-D24")
def test_each_cluster_gets_the_needs_of_its_own_version() -> None:
    framework = Framework([feature("F", max_version=Version.parse("1.38"))])
    old, new = (framework.infer_for_pod_scheduling(info(), Version.parse(text)) for text in ("1.36", "1.40"))
    assert (old.names(), new.names()) == (("F",), ())


@statement("5328-D63", part="library")
@pytest.mark.parametrize("declared", [(), (RESTART_ALL,), ("SomethingNewer",)])
def test_a_plain_pod_fits_every_node(declared: tuple[str, ...]) -> None:
    required = FRAMEWORK.infer_for_pod_scheduling(info(), V137)
    assert required.is_empty
    assert FRAMEWORK.match_node(required, node(*declared)).is_match


# -- matching and requirements


@statement("5328-D22")
def test_a_failed_match_lists_what_is_missing_in_order() -> None:
    framework = Framework([feature(name) for name in ("C", "A", "B")])
    result = framework.match_node(framework.feature_set(["C", "B", "A"]), node("B"))
    assert (result.is_match, result.unsatisfied) == (False, ("A", "C"))


@statement("5328-D23")
def test_requirements_are_told_for_known_features_only() -> None:
    wanted = FRAMEWORK.get_feature_requirements("VolumeBindMountOptions")
    assert wanted.gates == ("VolumeBindMountOptions",)
    assert dict(wanted.static_config) == {"runtime.mountOptions": "true"}
    with pytest.raises(FeatureError, match="feature 'Unknown' not registered"):
        FRAMEWORK.get_feature_requirements("Unknown")


@statement("5328-D32", part="library")
def test_a_pod_is_matched_with_thousands_of_nodes_in_no_time() -> None:
    table = FeatureTable(tuple(f"F{number:03}" for number in range(100)))
    lists = [{name for name in table.names if int(name[1:]) % 33 or number % 10} for number in range(5000)]
    needed = {*table.names[::33]}
    matrix = feature_matrix(table, map(table.set_of, lists))
    words = table.set_of(needed).as_words()
    assert match_column(words, matrix).tolist() == [needed <= each for each in lists]
    clock = RealClock()
    times = []
    for _ in range(20):
        started = clock.monotonic_ns()
        match_column(words, matrix)
        times.append(clock.monotonic_ns() - started)
    # Some 15 microseconds when the machine is free; real Kubernetes has one millisecond for the whole of a pod.
    assert min(times) < 1_000_000


@statement("5328-D54", part="library")
@statement("5328-D55")
@EACH
def test_each_feature_from_discovery_to_match(feature: Feature) -> None:
    """Inference is feature by feature in tests/features/declared/test_registry.py."""
    ready = met(feature)
    alone = Framework([feature])
    assert alone.discover_node_features(ready) == (feature.name,)
    for gate in feature.requirements.gates:
        without = Switches(dict.fromkeys(feature.requirements.gates, True) | {gate: False})
        off = NodeConfiguration(V137, without, feature.requirements.static_config)
        assert alone.discover_node_features(off) == ()
    for key in feature.requirements.static_config:
        settings = {name: value for name, value in feature.requirements.static_config.items() if name != key}
        assert alone.discover_node_features(NodeConfiguration(V137, ready.gates, settings)) == ()
    required = alone.feature_set([feature.name])
    assert alone.match_node(required, node(feature.name)).is_match
    assert alone.match_node(required, node()).unsatisfied == (feature.name,)
    assert alone.get_feature_requirements(feature.name) is feature.requirements
    assert feature.max_version is None
    assert feature.infer_for_scheduling(info()) is feature.infer_for_update(info(), info()) is False
