"""The few fields of pods, nodes and claims that declared features look at, as protocols.

The typed objects of the API fit without being imported here, and so does whatever an outside program has, as long as
it names the fields as Kubernetes does, in snake case. Everything is read, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class AnyVolumeMount(Protocol):
    @property
    def bind_mount_options(self) -> Sequence[str]: ...


class AnyRestartRule(Protocol):
    @property
    def action(self) -> str: ...


class AnyContainer(Protocol):
    """A container, an init container or an ephemeral container."""

    @property
    def restart_policy(self) -> str | None: ...
    @property
    def restart_policy_rules(self) -> Sequence[AnyRestartRule]: ...
    @property
    def resources(self) -> object: ...
    @property
    def volume_mounts(self) -> Sequence[AnyVolumeMount]: ...


class AnyEmptyDir(Protocol):
    @property
    def medium(self) -> str: ...
    @property
    def size_limit(self) -> object: ...


class AnyVolume(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def empty_dir(self) -> AnyEmptyDir | None: ...


class AnyPodSpec(Protocol):
    @property
    def containers(self) -> Sequence[AnyContainer]: ...
    @property
    def init_containers(self) -> Sequence[AnyContainer]: ...
    @property
    def ephemeral_containers(self) -> Sequence[AnyContainer]: ...
    @property
    def volumes(self) -> Sequence[AnyVolume]: ...
    @property
    def host_network(self) -> bool: ...
    @property
    def host_users(self) -> bool | None: ...
    @property
    def resources(self) -> object: ...


class AnyDeviceResult(Protocol):
    @property
    def skip_node_operations(self) -> bool | Sequence[str] | None: ...


class AnyDevices(Protocol):
    @property
    def results(self) -> Sequence[AnyDeviceResult]: ...


class AnyAllocation(Protocol):
    @property
    def devices(self) -> AnyDevices: ...


class AnyClaimStatus(Protocol):
    @property
    def allocation(self) -> AnyAllocation | None: ...


class AnyResourceClaim(Protocol):
    @property
    def status(self) -> AnyClaimStatus: ...


class AnyNodeStatus(Protocol):
    @property
    def declared_features(self) -> Sequence[str]: ...


class AnyNode(Protocol):
    @property
    def status(self) -> AnyNodeStatus: ...


class AnyGates(Protocol):
    """Feature gates: `nodeward.features.Gates`, or anything that answers the same question."""

    def enabled(self, name: str) -> bool: ...
