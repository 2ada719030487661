"""Announce new CPU sets to containers: have the files of their pods written, and hold sets back until that is done.

`cpu_resizes` calls `announce` when sets have changed; the pods' downward API volumes show `assigned.cpuset` (KEP-6122).
A write that fails is reported as an event and tried again, first soon, then less often.

What must stay true: a container learns of CPUs that it will lose before it loses them, however long that takes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.cpu.cpu_map import ContainerKey
from nodeward.kubelet.cpu.node_pods import NodePods
from nodeward.kubelet.cpu.scale_delay import ScaleDelays
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.clock import Clock

_FIRST_RETRY_NS: Final = SECOND_NS
_LONGEST_RETRY_NS: Final = 10 * SECOND_NS
_NOT_WRITTEN: Final = "FailedCPUSetNotice"


class CPUSetNotices:
    """The announcements of one node."""

    def __init__(self, pods: NodePods, delays: ScaleDelays, clock: Clock, wheel: TimerWheel) -> None:
        self._pods, self._delays = pods, delays
        self._clock, self._wheel = clock, wheel
        #: since when the files of containers show that they will lose CPUs
        self._noticed_ns: dict[ContainerKey, int] = {}
        #: the last write of each pod's files that was asked for and has not succeeded yet
        self._asked: dict[str, int] = {}
        self._last = 0

    def announce(self, uid: str, containers: Collection[str]) -> None:
        """Have a pod's files show its newest sets; those of some containers are held back until then."""
        for name in containers:
            self._delays.announce(uid, name)
        self._ask(uid, _FIRST_RETRY_NS)

    def end(self, uid: str, container: str) -> int | None:
        """End the notice of a container; return since when its file shows the set, None if it lost no CPU."""
        return self._noticed_ns.pop((uid, container), None)

    def forget(self, uid: str) -> None:
        """Announce nothing any more to a pod that has ended."""
        self._asked.pop(uid, None)
        for key in [key for key in self._noticed_ns if key[0] == uid]:
            del self._noticed_ns[key]

    def stop(self) -> None:
        """Try nothing again: the kubelet stops."""
        self._asked.clear()

    def _ask(self, uid: str, retry_ns: int) -> None:
        self._last += 1
        asked = self._asked[uid] = self._last
        # A write shows whatever was announced before it began.
        number = self._delays.last_announced
        self._pods.refresh_own_fields(
            uid, lambda trouble: self._answered(uid, number, asked, retry_ns, trouble)
        )

    def _answered(self, uid: str, number: int, asked: int, retry_ns: int, trouble: str) -> None:
        if not trouble:
            now_ns = self._clock.monotonic_ns()
            for name in self._delays.on_written(uid, number, now_ns):
                self._noticed_ns[uid, name] = now_ns
            if self._asked.get(uid) == asked:
                del self._asked[uid]
            return
        if self._asked.get(uid) != asked:
            return  # a later write is under way, or the pod is gone
        text = (
            f"The file that shows assigned.cpuset cannot be written, so no CPUs are taken away yet: {trouble}"
        )
        self._pods.record(uid, RecordEvent("Warning", _NOT_WRITTEN, text))
        again = min(2 * retry_ns, _LONGEST_RETRY_NS)

        def due() -> None:
            if self._asked.get(uid) == asked:
                self._ask(uid, again)

        self._wheel.at(self._clock.monotonic_ns() + retry_ns, due)
