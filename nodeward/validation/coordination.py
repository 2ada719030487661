"""Leases: who holds one, for how long, and how the next holder is chosen."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.coordination_v1 import Lease, LeaseSpec
from nodeward.base.fielderror import FieldError, forbidden
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import (
    Fields,
    check_not_negative,
    check_one_of,
    check_positive,
    check_qualified,
)
from nodeward.validation.kinds import kind

_SPEC: Final = ROOT.child("spec")


_TIMES: Final = Fields(LeaseSpec, lease_duration_seconds=check_positive, lease_transitions=check_not_negative)


def _spec(new: Lease, old: Lease | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors = _TIMES(spec, _SPEC)
    if spec.strategy is not None:
        at = _SPEC.child("strategy", "strategy")
        if "/" in spec.strategy:
            errors += check_qualified(spec.strategy, at)
        else:
            errors += check_one_of(spec.strategy, at, ("OldestEmulationVersion",))
    if spec.preferred_holder and not spec.strategy:
        detail = "may only be specified if `strategy` is defined"
        errors.append(forbidden(_SPEC.child("preferredHolder"), detail))
    return errors


LEASE: Final = kind(dns_subdomain, _spec)
