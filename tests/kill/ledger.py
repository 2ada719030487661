"""Writers that note what was acknowledged, watchers that note what they saw, and the comparison of the two.

Every write carries a name of its own (`data.write`), so that a write that happened twice, or that was acknowledged and
is not there, shows. Each writer has an object of its own, and they all fight over a shared one.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.errors import ApiError
from nodeward.api.scheme import SCHEME
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.transport import ConnectionFailed

NAMESPACE = "default"
SHARED = "shared"
KIND = SCHEME.by_name("v1", "ConfigMap")
_PADDING = "x" * 500


def _config_map(name: str, write: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"write": write, "padding": _PADDING},
    }


@dataclass
class Ledger:
    """What the server said it did."""

    #: resourceVersion -> object and write, of creates, updates and patches
    written: dict[int, tuple[str, str]] = field(default_factory=dict)
    #: writes whose object was deleted while it held them
    deleted: set[tuple[str, str]] = field(default_factory=set)
    count: int = 0
    goal: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        version = int(meta["resourceVersion"])
        assert version not in self.written, "two writes were given the same resourceVersion"
        self.written[version] = (meta["name"], obj["data"]["write"])
        self._count()

    def note_delete(self, name: str, write: str) -> None:
        self.deleted.add((name, write))
        self._count()

    def _count(self) -> None:
        self.count += 1
        if self.count >= self.goal:
            self.enough.set()

    @property
    def newest(self) -> int:
        return max(self.written, default=0)


class Writer:
    """Creates, updates, patches and deletes as fast as the server answers."""

    def __init__(self, client: Client, ledger: Ledger, seed: str, number: int) -> None:
        self._client = client
        self._ledger = ledger
        self._chance = random.Random(f"{seed}-{number}")
        self._name = f"w{number}"
        self._prefix = f"{seed}-{number}"
        self._writes = 0

    async def run(self, over: asyncio.Event) -> None:
        """Until told to stop, or until the server is gone."""
        while not over.is_set():
            try:
                await self._one()
            except ConnectionFailed:
                return
            except ApiError as error:
                # Refused because another was faster, or not known to have happened: nothing to note.
                if error.code not in (404, 409, 503, 504):
                    raise
                if error.code >= 500:
                    await self._client.clock.sleep(0.02)

    async def _one(self) -> None:
        self._writes += 1
        write = f"{self._prefix}-{self._writes}"
        if self._chance.random() < 0.2:
            await self._change_shared(write)
            return
        current = await self._current(self._name)
        if current is None:
            self._ledger.note(await self._client.create(_config_map(self._name, write)))
        elif self._chance.random() < 0.15:
            meta = current["metadata"]
            await self._client.delete(
                KIND_OF, self._name, NAMESPACE, resource_version=meta["resourceVersion"]
            )
            self._ledger.note_delete(self._name, current["data"]["write"])
        elif self._chance.random() < 0.5:
            current["data"]["write"] = write
            self._ledger.note(await self._client.update(current))
        else:
            await self._patch(self._name, write)

    async def _change_shared(self, write: str) -> None:
        if await self._current(SHARED) is None:
            self._ledger.note(await self._client.create(_config_map(SHARED, write)))
        else:
            await self._patch(SHARED, write)

    async def _patch(self, name: str, write: str) -> None:
        body = {"data": {"write": write}}
        patched: dict[str, Any] = await self._client.patch(
            dict, name, body, namespace=NAMESPACE, kind=KIND_OF, patch_type=PatchType.MERGE
        )
        self._ledger.note(patched)

    async def _current(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._client.get(dict, name, NAMESPACE, kind=KIND_OF)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found


class Watcher:
    """Follows the objects through every restart, from the last resourceVersion it saw."""

    def __init__(self, client: Client, start: str) -> None:
        self._client = client
        self.version = int(start)
        self.state: dict[str, tuple[int, str]] = {}
        self.events: list[tuple[int, str, str, str]] = []
        self._writes: set[str] = set()
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Follow until the server is gone."""
        watch = self._client.watch(
            dict, NAMESPACE, kind=KIND_OF, resource_version=str(self.version), allow_bookmarks=False
        )
        try:
            async for event in watch:
                self._take(event.type, event.object)
        except ConnectionFailed:
            return
        finally:
            await watch.aclose()

    def _take(self, type_: str, obj: dict[str, Any]) -> None:
        meta, write = obj["metadata"], obj.get("data", {}).get("write", "")
        name, version = meta["name"], int(meta["resourceVersion"])
        assert version > self.version, "an event came again, or out of order"
        self.version = version
        if not write:
            return  # not ours: a controller's
        if type_ == "DELETED":
            assert self.state.pop(name)[1] == write, (
                "there is a gap: what was deleted is not what was seen last"
            )
        else:
            assert (type_ == "ADDED") == (name not in self.state), "there is a gap: an event does not fit"
            assert write not in self._writes, "a write happened twice"
            self._writes.add(write)
            self.state[name] = (version, write)
        self.events.append((version, type_, name, write))
        self._news.set()

    async def reach(self, version: int) -> None:
        while self.version < version:
            self._news.clear()
            await self._news.wait()


def compare(ledger: Ledger, watchers: list[Watcher], listed: list[dict[str, Any]]) -> None:
    """Everything acknowledged was seen by everybody, and what was seen is what is there."""
    first = watchers[0]
    for watcher in watchers[1:]:
        assert watcher.events == first.events, "two watchers saw different things"
    seen = {version: (name, write) for version, type_, name, write in first.events if type_ != "DELETED"}
    for version, what in ledger.written.items():
        assert seen.get(version) == what, f"an acknowledged write is not there: {what} at {version}"
    gone = {(name, write) for _, type_, name, write in first.events if type_ == "DELETED"}
    assert ledger.deleted <= gone, f"an acknowledged delete is not there: {ledger.deleted - gone}"
    there = {
        obj["metadata"]["name"]: (int(obj["metadata"]["resourceVersion"]), obj["data"]["write"])
        for obj in listed
        if "write" in obj["data"]
    }
    assert there == first.state, "what is listed is not what the events say"


assert KIND is not None
KIND_OF = KIND
