"""Strategies of kinds that keep less than a client may send: references to secrets, topology of old endpoints.

Also CSI drivers, whose generation counts changes but has no first value.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from nodeward.api.core_v1.cluster import ServiceAccount
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.rules.names import dns_subdomain

_HOSTNAME: Final = "kubernetes.io/hostname"


class ServiceAccounts(Strategy):
    """Of a reference to a secret only the name is kept: it is in the account's own namespace."""

    answers_deleted: ClassVar[bool] = True

    def prepare_create(self, obj: ServiceAccount, env: Environment) -> None:
        super().prepare_create(obj, env)
        obj.secrets = [ObjectReference(name=secret.name) for secret in obj.secrets]

    def prepare_update(self, new: ServiceAccount, old: ServiceAccount, env: Environment) -> None:
        super().prepare_update(new, old, env)
        new.secrets = [ObjectReference(name=secret.name) for secret in new.secrets]


class EndpointSlices(Strategy):
    """`deprecatedTopology` is read only: a write drops it, and the node it named moves to `nodeName`."""

    counts_generations: ClassVar[bool] = True

    def prepare_create(self, obj: EndpointSlice, env: Environment) -> None:
        super().prepare_create(obj, env)
        _drop_topology(obj, set())

    def prepare_update(self, new: EndpointSlice, old: EndpointSlice, env: Environment) -> None:
        super().prepare_update(new, old, env)
        if new.endpoints != old.endpoints:
            _drop_topology(new, {each.deprecated_topology.get(_HOSTNAME, "") for each in old.endpoints})


def _drop_topology(endpoints: EndpointSlice, known: set[str]) -> None:
    """Drop the deprecated topology. `known`: the nodes that the topology of the stored object names."""
    for endpoint in endpoints.endpoints:
        name = endpoint.deprecated_topology.get(_HOSTNAME)
        if endpoint.node_name is None and name and name in known and not dns_subdomain(name):
            endpoint.node_name = name
        endpoint.deprecated_topology = {}


class CSIDrivers(Strategy):
    allows_unconditional_update: ClassVar[bool] = False
    answers_deleted: ClassVar[bool] = True

    def prepare_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_update(new, old, env)
        self.count_generation(new, old)
