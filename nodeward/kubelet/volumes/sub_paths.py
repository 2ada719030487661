"""A path below a volume, for `subPath`: whatever links a container has put there, it leads nowhere else.

In go a volume's directory and a path a user wrote; out comes a real path inside the volume, made (as directories) if
it is not there. Every step is opened relative to the one before and never through a link that leads outside.
"""

from __future__ import annotations

import os
from pathlib import Path

from nodeward.base.errors import WorldError


class Escapes(WorldError):
    """The path leads out of its volume, or cannot be made inside it."""


def check_sub_path(sub_path: str) -> None:
    """Refuse what can be refused by looking at it. The texts are those of a container that cannot be configured."""
    if sub_path.startswith("/"):
        raise Escapes(f"error SubPath `{sub_path}` must not be an absolute path")
    if ".." in sub_path.split("/"):
        raise Escapes(f"unable to provision SubPath `{sub_path}`: must not contain '..'")


def resolve_sub_path(volume: Path, sub_path: str, *, make: bool = True) -> Path:
    """Where `sub_path` really is. Links are followed as long as they stay inside the volume."""
    check_sub_path(sub_path)
    root = volume.resolve()
    try:
        found = (root / sub_path).resolve()
        _inside(root, found)
        if make and not found.exists():
            _make(root, found)
            # Somebody may have put a link in the way meanwhile.
            _inside(root, found.resolve())
    except (OSError, RuntimeError) as error:
        raise Escapes(f"cannot use SubPath `{sub_path}`: {error}") from error
    return found


def _inside(root: Path, path: Path) -> None:
    if path != root and root not in path.parents:
        raise Escapes("it leads out of the volume")


def _make(root: Path, wanted: Path) -> None:
    """Directories as accessible as the volume itself, step by step, through no link at all."""
    mode = root.stat().st_mode & 0o7777
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in wanted.relative_to(root).parts:
            try:
                os.mkdir(part, dir_fd=handle)
                os.chmod(part, mode, dir_fd=handle)
            except FileExistsError:
                pass
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
    finally:
        os.close(handle)
