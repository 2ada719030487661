"""A DRA driver of your own, with a part on the node: python examples/dra/driver.py PROFILE NODE KUBELET_DIR.

It works with Nodeward's kubelet and with a real one; the cluster is found by KUBECONFIG. Preparing a claim writes a CDI
file, in which containers get a variable; a driver for real devices lists its device nodes and libraries there. A driver
without a node part has none of this: it only publishes its devices, with `skipNodeOperations: true` in the profile.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nodeward.dra.device_profile import load_profile_file
from nodeward.dra.driver import Driver
from nodeward.dra.node_server import ClaimDevice, DriverClaim
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config

CDI = Path("/var/run/cdi")


class ExampleDriver(Driver):
    """Gives the devices of a claim to containers as a variable."""

    async def prepare(self, claim: DriverClaim) -> Sequence[ClaimDevice]:
        results = await self.allocated(claim)
        names = ",".join(each.device for each in results)
        device = {"name": claim.uid, "containerEdits": {"env": [f"EXAMPLE_DEVICES={names}"]}}
        spec = {"cdiVersion": "0.8.0", "kind": f"{self.profile.driver}/claim", "devices": [device]}
        _write(claim, json.dumps(spec))
        cdi_id = f"{self.profile.driver}/claim={claim.uid}"
        return [ClaimDevice(each.pool, each.device, (cdi_id,), (each.request,)) for each in results]

    async def unprepare(self, claim: DriverClaim) -> None:
        _file(claim).unlink(missing_ok=True)


def _file(claim: DriverClaim) -> Path:
    return CDI / f"example-{claim.uid}.json"


def _write(claim: DriverClaim, text: str) -> None:
    CDI.mkdir(parents=True, exist_ok=True)
    _file(claim).write_text(text)


async def main(profile: str, node: str, kubelet_dir: str) -> None:
    client = connect(
        load_config(dict(os.environ)),
        clock=RealClock(),
        environment=dict(os.environ),
        component="example-driver",
    )
    driver = ExampleDriver(client, load_profile_file(Path(profile), node), node, Path(kubelet_dir))
    await driver.start()
    try:
        await asyncio.Event().wait()
    finally:
        await driver.stop()
        await client.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
