"""A store that stops answering, as etcd does when its process is stopped: who is told what, and how soon."""

from __future__ import annotations

import asyncio
from typing import Any

from nodeward.apiserver.store_health import PROBE_SECONDS, SILENT_SECONDS
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.interface import Revision, StoreUnavailable, WriteResult
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running

MAPS = "/api/v1/namespaces/default/configmaps"
#: What a call of the etcd store takes before it gives up.
STORE_PATIENCE_SECONDS = 15.0


class StoppedAtTimes(MemoryStore):
    """A store that others share, and that answers nothing while `is_stopped`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.is_stopped = False
        self.calls = 0

    @property
    def is_shared(self) -> bool:
        return True

    async def _wait(self) -> None:
        self.calls += 1
        until = self._clock.monotonic_ns() + int(STORE_PATIENCE_SECONDS * SECOND_NS)
        while self.is_stopped:
            if self._clock.monotonic_ns() >= until:
                raise StoreUnavailable("etcd does not answer: deadline exceeded")
            await self._clock.sleep(0.1)

    async def revision(self) -> Revision:
        await self._wait()
        return await super().revision()

    async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        await self._wait()
        return await super().put(key, value, expected=expected)


class Timed:
    """Requests, and how many seconds each took."""

    def __init__(self, caller: Caller, clock: Clock) -> None:
        self._caller = caller
        self._clock = clock

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, float]:
        started = self._clock.monotonic_ns()
        response = await self._caller.send(method, path, body)
        return response.status, (self._clock.monotonic_ns() - started) / SECOND_NS


def test_readyz_tells_that_the_store_is_silent_and_livez_stays() -> None:
    async def scenario(clock: Clock) -> None:
        store = StoppedAtTimes(clock)
        async with running(store=store, clock=clock) as server:
            ask = Timed(Caller.of(server), clock)
            assert await ask("GET", "/readyz") == (200, 0)
            store.is_stopped = True
            await clock.sleep(PROBE_SECONDS + SILENT_SECONDS + 0.5)
            assert await ask("GET", "/readyz") == (500, 0)
            assert await ask("GET", "/readyz/etcd-readiness") == (500, 0)
            assert await ask("GET", "/livez") == (200, 0)
            assert await ask("GET", "/healthz") == (200, 0)
            store.is_stopped = False
            await clock.sleep(PROBE_SECONDS + 0.5)
            assert await ask("GET", "/readyz") == (200, 0)

    run_virtual(scenario)


def test_consistent_reads_and_writes_of_a_silent_store_fail_at_once_and_others_are_answered() -> None:
    async def scenario(clock: Clock) -> None:
        store = StoppedAtTimes(clock)
        async with running(store=store, clock=clock) as server:
            ask = Timed(Caller.of(server), clock)
            assert (await ask("POST", MAPS, {"metadata": {"name": "a"}}))[0] == 201
            store.is_stopped = True
            # Whoever asks before anybody knows waits until it is known.
            for status, seconds in await asyncio.gather(*(ask("GET", f"{MAPS}/a") for _ in range(20))):
                assert status == 503
                assert seconds <= PROBE_SECONDS + SILENT_SECONDS + 0.5
            for method, path, body in (
                ("GET", f"{MAPS}/a", None),
                ("GET", MAPS, None),
                ("POST", MAPS, {"metadata": {"name": "b"}}),
                ("DELETE", f"{MAPS}/a", None),
            ):
                assert await ask(method, path, body) == (503, 0), (method, path)
            _, answer = await Caller.of(server).json("GET", f"{MAPS}/a")
            assert "the store does not answer" in answer["message"]
            assert "retryAfterSeconds" not in answer.get("details", {}), "kubectl would try ten times"
            assert await ask("GET", f"{MAPS}?resourceVersion=0") == (200, 0), "the caches are still there"
            calls = store.calls
            for _ in range(100):
                await ask("GET", MAPS)
            assert store.calls == calls, "a silent store is not asked by every request"
            store.is_stopped = False
            await clock.sleep(PROBE_SECONDS + 0.5)
            assert await ask("GET", f"{MAPS}/a") == (200, 0)
            assert (await ask("GET", f"{MAPS}/b"))[0] == 404, "a write that was answered 503 did not happen"

    run_virtual(scenario)
