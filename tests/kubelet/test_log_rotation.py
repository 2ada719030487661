"""Container logs do not grow without end, and nothing that was written just now is lost."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.log_rotation import LogRotation
from nodeward.kubelet.runtime.process.log_lines import LogFile
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual


def files(log: Path) -> list[str]:
    return sorted(each.name for each in log.parent.iterdir())


def text(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_a_log_above_the_size_is_put_aside_and_the_oldest_go(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        rotation = LogRotation(tmp_path, clock, most_bytes=100, most_files=3)
        log = tmp_path / "default_p_1" / "c" / "0.log"
        writer = LogFile(str(log))
        for number in range(6):
            writer.write(b"%d" % number * 101)
            rotation.rotate()
            writer.write(b"after %d" % number)
            await clock.sleep(1)
        found = files(log)
        assert len(found) == 3
        assert found[0] == "0.log"
        assert found[1].endswith(".gz")
        assert not found[2].endswith((".gz", ".tmp"))
        # The newest is whole, the one before it too, though compressed; what came after is in the new file.
        assert log.read_bytes() == b"after 5"
        assert text(log.parent / found[2]) == b"after 4" + b"5" * 101
        assert text(log.parent / found[1]) == b"after 3" + b"4" * 101

    run_virtual(main)


def test_a_small_log_and_other_files_are_left_alone(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        rotation = LogRotation(tmp_path, clock, most_bytes=100, most_files=2)
        log = tmp_path / "default_p_1" / "c" / "0.log"
        LogFile(str(log)).write(b"x" * 100)
        (log.parent / "notes.txt").write_bytes(b"y" * 1000)
        rotation.rotate()
        assert files(log) == ["0.log", "notes.txt"]

    run_virtual(main)


def test_one_log_that_cannot_be_rotated_does_not_keep_others_from_it(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        rotation = LogRotation(tmp_path, clock, most_bytes=10, most_files=2)
        for name in ("a", "b"):
            LogFile(str(tmp_path / "default_p_1" / name / "0.log")).write(b"x" * 20)
        # A directory stands where the first would go.
        digits = re.sub("[^0-9]", "", rfc3339(clock.now_ns()))
        stamp = f"{digits[:8]}-{digits[8:]}"
        (tmp_path / "default_p_1" / "a" / f"0.log.{stamp}" / "in the way").mkdir(parents=True)
        rotation.rotate()
        assert (tmp_path / "default_p_1" / "a" / "0.log").exists()
        assert not (tmp_path / "default_p_1" / "b" / "0.log").exists()

    run_virtual(main)
