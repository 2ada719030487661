"""What a request asks for, read from its method, path and query: verb, kind, namespace, name, subresource.

Called first by `app.py`. `resolve` touches no object; it says which resource is meant, or that the path is no resource.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, unquote_plus

from nodeward.api.errors import bad_request
from nodeward.api.scheme import Kind, Scheme
from nodeward.apiserver.auth.user import ANONYMOUS_USER, Attributes, User
from nodeward.base.fielderror import quote
from nodeward.machinery.transport import Request
from nodeward.rules.selectors import FieldSelector, SelectorError, any_fields

_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Query:
    """The parameters of a query; the first value counts, as in Kubernetes."""

    __slots__ = ("_values",)

    def __init__(self, text: str) -> None:
        values: dict[str, list[str]] = {}
        if text:
            for pair in text.split("&"):
                name, _, value = pair.partition("=")
                if "%" in value or "+" in value:
                    value = unquote_plus(value)
                if "%" in name:
                    name = unquote_plus(name)
                values.setdefault(name, []).append(value)
        self._values = values

    def get(self, name: str) -> str:
        found = self._values.get(name)
        return found[0] if found else ""

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        """Read a boolean; without a value, or with one that is not understood, it is true, as Go clients expect."""
        found = self._values.get(name)
        return found is not None and found[0] != "0" and found[0].lower() != "false"

    def number(self, name: str) -> int | None:
        """Read a 64-bit integer; None if none was given."""
        text = self.get(name)
        return parse_number(text) if text else None

    def revision(self, name: str) -> int | None:
        """Read a resourceVersion; None if none was given."""
        text = self.get(name)
        return parse_revision(text) if text else None


def parse_number(text: str) -> int:
    """Parse a signed 64-bit integer, written as Go reads it; raises 400."""
    number = _int(text) if _NUMBER.fullmatch(text) else None
    if number is None:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    if not -(2**63) <= number < 2**63:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def parse_revision(text: str) -> int:
    """Parse a resourceVersion a client sent; raises 400."""
    number = _int(text) if _DIGITS.fullmatch(text) else None
    if number is not None and number < 2**64:
        return number
    why = "invalid syntax" if number is None else "value out of range"
    shown = quote(text)
    raise bad_request(f"Invalid value: {shown}: strconv.ParseUint: parsing {shown}: {why}")


def _int(digits: str) -> int:
    # Python refuses to parse numbers of thousands of digits; callers only need to know that it is too large.
    return int(digits) if len(digits) < 40 else 2**128


#: The empty query of most requests.
NO_QUERY = Query("")

_PROXY: Final = "proxy"
_NARROWED: Final = frozenset({"list", "watch", "deletecollection"})
_ALL_FIELDS: Final = FieldSelector()
_ONE = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_MANY = {
    "GET": "list",
    "HEAD": "list",
    "POST": "create",
    "DELETE": "deletecollection",
    "PUT": "update",
    "PATCH": "patch",
}


@dataclass(slots=True)
class Call:
    """One request and everything that was derived from it (upstream: RequestInfo, with the user and warnings)."""

    request: Request
    query: Query
    #: the request's path without escapes
    path: str = ""
    verb: str = ""
    kind: Kind | None = None
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    #: what follows the subresource `proxy`: a path of another server
    proxied: str = ""
    namespace: str = ""
    name: str = ""
    user: User = ANONYMOUS_USER
    #: texts for `Warning` headers
    warnings: list[str] = field(default_factory=list)

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)

    @property
    def is_dry_run(self) -> bool:
        return "All" in self.query.all("dryRun")

    @property
    def user_agent(self) -> str:
        return self.request.headers.get("user-agent", "")

    def attributes(self) -> Attributes:
        """Return the attributes that authorization decides by."""
        fields = self._fields()
        return Attributes(
            user=self.user,
            verb=self.verb,
            group=self.group,
            version=self.version,
            resource=self.resource,
            subresource=self.subresource,
            # A list of one name is about that object: it may be allowed where a list of all is not.
            name=self.name or fields.exact("metadata.name") or "",
            namespace=self.namespace,
            path=self.path,
            is_resource_request=self.is_resource,
            field_selector=fields.terms,
        )

    def _fields(self) -> FieldSelector:
        """Return the field selector of a request for many; an invalid one, which is refused later, counts as none."""
        text = self.query.get("fieldSelector") if self.verb in _NARROWED else ""
        try:
            return any_fields(text) if text else _ALL_FIELDS
        except SelectorError:
            return _ALL_FIELDS

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def resolve(request: Request, scheme: Scheme) -> Call:
    """Read the path. Without `resource` the call is not about objects, without `kind` about unknown ones."""
    call = Call(request, Query(request.query) if request.query else NO_QUERY, request.path)
    if "%" in call.path:
        if _BAD_ESCAPE.search(call.path):
            raise bad_request(f"invalid URL escape in {quote(call.path)}")
        # Before the path is split: a slash is a slash, however it is written.
        call.path = unquote(call.path)
    parts = call.path.split("/")
    rest: list[str] = []
    if len(parts) >= 4 and not parts[0]:
        if parts[1] == "api":
            call.version, rest = parts[2], parts[3:]
        elif parts[1] == "apis" and len(parts) >= 5:
            call.group, call.version, rest = parts[2], parts[3], parts[4:]
        if rest and not rest[-1]:
            rest.pop()
    if not rest or "" in rest:
        call.version = call.group = ""
        call.verb = request.method.lower()
        return call
    _place(call, rest, scheme)
    _name_verb(call)
    return call


def _place(call: Call, rest: list[str], scheme: Scheme) -> None:
    if (
        rest[0] == "namespaces"
        and len(rest) >= 3
        and not (len(rest) == 3 and rest[2] in ("status", "finalize"))
    ):
        call.namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) >= 2:
        call.namespace = rest[1]
    call.resource = rest[0]
    if len(rest) > 1:
        call.name = rest[1]
    if len(rest) > 2 and rest[2] == _PROXY:
        call.subresource, call.proxied = _PROXY, "/".join(rest[3:])
    elif len(rest) > 2:
        call.subresource = "/".join(rest[2:])
    kind = scheme.by_resource(call.group, call.version, call.resource)
    if kind is not None and not kind.is_namespaced and call.namespace and call.resource != "namespaces":
        kind = None
    call.kind = kind


def _name_verb(call: Call) -> None:
    method = call.request.method
    call.verb = (_ONE if call.name else _MANY).get(method, method.lower())
    if call.verb in ("list", "get") and not call.subresource and call.query.flag("watch"):
        call.verb = "watch"
