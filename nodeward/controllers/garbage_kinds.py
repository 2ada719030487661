"""Which kinds can be owners and garbage: asked of the server again and again, so that none is forgotten.

`refresh` asks, and hands every kind that is new and can be collected to `follow`; `resolve` finds the kind an owner
reference names, in whatever version. `is_complete` is set once what was there at the first answer has been listed, or
has had its time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.controllers.owner_graph import META, Meta
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.discovery import ApiResource
from nodeward.machinery.informer import Informer, InformerFactory

LOG: Final = logging.getLogger(__name__)

#: How often the server is asked what it serves.
PERIOD_SECONDS: Final = 30.0
#: How long a kind that cannot be listed keeps the others waiting.
SYNC_SECONDS: Final = 30.0
#: They come in floods, end by themselves, and own nothing.
IGNORED: Final = (("", "events"), ("events.k8s.io", "events"))
_NEEDED: Final = ("delete", "list", "watch")


class GarbageKinds:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        informers: InformerFactory,
        follow: Callable[[Kind, Informer[Meta]], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._informers = informers
        self._follow = follow
        self._by_name: dict[tuple[str, str], Kind] = {}
        self._followed: dict[tuple[str, str], Informer[Any]] = {}
        self.is_complete: Final = asyncio.Event()

    def resolve(self, api_version: str, kind: str) -> Kind | None:
        """`("apps/v1", "ReplicaSet")`; None if the server does not serve it."""
        return self._by_name.get((api_version, kind))

    async def refresh(self) -> bool:
        """Ask the server; says whether there is anything new."""
        fresh: list[Informer[Any]] = []
        known = len(self._by_name)
        for found in await self._client.discover():
            if "/" in found.name:
                continue
            kind = self._remember(found)
            where = (found.group, found.name)
            # Each resource once, in the version the server names first.
            if (
                where in IGNORED
                or where in self._followed
                or any(verb not in found.verbs for verb in _NEEDED)
            ):
                continue
            informer = self._informers.informer(META, kind=kind)
            self._followed[where] = informer
            self._follow(kind, informer)
            fresh.append(informer)
        await self._wait(fresh)
        self.is_complete.set()
        return bool(fresh) or len(self._by_name) != known

    def _remember(self, found: ApiResource) -> Kind:
        version = f"{found.group}/{found.version}" if found.group else found.version
        kind = self._by_name.get((version, found.kind))
        if kind is None:
            kind = self._client.scheme.by_resource(found.group, found.version, found.name) or Kind(
                found.group, found.version, found.kind, KubeObject, found.name, found.namespaced
            )
            self._by_name[version, found.kind] = kind
        return kind

    async def _wait(self, informers: list[Informer[Any]]) -> None:
        try:
            async with self._clock.timeout(SYNC_SECONDS):
                for informer in informers:
                    await informer.wait_synced()
        except TimeoutError:
            late = [each.kind.qualified_resource for each in informers if not each.has_synced()]
            LOG.warning("garbage collection goes on without knowing all %s", ", ".join(late))
