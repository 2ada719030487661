"""Device classes and device taint rules, and the table of every kind in resource.k8s.io."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.resource_v1 import (
    DeviceClass,
    DeviceClassConfiguration,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from nodeward.base.fielderror import FieldError
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import Fields, check_count, unless_none
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.conditions import validate_conditions
from nodeward.validation.resource.claim import (
    CONFIG_LIMIT,
    RESOURCE_CLAIM_TEMPLATE,
    validate_configuration,
    validate_selectors,
)
from nodeward.validation.resource.claim_status import RESOURCE_CLAIM
from nodeward.validation.resource.names import (
    validate_driver_name,
    validate_extended_resource,
    validate_label,
    validate_list,
    validate_pool_name,
)
from nodeward.validation.resource.slice import RESOURCE_SLICE
from nodeward.validation.resource.taints import validate_device_taint
from nodeward.validation.validator import Validators

_SPEC: Final = ROOT.child("spec")
_CONDITIONS_LIMIT: Final = 8


def _class(new: DeviceClass, old: DeviceClass | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    is_stored = old is not None and old.spec.selectors == spec.selectors
    errors = validate_selectors(spec.selectors, _SPEC.child("selectors"), ctx, is_stored=is_stored)
    is_kept = old is not None and old.spec.config == spec.config

    def config(item: DeviceClassConfiguration, at: FieldPath) -> list[FieldError]:
        return validate_configuration(item.opaque, at, is_stored=is_kept)

    errors += validate_list(spec.config, CONFIG_LIMIT, config, _SPEC.child("config"))
    if spec.extended_resource_name is not None:
        errors += validate_extended_resource(spec.extended_resource_name, _SPEC.child("extendedResourceName"))
    return errors


_SELECTOR: Final = Fields(
    DeviceTaintSelector,
    driver=unless_none(validate_driver_name),
    pool=unless_none(validate_pool_name),
    device=validate_label,
)


def _rule(new: DeviceTaintRule, old: DeviceTaintRule | None, ctx: Context) -> list[FieldError]:
    errors = _SELECTOR(new.spec.device_selector, _SPEC.child("deviceSelector"))
    before = old.spec.taint if old else None
    return errors + validate_device_taint(new.spec.taint, before, _SPEC.child("taint"))


def _rule_status(new: DeviceTaintRule, old: DeviceTaintRule, ctx: Context) -> list[FieldError]:
    at, conditions = ROOT.child("status", "conditions"), new.status.conditions
    return validate_conditions(conditions, at) + check_count(conditions, at, _CONDITIONS_LIMIT)


RESOURCE_KINDS: Final[Validators] = {
    DeviceClass: kind(
        dns_subdomain,
        _class,
        namespaced=False,
        update=(made(dns_subdomain, namespaced=False), changed, _class),
    ),
    DeviceTaintRule: kind(dns_subdomain, _rule, namespaced=False, status=_rule_status),
    ResourceClaim: RESOURCE_CLAIM,
    ResourceClaimTemplate: RESOURCE_CLAIM_TEMPLATE,
    ResourceSlice: RESOURCE_SLICE,
}
