"""A pod as the scheduler sees it: read once from the object, asked many times.

Everything a plugin may want is worked out when first asked for and kept. `signature` is equal for pods that differ in
nothing a scheduling decision could depend on: they share filter and score columns.
"""

from __future__ import annotations

import functools
from typing import Final

from nodeward.api.codec import encode
from nodeward.api.core_v1.pod import Pod
from nodeward.rules.pod_resources import pod_requests

#: What a container that asks for nothing is taken to use when nodes are compared, as in Kubernetes.
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024


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
        spec = self.pod.spec
        return encode(
            (
                self.namespace,
                self.labels,
                self.requests,
                self.priority,
                spec.scheduler_name,
                spec.node_name,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                self.host_ports,
                spec.preemption_policy,
                [container.image for container in (*spec.init_containers, *spec.containers)],
                # Declared features are inferred from the spec as a whole, without what differs in every replica.
                [
                    spec.restart_policy,
                    spec.host_users,
                    spec.host_network,
                    spec.resources,
                    [
                        container.restart_policy_rules
                        for container in (*spec.init_containers, *spec.containers)
                    ],
                    [container.resources for container in (*spec.init_containers, *spec.containers)],
                    [container.restart_policy for container in spec.init_containers],
                    [
                        mount.bind_mount_options
                        for container in (*spec.init_containers, *spec.containers)
                        for mount in container.volume_mounts
                        if mount.bind_mount_options
                    ],
                ],
                [
                    (volume.persistent_volume_claim, volume.ephemeral is not None, volume.csi)
                    for volume in spec.volumes
                    if volume.persistent_volume_claim or volume.ephemeral or volume.csi
                ],
                [volume.image.reference for volume in spec.volumes if volume.image is not None],
                # A volume of its own makes a pod unlike every other.
                self.name if any(volume.ephemeral for volume in spec.volumes) else "",
                spec.resource_claims and self.uid,
                [
                    (reference.kind, reference.uid)
                    for reference in self.pod.metadata.owner_references
                    if reference.controller
                ],
            )
        )

    def __repr__(self) -> str:
        return f"PodView({self.key})"
