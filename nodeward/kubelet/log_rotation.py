"""Rotation of container logs: a log that has grown too large is put aside, and of those the oldest go.

As kubelets do it (`containerLogMaxSize`, `containerLogMaxFiles`): every ten seconds a log above the size is renamed to
`0.log.<date>-<time>`; whoever writes it opens a new one. Of the renamed all but the newest are compressed, and so many
are kept that there are no more files than allowed, the current one included.

What must stay true: what a container writes is in one of the files; a file is compressed whole or not at all; a log
that cannot be rotated is left as it is and costs no other its turn.

Run by `cluster.real_node` for containers that are processes of this machine, whose supervisors notice the rename.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Final

from nodeward.base.timestamp import rfc3339
from nodeward.machinery.clock import Clock

LOG: Final = logging.getLogger(__name__)

#: Logs are looked at this often, as kubelets do.
LOOK_SECONDS: Final = 10.0
_CURRENT: Final = "*/*/*.log"
_ROTATED: Final = re.compile(r"\.\d{8}-\d{6}(\.gz)?")


class LogRotation:
    """Rotates the container logs below one directory."""

    def __init__(self, root: Path, clock: Clock, *, most_bytes: int, most_files: int) -> None:
        self._root = root
        self._clock = clock
        self._most_bytes = most_bytes
        self._most_files = max(most_files, 2)

    async def run(self) -> None:
        """Rotate for as long as the node runs."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await asyncio.to_thread(self.rotate)

    def rotate(self) -> None:
        """Look at every log once."""
        for log in self._root.glob(_CURRENT):
            try:
                if log.stat().st_size > self._most_bytes:
                    self._put_aside(log)
            except OSError as error:
                LOG.warning("the log %s cannot be rotated: %s", log, error.strerror or error)

    def _put_aside(self, log: Path) -> None:
        digits = re.sub(r"[^0-9]", "", rfc3339(self._clock.now_ns()))
        log.rename(f"{log}.{digits[:8]}-{digits[8:14]}")
        rotated = sorted(
            each
            for each in log.parent.glob(f"{log.name}.*")
            if _ROTATED.fullmatch(each.name[len(log.name) :])
        )
        kept = rotated[-(self._most_files - 1) :]
        for old in rotated[: -len(kept)]:
            old.unlink(missing_ok=True)
        for each in kept[:-1]:
            if each.suffix != ".gz":
                _compress(each)


def _compress(log: Path) -> None:
    """Replace a file by its compressed form."""
    part = log.with_name(f"{log.name}.tmp")
    try:
        with (
            log.open("rb") as source,
            part.open("wb") as sink,
            gzip.GzipFile("", "wb", 6, sink, mtime=0) as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(part, f"{log}.gz")
    except OSError:
        part.unlink(missing_ok=True)
        raise
    log.unlink()
