"""A component of a cluster that can be stopped, and started again as another version or with other gates.

`Cluster` has one for the API server, the scheduler and the controllers, and hands in how each is made. The other
components go on meanwhile: they meet only through the API.

What must stay true: gates that make no sense are refused before anything is stopped; a component that cannot be started
leaves nothing running.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

from nodeward.base.errors import ConfigError
from nodeward.features import Gates

LOG: Final = logging.getLogger(__name__)


class Stoppable(Protocol):
    async def stop(self) -> None: ...


Running = TypeVar("Running", bound=Stoppable)


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
    ) -> None:
        """`make` builds the component with some gates, `start` and `stop` bring it up and down."""
        self.name: Final = name
        #: of what runs, or ran last
        self.gates = gates
        self.running: Running | None = None
        self._make, self._start, self._stop = make, start, stop

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
        return made

    async def stop(self) -> None:
        """Stop it; nothing happens if it is stopped."""
        running, self.running = self.running, None
        if running is not None:
            await self._stop(running)

    async def restart(self, *, version: str = "", gates: Gates | str | None = None) -> Running:
        """Stop it if it runs, and start it as another version or with other gates."""
        chosen = changed_gates(self.gates, version, gates)
        await self.stop()
        return await self.start(gates=chosen)
