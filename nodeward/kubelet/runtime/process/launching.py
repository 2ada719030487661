"""Starting the small programs: supervisors, commands inside containers, and the trial of what the machine allows.

They are started with almost nothing of Python loaded and nothing of the agent's environment. Everything here blocks
for some milliseconds: call it in a thread.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import nodeward
from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.process import rootfs, shim

_ROOT: Final = str(Path(nodeward.__file__).parent.parent)
_START: Final = (
    "import sys, importlib; sys.path.append(sys.argv[1]);"
    "importlib.import_module(sys.argv[2]).main(*sys.argv[3:])"
)
_TRIAL: Final = (
    "import sys; sys.path.append(sys.argv[1]);"
    "from nodeward.kubelet.runtime.process import rootfs;"
    "sys.stdout.write(rootfs.possible_way(sys.argv[2]))"
)
#: Numbers from here on are never one a program is given its files under.
_HIGH: Final = 16


def spawn(program: ModuleType, arguments: Sequence[str], files: Mapping[int, int | str]) -> int:
    """Start one of our programs; `files` are what it has open: its numbers, and ours or a path. Gives its process."""
    return _spawn(_START, (program.__name__, *arguments), files)


def _spawn(code: str, arguments: Sequence[str], files: Mapping[int, int | str]) -> int:
    raised: list[int] = []
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = []
    try:
        for number, source in files.items():
            if isinstance(source, str):
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
                actions.append((os.POSIX_SPAWN_OPEN, number, source, flags, 0o600))
            else:
                # A number that stays as it is would close at exec, and one that is overwritten too early be lost.
                high = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _HIGH)
                raised.append(high)
                actions.append((os.POSIX_SPAWN_DUP2, high, number))
        argv = [sys.executable, "-I", "-S", "-c", code, _ROOT, *arguments]
        return os.posix_spawn(sys.executable, argv, {"PATH": os.defpath}, file_actions=actions)
    except OSError as error:
        raise WorldError(f"cannot start a process: {error}") from error
    finally:
        for handle in raised:
            os.close(handle)


def spawn_shim(directory: str) -> int:
    """Start a container's supervisor; gives the file its first answer can be read from."""
    answer, telling = os.pipe2(os.O_CLOEXEC)
    try:
        pid = spawn(shim, (directory,), {0: os.devnull, 1: telling, 2: f"{directory}/trouble"})
    except WorldError:
        os.close(answer)
        raise
    finally:
        os.close(telling)
    # It leaves as soon as its child, which nobody waits for, is there.
    os.waitpid(pid, 0)
    os.set_blocking(answer, False)
    return answer


def possible_way(directory: str) -> str:
    """How containers can have mounts on this machine: tried out, not guessed."""
    scratch = f"{directory}/trial"
    os.makedirs(scratch, exist_ok=True)
    answer, telling = os.pipe2(os.O_CLOEXEC)
    with open(answer, "rb") as told:
        try:
            pid = _spawn(_TRIAL, (scratch,), {0: os.devnull, 1: telling, 2: os.devnull})
        finally:
            os.close(telling)
        way = told.read().decode()
    os.waitpid(pid, 0)
    return way if way in (rootfs.AS_ROOT, rootfs.AS_USER) else rootfs.NONE
