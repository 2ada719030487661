"""Following an etcd cluster: every write there is, in order, from a revision on.

In: a revision. Out: steps of (events, revision they complete). The stream watches all keys there are, not
only ours: every revision of etcd is a write to some key, so seeing the write of revision R proves that
nothing older is missing. etcd's own progress notices do not prove that: before 3.4.25 and 3.5.8 they can
overtake events. They serve here as a sign of life only.

What must stay true: steps come in revision order without gaps, across reconnections; a gap is a `Compacted`.

Called by `etcd`; calls `interface`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from nodeward.store.etcd_wire import messages
from nodeward.store.etcd_wire.grpc_stream import GrpcStream, StreamEnded
from nodeward.store.etcd_wire.members import EtcdMembers, pause
from nodeward.store.interface import EMPTY, Compacted, Revision, StoreEvent

#: after this much silence we ask whether anybody is there
_SILENCE_SECONDS: Final = 1.0
#: unanswered questions before we look for another member
_QUESTIONS: Final = 4
_RECONNECT_SECONDS: Final = 0.05

#: etcd's way to say "all keys"
_ALL: Final = b"\x00"

Step = tuple[list[StoreEvent], Revision]


class _Missed(Exception):
    """Something happened between the revision we know and the beginning of the stream."""


class EtcdWatchStream:
    """Reads etcd's watch; keys outside `root` count for the revision only."""

    def __init__(self, members: EtcdMembers, root: str) -> None:
        self._members = members
        self._root = root.encode()

    async def follow(self, after: Revision) -> AsyncGenerator[Step, None]:
        """Everything after a revision, for as long as it is read. Ends when the members are closed."""
        closing = self._members.closing
        is_current = True
        while not closing.is_set():
            number, tap = self._members.watch()
            try:
                async with aclosing(self._read(tap, after, is_current)) as steps:
                    async for step in steps:
                        is_current = True
                        after = step[1]
                        yield step
            except _Missed:
                is_current = False
            except StreamEnded:
                self._members.avoid(number)
                await pause(closing, _RECONNECT_SECONDS)
            finally:
                tap.close()

    async def _read(self, tap: GrpcStream, after: Revision, is_current: bool) -> AsyncGenerator[Step, None]:
        # If nothing has happened after `after`, the stream begins at the next revision and is live at once. If
        # something has, starting at `after` itself makes etcd complain exactly if any of it is forgotten.
        start = max(after, EMPTY) + is_current
        create = messages.WatchCreateRequest(key=_ALL, range_end=_ALL, start_revision=start)
        tap.send(messages.WatchRequest(create_request=create))
        question = messages.WatchRequest(progress_request=messages.WatchProgressRequest())
        unanswered = 0
        while True:
            answers = await tap.take(_SILENCE_SECONDS)
            if answers:
                unanswered = 0
            elif unanswered < _QUESTIONS:
                unanswered += 1
                tap.send(question)
            else:
                raise StreamEnded
            known = after
            events: list[StoreEvent] = []
            for answer in answers:
                if answer.canceled:
                    if answer.compact_revision:
                        raise Compacted(after, answer.compact_revision)
                    raise StreamEnded
                if answer.created and is_current and answer.header.revision > known:
                    raise _Missed
                after = self._decode(answer.events, after, events)
            if after > known:
                yield events, after

    def _decode(self, raw: Any, after: Revision, events: list[StoreEvent]) -> Revision:
        """Add what is newer than `after` and ours to `events`; the newest revision among all of them."""
        root = self._root
        size = len(root)
        newest = after
        for each in raw:
            kv = each.kv
            revision = Revision(kv.mod_revision)
            if revision <= after:
                continue
            newest = revision
            key: bytes = kv.key
            if key.startswith(root):
                name = key[size:].decode("utf-8", "replace")
                if each.type == messages.DELETE:
                    events.append(StoreEvent(revision, name, None, False))
                else:
                    events.append(StoreEvent(revision, name, kv.value, kv.create_revision == revision))
        return newest
