"""The agent's own files: checkpoints and volumes' books, behind one protocol, on a real disk or in memory.

Paths are relative, with "/" between parts. What must stay true: a file is written whole or not at all, and is on the
disk when `write` returns; what cannot be read is never overwritten silently but set aside (`set_aside`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

#: What a file that was set aside is called.
ASIDE: Final = ".corrupt"


class Disk(Protocol):
    """Where one agent keeps what must outlive it."""

    def read(self, path: str) -> bytes | None: ...

    def write(self, path: str, data: bytes) -> None: ...

    def remove(self, path: str) -> None:
        """No error if there is none."""
        ...

    def names(self, directory: str) -> Sequence[str]:
        """The files in a directory, sorted; none if it is not there."""
        ...

    def set_aside(self, path: str) -> str:
        """Keep the bytes under another name, and say which."""
        ...

    def shown(self, path: str) -> str:
        """What people call the file."""
        ...


class MemoryDisk:
    """A disk for simulated nodes and tests: outlives the agent, not the process."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def write(self, path: str, data: bytes) -> None:
        self._files[path] = data

    def remove(self, path: str) -> None:
        self._files.pop(path, None)

    def names(self, directory: str) -> Sequence[str]:
        prefix = f"{directory}/" if directory else ""
        inside = (path[len(prefix) :] for path in self._files if path.startswith(prefix))
        return sorted(name for name in inside if "/" not in name)

    def below(self, directory: str) -> dict[str, bytes]:
        """All files below a directory, at any depth, by their path relative to it."""
        prefix = f"{directory}/"
        return {path[len(prefix) :]: data for path, data in self._files.items() if path.startswith(prefix)}

    def remove_below(self, directory: str) -> None:
        prefix = f"{directory}/"
        for path in [path for path in self._files if path.startswith(prefix)]:
            del self._files[path]

    def set_aside(self, path: str) -> str:
        other = _free_name(path, lambda name: name in self._files)
        self._files[other] = self._files.pop(path)
        return other

    def shown(self, path: str) -> str:
        return path


class RealDisk:
    """Files under one directory, which is made for the owner only."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root

    def read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: str, data: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = target.with_name(f".{target.name}.new")
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
        _sync_directory(target.parent)

    def remove(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    def names(self, directory: str) -> Sequence[str]:
        where = self.root / directory
        if not where.is_dir():
            return ()
        return sorted(
            each.name for each in where.iterdir() if each.is_file() and not each.name.startswith(".")
        )

    def set_aside(self, path: str) -> str:
        other = _free_name(path, lambda name: (self.root / name).exists())
        (self.root / path).replace(self.root / other)
        return other

    def shown(self, path: str) -> str:
        return str((self.root / path).absolute())


def _free_name(path: str, is_taken: Callable[[str], bool]) -> str:
    number = 0
    other = f"{path}{ASIDE}"
    while is_taken(other):
        number += 1
        other = f"{path}{ASIDE}.{number}"
    return other


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
