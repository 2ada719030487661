"""The API's view of static pods: for each one a mirror, which shows it and decides nothing.

A mirror has the static pod's uid in an annotation, so each is found by the other. What must stay true: a mirror of a
pod that is no longer there, of an earlier version of its file, or that somebody wants deleted, is deleted; a static pod
without a mirror gets one, as soon as the API can be asked. The static pod itself runs on, whatever becomes of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.meta import OwnerReference
from nodeward.base.errors import WorldError
from nodeward.kubelet.agent import Agent, ManagedPod
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import own_task
from nodeward.rules.pod_references import MIRROR

LOG: Final = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 10.0


def mirrored_uid(pod: Pod) -> str:
    """The uid of the static pod a pod of the API mirrors; empty if it is no mirror."""
    return pod.metadata.annotations.get(MIRROR, "")


class MirrorPods:
    """The mirrors of all static pods of one host."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kind = client.kind_of(Pod)
        #: by the uid of the static pod
        self._known: dict[str, Pod] = {}

    def saw(self, mirror: Pod, managed: Mapping[str, ManagedPod]) -> ManagedPod | None:
        """A mirror in the API: the pod it shows; None if it should not be there."""
        uid = mirrored_uid(mirror)
        shown = managed.get(uid)
        if shown is None or mirror.metadata.deletion_timestamp is not None:
            self._known.pop(uid, None)
            return None
        self._known[uid] = mirror
        return shown

    def lost(self, mirror: Pod, managed: Mapping[str, ManagedPod]) -> ManagedPod | None:
        """A mirror is gone from the API: the pod that is without one now."""
        uid = mirrored_uid(mirror)
        known = self._known.get(uid)
        if known is not None and known.metadata.uid == mirror.metadata.uid:
            del self._known[uid]
        return managed.get(uid)

    def forget(self, uid: str) -> Pod | None:
        """The static pod is gone: the mirror that must go too."""
        return self._known.pop(uid, None)

    async def of(self, managed: ManagedPod) -> Pod | None:
        """The mirror of a static pod, made if there is none; None if the node must be registered first."""
        uid, agent = managed.uid, managed.agent
        known = self._known.get(uid)
        if known is not None or not agent.is_registered:
            return known
        try:
            made = await self._client.create(_mirror(managed.life.pod, agent))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            # Of an earlier version of the file and on its way out, or somebody else's: tried again.
            raise WorldError(str(error)) from error
        self._known[uid] = made
        return made

    @own_task
    async def delete(self, mirror: Pod) -> None:
        """At once, and for as long as it takes until the API has heard."""
        meta = mirror.metadata
        while True:
            try:
                await self._client.delete(self._kind, meta.name, meta.namespace, grace_period=0, uid=meta.uid)
            except ApiError as error:
                if error.reason in ("NotFound", "Conflict"):
                    return
                LOG.info("mirror pod %s/%s cannot be deleted yet: %s", meta.namespace, meta.name, error)
            except WorldError as error:
                LOG.info("mirror pod %s/%s cannot be deleted yet: %s", meta.namespace, meta.name, error)
            else:
                return
            await self._clock.sleep(_RETRY_SECONDS)


def _mirror(pod: Pod, agent: Agent) -> Pod:
    node = agent.node
    owner = OwnerReference(
        api_version="v1",
        kind="Node",
        name=agent.name,
        uid=node.metadata.uid if node is not None else "",
        controller=True,
    )
    meta = msgspec.structs.replace(
        pod.metadata,
        uid="",
        annotations={**pod.metadata.annotations, MIRROR: pod.metadata.uid},
        owner_references=[owner],
    )
    return msgspec.structs.replace(pod, metadata=meta)
