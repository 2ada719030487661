"""A pod is changed, and a slice offered, only where the node declares what that needs."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.node import Node, NodeStatus
from nodeward.api.core_v1.pod import Binding, Pod
from nodeward.api.core_v1.references import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from nodeward.api.resource_v1 import Device, NodeAllocatableResource, ResourceSlice, ResourceSliceSpec
from nodeward.apiserver.admission.node_declared_feature_validator import NodeDeclaredFeatureValidator
from nodeward.apiserver.admission.plugin import Write
from nodeward.features import FeatureError, Framework, PodInfo
from tests.apiserver.admission.world import (
    admitted,
    amounts,
    copy,
    create,
    delete,
    forbidden,
    meta,
    pod,
    put,
    send,
    update,
    world,
)
from tests.features.declared.objects import feature

POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
INIT = "InPlacePodVerticalScalingInitContainers"
SLICES = "DRANodeAllocatableResources"
MISSING = f'pod update requires features {POD_LEVEL} which are not available on node "n1"'


def node(name: str, *declared: str, **labels: str) -> Node:
    return Node(metadata=meta(name, labels=labels), status=NodeStatus(declared_features=list(declared)))


def plugin(*nodes: Node, gates: str = "") -> NodeDeclaredFeatureValidator:
    return NodeDeclaredFeatureValidator(world(*nodes, gates=gates))


def sized(cpu: str, node_name: str = "n1", **spec: Any) -> Pod:
    """A pod with resources as a whole."""
    made = pod(node_name=node_name, resources=ResourceRequirements(requests=amounts(cpu=cpu)), **spec)
    made.metadata.generation = 1
    return made


def resize(cpu: str = "2", subresource: str = "resize", **spec: Any) -> Write:
    old = sized("1", **spec)
    new = sized(cpu, **spec)
    new.metadata.generation = 2
    return update(new, old, subresource)


# -- pods


@pytest.mark.parametrize("subresource", ["", "resize"])
def test_an_update_the_node_declares_passes_and_another_does_not(subresource: str) -> None:
    admitted(plugin(node("n1", POD_LEVEL, "SomethingNew")), resize(subresource=subresource))
    for other in (node("n1"), node("n1", INIT), node("n1", "SomethingNew")):
        assert forbidden(plugin(other, node("n2", POD_LEVEL)), resize(subresource=subresource)) == MISSING


def test_all_missing_features_are_named_in_order() -> None:
    write = resize(init_containers=[Container(name="i")])
    write.new.spec.init_containers = [
        Container(name="i", resources=ResourceRequirements(requests=amounts(cpu="1")))
    ]
    assert forbidden(plugin(node("n1")), write) == (
        f'pod update requires features {POD_LEVEL}, {INIT} which are not available on node "n1"'
    )
    assert forbidden(plugin(node("n1", POD_LEVEL)), write) == (
        f'pod update requires features {INIT} which are not available on node "n1"'
    )


@pytest.mark.parametrize("subresource", ["status", "ephemeralcontainers", "binding", "eviction"])
def test_other_subresources_are_not_looked_at(subresource: str) -> None:
    admitted(plugin(node("n1")), resize(subresource=subresource))


def test_other_operations_are_not_looked_at() -> None:
    made = sized("1")
    for write in (create(made), delete(made), send(made, "binding", Binding())):
        admitted(plugin(node("n1")), write)


def test_a_pod_without_a_node_is_not_looked_at() -> None:
    admitted(plugin(), resize(node_name=""))


def test_an_update_that_needs_nothing_passes_even_if_the_node_is_gone() -> None:
    admitted(plugin(), resize("1"))
    assert forbidden(plugin(), resize()) == 'node "n1" not found'


def test_an_update_that_changes_no_generation_passes() -> None:
    write = resize()
    write.new.metadata.generation = 1
    admitted(plugin(node("n1")), write)


def test_inference_that_fails_refuses() -> None:
    def cannot_tell(old: PodInfo, new: PodInfo) -> bool:
        raise FeatureError("the pod makes no sense")

    broken = Framework([feature("Broken", update_rule=cannot_tell)])
    checked = NodeDeclaredFeatureValidator(world(node("n1", "Broken"), features=broken))
    why = "failed to infer pod capability requirements: the pod makes no sense"
    assert forbidden(checked, resize()) == why


def test_a_feature_nobody_has_heard_of_needs_no_change_of_the_plugin() -> None:
    def is_moved(old: PodInfo, new: PodInfo) -> bool:
        return old.spec.host_network != new.spec.host_network

    framework = Framework([feature("Invented", update_rule=is_moved)])
    write = resize("1")
    write.new.spec.host_network = True
    for declared, is_fine in ((("Invented",), True), ((POD_LEVEL,), False)):
        checked = NodeDeclaredFeatureValidator(world(node("n1", *declared), features=framework))
        if is_fine:
            admitted(checked, write)
        else:
            assert "requires features Invented which" in forbidden(checked, write)


def test_a_node_is_asked_as_it_is_now() -> None:
    env = world(node("n1"))
    checked = NodeDeclaredFeatureValidator(env)
    assert forbidden(checked, resize()) == MISSING
    put(env, node("n1", POD_LEVEL))
    admitted(checked, resize())


# -- slices


def device(**more: Any) -> Device:
    return Device(name="d", node_allocatable_resources={"cpu": NodeAllocatableResource()}, **more)


def offered(*devices: Device, **spec: Any) -> ResourceSlice:
    return ResourceSlice(metadata=meta("s"), spec=ResourceSliceSpec(devices=list(devices), **spec))


def slices(*nodes: Node) -> NodeDeclaredFeatureValidator:
    return plugin(*nodes, gates=f"{SLICES}=true")


def selecting(**labels: str) -> NodeSelector:
    wishes = [
        NodeSelectorRequirement(key=key, operator="In", values=[value]) for key, value in labels.items()
    ]
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=wishes)])


ABLE = node("able", SLICES, kind="new")
UNABLE = node("unable", kind="old")
WHY = 'node "unable" does not support DRANodeAllocatableResources feature'


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"node_name": "able"}, ""),
        ({"node_name": "unable"}, WHY),
        ({"node_name": "none"}, 'node "none" not found for device "d"'),
        ({"all_nodes": True}, WHY),
        ({"node_selector": selecting(kind="new")}, ""),
        ({"node_selector": selecting(kind="old")}, WHY),
        ({"node_selector": selecting(kind="none")}, ""),
        ({}, 'device "d" in ResourceSlice has NodeAllocatableResources but does not map to any nodes'),
    ],
)
def test_devices_made_of_a_nodes_resources_need_a_node_that_can(where: dict[str, Any], why: str) -> None:
    by_slice = offered(device(), **where)
    by_device = offered(device(**where), per_device_node_selection=True, node_name="ignored")
    for write in (create(by_slice), update(by_slice, offered(), ""), create(by_device)):
        if why:
            assert forbidden(slices(ABLE, UNABLE), write) == why
        else:
            admitted(slices(ABLE, UNABLE), write)


def test_other_devices_and_other_gates_are_not_looked_at() -> None:
    admitted(slices(UNABLE), create(offered(Device(name="d"), node_name="unable")))
    admitted(slices(UNABLE), delete(offered(device(), node_name="unable")))
    admitted(plugin(UNABLE), create(offered(device(), node_name="unable")))


def test_the_slice_itself_is_left_as_it_was() -> None:
    before = offered(device(), node_name="able")
    assert admitted(slices(ABLE), create(copy(before))) == before
