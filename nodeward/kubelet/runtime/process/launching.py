"""Starting the small programs: supervisors, commands inside containers, and the trial of what the machine allows.

They are started with almost nothing of Python loaded and nothing of the agent's environment. Everything here blocks
for some milliseconds: call it in a thread.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final

import nodeward
from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.process import nursery, rootfs

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


class Nursery:
    """The agent's side of the process that makes supervisors; started when first needed, and again if it is lost."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._pid = 0

    def spawn_shim(self, directory: str) -> int:
        """Start a container's supervisor; gives the file its first answer can be read from."""
        answer, telling = os.pipe2(os.O_CLOEXEC)
        try:
            with self._lock:
                self._send(directory.encode(), telling)
        except (OSError, WorldError) as error:
            os.close(answer)
            raise WorldError(f"cannot start a supervisor: {error}") from error
        finally:
            os.close(telling)
        os.set_blocking(answer, False)
        return answer

    def _send(self, message: bytes, file: int) -> None:
        if self._socket is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self._socket, [message], [file])
                return
            self._close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._pid = spawn(nursery, (), {0: theirs.fileno(), 1: os.devnull, 2: os.devnull})
        socket.send_fds(ours, [message], [file])

    def close(self) -> None:
        """It ends; the supervisors do not."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pid:
            os.waitpid(self._pid, 0)
            self._pid = 0


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
