"""Nodes: taints, addresses of their pods, capacity, the features they declare, the gates they wait for.

The main resource checks create and update rules together, the status subresource only the update rules. Taints are
reported below `metadata`, which is upstream's slip and what users know.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node, NodeAddress, NodePodPreemptionPolicy
from nodeward.api.core_v1.references import Taint
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    internal,
    invalid,
    quote,
)
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import DNS_SUBDOMAIN_LIMIT, dns_subdomain, size
from nodeward.validation.checks import Distinct, check_count, check_distinct, check_each, check_qualified
from nodeward.validation.core.node_config import validate_config_source, validate_config_status
from nodeward.validation.core.node_readiness import readiness_gate_warnings, validate_readiness_gates
from nodeward.validation.meta.addresses import cidr_warnings, is_dual_stack, parse_cidr, validate_cidr
from nodeward.validation.meta.metadata import METADATA, validate_metadata, validate_metadata_update
from nodeward.validation.pod.resource_lists import validate_quantity
from nodeward.validation.pod.tolerations import validate_taints
from nodeward.validation.validator import Validator, distinct

_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")
_POD_CIDRS: Final = _SPEC.child("podCIDRs")
_TAINTS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/taints"
_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_PREEMPTION_GATE: Final = "InPlacePodVerticalScalingSchedulerPreemption"
_PREEMPTION_LIMIT: Final = 20

#: The rule for a node's name.
node_name = dns_subdomain


def validate_node(node: Node, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(node.metadata, node_name, namespaced=False)
    errors += _always(node, ctx)
    return distinct(errors + _spec_extras(node, ctx))


def _always(node: Node, ctx: Context) -> list[FieldError]:
    """The create rules, which the main resource applies on updates too."""
    errors = _annotations(node)
    if node.spec.taints:
        errors += validate_taints(node.spec.taints, METADATA.child("taints"))
    errors += _quantities(node)
    swap = node.status.node_info.swap
    if swap is not None and swap.capacity is not None and swap.capacity <= 0:
        at = METADATA.child("nodeSwapStatus", "capacity")
        errors.append(invalid(at, swap.capacity, "must be greater than zero"))
    errors += validate_declared_features(node.status.declared_features)
    if node.spec.pod_cidrs:
        errors += _pod_cidrs(node.spec.pod_cidrs, ctx)
    return errors


def _spec_extras(node: Node, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if node.spec.pod_preemption_policy is not None:
        errors += _preemption(node.spec.pod_preemption_policy, ctx)
    if node.spec.readiness_gates:
        errors += validate_readiness_gates(node.spec.readiness_gates, _SPEC.child("readinessGates"))
    return errors


def validate_node_update(new: Node, old: Node, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(new.metadata, node_name, namespaced=False)
    errors += _always(new, ctx)
    errors += validate_node_status_update(new, old, ctx)
    return distinct(errors + _spec_extras(new, ctx))


def validate_node_status_update(new: Node, old: Node, ctx: Context) -> list[FieldError]:
    """What must hold between the old node and the new one, whichever half was written."""
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += _annotations(new)
    errors += _quantities(new)
    errors += validate_declared_features(new.status.declared_features)
    errors += _unique_addresses(new.status.addresses)
    if old.spec.pod_cidrs and old.spec.pod_cidrs != new.spec.pod_cidrs:
        detail = 'node updates may not change podCIDR except from "" to valid'
        mine, theirs = new.spec.pod_cidrs, old.spec.pod_cidrs
        changed = 1 if len(mine) != len(theirs) else sum(a != b for a, b in zip(mine, theirs, strict=True))
        errors += [forbidden(_POD_CIDRS, detail)] * changed
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        what = "modified" if new.spec.provider_id else "cleared"
        errors.append(invalid(_SPEC.child("providerID"), None, f"field cannot be {what} once set"))
    if new.spec.config_source is not None:
        errors += validate_config_source(new.spec.config_source, _SPEC.child("configSource"), in_spec=True)
    if new.status.config is not None:
        errors += validate_config_status(new.status.config, _STATUS.child("config"))
    if new.spec.taints:
        errors += validate_taints(new.spec.taints, METADATA.child("taints"))
    if new.spec.external_id != old.spec.external_id:
        errors.append(forbidden(_SPEC.child("externalID"), "may not be updated"))
    return distinct(errors)


def validate_declared_features(features: list[str]) -> list[FieldError]:
    """KEP-5328: names in their form, sorted, each once. Whether a feature is known is not asked."""
    errors: list[FieldError] = []
    path = _STATUS.child("declaredFeatures")
    for i, feature in enumerate(features):
        if fault := declared_feature_fault(feature):
            errors.append(invalid(path.index(i), feature, fault))
        if i + 1 < len(features):
            following = features[i + 1]
            if feature == following:
                errors.append(duplicate(path.index(i + 1), following))
            elif feature.encode() > following.encode():
                detail = "list must be sorted alphabetically"
                errors.append(invalid(path.index(i + 1), following, detail))
    return errors


def declared_feature_fault(name: str) -> str:
    """What is wrong with the name of a declared feature; "" if nothing. The kubelet asks before it publishes."""
    if size(name) > DNS_SUBDOMAIN_LIMIT:
        return f"invalid feature name {quote(name)}: must be no more than {DNS_SUBDOMAIN_LIMIT} characters"
    if _FEATURE.fullmatch(name):
        return ""
    return (
        f"invalid feature name {quote(name)}: must start with an UpperCamelCase segment, with subsequent segments "
        "separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters "
        "and slashes"
    )


def node_warnings(new: Node, old: Node | None, ctx: Context) -> list[str]:
    warnings: list[str] = []
    if new.spec.config_source is not None:
        warnings.append("spec.configSource: the feature is removed")
    if new.spec.external_id:
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for i, cidr in enumerate(new.spec.pod_cidrs):
        warnings += cidr_warnings(cidr, _POD_CIDRS.index(i))
    before = old.spec.readiness_gates if old is not None else []
    return warnings + readiness_gate_warnings(new.spec.readiness_gates, before, _SPEC.child("readinessGates"))


def _annotations(node: Node) -> list[FieldError]:
    text = node.metadata.annotations.get(_TAINTS_ANNOTATION)
    if not text:
        return []
    path = METADATA.child("annotations")
    try:
        taints = msgspec.json.decode(text.encode(), type=list[Taint])
    except msgspec.MsgspecError as error:
        return [invalid(path, _TAINTS_ANNOTATION, str(error))]
    return validate_taints(taints, path.child(_TAINTS_ANNOTATION))


def _quantities(node: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, resources in (("capacity", node.status.capacity), ("allocatable", node.status.allocatable)):
        for resource, quantity in resources.items():
            errors += validate_quantity(resource, quantity, _STATUS.child(name, resource))
    return errors


def _pod_cidrs(cidrs: list[str], ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, cidr in enumerate(cidrs):
        errors += validate_cidr(cidr, _POD_CIDRS.index(i), ctx)
    if len(cidrs) > 1:
        networks = [parsed[1] if (parsed := parse_cidr(cidr)) is not None else None for cidr in cidrs]
        if None in networks:
            bad = cidrs[networks.index(None)]
            detail = (
                f"invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[0]: <nil> "
                f"(invalid CIDR address: {bad})"
            )
            errors.append(internal(_POD_CIDRS, detail))
        if None in networks or len(cidrs) > 2 or not is_dual_stack(networks):
            detail = "may specify no more than one CIDR for each IP family"
            errors.append(invalid(_POD_CIDRS, cidrs, detail))
    return errors


def _unique_addresses(addresses: list[NodeAddress]) -> list[FieldError]:
    seen = Distinct()
    return check_each(
        addresses, _STATUS.child("addresses"), lambda item, at: seen.add((item.type, item.address), at, item)
    )


def _preemption(policy: NodePodPreemptionPolicy, ctx: Context) -> list[FieldError]:
    path = _SPEC.child("podPreemptionPolicy")
    if not ctx.on(_PREEMPTION_GATE):
        return [forbidden(path, "")]
    listed, at = policy.disable_resize_preemption, path.child("disableResizePreemption")
    errors = check_count(listed, at, _PREEMPTION_LIMIT)
    return errors or check_each(listed, at, check_qualified) + check_distinct(listed, at)


NODE: Final = Validator(
    create=validate_node,
    update=validate_node_update,
    status=validate_node_status_update,
    name=node_name,
    warnings=node_warnings,
)
