"""The system calls Python has no name for: namespaces, mounts, and what becomes of orphans.

Imported by the supervisors, of which there is one a container: nothing heavy here. Failures are `OSError`, as of `os`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000

MS_RDONLY: Final = 1
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
MNT_DETACH: Final = 2

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_PR_SET_CHILD_SUBREAPER: Final = 36
#: Numbers of pivot_root, which the C library does not offer.
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

_libc: Final = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(handle: int, kind: int) -> None:
    _check(_libc.setns(handle, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    _check(done, target)


def unmount(target: str, flags: int = 0) -> None:
    _check(_libc.umount2(target.encode(), flags), target)


def pivot_root(new: str, old: str) -> None:
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root is not known on {os.uname().machine}")
    _check(_libc.syscall(ctypes.c_long(number), new.encode(), old.encode()), new)


def adopt_orphans() -> None:
    """Processes below this one whose parent dies become its children."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def die_with_parent(signal: int) -> None:
    """Send this process a signal when the thread that made it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def name_process(name: str) -> None:
    """What `ps` and `top` call this process; at most 15 characters."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl")
