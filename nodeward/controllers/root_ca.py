"""A ConfigMap `kube-root-ca.crt` in every active namespace: how pods know that they talk to the real API server.

Keys are namespaces. The map holds the given certificates and nothing else, whatever somebody wrote into it; labels
and other annotations are left alone.

Run by `controllers.runner`; calls `active_namespaces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.cluster import ConfigMap, Namespace
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.active_namespaces import follow, is_active, refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.machinery.workqueue import WorkQueue

NAME: Final = "kube-root-ca.crt"
KEY: Final = "ca.crt"
ANNOTATION: Final = "kubernetes.io/description"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


def publisher(context: ControllerContext) -> RootCaPublisher | None:
    """Return the controller, if there is anything to publish."""
    return None if context.root_ca is None else RootCaPublisher(context, context.root_ca)


class RootCaPublisher:
    def __init__(self, context: ControllerContext, root_ca: str) -> None:
        self._client = context.client
        self._data = {KEY: root_ca}
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="root_ca_cert_publisher")
        self._namespaces = context.informers.informer(Namespace)
        # All maps rather than those of this name: other controllers need them too, and share the copy.
        self._maps = context.informers.informer(ConfigMap)
        follow(self._namespaces, self._queue)
        self._maps.add_handler(
            on_add=self._changed, on_update=lambda _, new: self._changed(new), on_delete=self._changed
        )

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle),)

    def _changed(self, found: ConfigMap) -> None:
        if found.metadata.name == NAME:
            self._queue.add(found.metadata.namespace)

    async def _handle(self, namespace: str) -> None:
        if not is_active(self._namespaces, namespace):
            return
        found = self._maps.get(NAME, namespace)
        if found is None:
            await self._create(namespace)
        elif found.data != self._data or not found.metadata.annotations.get(ANNOTATION):
            annotations = {**found.metadata.annotations, ANNOTATION: DESCRIPTION}
            metadata = msgspec.structs.replace(found.metadata, annotations=annotations)
            await self._client.update(
                msgspec.structs.replace(found, metadata=metadata, data=dict(self._data))
            )

    async def _create(self, namespace: str) -> None:
        metadata = ObjectMeta(name=NAME, namespace=namespace, annotations={ANNOTATION: DESCRIPTION})
        try:
            await self._client.create(ConfigMap(metadata=metadata, data=dict(self._data)))
        except ApiError as error:
            # One that exists already is looked at when the informer hears of it.
            if error.reason != "AlreadyExists" and not refused_for_namespace(error):
                raise
