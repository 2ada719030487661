"""TokenRequest: issues a token for a service account, bound to a pod, a secret or a node if asked.

Called by `subresources/token.py`, for kubelets on behalf of pods. Expiry is between 10 minutes and 2^32 seconds, an
hour by default. A pod's token for the API server with the usual lifetime is really valid for a year, with a mark after
which its use is counted as stale: old clients that never read the token file again keep working.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final

from nodeward.api import errors
from nodeward.api.authentication_v1 import BoundObjectReference, TokenRequest, TokenRequestStatus
from nodeward.apiserver.auth.tokens import Bound, BoundObject, Lookup, Ref, TokenClaims, TokenSigner
from nodeward.apiserver.auth.user import service_account_name
from nodeward.base.duration import SECOND_NS
from nodeward.base.fielderror import invalid, quote
from nodeward.base.fieldpath import ROOT
from nodeward.base.timestamp import rfc3339
from nodeward.validation.authentication import validate_token_lifetime

GROUP: Final = "authentication.k8s.io"
DEFAULT_SECONDS: Final = 3600
#: The lifetime that the service-account volume asks for, and what it is stretched to.
STRETCHED_SECONDS: Final = 3607
YEAR_SECONDS: Final = 365 * 24 * 3600


class TokenIssuer:
    """Issues tokens for TokenRequests. `max_seconds` caps every lifetime (0: no cap)."""

    __slots__ = ("_audiences", "_lookup", "_max_seconds", "_signer", "_stretches")

    def __init__(
        self,
        signer: TokenSigner,
        audiences: Sequence[str],
        lookup: Lookup,
        *,
        max_seconds: int = 0,
        stretches: bool = True,
    ) -> None:
        self._signer = signer
        self._audiences = tuple(audiences)
        self._lookup = lookup
        self._max_seconds = max_seconds
        self._stretches = stretches

    def issue(
        self, request: TokenRequest, namespace: str, name: str, *, now_ns: int, token_id: str
    ) -> tuple[TokenRequest, list[str]]:
        """Return the request with its token, and warnings. `token_id` is a fresh uuid."""
        account = self._account(request, namespace, name)
        out = copy.copy(request)
        out.metadata, out.spec = copy.copy(request.metadata), copy.copy(request.spec)
        meta, spec = out.metadata, out.spec
        meta.name, meta.namespace, meta.uid = name, namespace, account.uid
        meta.creation_timestamp = rfc3339(now_ns)
        spec.audiences = spec.audiences or list(self._audiences)
        if spec.expiration_seconds is None:
            spec.expiration_seconds = DEFAULT_SECONDS
        path = ROOT.child("spec", "expirationSeconds")
        if faults := validate_token_lifetime(spec.expiration_seconds, path):
            raise errors.invalid(GROUP, "TokenRequest", "", faults)
        bound = Bound(namespace=namespace, serviceaccount=Ref(name=name, uid=account.uid))
        if spec.bound_object_ref is not None:
            self._bind(bound, spec.bound_object_ref)
        warnings = []
        seconds = spec.expiration_seconds
        if 0 < self._max_seconds < seconds:
            warnings.append(
                f"requested expiration of {seconds} seconds shortened to {self._max_seconds} seconds"
            )
            seconds = spec.expiration_seconds = self._max_seconds
        now = now_ns // SECOND_NS
        lasting = seconds
        if self._is_stretched(bound, seconds, spec.audiences):
            bound.warnafter = now + seconds
            lasting = YEAR_SECONDS
        token = self._signer.sign(
            TokenClaims(
                aud=spec.audiences,
                exp=now + lasting,
                iat=now,
                nbf=now,
                jti=token_id,
                kubernetes=bound,
                sub=service_account_name(namespace, name),
            )
        )
        out.status = TokenRequestStatus(
            token=token, expiration_timestamp=rfc3339(now_ns + seconds * SECOND_NS)
        )
        return out, warnings

    def _account(self, request: TokenRequest, namespace: str, name: str) -> BoundObject:
        meta, path = request.metadata, ROOT.child("metadata")
        if meta.name and meta.name != name:
            fault = invalid(path.child("name"), meta.name, "must match the service account name if specified")
            raise errors.invalid(GROUP, "TokenRequest", name, [fault])
        if meta.namespace and meta.namespace != namespace:
            detail = "must match the service account namespace if specified"
            fault = invalid(path.child("namespace"), meta.namespace, detail)
            raise errors.invalid(GROUP, "TokenRequest", name, [fault])
        account = self._lookup("ServiceAccount", namespace, name)
        if account is None:
            raise errors.not_found("", "serviceaccounts", name)
        if meta.uid and meta.uid != account.uid:
            why = (
                f"the UID in the token request ({meta.uid}) does not match "
                f"the UID of the service account ({account.uid})"
            )
            raise errors.conflict(GROUP, "TokenRequest", name, why)
        return account

    def _bind(self, bound: Bound, ref: BoundObjectReference) -> None:
        group, slash, version = ref.api_version.partition("/")
        if not slash:
            group, version = "", ref.api_version
        if group or ref.kind not in ("Pod", "Secret", "Node"):
            raise errors.bad_request(
                f"cannot bind token to object of type {group}/{version}, Kind={ref.kind}"
            )
        home = "" if ref.kind == "Node" else bound.namespace
        found = self._lookup(ref.kind, home, ref.name)
        if found is None:
            raise errors.not_found("", f"{ref.kind.lower()}s", ref.name)
        if ref.kind == "Pod" and found.service_account != bound.serviceaccount.name:
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {quote(bound.serviceaccount.name)} "
                "to pod running with different serviceaccount name."
            )
        if ref.uid and ref.uid != found.uid:
            why = (
                f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise errors.conflict("", ref.kind, ref.name, why)
        claim = Ref(name=ref.name, uid=found.uid)
        match ref.kind:
            case "Pod":
                bound.pod = claim
                if found.node:
                    # A node that no longer exists is still named in the token.
                    node = self._lookup("Node", "", found.node)
                    bound.node = Ref(name=found.node, uid=node.uid if node is not None else "")
            case "Node":
                bound.node = claim
            case _:
                bound.secret = claim

    def _is_stretched(self, bound: Bound, seconds: int, audiences: Sequence[str]) -> bool:
        is_ours = all(audience in self._audiences for audience in audiences)
        return self._stretches and bound.pod is not None and seconds == STRETCHED_SECONDS and is_ours
