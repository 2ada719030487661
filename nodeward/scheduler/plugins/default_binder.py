"""DefaultBinder: tells the API where a pod goes, by a Binding."""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.plugin import BindPlugin, CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, failed


class DefaultBinder(BindPlugin):
    name: ClassVar[str] = "DefaultBinder"

    def __init__(self, context: PluginContext) -> None:
        self._handle = context.handle

    async def bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        if self._handle is None:
            return failed("there is no API to bind with")
        try:
            # With the uid: not a pod of the same name that was made meanwhile.
            await self._handle.client.bind(pod.name, pod.namespace, node, uid=pod.uid)
        except (ApiError, WorldError) as error:
            return failed(str(error))
        return SUCCESS
