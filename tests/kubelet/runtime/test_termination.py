"""Last words of containers."""

from __future__ import annotations

import os
from pathlib import Path

from nodeward.kubelet.runtime.termination import (
    MOST_FROM_FILE,
    MOST_FROM_LOG,
    MOST_LINES,
    termination_message,
)

FALLBACK = "FallbackToLogsOnError"
_HEAD = "2026-11-15T12:00:00.000000001Z stdout"


def test_the_file_is_cut_at_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(b"x" * (MOST_FROM_FILE + 1))
    assert termination_message(str(file), "", "File", 1) == "x" * MOST_FROM_FILE


def test_bytes_that_are_no_text_are_shown_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_bytes(b"a\xffb")
    assert termination_message(str(file), "", "File", 0) == "a\ufffdb"


def test_nothing_but_a_file_is_read(tmp_path: Path) -> None:
    """A container may leave what it likes there: a link out of its file system, a pipe nobody writes to."""
    secret = tmp_path / "secret"
    secret.write_text("of the node")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    for name in ("link", "pipe", "directory", "nothing"):
        assert termination_message(str(tmp_path / name), "", "File", 1) == ""


def test_the_log_counts_only_on_failure_and_only_if_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{_HEAD} P half \n{_HEAD} F a line\n{_HEAD} F last\n")
    assert termination_message("", str(log), FALLBACK, 1) == "half a line\nlast\n"
    assert termination_message("", str(log), FALLBACK, 0) == ""
    assert termination_message("", str(log), "File", 1) == ""


def test_the_file_counts_more_than_the_log(tmp_path: Path) -> None:
    log, file = tmp_path / "log", tmp_path / "message"
    log.write_text(f"{_HEAD} F from the log\n")
    file.write_text("from the file")
    assert termination_message(str(file), str(log), FALLBACK, 1) == "from the file"


def test_only_the_end_of_a_long_log_is_taken(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{_HEAD} F {number}\n" for number in range(10_000)))
    lines = termination_message("", str(log), FALLBACK, 1).splitlines()
    assert lines == [str(number) for number in range(10_000 - MOST_LINES, 10_000)]
    log.write_text("".join(f"{_HEAD} F {'x' * 1000}\n" for _ in range(10)))
    assert len(termination_message("", str(log), FALLBACK, 1)) == MOST_FROM_LOG
