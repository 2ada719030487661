"""From a pool to its nodes: one model that all share, and for each what only it has.

Names are `<pool>-<number>`; addresses and ids are made from the pool's place and the node's number, so that the same
description gives the same nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from nodeward.base.quantity import Quantity
from nodeward.cluster.description import ZONE_LABEL, Pool
from nodeward.kubelet.cpu.topology import MOST_DESCRIBED_CPUS, CPUDescription
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.interface import Runtime

#: What a node has unless its pool says otherwise.
USUAL_CAPACITY: Final[Mapping[str, Quantity]] = MappingProxyType(
    {
        "cpu": Quantity.parse("8"),
        "memory": Quantity.parse("32Gi"),
        "ephemeral-storage": Quantity.parse("100Gi"),
    }
)


def machine_of(pool: Pool) -> CPUDescription:
    """The machine of a pool's nodes: as described, or with as many single cores as the capacity says."""
    if pool.cpus is not None:
        return pool.cpus
    # Part of a CPU cannot be pinned, and no machine has none.
    capacity = {**USUAL_CAPACITY, **pool.capacity}
    whole = min(max(capacity["cpu"].milli_value // 1000, 1), MOST_DESCRIBED_CPUS)
    return CPUDescription(cores_per_numa=whole)


def models(pool: Pool, runtime: Runtime, *, endpoint_port: int = 0) -> tuple[NodeModel, ...]:
    """The models of a pool whose containers this runtime has: one for each of its zones, or one."""
    settings = pool.kubelet_settings()
    if pool.taints:
        settings = replace(settings, taints=(*settings.taints, *pool.taints))
    capacity = MappingProxyType({**USUAL_CAPACITY, **pool.capacity})
    if pool.cpus is not None:
        capacity = MappingProxyType({**capacity, "cpu": Quantity.of_int(pool.cpus.cpus)})
    topology = machine_of(pool).topology()
    pods = pool.capacity.get("pods")
    if pods is not None:
        settings = replace(settings, max_pods=pods.value)
        capacity = MappingProxyType({name: each for name, each in capacity.items() if name != "pods"})
    return tuple(
        NodeModel(
            settings=settings,
            kubelet_version=f"v{pool.version}.0",
            labels=MappingProxyType({**pool.labels, **({ZONE_LABEL: zone} if zone else {})}),
            capacity=capacity,
            cpus=topology,
            drivers=pool.drivers,
            kernel_version="6.1.0",
            os_image="Nodeward (simulated)" if pool.runtime == "sim" else "Nodeward",
            runtime_version=runtime.version,
            abilities=runtime.abilities,
            endpoint_port=endpoint_port,
        )
        for zone in pool.zones or ("",)
    )


def specification(
    pool: Pool, shared: tuple[NodeModel, ...], place: int, number: int, boots: int = 0
) -> NodeSpecification:
    """One node of a pool; `place` is the pool's number among the pools, and part of the addresses."""
    name = node_name(pool, number)
    ids = hashlib.sha256(name.encode()).hexdigest()
    boot = hashlib.sha256(f"{name}/{boots}".encode()).hexdigest() if boots else ids[32:]
    return NodeSpecification(
        name,
        shared[number % len(shared)],
        addresses=(f"10.{128 + place % 64}.{number >> 8 & 255}.{number & 255}",),
        machine_id=ids[:32],
        system_uuid=_uuid(ids[:32]),
        boot_id=_uuid(boot),
    )


def node_name(pool: Pool, number: int) -> str:
    return f"{pool.name}-{number}"


def _uuid(text: str) -> str:
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"
