"""Endpoints, the older form of what stands behind a service."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from nodeward.base.fielderror import FieldError, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import check_choice, check_label, check_port, check_qualified, check_subdomain
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
    errors += check_label(address.hostname or None, path.child("hostname"))
    errors += check_subdomain(address.node_name, path.child("nodeName"))
    return errors + validate_endpoint_ip(address.ip, path.child("ip"))


def _port(port: EndpointPort, needs_name: bool, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.name:
        errors += check_label(port.name, path.child("name"))
    elif needs_name:
        errors.append(required(path.child("name")))
    errors += check_port(port.port, path.child("port"))
    errors += check_choice(port.protocol, path.child("protocol"), PROTOCOLS)
    return errors + check_qualified(port.app_protocol, path.child("appProtocol"))


ENDPOINTS: Final = Validator(
    create=_create, update=_update, status=None, name=dns_subdomain, warnings=endpoints_warnings
)
