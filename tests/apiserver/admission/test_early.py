"""A pod that comes right after its namespace waits for the default service account, for a while."""

from __future__ import annotations

import asyncio

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import Caller, running, settings

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
PODS = "/api/v1/namespaces/young/pods"


def test_a_pod_waits_for_the_account_that_a_controller_is_about_to_make() -> None:
    async def scenario(clock: VirtualClock) -> tuple[int, float]:
        async with running(settings(disable_admission=()), clock=clock) as server:
            caller = Caller.of(server)
            await caller.send("POST", "/api/v1/namespaces", {"metadata": {"name": "young"}})
            before = clock.elapsed_ns
            creating = asyncio.create_task(caller.send("POST", PODS, POD))
            await clock.sleep(0.35)
            account = {"metadata": {"name": "default"}}
            await caller.send("POST", "/api/v1/namespaces/young/serviceaccounts", account)
            response = await creating
            return response.status, (clock.elapsed_ns - before) / SECOND_NS

    status, seconds = run_virtual(scenario)
    assert status == 201
    assert 0.35 < seconds < 0.5


def test_a_pod_is_refused_when_the_account_does_not_come() -> None:
    async def scenario(clock: VirtualClock) -> tuple[int, str, float]:
        async with running(settings(disable_admission=()), clock=clock) as server:
            caller = Caller.of(server)
            await caller.send("POST", "/api/v1/namespaces", {"metadata": {"name": "young"}})
            before = clock.elapsed_ns
            status, body = await caller.json("POST", PODS, POD)
            return status, body["message"], (clock.elapsed_ns - before) / SECOND_NS

    status, message, seconds = run_virtual(scenario)
    assert status == 403
    assert message.endswith(
        'error looking up service account young/default: serviceaccount "default" not found'
    )
    assert 0.9 < seconds < 1.2
