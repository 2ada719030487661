"""The files of allocated and actuated resources: upstream's bytes, on the disk at once, and never trusted blindly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.base.quantity import Quantity
from nodeward.kubelet.checkpoint import CheckpointCorrupt
from nodeward.kubelet.disk import MemoryDisk, RealDisk
from nodeward.kubelet.pod_resource_states import ALLOCATED_FILE, PodResourceState, checksum, decode, encode
from nodeward.kubelet.pods.resource_info import PodResourceInfo


def info(cpu: str, memory: str = "") -> PodResourceInfo:
    amounts = {"cpu": Quantity.parse(cpu)} | ({"memory": Quantity.parse(memory)} if memory else {})
    return PodResourceInfo({"c": ResourceRequirements(requests=amounts, limits=amounts)})


def test_bytes_and_checksum_are_those_of_kubernetes() -> None:
    known = (
        '{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}'
    )
    assert checksum(known.encode()) == 1178570812
    stored = json.loads(encode({"u2": info("2", "1Gi"), "u1": info("500m")}))
    data = (
        '{"entries":{"u1":{"ContainerResources":{"c":{"limits":{"cpu":"500m"},"requests":{"cpu":"500m"}}},'
        '"PodLevelResources":null,"EmptyDirVolumeLimits":null},'
        '"u2":{"ContainerResources":{"c":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"2","memory":"1Gi"}}},'
        '"PodLevelResources":null,"EmptyDirVolumeLimits":null}}}'
    )
    assert stored == {"data": data, "checksum": checksum(data.encode())}


def test_a_file_of_kubernetes_is_read_with_what_is_not_known_here() -> None:
    data = (
        '{"entries":{"u":{"ContainerResources":{"c":{"requests":{"cpu":"1"}}},'
        '"PodLevelResources":{"limits":{"cpu":"3"}},"EmptyDirVolumeLimits":{"v":"1Gi"}}}}'
    )
    found = decode(json.dumps({"data": data, "checksum": checksum(data.encode())}).encode())
    assert str(found["u"].containers["c"].requests["cpu"]) == "1"
    assert found["u"].pod_level is not None
    assert str(found["u"].pod_level.limits["cpu"]) == "3"
    assert decode(json.dumps({"data": "{}", "checksum": checksum(b"{}")}).encode()) == {}


def test_records_are_found_again_and_the_file_goes_with_the_last_of_them(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    state = PodResourceState(disk, ALLOCATED_FILE)
    assert disk.read(ALLOCATED_FILE) is None
    state.set("u1", info("1"))
    state.set("u2", info("2"))
    again = PodResourceState(disk, ALLOCATED_FILE)
    assert (again.get("u1"), again.get("u2"), again.get("u3")) == (info("1"), info("2"), None)
    again.keep_only({"u2"})
    assert PodResourceState(disk, ALLOCATED_FILE).get("u1") is None
    again.remove("u2")
    assert disk.read(ALLOCATED_FILE) is None


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (b"", "not what a checkpoint looks like"),
        (b"{", "not what a checkpoint looks like"),
        (b'{"data":"{}","checksum":1}', "its checksum is"),
        (b'{"data":{},"checksum":1}', "not what a checkpoint looks like"),
        (b'{"data":"[1]","checksum":%d}' % checksum(b"[1]"), "not what a checkpoint looks like"),
        (
            b'{"data":"{\\"entries\\":{\\"u\\":{\\"ContainerResources\\":{\\"c\\":{\\"requests\\":{\\"cpu\\":\\"x\\"}}}}}}","checksum":%d}'
            % checksum(b'{"entries":{"u":{"ContainerResources":{"c":{"requests":{"cpu":"x"}}}}}}'),
            "not what a checkpoint looks like",
        ),
    ],
    ids=["empty", "cut short", "checksum", "data", "list", "quantity"],
)
def test_a_file_that_cannot_be_trusted_is_set_aside_and_named(stored: bytes, why: str) -> None:
    disk = MemoryDisk()
    disk.write(ALLOCATED_FILE, stored)
    with pytest.raises(CheckpointCorrupt, match=why) as raised:
        PodResourceState(disk, ALLOCATED_FILE)
    assert ALLOCATED_FILE in str(raised.value)
    assert disk.read(raised.value.aside) == stored
    assert disk.read(ALLOCATED_FILE) is None


def test_a_full_disk_leaves_what_was_kept_and_a_later_try_writes_it() -> None:
    disk = MemoryDisk()
    state = PodResourceState(disk, ALLOCATED_FILE)
    state.set("u1", info("1"))
    write, kept = disk.write, disk.read(ALLOCATED_FILE)

    def full(path: str, data: bytes) -> None:
        raise OSError("no space left on device")

    disk.write = full  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(OSError, match="no space left"):
            state.set("u1", info("2"))
    assert (state.get("u1"), disk.read(ALLOCATED_FILE)) == (info("1"), kept)
    state.remove("u2")
    disk.write = write  # type: ignore[method-assign]
    state.set("u1", info("2"))
    assert PodResourceState(disk, ALLOCATED_FILE).get("u1") == info("2")
