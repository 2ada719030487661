"""KEP-5328, admission: a running API server refuses changes of pods that their nodes do not declare."""

from __future__ import annotations

import asyncio
from typing import Any

from nodeward.apiserver.admission.node_declared_feature_validator import NodeDeclaredFeatureValidator
from nodeward.features import FRAMEWORK, Framework, Version
from tests.apiserver.admission.test_node_declared_feature_validator import node as known_node
from tests.apiserver.admission.test_node_declared_feature_validator import plugin, resize
from tests.apiserver.admission.world import admitted, forbidden, world
from tests.features.declared.objects import feature
from tests.keps.kep5328 import (
    INIT,
    NODES,
    POD_LEVEL,
    PODS,
    add_node,
    add_pod,
    asking,
    change,
    declare,
    lacking,
)
from tests.keps.ledger import statement
from tests.keps.wire import served

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
        async with served() as caller:
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

    asyncio.run(scenario())


@statement("5328-D38")
def test_the_servers_own_version_is_the_target_and_failing_to_infer_forbids() -> None:
    framework = Framework(
        [feature("Ended", update_rule=lambda old, new: True, max_version=Version.parse("1.36"))]
    )
    checked = NodeDeclaredFeatureValidator(world(known_node("n1")), framework)
    assert checked.version == Version.parse("1.37")
    admitted(checked, resize())
    checked.version = Version.parse("1.36")
    assert "requires features Ended which" in forbidden(checked, resize())
    checked.version = None
    why = "failed to infer pod capability requirements: target version cannot be nil"
    assert forbidden(checked, resize()) == why


@statement("5328-D40")
def test_the_walk_through_of_a_pod_level_resize() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller, INIT)
            await add_pod(caller, resources=asking("1"))
            assert await change(caller, {"resources": asking("2")}) == lacking(POD_LEVEL)
            # The administrator switches the feature on; the kubelet restarts and says so.
            assert (await declare(caller, POD_LEVEL, INIT))[0] == 200
            spec = await change(caller, {"resources": asking("2")})
            assert spec["resources"]["requests"]["cpu"] == "2"

    asyncio.run(scenario())


@statement("5328-D57")
def test_the_features_of_the_node_are_read_and_gate_resource_and_subresource_minded() -> None:
    write = resize()
    admitted(plugin(known_node("n1", POD_LEVEL)), write)
    assert forbidden(plugin(known_node("n1"), known_node("n2", POD_LEVEL)), write).endswith('on node "n1"')
    for subresource in ("status", "ephemeralcontainers", "binding", "eviction"):
        admitted(plugin(known_node("n1")), resize(subresource=subresource))
    off = NodeDeclaredFeatureValidator(world(known_node("n1"), version="1.35"))
    admitted(off, write)


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
