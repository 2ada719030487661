"""What the scheduler writes to claims: allocation and reservation before a pod is bound, and their withdrawal.

Everything is written with the version it was decided on; after a conflict the claim is read again, and the decision is
written unless somebody else allocated or deleted the claim meanwhile. Errors are `ClaimWriteError`, with the texts
Kubernetes users know.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.resource_v1 import AllocationResult, ResourceClaim, ResourceClaimStatus
from nodeward.base.errors import NodewardError, WorldError
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Clock
from nodeward.rules.devices.requests import full_claim_name
from nodeward.rules.resource_claims import CLAIM_FINALIZER, consumer_reference

#: As often a write is tried when others write too, and the seconds between.
TRIES: Final = 5
PAUSE_SECONDS: Final = 0.01


class ClaimWriteError(NodewardError):
    """A claim could not be written as decided."""


class ClaimWriter:
    """Writes claims for one scheduler."""

    def __init__(self, client: Client, clock: Clock, *, timestamps: bool) -> None:
        """`timestamps`: allocations say when they were made (DRADeviceBindingConditions)."""
        self._client = client
        self._clock = clock
        self._timestamps = timestamps

    async def bind(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod
    ) -> ResourceClaim:
        """Write the allocation, if one was decided, and reserve the claim for the pod."""
        name = full_claim_name(claim)
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._write(claim, allocation, pod)
            except ApiError as error:
                if error.code != 409 or not tries_left:
                    what = "allocation and reservation" if allocation is not None else "reservation"
                    raise ClaimWriteError(f"add {what} to claim {name}: {error}") from error
            except WorldError as error:
                raise ClaimWriteError(f"claim {name}: {error}") from error
            await self._clock.sleep(PAUSE_SECONDS)
            claim = await self._read_again(claim)
        raise ClaimWriteError(f"claim {name}: too many conflicts")

    async def _write(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod
    ) -> ResourceClaim:
        name = full_claim_name(claim)
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimWriteError(f"claim {name} got deleted in the meantime")
        status = claim.status
        if allocation is not None:
            if status.allocation is not None:
                raise ClaimWriteError(f"claim {name} got allocated elsewhere in the meantime")
            if CLAIM_FINALIZER not in claim.metadata.finalizers:
                finalizers = [*claim.metadata.finalizers, CLAIM_FINALIZER]
                claim = await self._client.update(
                    replace(claim, metadata=replace(claim.metadata, finalizers=finalizers))
                )
            if self._timestamps:
                allocation = replace(allocation, allocation_timestamp=rfc3339(self._clock.now_ns()))
            status = replace(claim.status, allocation=allocation)
        if status.allocation is None:
            raise ClaimWriteError(f"claim {name} got deallocated elsewhere in the meantime")
        status = replace(status, reserved_for=[*status.reserved_for, consumer_reference(pod)])
        return await self._client.update(replace(claim, status=status), subresource="status")

    async def _read_again(self, claim: ResourceClaim) -> ResourceClaim:
        name = full_claim_name(claim)
        try:
            found = await self._client.get(ResourceClaim, claim.metadata.name, claim.metadata.namespace)
        except (ApiError, WorldError) as error:
            raise ClaimWriteError(f"get updated claim {name} after conflict: {error}") from error
        if found.metadata.uid != claim.metadata.uid:
            raise ClaimWriteError(f"claim {name} got deleted in the meantime")
        return found

    async def unreserve(self, claim: ResourceClaim, pod: Pod) -> None:
        """Withdraw the reservation for the pod. The allocation stays: the pod will be tried again."""
        body: dict[str, Any] = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]},
        }
        await self._client.patch(
            ResourceClaim,
            claim.metadata.name,
            body,
            namespace=claim.metadata.namespace,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Release the devices of a claim that nobody uses, so that others can be tried."""
        await self._client.update(replace(claim, status=ResourceClaimStatus()), subresource="status")
