"""The atomic writer: exactly the payload is visible, one whole payload at every moment, nothing is written twice."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.kubelet.volumes.atomic_writer import BadPath, FileContent, Payload, write_payload

NOW_NS = 1_794_744_068_118_273_645


def visible(target: Path) -> dict[str, FileContent]:
    """What a user sees: everything but the names of the machinery."""
    found = {}
    for name in sorted(os.listdir(target)):
        if name.startswith(".."):
            continue
        top = target / name
        files = [top] if top.is_file() else [each for each in top.rglob("*") if each.is_file()]
        for file in files:
            mode = stat.S_IMODE(file.stat().st_mode)
            found[str(file.relative_to(target))] = FileContent(file.read_bytes(), mode)
    return found


def machinery(target: Path) -> list[str]:
    return sorted(name for name in os.listdir(target) if name.startswith(".."))


contents = st.builds(
    FileContent, data=st.binary(max_size=20), mode=st.sampled_from((0o644, 0o600, 0o444, 0o755))
)
names = st.sampled_from(("a", "b", "c", "a/x", "a/y", "b/x/z", ".hidden", ".not"))


def _has_no_clash(payload: Payload) -> bool:
    """A name cannot be a file and a directory at once."""
    return not any(other.startswith(f"{name}/") for name in payload for other in payload)


payloads = st.dictionaries(names, contents, max_size=5).filter(_has_no_clash)


@settings(deadline=None, max_examples=60)
@given(st.lists(payloads, min_size=1, max_size=6))
def test_after_any_row_of_payloads_exactly_the_last_is_visible(row: list[Payload]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory)
        before: Payload | None = None
        for number, payload in enumerate(row):
            was_written = write_payload(target, payload, NOW_NS + number)
            assert visible(target) == payload
            assert was_written == (before is None or before != payload)
            data, old = machinery(target)[-1], machinery(target)[:-1]
            assert data == "..data"
            assert old == [os.readlink(target / "..data")]
            before = payload


def test_the_layout_is_the_one_programs_rely_on(tmp_path: Path) -> None:
    write_payload(tmp_path, {"colour": FileContent(b"red"), "deep/one": FileContent(b"1")}, NOW_NS)
    assert os.readlink(tmp_path / "..data") == "..2026_11_15_12_01_08.118273645"
    assert os.readlink(tmp_path / "colour") == "..data/colour"
    assert os.readlink(tmp_path / "deep") == "..data/deep"


def test_nothing_is_written_when_nothing_has_changed(tmp_path: Path) -> None:
    payload = {"colour": FileContent(b"red")}
    assert write_payload(tmp_path, payload, NOW_NS)
    link, inode = os.readlink(tmp_path / "..data"), (tmp_path / "colour").stat().st_ino
    assert not write_payload(tmp_path, payload, NOW_NS + 1)
    assert os.readlink(tmp_path / "..data") == link
    assert (tmp_path / "colour").stat().st_ino == inode


def test_readers_see_one_whole_payload_at_every_moment(tmp_path: Path) -> None:
    """Two files that always say the same, read through one look at ..data, while they are swapped all the time."""
    mixed: list[list[bytes]] = []
    reads = [0]
    is_over = threading.Event()

    def payload(number: int) -> Payload:
        text = b"%d" % number
        return {"one": FileContent(text), "two": FileContent(text)}

    def read() -> None:
        while not is_over.is_set():
            try:
                directory = os.open(tmp_path / "..data", os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue  # the directory was taken away after its name was read
            try:
                texts = []
                for name in ("one", "two"):
                    handle = os.open(name, os.O_RDONLY, dir_fd=directory)
                    texts.append(os.read(handle, 100))
                    os.close(handle)
                reads[0] += 1
                if texts[0] != texts[1]:
                    mixed.append(texts)
            except FileNotFoundError:
                # The directory was taken away after it was opened: its reader looks again, as programs do.
                pass
            finally:
                os.close(directory)

    write_payload(tmp_path, payload(0), NOW_NS)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for number in range(1, 150):
        write_payload(tmp_path, payload(number), NOW_NS + number)
    is_over.set()
    for each in readers:
        each.join()
    assert reads[0] > 0
    assert mixed == []


def test_what_was_killed_half_way_is_made_good(tmp_path: Path) -> None:
    write_payload(tmp_path, {"a": FileContent(b"1")}, NOW_NS)
    (tmp_path / "..2026_01_01_00_00_00.1").mkdir()
    (tmp_path / "..data_tmp").symlink_to("..2026_01_01_00_00_00.1")
    (tmp_path / "a").unlink()
    write_payload(tmp_path, {"a": FileContent(b"2")}, NOW_NS + 1)
    assert visible(tmp_path) == {"a": FileContent(b"2")}
    assert len(machinery(tmp_path)) == 2


def test_a_group_may_read_what_only_the_owner_could(tmp_path: Path) -> None:
    write_payload(tmp_path, {"token": FileContent(b"t", 0o600)}, NOW_NS, group=os.getgid())
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", 'invalid path: must not be empty: ""'),
        ("/etc/passwd", "invalid path: must be relative path: /etc/passwd"),
        ("a/../../b", "invalid path: must not contain '..': a/../../b"),
        ("..data", "invalid path: must not start with '..': ..data"),
        ("x" * 256, "invalid path: filenames must be less than or equal to 255 characters"),
        ("x/" * 2100, "invalid path: must be less than or equal to 4096 characters"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused_and_nothing_is_written(
    tmp_path: Path, path: str, why: str
) -> None:
    with pytest.raises(BadPath) as caught:
        write_payload(tmp_path, {"good": FileContent(b""), path: FileContent(b"")}, NOW_NS)
    assert str(caught.value) == why
    assert os.listdir(tmp_path) == []
