"""A kubelet with drivers and claims, under its node's own identity and in virtual time: for the statements of KEP-5945.

Claims are allocated by the test, as a scheduler would: what results say of node operations is up to it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim, ResourceSlice
from nodeward.kubelet.dra.claim_checkpoint import DRA_STATE_FILE
from nodeward.kubelet.dra.described_drivers import DescribedDriver, DescribedDrivers, DriverDescription
from nodeward.kubelet.runtime.interface import ContainerRequest
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.node_identity import Kubelet, NodeWorld, node_world
from tests.rules.devices.allocating import devices, slice_of

GATE = "DRAOptionalNodePreparation"
ON = f"{GATE}=true"
OFF = f"{GATE}=false"
FEATURE = "DraOptionalNodePreparation"
DRIVER = "gpu.example.com"
OTHER = "nic.example.com"
FAILED = "FailedPrepareDynamicResources"

#: What the results of one driver say, one after the other; None: nothing.
Said = bool | list[str] | None


@dataclass
class DRAScene:
    """One kubelet, n1, with simulated drivers."""

    world: NodeWorld
    kubelet: Kubelet
    drivers: dict[str, DescribedDriver]
    #: what the runtime was asked to start
    requests: list[ContainerRequest]

    # -- claims and pods

    async def allocate(self, name: str = "c", **results: Said | list[Said]) -> ResourceClaim:
        """Make a claim that is allocated devices of drivers, `gpu=[True, None]`: two devices of gpu.example.com."""
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        tree = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": requests}},
        }
        await self.world.client.create(codec.read(json.dumps(tree).encode(), ResourceClaim))
        return await self.patch_claim(name, {"allocation": {"devices": {"results": _results(results)}}})

    async def patch_claim(self, name: str, status: Mapping[str, Any]) -> ResourceClaim:
        return await self.world.client.patch(
            ResourceClaim,
            name,
            {"status": status},
            namespace="default",
            patch_type=PatchType.MERGE,
            subresource="status",
        )

    async def start(self, name: str = "p", *claims: str, seconds: float = 3.0, **spec: Any) -> Pod:
        """A pod that uses claims (or "c"), reserved and bound as a scheduler does it, `seconds` later."""
        client = self.world.client
        used = claims or ("c",)
        tree = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "resourceClaims": [{"name": each, "resourceClaimName": each} for each in used],
                "containers": [
                    {
                        "name": "m",
                        "image": "image",
                        "resources": {"claims": [{"name": each} for each in used]},
                    }
                ],
                **spec,
            },
        }
        pod = await client.create(codec.read(json.dumps(tree).encode(), Pod))
        for each in used:
            await self.reserve(each, pod)
        return await self.bind(pod, seconds)

    async def bind(self, pod: Pod, seconds: float = 3.0) -> Pod:
        name = pod.metadata.name
        await self.world.client.bind(name, "default", "n1")
        await self.world.pass_time(seconds)
        return await self.world.pod(name)

    async def claim(self, name: str = "c") -> ResourceClaim:
        return await self.world.client.get(ResourceClaim, name, "default")

    async def publish(self, skips: Said) -> None:
        """Say in the driver's slice what is skipped, in place of what it said before."""
        said: dict[str, Any] = {} if skips is None else {"skipNodeOperations": skips}
        names = [each.metadata.name for each in (await self.world.client.list(ResourceSlice)).items]
        if names:
            body = {"spec": {"skipNodeOperations": skips}}
            await self.world.client.patch(ResourceSlice, names[0], body, patch_type=PatchType.MERGE)
        else:
            await self.world.client.create(slice_of(devices(1), **said))

    async def slices(self) -> list[str]:
        return sorted(each.metadata.name for each in (await self.world.client.list(ResourceSlice)).items)

    def with_driver(self, name: str = DRIVER) -> DescribedDrivers:
        """The node's drivers with one more, which has prepared nothing."""
        self.drivers[name] = DescribedDriver(present(name), self.world.clock)
        return DescribedDrivers(self.drivers.values())

    async def reserve(self, claim: str, *pods: Pod) -> None:
        found = await self.world.client.get(ResourceClaim, claim, "default")
        known = [
            {"resource": "pods", "name": each.name, "uid": each.uid} for each in found.status.reserved_for
        ]
        new = [{"resource": "pods", "name": each.metadata.name, "uid": each.metadata.uid} for each in pods]
        await self.patch_claim(claim, {"reservedFor": known + new})

    async def delete(self, name: str = "p", seconds: float = 3.0) -> None:
        await self.world.client.delete(Pod, name, "default")
        await self.world.pass_time(seconds)

    async def is_gone(self, name: str = "p") -> bool:
        return name not in [
            each.metadata.name for each in (await self.world.client.list(Pod, "default")).items
        ]

    async def phase(self, name: str = "p") -> str:
        return (await self.world.pod(name)).status.phase

    async def told(self, name: str = "p", reason: str = FAILED) -> list[str]:
        """Messages of events of a reason."""
        return [message for each, message in await self.world.events(name) if each == reason]

    def lose_first_read(self) -> None:
        """Let the kubelet's next request for a claim fail on its way."""
        lost: list[str] = []

        async def alter(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
            if "/resourceclaims/" in request.path and not lost:
                lost.append(request.path)
                raise ConnectionFailed("connection reset")
            return await send(request)

        self.kubelet.wire.alter = alter

    # -- what happened

    def calls(self, driver: str = DRIVER) -> list[str]:
        """The calls a driver got: "prepare", "unprepare"."""
        return [call for call, _ in self.drivers[driver].calls]

    def skips(self, operation: str = "prepare", driver: str = DRIVER) -> float:
        """What the counter of skipped calls says, under the proposal's name."""
        start = f'kubelet_dra_node_{operation}_skips_total{{driver_name="{driver}"}} '
        for line in self.kubelet.metrics().splitlines():
            if line.startswith(start):
                return float(line.removeprefix(start))
        return 0.0

    def checkpoint(self) -> list[dict[str, Any]]:
        """The claims in the kubelet's file."""
        path = self.world.root / "n1" / DRA_STATE_FILE
        tree = json.loads(json.loads(path.read_bytes())["Data"])
        return tree["ClaimInfoStateList"] or []

    def skipped(self, driver: str = DRIVER) -> list[str]:
        """What the file says is skipped for the only claim in it."""
        [claim] = self.checkpoint()
        found: list[str] = claim["DriverState"][driver].get("skipNodeOperations", [])
        return found

    def cdi_ids(self, pod: Pod) -> tuple[str, ...]:
        """What the runtime was given for the pod's container."""
        [request] = [each for each in self.requests if each.pod.metadata.uid == pod.metadata.uid]
        return request.cdi_ids

    async def restart(self, **changes: Any) -> None:
        await self.kubelet.restart(**changes)


def _results(by_driver: Mapping[str, Said | list[Said]]) -> list[dict[str, Any]]:
    found = []
    for short, said in by_driver.items():
        is_one = said is None or isinstance(said, bool) or (said and isinstance(said[0], str))
        for number, each in enumerate([said] if is_one else said):  # type: ignore[arg-type]
            result = {"request": "r", "driver": f"{short}.example.com", "pool": "p", "device": f"d{number}"}
            found.append(result if each is None else result | {"skipNodeOperations": each})
    return found


def play(
    act: Callable[[DRAScene], Awaitable[None]],
    *,
    gates: str = ON,
    version: str = "1.37",
    control_version: str = "1.37",
    control_gates: str = ON,
    drivers: tuple[DriverDescription, ...] = (),
) -> None:
    """Run a scene; `gates` and `version` are the kubelet's."""

    async def main(clock: VirtualClock) -> None:
        made = {each.name: DescribedDriver(each, clock) for each in drivers}
        async with node_world(clock, version=control_version, gates=control_gates) as world:
            kubelet = await world.start_kubelet(
                "n1", feature_gates=gates, version=version, drivers=DescribedDrivers(made.values())
            )
            requests: list[ContainerRequest] = []
            start_container = kubelet.runtime.start_container

            def noted(request: ContainerRequest) -> None:
                requests.append(request)
                start_container(request)

            kubelet.runtime.start_container = noted  # type: ignore[method-assign]
            await act(DRAScene(world, kubelet, made, requests))

    run_virtual(main)


def present(name: str = DRIVER, **how: Any) -> DriverDescription:
    """A driver that is on the node."""
    return DriverDescription(name=name, **how)
