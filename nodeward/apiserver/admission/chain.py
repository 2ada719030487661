"""The enabled admission plugins in their order: a write passes all of them, first `admit`, then `validate`.

Called by the write path and by subresources. The duration of each plugin is measured for every sixteenth write, and for
every write that is refused: reading the clock twice for each of two dozen plugins would cost more than most of them do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from nodeward.api.errors import ApiError
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Histograms

_SAMPLED: Final = 16

Half = tuple[tuple[str, Callable[[Write], None]], ...]


class AdmissionChain:
    """The enabled plugins. Only plugins that override `admit` or `validate` are called for it."""

    def __init__(self, plugins: Sequence[AdmissionPlugin]) -> None:
        self.plugins = tuple(plugins)
        self.names = tuple(plugin.name for plugin in plugins)
        self._waiting = tuple(
            p.should_wait for p in plugins if type(p).should_wait is not AdmissionPlugin.should_wait
        )
        self._admitting: Half = tuple(
            (p.name, p.admit) for p in plugins if type(p).admit is not AdmissionPlugin.admit
        )
        self._validating: Half = tuple(
            (p.name, p.validate) for p in plugins if type(p).validate is not AdmissionPlugin.validate
        )
        self._clock: Clock | None = None
        self._seconds: Histograms | None = None
        self._writes = 0

    def then(self, plugin: AdmissionPlugin) -> AdmissionChain:
        """Return this chain with one more plugin at its end."""
        return AdmissionChain((*self.plugins, plugin))

    def timed(self, clock: Clock, seconds: Histograms) -> AdmissionChain:
        """Return this chain, with its durations measured from now on."""
        self._clock, self._seconds = clock, seconds
        return self

    def should_wait(self, write: Write) -> bool:
        """Tell whether a plugin asks to wait for an object that is about to be created."""
        return any(should_wait(write) for should_wait in self._waiting)

    def admit(self, write: Write) -> None:
        self._writes += 1
        self._pass(self._admitting, "admit", write)

    def validate(self, write: Write) -> None:
        self._pass(self._validating, "validate", write)

    def _pass(self, half: Half, kind: str, write: Write) -> None:
        clock = self._clock
        if clock is None:
            for _, ask in half:
                ask(write)
            return
        is_sampled = not self._writes % _SAMPLED
        name, started_ns = "", clock.monotonic_ns()
        try:
            for name, ask in half:
                if is_sampled:
                    started_ns = clock.monotonic_ns()
                ask(write)
                if is_sampled:
                    self._note(name, kind, write, clock.monotonic_ns() - started_ns, is_refused=False)
        except ApiError:
            self._note(name, kind, write, clock.monotonic_ns() - started_ns, is_refused=True)
            raise

    def _note(self, name: str, kind: str, write: Write, spent_ns: int, *, is_refused: bool) -> None:
        if self._seconds is not None:
            refused = "true" if is_refused else "false"
            self._seconds.observe(spent_ns / SECOND_NS, name, kind, write.operation, refused)
