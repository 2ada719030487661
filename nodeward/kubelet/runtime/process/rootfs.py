"""A file system of a container's own: the node's, with the container's mounts in it.

The container keeps seeing the node's directories. A mount whose target is not there needs a place, and none may be
made on the node: the nearest directory that exists is covered by an empty one in memory, into which everything it
held is mounted again, so that new names can be made beside. Names made in such a directory are the container's own
and vanish with it. Of /dev only the usual devices are kept when it is covered.

What must stay true: nothing on the node changes. Called by a process that is about to become a container, with one
thread; failures are `OSError`. Nothing heavy is imported: there is one supervisor a container.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Final

from nodeward.kubelet.runtime.process.kernel import (
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MNT_DETACH,
    MS_BIND,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    pivot_root,
    unmount,
    unshare,
)

#: How a container gets mounts of its own: not at all, as root, or as root of a user namespace.
NONE: Final = "none"
AS_ROOT: Final = "root"
AS_USER: Final = "user"

_USUAL_DEVICES: Final = (
    *("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "shm", "mqueue"),
    *("fd", "stdin", "stdout", "stderr", "fuse", "kvm", "net"),
)
#: A directory with more names than this is no place to put a mount into.
_MOST_NAMES: Final = 4096
#: The options a volume mount may have, as flags of mount(2).
_OPTIONS: Final = {"nosuid": 2, "nodev": 4, "noexec": 8}
#: What a statvfs answer says of a mount and a remount must repeat: read-only, nosuid, nodev, noexec, and the atimes.
_KEPT_FLAGS: Final = 1 | 2 | 4 | 8 | 1024 | 2048
_ST_RELATIME: Final = 4096
_MS_RELATIME: Final = 1 << 21

#: While it is built: the node's tree, the container's, and one to put things aside.
_OLD: Final = "/old"
_NEW: Final = "/new"
_SPARE: Final = "/spare"


def own_mounts(way: str) -> None:
    """From now on this process has mounts of its own, which it may change."""
    if way == AS_USER:
        user, group = os.getuid(), os.getgid()
        unshare(CLONE_NEWUSER | CLONE_NEWNS)
        # The same numbers inside as outside; supplementary groups cannot be kept without privileges.
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    else:
        unshare(CLONE_NEWNS)
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def possible_way(scratch: str) -> str:
    """How containers can have mounts on this machine. Leaves the process that asks in a state fit only to end."""
    for way in (AS_ROOT, AS_USER):
        try:
            own_mounts(way)
            build(scratch, [(scratch, "/nodeward-trial/a", True, [*_OPTIONS])])
        except OSError:
            continue
        return way
    return NONE


def build(scratch: str, mounts: Sequence[tuple[str, str, bool, Sequence[str]]]) -> None:
    """Make the container's view of the node and enter it. `scratch` is an empty directory to build it on.

    `mounts` are (source, target, is read-only, options).
    """
    mount("tmpfs", scratch, "tmpfs", 0, "mode=755")
    for name in (_OLD, _NEW, _SPARE):
        os.mkdir(scratch + name)
    # Out of the node's tree first, or what is built would appear inside itself.
    pivot_root(scratch, scratch + _OLD)
    os.chdir("/")
    root = _Root()
    # What lies inside another comes after it.
    for source, target, is_read_only, options in sorted(
        mounts, key=lambda each: each[1].rstrip("/").count("/")
    ):
        root.add(_OLD + source, target, is_read_only, options)
    os.chdir(_NEW)
    pivot_root(".", ".")
    unmount(".", MNT_DETACH)
    os.chdir("/")


class _Root:
    """A new root, made of the old one."""

    def __init__(self) -> None:
        #: devices of the directories in memory
        self._ours: list[int] = []
        self._fill(_OLD, _NEW)

    def add(self, source: str, target: str, is_read_only: bool, options: Sequence[str]) -> None:
        # As the container will see it: links on the way are followed inside, not out on the node.
        inside = _NEW + self._resolved(os.path.normpath("/" + target))
        is_directory = os.path.isdir(source)
        self._make_room(inside, is_directory)
        mount(source, inside, "", MS_BIND | MS_REC)
        flags = MS_RDONLY if is_read_only else 0
        for option in options:
            flags |= _OPTIONS[option]
        if flags:
            mount("none", inside, "", MS_BIND | MS_REMOUNT | flags | _flags(inside))

    def _resolved(self, target: str, depth: int = 0) -> str:
        done = ""
        parts = [part for part in target.split("/") if part]
        for index, part in enumerate(parts):
            step = f"{done}/{part}"
            if os.path.islink(_NEW + step):
                if depth > 40:
                    raise OSError(40, "too many symbolic links", target)
                link = os.readlink(_NEW + step)
                rest = "/".join(parts[index + 1 :])
                return self._resolved(os.path.normpath(os.path.join(done or "/", link, rest)), depth + 1)
            done = step
        return done or "/"

    def _make_room(self, inside: str, is_directory: bool) -> None:
        if os.path.lexists(inside):
            if os.path.isdir(inside) != is_directory:
                kind = "a directory" if is_directory else "a file"
                raise OSError(20, f"cannot mount {kind} there", inside[len(_NEW) :])
            return
        parent = os.path.dirname(inside)
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        if os.stat(parent).st_dev not in self._ours:
            # Once covered, what it holds can be reached only from another place.
            mount(parent, _SPARE, "", MS_BIND | MS_REC)
            self._fill(_SPARE, parent)
            unmount(_SPARE, MNT_DETACH)
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        _make(inside, is_directory)

    def _fill(self, old: str, new: str) -> None:
        """Put an empty directory in memory over `new`, and all that `old` held into it."""
        names = os.listdir(old)
        if len(names) > _MOST_NAMES:
            raise OSError(7, "too many names beside a new mount", new[len(_NEW) :])
        if new == f"{_NEW}/dev":
            names = [name for name in names if name in _USUAL_DEVICES]
        mount("tmpfs", new, "tmpfs", 0, f"mode={stat.S_IMODE(os.stat(old).st_mode):o},size=64m")
        self._ours.append(os.stat(new).st_dev)
        for name in names:
            self._carry_over(f"{old}/{name}", f"{new}/{name}")

    def _carry_over(self, source: str, target: str) -> None:
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
            return
        try:
            _make(target, os.path.isdir(source))
            mount(source, target, "", MS_BIND | MS_REC)
        except OSError:
            # Somebody else's, or gone meanwhile: the container does without.
            _unmake(target)


def _make(path: str, is_directory: bool) -> None:
    if is_directory:
        os.mkdir(path, 0o755)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def _unmake(path: str) -> None:
    try:
        os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
    except OSError:
        return


def _flags(path: str) -> int:
    """What a remount in a user namespace may not take away."""
    flags = os.statvfs(path).f_flag
    return flags & _KEPT_FLAGS | (_MS_RELATIME if flags & _ST_RELATIME else 0)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
