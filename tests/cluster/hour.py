"""An hour of a 100-node cluster in virtual time, as a program: prints a digest of what happened, and what it cost.

Everything takes part: API server, scheduler, controllers, two pools; a Deployment is created, and one pool upgraded.
The digest is over every write there was, so that two runs that differ anywhere differ here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from dataclasses import replace

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.cluster.whole import deployment

HOUR = 3600
BLUE = Pool(name="blue", nodes=60, version="1.35", zones=("a", "b", "c"))
GREEN = Pool(name="green", nodes=40)


class Trace:
    """Every write, as it goes into the store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._digest = hashlib.sha256()
        self.writes = 0

    async def follow(self) -> None:
        watch = self._store.watch("/registry/", after=0)
        try:
            async for batch in watch:
                for event in batch:
                    self.writes += 1
                    self._digest.update(f"{event.revision} {event.key}\n".encode())
                    self._digest.update(event.value or b"-")
        finally:
            await watch.aclose()

    @property
    def text(self) -> str:
        return self._digest.hexdigest()


async def main(clock: VirtualClock) -> None:
    store = MemoryStore()
    await store.open()
    trace = Trace(store)
    following = asyncio.create_task(trace.follow())
    cluster = Cluster(ClusterDescription(pools=(BLUE, GREEN)), store, clock, SeededChance(5))
    began_ns, cpu = clock.monotonic_ns(), time.process_time()
    await cluster.start()
    client = cluster.client("test")
    await clock.sleep(60)
    await client.create(deployment("web", 50))
    await clock.sleep(HOUR // 2)
    await cluster.change_pool(replace(BLUE, version="1.36", pause_ns=20 * SECOND_NS))
    await clock.sleep(HOUR - (clock.monotonic_ns() - began_ns) / SECOND_NS)
    pods = (await client.list(Pod, "default")).items
    nodes = (await client.list(Node)).items
    sys.stdout.write(
        json.dumps(
            {
                "digest": trace.text,
                "writes": trace.writes,
                "running": sum(pod.status.phase == "Running" for pod in pods),
                "versions": sorted({node.status.node_info.kubelet_version for node in nodes}),
                "cpu": time.process_time() - cpu,
            }
        )
    )
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await cluster.stop()


if __name__ == "__main__":
    run_virtual(main)
    sys.exit(0)
