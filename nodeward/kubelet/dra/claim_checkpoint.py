"""The checkpoint file `dra_manager_state`: which claims are prepared on a node, in Kubernetes' format.

The DRA manager reads it when a kubelet starts and writes it before it calls a driver and after. Reading and writing is
in upstream's bytes and checksums, so that a node can move between the two kubelets. A kubelet that is older than
`skipNodeOperations` reads a file that has it and takes nothing to be skipped, and the other way round (KEP-5945).

What must stay true: a claim is on the disk when `write` returns; a file that cannot be trusted is set aside and stops
the kubelet's start (`CheckpointCorrupt`), because what is prepared would never be unprepared.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from nodeward.base.go_json import go_json
from nodeward.kubelet.checkpoint import CheckpointCorrupt
from nodeward.kubelet.disk import Disk
from nodeward.kubelet.dra.claim_info import ClaimInfo, DriverState, PreparedDevice

DRA_STATE_FILE: Final = "dra_manager_state"
_HEAD: Final = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":'


class ClaimCheckpoint:
    """The file of one node. `knows_skipping`: whether this kubelet has heard of skipNodeOperations."""

    __slots__ = ("_disk", "_knows_skipping")

    def __init__(self, disk: Disk, *, knows_skipping: bool = True) -> None:
        self._disk = disk
        self._knows_skipping = knows_skipping

    def read(self) -> list[ClaimInfo]:
        """Return the claims in the file; none if there is no file. Raises `CheckpointCorrupt`."""
        stored = self._disk.read(DRA_STATE_FILE)
        if stored is None:
            return []
        try:
            return decode(stored, knows_skipping=self._knows_skipping)
        except ValueError as error:
            shown = self._disk.shown(DRA_STATE_FILE)
            aside = self._disk.shown(self._disk.set_aside(DRA_STATE_FILE))
            raise CheckpointCorrupt(shown, aside, str(error)) from None

    def write(self, claims: Iterable[ClaimInfo]) -> None:
        """Keep these claims and no others."""
        self._disk.write(DRA_STATE_FILE, encode(claims))


def encode(claims: Iterable[ClaimInfo]) -> bytes:
    """Return the bytes of a file."""
    texts = ",".join([each.text or _text(each) for each in claims])
    data = f"{_HEAD}[{texts}]}}" if texts else f"{_HEAD}null}}"
    # The text holds nothing that Go would write in another way.
    return b'{"Data":%b,"Checksum":%d}' % (msgspec.json.encode(data), zlib.crc32(data.encode()))


def decode(stored: bytes, *, knows_skipping: bool = True) -> list[ClaimInfo]:
    """Return what the bytes of a file say; a ValueError says why they cannot be trusted."""
    try:
        file = msgspec.json.decode(stored, type=_File)
        data = file.data.encode()
        found = zlib.crc32(data)
        if found != file.checksum:
            raise ValueError(f"checkpoint is corrupted: its checksum is {found}, and it says {file.checksum}")
        return [_claim(each, knows_skipping) for each in msgspec.json.decode(data, type=_Data).claims or ()]
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
        raise ValueError(f"not what a checkpoint looks like ({error})") from None


def _text(info: ClaimInfo) -> str:
    """Write a claim down, and keep the text with the claim until it changes."""
    info.text = go_json(_claim_tree(info)).decode()
    return info.text


def _claim_tree(info: ClaimInfo) -> dict[str, Any]:
    return {
        "ClaimUID": info.uid,
        "ClaimName": info.name,
        "Namespace": info.namespace,
        "PodUIDs": {uid: {} for uid in sorted(info.pods)},
        "DriverState": {driver: _driver_tree(info.drivers[driver]) for driver in sorted(info.drivers)},
    }


def _driver_tree(state: DriverState) -> dict[str, Any]:
    tree: dict[str, Any] = {"Devices": [_device_tree(each) for each in state.devices] or None}
    if state.skipped:
        tree["skipNodeOperations"] = list(state.skipped)
    return tree


def _device_tree(device: PreparedDevice) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "ShareID": device.share_id,
        "RequestNames": list(device.requests) or None,
        "CDIDeviceIDs": list(device.cdi_ids) or None,
    }


class _File(msgspec.Struct):
    data: str = msgspec.field(name="Data")
    checksum: int = msgspec.field(name="Checksum")


class _Device(msgspec.Struct):
    pool: str = msgspec.field(name="PoolName", default="")
    device: str = msgspec.field(name="DeviceName", default="")
    share_id: str | None = msgspec.field(name="ShareID", default=None)
    requests: tuple[str, ...] | None = msgspec.field(name="RequestNames", default=None)
    cdi_ids: tuple[str, ...] | None = msgspec.field(name="CDIDeviceIDs", default=None)


class _Driver(msgspec.Struct):
    devices: tuple[_Device, ...] | None = msgspec.field(name="Devices", default=None)
    skipped: tuple[str, ...] | None = msgspec.field(name="skipNodeOperations", default=None)


class _Claim(msgspec.Struct):
    uid: str = msgspec.field(name="ClaimUID", default="")
    name: str = msgspec.field(name="ClaimName", default="")
    namespace: str = msgspec.field(name="Namespace", default="")
    pods: dict[str, Any] | None = msgspec.field(name="PodUIDs", default=None)
    drivers: dict[str, _Driver] | None = msgspec.field(name="DriverState", default=None)


class _Data(msgspec.Struct):
    claims: tuple[_Claim, ...] | None = msgspec.field(name="ClaimInfoStateList", default=None)


def _claim(entry: _Claim, knows_skipping: bool) -> ClaimInfo:
    drivers = {
        name: DriverState(
            tuple(
                PreparedDevice(each.pool, each.device, each.share_id, each.requests or (), each.cdi_ids or ())
                for each in state.devices or ()
            ),
            (state.skipped or ()) if knows_skipping else (),
        )
        for name, state in (entry.drivers or {}).items()
    }
    return ClaimInfo(entry.namespace, entry.name, entry.uid, drivers, dict.fromkeys(entry.pods or ()))
