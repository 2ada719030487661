"""Processes as /proc shows them: who descends from whom, who belongs to a container, all of them killed or pinned.

A process is told from a later one with the same number by the tick it started at. Imported by the supervisors, of
which there is one a container: nothing heavy here.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Iterator
from typing import Final

#: In the environment of every process of a container: its id.
MARK: Final = "NODEWARD_CONTAINER"
#: How often a tree is walked until no new thread shows; each walk that finds one is followed by another.
_MOST_WALKS: Final = 100


def start_ticks(pid: int) -> int:
    """When a process started, in ticks since boot; 0 if there is none, or it is dead already."""
    fields = _fields(pid)
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else 0


def boot_id() -> str:
    """What tells one run of the machine from the next."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _fields(pid: int) -> list[bytes]:
    """Of /proc/PID/stat, what follows the name: state, parent, group, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except OSError:
        return []
    # The name may hold blanks and parentheses itself.
    return text[text.rfind(b")") + 2 :].split()


def _everybody() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def descendants(root: int) -> list[int]:
    """All processes below one, dead ones that nobody waited for included."""
    children: dict[int, list[int]] = {}
    for pid in _everybody():
        fields = _fields(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(below)
    return found


def memory_bytes(root: int) -> int:
    """Return how much memory a process and all processes below it have in use."""
    pages = 0
    for pid in (root, *descendants(root)):
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                pages += int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it has just ended
    return pages * os.sysconf("SC_PAGE_SIZE")


def in_session(session: int) -> list[int]:
    """All living processes of a session."""
    found = []
    for pid in _everybody():
        fields = _fields(pid)
        if fields and int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
            found.append(pid)
    return found


def marked(container_id: str) -> list[int]:
    """All living processes that carry a container's mark, wherever they were started from."""
    mark = f"{MARK}={container_id}".encode()
    found = []
    for pid in _everybody():
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                environ = file.read()
        except OSError:
            continue
        if mark in environ.split(b"\0"):
            found.append(pid)
    return found


def kill_all(pids: Iterable[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue  # it is gone, or became somebody else's


def pin(root: int, container_id: str, cpus: Iterable[int], before: Iterable[Iterable[int]]) -> None:
    """Let a process, all below it and all that carry the mark run on these CPUs only, in all their threads.

    before: the sets they were allowed so far. A thread that chose some of these CPUs for itself keeps its choice as far
    as the new CPUs include it. Affinity belongs to a thread and is inherited: whoever forks while this walks may be
    missed, so it is repeated until a walk finds nobody to move. Raises OSError when the machine has none of the CPUs,
    or when the tree grows faster than it can be walked.
    """
    wanted, old = set(cpus), [set(each) for each in before]
    for _ in range(_MOST_WALKS):
        moved = 0
        for pid in dict.fromkeys((root, *descendants(root), *marked(container_id))):
            for thread in _threads(pid):
                try:
                    allowed = os.sched_getaffinity(thread)
                    chosen = wanted if allowed in old else (allowed & wanted) or wanted
                    if chosen != allowed:
                        os.sched_setaffinity(thread, chosen)
                        moved += 1
                except ProcessLookupError:
                    continue
        if not moved:
            return
    raise OSError(errno.EAGAIN, f"there are new threads after {_MOST_WALKS} walks")


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []
