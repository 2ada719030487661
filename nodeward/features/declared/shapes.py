"""The few fields of pods, nodes and claims that declared features look at, as protocols.

The typed objects of the API fit without being imported here, and so does whatever an outside program has, as long as
it names the fields as Kubernetes does, in snake case. Everything is read, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class VolumeMount(Protocol):
    @property
    def bind_mount_options(self) -> Sequence[str]: ...


class RestartRule(Protocol):
    @property
    def action(self) -> str: ...


class Container(Protocol):
    """A container, an init container or an ephemeral container."""

    @property
    def restart_policy(self) -> str | None: ...
    @property
    def restart_policy_rules(self) -> Sequence[RestartRule]: ...
    @property
    def resources(self) -> object: ...
    @property
    def volume_mounts(self) -> Sequence[VolumeMount]: ...


class EmptyDir(Protocol):
    @property
    def medium(self) -> str: ...
    @property
    def size_limit(self) -> object: ...


class Volume(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def empty_dir(self) -> EmptyDir | None: ...


class PodSpec(Protocol):
    @property
    def containers(self) -> Sequence[Container]: ...
    @property
    def init_containers(self) -> Sequence[Container]: ...
    @property
    def ephemeral_containers(self) -> Sequence[Container]: ...
    @property
    def volumes(self) -> Sequence[Volume]: ...
    @property
    def host_network(self) -> bool: ...
    @property
    def host_users(self) -> bool | None: ...
    @property
    def resources(self) -> object: ...


class DeviceResult(Protocol):
    @property
    def skip_node_operations(self) -> bool | Sequence[str] | None: ...


class Devices(Protocol):
    @property
    def results(self) -> Sequence[DeviceResult]: ...


class Allocation(Protocol):
    @property
    def devices(self) -> Devices: ...


class ClaimStatus(Protocol):
    @property
    def allocation(self) -> Allocation | None: ...


class ResourceClaim(Protocol):
    @property
    def status(self) -> ClaimStatus: ...


class NodeStatus(Protocol):
    @property
    def declared_features(self) -> Sequence[str]: ...


class Node(Protocol):
    @property
    def status(self) -> NodeStatus: ...


class FeatureGates(Protocol):
    """Feature gates: `nodeward.features.Gates`, or anything that answers the same question."""

    def enabled(self, name: str) -> bool: ...
