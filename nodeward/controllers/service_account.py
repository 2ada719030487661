"""A service account `default` in every active namespace: pods that name none run as it.

Keys are namespaces. Without this account the API server refuses every pod of a namespace.

Run by `controllers.runner`; calls `active_namespaces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.core_v1.cluster import Namespace, ServiceAccount
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.active_namespaces import follow, is_active, refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.machinery.workqueue import WorkQueue

NAME: Final = "default"


class ServiceAccountController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="serviceaccount")
        self._namespaces = context.informers.informer(Namespace)
        self._accounts = context.informers.informer(ServiceAccount)
        follow(self._namespaces, self._queue)
        self._accounts.add_handler(on_delete=self._deleted)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle),)

    def _deleted(self, account: ServiceAccount) -> None:
        if account.metadata.name == NAME:
            self._queue.add(account.metadata.namespace)

    async def _handle(self, namespace: str) -> None:
        if not is_active(self._namespaces, namespace) or self._accounts.get(NAME, namespace) is not None:
            return
        try:
            await self._client.create(ServiceAccount(metadata=ObjectMeta(name=NAME, namespace=namespace)))
        except ApiError as error:
            if error.reason != "AlreadyExists" and not refused_for_namespace(error):
                raise
