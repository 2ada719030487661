"""A pod as the scheduler sees it: read once from the object, asked many times.

Everything a plugin may want is worked out when first asked for and kept. `signature` is equal for pods that differ in
nothing a scheduling decision could depend on: they share filter and score columns.
"""

from __future__ import annotations

import functools
import operator
from typing import Final

from nodeward.api.codec import encode
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.volume import Volume
from nodeward.rules.pod_resources import pod_requests

#: What a container that asks for nothing is taken to use when nodes are compared, as in Kubernetes.
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024

_ports: Final = operator.attrgetter("ports")


class PodView:
    """One version of one pod. Never changes; a changed pod is another view."""

    def __init__(self, pod: Pod) -> None:
        self.pod: Final = pod
        self.uid: Final = pod.metadata.uid
        self.namespace: Final = pod.metadata.namespace
        self.name: Final = pod.metadata.name
        self.key: Final = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self.priority: Final = pod.spec.priority or 0
        self.labels: Final = pod.metadata.labels

    @functools.cached_property
    def requests(self) -> dict[str, int]:
        """What it asks for: cpu in millicores, everything else in whole units. Zero requests are left out."""
        found: dict[str, int] = {}
        for name, quantity in pod_requests(self.pod).items():
            amount = quantity.milli_value if name == "cpu" else quantity.value
            if amount:
                found[name] = amount
        return found

    @functools.cached_property
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """(address, protocol, port) it wants on its node."""
        spec = self.pod.spec
        if not spec.init_containers and not any(map(_ports, spec.containers)):
            return ()
        containers = (*spec.containers, *(c for c in spec.init_containers if c.restart_policy == "Always"))
        return tuple(
            (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
            for container in containers
            for port in container.ports
            if port.host_port
        )

    @functools.cached_property
    def signature(self) -> bytes:
        """Equal for pods that any plugin would treat alike on every node. The node it names is part of it."""
        # As raw as can be: it is worked out for every pod, and most of it is left to the encoder.
        pod, spec = self.pod, self.pod.spec
        owners = pod.metadata.owner_references
        return encode(
            (
                self.namespace,
                self.labels,
                self.priority,
                spec.scheduler_name,
                spec.node_name,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.preemption_policy,
                spec.overhead,
                # Declared features are inferred from the spec as a whole, without what differs in every replica.
                spec.restart_policy,
                spec.host_users,
                spec.host_network,
                spec.resources,
                [_of_container(container) for container in spec.containers],
                [_of_container(container) for container in spec.init_containers],
                [_of_volume(volume, self.name) for volume in spec.volumes],
                self.uid if spec.resource_claims else "",
                [(owner.kind, owner.uid) for owner in owners if owner.controller],
            )
        )

    def __repr__(self) -> str:
        return f"PodView({self.key})"


def _of_container(container: Container) -> tuple[object, ...]:
    ports, mounts = container.ports, container.volume_mounts
    return (
        container.image,
        container.resources,
        container.restart_policy,
        container.restart_policy_rules,
        ports and [(port.host_ip, port.protocol, port.host_port) for port in ports if port.host_port],
        mounts and [mount.bind_mount_options for mount in mounts if mount.bind_mount_options],
    )


def _of_volume(volume: Volume, pod: str) -> object:
    """What of a volume has a say in where its pod goes; None of those that every node can give."""
    if volume.projected is not None or volume.config_map is not None or volume.secret is not None:
        return None
    return (
        volume.persistent_volume_claim,
        volume.csi,
        volume.image and volume.image.reference,
        volume.gce_persistent_disk,
        volume.aws_elastic_block_store,
        volume.iscsi,
        volume.rbd,
        # A volume of its own makes a pod unlike every other.
        volume.ephemeral and pod,
    )
