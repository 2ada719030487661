"""Endpoint slices: addresses of one family, where they are, and the ports they all have.

Endpoints stored under older rules may stay as they are. Missing or too many addresses and a wrong address type are
reported after all other faults, as Kubernetes does.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.discovery_v1 import Endpoint, EndpointHints, EndpointPort, EndpointSlice
from nodeward.base.fielderror import (
    FieldError,
    internal,
    invalid,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import (
    Distinct,
    Fields,
    Rule,
    both,
    check_choice,
    check_count,
    check_each,
    check_kept,
    check_label,
    check_label_value,
    check_present,
    check_qualified,
    check_subdomain,
    given,
    one_of,
)
from nodeward.validation.core.endpoints_addresses import (
    is_ipv6,
    validate_canonical_ip,
    validate_domain,
    validate_endpoint_ip,
)
from nodeward.validation.core.service import PROTOCOLS
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.addresses import validate_ip
from nodeward.validation.meta.labels import validate_labels

_LABELS_LIMIT: Final = 16
_ADDRESSES_LIMIT: Final = 100
_PORTS_LIMIT: Final = 20000
_ENDPOINTS_LIMIT: Final = 1000
_HINTS_LIMIT: Final = 8
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"
_PORTS: Final = ROOT.child("ports")
_ENDPOINTS: Final = ROOT.child("endpoints")


def _slice(new: EndpointSlice, old: EndpointSlice | None, ctx: Context) -> list[FieldError]:
    errors = check_count(new.ports, _PORTS, _PORTS_LIMIT) or _ports(new.ports)
    is_changed = old is None or new.endpoints != old.endpoints
    if is_changed:
        errors += _endpoints(new, ctx)
    at = ROOT.child("addressType")
    if old is None:
        errors += check_choice(new.address_type, at, ("FQDN", "IPv4", "IPv6"))
    else:
        errors += check_kept(new.address_type, old.address_type, at)
    return errors + check_each(new.endpoints, _ENDPOINTS, _address_count) if is_changed else errors


_PORT: Final = Fields(EndpointPort, protocol=both(given, one_of(*PROTOCOLS)), app_protocol=check_qualified)


def _ports(ports: list[EndpointPort]) -> list[FieldError]:
    errors: list[FieldError] = []
    names = Distinct()
    for i, port in enumerate(ports):
        at = _PORTS.index(i)
        name = port.name or ""
        errors += check_label(name or None, at.child("name"))
        errors += names.add(name, at.child("name")) + _PORT(port, at)
    return errors


def _endpoints(endpoints: EndpointSlice, ctx: Context) -> list[FieldError]:
    if errors := check_count(endpoints.endpoints, _ENDPOINTS, _ENDPOINTS_LIMIT):
        return errors
    for i, endpoint in enumerate(endpoints.endpoints):
        at = _ENDPOINTS.index(i)
        for j, address in enumerate(endpoint.addresses):
            errors += _address(address, endpoints.address_type, at.child("addresses"), j, ctx)
        errors += _endpoint(endpoint, at)
    return errors


def _address_count(endpoint: Endpoint, path: FieldPath) -> list[FieldError]:
    at = path.child("addresses")
    return check_present(endpoint.addresses, at) + check_count(endpoint.addresses, at, _ADDRESSES_LIMIT)


def _address(address: str, kind: str, path: FieldPath, position: int, ctx: Context) -> list[FieldError]:
    at = path.index(position)
    match kind:
        case "FQDN":
            return validate_domain(address, at)
        case "IPv4":
            if errors := validate_ip(address, at, ctx):
                return errors
        case "IPv6":
            if errors := validate_canonical_ip(address, at):
                return errors
        case _:
            return []
    errors = validate_endpoint_ip(address, at)
    if is_ipv6(address) != (kind == "IPv6"):
        errors.insert(0, invalid(path, address, f"must be an {kind} address"))
    return errors


def _endpoint(endpoint: Endpoint, path: FieldPath) -> list[FieldError]:
    errors = check_subdomain(endpoint.node_name, path.child("nodeName"))
    at = path.child("deprecatedTopology")
    errors += check_count(endpoint.deprecated_topology, at, _LABELS_LIMIT)
    errors += validate_labels(endpoint.deprecated_topology, at)
    if _ZONE_LABEL in endpoint.deprecated_topology:
        errors.append(internal(at.key(_ZONE_LABEL), "reserved key was not removed in conversion"))
    errors += check_label(endpoint.hostname, path.child("hostname"))
    return errors if endpoint.hints is None else errors + _hints(endpoint.hints, path.child("hints"))


def _hints(hints: EndpointHints, path: FieldPath) -> list[FieldError]:
    zones = [zone.name for zone in hints.for_zones]
    errors = _hint_names(zones, check_label_value, path.child("forZones"))
    if len(zones) > _HINTS_LIMIT:
        return errors
    nodes = [node.name for node in hints.for_nodes]
    return errors + _hint_names(nodes, check_subdomain, path.child("forNodes"))


def _hint_names(names: list[str], rule: Rule, path: FieldPath) -> list[FieldError]:
    seen = Distinct()
    return check_count(names, path, _HINTS_LIMIT) or check_each(
        names, path, lambda name, at: seen.add(name, at.child("name")) + rule(name, at.child("name"))
    )


ENDPOINT_SLICE: Final = kind(
    dns_subdomain, _slice, update=(changed, made(dns_subdomain, namespaced=True), _slice)
)
