"""A component of a cluster that can be stopped, and started again as another version or with other gates.

`Cluster` has one for the API server, the scheduler and the controllers, and hands in how each is made. The other
components go on meanwhile: they meet only through the API.

What must stay true: gates that make no sense are refused before anything is stopped; a component that cannot be started
leaves nothing running. A component that ends by itself, by a mistake of ours or of the world, is started again: after a
second, then after twice as long each time, up to a minute; the log says why it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.features import Gates
from nodeward.machinery.clock import Clock

LOG: Final = logging.getLogger(__name__)


class Stoppable(Protocol):
    async def stop(self) -> None: ...


Running = TypeVar("Running", bound=Stoppable)

#: A component that ended is started again after the first delay, which doubles up to the longest.
FIRST_DELAY_SECONDS: Final = 1.0
LONGEST_DELAY_SECONDS: Final = 60.0
#: After this long without an end the delay is the first again.
STEADY_SECONDS: Final = 600


async def _reason(end: Awaitable[None]) -> str:
    """Wait for an end and say why it came."""
    try:
        await end
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "the log says why"


def changed_gates(before: Gates, version: str = "", gates: Gates | str | None = None) -> Gates:
    """The gates of a component after a restart.

    `gates` are those a `--feature-gates` flag says, or all of them; None: what was set before stays set, in the new
    version. A gate that the version does not know is a ConfigError.
    """
    if isinstance(gates, Gates):
        if version and gates.version != version:
            raise ConfigError(f"these are gates of version {gates.version}, not of {version}")
        return gates
    return Gates.of(version or before.version, before.as_flag() if gates is None else gates)


class Component(Generic[Running]):
    """One component: `running` is what runs now, None while it is stopped."""

    def __init__(
        self,
        name: str,
        gates: Gates,
        make: Callable[[Gates], Running],
        start: Callable[[Running], Awaitable[None]],
        stop: Callable[[Running], Awaitable[None]],
        *,
        ended: Callable[[Running], Awaitable[None]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`make` builds the component with some gates, `start` and `stop` bring it up and down.

        `ended` waits for the end of one that runs, and raises why; with it, and a clock, an end that nobody asked for
        is followed by another start.
        """
        self.name: Final = name
        #: of what runs, or ran last
        self.gates = gates
        self.running: Running | None = None
        self._make, self._start, self._stop = make, start, stop
        self._ended, self._clock = ended, clock
        self._supervision: asyncio.Task[None] | None = None

    @property
    def version(self) -> str:
        return self.gates.version

    @property
    def is_running(self) -> bool:
        return self.running is not None

    async def start(self, *, version: str = "", gates: Gates | str | None = None) -> Running:
        """Start it, with what it had before unless something else is said."""
        if self.running is not None:
            raise ConfigError(f"{self.name} is running already: stop it first, or restart it")
        chosen = changed_gates(self.gates, version, gates)
        made = self._make(chosen)
        self.running, self.gates = made, chosen
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(self.stop)
            await self._start(made)
            undo.pop_all()  # it runs: nothing to undo
        LOG.info("%s %s is started", self.name, chosen.version)
        if self._ended is not None and self._clock is not None and self._supervision is None:
            self._supervision = asyncio.create_task(
                self._supervise(self._ended, self._clock), name=f"supervision of {self.name}"
            )
        return made

    async def stop(self) -> None:
        """Stop it; nothing happens if it is stopped."""
        supervision, self._supervision = self._supervision, None
        if supervision is not None:
            supervision.cancel()
            await asyncio.gather(supervision, return_exceptions=True)
        await self._stop_running()

    async def _stop_running(self) -> None:
        running, self.running = self.running, None
        if running is not None:
            await self._stop(running)

    async def _supervise(self, ended: Callable[[Running], Awaitable[None]], clock: Clock) -> None:
        """Start the component again whenever it ends, until it is stopped."""
        delay = FIRST_DELAY_SECONDS
        while True:
            running = self.running
            if running is not None:
                began_ns = clock.monotonic_ns()
                why = await _reason(ended(running))
                if clock.monotonic_ns() - began_ns > STEADY_SECONDS * SECOND_NS:
                    delay = FIRST_DELAY_SECONDS
                LOG.error("%s has ended and is started again in %g s: %s", self.name, delay, why)
                await self._stop_running()
            await clock.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)
            try:
                made = self._make(self.gates)
                self.running = made
                await self._start(made)
                LOG.warning("%s is started again", self.name)
            except Exception as error:  # whatever keeps it from starting, the next try may succeed
                LOG.error("%s does not start and is tried again in %g s: %s", self.name, delay, error)
                await self._stop_running()

    async def restart(self, *, version: str = "", gates: Gates | str | None = None) -> Running:
        """Stop it if it runs, and start it as another version or with other gates."""
        chosen = changed_gates(self.gates, version, gates)
        await self.stop()
        return await self.start(gates=chosen)
