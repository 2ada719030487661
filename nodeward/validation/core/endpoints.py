"""Endpoints, the older form of what stands behind a service."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from nodeward.base.fielderror import FieldError, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, dns_subdomain, port_number, qualified_name
from nodeward.validation.core.endpoints_addresses import validate_endpoint_ip
from nodeward.validation.core.service import PROTOCOLS
from nodeward.validation.core.service_warnings import endpoints_warnings
from nodeward.validation.meta.addresses import validate_ip
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import Validator


def _create(endpoints: Endpoints, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(endpoints.metadata, dns_subdomain, namespaced=True)
    return errors + _subsets(endpoints.subsets, ctx)


def _update(new: Endpoints, old: Endpoints, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_metadata(new.metadata, dns_subdomain, namespaced=True)
    # Subsets that were stored under older rules stay as they are.
    return errors if new.subsets == old.subsets else errors + _subsets(new.subsets, ctx)


def _subsets(subsets: list[EndpointSubset], ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, subset in enumerate(subsets):
        at = ROOT.child("subsets").index(i)
        if not subset.addresses and not subset.not_ready_addresses:
            errors.append(required(at, "must specify `addresses` or `notReadyAddresses`"))
        for j, address in enumerate(subset.addresses):
            errors += _address(address, at.child("addresses").index(j), ctx)
        for j, address in enumerate(subset.not_ready_addresses):
            errors += _address(address, at.child("notReadyAddresses").index(j), ctx)
        for j, port in enumerate(subset.ports):
            errors += _port(port, len(subset.ports) > 1, at.child("ports").index(j))
    return errors


def _address(address: EndpointAddress, path: FieldPath, ctx: Context) -> list[FieldError]:
    errors = validate_ip(address.ip, path.child("ip"), ctx)
    if address.hostname:
        errors += [invalid(path.child("hostname"), address.hostname, f) for f in dns_label(address.hostname)]
    if address.node_name is not None:
        at = path.child("nodeName")
        errors += [invalid(at, address.node_name, fault) for fault in dns_subdomain(address.node_name)]
    return errors + validate_endpoint_ip(address.ip, path.child("ip"))


def _port(port: EndpointPort, needs_name: bool, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.name:
        errors += [invalid(path.child("name"), port.name, fault) for fault in dns_label(port.name)]
    elif needs_name:
        errors.append(required(path.child("name")))
    errors += [invalid(path.child("port"), port.port, fault) for fault in port_number(port.port)]
    if not port.protocol:
        errors.append(required(path.child("protocol")))
    elif port.protocol not in PROTOCOLS:
        errors.append(not_supported(path.child("protocol"), port.protocol, PROTOCOLS))
    if port.app_protocol is not None:
        at = path.child("appProtocol")
        errors += [invalid(at, port.app_protocol, fault) for fault in qualified_name(port.app_protocol)]
    return errors


ENDPOINTS: Final = Validator(
    create=_create, update=_update, status=None, name=dns_subdomain, warnings=endpoints_warnings
)
