"""KEP-5328, version skew: what an API server decides when it and the kubelets are not of one mind.

Every row runs a server of that version and those gates over TLS. Servers that follow each other share a store, as
an upgrade or a restart with other flags does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller
from tests.keps.kep5328 import (
    INVENTED,
    LEVITATION,
    NODES,
    POD_LEVEL,
    add_node,
    add_pod,
    asking,
    change,
    declare,
    lacking,
)
from tests.keps.ledger import statement
from tests.keps.wire import served

#: The framework cannot be off while what needs it is on.
OFF = ",".join(
    f"{gate}=false"
    for gate in (
        "NodeDeclaredFeatures",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    )
)
ON_135 = f"NodeDeclaredFeatures=true,{POD_LEVEL}=true"
#: A change every kubelet can make, whatever it declares.
MORE = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m", "memory": "64Mi"}}}]}


class Lasting(MemoryStore):
    """A store that outlives the servers that use it."""

    async def close(self) -> None:
        pass


@asynccontextmanager
async def cluster(version: str, gates: str = "") -> AsyncIterator[Caller]:
    async with served(version, gates) as caller:
        yield caller


async def stored(caller: Caller) -> Any:
    _, answer = await caller.json("GET", f"{NODES}/n1")
    return answer["status"].get("declaredFeatures")


@statement("5328-D44", part="admission")
@pytest.mark.parametrize(("version", "gates"), [("1.35", ON_135), ("1.36", ""), ("1.37", ""), ("1.38", "")])
def test_new_control_plane_old_kubelet_the_update_is_refused(version: str, gates: str) -> None:
    async def scenario() -> None:
        async with cluster(version, gates) as caller:
            await add_node(caller)
            await add_pod(caller, resources=asking("1"))
            assert await change(caller, {"resources": asking("2")}) == lacking(POD_LEVEL)
            spec = await change(caller, MORE)
            assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"

    asyncio.run(scenario())


@statement("5328-D45", part="admission")
@pytest.mark.parametrize(("version", "gates"), [("1.34", ""), ("1.35", ""), ("1.36", OFF)])
def test_control_plane_off_kubelet_on_lists_are_ignored_and_updates_pass(version: str, gates: str) -> None:
    async def scenario() -> None:
        async with served(version, gates, features=INVENTED) as caller:
            await add_node(caller, "SomethingElse")
            assert await stored(caller) is None, (
                "a field nobody has switched on is as if it had not been sent"
            )
            await add_pod(caller)
            # A change that needs a feature the node has not.
            spec = await change(caller, MORE)
            assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"

    asyncio.run(scenario())


@statement("5328-D46", "5328-D47", part="admission")
def test_the_same_resize_is_refused_passes_with_the_gate_off_and_is_refused_again() -> None:
    store = Lasting()

    async def resized(cpu: str, gates: str = "") -> Any:
        async with served("1.36", gates, store=store, features=INVENTED) as caller:
            amounts = {"requests": {"cpu": cpu, "memory": "64Mi"}}
            return await change(caller, {"containers": [{"name": "c", "resources": amounts}]})

    async def scenario() -> None:
        async with served("1.36", store=store, features=INVENTED) as caller:
            await add_node(caller)
            await add_pod(caller)
        assert await resized("200m") == lacking(LEVITATION)
        spec = await resized("200m", OFF)
        assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"
        assert await resized("300m") == lacking(LEVITATION)
        async with served("1.36", store=store, features=INVENTED) as caller:
            assert (await declare(caller, LEVITATION))[0] == 200
        spec = await resized("300m")
        assert spec["containers"][0]["resources"]["requests"]["cpu"] == "300m"

    asyncio.run(scenario())


@statement("5328-D46", "5328-D47", part="admission")
def test_a_gate_that_is_switched_off_and_on_again_works_at_once() -> None:
    store = Lasting()

    async def with_gates(gates: str, *scenes: Any) -> None:
        async with served("1.36", gates, store=store) as caller:
            for scene in scenes:
                await scene(caller)

    async def set_up(caller: Caller) -> None:
        await add_node(caller)
        await add_pod(caller, resources=asking("1"))

    async def refused(caller: Caller) -> None:
        assert await change(caller, {"resources": asking("2")}) == lacking(POD_LEVEL)

    async def unchecked(caller: Caller) -> None:
        # Without the framework there is no pod-level resize either; what can be resized is, and nobody asks the node.
        code, message = await change(caller, {"resources": asking("2")})
        assert (code, "feature gate is disabled" in message) == (422, True)
        await add_pod(caller, name="q")
        spec = await change(caller, MORE, name="q")
        assert spec["containers"][0]["resources"]["requests"]["cpu"] == "200m"

    async def declared_and_passed(caller: Caller) -> None:
        assert (await declare(caller, POD_LEVEL))[0] == 200
        spec = await change(caller, {"resources": asking("2")})
        assert spec["resources"]["requests"]["cpu"] == "2"

    async def undeclared_and_refused(caller: Caller) -> None:
        assert (await declare(caller))[0] == 200
        assert await change(caller, {"resources": asking("3")}) == lacking(POD_LEVEL)

    async def scenario() -> None:
        await with_gates("", set_up, refused)
        await with_gates(OFF, unchecked)
        await with_gates("", refused, declared_and_passed, undeclared_and_refused)

    asyncio.run(scenario())


@statement("5328-D45", part="admission")
def test_a_list_that_is_there_survives_a_control_plane_that_is_switched_off() -> None:
    store = Lasting()

    async def scenario() -> None:
        async with served("1.36", store=store) as caller:
            await add_node(caller, POD_LEVEL)
        async with served("1.36", OFF, store=store) as caller:
            labels = {"metadata": {"labels": {"a": "b"}}}
            status, _ = await caller.json(
                "PATCH", f"{NODES}/n1", labels, content_type="application/merge-patch+json"
            )
            assert status == 200
            assert await stored(caller) == [POD_LEVEL]
        async with served("1.37", store=store) as caller:
            assert await stored(caller) == [POD_LEVEL]
            await add_pod(caller, resources=asking("1"))
            spec = await change(caller, {"resources": asking("2")})
            assert spec["resources"]["requests"]["cpu"] == "2"

    asyncio.run(scenario())
