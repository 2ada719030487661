"""Making, deleting and releasing the pods of jobs.

To release a pod is to take its finalizer off: from then on it may go. `released` remembers of which pods that is known
before the informer has told; a pod is taken off that list when it has.

Called by `controller` and `orphans`; calls `making` and `pod_facts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.controllers.controller import ControllerContext
from nodeward.controllers.job.making import new_pod
from nodeward.controllers.job.pod_facts import TRACKING, is_tracked
from nodeward.controllers.pods.control import PodControl
from nodeward.controllers.pods.controller_ref_manager import controller_reference
from nodeward.controllers.pods.expectations import Expectations
from nodeward.controllers.pods.slow_start import BatchResult, at_once, in_growing_batches
from nodeward.machinery.informer import Informer

_RELEASE: Final = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}


class PodWrites:
    def __init__(
        self, context: ControllerContext, pods: Informer[Pod], expectations: Expectations[str]
    ) -> None:
        #: By uid.
        self.released: Final[dict[str, None]] = {}
        self._control = PodControl(context.client, context.recorder)
        self._kind = context.client.kind_of(Job)
        self._expectations = expectations
        self._pods = pods
        pods.add_handler(on_update=self._changed, on_delete=self._gone)

    def _changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid != old.metadata.uid or not is_tracked(new):
            self.released.pop(old.metadata.uid, None)

    def _gone(self, pod: Pod) -> None:
        self.released.pop(pod.metadata.uid, None)

    async def create(
        self, key: str, job: Job, indexes: Sequence[int | None], replaced: Mapping[int, Pod]
    ) -> BatchResult:
        """Return a pod for each of `indexes`; `replaced`: by index, the pods that failed before them."""
        reference = controller_reference(job, self._kind)
        waiting = iter(indexes)

        async def create() -> None:
            index = next(waiting)
            before = replaced.get(index) if index is not None else None
            await self._control.create(job, new_pod(job, reference, index, before))

        self._expectations.expect(key, creations=len(indexes))
        outcome = await in_growing_batches(len(indexes), create)
        if outcome.done < len(indexes):
            self._expectations.creation_seen(key, len(indexes) - outcome.done)
        return outcome

    async def delete(
        self, key: str, job: Job, pods: Sequence[Pod], *, counts: bool
    ) -> list[ApiError | WorldError]:
        """Delete; what went wrong. Pods that do not count are released before, so that nobody sees them fail."""
        self._expectations.expect(key, deletions=(pod.metadata.uid for pod in pods))

        async def delete(number: int) -> None:
            pod, is_under_way = pods[number], False
            try:
                if not counts and is_tracked(pod):
                    await self._take_off(pod)
                is_under_way = await self._control.delete(job, pod)
            finally:
                if not is_under_way:
                    self._expectations.deletion_seen(key, pod.metadata.uid)

        return await at_once(len(pods), delete)

    async def release(self, pods: Sequence[Pod]) -> dict[str, ApiError | WorldError]:
        """Take the finalizer off; what went wrong, by uid."""
        failed: dict[str, ApiError | WorldError] = {}

        async def release(number: int) -> None:
            pod = pods[number]
            meta = pod.metadata
            known = self._pods.get(meta.name, meta.namespace)
            if known is not None and known.metadata.uid == meta.uid:
                self.released[meta.uid] = None
            try:
                await self._take_off(pod)
            except (ApiError, WorldError) as error:
                self.released.pop(meta.uid, None)
                failed[meta.uid] = error

        await at_once(len(pods), release)
        return failed

    async def _take_off(self, pod: Pod) -> None:
        try:
            await self._control.patch(pod, _RELEASE)
        except ApiError as error:
            if error.code != 404:
                raise
