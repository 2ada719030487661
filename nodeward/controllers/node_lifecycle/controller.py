"""Keeps the taints of every node as its conditions say.

Keys are nodes. A look works out all taints from the informer's copy, and writes them in one patch that holds only for
that copy: if somebody was faster, the next look works from theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.controller import Tools, Work
from nodeward.controllers.node_lifecycle.condition_taints import with_condition_taints
from nodeward.machinery.client import PatchType
from nodeward.machinery.workqueue import WorkQueue

WORKERS: Final = 32
#: Somebody else wrote the node: their version arrives soon.
CONFLICT_SECONDS: Final = 0.05


class NodeLifecycleController:
    def __init__(self, tools: Tools) -> None:
        self._client = tools.client
        self._clock = tools.clock
        self._nodes = tools.informers.informer(Node)
        self._queue: WorkQueue[str] = WorkQueue(tools.clock, name="node_lifecycle_controller")
        self._nodes.add_handler(self._seen, lambda _, new: self._seen(new))

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._look, workers=WORKERS),)

    def _seen(self, node: Node) -> None:
        if with_condition_taints(node, node.spec.taints, "") is not node.spec.taints:
            self._queue.add(node.metadata.name)

    async def _look(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None:
            return None
        taints = with_condition_taints(node, node.spec.taints, rfc3339(self._clock.now_ns()))
        if taints is node.spec.taints:
            return None
        meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        body = {"metadata": meta, "spec": {"taints": taints}}
        try:
            await self._client.patch(bytes, name, body, kind=self._nodes.kind, patch_type=PatchType.MERGE)
        except ApiError as error:
            if error.code == 409:
                return CONFLICT_SECONDS
            if error.code != 404:
                raise
        return None
