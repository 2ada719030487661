"""Services: ports, types and what goes with each, traffic policies, load balancers.

Which cluster address a service gets is the API server's business; here only the shape of what is set counts
(`service_addresses` has the rules for `clusterIPs` and `ipFamilies`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import (
    LoadBalancerIngress,
    Service,
    ServicePort,
    ServiceSpec,
    is_externally_accessible,
    needs_health_check,
)
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import (
    dns_1035_label,
    dns_label,
    dns_subdomain,
    port_name,
    port_number,
    qualified_name,
)
from nodeward.validation.checks import (
    IMMUTABLE,
    Distinct,
    Fields,
    check_choice,
    check_each,
    check_form,
    check_label,
    check_name,
    check_one_of,
    check_port,
    check_qualified,
    check_subdomain,
    check_unset,
    choice,
    given,
)
from nodeward.validation.core.endpoints_addresses import validate_endpoint_ip
from nodeward.validation.core.service_addresses import (
    is_headless,
    validate_cluster_ips,
    validate_cluster_ips_update,
    validate_families_update,
)
from nodeward.validation.core.service_warnings import service_warnings
from nodeward.validation.kinds import changed, kind
from nodeward.validation.meta.addresses import parse_ip, validate_cidr, validate_ip
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.meta.metadata import (
    METADATA,
    validate_metadata,
)

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_SPEC: Final = ROOT.child("spec")
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_RANGES_ANNOTATION: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS_ANNOTATION: Final = "service.kubernetes.io/topology-aware-hints"
_MODE_ANNOTATION: Final = "service.kubernetes.io/topology-mode"
_LONGEST_AFFINITY: Final = 86400
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_TRAFFIC: Final = ("Cluster", "Local")


def _name(new: Service, old: None, ctx: Context) -> list[FieldError]:
    rule = dns_label if ctx.on("RelaxedServiceNameValidation") else dns_1035_label
    return validate_metadata(new.metadata, rule, namespaced=True)


def _change(new: Service, old: Service, ctx: Context) -> list[FieldError]:
    errors = validate_cluster_ips_update(new.spec, old.spec)
    errors += validate_families_update(new.spec, old.spec)
    errors += _class(new.spec, old.spec)
    is_checked = needs_health_check(old.spec) and needs_health_check(new.spec)
    if is_checked and new.spec.health_check_node_port != old.spec.health_check_node_port:
        errors.append(forbidden(_SPEC.child("healthCheckNodePort"), IMMUTABLE))
    return errors


def _status(new: Service, old: Service, ctx: Context) -> list[FieldError]:
    at = ROOT.child("status", "loadBalancer", "ingress")
    if new.spec.type != "LoadBalancer" and new.status.load_balancer.ingress:
        return [forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = {ingress.ip for ingress in old.status.load_balancer.ingress if ingress.ip}
    return check_each(
        new.status.load_balancer.ingress, at, lambda item, path: _ingress(item, path, known, ctx)
    )


def _service(new: Service, old: Service | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors = _topology_annotations(new.metadata.annotations)
    headless = is_headless(spec)
    if not spec.ports and not headless and spec.type != "ExternalName":
        errors.append(required(_SPEC.child("ports")))
    if headless and spec.type in ("LoadBalancer", "NodePort"):
        at = _SPEC.child("clusterIPs").index(0)
        detail = f"may not be set to 'None' for {spec.type} services"
        errors.append(invalid(at, spec.cluster_ips[0], detail))
    if spec.type == "ExternalName":
        errors += _external_name(spec)
    names = Distinct()
    for i, port in enumerate(spec.ports):
        errors += _port(port, len(spec.ports) > 1, names, _SPEC.child("ports").index(i))
    errors += validate_labels(spec.selector, _SPEC.child("selector"))
    errors += _affinity(spec)
    errors += validate_cluster_ips(spec, old.spec if old else None, ctx)
    known = set(old.spec.external_ips) if old else ()
    for i, address in enumerate(spec.external_ips):
        at = _SPEC.child("externalIPs").index(i)
        errors += validate_ip(address, at, ctx, known) or validate_endpoint_ip(address, at)
    errors += check_choice(spec.type, _SPEC.child("type"), _TYPES)
    errors += _ports_together(spec)
    errors += _source_ranges(new, old, ctx)
    if spec.allocate_load_balancer_node_ports is not None and spec.type != "LoadBalancer":
        errors.append(forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _ONLY_BALANCED))
    if spec.allocate_load_balancer_node_ports is None and spec.type == "LoadBalancer":
        errors.append(required(ROOT.child("allocateLoadBalancerNodePorts")))
    return errors + _class(spec, None) + _traffic(spec, ctx)


def _topology_annotations(annotations: dict[str, str]) -> list[FieldError]:
    hints, mode = annotations.get(_HINTS_ANNOTATION), annotations.get(_MODE_ANNOTATION)
    if hints is None or mode is None or hints == mode:
        return []
    at = METADATA.child("annotations").key(_MODE_ANNOTATION)
    return [invalid(at, mode, f"must match annotations[{_HINTS_ANNOTATION}] when both are specified")]


def _external_name(spec: ServiceSpec) -> list[FieldError]:
    errors = check_unset(
        _SPEC,
        "may not be set for ExternalName services",
        clusterIPs=spec.cluster_ips,
        ipFamilies=spec.ip_families,
        ipFamilyPolicy=spec.ip_family_policy is not None,
    )
    name = spec.external_name.removesuffix(".")
    return errors + check_name(name, _SPEC.child("externalName"), dns_subdomain)


def _target(target: int | str, path: FieldPath) -> list[FieldError]:
    return check_form(target, path, port_number if isinstance(target, int) else port_name)


_PORT: Final = Fields(
    ServicePort,
    port=check_port,
    protocol=choice(*PROTOCOLS),
    target_port=_target,
    app_protocol=check_qualified,
)


def _port(port: ServicePort, needs_name: bool, names: Distinct, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.name:
        errors += check_label(port.name, path.child("name")) + names.add(port.name, path.child("name"))
    elif needs_name:
        errors.append(required(path.child("name")))
    return errors + _PORT(port, path)


def _ports_together(spec: ServiceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    path = _SPEC.child("ports")
    nodes = [(path.index(i).child("nodePort"), port) for i, port in enumerate(spec.ports) if port.node_port]
    if spec.type == "ClusterIP":
        errors += [forbidden(at, "may not be used when `type` is 'ClusterIP'") for at, _ in nodes]
    node_ports, ports = Distinct(), Distinct()
    for at, port in nodes:
        errors += node_ports.add((port.protocol, port.node_port), at, port.node_port)
    for i, port in enumerate(spec.ports):
        # Kubernetes shows the key it compares, in the names of its own program.
        key = {"Name": "", "Protocol": port.protocol, "AppProtocol": None, "Port": port.port}
        errors += ports.add(
            (port.protocol, port.port), path.index(i), {**key, "TargetPort": 0, "NodePort": 0}
        )
    return errors


def _affinity(spec: ServiceSpec) -> list[FieldError]:
    at, config = _SPEC.child("sessionAffinityConfig"), spec.session_affinity_config
    if spec.session_affinity == "None" and config is not None:
        return [forbidden(at, "must not be set when session affinity is None")]
    if spec.session_affinity != "ClientIP":
        return check_choice(spec.session_affinity, _SPEC.child("sessionAffinity"), ("ClientIP", "None"))
    needed = "when session affinity type is ClientIP"
    if config is None:
        return [required(at, needed)]
    if config.client_ip is None:
        return [required(at.child("clientIP"), needed)]
    seconds = config.client_ip.timeout_seconds
    at = at.child("clientIP", "timeoutSeconds")
    if seconds is None:
        return [required(at, needed)]
    if not 0 < seconds <= _LONGEST_AFFINITY:
        return [invalid(at, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")]
    return []


def _source_ranges(service: Service, old: Service | None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    spec = service.spec
    annotation = service.metadata.annotations.get(_RANGES_ANNOTATION)
    if spec.load_balancer_source_ranges:
        at = _SPEC.child("LoadBalancerSourceRanges")
        if spec.type != "LoadBalancer":
            errors.append(forbidden(at, _ONLY_BALANCED))
        known = {text.strip() for text in old.spec.load_balancer_source_ranges} if old else ()
        for i, text in enumerate(spec.load_balancer_source_ranges):
            errors += validate_cidr(text.strip(), at.index(i), ctx, known)
    elif annotation is not None:
        at = METADATA.child("annotations").key(_RANGES_ANNOTATION)
        if spec.type != "LoadBalancer":
            errors.append(forbidden(at, _ONLY_BALANCED))
        before = old.metadata.annotations.get(_RANGES_ANNOTATION, "") if old else None
        if before != annotation and annotation.strip():
            for text in annotation.strip().split(","):
                errors += validate_cidr(text.strip(), at, ctx)
    return errors


def _class(new: ServiceSpec, old: ServiceSpec | None) -> list[FieldError]:
    at = _SPEC.child("loadBalancerClass")
    name = new.load_balancer_class
    if new.type != "LoadBalancer":
        return [] if name is None else [forbidden(at, _ONLY_BALANCED)]
    errors: list[FieldError] = []
    if old is not None and old.type == "LoadBalancer" and old.load_balancer_class != name:
        errors.append(invalid(at, name, "may not change once set"))
    return errors + [invalid(at, name, fault) for fault in (qualified_name(name) if name is not None else ())]


def _traffic(spec: ServiceSpec, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    at, policy = _SPEC.child("externalTrafficPolicy"), spec.external_traffic_policy
    if is_externally_accessible(spec):
        errors += check_choice(policy, at, _TRAFFIC)
    elif policy:
        errors.append(invalid(at, policy, "may only be set for externally-accessible services"))
    at, port = _SPEC.child("healthCheckNodePort"), spec.health_check_node_port
    if needs_health_check(spec):
        errors += check_port(port, at) if port else [required(at)]
    elif port:
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid(at, port, detail))
    at, internal = _SPEC.child("internalTrafficPolicy"), spec.internal_traffic_policy
    if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
        errors += given(internal, at)
    errors += check_one_of(internal, at, _TRAFFIC)
    known = ["PreferClose"]
    if ctx.on("PreferSameTrafficDistribution"):
        known += ["PreferSameZone", "PreferSameNode"]
    return errors + check_one_of(spec.traffic_distribution, _SPEC.child("trafficDistribution"), known)


def _ingress(
    ingress: LoadBalancerIngress, path: FieldPath, known: Collection[str], ctx: Context
) -> list[FieldError]:
    errors = validate_ip(ingress.ip, path.child("ip"), ctx, known) if ingress.ip else []
    at = path.child("ipMode")
    if ingress.ip:
        detail = "must be specified when `ip` is set"
        errors += [required(at, detail)] if ingress.ip_mode is None else []
        errors += check_one_of(ingress.ip_mode, at, ("Proxy", "VIP"))
    elif ingress.ip_mode is not None:
        errors.append(forbidden(at, "may not be specified when `ip` is not set"))
    if ingress.hostname:
        at = path.child("hostname")
        errors += check_subdomain(ingress.hostname, at)
        if parse_ip(ingress.hostname) is not None:
            errors.append(invalid(at, ingress.hostname, "must be a DNS name, not an IP address"))
    return errors


SERVICE: Final = kind(
    dns_label,
    _service,
    create=(_name, _service),
    update=(changed, _change, _service),
    status=_status,
    warnings=service_warnings,
)
