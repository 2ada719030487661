"""The types of authorization: a user, the attributes of a request, and the decision about it.

All three are immutable and cheap: one of each is made for every request. A `User` is shared by all requests of a
connection or a token, so nothing may be kept on it that belongs to one request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias

import msgspec

ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"

#: Keys in a user's `extra` that say which credential was shown.
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
POD_NAME: Final = "authentication.kubernetes.io/pod-name"
POD_UID: Final = "authentication.kubernetes.io/pod-uid"
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
NODE_UID: Final = "authentication.kubernetes.io/node-uid"


class User(msgspec.Struct, frozen=True):
    """The user of a request. Compared by value; not hashable, because `extra` is a dict."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    def with_groups(self, *groups: str) -> User:
        """Return the same user with these groups added."""
        return User(self.name, self.uid, (*self.groups, *groups), self.extra)


ANONYMOUS_USER: Final = User(ANONYMOUS, groups=(UNAUTHENTICATED,))


#: One term of a field selector: field, value, and whether it must be equal (or must not).
FieldTerm: TypeAlias = tuple[str, str, bool]


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants to do: to a resource, or (`is_resource_request` false) to a path."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""
    is_resource_request: bool = True
    #: Only the node authorizer looks at these.
    field_selector: tuple[FieldTerm, ...] = ()


class AuthorizerDecision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Authorization(msgspec.Struct, frozen=True):
    """A decision and its reason; the reason may be empty."""

    verdict: AuthorizerDecision
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.verdict is AuthorizerDecision.ALLOW


NO_OPINION: Final = Authorization(AuthorizerDecision.NO_OPINION)
ALLOWED: Final = Authorization(AuthorizerDecision.ALLOW)

Authorize: TypeAlias = Callable[[Attributes], Authorization]


def service_account_name(namespace: str, name: str) -> str:
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def split_service_account(username: str) -> tuple[str, str] | None:
    """Return namespace and name in `system:serviceaccount:<namespace>:<name>`, None for other users."""
    if not username.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, colon, name = username[len(SERVICE_ACCOUNT_PREFIX) :].partition(":")
    if not colon or not _LABEL.fullmatch(namespace) or not is_subdomain(name):
        return None
    return namespace, name


def split_node(username: str) -> str | None:
    """Return the node in `system:node:<name>`, or None for other users."""
    name = username.removeprefix(NODE_PREFIX)
    return name if name != username and is_subdomain(name) else None


def is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None
