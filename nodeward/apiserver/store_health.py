"""Whether the store answers: asked all the time where others share it, so that no request has to find out by waiting.

One question is under way at a time, one per `PROBE_SECONDS`. A store that has not answered for `SILENT_SECONDS` is
silent: requests that wait for its revision fail then, later ones fail at once with 503, and
`/readyz` says so. The first answer ends it. A store that nobody else writes to is part of this process, and not asked.

Called by `hub.py`, which asks here for the newest revision, by `writing.py` and by the readiness check of `server.py`;
calls the store.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from nodeward.api.errors import ApiError, unavailable
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock
from nodeward.store.interface import Revision, Store, StoreUnavailable

LOG: Final = logging.getLogger(__name__)

#: The store is asked this often.
PROBE_SECONDS: Final = 1.0
#: A store that has not answered for this long is silent.
SILENT_SECONDS: Final = 2.0
#: Time to read an answer that has come while this process was stopped.
GRACE_SECONDS: Final = 0.1


class StoreHealth:
    """What is known of one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._why = ""

    def start(self) -> None:
        if self._store.is_shared:
            self._task = asyncio.create_task(self._probe(), name="store-health")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @property
    def is_answering(self) -> bool:
        return not self._why

    def require(self) -> None:
        """Raise 503 if the store does not answer."""
        if self._why:
            raise self._silence()

    async def revision(self) -> int:
        """Return the store's newest revision; raise 503 as soon as the store is known not to answer."""
        self.require()
        answer = asyncio.ensure_future(self._store.revision())
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_answer(_: asyncio.Future[Revision]) -> None:
            if not answered.done():
                answered.set_result(None)

        answer.add_done_callback(on_answer)
        self._waiting[answered] = None
        try:
            await answered
            return await answer
        except StoreUnavailable as error:
            raise unavailable(f"etcdserver: {error}", 1) from error
        finally:
            del self._waiting[answered]
            answer.cancel()

    def _silence(self) -> ApiError:
        # Without a time to try again: with one, kubectl would try ten times before it tells anybody.
        return unavailable(f"the store does not answer: {self._why}")

    async def _probe(self) -> None:
        while True:
            asked_ns = self._clock.monotonic_ns()
            question = asyncio.ensure_future(self._store.revision())
            try:
                await asyncio.wait({question}, timeout=SILENT_SECONDS)
                if (
                    not question.done()
                ):  # perhaps this process stood still, and the answer is there to be read
                    await asyncio.wait({question}, timeout=GRACE_SECONDS)
                if not question.done():
                    self._fall_silent(f"no answer within {SILENT_SECONDS:g} s")
                await question
                self._answered(asked_ns)
            except StoreUnavailable as error:
                self._fall_silent(str(error))
            finally:
                question.cancel()
            await self._clock.sleep(PROBE_SECONDS)

    def _fall_silent(self, why: str) -> None:
        if not self._why:
            LOG.warning("the store does not answer: %s", why)
        self._why = why
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(self._silence())

    def _answered(self, asked_ns: int) -> None:
        if self._why:
            took = (self._clock.monotonic_ns() - asked_ns) / SECOND_NS
            LOG.warning("the store answers again, after %.1f s", took)
            self._why = ""
