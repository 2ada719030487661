"""One at a time for each claim: pods that share a claim do not prepare or unprepare it at the same time.

The DRA manager holds the claims of a pod while it calls drivers. A pod takes all of its claims in the order of their
names, so that two pods with the same two claims do not wait for each other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from nodeward.kubelet.dra.claim_info import ClaimKey


class ClaimLocks:
    """The claims of one node that are in work; nothing is kept of others."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[ClaimKey, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def holding(self, keys: Iterable[ClaimKey]) -> AsyncIterator[None]:
        """Hold claims; waits for those who hold one of them now."""
        held: list[ClaimKey] = []
        try:
            for key in sorted(set(keys)):
                await self._take(key)
                held.append(key)
            yield
        finally:
            for key in held:
                self._give(key)

    async def _take(self, key: ClaimKey) -> None:
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give(key)  # its turn had come
            raise

    def _give(self, key: ClaimKey) -> None:
        waiting = self._waiting[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[key]
