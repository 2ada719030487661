"""Controller references: how owners adopt matching orphans and release objects that no longer match.

An owner claims what matches its selector: it adopts orphans, and releases what it has but no longer selects. Works for
pods, replica sets and controller revisions alike.

What must stay true: nobody takes what another controls; an owner that is being deleted changes nothing; before the
first adoption the owner is read from the API itself, since a copy may be of one that is gone.

Called by the workload controllers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, OwnerReference
from nodeward.api.scheme import Kind
from nodeward.base.errors import WorldError
from nodeward.machinery.client import Client
from nodeward.rules.selectors import LabelRequirements

T = TypeVar("T", bound=KubeObject)

_GONE: Final = 404
_INVALID: Final = 422


class CannotAdopt(WorldError):
    """The owner is not what it was when the controller last heard of it."""


def controller_of(obj: KubeObject) -> OwnerReference | None:
    """Return the one owner that manages `obj`."""
    for reference in obj.metadata.owner_references:
        if reference.controller:
            return reference
    return None


def controller_reference(owner: KubeObject, kind: Kind) -> OwnerReference:
    """Return what the objects of `owner` carry."""
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


class ControllerRefManager:
    """Claiming for owners of one kind, of objects of one other kind."""

    def __init__(
        self,
        client: Client,
        owners: type[KubeObject],
        owned: type[KubeObject],
        *,
        finalizers: Sequence[str] = (),
    ) -> None:
        """`finalizers` are put on what is adopted and taken off what is released."""
        self._client = client
        self._owners = owners
        self._owned = owned
        self._owned_kind = client.kind_of(owned)
        self.kind: Final = client.kind_of(owners)
        self._finalizers = list(finalizers)

    async def claim(
        self,
        owner: KubeObject,
        selector: LabelRequirements,
        candidates: Iterable[T],
        is_wanted: Callable[[T], bool] | None = None,
    ) -> list[T]:
        """Return those of `candidates` (its own and orphans) that are the owner's now.

        What fails is raised once everything has been tried; an object that is gone is no failure.
        """
        uid, is_leaving = owner.metadata.uid, owner.metadata.deletion_timestamp is not None
        claimed: list[T] = []
        failure: ApiError | WorldError | None = None
        may_adopt = False
        for candidate in candidates:
            reference = controller_of(candidate)
            if reference is not None and reference.uid != uid:
                continue
            matches = selector.matches(candidate.metadata.labels)
            if matches and is_wanted is not None:
                matches = is_wanted(candidate)
            if reference is not None and matches:
                claimed.append(candidate)
                continue
            if is_leaving or (reference is None and not self._is_adoptable(owner, candidate, matches)):
                continue
            try:
                if reference is not None:
                    await self._release(candidate, uid)
                    continue
                if not may_adopt:
                    await self._check(owner)
                    may_adopt = True
                await self._adopt(owner, candidate)
                claimed.append(candidate)
            except ApiError as error:
                if error.code != _GONE:
                    failure = failure or error
            except WorldError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return claimed

    def _is_adoptable(self, owner: KubeObject, candidate: KubeObject, matches: bool) -> bool:
        meta = candidate.metadata
        return matches and meta.deletion_timestamp is None and meta.namespace == owner.metadata.namespace

    async def _check(self, owner: KubeObject) -> None:
        name, namespace = owner.metadata.name, owner.metadata.namespace
        where = f"{self.kind.name} {namespace}/{name}"
        try:
            fresh = await self._client.get(self._owners, name, namespace)
        except ApiError as error:
            if error.code != _GONE:
                raise
            raise CannotAdopt(f"{where} is gone") from error
        if fresh.metadata.uid != owner.metadata.uid:
            raise CannotAdopt(
                f"{where} is another one by now: uid {fresh.metadata.uid}, was {owner.metadata.uid}"
            )
        if fresh.metadata.deletion_timestamp is not None:
            raise CannotAdopt(f"{where} has just been deleted at {fresh.metadata.deletion_timestamp}")

    async def _adopt(self, owner: KubeObject, candidate: KubeObject) -> None:
        metadata: dict[str, Any] = {
            "uid": candidate.metadata.uid,
            "ownerReferences": [controller_reference(owner, self.kind)],
        }
        if self._finalizers:
            metadata["finalizers"] = self._finalizers
        await self._patch(candidate, metadata)

    async def _release(self, candidate: KubeObject, uid: str) -> None:
        metadata: dict[str, Any] = {
            "uid": candidate.metadata.uid,
            "ownerReferences": [{"$patch": "delete", "uid": uid}],
        }
        if self._finalizers:
            metadata["$deleteFromPrimitiveList/finalizers"] = self._finalizers
        try:
            await self._patch(candidate, metadata)
        except ApiError as error:
            # It was released already, or is another object by the same name.
            if error.code != _INVALID:
                raise

    def _patch(self, candidate: KubeObject, metadata: dict[str, Any]) -> Awaitable[bytes]:
        name, namespace = candidate.metadata.name, candidate.metadata.namespace
        return self._client.patch(
            bytes, name, {"metadata": metadata}, namespace=namespace, kind=self._owned_kind
        )
