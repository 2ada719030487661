"""Events go an hour after they were last written; nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.apiserver.server import ApiServer
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running, settings

EVENTS = "/api/v1/namespaces/default/events"
MAPS = "/api/v1/namespaces/default/configmaps"
MINUTE = 60.0


def event(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested",
        "type": "Normal",
    }


async def names(caller: Caller, path: str = EVENTS) -> list[str]:
    return [each["metadata"]["name"] for each in (await caller.json("GET", path))[1]["items"]]


def test_an_event_goes_an_hour_after_it_was_last_written() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            await caller.json("POST", EVENTS, event("once"))
            await caller.json("POST", EVENTS, event("again"))
            await caller.json("POST", MAPS, {"metadata": {"name": "kept"}})
            await clock.sleep(40 * MINUTE)
            again = await caller.send(
                "PATCH", f"{EVENTS}/again", {"count": 2}, content_type="application/merge-patch+json"
            )
            assert again.status == 200
            await clock.sleep(19 * MINUTE)
            assert await names(caller) == ["again", "once"]
            await clock.sleep(2 * MINUTE)
            assert await names(caller) == ["again"]
            await clock.sleep(40 * MINUTE)
            assert await names(caller) == []
            assert await names(caller, MAPS) == ["kept"]

    run_virtual(main)


def test_after_a_restart_the_times_in_the_events_count() -> None:
    async def main(clock: VirtualClock) -> None:
        store = MemoryStore()
        async with running(clock=clock, store=store) as server:
            await Caller.of(server).json("POST", EVENTS, event("old"))
            await clock.sleep(50 * MINUTE)
            await Caller.of(server).json("POST", EVENTS, event("young"))
            saved = {item.key: item.value for item in (await store.range("/registry/events/")).items}
        second = MemoryStore()
        await second.open()
        for key, value in saved.items():
            await second.put(key, value, expected=0)
        server = ApiServer(second, clock, SeededChance(3), settings(), owns_store=False)
        await server.start()
        await clock.sleep(15 * MINUTE)
        assert await names(Caller.of(server)) == ["young"]
        await server.stop()
        await second.close()

    run_virtual(main)


@pytest.mark.parametrize(("ttl", "left"), [(0.0, 1), (90.0, 0)])
def test_the_time_can_be_chosen_and_none_means_for_ever(ttl: float, left: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(event_ttl_seconds=ttl), clock=clock) as server:
            caller = Caller.of(server)
            await caller.json("POST", EVENTS, event("e"))
            await clock.sleep(80)
            assert len(await names(caller)) == 1
            await clock.sleep(24 * 60 * MINUTE if not ttl else 60)
            assert len(await names(caller)) == left

    run_virtual(main)
