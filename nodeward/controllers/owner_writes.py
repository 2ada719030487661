"""What garbage collection does to objects of any kind: delete them, and change their owners and finalizers.

Everything is written against the metadata that was judged. An object that is gone meanwhile is fine; one that has been
made again under the same name is left alone.

Called by `garbage_collector`; calls `owner_graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.errors import ApiError
from nodeward.api.scheme import Kind
from nodeward.controllers.owner_graph import META, Meta, ObservedObject, Reference
from nodeward.machinery.client import Client, PatchType

_ATTEMPTS: Final = 5


class OwnerWrites:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, kind: Kind, name: str, namespace: str) -> Meta | None:
        try:
            return await self._client.get(META, name, namespace if kind.is_namespaced else "", kind=kind)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def delete(self, found: ObservedObject, policy: str) -> None:
        kind, meta = found
        version = meta.resource_version
        try:
            try:
                await self._client.delete(
                    kind,
                    meta.name,
                    meta.namespace,
                    propagation=policy,
                    uid=meta.uid,
                    resource_version=version,
                )
            except ApiError as error:
                if error.code != 409:
                    raise
                live = await self.get(kind, meta.name, meta.namespace)
                if live is None or live.uid != meta.uid:
                    return
                if live.owners != meta.owners:
                    raise
                # Changed in something else, perhaps again and again: that must not keep it alive.
                await self._client.delete(kind, meta.name, meta.namespace, propagation=policy, uid=meta.uid)
        except ApiError as error:
            if error.code != 404:
                raise

    async def forget(self, found: ObservedObject, references: Sequence[Reference]) -> None:
        """Remove owner references from an object."""
        kind, meta = found
        uids = dict.fromkeys(reference.uid for reference in references)
        if not uids:
            return
        # With the uid the patch is refused if it meets another object of that name.
        changes: list[dict[str, str]] = [{"$patch": "delete", "uid": uid} for uid in uids]
        body: dict[str, Any] = {"metadata": {"uid": meta.uid, "ownerReferences": changes}}
        try:
            await self._client.patch(META, meta.name, body, namespace=meta.namespace, kind=kind)
            return
        except ApiError as error:
            if error.code == 404:
                return
            if error.code != 415:
                raise
        # A custom resource: its lists can only be replaced.
        kept = [each for each in meta.owners if each.uid not in uids]
        body["metadata"] |= {"resourceVersion": meta.resource_version, "ownerReferences": kept}
        await self._merge(found, body)

    async def remove_finalizer(self, found: ObservedObject, finalizer: str) -> None:
        kind, meta = found
        for attempt in range(_ATTEMPTS):
            live = await self.get(kind, meta.name, meta.namespace)
            if live is None or live.uid != meta.uid or finalizer not in (live.finalizers or ()):
                return
            others = [each for each in live.finalizers or () if each != finalizer]
            body = {"metadata": {"resourceVersion": live.resource_version, "finalizers": others}}
            try:
                await self._merge(found, body)
                return
            except ApiError as error:
                if error.reason != "Conflict" or attempt == _ATTEMPTS - 1:
                    raise

    async def _merge(self, found: ObservedObject, body: dict[str, Any]) -> None:
        kind, meta = found
        try:
            await self._client.patch(
                META, meta.name, body, namespace=meta.namespace, patch_type=PatchType.MERGE, kind=kind
            )
        except ApiError as error:
            if error.code != 404:
                raise
