"""Output cut into the lines of a container log."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nodeward.kubelet.runtime.process.log_lines import LONGEST, LogFile, Stream

_NOW = 1_794_744_759_212_000_042


def logged(chunks: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Tag and text of every line that chunks of output become."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "deep" / "log"
        file = LogFile(str(path))
        stream = Stream("stdout", file)
        for chunk in chunks:
            stream.feed(chunk, _NOW)
        stream.end(_NOW)
        file.close()
        lines = []
        for line in path.read_bytes().split(b"\n")[:-1]:
            moment, name, tag, text = line.split(b" ", 3)
            assert (moment, name) == (b"2026-11-15T12:12:39.212000042Z", b"stdout")
            lines.append((tag, text))
        return lines


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.integers(0, 3 * LONGEST).map(lambda n: b"x" * n)), max_size=6
    )
)
def test_joined_again_the_parts_are_what_was_written(chunks: list[bytes]) -> None:
    joined = b"".join(text + (b"\n" if tag == b"F" else b"") for tag, text in logged(chunks))
    assert joined == b"".join(chunks)


@given(st.lists(st.binary(max_size=2 * LONGEST), max_size=4))
def test_no_part_is_too_long(chunks: list[bytes]) -> None:
    assert all(len(text) <= LONGEST for _, text in logged(chunks))


def test_a_line_that_just_fits_is_whole() -> None:
    assert logged([b"x" * LONGEST + b"\n"]) == [(b"F", b"x" * LONGEST)]
    assert [tag for tag, _ in logged([b"x" * (LONGEST + 1) + b"\n"])] == [b"P", b"F"]


def test_a_line_that_comes_in_parts_is_one_line() -> None:
    assert logged([b"on", b"e\ntw", b"o\n"]) == [(b"F", b"one"), (b"F", b"two")]


def test_a_log_whose_place_is_gone_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "log"
    file = LogFile(str(path))
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file where the directory was")
    file.write(b"lost\n")
    path.parent.unlink()
    file.write(b"kept\n")
    file.close()
    assert path.read_bytes() == b"kept\n"
