"""What is written down about a container, in its directory: by the agent, by its supervisor, and for whom.

| file | written by | says |
|---|---|---|
| `plan` | the agent, before the supervisor starts | everything needed to run it (`Plan`) |
| `lock` | held by the supervisor while it lives | whoever can lock it knows that the supervisor is gone |
| `started` | the supervisor, once the command runs | process numbers, and when |
| `exited` | the supervisor, at the end; the agent, if the supervisor is gone without | how it ended |
| `cpuset` | the agent, when CPUs are changed | a list: those it may run on now, then those it is moved to |
| `root` | | an empty directory the container's file system is built on |

What must stay true: a file is there whole or not at all; `exited` is written at most once, by whoever holds the lock.
Imported by the supervisors, of which there is one a container: nothing heavy here.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Final, TypedDict

PLAN: Final = "plan"
LOCK: Final = "lock"
STARTED: Final = "started"
EXITED: Final = "exited"
CPUSET: Final = "cpuset"
ROOT: Final = "root"


class Plan(TypedDict):
    """How to run one container."""

    id: str
    name: str
    attempt: int
    image: str
    argv: list[str]
    env: dict[str, str]
    working_dir: str
    #: source, target, is read-only, options
    mounts: list[tuple[str, str, bool, list[str]]]
    #: one of rootfs' ways
    way: str
    cpus: list[int]
    #: where its CPUs are set; "": by the affinity of its threads
    cgroup: str
    user: int | None
    group: int | None
    stop_signal: int
    log: str
    termination_log: str
    termination_policy: str


class Started(TypedDict):
    """A command that runs."""

    #: its process
    pid: int
    #: its supervisor, and when that started, so that no other process is taken for it
    shim: int
    shim_ticks: int
    boot: str
    at_ns: int


class Exited(TypedDict):
    """The end of a command, or why it never ran."""

    code: int
    at_ns: int
    #: empty if it ran
    reason: str
    message: str


def write(directory: str, name: str, value: Any) -> None:
    """All of it, or nothing."""
    path = f"{directory}/{name}"
    with open(f"{path}.new", "w") as file:
        json.dump(value, file)
    os.rename(f"{path}.new", path)


def read(directory: str, name: str) -> Any:
    """None if it is not there; a ValueError if it is no such note."""
    try:
        with open(f"{directory}/{name}") as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None


def lock(directory: str) -> int | None:
    """Take the lock: an open file that keeps it until closed. None while another process has it."""
    handle = os.open(f"{directory}/{LOCK}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
