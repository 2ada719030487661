"""The end of a namespace: a deleted one is emptied, and lets go of its name when nothing is left in it.

Keys are namespaces. A namespace that is terminating is emptied again and again (`namespace_content`), tells in its
conditions how far that is (`namespace_conditions`), and at last loses the finalizer `kubernetes`, whereupon the API
server removes it.

What must stay true: the finalizer goes only after an attempt that found every kind empty and had no failure.

Run by `controllers.runner`; calls `namespace_conditions` and `namespace_content`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.namespace_conditions import apply
from nodeward.controllers.namespace_content import NamespacedResourcesDeleter
from nodeward.machinery.backoff import Curve, KeyedBackoff
from nodeward.machinery.workqueue import WorkQueue

FINALIZER: Final = "kubernetes"
#: Time for every API server to hear that nothing may be created there any more.
DELETION_GRACE_SECONDS: Final = 5.0
WORKERS: Final = 10
#: At least every minute: somebody is waiting for the name.
_RETRY: Final = Curve(initial=0.005, cap=60.0)


class ContentRemains(WorldError):
    """A namespace could not be emptied this time."""


class NamespaceController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._emptying = NamespacedResourcesDeleter(context.client, context.clock)
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="namespace", backoff=KeyedBackoff(_RETRY))
        self._namespaces = context.informers.informer(Namespace)
        self._namespaces.add_handler(on_add=self._seen, on_update=lambda _, new: self._seen(new))

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    def _seen(self, namespace: Namespace) -> None:
        if namespace.metadata.deletion_timestamp is not None:
            self._queue.add_after(namespace.metadata.name, DELETION_GRACE_SECONDS)

    async def _handle(self, name: str) -> float | None:
        if self._namespaces.get(name) is None:
            return None
        namespace = await self._get(name)
        if namespace is None or namespace.metadata.deletion_timestamp is None:
            return None
        namespace = await self._write(namespace, "status", _terminate)
        if namespace is None or not namespace.spec.finalizers:
            return None
        findings = await self._emptying.empty(namespace)
        now_ns = self._clock.now_ns()
        namespace = await self._write(namespace, "status", lambda each: apply(each.status, findings, now_ns))
        if errors := findings.errors():
            raise ContentRemains("; ".join(errors))
        if findings.estimate:
            return findings.estimate // 2 + 1
        if namespace is not None:
            await self._write(namespace, "finalize", _let_go)
        return None

    async def _get(self, name: str) -> Namespace | None:
        try:
            return await self._client.get(Namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def _write(
        self, namespace: Namespace, subresource: str, change: Callable[[Namespace], bool]
    ) -> Namespace | None:
        """Store what `change` does, again on the newer object if another was faster; None: it is gone.

        `change` says whether there is anything to store.
        """
        latest: Namespace | None = namespace
        while latest is not None and latest.metadata.uid == namespace.metadata.uid:
            if not change(latest):
                return latest
            try:
                return await self._client.update(latest, subresource=subresource)
            except ApiError as error:
                if error.code == 404:
                    return None
                if error.reason != "Conflict":
                    raise
            latest = await self._get(namespace.metadata.name)
        return None


def _terminate(namespace: Namespace) -> bool:
    if namespace.status.phase == "Terminating":
        return False
    namespace.status.phase = "Terminating"
    return True


def _let_go(namespace: Namespace) -> bool:
    others = sorted(name for name in namespace.spec.finalizers if name != FINALIZER)
    if others == sorted(namespace.spec.finalizers):
        return False
    namespace.spec.finalizers = others
    return True
