"""Each registered feature: what makes a node declare it, and what makes a pod need it."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.container import Container, ContainerRestartRule, EphemeralContainer, VolumeMount
from nodeward.api.core_v1.volume import Volume
from nodeward.api.core_v1.volume_sources import EmptyDirVolumeSource, HostPathVolumeSource
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.base.quantity import Quantity
from nodeward.features import CATALOGUE, FRAMEWORK, NodeConfiguration, PodInfo
from nodeward.features.catalogue import ALIASES
from nodeward.features.declared import REGISTRY, Feature
from tests.features.declared.objects import V137, Switches, allocated, config, info, resources
from tests.keps.ledger import statement

DEFAULT_137 = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
RESIZES = {"kubelet__podResize": "true", "kubelet__memoryVolumeResize": "true"}
EACH = pytest.mark.parametrize("feature", REGISTRY, ids=lambda feature: feature.name)


def needs(pod: PodInfo) -> tuple[str, ...]:
    return FRAMEWORK.infer_for_pod_scheduling(pod, V137).names()


def update_needs(old: PodInfo, new: PodInfo) -> tuple[str, ...]:
    return FRAMEWORK.infer_for_pod_update(old, new, V137).names()


# -- what nodes declare


@EACH
def test_a_node_declares_it_with_everything_met_and_not_without_any_part(feature: Feature) -> None:
    wanted = feature.requirements
    gates = dict.fromkeys(wanted.gates, True)
    assert feature.discover(NodeConfiguration(V137, Switches(gates), wanted.static_config))
    for gate in wanted.gates:
        off = Switches(gates | {gate: False})
        assert not feature.discover(NodeConfiguration(V137, off, wanted.static_config))
    for key in wanted.static_config:
        without = {name: value for name, value in wanted.static_config.items() if name != key}
        for settings in (without, {**without, key: "false"}):
            assert not feature.discover(NodeConfiguration(V137, Switches(gates), settings))


@EACH
def test_its_gates_are_registered_and_no_older_than_the_framework(feature: Feature) -> None:
    for gate in feature.requirements.gates:
        specs = CATALOGUE[ALIASES.get(gate, gate)].specs
        assert specs[0].since >= CATALOGUE["NodeDeclaredFeatures"].specs[0].since


def test_every_registered_feature_is_known_to_the_framework_and_fits_in_two_words() -> None:
    assert FRAMEWORK.table.names == tuple(sorted(feature.name for feature in REGISTRY))
    assert len(REGISTRY) <= 128


@pytest.mark.parametrize(
    ("version", "gates", "declared"),
    [
        ("1.34", "", ()),
        ("1.35", "", ()),
        ("1.35", "NodeDeclaredFeatures=true", ()),
        (
            "1.35",
            "NodeDeclaredFeatures=true,RestartAllContainersOnContainerExits=true",
            ("RestartAllContainersOnContainerExits",),
        ),
        ("1.36", "", DEFAULT_137),
        ("1.36", "RestartAllContainersOnContainerExits=false", DEFAULT_137[:3]),
        ("1.37", "", DEFAULT_137),
        ("1.38", "", DEFAULT_137),
        ("1.37", "DRAOptionalNodePreparation=true", ("DraOptionalNodePreparation", *DEFAULT_137)),
        (
            "1.37",
            "DRAOptionalNodeOperations=true",
            ("DRAOptionalNodeOperations", "DraOptionalNodePreparation", *DEFAULT_137),
        ),
        ("1.37", "DRANodeAllocatableResources=true", ("DRANodeAllocatableResources", *DEFAULT_137)),
    ],
)
def test_a_kubelet_of_a_version_declares(version: str, gates: str, declared: tuple[str, ...]) -> None:
    assert FRAMEWORK.discover_node_features(config(version, gates, **RESIZES)) == declared


def test_a_kubelet_that_resizes_nothing_declares_no_resize_whatever_the_gates_say() -> None:
    gates = "InPlacePodVerticalScalingMemoryBackedVolumes=true"
    resizing = {*FRAMEWORK.discover_node_features(config("1.37", gates, **RESIZES))} - {
        *FRAMEWORK.discover_node_features(config("1.37", gates))
    }
    assert resizing == {
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "InPlacePodVerticalScalingMemoryBackedVolumes",
    }


def test_a_kubelet_whose_framework_is_off_declares_not_even_what_does_not_depend_on_it() -> None:
    off = ",".join(f"{name}=false" for name in ("NodeDeclaredFeatures", *DEFAULT_137))
    assert FRAMEWORK.discover_node_features(config("1.36", f"{off},DRANodeAllocatableResources=true")) == ()


def test_features_of_the_container_runtime_are_declared_if_gate_and_runtime_agree() -> None:
    gates = "UserNamespacesHostNetworkSupport=true,VolumeBindMountOptions=true"
    runtime = {"runtime__userNamespacesHostNetwork": "true", "runtime__mountOptions": "true"}
    both = {"UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"}
    assert both <= {*FRAMEWORK.discover_node_features(config("1.37", gates, **runtime))}
    assert not both & {*FRAMEWORK.discover_node_features(config("1.37", gates))}
    assert not both & {*FRAMEWORK.discover_node_features(config("1.37", "", **runtime))}


# -- what pods need to be placed

RESTART_ALL = [ContainerRestartRule(action="RestartAllContainers")]
BOUND = [VolumeMount(name="v", mount_path="/v", bind_mount_options=["noexec"])]


@statement("5328-D55")
@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({}, ()),
        (
            {"containers": [Container(name="c", restart_policy_rules=RESTART_ALL)]},
            ("RestartAllContainersOnContainerExits",),
        ),
        (
            {"init_containers": [Container(name="i", restart_policy_rules=RESTART_ALL)]},
            ("RestartAllContainersOnContainerExits",),
        ),
        (
            {
                "containers": [
                    Container(name="c", restart_policy_rules=[ContainerRestartRule(action="Restart")])
                ]
            },
            (),
        ),
        ({"host_network": True, "host_users": False}, ("UserNamespacesHostNetworkSupport",)),
        ({"host_network": True, "host_users": True}, ()),
        ({"host_network": True}, ()),
        ({"host_users": False}, ()),
        ({"containers": [Container(name="c", volume_mounts=BOUND)]}, ("VolumeBindMountOptions",)),
        ({"init_containers": [Container(name="c", volume_mounts=BOUND)]}, ("VolumeBindMountOptions",)),
        (
            {"ephemeral_containers": [EphemeralContainer(name="c", volume_mounts=BOUND)]},
            ("VolumeBindMountOptions",),
        ),
        ({"containers": [Container(name="c", volume_mounts=[VolumeMount(name="v")])]}, ()),
        ({"resources": resources(cpu="1")}, ()),
    ],
)
def test_a_pod_needs_to_be_placed(spec: dict[str, Any], needed: tuple[str, ...]) -> None:
    assert needs(info(**spec)) == needed


@statement("5328-D55")
@pytest.mark.parametrize(
    ("claims", "is_needed"),
    [
        ((), False),
        ((ResourceClaim(),), False),
        ((allocated(),), False),
        ((allocated(None, False, []),), False),
        ((allocated(None, True),), True),
        ((ResourceClaim(), allocated(False), allocated(True)), True),
        ((allocated(["*"]),), True),
        ((allocated(["NodeUnprepareResources"]),), True),
    ],
)
def test_a_pod_needs_optional_preparation_once_a_device_that_skips_is_allocated(
    claims: tuple[ResourceClaim, ...], is_needed: bool
) -> None:
    assert needs(info(*claims)) == (("DraOptionalNodePreparation",) if is_needed else ())


# -- what updates need


def in_memory(size: str | None, medium: str = "Memory", name: str = "v") -> Volume:
    limit = Quantity.parse(size) if size else None
    return Volume(name=name, empty_dir=EmptyDirVolumeSource(medium=medium, size_limit=limit))


@statement("5328-D55")
@pytest.mark.parametrize(
    ("old", "new", "is_needed"),
    [
        (None, None, False),
        (resources(cpu="1"), resources(cpu="1"), False),
        (resources(cpu="1"), resources(cpu="1000m"), False),
        (resources(cpu="1"), resources(cpu="2"), True),
        (None, resources(cpu="1"), True),
        (resources(cpu="1"), None, True),
    ],
)
def test_a_change_of_the_pods_own_resources_needs_the_feature(old: Any, new: Any, is_needed: bool) -> None:
    needed = ("InPlacePodLevelResourcesVerticalScaling",) if is_needed else ()
    assert update_needs(info(resources=old), info(resources=new)) == needed


@statement("5328-D55")
@pytest.mark.parametrize(
    ("policy", "old", "new", "is_needed"),
    [
        (None, "1", "2", True),
        ("OnFailure", "1", "2", True),
        ("Always", "1", "2", False),
        (None, "1", "1", False),
        (None, "1", "1000m", False),
    ],
)
def test_a_change_of_an_init_container_that_ends_needs_the_feature(
    policy: str | None, old: str, new: str, is_needed: bool
) -> None:
    before, after = (
        info(
            init_containers=[
                Container(name="s", restart_policy="Always", resources=resources(cpu=cpu)),
                Container(name="i", restart_policy=policy, resources=resources(cpu=cpu)),
            ]
        )
        for cpu in (old, new)
    )
    assert update_needs(before, after) == (("InPlacePodVerticalScalingInitContainers",) if is_needed else ())


@statement("5328-D55")
@pytest.mark.parametrize(
    ("old", "new", "is_needed"),
    [
        ([in_memory("1Gi")], [in_memory("2Gi")], True),
        ([in_memory("1Gi")], [in_memory("1024Mi")], False),
        ([in_memory("1Gi", "")], [in_memory("2Gi", "")], False),
        ([in_memory(None)], [in_memory("2Gi")], False),
        ([in_memory("1Gi")], [in_memory(None)], False),
        ([in_memory("1Gi")], [in_memory("2Gi", name="w")], False),
        ([in_memory("1Gi")], [in_memory("2Gi"), in_memory("1Gi", name="w")], False),
        ([Volume(name="v", host_path=HostPathVolumeSource(path="/"))], [in_memory("2Gi")], False),
        (
            [in_memory("1Gi"), in_memory("1Gi", name="w")],
            [in_memory("1Gi"), in_memory("2Gi", name="w")],
            True,
        ),
    ],
)
def test_a_change_of_the_size_of_a_volume_in_memory_needs_the_feature(
    old: list[Volume], new: list[Volume], is_needed: bool
) -> None:
    needed = ("InPlacePodVerticalScalingMemoryBackedVolumes",) if is_needed else ()
    assert update_needs(info(volumes=old), info(volumes=new)) == needed


@statement("5328-D55")
def test_what_cannot_change_is_not_needed_for_an_update() -> None:
    rich = info(
        allocated(True),
        containers=[Container(name="c", restart_policy_rules=RESTART_ALL, volume_mounts=BOUND)],
        host_network=True,
        host_users=False,
    )
    assert len(needs(rich)) == 4
    assert update_needs(info(), rich) == ()
