"""Impersonation: the `Impersonate-*` headers, and whether the caller may use them. Called by `security.py`.

There are two ways to be allowed. The classic way: the verb `impersonate` on each thing assumed (user, groups, uid,
extra). The constrained ways, tried first: `impersonate:<mode>` on who is assumed, and `impersonate-on:<mode>:<verb>` on
what is then done; a mode fits a kind of user (a node, a service account, others). The caller sees the refusal of the
first mode that fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from nodeward.api import errors
from nodeward.api.errors import ApiError
from nodeward.apiserver.auth.authenticate import Headers
from nodeward.apiserver.auth.forbidden import forbidden
from nodeward.apiserver.auth.rules import ALL
from nodeward.apiserver.auth.user import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_NAME,
    NODES,
    UNAUTHENTICATED,
    Attributes,
    Authorize,
    User,
    is_subdomain,
    service_account_groups,
    split_node,
    split_service_account,
)
from nodeward.base.fielderror import quote

_GROUP: Final = "authentication.k8s.io"
#: From this many values on, one question about all of them is asked first.
_MANY: Final = 4
_PREFIX: Final = b"impersonate-"
_EXTRA: Final = b"impersonate-extra-"


def wanted_user(headers: Headers) -> User | None:
    """Return the user the headers name; None when there are no such headers."""
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    is_asked = False
    for key, value in headers:
        if not key.startswith(_PREFIX):
            continue
        text = value.decode("utf-8", "replace")
        if key == b"impersonate-user":
            name = name or text
        elif key == b"impersonate-uid":
            uid = uid or text
            is_asked = is_asked or bool(text)
        elif key == b"impersonate-group":
            groups.append(text)
            is_asked = True
        elif key.startswith(_EXTRA):
            part = unquote(key[len(_EXTRA) :].decode("latin-1"), errors="replace")
            extra[part] = (*extra.get(part, ()), text)
            is_asked = True
    user = User(name, uid, tuple(groups), extra)
    if not name:
        if is_asked:
            raise errors.bad_request(f"requested {_printed(user)} without impersonating a user name")
        return None
    return user


def _printed(user: User) -> str:
    """Format the user as Kubernetes' own message shows it."""

    def strings(values: Sequence[str]) -> str:
        return "{" + ", ".join(quote(value) for value in values) + "}"

    groups = f"[]string{strings(user.groups)}" if user.groups else "[]string(nil)"
    items = ", ".join(f"{quote(key)}:[]string{strings(user.extra[key])}" for key in sorted(user.extra))
    extra = f"map[string][]string{{{items}}}" if user.extra else "map[string][]string(nil)"
    return (
        f"&user.DefaultInfo{{Name:{quote(user.name)}, UID:{quote(user.uid)}, Groups:{groups}, Extra:{extra}}}"
    )


def impersonate(attributes: Attributes, wanted: User, authorize: Authorize) -> User:
    """Return the user to continue as: `wanted`, with the groups that follow from the name. Raises 403.

    `attributes` are those of the request itself, with the real caller as the user.
    """
    first: ApiError | None = None
    for mode in _MODES:
        if not mode.fits(wanted, attributes.user):
            continue
        try:
            return _Attempt(mode.name, attributes, authorize).act_as(wanted)
        except ApiError as refusal:
            first = first or refusal
    try:
        return _Attempt("", attributes, authorize).act_as(wanted)
    except ApiError as refusal:
        raise first or refusal from None


class _Mode(msgspec.Struct, frozen=True):
    name: str
    fits: Callable[[User, User], bool]


def _is_only_a_name(user: User) -> bool:
    return not user.uid and not user.groups and not user.extra


def _is_own_node(wanted: User, caller: User) -> bool:
    """Tell whether a pod's service account impersonates the node that the pod runs on."""
    node = split_node(wanted.name)
    return (
        node is not None
        and _is_only_a_name(wanted)
        and split_service_account(caller.name) is not None
        and tuple(caller.extra.get(NODE_NAME, ())) == (node,)
    )


def _is_any_node(wanted: User, _caller: User) -> bool:
    return _is_only_a_name(wanted) and split_node(wanted.name) is not None


def _is_service_account(wanted: User, _caller: User) -> bool:
    return _is_only_a_name(wanted) and split_service_account(wanted.name) is not None


def _is_other_user(wanted: User, _caller: User) -> bool:
    return split_node(wanted.name) is None and split_service_account(wanted.name) is None


_MODES: Final = (
    _Mode("associated-node", _is_own_node),
    _Mode("arbitrary-node", _is_any_node),
    _Mode("serviceaccount", _is_service_account),
    _Mode("user-info", _is_other_user),
)


class _Attempt:
    """One mode tried for one request; the empty mode is the classic, unconstrained way."""

    __slots__ = ("_attributes", "_authorize", "_caller", "_mode", "_verb")

    def __init__(self, mode: str, attributes: Attributes, authorize: Authorize) -> None:
        self._mode = mode
        self._verb = f"impersonate:{mode}" if mode else "impersonate"
        self._authorize = authorize
        self._attributes = attributes
        self._caller = attributes.user
        if mode == "associated-node":
            # Which node and pod it is must not matter to the answer: it holds for all pods of the service account.
            keys = tuple(sorted(attributes.user.extra))
            extra = {"authentication.kubernetes.io/associated-node-keys": keys}
            self._caller = replace(attributes.user, extra=extra)

    def act_as(self, wanted: User) -> User:
        if self._mode:
            verb = f"impersonate-on:{self._mode}:{self._attributes.verb}"
            self._require(replace(self._attributes, user=self._caller, verb=verb))
        groups = self._check_name(wanted)
        if wanted.uid:
            self._require(self._about(_GROUP, "uids", wanted.uid))
        self._check_groups(wanted.groups)
        self._check_extra(wanted.extra)
        if wanted.name == ANONYMOUS:
            implied = UNAUTHENTICATED
        else:
            implied = UNAUTHENTICATED if UNAUTHENTICATED in groups else AUTHENTICATED
        if implied not in groups:
            groups = (*groups, implied)
        return replace(wanted, groups=groups)

    def _check_name(self, wanted: User) -> tuple[str, ...]:
        """Return the groups of the assumed user: as asked, or those a node or service account always has."""
        group, groups = (_GROUP if self._mode else ""), wanted.groups
        about = self._about(group, "users", wanted.name)
        node = split_node(wanted.name) if self._mode else None
        account = split_service_account(wanted.name)
        if node is not None:
            name = ALL if self._mode == "associated-node" else node
            about, groups = self._about(group, "nodes", name), (NODES,)
        elif account is not None:
            about = replace(self._about(group, "serviceaccounts", account[1]), namespace=account[0])
            groups = groups or service_account_groups(account[0])
        self._require(about)
        return groups

    def _check_groups(self, groups: Sequence[str]) -> None:
        about = self._about(_GROUP if self._mode else "", "groups", "")
        if self._mode:
            if "" in groups:
                raise forbidden(about, "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                refused = replace(about, name=MASTERS)
                raise forbidden(refused, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and self._authorize(replace(about, name=ALL)).is_allowed:
                return
        for group in groups:
            self._require(replace(about, name=group))

    def _check_extra(self, extra: Mapping[str, Sequence[str]]) -> None:
        about = self._about(_GROUP, "userextras", "")
        if self._mode:
            if fault := _extra_fault(extra):
                raise forbidden(about, fault)
            is_large = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
            if is_large and self._authorize(replace(about, subresource=ALL, name=ALL)).is_allowed:
                return
        for key, values in extra.items():
            for value in values:
                self._require(replace(about, subresource=key, name=value))

    def _about(self, group: str, resource: str, name: str) -> Attributes:
        return Attributes(
            user=self._caller, verb=self._verb, group=group, version="v1", resource=resource, name=name
        )

    def _require(self, wanted: Attributes) -> None:
        decision = self._authorize(wanted)
        if not decision.is_allowed:
            raise forbidden(wanted, decision.reason)


_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def _extra_fault(extra: Mapping[str, Sequence[str]]) -> str:
    """Return what is wrong with extra keys or values, by the stricter rules of the constrained modes."""
    for key, values in extra.items():
        domain, slash, path = key.partition("/")
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if not slash or not path or not is_subdomain(domain) or not _PATH.fullmatch(path):
            return (
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "
                f'{quote(key)}: must be a domain-prefixed path (such as "acme.io/foo")'
            )
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""
