"""Services: ports, types and what goes with each, traffic policies, load balancers.

Which cluster address a service gets is the API server's business; here only the shape of what is set counts
(`service_addresses` has the rules for `clusterIPs` and `ipFamilies`).
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import (
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
    is_externally_accessible,
    needs_health_check,
)
from nodeward.base.fielderror import FieldError, duplicate, forbidden, invalid, not_supported, required
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
    check_choice,
    check_label,
    check_one_of,
    check_port,
    check_qualified,
    check_subdomain,
)
from nodeward.validation.core.endpoints_addresses import validate_endpoint_ip
from nodeward.validation.core.service_addresses import (
    is_headless,
    validate_cluster_ips,
    validate_cluster_ips_update,
    validate_families_update,
)
from nodeward.validation.core.service_warnings import service_warnings
from nodeward.validation.meta.addresses import parse_ip, validate_cidr, validate_ip
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.meta.metadata import (
    METADATA,
    validate_metadata,
    validate_metadata_update,
)
from nodeward.validation.validator import Validator

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_SPEC: Final = ROOT.child("spec")
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_RANGES_ANNOTATION: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_HINTS_ANNOTATION: Final = "service.kubernetes.io/topology-aware-hints"
_MODE_ANNOTATION: Final = "service.kubernetes.io/topology-mode"
_LONGEST_AFFINITY: Final = 86400


def _create(service: Service, ctx: Context) -> list[FieldError]:
    rule = dns_label if ctx.on("RelaxedServiceNameValidation") else dns_1035_label
    return validate_metadata(service.metadata, rule, namespaced=True) + _service(service, None, ctx)


def _update(new: Service, old: Service, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_cluster_ips_update(new.spec, old.spec)
    errors += validate_families_update(new.spec, old.spec)
    errors += _class(new.spec, old.spec)
    is_checked = needs_health_check(old.spec) and needs_health_check(new.spec)
    if is_checked and new.spec.health_check_node_port != old.spec.health_check_node_port:
        errors.append(forbidden(_SPEC.child("healthCheckNodePort"), IMMUTABLE))
    return errors + _service(new, old, ctx)


def _status(new: Service, old: Service, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    at = ROOT.child("status", "loadBalancer")
    return errors + _balancer_status(new.status.load_balancer, old.status.load_balancer, new.spec, at, ctx)


def _service(service: Service, old: Service | None, ctx: Context) -> list[FieldError]:
    spec = service.spec
    errors = _topology_annotations(service.metadata.annotations)
    headless = is_headless(spec)
    if not spec.ports and not headless and spec.type != "ExternalName":
        errors.append(required(_SPEC.child("ports")))
    if headless and spec.type in ("LoadBalancer", "NodePort"):
        at = _SPEC.child("clusterIPs").index(0)
        detail = f"may not be set to 'None' for {spec.type} services"
        errors.append(invalid(at, spec.cluster_ips[0], detail))
    if spec.type == "ExternalName":
        errors += _external_name(spec)
    names: set[str] = set()
    for i, port in enumerate(spec.ports):
        errors += _port(port, len(spec.ports) > 1, names, _SPEC.child("ports").index(i))
    errors += validate_labels(spec.selector, _SPEC.child("selector"))
    errors += _affinity(spec)
    errors += validate_cluster_ips(spec, old.spec if old else None, ctx)
    known = old.spec.external_ips if old else []
    for i, address in enumerate(spec.external_ips):
        at = _SPEC.child("externalIPs").index(i)
        errors += validate_ip(address, at, ctx, known) or validate_endpoint_ip(address, at)
    types = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    errors += check_choice(spec.type, _SPEC.child("type"), types)
    errors += _ports_together(spec)
    errors += _source_ranges(service, old, ctx)
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
    errors: list[FieldError] = []
    unwanted = {
        "clusterIPs": bool(spec.cluster_ips),
        "ipFamilies": bool(spec.ip_families),
        "ipFamilyPolicy": spec.ip_family_policy is not None,
    }
    for field, is_set in unwanted.items():
        if is_set:
            errors.append(forbidden(_SPEC.child(field), "may not be set for ExternalName services"))
    name = spec.external_name.removesuffix(".")
    if not name:
        return [*errors, required(_SPEC.child("externalName"))]
    return errors + [invalid(_SPEC.child("externalName"), name, fault) for fault in dns_subdomain(name)]


def _port(port: ServicePort, needs_name: bool, names: set[str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.name:
        errors += check_label(port.name, path.child("name"))
        if port.name in names:
            errors.append(duplicate(path.child("name"), port.name))
        names.add(port.name)
    elif needs_name:
        errors.append(required(path.child("name")))
    errors += check_port(port.port, path.child("port"))
    errors += check_choice(port.protocol, path.child("protocol"), PROTOCOLS)
    target = port.target_port
    faults = port_number(target) if isinstance(target, int) else port_name(target)
    errors += [invalid(path.child("targetPort"), target, fault) for fault in faults]
    return errors + check_qualified(port.app_protocol, path.child("appProtocol"))


def _ports_together(spec: ServiceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    path = _SPEC.child("ports")
    if spec.type == "ClusterIP":
        for i, port in enumerate(spec.ports):
            if port.node_port:
                detail = "may not be used when `type` is 'ClusterIP'"
                errors.append(forbidden(path.index(i).child("nodePort"), detail))
    node_ports: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if port.node_port:
            if (port.protocol, port.node_port) in node_ports:
                errors.append(duplicate(path.index(i).child("nodePort"), port.node_port))
            node_ports.add((port.protocol, port.node_port))
    ports: set[tuple[str, int]] = set()
    for i, port in enumerate(spec.ports):
        if (port.protocol, port.port) in ports:
            # Kubernetes shows the key it compares, in the names of its own program.
            key = {"Name": "", "Protocol": port.protocol, "AppProtocol": None, "Port": port.port}
            errors.append(duplicate(path.index(i), {**key, "TargetPort": 0, "NodePort": 0}))
        ports.add((port.protocol, port.port))
    return errors


def _affinity(spec: ServiceSpec) -> list[FieldError]:
    at, config_at = _SPEC.child("sessionAffinity"), _SPEC.child("sessionAffinityConfig")
    match spec.session_affinity:
        case "":
            return [required(at)]
        case "None":
            if spec.session_affinity_config is None:
                return []
            return [forbidden(config_at, "must not be set when session affinity is None")]
        case "ClientIP":
            pass
        case other:
            return [not_supported(at, other, ("ClientIP", "None"))]
    needed = "when session affinity type is ClientIP"
    config = spec.session_affinity_config
    if config is None:
        return [required(config_at, needed)]
    if config.client_ip is None:
        return [required(config_at.child("clientIP"), needed)]
    seconds = config.client_ip.timeout_seconds
    at = config_at.child("clientIP", "timeoutSeconds")
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
        known = [text.strip() for text in old.spec.load_balancer_source_ranges] if old else []
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
    at = _SPEC.child("externalTrafficPolicy")
    policy = spec.external_traffic_policy
    if not is_externally_accessible(spec):
        if policy:
            errors.append(invalid(at, policy, "may only be set for externally-accessible services"))
    elif not policy:
        errors.append(required(at))
    elif policy not in ("Cluster", "Local"):
        errors.append(not_supported(at, policy, ("Cluster", "Local")))
    at, port = _SPEC.child("healthCheckNodePort"), spec.health_check_node_port
    if not needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(invalid(at, port, detail))
    elif not port:
        errors.append(required(at))
    else:
        errors += check_port(port, at)
    at, internal = _SPEC.child("internalTrafficPolicy"), spec.internal_traffic_policy
    if internal is None:
        if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
            errors.append(required(at))
    elif internal not in ("Cluster", "Local"):
        errors.append(not_supported(at, internal, ("Cluster", "Local")))
    if spec.traffic_distribution is not None:
        known = ["PreferClose"]
        if ctx.on("PreferSameTrafficDistribution"):
            known += ["PreferSameZone", "PreferSameNode"]
        errors += check_one_of(spec.traffic_distribution, _SPEC.child("trafficDistribution"), known)
    return errors


def _balancer_status(
    new: LoadBalancerStatus, old: LoadBalancerStatus, spec: ServiceSpec, path: FieldPath, ctx: Context
) -> list[FieldError]:
    at = path.child("ingress")
    if spec.type != "LoadBalancer" and new.ingress:
        return [forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")]
    errors: list[FieldError] = []
    known = [ingress.ip for ingress in old.ingress if ingress.ip]
    for i, ingress in enumerate(new.ingress):
        item = at.index(i)
        if ingress.ip:
            errors += validate_ip(ingress.ip, item.child("ip"), ctx, known)
        if ingress.ip_mode is None:
            if ingress.ip:
                errors.append(required(item.child("ipMode"), "must be specified when `ip` is set"))
        elif not ingress.ip:
            errors.append(forbidden(item.child("ipMode"), "may not be specified when `ip` is not set"))
        elif ingress.ip_mode not in ("Proxy", "VIP"):
            errors.append(not_supported(item.child("ipMode"), ingress.ip_mode, ("Proxy", "VIP")))
        if ingress.hostname:
            host = item.child("hostname")
            errors += check_subdomain(ingress.hostname, host)
            if parse_ip(ingress.hostname) is not None:
                errors.append(invalid(host, ingress.hostname, "must be a DNS name, not an IP address"))
    return errors


SERVICE: Final = Validator(
    create=_create, update=_update, status=_status, name=dns_label, warnings=service_warnings
)
