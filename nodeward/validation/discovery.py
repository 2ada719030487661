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
    duplicate,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain, label_value, qualified_name
from nodeward.validation.checks import (
    check_count,
    check_form,
    check_kept,
    check_label,
    check_subdomain,
)
from nodeward.validation.core.endpoints_addresses import (
    is_ipv6,
    validate_canonical_ip,
    validate_domain,
    validate_endpoint_ip,
)
from nodeward.validation.core.service import PROTOCOLS
from nodeward.validation.meta.addresses import validate_ip
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import NameRule, Validator

_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_LABELS_LIMIT: Final = 16
_ADDRESSES_LIMIT: Final = 100
_PORTS_LIMIT: Final = 20000
_ENDPOINTS_LIMIT: Final = 1000
_HINTS_LIMIT: Final = 8
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"


def _create(endpoints: EndpointSlice, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(endpoints.metadata, dns_subdomain, namespaced=True)
    errors += _ports(endpoints.ports)
    errors += _endpoints(endpoints, ctx)
    return errors + _address_type(endpoints.address_type) + _address_counts(endpoints.endpoints)


def _update(new: EndpointSlice, old: EndpointSlice, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_metadata(new.metadata, dns_subdomain, namespaced=True)
    errors += _ports(new.ports)
    unchanged = new.endpoints == old.endpoints
    if not unchanged:
        errors += _endpoints(new, ctx)
    errors += check_kept(new.address_type, old.address_type, ROOT.child("addressType"))
    return errors if unchanged else errors + _address_counts(new.endpoints)


def _address_type(address_type: str) -> list[FieldError]:
    at = ROOT.child("addressType")
    if not address_type:
        return [required(at)]
    return [] if address_type in _TYPES else [not_supported(at, address_type, _TYPES)]


def _ports(ports: list[EndpointPort]) -> list[FieldError]:
    path = ROOT.child("ports")
    if len(ports) > _PORTS_LIMIT:
        return [too_many(path, len(ports), _PORTS_LIMIT)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for i, port in enumerate(ports):
        at = path.index(i)
        name = port.name or ""
        errors += check_label(name or None, at.child("name"))
        if name in names:
            errors.append(duplicate(at.child("name"), name))
        names.add(name)
        if port.protocol is None:
            errors.append(required(at.child("protocol")))
        elif port.protocol not in PROTOCOLS:
            errors.append(not_supported(at.child("protocol"), port.protocol, PROTOCOLS))
        if port.app_protocol is not None:
            faults = qualified_name(port.app_protocol)
            errors += [invalid(at.child("appProtocol"), port.app_protocol, fault) for fault in faults]
    return errors


def _endpoints(endpoints: EndpointSlice, ctx: Context) -> list[FieldError]:
    path = ROOT.child("endpoints")
    if len(endpoints.endpoints) > _ENDPOINTS_LIMIT:
        return [too_many(path, len(endpoints.endpoints), _ENDPOINTS_LIMIT)]
    errors: list[FieldError] = []
    for i, endpoint in enumerate(endpoints.endpoints):
        at = path.index(i)
        for j, address in enumerate(endpoint.addresses):
            errors += _address(address, endpoints.address_type, at.child("addresses"), j, ctx)
        errors += _endpoint(endpoint, at)
    return errors


def _address_counts(endpoints: list[Endpoint]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, endpoint in enumerate(endpoints):
        at = ROOT.child("endpoints").index(i).child("addresses")
        if not endpoint.addresses:
            errors.append(required(at))
        elif len(endpoint.addresses) > _ADDRESSES_LIMIT:
            errors.append(too_many(at, len(endpoint.addresses), _ADDRESSES_LIMIT))
    return errors


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
    errors = _hint_names(zones, label_value, path.child("forZones"))
    if len(zones) > _HINTS_LIMIT:
        return errors
    return errors + _hint_names(
        [node.name for node in hints.for_nodes], dns_subdomain, path.child("forNodes")
    )


def _hint_names(names: list[str], rule: NameRule, path: FieldPath) -> list[FieldError]:
    if len(names) > _HINTS_LIMIT:
        return [too_many(path, len(names), _HINTS_LIMIT)]
    errors: list[FieldError] = []
    for i, name in enumerate(names):
        at = path.index(i).child("name")
        if name in names[:i]:
            errors.append(duplicate(at, name))
        errors += check_form(name, at, rule)
    return errors


ENDPOINT_SLICE: Final = Validator(create=_create, update=_update, status=None, name=dns_subdomain)
