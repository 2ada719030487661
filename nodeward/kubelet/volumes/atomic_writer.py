"""Files of a volume, swapped all at once: whoever reads sees the old payload whole or the new one, never a mixture.

The layout is upstream's, and programs rely on it: the files lie in a directory with a time in its name, the link
`..data` points to it, and what users see are links through `..data`:

    ..2026_11_15_12_01_08.118273645/colour
    ..data -> ..2026_11_15_12_01_08.118273645
    colour -> ..data/colour

One rename of `..data` is the whole change. What must stay true: a payload that is there already is not written again;
what was killed half way is made good by the next write; nothing outside the target is ever touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError

DATA: Final = "..data"
_NEW_DATA: Final = "..data_tmp"
_MAX_PATH: Final = 4096
_MAX_NAME: Final = 255


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file: its bytes, its mode, and whose it is (None: whoever writes it)."""

    data: bytes
    mode: int = 0o644
    user: int | None = None


#: Files by their path below the target.
Payload: TypeAlias = Mapping[str, FileContent]


class BadPath(WorldError):
    """A path that must not be written."""


def write_payload(target: Path, payload: Payload, now_ns: int, *, group: int | None = None) -> bool:
    """Make the target hold exactly the payload; whether anything had to be written.

    `group` is the group all files are given (a pod's fsGroup), which may then read them.
    """
    clean = {_checked(path): content for path, content in payload.items()}
    current = _current(target)
    is_same = current is not None and _holds(target / current, clean, group)
    old_names = _visible_names(target)
    if not is_same:
        fresh = _fresh_directory(target, now_ns)
        try:
            _fill(fresh, clean, group)
            link = target / _NEW_DATA
            link.unlink(missing_ok=True)
            link.symlink_to(fresh.name)
            link.replace(target / DATA)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    names = sorted({path.partition("/")[0] for path in clean})
    for name in names:
        _link(target / name, f"{DATA}/{name}")
    for name in sorted(old_names - set(names)):
        (target / name).unlink(missing_ok=True)
    _sweep(target)
    return not is_same


def read_payload(target: Path) -> Payload | None:
    """The files the target holds now; None before the first write."""
    current = _current(target)
    if current is None:
        return None
    found: dict[str, FileContent] = {}
    for where, _, names in os.walk(target / current):
        for name in names:
            file = Path(where) / name
            status = file.lstat()
            content = FileContent(file.read_bytes(), stat.S_IMODE(status.st_mode), status.st_uid)
            found[str(file.relative_to(target / current))] = content
    return found


def _checked(path: str) -> str:
    """The path in its plain form, if it stays inside the target and cannot be taken for ours."""
    if not path:
        raise BadPath(f'invalid path: must not be empty: "{path}"')
    if path.startswith("/"):
        raise BadPath(f"invalid path: must be relative path: {path}")
    if len(path) > _MAX_PATH:
        raise BadPath(f"invalid path: must be less than or equal to {_MAX_PATH} characters")
    parts = path.split("/")
    if ".." in parts:
        raise BadPath(f"invalid path: must not contain '..': {path}")
    if any(len(os.fsencode(part)) > _MAX_NAME for part in parts):
        raise BadPath(f"invalid path: filenames must be less than or equal to {_MAX_NAME} characters")
    plain = os.path.normpath(path)
    if plain.startswith("..") or "\0" in plain or plain == ".":
        raise BadPath(f"invalid path: must not start with '..': {path}")
    return plain


def _current(target: Path) -> str | None:
    """The directory `..data` points to; None if there is none, or it is not one of ours."""
    try:
        name = os.readlink(target / DATA)
    except OSError:
        return None
    is_ours = name.startswith("..") and "/" not in name and name not in ("..", DATA, _NEW_DATA)
    return name if is_ours else None


def _visible_names(target: Path) -> set[str]:
    """The links users see now."""
    found = set()
    for each in target.iterdir():
        if each.is_symlink() and os.readlink(each) == f"{DATA}/{each.name}":
            found.add(each.name)
    return found


def _holds(directory: Path, payload: Payload, group: int | None) -> bool:
    """Whether the directory has these files, with these modes and owners, and no other."""
    found = set()
    for where, _, names in os.walk(directory):
        for name in names:
            found.add(os.path.relpath(os.path.join(where, name), directory))
    if found != set(payload):
        return False
    for path, content in payload.items():
        file = directory / path
        try:
            status = file.lstat()
            is_same = (
                stat.S_ISREG(status.st_mode)
                and stat.S_IMODE(status.st_mode) == _mode(content, group)
                and (content.user is None or status.st_uid == content.user or not _may_give_away())
                and file.read_bytes() == content.data
            )
        except OSError:
            return False
        if not is_same:
            return False
    return True


def _mode(content: FileContent, group: int | None) -> int:
    return content.mode | 0o040 if group is not None else content.mode


def _may_give_away() -> bool:
    """Only root may: without it, files belong to whoever runs the node."""
    return os.geteuid() == 0


def _fresh_directory(target: Path, now_ns: int) -> Path:
    moment = datetime.fromtimestamp(now_ns // SECOND_NS, UTC)
    number = now_ns % SECOND_NS
    while True:
        directory = target / f"..{moment:%Y_%m_%d_%H_%M_%S}.{number}"
        try:
            directory.mkdir()
        except FileExistsError:
            number += 1
            continue
        directory.chmod(0o755)
        return directory


def _fill(directory: Path, payload: Payload, group: int | None) -> None:
    for path, content in payload.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        file.write_bytes(content.data)
        if _may_give_away() and (content.user is not None or group is not None):
            os.chown(file, -1 if content.user is None else content.user, -1 if group is None else group)
        # After the owner: giving a file away takes bits of its mode.
        file.chmod(_mode(content, group))


def _link(link: Path, to: str) -> None:
    with contextlib.suppress(OSError):
        if os.readlink(link) == to:
            return
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(to)


def _sweep(target: Path) -> None:
    """Directories of former payloads, and of writes that never ended."""
    current = _current(target)
    for each in target.iterdir():
        is_old = each.name.startswith("..") and each.name not in (DATA, current)
        if is_old and each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
