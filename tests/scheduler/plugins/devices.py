"""Claims, slices and classes in a cluster with a scheduler."""

from __future__ import annotations

from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import AllocationResult, ResourceClaim
from nodeward.machinery.client import PatchType
from tests.rules.devices.allocating import claim, device_class, devices, exactly, made, slice_of
from tests.scheduler.running import Cluster, node, pod

__all__ = ["claim", "device_class", "devices", "exactly", "made", "node", "slice_of"]

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"


def using(name: str, *claims: str, **more: Any) -> Pod:
    """A pod that uses claims by name."""
    wanted = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, resourceClaims=wanted, **more)


def templated(name: str, template: str = "gpu", **more: Any) -> Pod:
    """A pod for which a claim is generated."""
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": template}], **more)


async def add(world: Cluster, *objects: Any) -> None:
    for each in objects:
        await world.client.create(each)
    await world.pass_time()


async def allocation(world: Cluster, name: str = "c") -> AllocationResult | None:
    return (await world.client.get(ResourceClaim, name, "default")).status.allocation


async def device_of(world: Cluster, name: str = "c") -> str:
    """The one device a claim has, or ""."""
    found = await allocation(world, name)
    if found is None:
        return ""
    [result] = found.devices.results
    return result.device


async def release(world: Cluster, name: str) -> None:
    """What the ResourceClaim controller does once nobody uses the claim."""
    body = {"status": {"allocation": None, "reservedFor": None}}
    await world.client.patch(
        ResourceClaim, name, body, namespace="default", patch_type=PatchType.MERGE, subresource="status"
    )
    await world.pass_time()
