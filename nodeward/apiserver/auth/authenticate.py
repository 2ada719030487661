"""Authentication: the user of a client certificate or of a bearer token, or `system:anonymous`.

Called by `security.py`; service-account tokens are verified by `tokens.py`. A certificate wins over a token. A request
with neither is anonymous (if that is allowed), and authorization decides what it may do; a request with an invalid
token gets 401. Every authenticated user is also in the group `system:authenticated`.

Headers are as ASGI gives them: pairs of bytes, names in lower case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from nodeward.apiserver.auth.tokens import TokenRefused, TokenVerifier
from nodeward.apiserver.auth.user import (
    ANONYMOUS,
    ANONYMOUS_USER,
    AUTHENTICATED,
    CREDENTIAL_ID,
    UNAUTHENTICATED,
    User,
)

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

INVALID_TOKEN: Final = "invalid bearer token"


class TokenAnswer(msgspec.Struct, frozen=True):
    """The result for a bearer token: a user and its audiences, or why the token is not valid."""

    user: User | None = None
    audiences: tuple[str, ...] = ()
    error: str = ""


class Authenticator:
    """The authenticator of one server. `tokens` are static ones; `verifier` verifies service-account tokens."""

    __slots__ = ("_allows_anonymous", "_audiences", "_tokens", "_verifier")

    def __init__(
        self,
        *,
        tokens: Mapping[str, User] | None = None,
        verifier: TokenVerifier | None = None,
        audiences: Sequence[str] = (),
        allows_anonymous: bool = True,
    ) -> None:
        # By digest: the time of a lookup tells nothing about the tokens.
        self._tokens = {_digest(token): authenticated(user) for token, user in (tokens or {}).items()}
        self._verifier = verifier
        self._audiences = tuple(audiences)
        self._allows_anonymous = allows_anonymous

    def authenticate(
        self, *, peer_subject: User | Mapping[str, Any] | None, headers: Headers, now_ns: int
    ) -> User | None:
        """Return the user, or None: answer 401.

        `peer_subject` is what `certificate_user` made of the client certificate (cheap), or `getpeercert()` itself.
        """
        if isinstance(peer_subject, User):
            return peer_subject
        if peer_subject is not None and (user := certificate_user(peer_subject)) is not None:
            return user
        token = bearer_token(headers)
        if token is not None:
            return self.authenticate_token(token, now_ns=now_ns).user
        return ANONYMOUS_USER if self._allows_anonymous else None

    def authenticate_token(
        self, token: str, *, now_ns: int, audiences: Sequence[str] | None = None
    ) -> TokenAnswer:
        """Return whose token it is, for `audiences` (default: those of this server)."""
        asked = self._audiences if audiences is None else tuple(audiences)
        known = self._tokens.get(_digest(token))
        if known is not None:
            # A static token has no audiences, so it is valid for this server only.
            spoken = tuple(audience for audience in self._audiences if audience in asked)
            return TokenAnswer(known, spoken) if spoken or not asked else TokenAnswer(error=INVALID_TOKEN)
        if self._verifier is None:
            return TokenAnswer(error=INVALID_TOKEN)
        try:
            verified = self._verifier.verify(token, now_ns=now_ns, audiences=asked)
        except TokenRefused as refused:
            return TokenAnswer(error=f"[{INVALID_TOKEN}, {refused}]")
        if verified is None:
            return TokenAnswer(error=INVALID_TOKEN)
        return TokenAnswer(authenticated(verified.user), verified.audiences)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def authenticated(user: User) -> User:
    """Return `user` with the group `system:authenticated`."""
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return user.with_groups(AUTHENTICATED)


def bearer_token(headers: Headers) -> str | None:
    """Return the token in `Authorization: Bearer ...`, if there is one; other schemes are ignored."""
    for name, value in headers:
        if name == b"authorization":
            parts = value.decode("latin-1").strip().split(" ", 2)
            if len(parts) < 2 or parts[0].lower() != "bearer" or not parts[1]:
                return None
            return parts[1]
    return None


def certificate_user(certificate: Mapping[str, Any], der: bytes | None = None) -> User | None:
    """Return the user of a verified client certificate, as `ssl` describes it: CN, and O as groups.

    Call it once per connection. `der` are the bytes of the certificate, for the credential id in `extra`.
    """
    name, uids, groups = "", [], []
    for part in certificate.get("subject", ()):
        for key, value in part:
            match key:
                case "commonName":
                    name = value
                case "organizationName":
                    groups.append(value)
                case _ if key in _UID_OIDS:
                    uids.append(value)
    # Two uids, or an empty one, are not valid.
    if not name or len(uids) > 1 or "" in uids:
        return None
    extra = {} if der is None else {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return authenticated(User(name, uids[0] if uids else "", tuple(groups), extra))


#: How a uid may be called in a subject: the attribute of Kubernetes, which OpenSSL has no name for.
_UID_OIDS: Final = ("1.3.6.1.4.1.57683.2",)
