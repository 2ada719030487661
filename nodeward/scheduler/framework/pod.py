"""A pod as the scheduler sees it: read once from the object, asked many times.

Everything a plugin may want is worked out when first asked for and kept. `signature` is equal for pods that differ in
nothing a scheduling decision could depend on: they share filter and score columns.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.codec import encode
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.volume import Volume
from nodeward.rules.host_ports import host_ports
from nodeward.rules.pod_resources import pod_requests

#: What a container that asks for nothing is taken to use when nodes are compared, as in Kubernetes.
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024


class PodView:
    """One version of one pod. Never changes; a changed pod is another view."""

    # What is worked out late is kept by hand: a cached_property takes a lock, which costs more than most of it.
    __slots__ = (
        "_host_ports",
        "_requests",
        "_signature",
        "key",
        "labels",
        "name",
        "namespace",
        "pod",
        "priority",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        self._requests: dict[str, int] | None = None
        self._host_ports: tuple[tuple[str, str, int], ...] | None = None
        self._signature: bytes | None = None
        self.pod: Final = pod
        self.uid: Final = pod.metadata.uid
        self.namespace: Final = pod.metadata.namespace
        self.name: Final = pod.metadata.name
        self.key: Final = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self.priority: Final = pod.spec.priority or 0
        self.labels: Final = pod.metadata.labels

    @property
    def requests(self) -> dict[str, int]:
        """What it asks for: cpu in millicores, everything else in whole units. Zero requests are left out."""
        found = self._requests
        if found is None:
            found = self._requests = _requests(self)
        return found

    @property
    def host_ports(self) -> tuple[tuple[str, str, int], ...]:
        """(address, protocol, port) it wants on its node."""
        found = self._host_ports
        if found is None:
            found = self._host_ports = host_ports(self.pod.spec)
        return found

    @property
    def signature(self) -> bytes:
        """Equal for pods that any plugin would treat alike on every node. The node it names is part of it."""
        found = self._signature
        if found is None:
            found = self._signature = _signature(self)
        return found

    def __repr__(self) -> str:
        return f"PodView({self.key})"


def _requests(view: PodView) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, quantity in pod_requests(view.pod).items():
        amount = quantity.milli_value if name == "cpu" else quantity.value
        if amount:
            found[name] = amount
    return found


def _signature(view: PodView) -> bytes:
    # As raw as can be: it is worked out for every pod, and most of it is left to the encoder.
    pod, spec = view.pod, view.pod.spec
    owners = pod.metadata.owner_references
    return encode(
        (
            view.namespace,
            view.labels,
            view.priority,
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
            [_of_volume(volume, view.name) for volume in spec.volumes],
            view.uid if spec.resource_claims else "",
            [(owner.kind, owner.uid) for owner in owners if owner.controller],
        )
    )


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
