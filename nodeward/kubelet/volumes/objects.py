"""Objects that pods refer to, read from the API one by one: a kubelet may see those and no other.

Each is remembered for a minute, as upstream's kubelet does when it does not watch; one that may not change any more is
remembered as long as it is wanted. When the API cannot be asked, what was known last counts: a container that
crashes while the control plane is away must be able to start again.

What must stay true: a pod that was just prepared is answered from the API, not from memory; "not found" is an answer
and is never remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from nodeward.api.core_v1.cluster import ConfigMap, Secret
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.service import Service
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.errors import ApiError
from nodeward.base.duration import MINUTE, SECOND
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock

OBJECT_TTL_NS: Final = MINUTE
SERVICES_TTL_NS: Final = 10 * SECOND
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


class Objects:
    """What one node reads for its pods."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[str, str, str], _Remembered] = {}

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
        """A pod starts: what its namespace's objects say is asked anew."""
        namespace = pod.metadata.namespace
        for key in [key for key in self._known if key[1] in ("", namespace)]:
            self._known[key].until_ns = 0

    async def _get(self, kind: type[_T], namespace: str, name: str) -> _T:
        async def read() -> _T:
            return await self._client.get(kind, name, namespace)

        return await self._remember((kind.__name__, namespace, name), read, OBJECT_TTL_NS)

    async def _remember(
        self, key: tuple[str, str, str], read: Callable[[], Awaitable[_T]], ttl_ns: int
    ) -> _T:
        now_ns = self._clock.monotonic_ns()
        known = self._known.get(key)
        if known is not None and now_ns < known.until_ns:
            return cast(_T, known.value)
        try:
            value = await read()
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
        lasts_ns = 1440 * MINUTE if getattr(value, "immutable", None) else ttl_ns
        self._known.pop(key, None)
        self._known[key] = _Remembered(value, self._clock.monotonic_ns() + lasts_ns)
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return value
