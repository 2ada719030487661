"""Service-account tokens: signed claims about a pod's identity, and their verification.

A token is verified in two parts. Signature, issuer and shape cannot change, so they are checked once and the result is
kept (under a digest, never the token) until the token expires. Time, audience, and whether the service account, pod,
secret or node that the token is bound to still exists with the same uid are checked every time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from nodeward.apiserver.auth.rules import quote_list
from nodeward.apiserver.auth.token_keys import TokenKey, b64, unb64
from nodeward.apiserver.auth.user import (
    AUTHENTICATED,
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    User,
    service_account_groups,
    service_account_name,
)
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError, NodewardError
from nodeward.base.fielderror import quote

#: How far clocks may be apart.
LEEWAY_NS: Final = 60 * SECOND_NS
#: Verified tokens kept; the oldest is dropped first.
REMEMBERED: Final = 8192
INVALIDATED: Final = "service account token has been invalidated"


class TokenRefused(NodewardError):
    """The token is one of ours in form, but not valid. The text is for the log."""


class BoundObject(msgspec.Struct, frozen=True):
    """What is needed of an object to verify (and issue) tokens bound to it."""

    uid: str
    #: When its deletion began, if it did.
    deleted_ns: int | None = None
    #: Of pods only.
    service_account: str = ""
    node: str = ""


#: Finds a ServiceAccount, Pod, Secret or Node by kind, namespace (empty for nodes) and name.
Lookup: TypeAlias = Callable[[str, str, str], BoundObject | None]


class Ref(msgspec.Struct, omit_defaults=True):
    name: str = ""
    uid: str = ""


class Bound(msgspec.Struct, omit_defaults=True):
    """The private part of the claims: the account, and what the token is bound to."""

    namespace: str = ""
    node: Ref | None = None
    pod: Ref | None = None
    secret: Ref | None = None
    serviceaccount: Ref = msgspec.field(default_factory=Ref)
    warnafter: int | None = None


Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)] | None


class TokenClaims(msgspec.Struct, omit_defaults=True):
    """The claims of a token; times in seconds since 1970."""

    aud: list[str] | str = []
    exp: Seconds = None
    iat: Seconds = None
    iss: str = ""
    jti: str = ""
    kubernetes: Bound = msgspec.field(name="kubernetes.io", default_factory=Bound)
    nbf: Seconds = None
    sub: str = ""

    @property
    def audiences(self) -> list[str]:
        return self.aud if isinstance(self.aud, list) else [self.aud]


class Verified(msgspec.Struct, frozen=True):
    """A user, and the requested audiences for which the token is valid."""

    user: User
    audiences: tuple[str, ...]


class TokenSigner:
    """Signs tokens with one key."""

    __slots__ = ("_head", "_key", "issuer")

    def __init__(self, issuer: str, key: TokenKey) -> None:
        if not key.can_sign:
            raise ConfigError("the service-account signing key has no private half")
        self.issuer: Final = issuer
        self._key = key
        self._head = b64(msgspec.json.encode({"alg": key.algorithm, "kid": key.key_id}))

    def sign(self, claims: TokenClaims) -> str:
        """Return the token; the issuer is ours whatever `claims` say."""
        claims.iss = self.issuer
        body = f"{self._head}.{b64(msgspec.json.encode(claims))}"
        return f"{body}.{b64(self._key.sign(body.encode('ascii')))}"


class TokenVerifier:
    """Verifies tokens of `issuers`, signed by any of `keys`. Used from one thread."""

    __slots__ = ("_audiences", "_issuers", "_keys", "_lookup", "_remembered")

    def __init__(
        self, issuers: Iterable[str], keys: Iterable[TokenKey], audiences: Sequence[str], lookup: Lookup
    ) -> None:
        self._issuers = frozenset(issuers)
        self._keys = tuple(keys)
        self._audiences = tuple(audiences)
        self._lookup = lookup
        self._remembered: dict[bytes, tuple[TokenClaims, User]] = {}

    def verify(self, token: str, *, now_ns: int, audiences: Sequence[str] | None = None) -> Verified | None:
        """Return the user of a valid token; None if it is not a token of our issuers; or raise `TokenRefused`."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = self._remembered.get(digest)
        if known is None:
            claims = self._read(token)
            if claims is None:
                return None
            known = (claims, _user(claims))
        claims, user = known
        asked = self._audiences if audiences is None else tuple(audiences)
        spoken = tuple(claims.audiences) or self._audiences
        matching = tuple(audience for audience in spoken if audience in asked)
        if not matching and self._audiences:
            raise TokenRefused(
                f"token audiences {quote_list(spoken)} is invalid for the target audiences {quote_list(asked)}"
            )
        try:
            _check_time(claims, now_ns)
        except TokenRefused:
            self._remembered.pop(digest, None)
            raise
        self._check_bound(claims.kubernetes, now_ns)
        if digest not in self._remembered:
            if len(self._remembered) >= REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[digest] = known
        return Verified(user, matching)

    def _read(self, token: str) -> TokenClaims | None:
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            payload = unb64(parts[1])
            if msgspec.json.decode(payload, type=_Issuer).iss not in self._issuers:
                return None
            header: Any = msgspec.json.decode(unb64(parts[0]))
            signature = unb64(parts[2])
        except (ValueError, msgspec.DecodeError):
            return None
        if not isinstance(header, dict):
            return None
        key_id = header.get("kid")
        keys = [key for key in self._keys if not key_id or key.key_id == key_id]
        if not keys:
            raise TokenRefused("invalid signature, no keys found")
        signed = token[: token.rindex(".")].encode("ascii")
        # The algorithm is the key's, never the token's choice.
        if not any(key.algorithm == header.get("alg") and key.verifies(signature, signed) for key in keys):
            raise TokenRefused("go-jose/go-jose: error in cryptographic primitive")
        try:
            return msgspec.json.decode(payload, type=TokenClaims)
        except msgspec.DecodeError as error:
            raise TokenRefused(f"service account token claims could not be read: {error}") from error

    def _check_bound(self, bound: Bound, now_ns: int) -> None:
        gone_before = now_ns - LEEWAY_NS
        namespace, account = bound.namespace, bound.serviceaccount
        found = self._lookup("ServiceAccount", namespace, account.name)
        if found is None:
            raise TokenRefused(f"serviceaccounts {quote(account.name)} not found")
        if found.uid != account.uid:
            raise TokenRefused(f"service account UID ({found.uid}) does not match claim ({account.uid})")
        if found.deleted_ns is not None and found.deleted_ns < gone_before:
            raise TokenRefused(f"service account {namespace}/{account.name} has been deleted")
        # A pod's token names the pod's node too, but lives and dies with the pod.
        node = bound.node if bound.pod is None else None
        for kind, home, ref in (
            ("Secret", namespace, bound.secret),
            ("Pod", namespace, bound.pod),
            ("Node", "", node),
        ):
            if ref is None:
                continue
            there = self._lookup(kind, home, ref.name)
            if there is None or (there.deleted_ns is not None and there.deleted_ns < gone_before):
                raise TokenRefused(INVALIDATED)
            if there.uid != ref.uid:
                what = kind.lower()
                raise TokenRefused(
                    f"{what} UID ({there.uid}) does not match service account {what} ref claim ({ref.uid})"
                )


class _Issuer(msgspec.Struct):
    iss: str = ""


def _check_time(claims: TokenClaims, now_ns: int) -> None:
    now, leeway = now_ns / SECOND_NS, LEEWAY_NS / SECOND_NS
    if claims.nbf is not None and now + leeway < claims.nbf:
        raise TokenRefused("service account token is not valid yet")
    if claims.exp is not None and now - leeway > claims.exp:
        raise TokenRefused("service account token has expired")
    if claims.iat is not None and now + leeway < claims.iat:
        raise TokenRefused("service account token is issued in the future")


def _user(claims: TokenClaims) -> User:
    bound = claims.kubernetes
    extra: dict[str, tuple[str, ...]] = {}
    if claims.jti:
        extra[CREDENTIAL_ID] = (f"JTI={claims.jti}",)
    if bound.node is not None and bound.node.name:
        extra[NODE_NAME] = (bound.node.name,)
        if bound.node.uid:
            extra[NODE_UID] = (bound.node.uid,)
    if bound.pod is not None and bound.pod.name and bound.pod.uid:
        extra[POD_NAME] = (bound.pod.name,)
        extra[POD_UID] = (bound.pod.uid,)
    return User(
        service_account_name(bound.namespace, bound.serviceaccount.name),
        bound.serviceaccount.uid,
        (*service_account_groups(bound.namespace), AUTHENTICATED),
        extra,
    )
