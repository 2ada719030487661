"""Endpoints, the older form of what stands behind a service."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from nodeward.base.fielderror import FieldError, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.checks import (
    Fields,
    check_label,
    check_port,
    check_qualified,
    check_subdomain,
    choice,
    named,
    unless_empty,
)
from nodeward.validation.core.endpoints_addresses import validate_endpoint_ip
from nodeward.validation.core.service import PROTOCOLS
from nodeward.validation.core.service_warnings import endpoints_warnings
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.addresses import validate_ip


def _endpoints(new: Endpoints, old: Endpoints | None, ctx: Context) -> list[FieldError]:
    # Subsets that were stored under older rules stay as they are.
    return [] if old is not None and new.subsets == old.subsets else _subsets(new.subsets, ctx)


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


_PORT: Final = Fields(
    EndpointPort, port=check_port, protocol=choice(*PROTOCOLS), app_protocol=check_qualified
)


def _port(port: EndpointPort, needs_name: bool, path: FieldPath) -> list[FieldError]:
    check = named(dns_label) if needs_name else unless_empty(check_label)
    return check(port.name, path.child("name")) + _PORT(port, path)


ENDPOINTS: Final = kind(
    dns_subdomain,
    _endpoints,
    update=(changed, made(dns_subdomain, namespaced=True), _endpoints),
    warnings=endpoints_warnings,
)
