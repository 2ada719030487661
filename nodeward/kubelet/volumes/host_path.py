"""Paths of the node itself, as volumes: what must be there, and what is made when it is not.

The types and the texts of what is wrong are upstream's.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from nodeward.base.errors import WorldError

_KINDS: Final[Mapping[str, Callable[[int], bool]]] = {
    "Directory": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}
_WORDS: Final = {
    "Directory": "directory",
    "File": "file",
    "Socket": "socket file",
    "CharDevice": "character device",
    "BlockDevice": "block device",
}


def host_path(path: str, kind: str | None) -> Path:
    """The path, after its type was checked."""
    if ".." in path.split("/"):
        raise WorldError(f"invalid HostPath `{path}`: must not contain '..'")
    where = Path(path)
    try:
        if kind == "DirectoryOrCreate":
            if not where.exists():
                where.mkdir(parents=True, exist_ok=True, mode=0o755)
            kind = "Directory"
        elif kind == "FileOrCreate":
            if not where.exists():
                where.touch(mode=0o644)
            kind = "File"
    except OSError as error:
        raise WorldError(f"cannot make hostPath {path}: {error.strerror or error}") from error
    if kind:
        _check(where, kind)
    return where


def _check(where: Path, kind: str) -> None:
    is_right = _KINDS.get(kind)
    if is_right is None:
        raise WorldError(f"{kind} is an invalid volume type")
    try:
        mode = where.stat().st_mode
    except OSError as error:
        why = f'path "{where}" does not exist' if isinstance(error, FileNotFoundError) else str(error)
        raise WorldError(
            f"hostPath type check failed, {where} is not a {_WORDS[kind]}, unable to determine its type: {why}"
        ) from None
    if not is_right(mode):
        found = next((name for name, matches in _KINDS.items() if matches(mode)), "thing nobody knows")
        raise WorldError(f"hostPath type check failed: {where} is not a {_WORDS[kind]}, it's a {found}")
