"""The results of one gate's probe, counted: only enough of one kind in a row change its mind (KEP-5233).

Told when a probe is due and how each went; says what the gate's condition should be. Before enough results are in
there is no verdict, and nobody's condition is overwritten on a guess. The message is the one that tipped the scale,
so that an error text that differs every time does not become a write every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeward.kubelet.config.settings import GateProbe


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """How one probe went."""

    is_success: bool
    message: str = ""


class GateProber:
    """The probe of one gate in one kubelet run."""

    __slots__ = ("_in_a_row", "_last", "is_running", "message", "next_ns", "probe", "verdict")

    def __init__(self, probe: GateProbe, started_ns: int) -> None:
        self.probe: Final = probe
        #: when the next probe is due (monotonic)
        self.next_ns = started_ns + probe.initial_delay_ns
        #: what the results say; None until there are enough
        self.verdict: bool | None = None
        self.message = ""
        self._last: bool | None = None
        self._in_a_row = 0
        self.is_running = False

    def start(self, monotonic_ns: int) -> bool:
        """Whether a probe starts now; it counts as running until its outcome is noted."""
        if self.is_running or monotonic_ns < self.next_ns:
            return False
        self.is_running = True
        self.next_ns = monotonic_ns + self.probe.period_ns
        return True

    def note(self, outcome: ProbeOutcome) -> None:
        self.is_running = False
        self._in_a_row = self._in_a_row + 1 if outcome.is_success is self._last else 1
        self._last = outcome.is_success
        needed = self.probe.success_threshold if outcome.is_success else self.probe.failure_threshold
        if self._in_a_row >= needed and self.verdict is not outcome.is_success:
            self.verdict, self.message = outcome.is_success, outcome.message
