"""The checkpoint of prepared claims: Kubernetes' bytes, readable by older and newer kubelets, never taken for empty."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from nodeward.kubelet.checkpoint import CheckpointCorrupt
from nodeward.kubelet.disk import MemoryDisk, RealDisk
from nodeward.kubelet.dra.claim_checkpoint import DRA_STATE_FILE, ClaimCheckpoint, decode, encode
from nodeward.kubelet.dra.claim_info import ClaimCache, ClaimInfo, DriverState, PreparedDevice

DRIVER = "test-driver.cdi.k8s.io"
POD = "139cdb46-f989-4f17-9561-ca10cfb509a6"


def claim(name: str = "example", *, skipped: tuple[str, ...] = (), share_id: str | None = None) -> ClaimInfo:
    device = PreparedDevice(
        "worker-1", "dev-1", share_id, ("test request",), ("example.com/example=cdi-example",)
    )
    return ClaimInfo(
        "default",
        name,
        "067798be-454e-4be4-9047-1aa06aea63f7",
        {DRIVER: DriverState((device,), skipped)},
        {POD: None},
    )


@pytest.mark.parametrize(
    ("claims", "checksum"),
    [
        pytest.param([], 4010664294, id="none"),
        pytest.param([claim()], 2570581864, id="one"),
        pytest.param([claim(share_id="aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")], 736302156, id="a share"),
    ],
)
def test_checksums_are_those_of_kubernetes(claims: list[ClaimInfo], checksum: int) -> None:
    assert json.loads(encode(claims))["Checksum"] == checksum


@pytest.mark.parametrize("skipped", [(), ("*",), ("NodeUnprepareResources",)])
def test_what_was_written_is_read(skipped: tuple[str, ...]) -> None:
    claims = [claim(skipped=skipped), claim("other")]
    assert decode(encode(claims)) == claims


def test_no_devices_and_no_skipping_are_written_as_kubernetes_writes_them() -> None:
    info = ClaimInfo.of("default", "c", "u", {DRIVER: (), "b.example.com": ("*",)})
    tree = json.loads(json.loads(encode([info]))["Data"])
    assert tree["ClaimInfoStateList"][0]["DriverState"] == {
        "b.example.com": {"Devices": None, "skipNodeOperations": ["*"]},
        DRIVER: {"Devices": None},
    }


def test_an_older_kubelet_reads_a_newer_file_and_takes_nothing_to_be_skipped() -> None:
    [read] = decode(encode([claim(skipped=("*",))]), knows_skipping=False)
    assert read == claim()


def test_unknown_fields_and_other_versions_are_read() -> None:
    tree = json.loads(json.loads(encode([claim()]))["Data"])
    tree |= {"apiVersion": "checkpoint.dra.kubelet.k8s.io/v2", "Later": 1}
    tree["ClaimInfoStateList"][0]["Later"] = {}
    data = json.dumps(tree)
    assert decode(json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())}).encode()) == [claim()]


@pytest.mark.parametrize(
    "bytes_",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no fields"),
        pytest.param(encode([claim()])[:-20], id="cut short"),
        pytest.param(encode([claim()]).replace(b"dev-1", b"dev-2"), id="changed"),
        pytest.param(b'{"Data":"[]","Checksum":%d}' % zlib.crc32(b"[]"), id="another shape"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_a_corrupt_file_is_kept_aside_and_named(bytes_: bytes, tmp_path: Path) -> None:
    for disk in (MemoryDisk(), RealDisk(tmp_path)):
        disk.write(DRA_STATE_FILE, bytes_)
        with pytest.raises(CheckpointCorrupt, match=r"dra_manager_state.* is corrupt: .*kept as") as caught:
            ClaimCheckpoint(disk).read()
        assert disk.read(f"{DRA_STATE_FILE}.corrupt") == bytes_
        assert "dra_manager_state.corrupt" in str(caught.value)


def test_without_a_file_there_are_no_claims() -> None:
    assert ClaimCheckpoint(MemoryDisk()).read() == []


def test_a_container_gets_the_devices_of_its_request() -> None:
    devices = (
        PreparedDevice("p", "d1", None, ("a",), ("x=1",)),
        PreparedDevice("p", "d2", None, ("b/large",), ("x=2",)),
        PreparedDevice("p", "d3", None, (), ("x=3", "x=4")),
    )
    info = ClaimInfo("default", "c", "u", {DRIVER: DriverState(devices)})
    assert [*info.cdi_ids("")] == ["x=1", "x=2", "x=3", "x=4"]
    assert [*info.cdi_ids("a")] == ["x=1", "x=3", "x=4"]
    assert [*info.cdi_ids("b")] == ["x=2", "x=3", "x=4"]


def test_the_cache_counts_claims_by_driver_and_finds_those_of_a_pod() -> None:
    cache = ClaimCache([claim(), claim("other")])
    assert cache.in_use() == {DRIVER: 2}
    assert [each.name for each in cache.of_pod(POD)] == ["example", "other"]
    cache.remove(claim("other"))
    assert [each.name for each in cache] == ["example"]
    assert cache.pods() == {POD}
