"""What a service says that nobody will heed: fields ignored for its type, deprecated ones, odd spellings."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import Endpoints, Service, ServiceSpec
from nodeward.base.fieldpath import ROOT
from nodeward.validation.meta.addresses import cidr_warnings, ip_warnings

_SPEC: Final = ROOT.child("spec")
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"


def service_warnings(new: Service, old: Service | None, ctx: Context) -> list[str]:
    spec = new.spec
    warnings: list[str] = []
    if _HINTS in new.metadata.annotations:
        warnings.append(f"annotation {_HINTS} is deprecated, please use {_MODE} instead")
    if spec.cluster_ip and spec.cluster_ip != "None":
        for i, address in enumerate(spec.cluster_ips):
            warnings += ip_warnings(address, _SPEC.child("clusterIPs").index(i))
    is_headless = spec.type == "ClusterIP" and spec.cluster_ip == "None"
    if is_headless:
        warnings += _headless(spec)
    for i, address in enumerate(spec.external_ips):
        warnings += ip_warnings(address, _SPEC.child("externalIPs").index(i))
    if spec.external_ips and not is_headless and spec.type != "ExternalName":
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.load_balancer_ip:
        warnings += ip_warnings(spec.load_balancer_ip, _SPEC.child("loadBalancerIP"))
    for i, network in enumerate(spec.load_balancer_source_ranges):
        warnings += cidr_warnings(network, _SPEC.child("loadBalancerSourceRanges").index(i))
    if spec.type == "ExternalName" and spec.external_ips:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.type != "ExternalName" and spec.external_name:
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.traffic_distribution == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


def _headless(spec: ServiceSpec) -> list[str]:
    ignored = {
        "loadBalancerIP": bool(spec.load_balancer_ip),
        "externalIPs": bool(spec.external_ips),
        "SessionAffinity": spec.session_affinity != "None",
    }
    return [f"spec.{field} is ignored for headless services" for field, is_set in ignored.items() if is_set]


def endpoints_warnings(new: Endpoints, old: Endpoints | None, ctx: Context) -> list[str]:
    # The controller writes plain addresses only, and it writes often.
    if new.metadata.labels.get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return []
    warnings: list[str] = []
    for i, subset in enumerate(new.subsets):
        at = ROOT.child("subsets").index(i)
        for field, addresses in (
            ("addresses", subset.addresses),
            ("notReadyAddresses", subset.not_ready_addresses),
        ):
            for j, address in enumerate(addresses):
                warnings += ip_warnings(address.ip, at.child(field).index(j).child("ip"))
    return warnings
