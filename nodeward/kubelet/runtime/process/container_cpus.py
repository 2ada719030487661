"""The CPUs of one container that is a tree of local processes: which are in force, and how they are changed.

The process runtime calls `move` from a thread, one at a time for a container. Linux keeps the CPUs of each thread by
itself (its affinity), so every thread of every process is moved, and those born meanwhile too (`tree.pin`).

What must stay true: the note says which CPUs are in force; while they are changed it names both sets, so that after
a crash in the middle every thread is recognised and moved; a move that fails puts back what was.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.runtime.process import notes, tree

#: Sets remembered of moves that failed.
_MOST_TRIED: Final = 4


def read_note(directory: str) -> tuple[str, ...]:
    """The lists of CPUs that were set since the start; the first is in force, others were tried when the agent died."""
    found = notes.read(directory, notes.CPUSET)
    return tuple(found) if isinstance(found, list) else () if found is None else (str(found),)


def with_tried(known: Sequence[str], wanted: str) -> tuple[str, ...]:
    """What threads may have from now on: what is in force, and the sets tried last."""
    tried = list(dict.fromkeys((*known[1:], wanted)))
    return (known[0], *tried[-_MOST_TRIED:])


def move(
    directory: str, pid: int, container_id: str, wanted: str, known: Sequence[str], present: CPUSet
) -> None:
    """Let the container run on the CPUs `wanted` ("": on all `present`). Raises OSError, and then nothing has changed.

    known: what its threads were allowed so far, in force first.
    """
    old = [CPUSet.parse(each) or present for each in known]
    notes.write(directory, notes.CPUSET, with_tried(known, wanted))
    try:
        tree.pin(pid, container_id, CPUSet.parse(wanted) or present, old)
        notes.write(directory, notes.CPUSET, [wanted])
    except OSError:
        with suppress(OSError):
            tree.pin(pid, container_id, old[0], [*old, CPUSet.parse(wanted) or present])
        raise
