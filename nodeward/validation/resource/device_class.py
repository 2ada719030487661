"""Device classes and device taint rules, and the table of every kind in resource.k8s.io."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.resource_v1 import (
    DeviceClass,
    DeviceClassConfiguration,
    DeviceClassSpec,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from nodeward.base.fielderror import FieldError
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import check_count
from nodeward.validation.meta.conditions import validate_conditions
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.resource.claim import (
    CONFIG_LIMIT,
    create_claim,
    create_template,
    update_claim,
    update_template,
    validate_configuration,
    validate_selectors,
)
from nodeward.validation.resource.claim_status import status_claim
from nodeward.validation.resource.names import (
    validate_driver_name,
    validate_extended_resource,
    validate_label,
    validate_list,
    validate_pool_name,
)
from nodeward.validation.resource.slice import create_slice, update_slice
from nodeward.validation.resource.taints import validate_device_taint
from nodeward.validation.validator import Validator, Validators

_SPEC: Final = ROOT.child("spec")
_CONDITIONS_LIMIT: Final = 8


def _class(spec: DeviceClassSpec, old: DeviceClassSpec | None) -> list[FieldError]:
    is_stored = old is not None and old.selectors == spec.selectors
    errors = validate_selectors(spec.selectors, _SPEC.child("selectors"), is_stored=is_stored)
    is_kept = old is not None and old.config == spec.config

    def config(item: DeviceClassConfiguration, at: FieldPath) -> list[FieldError]:
        return validate_configuration(item.opaque, at, is_stored=is_kept)

    errors += validate_list(spec.config, CONFIG_LIMIT, config, _SPEC.child("config"))
    if spec.extended_resource_name is not None:
        errors += validate_extended_resource(spec.extended_resource_name, _SPEC.child("extendedResourceName"))
    return errors


def _create_class(devices: DeviceClass, ctx: Context) -> list[FieldError]:
    return validate_metadata(devices.metadata, dns_subdomain, namespaced=False) + _class(devices.spec, None)


def _update_class(new: DeviceClass, old: DeviceClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(new.metadata, dns_subdomain, namespaced=False)
    return errors + validate_metadata_update(new.metadata, old.metadata) + _class(new.spec, old.spec)


def _rule(spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None) -> list[FieldError]:
    errors: list[FieldError] = []
    at, selector = _SPEC.child("deviceSelector"), spec.device_selector
    if selector is not None:
        if selector.driver is not None:
            errors += validate_driver_name(selector.driver, at.child("driver"))
        if selector.pool is not None:
            errors += validate_pool_name(selector.pool, at.child("pool"))
        if selector.device is not None:
            errors += validate_label(selector.device, at.child("device"))
    return errors + validate_device_taint(spec.taint, old.taint if old else None, _SPEC.child("taint"))


def _create_rule(rule: DeviceTaintRule, ctx: Context) -> list[FieldError]:
    return validate_metadata(rule.metadata, dns_subdomain, namespaced=False) + _rule(rule.spec, None)


def _update_rule(new: DeviceTaintRule, old: DeviceTaintRule, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _rule(new.spec, old.spec)


def _rule_status(new: DeviceTaintRule, old: DeviceTaintRule, ctx: Context) -> list[FieldError]:
    at, conditions = ROOT.child("status", "conditions"), new.status.conditions
    errors = validate_metadata_update(new.metadata, old.metadata) + validate_conditions(conditions, at)
    return errors + check_count(conditions, at, _CONDITIONS_LIMIT)


RESOURCE_KINDS: Final[Validators] = {
    DeviceClass: Validator(create=_create_class, update=_update_class, status=None, name=dns_subdomain),
    DeviceTaintRule: Validator(
        create=_create_rule, update=_update_rule, status=_rule_status, name=dns_subdomain
    ),
    ResourceClaim: Validator(
        create=create_claim, update=update_claim, status=status_claim, name=dns_subdomain
    ),
    ResourceClaimTemplate: Validator(
        create=create_template, update=update_template, status=None, name=dns_subdomain
    ),
    ResourceSlice: Validator(create=create_slice, update=update_slice, status=None, name=dns_subdomain),
}
