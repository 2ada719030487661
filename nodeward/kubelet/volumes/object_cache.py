"""Objects that pods refer to, read from the API one by one: a kubelet may see those and no other.

Each is remembered for a minute, as upstream's kubelet does when it does not watch; one that may not change any more is
remembered as long as it is wanted. When the API cannot be asked, what was known last counts: a container that
crashes while the control plane is away must be able to start again. Pods that ask for the same object at the same
time share one request. A node with real containers has its own store, simulated nodes of one process share one.

What must stay true: a pod that starts is answered from the API, or with an answer at most `fresh_ns` old; "not found"
is an answer and is never remembered; an object that is known is given without waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from nodeward.api.core_v1.cluster import ConfigMap, Secret
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.service import Service
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.errors import ApiError
from nodeward.base.duration import MINUTE_NS, SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock

OBJECT_TTL_NS: Final = MINUTE_NS
SERVICES_TTL_NS: Final = 10 * SECOND_NS
_SHOWN: Final = {"ConfigMap": "configmap", "Secret": "secret"}
#: How many are remembered; past it the oldest go.
_MOST: Final = 4096

_T = TypeVar("_T")


class NotThere(WorldError):
    """The API has no such object. The text is what users of upstream know: `configmap "x" not found`."""


@dataclass(slots=True)
class _Remembered:
    value: Any
    until_ns: int
    read_ns: int


class ObjectCache:
    """What one node, or all simulated nodes of a process, read for their pods.

    `fresh_ns`: how old an answer may be for a pod that starts now.
    """

    def __init__(self, client: Client, clock: Clock, fresh_ns: int = 0) -> None:
        self._client = client
        self._clock = clock
        self._fresh_ns = fresh_ns
        self._known: dict[tuple[str, str, str], _Remembered] = {}
        self._reading: dict[tuple[str, str, str], asyncio.Task[Any]] = {}

    async def aclose(self) -> None:
        """Cancel the requests that are under way."""
        tasks = list(self._reading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def config_map(self, namespace: str, name: str) -> ConfigMap:
        return await self._get(ConfigMap, namespace, name)

    async def secret(self, namespace: str, name: str) -> Secret:
        return await self._get(Secret, namespace, name)

    async def claim(self, namespace: str, name: str) -> PersistentVolumeClaim:
        return await self._get(PersistentVolumeClaim, namespace, name)

    async def volume(self, name: str) -> PersistentVolume:
        return await self._get(PersistentVolume, "", name)

    async def services(self, namespace: str) -> list[Service]:
        async def read() -> list[Service]:
            return list((await self._client.list(Service, namespace)).items)

        return await self._remember(("services", namespace, ""), read, SERVICES_TTL_NS)

    def expect_fresh(self, pod: Pod) -> None:
        """A pod starts: what is known of its namespace's objects, and is not fresh, is asked anew."""
        namespace = pod.metadata.namespace
        oldest_ns = self._clock.monotonic_ns() - self._fresh_ns
        for key, known in self._known.items():
            if key[1] in ("", namespace) and known.read_ns <= oldest_ns:
                known.until_ns = 0

    async def _get(self, kind: type[_T], namespace: str, name: str) -> _T:
        async def read() -> _T:
            return await self._client.get(kind, name, namespace)

        return await self._remember((kind.__name__, namespace, name), read, OBJECT_TTL_NS)

    async def _remember(
        self, key: tuple[str, str, str], read: Callable[[], Coroutine[Any, Any, _T]], ttl_ns: int
    ) -> _T:
        known = self._known.get(key)
        if known is not None and self._clock.monotonic_ns() < known.until_ns:
            return cast(_T, known.value)
        try:
            return await self._shared(key, read, ttl_ns)
        except ApiError as error:
            if error.reason == "NotFound":
                self._known.pop(key, None)
                shown = _SHOWN.get(key[0])
                raise NotThere(f"{shown} {quote(key[2])} not found" if shown else str(error)) from error
            if known is not None and error.code >= 500:
                return cast(_T, known.value)
            raise WorldError(str(error)) from error
        except WorldError:
            if known is not None:
                return cast(_T, known.value)
            raise

    async def _shared(
        self, key: tuple[str, str, str], read: Callable[[], Coroutine[Any, Any, _T]], ttl_ns: int
    ) -> _T:
        """Send one request for all that ask at the same time; it goes on when one of them is cancelled.

        A store that must be fresh shares nothing: a request under way may be older than the pod that asks.
        """
        if not self._fresh_ns:
            return await asyncio.create_task(self._read(key, read, ttl_ns))
        task = self._reading.get(key)
        if task is None:
            task = self._reading[key] = asyncio.create_task(self._read(key, read, ttl_ns))
            task.add_done_callback(lambda done: self._is_read(key, done))
        return cast(_T, await asyncio.shield(task))

    async def _read(
        self, key: tuple[str, str, str], read: Callable[[], Coroutine[Any, Any, _T]], ttl_ns: int
    ) -> _T:
        now_ns = self._clock.monotonic_ns()
        value = await read()
        lasts_ns = 1440 * MINUTE_NS if getattr(value, "immutable", None) else ttl_ns
        self._known.pop(key, None)
        self._known[key] = _Remembered(value, now_ns + lasts_ns, now_ns)
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return value

    def _is_read(self, key: tuple[str, str, str], task: asyncio.Task[Any]) -> None:
        self._reading.pop(key, None)
        if not task.cancelled():
            task.exception()  # everybody who asked may be gone: nobody else would look at it
