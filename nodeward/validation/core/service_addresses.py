"""The cluster addresses of a service and their families: how they must look, and how they may change.

A service of two families may give up its second address, and one of one family may gain a second; the first never
changes. All errors name `spec.clusterIPs`, `spec.ipFamilies` or `spec.ipFamilyPolicy`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.service import ServiceSpec
from nodeward.base.fielderror import FieldError, duplicate, invalid, required
from nodeward.base.fieldpath import ROOT
from nodeward.validation.checks import check_one_of
from nodeward.validation.core.endpoints_addresses import is_ipv6
from nodeward.validation.meta.addresses import validate_ip

_SPEC: Final = ROOT.child("spec")
_IPS: Final = _SPEC.child("clusterIPs")
_FAMILIES: Final = _SPEC.child("ipFamilies")
_POLICY: Final = _SPEC.child("ipFamilyPolicy")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FIXED: Final = "may not change once set"


def is_headless(spec: ServiceSpec) -> bool:
    """A service without an address of its own."""
    return spec.cluster_ips == ["None"]


def validate_cluster_ips(new: ServiceSpec, old: ServiceSpec | None, ctx: Context) -> list[FieldError]:
    if new.type == "ExternalName":
        return []
    errors: list[FieldError] = []
    ips = new.cluster_ips
    if new.cluster_ip:
        if not ips:
            errors.append(required(_IPS))
        elif ips[0] != new.cluster_ip:
            errors.append(invalid(_IPS, ips, "first value must match `clusterIP`"))
    elif ips:
        errors.append(invalid(_IPS, ips, "must be empty when `clusterIP` is not specified"))
    seen: set[str] = set()
    for i, family in enumerate(new.ip_families):
        errors += check_one_of(family, _FAMILIES.index(i), ("IPv4", "IPv6"))
        if family in seen:
            errors.append(duplicate(_FAMILIES.index(i), family))
        seen.add(family)
    errors += check_one_of(new.ip_family_policy, _POLICY, _POLICIES)
    faults = _address_faults(ips, old, ctx)
    errors += faults
    if len(ips) > 2:
        errors.append(invalid(_IPS, ips, "may only hold up to 2 values"))
    if faults:
        return errors
    if len(ips) > 1 and len({is_ipv6(ip) for ip in ips}) < 2:
        errors.append(invalid(_IPS, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(new):
        errors += _families_fit(new)
    return errors


def _address_faults(ips: list[str], old: ServiceSpec | None, ctx: Context) -> list[FieldError]:
    faults: list[FieldError] = []
    known = set(old.cluster_ips) if old else ()
    for i, ip in enumerate(ips):
        if i == 0 and ip == "None":
            if len(ips) > 1:
                faults.append(invalid(_IPS, ips, "'None' must be the first and only value"))
        else:
            faults += validate_ip(ip, _IPS.index(i), ctx, known)
    return faults


def _families_fit(spec: ServiceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, (ip, family) in enumerate(zip(spec.cluster_ips, spec.ip_families, strict=False)):
        if (family == "IPv4" and is_ipv6(ip)) or (family == "IPv6" and not is_ipv6(ip)):
            detail = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
            errors.append(invalid(_IPS.index(i), ip, detail))
    return errors


def validate_cluster_ips_update(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    if "ExternalName" in (new.type, old.type) or (is_headless(new) and is_headless(old)):
        return []
    ips, before = new.cluster_ips, old.cluster_ips
    errors: list[FieldError] = []
    if len(ips) == len(before):
        pairs = zip(ips, before, strict=True)
        return [invalid(_IPS.index(i), ips, _FIXED) for i, (ip, was) in enumerate(pairs) if ip != was]
    if not ips:
        errors.append(invalid(_IPS.index(0), ips, "primary clusterIP can not be unset"))
    if ips and before and ips[0] != before[0]:
        errors.append(invalid(_IPS.index(0), ips, _FIXED))
    if len(before) > len(ips) == 1 and new.ip_family_policy != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid(_POLICY, new.ip_family_policy, detail))
    return errors


def validate_families_update(new: ServiceSpec, old: ServiceSpec) -> list[FieldError]:
    if "ExternalName" in (new.type, old.type) or is_headless(new) or is_headless(old):
        return []
    families, before = new.ip_families, old.ip_families
    errors: list[FieldError] = []
    if len(families) == len(before):
        pairs = zip(families, before, strict=True)
        return [invalid(_FAMILIES.index(0), families, _FIXED) for now, was in pairs if now != was]
    if len(before) > len(families) and not new.cluster_ips:
        errors.append(invalid(_FAMILIES.index(0), families, "primary ipFamily can not be unset"))
    if families and before and families[0] != before[0]:
        errors.append(invalid(_FAMILIES.index(0), new.cluster_ips, _FIXED))
    if len(before) > len(families) == 1 and new.ip_family_policy != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid(_POLICY, new.ip_family_policy, detail))
    return errors
