"""A fast path for node heartbeats: a lease renewal that differs from the last one only in its time is not recomputed.

Every node renews its lease every ten seconds with the same merge patch. Once such a patch has passed the whole write
path and changed nothing but `renewTime` and the time of its managedFields entry, the same patch with another time, from
the same user, on the object that write stored, gives the same bytes with other times: validation, admission and
managedFields depend on nothing else. Called by `verbs/patch.py`.

What must stay true: any other difference takes the whole write path again.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nodeward.api.codec import with_revision
from nodeward.api.coordination_v1 import Lease
from nodeward.api.scheme import Kind
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.item import Item
from nodeward.apiserver.request import Call
from nodeward.base.timestamp import TimestampError, parse_rfc3339_micro

#: Leases kept at a time; more than there will be nodes.
MOST: Final = 20_000
_MICRO: Final = len("2026-11-15T06:47:47.123456Z")
_SECOND: Final = len("2026-11-15T06:47:47Z")
_RENEWED: Final = b'"renewTime":"'
_OWNED: Final = b'"time":"'
_START: Final = b'{"metadata":{'
_SHAPE: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
#: Times on days that every month has, which need no further check.
_SURE: Final = re.compile(
    rb"[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z"
)


class _Known(NamedTuple):
    """One renewal: its user, the body around the time, and the offsets of the times, counted from the object's end."""

    revision: int
    user: User
    agent: str
    query: str
    before: bytes
    after: bytes
    owned_at: int
    renewed_at: int


class LeaseRenewals:
    """The last renewal of each lease, by key."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._known: dict[str, _Known] = {}
        #: parts of bodies, each kept once: those of different nodes are mostly equal
        self._bodies: dict[bytes, bytes] = {}

    def concerns(self, kind: Kind) -> bool:
        return kind.type is Lease

    def value(self, key: str, call: Call, item: Item) -> bytes | None:
        """Return the bytes to store, if this renewal is like the last one."""
        known = self._known.get(key)
        if known is None or known.revision != item.revision:
            return None
        request, sent = call.request, call.request.body
        start = len(known.before)
        if (
            len(sent) != start + _MICRO + len(known.after)
            or not sent.startswith(known.before)
            or not sent.endswith(known.after)
            or request.query != known.query
            or call.user_agent != known.agent
            or (call.user is not known.user and call.user != known.user)
        ):
            return None
        moment = sent[start : start + _MICRO]
        data = item.data
        owned, renewed = len(data) - known.owned_at, len(data) - known.renewed_at
        if moment == data[renewed : renewed + _MICRO] or not _is_moment(moment):
            return None
        return b"".join(
            (
                _START,
                data[_stamp(item.revision) : owned],
                self._env.now().encode(),
                data[owned + _SECOND : renewed],
                moment,
                data[renewed + _MICRO :],
            )
        )

    def renewed(self, key: str, revision: int) -> None:
        """Record the revision at which the value was stored."""
        known = self._known.get(key)
        if known is not None:  # it may have been forgotten meanwhile
            self._known[key] = known._replace(revision=revision)

    def learn(self, key: str, call: Call, before: Item | None, after: Item) -> None:
        """Record a patch that passed the whole write path, if it only renewed the lease."""
        self._known.pop(key, None)
        if before is None or before.revision == after.revision or call.warnings or call.is_dry_run:
            return
        old, new = before.data[_stamp(before.revision) :], after.data[_stamp(after.revision) :]
        owned, renewed = _only(new, _OWNED), _only(new, _RENEWED)
        if not 0 < owned < renewed or len(old) != len(new):
            return
        moment = new[renewed : renewed + _MICRO]
        head, _, tail = call.request.body.partition(moment)
        if (
            not head.endswith(_RENEWED)
            or not tail.startswith(b'"')
            or moment in tail
            or not _is_moment(moment)
        ):
            return
        if (
            old[:owned] != new[:owned]
            or old[owned + _SECOND : renewed] != new[owned + _SECOND : renewed]
            or old[renewed + _MICRO :] != new[renewed + _MICRO :]
            or b'"deletionTimestamp":' in new
        ):
            return
        if len(self._known) >= MOST:
            self._known.clear()
            self._bodies.clear()
        self._known[key] = _Known(
            after.revision,
            call.user,
            call.user_agent,
            call.request.query,
            self._bodies.setdefault(head, head),
            self._bodies.setdefault(tail, tail),
            len(new) - owned,
            len(new) - renewed,
        )


def _stamp(revision: int) -> int:
    """Return how many of an item's bytes are its resourceVersion, which is not stored."""
    return len(with_revision(_START, revision))


def _only(data: bytes, name: bytes) -> int:
    """Return where the value of a field begins that occurs once; -1 otherwise."""
    at = data.find(name)
    return at + len(name) if at >= 0 and data.find(name, at + 1) < 0 else -1


def _is_moment(text: bytes) -> bool:
    if _SURE.fullmatch(text):
        return True
    if _SHAPE.fullmatch(text) is None:
        return False
    try:
        parse_rfc3339_micro(text.decode())
    except TimestampError:
        return False
    return True
