"""Addresses and ports of services: each given out once, and free again when nobody has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **port: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80, **port}]}}


def fixed(name: str, port: int = 80) -> dict[str, Any]:
    """A service that wants this very address and node port."""
    ports = [{"port": port, "nodePort": 30080}]
    return {
        "metadata": {"name": name},
        "spec": {"type": "NodePort", "clusterIP": "10.96.7.7", "ports": ports},
    }


def play(scenario: Callable[[Caller], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with running() as server:
            await scenario(Caller.of(server))

    asyncio.run(run())


def test_what_a_deleted_service_had_is_free_again() -> None:
    async def scenario(caller: Caller) -> None:
        for _ in range(3):
            assert (await caller.send("POST", SERVICES, fixed("one"))).status == 201
            assert (await caller.send("DELETE", f"{SERVICES}/one")).status == 200

    play(scenario)


@pytest.mark.parametrize("target", [f"{SERVICES}?dryRun=All", SERVICES])
def test_what_a_service_that_never_came_to_be_would_have_had_is_free(target: str) -> None:
    async def scenario(caller: Caller) -> None:
        is_dry_run = target != SERVICES
        sent = fixed("one") if is_dry_run else fixed("one", port=-1)
        assert (await caller.send("POST", target, sent)).status == (201 if is_dry_run else 422)
        assert (await caller.send("POST", SERVICES, fixed("one"))).status == 201

    play(scenario)


def test_two_services_never_have_the_same() -> None:
    async def scenario(caller: Caller) -> None:
        answers = await asyncio.gather(
            *(caller.send("POST", SERVICES, fixed(name)) for name in ("one", "two", "three"))
        )
        assert sorted(answer.status for answer in answers) == [201, 422, 422]
        made = await asyncio.gather(
            *(caller.json("POST", SERVICES, service(f"s{number}")) for number in range(50))
        )
        assert len({answer["spec"]["clusterIP"] for _, answer in made}) == 50
        assert len({answer["spec"]["ports"][0]["nodePort"] for _, answer in made}) == 50

    play(scenario)


def test_an_update_that_is_refused_leaves_its_port_free() -> None:
    async def scenario(caller: Caller) -> None:
        _, made = await caller.json("POST", SERVICES, service("one"))
        made["spec"]["ports"][0] |= {"nodePort": 30123, "port": -1}
        assert (await caller.send("PUT", f"{SERVICES}/one", made)).status == 422
        assert (await caller.send("POST", SERVICES, service("two", nodePort=30123))).status == 201

    play(scenario)


TYPES: dict[str, dict[str, Any]] = {
    "ClusterIP": {"externalName": None},
    "NodePort": {"externalName": None},
    "LoadBalancer": {"externalName": None, "externalTrafficPolicy": "Local", "loadBalancerClass": "a.b/c"},
    "ExternalName": {"externalName": "a.b"},
}


@pytest.mark.parametrize("first", TYPES)
@pytest.mark.parametrize("then", TYPES)
def test_a_service_changes_its_type_by_saying_so(first: str, then: str) -> None:
    async def scenario(caller: Caller) -> None:
        body = {"metadata": {"name": "s"}, "spec": {"type": first, "ports": [{"port": 80}], **TYPES[first]}}
        status, answer = await caller.json("POST", SERVICES, body)
        assert status == 201, answer
        patch = {"spec": {"type": then, **TYPES[then]}}
        status, answer = await caller.json(
            "PATCH", f"{SERVICES}/s", patch, content_type="application/merge-patch+json"
        )
        assert status == 200, answer
        spec = answer["spec"]
        assert ("clusterIP" in spec, "clusterIPs" in spec, "ipFamilies" in spec) == (
            then != "ExternalName",
        ) * 3
        assert ("nodePort" in spec["ports"][0]) == (then in ("NodePort", "LoadBalancer"))
        for field in ("healthCheckNodePort", "allocateLoadBalancerNodePorts", "loadBalancerClass"):
            assert (field in spec) == (then == "LoadBalancer")

    play(scenario)


def test_a_port_that_is_sent_without_its_node_port_keeps_it_by_name() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.send("POST", SERVICES, service("s", nodePort=30111))
        sent = service("s")
        sent["spec"]["ports"] = [{"port": 8080}]
        status, answer = await caller.json("PUT", f"{SERVICES}/s", sent)
        assert (status, answer["spec"]["ports"][0]["nodePort"]) == (200, 30111)

    play(scenario)
