"""Cgroups of the cpuset controller for containers that are local processes, where the machine lets us make them.

The runtime asks `find_base` once, when it starts, and then makes one cgroup a container (`make`); the supervisor's
child enters it before it becomes the command (`enter`), so everything the command starts is in it too. One write
(`set_cpus`) moves all threads at once, and no program can leave the CPUs it was given. Both versions of cgroups are
known. Where none can be made (no root, or version 2 without delegation), the runtime goes by affinity (`tree.pin`).
Cgroups that are empty are removed by whoever ends last, the supervisor or the agent.
Imported by the supervisors, of which there is one a container: nothing heavy here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_CONTROLLER: Final = "cpuset"
_CPUS: Final = "cpuset.cpus"
_MEMORY_NODES: Final = "cpuset.mems"
_PROCESSES: Final = "cgroup.procs"
_SUBTREE: Final = "cgroup.subtree_control"


def find_base(root: str, cpus: str) -> str:
    """Make the cgroup below which the containers of a runtime get theirs; "": this machine does not allow it.

    root: the runtime's directory, from which the name is made. cpus: those of this process.
    """
    parent = own_cgroup()
    if not parent:
        return ""
    base = f"{parent}/nodeward-{hashlib.sha256(root.encode()).hexdigest()[:12]}"
    try:
        if os.path.exists(f"{parent}/{_SUBTREE}"):
            _write(f"{parent}/{_SUBTREE}", f"+{_CONTROLLER}")
        # What is allowed here must be allowed for a container.
        make(f"{base}/trial", cpus, cpus)
        remove(f"{base}/trial")
    except OSError:
        remove(base)
        return ""
    return base


def make(path: str, cpus: str, present: str) -> None:
    """Make the cgroup of one container with these CPUs, below a cgroup with those `present`. Raises OSError."""
    try:
        _make_both(path, cpus, present)
    except FileNotFoundError:
        # The supervisor of the last container before this one removed the upper one meanwhile.
        _make_both(path, cpus, present)
    except OSError:
        remove(path)
        raise


def enter(path: str) -> None:
    """Move this process, which has one thread, into a cgroup. Raises OSError."""
    _write(f"{path}/{_PROCESSES}", "0")


def set_cpus(path: str, cpus: str) -> None:
    """Let everything in a cgroup run on these CPUs only. Raises OSError, and then nothing has changed."""
    _write(f"{path}/{_CPUS}", cpus)


def remove(path: str) -> None:
    """Remove a cgroup; one that has processes, or cgroups below it, stays."""
    with suppress(OSError):
        os.rmdir(path)


def leave(path: str) -> None:
    """Remove the cgroup of a container that has ended, and the one above it if that was the last."""
    remove(path)
    remove(os.path.dirname(path))


def sweep(base: str, kept: Iterable[str]) -> None:
    """Remove the cgroups of containers that are not among `kept`."""
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return
    known = frozenset(kept)
    for name in names:
        if name not in known and os.path.isdir(f"{base}/{name}"):
            remove(f"{base}/{name}")


def _make_both(path: str, cpus: str, present: str) -> None:
    base = os.path.dirname(path)
    _make(base, present)
    if os.path.exists(f"{base}/{_SUBTREE}"):
        _write(f"{base}/{_SUBTREE}", f"+{_CONTROLLER}")
    _make(path, cpus)


def _make(path: str, cpus: str) -> None:
    """A cgroup with these CPUs and the memory nodes of its parent, without which it takes no process."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o755)
    with open(f"{os.path.dirname(path)}/{_MEMORY_NODES}") as file:
        memory_nodes = file.read().strip()
    if memory_nodes:
        _write(f"{path}/{_MEMORY_NODES}", memory_nodes)
    set_cpus(path, cpus)


def own_cgroup(proc: str = "/proc/self") -> str:
    """The directory of a process's cgroup in the hierarchy with the cpuset controller; "" if there is none."""
    try:
        with open(f"{proc}/cgroup") as file:
            own = [line.rstrip("\n").split(":", 2) for line in file]
        with open(f"{proc}/mountinfo") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return ""
    paths = {name: path for _, names, path in own for name in names.split(",")}
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind == "cgroup" and _CONTROLLER in options and _CONTROLLER in paths:
            return _below(fields[3], fields[4], paths[_CONTROLLER])
    for fields in mounts:
        if fields[fields.index("-") + 1] == "cgroup2" and "" in paths:
            found = _below(fields[3], fields[4], paths[""])
            with suppress(OSError), open(f"{found}/cgroup.controllers") as file:
                return found if _CONTROLLER in file.read().split() else ""
    return ""


def _below(mounted: str, at: str, path: str) -> str:
    """Where a cgroup is, whose hierarchy is mounted from `mounted` on at a directory."""
    inside = os.path.relpath(path, mounted)
    return "" if inside.startswith("..") else os.path.normpath(f"{at}/{inside}")


def _write(path: str, text: str) -> None:
    # Not through a buffer: the kernel's answer to the write is the answer.
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
