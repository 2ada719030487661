"""The `devices` part of the benchmark: pods with a ResourceClaim each, from create to allocated and bound (DRA).

API server, scheduler and the ResourceClaim controller in this process, on a store in memory. A pod names a template; a
claim is generated for it, allocated, reserved and protected before the pod is bound: six writes for a pod. Beside
that, the allocator alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from nodeward.apiserver.server import Settings
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.bench.figures import ClusterSize, Figure, Spent, cpu_seconds
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription
from nodeward.features import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.machinery.garbage_collection import settle_garbage_collector
from nodeward.machinery.informer import InformerFactory
from nodeward.rules.devices.allocator import Allocated, PodAllocator
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import Inventory
from nodeward.rules.devices.search import SearchBudget
from nodeward.scheduler.plugins.dra.cel_expressions import CelDeviceExpressions
from nodeward.store.memory import MemoryStore

AIM: Final = 300
DRIVER: Final = "gpu.example.com"
#: Devices of a node: as many as pods on average.
DEVICES: Final = 10
#: Creates under way at the same time.
AT_ONCE: Final = 64
ROUNDS: Final = 2000


async def devices_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures, for half as many pods as asked for, and as many nodes as these fill."""
    clock = RealClock()
    count = max(cluster.pods // 2, 1)
    nodes = max(count // DEVICES, 1)
    size = f"{count:,} pods, {nodes:,} nodes with {DEVICES} devices; in process, store in memory"
    async with _cluster(clock) as client:
        plain = await _bound(client, clock, nodes, (_pod(f"plain-{n}") for n in range(count)), count)
        yield Figure("devices/plain", plain.rate, "pods/s", f"no claims, no slices; {size}")
    async with _cluster(clock) as client:
        await _publish(client, nodes)
        beside = await _bound(client, clock, nodes, (_pod(f"plain-{n}") for n in range(count)), count)
        yield Figure(
            "devices/plain-beside", beside.rate, "pods/s", f"aim devices/plain; slices exist; {size}"
        )
    async with _cluster(clock) as client:
        await _publish(client, nodes)
        claimed = await _bound(
            client, clock, nodes, (_pod(f"p-{n}", claims=True) for n in range(count)), count
        )
        claims = await client.list(ResourceClaim, "default")
        given = {
            (result.pool, result.device)
            for claim in claims.items
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
        }
        invariant(len(given) == count, f"{count} claims hold {len(given)} devices")
        told = f"aim {AIM}; a generated claim each, create to bound; {size}"
        yield Figure("devices/claims", claimed.rate, "pods/s", told)
        yield Figure("devices/claims-cpu", claimed.cpu_rate, "pods/s", "the same per second of CPU time")
    yield Figure(
        "devices/allocate", _allocations(clock), "us", f"one claim on a node with {DEVICES} devices, 9 taken"
    )


@asynccontextmanager
async def _cluster(clock: RealClock) -> AsyncIterator[Client]:
    settings = Settings(disable_admission=("ServiceAccount", "TaintNodesByCondition"))
    description = ClusterDescription(controllers=("resourceclaim",))
    cluster = Cluster(description, MemoryStore(), clock, RealChance(), settings)
    await cluster.start()
    try:
        yield cluster.client("bench")
    finally:
        await cluster.stop()


async def _bound(client: Client, clock: RealClock, nodes: int, pods: Iterator[Pod], count: int) -> Spent:
    """Create nodes, then pods; return what it took from the first create to the last bind."""
    for number in range(nodes):
        await client.create(_node(number))
    seen, done = [0], asyncio.Event()

    def bound(_: object) -> None:
        seen[0] += 1
        if seen[0] == count:
            done.set()

    informers = InformerFactory(client, RealChance())
    informers.informer(Pod, field_selector="spec.nodeName!=").add_handler(bound)
    watching = asyncio.create_task(informers.run())
    await informers.wait_synced()
    # As `nodeward up` does.
    settle_garbage_collector()
    started, cpu = clock.monotonic_ns(), cpu_seconds()

    async def create() -> None:
        for pod in pods:
            await client.create(pod)

    await asyncio.gather(*(create() for _ in range(AT_ONCE)))
    await done.wait()
    seconds = (clock.monotonic_ns() - started) / SECOND_NS
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return Spent(count, seconds, cpu_seconds() - cpu)


async def _publish(client: Client, nodes: int) -> None:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await client.create(
        from_tree({"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}, DeviceClass)
    )
    spec = {"spec": {"devices": {"requests": [_request()]}}}
    metadata = {"name": "gpu", "namespace": "default"}
    await client.create(from_tree({"metadata": metadata, "spec": spec}, ResourceClaimTemplate))
    for number in range(nodes):
        await client.create(_slice(number))


def _request() -> dict[str, Any]:
    return {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}


def _slice(number: int) -> ResourceSlice:
    devices = [
        {
            "name": f"gpu-{each}",
            "attributes": {"model": {"string": "a"}},
            "capacity": {"memory": {"value": "40Gi"}},
        }
        for each in range(DEVICES)
    ]
    name = f"node-{number}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return from_tree({"metadata": {"name": f"{name}-gpus"}, "spec": spec}, ResourceSlice)


def _node(number: int) -> Node:
    status = {
        "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return from_tree({"metadata": {"name": f"node-{number}"}, "status": status}, Node)


def _pod(name: str, *, claims: bool = False) -> Pod:
    resources = {"requests": {"cpu": "100m", "memory": "100Mi"}}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "image", "resources": resources}]}
    if claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return from_tree({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)


def _allocations(clock: RealClock) -> float:
    """Return what one allocation takes, in microseconds; the fastest of many counts."""
    features = AllocatorFeatures.of(Gates.of("1.37"))
    class_ = from_tree({"metadata": {"name": "gpu"}}, DeviceClass)
    claim = from_tree(
        {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [_request()]}}}, ResourceClaim
    )
    inventory = Inventory.of([_slice(0)], features)
    node, in_use = _node(0), DevicesInUse()
    best = 1 << 62
    expressions = CelDeviceExpressions()
    for number in range(ROUNDS):
        started = clock.monotonic_ns()
        allocator = PodAllocator(
            [claim],
            inventory=inventory,
            in_use=in_use,
            classes=lambda _: class_,
            expressions=expressions,
            features=features,
        )
        answer = allocator.allocate(node, SearchBudget(1000), str)
        spent = clock.monotonic_ns() - started
        invariant(isinstance(answer, Allocated), "the node has a device left")
        if isinstance(answer, Allocated) and number < DEVICES - 1:
            in_use.add(answer.results[0].devices.results)
        else:
            best = min(best, spent)
    return best / 1e3
