"""Probes: which run now, when the next one is due, and when a row of results means something.

The pod's life says which probes run (`ProbePlan`), the agent keeps a `ProbeWorker` for each plan and asks it every
now and then; what a row of results adds up to (`ProbeVerdict`) goes back to the pod's life.

What must stay true: nothing is probed before its initial delay, counted from the start of the container; one failure
short of the threshold changes nothing; after a verdict that ends a container, or lets it pass its startup probe, the
worker is on hold: the plan will go, or come back for a new instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.container import Probe
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.pods.commands import RecordEvent

STARTUP: Final = "startup"
LIVENESS: Final = "liveness"
READINESS: Final = "readiness"

_WORDS: Final = {STARTUP: "Startup", LIVENESS: "Liveness", READINESS: "Readiness"}


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """A probe that runs now, of one instance of a container."""

    container: str
    kind: str
    probe: Probe
    container_id: str
    #: when the instance started
    started_ns: int

    @property
    def first_ns(self) -> int:
        """Not before."""
        return self.started_ns + self.probe.initial_delay_seconds * SECOND_NS


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """What a row of results means: `PodLifecycle.probed` wants to know."""

    container: str
    kind: str
    ok: bool


class ProbeWorker:
    """The rhythm and the memory of one probe."""

    __slots__ = ("is_on_hold", "last", "next_ns", "plan", "run")

    def __init__(self, plan: ProbePlan, now_ns: int, spread_ns: int = 0) -> None:
        """`spread_ns` delays the first one, so that a restarted agent does not probe everything at once."""
        self.plan = plan
        self.next_ns = max(plan.first_ns, now_ns + spread_ns)
        #: nothing more is to be learnt from this instance
        self.is_on_hold = False
        self.last: bool | None = None
        #: how often in a row it was `last`
        self.run = 0

    def due(self, now_ns: int) -> bool:
        return not self.is_on_hold and now_ns >= self.next_ns

    def began(self, now_ns: int) -> None:
        """A probe was sent: the next is due a period later, on the same beat unless the agent was late."""
        period = max(1, self.plan.probe.period_seconds) * SECOND_NS
        late = (now_ns - self.next_ns) // period
        self.next_ns += (late + 1) * period

    def result(self, ok: bool | None, now_ns: int) -> ProbeVerdict | None:
        """What came of it; None (the probe itself did not work) counts for nothing."""
        if self.next_ns <= now_ns:
            self.began(now_ns)
        if ok is None or self.is_on_hold:
            return None
        if ok is self.last:
            self.run += 1
        else:
            self.last, self.run = ok, 1
        probe = self.plan.probe
        # A longer row says nothing new: thousands of healthy containers must cost nobody a thought.
        if self.run != max(1, probe.success_threshold if ok else probe.failure_threshold):
            return None
        if self.plan.kind == STARTUP or (self.plan.kind == LIVENESS and not ok):
            self.is_on_hold = True
            self.run = 0
        return ProbeVerdict(self.plan.container, self.plan.kind, ok)


def unhealthy(container: str, kind: str, message: str) -> RecordEvent:
    """The event for every probe that failed, also for one that changes nothing yet."""
    return RecordEvent("Warning", "Unhealthy", f"{_WORDS[kind]} probe failed: {message}", container)


def errored(container: str, kind: str, message: str) -> RecordEvent:
    """The event for a probe that could not be made."""
    text = f"{_WORDS[kind]} probe errored and resulted in unknown state: {message}"
    return RecordEvent("Warning", "Unhealthy", text, container)


def probe_warning(container: str, kind: str, message: str) -> RecordEvent:
    """The event for a probe that passed, but not as it should (a redirect to another host)."""
    return RecordEvent("Warning", "ProbeWarning", f"{_WORDS[kind]} probe warning: {message}", container)
