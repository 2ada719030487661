"""The status manager: writes the status of pods to the API when it differs, and deletes pods that are over.

Whoever changes a pod's state calls `enqueue`; the host's workers call `sync` for every uid in the queue. The status is
asked of the pod's life at that moment, so changes that come close together are one write.

What must stay true: nothing is written for a node that is cut off; a status that the API refuses for ever does not keep
a pod from being deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.kubelet.agent import ManagedPod
from nodeward.kubelet.mirror_pods import MirrorPods
from nodeward.kubelet.node.admission import is_static
from nodeward.kubelet.status_patch import status_patch, version_of
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.workqueue import WorkQueue

LOG: Final = logging.getLogger(__name__)


class StatusManager:
    """The statuses of all pods of one host. `find` gives a pod that is taken care of, by uid."""

    def __init__(
        self, client: Client, clock: Clock, mirrors: MirrorPods, find: Callable[[str], ManagedPod | None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._mirrors = mirrors
        self._find = find
        self._kind = client.kind_of(Pod)
        #: uids of pods whose status may have to be written
        self.queue: Final[WorkQueue[str]] = WorkQueue(clock, name="pod_status")

    def enqueue(self, uid: str) -> None:
        """Look at a pod's status soon."""
        self.queue.add(uid)

    @staticmethod
    def observe(managed: ManagedPod, pod: Pod) -> None:
        """Compare with the API's version from now on, once it is as new as what was written last."""
        if managed.sent is not None and int(pod.metadata.resource_version or "0") >= managed.sent_version:
            managed.sent = None

    async def sync(self, uid: str) -> None:
        """Write the status if it differs; then delete the object if that is due."""
        managed = self._find(uid)
        if managed is None or managed.agent.is_cut_off:
            return
        life, pod = managed.life, managed.life.pod
        if is_static(pod):
            mirror = await self._mirrors.of(managed)
            if mirror is None:
                return
            pod = mirror
        status = life.status(self._clock.now_ns())
        if status is not managed.sent:
            patch = status_patch(pod, managed.sent or pod.status, status)
            if patch is not None:
                try:
                    answer: bytes = await self._client.patch(
                        bytes,
                        pod.metadata.name,
                        patch,
                        namespace=pod.metadata.namespace,
                        kind=self._kind,
                        subresource="status",
                    )
                except ApiError as error:
                    if error.reason in ("NotFound", "Conflict"):
                        return  # it is gone, or another one has its name: the watch tells
                    if error.reason != "Invalid" or not managed.is_to_be_deleted:
                        raise
                    # Nobody needs to know any more, and it would be refused for ever.
                    LOG.warning("pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
                else:
                    managed.sent = status
                    managed.sent_version = version_of(answer)
        if managed.is_to_be_deleted:
            await self._delete(managed)

    async def _delete(self, managed: ManagedPod) -> None:
        meta = managed.life.pod.metadata
        try:
            await self._client.delete(self._kind, meta.name, meta.namespace, grace_period=0, uid=meta.uid)
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise
        managed.is_to_be_deleted = False

    def stop(self) -> None:
        """Write nothing more."""
        self.queue.shut_down()
