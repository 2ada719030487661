"""Pods of nodes that do not answer are not ready, whatever their kubelet last said.

Keys are pods. A pod is marked when its node falls silent, or when it is given to a node that is not ready; services
stop sending to it then. The kubelet sets the condition right again when it is back.

Called by `controller`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.pods.by_node import PodsByNode
from nodeward.machinery.recorder import WARNING
from nodeward.machinery.workqueue import WorkQueue

WORKERS: Final = 16


class PodsNotReady:
    """`is_lost` says of a node's name whether its kubelet cannot be believed, or says itself that it is not ready."""

    def __init__(self, context: ControllerContext, is_lost: Callable[[str], bool]) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._is_lost = is_lost
        self._pods = PodsByNode(context.informers)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(
            context.clock, name="node_lifecycle_controller_pods"
        )
        self._pods.informer.add_handler(self._placed, self._changed)

    def work(self) -> Work[tuple[str, str]]:
        return Work(self._queue, self._mark, workers=WORKERS)

    def mark_all(self, node: str) -> None:
        """Mark the pods of a node that has just become unreachable as not ready."""
        for pod in self._pods.on(node):
            self._queue.add((pod.metadata.namespace, pod.metadata.name))

    def _changed(self, old: Pod, new: Pod) -> None:
        if new.spec.node_name != old.spec.node_name or new.metadata.uid != old.metadata.uid:
            self._placed(new)

    def _placed(self, pod: Pod) -> None:
        if pod.spec.node_name and self._is_lost(pod.spec.node_name):
            self._queue.add((pod.metadata.namespace, pod.metadata.name))

    async def _mark(self, key: tuple[str, str]) -> None:
        namespace, name = key
        pod = self._pods.informer.get(name, namespace)
        if pod is None or not _says_ready(pod) or not self._is_lost(pod.spec.node_name):
            return
        now = rfc3339(self._clock.now_ns())
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        kind = self._pods.informer.kind
        try:
            await self._client.patch(bytes, name, body, namespace=namespace, kind=kind, subresource="status")
        except ApiError as error:
            # Gone, or another pod by now.
            if error.code not in (404, 409):
                raise
            return
        self._recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")


def _says_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
