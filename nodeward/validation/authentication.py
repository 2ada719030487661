"""Token requests: how long a token may live, and what it may be bound to. Reviews have no rules of their own."""

from __future__ import annotations

from typing import Final

from nodeward.api.authentication_v1 import BoundObjectReference, TokenRequest
from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError, invalid, not_supported
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.kinds import asked

_SPEC: Final = ROOT.child("spec")
_SHORTEST: Final = 10 * 60
_LONGEST: Final = 1 << 32
_GROUPS: Final = "admissionReviewAPIGroups"
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def validate_token_lifetime(seconds: int, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if seconds < _SHORTEST:
        errors.append(invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST:
        errors.append(invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


def validate_token_request(request: TokenRequest, old: None, ctx: Context) -> list[FieldError]:
    spec = request.spec
    at = _SPEC.child("attestations")
    errors = validate_token_lifetime(spec.expiration_seconds or 0, _SPEC.child("expirationSeconds"))
    if not _is_webhook(spec.bound_object_ref):
        if spec.attestations:
            detail = "attestations may only be specified with a webhook bound object reference"
            return [invalid(at, spec.attestations, detail)]
        return errors
    if len(spec.audiences) != 1:
        detail = "must be length 1 when bound to a webhook config"
        errors.append(invalid(_SPEC.child("audiences"), spec.audiences, detail))
    return errors + _attestations(spec.attestations, at)


def _is_webhook(ref: BoundObjectReference | None) -> bool:
    return ref is not None and ref.kind in _WEBHOOKS and ref.api_version == "admissionregistration.k8s.io/v1"


def _attestations(attestations: dict[str, list[str]], path: FieldPath) -> list[FieldError]:
    if len(attestations) != 1:
        detail = f"webhook bound requests require exactly one {_GROUPS} attestation"
        return [invalid(path, attestations, detail)]
    ((key, values),) = attestations.items()
    at = path.key(key)
    if key != _GROUPS:
        return [not_supported(at, key, (_GROUPS,))]
    if len(values) != 1:
        return [invalid(at, values, "must specify a single value")]
    group = values[0]
    if not group:
        return [invalid(at.index(0), group, "may not be an empty string")]
    faults = [] if group == "*" else dns_subdomain(group)
    return [invalid(at.index(0), group, f"must specify a valid API Group: {fault}") for fault in faults]


TOKEN_REQUEST: Final = asked(validate_token_request)
#: A token review without a token is a bad request, not an invalid object.
TOKEN_REVIEW: Final = asked()
SELF_SUBJECT_REVIEW: Final = TOKEN_REVIEW
