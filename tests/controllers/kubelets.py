"""Node agents for controllers' tests: pods start after a while, and stop after a while once deleted.

`FakeKubelets` watches all pods as one agent for every node. A new pod is given to a node (the one it names, or any if
nodes are named; with `places` false that is left to a scheduler), then becomes Running and Ready after
`start_seconds`; a deleted pod goes `stop_seconds` later. What a test wants otherwise it says by `is_healthy` (which
pods ever become ready), or does with `set_ready` and `finish`.

    async with cluster(clock, controllers=...) as each, FakeKubelets(each.client, nodes=("n1", "n2")):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance
from nodeward.machinery.informer import Informer
from nodeward.rules.affinity import named_nodes


class FakeKubelets:
    """Runs between `__aenter__` and `__aexit__`. `started` and `stopped` name pods in the order they did."""

    def __init__(
        self,
        client: Client,
        *,
        start_seconds: float = 1.0,
        stop_seconds: float = 1.0,
        nodes: Sequence[str] = (),
        places: bool = True,
        is_healthy: Callable[[Pod], bool] = lambda pod: True,
    ) -> None:
        self.start_seconds = start_seconds
        self.stop_seconds = stop_seconds
        self.is_healthy = is_healthy
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.pods = Informer(client, Pod, SeededChance(11))
        self._client = client
        self._nodes = nodes
        self._places = places
        self._next_node = 0
        #: By uid: those whose start or stop is under way or done.
        self._starting: dict[str, None] = {}
        self._stopping: dict[str, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def __aenter__(self) -> FakeKubelets:
        self._spawn(self.pods.run())
        await self.pods.wait_synced()
        self.pods.add_handler(self._seen, lambda _, new: self._seen(new))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def set_ready(self, pod: Pod, is_ready: bool, **status: Any) -> None:
        """Running, and ready or not, as of now; `status` adds fields by their JSON names."""
        now = rfc3339(self._client.clock.now_ns())
        value = "True" if is_ready else "False"
        conditions = [
            {"type": kind, "status": value, "lastTransitionTime": now}
            for kind in ("ContainersReady", "Ready")
        ]
        await self._write(pod, {"phase": "Running", "conditions": conditions, "startTime": now, **status})

    async def finish(self, pod: Pod, phase: str, **status: Any) -> None:
        """Succeeded or Failed: it will not run again."""
        conditions = [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]
        await self._write(pod, {"phase": phase, "conditions": conditions, **status})

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None:
            if uid not in self._stopping:
                self._stopping[uid] = None
                self._spawn(self._stop(pod))
        elif uid not in self._starting and pod.status.phase == "Pending" and self._may_start(pod):
            self._starting[uid] = None
            self._spawn(self._start(pod))

    def _may_start(self, pod: Pod) -> bool:
        return self._places or bool(pod.spec.node_name)

    async def _start(self, pod: Pod) -> None:
        named = named_nodes(pod.spec)
        if (self._nodes or named) and not pod.spec.node_name:
            node = named[0] if named else self._nodes[self._next_node % len(self._nodes)]
            self._next_node += 1
            await _unless_gone(self._client.bind(pod.metadata.name, pod.metadata.namespace, node))
        await self._client.clock.sleep(self.start_seconds)
        current = self.pods.get(pod.metadata.name, pod.metadata.namespace)
        if current is not None and current.metadata.uid == pod.metadata.uid and self.is_healthy(current):
            self.started.append(pod.metadata.name)
            await self.set_ready(pod, True)

    async def _stop(self, pod: Pod) -> None:
        await self._client.clock.sleep(self.stop_seconds)
        self.stopped.append(pod.metadata.name)
        meta = pod.metadata
        await _unless_gone(self._client.delete(Pod, meta.name, meta.namespace, grace_period=0, uid=meta.uid))

    async def _write(self, pod: Pod, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        name, namespace = pod.metadata.name, pod.metadata.namespace
        await _unless_gone(
            self._client.patch(Pod, name, body, namespace=namespace, subresource="status"),
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="fake kubelets")
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))


async def _unless_gone(request: Coroutine[Any, Any, object]) -> None:
    try:
        await request
    except ApiError as error:
        if error.code not in (404, 409, 422):
            raise
