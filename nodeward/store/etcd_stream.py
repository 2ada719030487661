"""Following an etcd cluster: every write there is, in order, from a revision on.

In: a revision. Out: steps of (events, revision they complete). The stream watches all keys there are, not
only ours: every revision of etcd is a write to some key, so seeing the write of revision R proves that
nothing older is missing. etcd's own progress notices do not prove that: before 3.4.25 and 3.5.8 they can
overtake events. They serve here as a sign of life only.

What must stay true: steps come in revision order without gaps, across reconnections; a gap is a `Compacted`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import grpc.aio

from nodeward.store.etcd_wire import messages
from nodeward.store.etcd_wire.members import Members, pause
from nodeward.store.interface import EMPTY, Compacted, Event, Revision

#: after this much silence we ask whether anybody is there
_SILENCE_SECONDS: Final = 1.0
#: unanswered questions before we look for another member
_QUESTIONS: Final = 4
_RECONNECT_SECONDS: Final = 0.05

#: etcd's way to say "all keys"
_ALL: Final = b"\x00"

Step = tuple[list[Event], Revision]


class _Broken(Exception):
    """The stream ended or fell silent."""


class _Missed(Exception):
    """Something happened between the revision we know and the beginning of the stream."""


class Stream:
    """Reads etcd's watch; keys outside `root` count for the revision only."""

    def __init__(self, members: Members, root: str) -> None:
        self._members = members
        self._root = root.encode()

    async def follow(self, after: Revision) -> AsyncGenerator[Step, None]:
        """Everything after a revision, for as long as it is read. Ends when the members are closed."""
        closing = self._members.closing
        is_current = True
        while not closing.is_set():
            number, call = self._members.watch()
            try:
                async with aclosing(self._read(call, after, is_current)) as steps:
                    async for step in steps:
                        is_current = True
                        after = step[1]
                        yield step
            except _Missed:
                is_current = False
            except (_Broken, grpc.aio.AioRpcError, asyncio.InvalidStateError):
                self._members.avoid(number)
                await pause(closing, _RECONNECT_SECONDS)
            finally:
                call.cancel()

    async def _read(self, call: Any, after: Revision, is_current: bool) -> AsyncGenerator[Step, None]:
        # If nothing has happened after `after`, the stream begins at the next revision and is live at once. If
        # something has, starting at `after` itself makes etcd complain exactly if any of it is forgotten.
        start = max(after, EMPTY) + is_current
        create = messages.WatchCreateRequest(key=_ALL, range_end=_ALL, start_revision=start)
        await call.write(messages.WatchRequest(create_request=create))
        question = messages.WatchRequest(progress_request=messages.WatchProgressRequest())
        reading = asyncio.ensure_future(call.read())
        unanswered = 0
        try:
            while True:
                await asyncio.wait({reading}, timeout=_SILENCE_SECONDS)
                if not reading.done():
                    unanswered += 1
                    if unanswered > _QUESTIONS:
                        raise _Broken
                    await call.write(question)
                    continue
                response = reading.result()
                unanswered = 0
                if not isinstance(response, messages.WatchResponse):  # the end of the stream
                    raise _Broken
                reading = asyncio.ensure_future(call.read())
                if response.canceled:
                    if response.compact_revision:
                        raise Compacted(after, response.compact_revision)
                    raise _Broken
                if response.created and is_current and response.header.revision > after:
                    raise _Missed
                if response.events:
                    events, newest = self._decode(response.events, after)
                    if newest > after:
                        after = newest
                        yield events, newest
        finally:
            reading.cancel()

    def _decode(self, raw: Any, after: Revision) -> Step:
        """The events newer than `after` that are ours, and the newest revision among all of them."""
        root = self._root
        size = len(root)
        events: list[Event] = []
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
                    events.append(Event(revision, name, None, False))
                else:
                    events.append(Event(revision, name, kv.value, kv.create_revision == revision))
        return events, newest
