"""Leases: who holds one, for how long, and how the next holder is chosen."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.coordination_v1 import Lease, LeaseSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain, qualified_name
from nodeward.validation.checks import check_not_negative, check_positive
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import Validator

_SPEC: Final = ROOT.child("spec")


def _spec(spec: LeaseSpec) -> list[FieldError]:
    errors = check_positive(spec.lease_duration_seconds, _SPEC.child("leaseDurationSeconds"))
    errors += check_not_negative(spec.lease_transitions, _SPEC.child("leaseTransitions"))
    if spec.strategy is not None:
        errors += _strategy(spec.strategy)
    if spec.preferred_holder and not spec.strategy:
        detail = "may only be specified if `strategy` is defined"
        errors.append(forbidden(_SPEC.child("preferredHolder"), detail))
    return errors


def _strategy(strategy: str) -> list[FieldError]:
    at = _SPEC.child("strategy", "strategy")
    if "/" in strategy:
        return [invalid(at, strategy, fault) for fault in qualified_name(strategy)]
    known = ("OldestEmulationVersion",)
    return [] if strategy in known else [not_supported(at, strategy, known)]


def _create(lease: Lease, ctx: Context) -> list[FieldError]:
    return validate_metadata(lease.metadata, dns_subdomain, namespaced=True) + _spec(lease.spec)


def _update(new: Lease, old: Lease, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _spec(new.spec)


LEASE: Final = Validator(create=_create, update=_update, status=None, name=dns_subdomain)
