"""A driver for devices that do not exist: `nodeward dra-driver` runs it, for tests and to try things out.

Preparing a claim writes a CDI file that gives containers the variables `DRA_CLAIM` and `DRA_DEVICES`; unpreparing
removes it. So what is prepared is on the disk, whatever happens to the process. `Faults` make it slow, failing or
crashing; every call is printed as a line of JSON.

What must stay true: a device is prepared for one claim at a time, unless both have admin access or share it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from nodeward.api.resource_v1 import DeviceRequestAllocationResult
from nodeward.base.errors import WorldError
from nodeward.dra.device_profile import DeviceProfile
from nodeward.dra.driver import Driver
from nodeward.dra.node_server import ClaimDevice, DriverClaim
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock

CDI_VERSION: Final = "0.8.0"
_CLASS: Final = "claim"
_UID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
#: In a file name before the uid of the claim.
_PREFIX: Final = "nodeward-"


@dataclass(slots=True, kw_only=True)
class Faults:
    """What goes wrong; numbers count down, -1 is for ever."""

    #: between the preparation and the answer
    slow_seconds: float = 0.0
    failing_prepares: int = 0
    failing_unprepares: int = 0
    #: the process is killed in the middle of its first preparation; the next run goes on without
    crash_in_prepare: bool = False


class PretendDriver(Driver):
    """A driver on one node; `cdi_directory` is where the container runtime looks for CDI files."""

    def __init__(
        self,
        client: Client,
        profile: DeviceProfile,
        node: str,
        kubelet_root: Path,
        clock: Clock,
        *,
        cdi_directory: Path,
        faults: Faults | None = None,
        out: TextIO = sys.stdout,
    ) -> None:
        super().__init__(client, profile, node, kubelet_root, clock)
        self._directory = cdi_directory
        self._faults = faults or Faults()
        self._out = out
        self._crashed = self.server.endpoint.parent / "crashed"

    async def prepare(self, claim: DriverClaim) -> Sequence[ClaimDevice]:
        self._say("prepare", claim)
        faults = self._faults
        if faults.failing_prepares:
            faults.failing_prepares -= 1
            raise WorldError("the driver was told to fail")
        results = await self.allocated(claim)
        if faults.crash_in_prepare and not self._crashed.exists():
            self._crashed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self._check_free(claim, results)
        self._write(claim, results)
        self._say("prepared", claim)
        if faults.slow_seconds:
            await self._clock.sleep(faults.slow_seconds)
        name = f"{self.profile.driver}/{_CLASS}={claim.uid}"
        return [
            ClaimDevice(each.pool, each.device, (name,), (each.request,), each.share_id) for each in results
        ]

    async def unprepare(self, claim: DriverClaim) -> None:
        self._say("unprepare", claim)
        faults = self._faults
        if faults.failing_unprepares:
            faults.failing_unprepares -= 1
            raise WorldError("the driver was told to fail")
        self._file(claim).unlink(missing_ok=True)
        self._say("unprepared", claim)

    def prepared(self) -> dict[str, list[str]]:
        """Return what is prepared: pool/device by uid of the claim."""
        found: dict[str, list[str]] = {}
        for path in sorted(self._directory.glob(f"{_PREFIX}*.json")):
            tree = json.loads(path.read_bytes())
            if tree["kind"] == self._kind:
                found[tree["devices"][0]["name"]] = tree["annotations"]["devices"].split(",")
        return found

    @property
    def _kind(self) -> str:
        return f"{self.profile.driver}/{_CLASS}"

    def _check_free(self, claim: DriverClaim, results: Sequence[DeviceRequestAllocationResult]) -> None:
        mine = {
            f"{each.pool}/{each.device}" for each in results if not each.admin_access and not each.share_id
        }
        for uid, devices in self.prepared().items():
            if uid != claim.uid and (taken := mine.intersection(devices)):
                raise WorldError(f"device {sorted(taken)[0]} is prepared for claim {uid}")

    def _write(self, claim: DriverClaim, results: Sequence[DeviceRequestAllocationResult]) -> None:
        devices = ",".join(f"{each.pool}/{each.device}" for each in results)
        edits = {"env": [f"DRA_CLAIM={claim.namespace}/{claim.name}", f"DRA_DEVICES={devices}"]}
        tree = {
            "cdiVersion": CDI_VERSION,
            "kind": self._kind,
            "annotations": {"devices": devices},
            "devices": [{"name": claim.uid, "containerEdits": edits}],
        }
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._file(claim)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(tree))
        fresh.replace(path)

    def _file(self, claim: DriverClaim) -> Path:
        if not _UID.fullmatch(claim.uid):
            raise WorldError(f"claim {claim.namespace}/{claim.name}: uid {claim.uid!r} is none")
        return self._directory / f"{_PREFIX}{claim.uid}.json"

    def _say(self, call: str, claim: DriverClaim) -> None:
        line: dict[str, Any] = {"call": call, "claim": f"{claim.namespace}/{claim.name}", "uid": claim.uid}
        print(json.dumps(line), file=self._out, flush=True)
