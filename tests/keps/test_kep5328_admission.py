"""KEP-5328, admission: a running API server refuses changes of pods that their nodes do not declare."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nodeward.api.errors import ApiError
from nodeward.apiserver.admission.node_declared_feature_validator import NodeDeclaredFeatureValidator
from nodeward.features import FRAMEWORK, FeatureError, Framework, PodInfo, Version
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.admission.test_node_declared_feature_validator import node as known_node
from tests.apiserver.admission.test_node_declared_feature_validator import plugin, resize
from tests.apiserver.admission.world import admitted, forbidden, world
from tests.features.declared.objects import feature, resources
from tests.keps.kep5328 import (
    INIT,
    NODES,
    POD_LEVEL,
    PODS,
    add_node,
    add_pod,
    asking,
    change,
    lacking,
)
from tests.keps.ledger import statement
from tests.keps.node_identity import node_world
from tests.keps.wire import served
from tests.scheduler.running import pod

RESTART_ALL = "RestartAllContainersOnContainerExits"
ON_135 = f"NodeDeclaredFeatures=true,{POD_LEVEL}=true"
HALT = {"name": "halt", "image": "i"}


@statement("5328-D35")
def test_only_updates_of_the_pod_and_its_resize_are_looked_at() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller)
            # Created and bound although the node declares nothing.
            await add_pod(caller, resources=asking("1"))
            assert await change(caller, {"resources": asking("2")}) == lacking(POD_LEVEL)
            debug = {"name": "debug", "image": "i", "terminationMessagePolicy": "File"}
            spec = await change(caller, {"ephemeralContainers": [debug]}, "ephemeralcontainers")
            assert spec["ephemeralContainers"][0]["name"] == "debug"
            status, _ = await caller.json(
                "PATCH",
                f"{PODS}/p/status",
                {"status": {"phase": "Running"}},
                content_type="application/merge-patch+json",
            )
            assert status == 200

    asyncio.run(scenario())
    # The pod itself is immutable where a feature would be needed; what would pass validation is refused there too.
    assert "requires features" in forbidden(plugin(known_node("n1")), resize(subresource=""))


@statement("5328-D36")
def test_a_pod_without_a_node_is_changed_freely() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_pod(caller, node="", resources=asking("1"))
            spec = await change(caller, {"resources": asking("2")})
            assert spec["resources"]["requests"]["cpu"] == "2"

    asyncio.run(scenario())


@statement("5328-D37")
def test_the_pods_own_node_decides_and_must_exist() -> None:
    async def scenario() -> None:
        # Without the validator of resizes, which refuses a pod without a node too.
        async with served(disable_admission=("ServiceAccount", "PodResizeValidator")) as caller:
            await add_node(caller)
            await add_node(caller, POD_LEVEL, name="n2")
            await add_pod(caller, resources=asking("1"))
            assert await change(caller, {"resources": asking("2")}) == lacking(POD_LEVEL)
            status, _ = await caller.json("DELETE", f"{NODES}/n1")
            assert status == 200
            gone = (403, 'pods "p" is forbidden: node "n1" not found')
            assert await change(caller, {"resources": asking("2")}) == gone
            _, kept = await caller.json("GET", f"{PODS}/p")
            assert kept["spec"]["resources"]["requests"]["cpu"] == "1"
            # A change that needs nothing is not asked of the node: nobody else here would refuse it.
            spec = await change(caller, {"containers": [_sized("200m")]})
            assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"

    asyncio.run(scenario())


@statement("5328-D38")
@pytest.mark.parametrize(("version", "is_needed"), [("1.36", True), ("1.37", True), ("1.38", False)])
def test_the_servers_own_version_is_the_target(version: str, is_needed: bool) -> None:
    ended = Framework(
        [feature("Ended", update_rule=lambda old, new: True, max_version=Version.parse("1.37"))]
    )

    async def scenario() -> None:
        async with served(version, features=ended) as caller:
            await add_node(caller)
            await add_pod(caller)
            outcome = await change(caller, {"containers": [_sized("200m")]})
            if is_needed:
                assert outcome == lacking("Ended")
            else:
                assert outcome["containers"][0]["resources"]["requests"]["cpu"] == "200m"

    asyncio.run(scenario())


@statement("5328-D38")
def test_an_update_whose_needs_cannot_be_inferred_is_forbidden() -> None:
    def cannot_tell(old: PodInfo, new: PodInfo) -> bool:
        raise FeatureError("the pod makes no sense")

    async def scenario() -> None:
        broken = Framework([feature("Broken", update_rule=cannot_tell)])
        async with served(features=broken) as caller:
            await add_node(caller, "Broken")
            await add_pod(caller)
            why = "failed to infer pod capability requirements: the pod makes no sense"
            refused = (403, f'pods "p" is forbidden: {why}')
            assert await change(caller, {"containers": [_sized("200m")]}) == refused
            _, kept = await caller.json("GET", f"{PODS}/p")
            assert kept["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"

    asyncio.run(scenario())


@statement("5328-D40")
def test_the_walk_through_of_a_pod_level_resize() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as each:
            # A kubelet that could resize, with the feature switched off.
            kubelet = await each.start_kubelet(feature_gates=f"{POD_LEVEL}=false")
            assert await each.declared() == ["ExtendWebSocketsToKubelet", INIT, RESTART_ALL]
            bound = pod("p")
            bound.spec.node_name = "n1"
            bound.spec.resources = resources(cpu="1", memory="1Gi")
            await each.add(bound)
            assert (await each.pod("p")).status.phase == "Running"
            more = {"resources": asking("2")}
            with pytest.raises(ApiError) as refused:
                await each.resize("p", more)
            assert (refused.value.code, refused.value.status.message) == lacking(POD_LEVEL)
            # The administrator switches the feature on; the kubelet restarts and says so.
            await kubelet.restart(feature_gates="", seconds=15)
            assert POD_LEVEL in await each.declared()
            changed = await each.resize("p", more)
            assert changed.spec.resources == resources(cpu="2", memory="1Gi")
            # And the node does it.
            await each.pass_time(5)
            status = (await each.pod("p")).status
            assert str(status.allocated_resources["cpu"]) == "2"
            assert status.resources is not None
            assert str(status.resources.requests["cpu"]) == "2"
            assert not [one for one in status.conditions if one.type.startswith("PodResize")]

    run_virtual(main)


@statement("5328-D57")
def test_the_features_of_the_node_are_read_and_gate_resource_and_subresource_minded() -> None:
    write = resize()
    admitted(plugin(known_node("n1", POD_LEVEL)), write)
    assert forbidden(plugin(known_node("n1"), known_node("n2", POD_LEVEL)), write).endswith('on node "n1"')
    for subresource in ("status", "ephemeralcontainers", "binding", "eviction"):
        admitted(plugin(known_node("n1")), resize(subresource=subresource))
    off = NodeDeclaredFeatureValidator(world(known_node("n1"), version="1.35"))
    admitted(off, write)
    on = NodeDeclaredFeatureValidator(world(known_node("n1"), version="1.35", gates=ON_135))
    assert forbidden(on, write).endswith('on node "n1"')


@statement("5328-D58", part="admission")
def test_every_kind_of_change_is_admitted_or_refused_by_the_node_it_is_for() -> None:
    both = {"resources": asking("2"), "initContainers": [_init("200m")]}

    async def outcome(*declared: str) -> Any:
        async with served() as caller:
            await add_node(caller, *declared)
            await add_pod(caller, resources=asking("1"), initContainers=[_init("100m")])
            return await change(caller, both)

    async def scenario() -> None:
        assert await outcome() == lacking(POD_LEVEL, INIT)
        assert await outcome(INIT) == lacking(POD_LEVEL)
        assert await outcome(POD_LEVEL) == lacking(INIT)
        spec = await outcome(POD_LEVEL, INIT, "SomethingNewer")
        assert spec["initContainers"][0]["resources"]["requests"]["cpu"] == "200m"

    asyncio.run(scenario())


@statement("5328-D7")
def test_a_resize_of_a_guaranteed_pod_passes_on_a_node_that_declares_nothing() -> None:
    exact = {"cpu": "1", "memory": "1Gi"}
    more = {"cpu": "2", "memory": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": exact, "limits": exact}}

    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller)
            await add_pod(caller, containers=[container])
            resized = {"name": "c", "resources": {"requests": more, "limits": more}}
            spec = await change(caller, {"containers": [resized]})
            assert spec["containers"][0]["resources"]["requests"]["cpu"] == "2"

    asyncio.run(scenario())
    assert "InPlacePodVerticalScalingExclusiveCPUs" not in FRAMEWORK.table.names


def _init(cpu: str) -> dict[str, Any]:
    return {**HALT, "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}


def _sized(cpu: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
