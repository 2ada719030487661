"""What a kubelet remembers: whole or refused, on both kinds of disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.kubelet.checkpoint import CheckpointCorrupt, Checkpoints
from nodeward.kubelet.disk import Disk, MemoryDisk, RealDisk

PATH = "checkpoints/pods.json"
VALUE = {"pods": [{"uid": "u1", "cpus": "0-3"}], "version": 1}


@pytest.fixture(params=["memory", "real"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else RealDisk(tmp_path)


def test_what_was_written_is_read_by_the_next_run(disk: Disk) -> None:
    assert Checkpoints(disk).read("pods") is None
    Checkpoints(disk).write("pods", VALUE)
    assert Checkpoints(disk).read("pods") == VALUE
    Checkpoints(disk).remove("pods")
    Checkpoints(disk).remove("pods")
    assert Checkpoints(disk).read("pods") is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b"0-3", b"0-4"),
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"{}",
        lambda data: b"\xff\xfe",
        lambda data: data.replace(b"sha256:", b"sha256:0"),
    ],
)
def test_a_spoiled_checkpoint_is_named_and_kept_aside(disk: Disk, spoil: Any) -> None:
    checkpoints = Checkpoints(disk)
    checkpoints.write("pods", VALUE)
    stored = disk.read(PATH)
    assert stored is not None
    spoiled = spoil(stored)
    disk.write(PATH, spoiled)
    with pytest.raises(CheckpointCorrupt) as caught:
        checkpoints.read("pods")
    aside = f"{PATH}.corrupt"
    assert caught.value.aside == disk.shown(aside)
    assert f"checkpoint {disk.shown(PATH)} is corrupt: " in str(caught.value)
    assert f"kept as {disk.shown(aside)}. " in str(caught.value)
    assert disk.read(aside) == spoiled
    assert disk.read(PATH) is None
    assert "Put a good copy back" in str(caught.value)
    disk.write(PATH, spoiled)
    with pytest.raises(CheckpointCorrupt) as again:
        checkpoints.read("pods")
    assert again.value.aside != caught.value.aside, "the first is not overwritten"


def test_a_kubelet_killed_in_the_middle_of_a_write_leaves_the_former_value(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RealDisk(tmp_path))
    checkpoints.write("pods", VALUE)
    (tmp_path / "checkpoints" / ".pods.json.new").write_bytes(b'{"data":{"pods"')
    assert checkpoints.read("pods") == VALUE
    checkpoints.write("pods", {})
    assert checkpoints.read("pods") == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON.filter(lambda value: value is not None), st.data())
def test_one_changed_byte_is_never_taken_for_another_value(value: Any, data: st.DataObject) -> None:
    disk = MemoryDisk()
    checkpoints = Checkpoints(disk)
    checkpoints.write("x", value)
    stored = bytearray(disk.read("checkpoints/x.json") or b"")
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= 1 << data.draw(st.integers(0, 7))
    disk.write("checkpoints/x.json", bytes(stored))
    try:
        found = checkpoints.read("x")
    except CheckpointCorrupt:
        return
    assert found == value, "only a change that means nothing is let through"
