"""Scale-downs of exclusive CPUs that wait: for their delay, and for the file that announces them (KEP-6122).

`exclusive_resize` starts and cancels them, the container manager's reconcile pass asks which ones are due, and
`assigned.cpuset` shows their sets. A pure state machine: times are given to it, always of the monotonic clock.

What must stay true: a set is due no sooner than its whole delay after it was computed, and after the file that shows it
was written; nothing here is stored, so that a kubelet which starts anew starts the delay anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.cpu_map import ContainerKey, PendingCPUs


class ScaleDown(NamedTuple):
    """A container that will have fewer CPUs: its pre-assignment and its timer."""

    cpus: CPUSet
    delay_ns: int
    #: when the timer runs out
    due_ns: int


class ScaleDelays:
    """The scale-downs of one node that wait, by pod UID and container name."""

    def __init__(self) -> None:
        self._waiting: dict[ContainerKey, ScaleDown] = {}
        #: containers whose file does not show their new set yet, each with the number of its announcement
        self._unwritten: dict[ContainerKey, int] = {}
        self._last = 0

    def copy(self) -> ScaleDelays:
        """Return the same scale-downs, which do not change with these."""
        made = ScaleDelays()
        made._waiting, made._unwritten, made._last = dict(self._waiting), dict(self._unwritten), self._last
        return made

    def restore(self, before: ScaleDelays) -> None:
        """Become what a copy was. Numbers of announcements are not used again."""
        self._waiting, self._unwritten = before._waiting, before._unwritten

    # -- what happens

    def start(self, uid: str, container: str, cpus: CPUSet, delay_ns: int, now_ns: int) -> None:
        """Start the timer of a container, from the beginning if it runs: it will have `cpus`."""
        self._waiting[uid, container] = ScaleDown(cpus, delay_ns, now_ns + delay_ns)

    def cancel(self, uid: str, container: str) -> ScaleDown | None:
        """End the timer of a container; return what it waited for."""
        return self._waiting.pop((uid, container), None)

    def announce(self, uid: str, container: str) -> int:
        """Hold back the new set of a container until its file shows it; return the announcement's number."""
        self._last += 1
        self._unwritten[uid, container] = self._last
        return self._last

    def on_written(self, uid: str, number: int, now_ns: int) -> list[str]:
        """The files of a pod show what was announced up to `number`: each whole delay begins now at the latest.

        Return the containers whose set is announced by that.
        """
        found = [key for key, announced in self._unwritten.items() if key[0] == uid and announced <= number]
        for key in found:
            del self._unwritten[key]
            if (waiting := self._waiting.get(key)) is not None:
                due_ns = max(waiting.due_ns, now_ns + waiting.delay_ns)
                self._waiting[key] = waiting._replace(due_ns=due_ns)
        return [container for _, container in found]

    def forget(self, uid: str, container: str) -> None:
        """Drop everything about a container that is removed."""
        self._waiting.pop((uid, container), None)
        self._unwritten.pop((uid, container), None)

    # -- questions

    @property
    def last_announced(self) -> int:
        """The number of the newest announcement."""
        return self._last

    def waiting(self, uid: str, container: str) -> ScaleDown | None:
        """Return the scale-down of a container whose timer has not been ended."""
        return self._waiting.get((uid, container))

    def is_waiting(self, uid: str) -> bool:
        """Whether a timer of a pod has not been ended."""
        return any(key[0] == uid for key in self._waiting)

    def is_written(self, uid: str, container: str) -> bool:
        """Whether the file of a container shows its newest set."""
        return (uid, container) not in self._unwritten

    def due(self, now_ns: int) -> list[tuple[str, str, CPUSet]]:
        """Return pod UID, container and new set of every scale-down that nothing holds back any more."""
        return [
            (*key, waiting.cpus)
            for key, waiting in self._waiting.items()
            if waiting.due_ns <= now_ns and key not in self._unwritten
        ]

    def all_waiting(self) -> Iterator[tuple[str, str, CPUSet]]:
        """Yield pod UID, container and new set of every scale-down."""
        return ((*key, waiting.cpus) for key, waiting in self._waiting.items())

    def pending(self, now_ns: int) -> dict[ContainerKey, PendingCPUs]:
        """Return all scale-downs as the map of the node's CPUs shows them."""
        return {
            key: PendingCPUs(waiting.cpus, max(waiting.due_ns - now_ns, 0))
            for key, waiting in self._waiting.items()
        }
