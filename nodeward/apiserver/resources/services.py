"""The strategy of services: allocates cluster IPs and node ports, never the same one twice.

What is in use is read from the cache. Addresses and ports allocated by a write in progress are kept until it is
finished: then they are in the cache, or, if the write was refused or a dry run, free again.
"""

from __future__ import annotations

import ipaddress
from typing import ClassVar

import msgspec

from nodeward.api.core_v1.service import (
    LoadBalancerStatus,
    Service,
    ServiceStatus,
    is_externally_accessible,
    needs_health_check,
)
from nodeward.api.errors import internal_error, invalid
from nodeward.api.scheme import Kind
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.base.fielderror import invalid as invalid_field
from nodeward.base.fieldpath import ROOT

_SPEC = ROOT.child("spec")
_DUAL_STACK = "RequireDualStack"


class Services(Strategy):
    answers_deleted: ClassVar[bool] = True
    creates_on_update: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("spec.clusterIP", "spec.type")

    def __init__(self, kind: Kind, served: Kind | None = None) -> None:
        super().__init__(kind, served)
        #: addresses and ports allocated by writes in progress -> the service's uid
        self._promised_ips: dict[str, str] = {}
        self._promised_ports: dict[int, str] = {}

    def finish_write(self, obj: Service) -> None:
        uid = obj.metadata.uid
        self._promised_ips = {ip: who for ip, who in self._promised_ips.items() if who != uid}
        self._promised_ports = {port: who for port, who in self._promised_ports.items() if who != uid}

    def prepare_create(self, obj: Service, env: Environment) -> None:
        obj.status = ServiceStatus()
        self._allocate(obj, None, env)

    def prepare_update(self, new: Service, old: Service, env: Environment) -> None:
        new.status = old.status
        if new.spec.type != "ExternalName" and old.spec.type != "ExternalName" and not new.spec.cluster_ip:
            new.spec.cluster_ip, new.spec.cluster_ips = old.spec.cluster_ip, old.spec.cluster_ips
        if new.spec.type != "ExternalName":
            new.spec.ip_families = new.spec.ip_families or old.spec.ip_families
            new.spec.ip_family_policy = new.spec.ip_family_policy or old.spec.ip_family_policy
        self._keep_ports(new, old)
        _drop_what_the_type_lost(new, old)
        self._allocate(new, old, env)

    def _keep_ports(self, new: Service, old: Service) -> None:
        """Keep the node port of a port that names none, by the port's name, unless another port took it."""
        if not _may_have_ports(new) or not _may_have_ports(old):
            return
        held = {port.name: port.node_port for port in old.spec.ports}
        taken = _node_ports(new) & _node_ports(old)
        for port in new.spec.ports:
            known = held.get(port.name, 0)
            if not port.node_port and known not in taken:
                port.node_port = known

    def _allocate(self, obj: Service, old: Service | None, env: Environment) -> None:
        spec = obj.spec
        if spec.type == "ExternalName":
            spec.internal_traffic_policy = None
            return
        if spec.ip_family_policy is None and spec.cluster_ip == "None" and not spec.selector:
            spec.ip_family_policy = _DUAL_STACK  # nobody but their owner knows where its endpoints are
            spec.ip_families = spec.ip_families or ["IPv4", "IPv6"]
        elif spec.ip_family_policy == _DUAL_STACK and not (spec.cluster_ip == "None" and not spec.selector):
            detail = "this cluster is not configured for dual-stack services"
            fault = invalid_field(_SPEC.child("ipFamilyPolicy"), spec.ip_family_policy, detail)
            raise invalid("", "Service", obj.metadata.name, [fault])
        services = env.peek_all(Service)
        if spec.cluster_ip != "None":
            self._allocate_ip(obj, old, services, env)
        if spec.cluster_ip and not spec.cluster_ips:
            spec.cluster_ips = [spec.cluster_ip]
        spec.ip_families = spec.ip_families or [_family(spec.cluster_ip, env)]
        spec.ip_family_policy = spec.ip_family_policy or "SingleStack"
        if _wants_ports(obj):
            self._allocate_ports(obj, old, services, env)
        if needs_health_check(spec):
            self._allocate_health_port(obj, old, services, env)

    def _allocate_ip(
        self, obj: Service, old: Service | None, services: list[Service], env: Environment
    ) -> None:
        spec = obj.spec
        if old is not None and spec.cluster_ip == old.spec.cluster_ip and spec.cluster_ip:
            return
        used = {ip: service.metadata.uid for service in services for ip in service.spec.cluster_ips}
        used = {**self._promised_ips, **used}
        network = ipaddress.ip_network(env.service_cidr)
        if spec.cluster_ip:
            self._check_ip(obj, network, used)
        else:
            spec.cluster_ip = _free_ip(network, used, env)
        self._promised_ips[spec.cluster_ip] = obj.metadata.uid

    def _check_ip(
        self, obj: Service, network: ipaddress.IPv4Network | ipaddress.IPv6Network, used: dict[str, str]
    ) -> None:
        wanted = obj.spec.cluster_ip
        where = _SPEC.child("clusterIPs")
        try:
            address = ipaddress.ip_address(wanted)
        except ValueError:
            return  # validation says what is wrong with it
        if address not in network:
            detail = (
                f"failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the valid range. "
                f"The range of valid IPs is {network}"
            )
            raise invalid("", "Service", obj.metadata.name, [invalid_field(where, [wanted], detail)])
        if used.get(wanted, obj.metadata.uid) != obj.metadata.uid:
            detail = f"failed to allocate IP {wanted}: provided IP is already allocated"
            raise invalid("", "Service", obj.metadata.name, [invalid_field(where, [wanted], detail)])

    def _allocate_health_port(
        self, obj: Service, old: Service | None, services: list[Service], env: Environment
    ) -> None:
        """Allocate the port on which load balancers ask a node whether it has local endpoints."""
        spec = obj.spec
        if not spec.health_check_node_port and old is not None:
            spec.health_check_node_port = old.spec.health_check_node_port
        if not spec.health_check_node_port:
            used = {**self._promised_ports, **_ports_in_use(services)}
            spec.health_check_node_port = _free_port(*env.node_ports, used, env)
            self._promised_ports[spec.health_check_node_port] = obj.metadata.uid

    def _allocate_ports(
        self, obj: Service, old: Service | None, services: list[Service], env: Environment
    ) -> None:
        uid = obj.metadata.uid
        used = {**self._promised_ports, **_ports_in_use(services)}
        low, high = env.node_ports
        for position, port in enumerate(obj.spec.ports):
            where = _SPEC.child("ports").index(position).child("nodePort")
            if not port.node_port:
                port.node_port = _free_port(low, high, used, env)
            elif not low <= port.node_port <= high:
                detail = f"provided port is not in the valid range. The range of valid ports is {low}-{high}"
                raise invalid(
                    "", "Service", obj.metadata.name, [invalid_field(where, port.node_port, detail)]
                )
            elif used.get(port.node_port, uid) != uid:
                detail = "provided port is already allocated"
                raise invalid(
                    "", "Service", obj.metadata.name, [invalid_field(where, port.node_port, detail)]
                )
            used[port.node_port] = uid
            self._promised_ports[port.node_port] = uid


def _ports_in_use(services: list[Service]) -> dict[int, str]:
    used = {port.node_port: item.metadata.uid for item in services for port in item.spec.ports}
    checks = {item.spec.health_check_node_port: item.metadata.uid for item in services}
    return {port: uid for port, uid in {**used, **checks}.items() if port}


def _drop_what_the_type_lost(new: Service, old: Service) -> None:
    """Drop fields that only the old type has, unless the caller changed them as well."""
    mine, theirs = new.spec, old.spec
    if theirs.type != "ExternalName" and mine.type == "ExternalName":
        if (mine.cluster_ip, mine.cluster_ips) == (theirs.cluster_ip, theirs.cluster_ips):
            mine.cluster_ip, mine.cluster_ips = "", []
        if mine.ip_families == theirs.ip_families:
            mine.ip_families = []
        if mine.ip_family_policy == theirs.ip_family_policy:
            mine.ip_family_policy = None
    if _may_have_ports(old) and not _may_have_ports(new) and _node_ports(new) <= _node_ports(old):
        for port in mine.ports:
            port.node_port = 0
    keeps_check = mine.health_check_node_port != theirs.health_check_node_port
    if needs_health_check(theirs) and not needs_health_check(mine) and not keeps_check:
        mine.health_check_node_port = 0
    if theirs.type == "LoadBalancer" and mine.type != "LoadBalancer":
        if mine.allocate_load_balancer_node_ports == theirs.allocate_load_balancer_node_ports:
            mine.allocate_load_balancer_node_ports = None
        if mine.load_balancer_class == theirs.load_balancer_class:
            mine.load_balancer_class = None
    keeps_policy = mine.external_traffic_policy != theirs.external_traffic_policy
    if is_externally_accessible(theirs) and not is_externally_accessible(mine) and not keeps_policy:
        mine.external_traffic_policy = ""
    if mine.type != "LoadBalancer" and new.status.load_balancer != LoadBalancerStatus():
        new.status = msgspec.structs.replace(new.status, load_balancer=LoadBalancerStatus())


def _may_have_ports(service: Service) -> bool:
    return service.spec.type in ("NodePort", "LoadBalancer")


def _node_ports(service: Service) -> set[int]:
    return {port.node_port for port in service.spec.ports if port.node_port}


def _wants_ports(service: Service) -> bool:
    spec = service.spec
    return spec.type == "NodePort" or (
        spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is not False
    )


def _family(ip: str, env: Environment) -> str:
    text = ip if ip not in ("", "None") else env.service_cidr.partition("/")[0]
    return "IPv6" if ":" in text else "IPv4"


def _free_ip(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network, used: dict[str, str], env: Environment
) -> str:
    size = min(network.num_addresses - 2, 1 << 20)
    start = env.chance.randrange(size)
    for step in range(size):
        candidate = str(network[1 + (start + step) % size])
        if candidate not in used:
            return candidate
    raise internal_error("failed to allocate a serviceIP: range is full")


def _free_port(low: int, high: int, used: dict[int, str], env: Environment) -> int:
    size = high - low + 1
    start = env.chance.randrange(size)
    for step in range(size):
        candidate = low + (start + step) % size
        if candidate not in used:
            return candidate
    raise internal_error("failed to allocate a nodePort: range is full")
