"""The store for several servers: an etcd cluster (3.4 or newer).

In: conditional writes. Out: pages, watches. Writes are transactions that compare the mod revision; one stream
of all of etcd's writes (`etcd_stream.py`) feeds every watch.

What must stay true: a write whose answer was lost is repeated only as the same comparison, which can succeed
at most once; a refusal after a lost answer is looked into, because the write refused may be our own that had
gone through.

Called by `opening`; calls `etcd_stream`, `feed`, `interface`, `keys` and `recent`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

import grpc

from nodeward.base.errors import NodewardError
from nodeward.base.invariant import invariant
from nodeward.store.etcd_stream import EtcdWatchStream
from nodeward.store.etcd_wire import messages
from nodeward.store.etcd_wire.members import (
    CALL_SECONDS,
    EtcdConnectionLost,
    EtcdMembers,
    EtcdRefused,
    EtcdTls,
    RetryPauses,
)
from nodeward.store.feed import Feed
from nodeward.store.interface import (
    Compacted,
    FutureRevision,
    KeyValue,
    OutcomeUnknown,
    Page,
    Revision,
    StoreClosed,
    StoreEvent,
    StoreUnavailable,
    StoreWatch,
    ValueTooLarge,
    WriteResult,
)
from nodeward.store.keys import check_key, prefix_end
from nodeward.store.recent import RecentEvents

#: etcd's way to say "no end"
_NO_END: Final = b"\x00"
#: a read whose only purpose is the revision in its answer
_ANY_KEY: Final = messages.RangeRequest(key=_NO_END, limit=1, keys_only=True)
#: how long to look for the cluster at first
_OPEN_SECONDS: Final = 5.0
#: keys read in one call when all are wanted
_PAGE_KEYS: Final = 5000
#: versions of a key looked at to find out whether a write whose answer was lost is among them
_VERSIONS: Final = 32


class EtcdStore:
    """A `Store` in the etcd cluster with these members (host:port), under keys that begin with `root`."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        root: str = "",
        tls: EtcdTls | None = None,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        """`call_seconds`: how long a call with all its attempts may take."""
        invariant(len(endpoints) > 0, "etcd has at least one endpoint")
        self._endpoints = tuple(endpoints)
        self._root = root
        self._tls = tls
        self._call_seconds = call_seconds
        self._opened = False

    @property
    def is_shared(self) -> bool:
        return True

    async def open(self) -> None:
        invariant(not self._opened, "a store is opened once; make a new one")
        self._members = EtcdMembers(self._endpoints, self._tls, self._call_seconds)
        try:
            now = await self._members.ask("Range", _ANY_KEY, _OPEN_SECONDS)
        except NodewardError as error:
            await self._members.close()
            raise StoreUnavailable(
                f"cannot reach etcd at {self._members}: {error}; is it running, and are address and certificates right?"
            ) from error
        revision = Revision(now.header.revision)
        self._feed = Feed(self, revision)
        self._recent = RecentEvents(revision)
        self._stream = EtcdWatchStream(self._members, self._root)
        self._compacted = 0  # as far as this store knows; others may have gone further
        self._opened = True
        self._following = asyncio.create_task(self._follow(revision), name="etcd-follow")

    async def close(self) -> None:
        if not self._opened:
            return
        self._opened = False
        await self._members.close()
        self._feed.close()
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following

    def _check_open(self) -> None:
        if not self._opened:
            raise StoreClosed("the store is closed")

    async def _follow(self, after: Revision) -> None:
        """Publish what happens in etcd, until closed. Should this ever fail, watches end rather than fall silent."""
        try:
            while not self._members.closing.is_set():
                after = await self._follow_until_gap(after)
        finally:
            self._feed.close()

    async def _follow_until_gap(self, after: Revision) -> Revision:
        try:
            async with aclosing(self._stream.follow(after)) as steps:
                async for events, after in steps:
                    self._recent.extend(events, after)
                    self._feed.publish(events, after)
        except Compacted as gap:
            # We were away for longer than etcd remembers: nobody can be told what happened meanwhile.
            after = Revision(gap.compacted)
            self._recent = RecentEvents(after)
            self._feed.lose_until(after)
        return after

    # Writing.

    async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        name = self._name(key)
        put = messages.RequestOp(request_put=messages.PutRequest(key=name, value=value))
        answer, is_repeated = await self._transact(name, put, expected)
        if answer.succeeded:
            return WriteResult(True, Revision(answer.header.revision), None)
        current = self._current(answer)
        if is_repeated:
            own = await self._find_own(name, value, expected, current)
            if own:
                return WriteResult(True, own, None)
        return WriteResult(False, Revision(answer.header.revision), current)

    async def delete(self, key: str, *, expected: int) -> WriteResult:
        name = self._name(key)
        if expected <= 0:
            self._check_open()
            answer = await self._ask("Range", messages.RangeRequest(key=name))
            found = self._key_value(answer.kvs[0]) if answer.kvs else None
            return WriteResult(False, Revision(answer.header.revision), found)
        remove = messages.RequestOp(request_delete_range=messages.DeleteRangeRequest(key=name, prev_kv=True))
        answer, is_repeated = await self._transact(name, remove, expected)
        if answer.succeeded:
            (removed,) = answer.responses[0].response_delete_range.prev_kvs
            return WriteResult(True, Revision(answer.header.revision), self._key_value(removed))
        current = self._current(answer)
        if is_repeated and (current is None or current.create_revision > expected):
            # Gone: by our first attempt or by somebody else's delete; nothing in etcd tells them apart.
            raise OutcomeUnknown(f"whether {key} was deleted by us is not known: the answer was lost")
        return WriteResult(False, Revision(answer.header.revision), current)

    async def _transact(self, name: bytes, change: Any, expected: int) -> tuple[Any, bool]:
        """Do `change` if the key's mod revision is `expected`; else read the key. Whether it was tried repeatedly."""
        self._check_open()
        compare = messages.Compare(
            result=messages.EQUAL, target=messages.MOD_REVISION, key=name, mod_revision=expected
        )
        look = messages.RequestOp(request_range=messages.RangeRequest(key=name))
        request = messages.TxnRequest(compare=[compare], success=[change], failure=[look])
        pauses = RetryPauses(self._members.closing, self._call_seconds)
        is_repeated = False
        while True:
            try:
                return await self._members.attempt("Txn", request, pauses.remaining), is_repeated
            except EtcdConnectionLost as error:
                # Repeating is safe: if the attempt did go through, or still does, one of the two comparisons fails.
                is_repeated = True
                try:
                    await pauses.wait(error)
                except StoreUnavailable as given_up:
                    raise _unknown(given_up) from error
            except (EtcdRefused, StoreUnavailable) as error:
                if is_repeated:
                    raise _unknown(error) from error
                raise (_explain(error) if isinstance(error, EtcdRefused) else error) from error

    async def _find_own(
        self, name: bytes, value: bytes, expected: int, current: KeyValue | None
    ) -> Revision | None:
        """Return the revision of a put of ours that went through unheard, though the key may have changed since."""
        version = current
        for _ in range(_VERSIONS):
            if version is None or version.mod_revision <= expected:
                return None
            if version.value == value:
                return version.mod_revision
            try:
                answer = await self._members.ask(
                    "Range", messages.RangeRequest(key=name, revision=version.mod_revision - 1)
                )
            except EtcdRefused as error:
                raise OutcomeUnknown("whether a put happened is not known: the answer was lost") from error
            version = self._key_value(answer.kvs[0]) if answer.kvs else None
        raise OutcomeUnknown("whether a put happened is not known: the key has changed too often since")

    def _current(self, answer: Any) -> KeyValue | None:
        found = answer.responses[0].response_range.kvs
        return self._key_value(found[0]) if found else None

    # Reading.

    async def get(self, key: str) -> KeyValue | None:
        self._check_open()
        answer = await self._ask("Range", messages.RangeRequest(key=self._name(key)))
        return self._key_value(answer.kvs[0]) if answer.kvs else None

    async def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        self._check_open()
        low = first = (self._root + max(prefix, start)).encode()
        end = prefix_end(self._root + prefix)
        stop = _NO_END if end is None else end.encode()
        items: list[KeyValue] = []
        at = revision
        while True:
            wanted = min(limit - len(items), _PAGE_KEYS) if limit else _PAGE_KEYS
            request = messages.RangeRequest(key=low or _NO_END, range_end=stop, limit=wanted, revision=at)
            try:
                answer = await self._members.ask("Range", request)
            except EtcdRefused as error:
                reason = await self._explain_revision(error, at)
                if isinstance(reason, Compacted) and not revision:
                    # The newest state was wanted, and was compacted away between two pages: begin again.
                    low, at, items = first, 0, []
                    continue
                raise reason from error
            at = at or answer.header.revision
            items.extend([self._key_value(kv) for kv in answer.kvs])
            following = answer.count - len(answer.kvs)
            if not following or len(items) == limit:
                return Page(items, Revision(at), following)
            low = answer.kvs[-1].key + b"\x00"

    def watch(self, prefix: str, *, after: int) -> StoreWatch:
        self._check_open()
        return self._feed.watch(prefix, after)

    async def events_after(self, prefix: str, after: int, step: int) -> tuple[Sequence[StoreEvent], Revision]:
        """Recent events from memory; older ones by following etcd once more, from there up to where the feed is."""
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        if after >= self._recent.base:
            return self._recent.after(prefix, after), self._recent.newest
        goal = min(after + step, self._recent.base)
        found: list[StoreEvent] = []
        reached = Revision(after)
        async with aclosing(self._stream.follow(reached)) as steps:
            async for events, reached in steps:
                found.extend([event for event in events if event.key.startswith(prefix)])
                if reached >= goal:
                    return found, reached
        raise StoreClosed("the store is closed")

    async def revision(self) -> Revision:
        self._check_open()
        return await self._newest()

    async def _newest(self) -> Revision:
        answer = await self._ask("Range", _ANY_KEY)
        return Revision(answer.header.revision)

    # Upkeep.

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision <= 0:
            return
        try:
            await self._members.ask("Compact", messages.CompactionRequest(revision=revision))
        except EtcdRefused as error:
            if not _is_compacted(error):
                raise await self._explain_revision(error, revision) from error
        self._compacted = max(self._compacted, revision)

    async def size(self) -> int:
        """Bytes of the database of the member that answers."""
        self._check_open()
        answer = await self._ask("Status", messages.StatusRequest())
        return int(answer.db_size)

    def _name(self, key: str) -> bytes:
        check_key(key)
        return (self._root + key).encode()

    def _key_value(self, kv: Any) -> KeyValue:
        return KeyValue(kv.key.decode()[len(self._root) :], kv.value, kv.create_revision, kv.mod_revision)

    async def _ask(self, call: str, request: Any) -> Any:
        try:
            return await self._members.ask(call, request)
        except EtcdRefused as error:
            raise _explain(error) from error

    async def _explain_revision(self, error: EtcdRefused, revision: int) -> NodewardError:
        if _is_compacted(error):
            return await self._find_oldest(revision)
        if "is a future revision" in error.details:
            return FutureRevision(revision, await self._newest())
        return _explain(error)

    async def _find_oldest(self, revision: int) -> NodewardError:
        """Ask how far etcd was compacted: only a watch from a compacted revision is told, a read is just refused."""
        try:
            async with (
                asyncio.timeout(CALL_SECONDS),
                aclosing(self._stream.follow(Revision(revision))) as steps,
            ):
                async for _ in steps:
                    # This member has not done yet what the member that refused the read has: it cannot tell.
                    return Compacted(revision, await self._newest())
        except Compacted as gone:
            self._compacted = max(self._compacted, gone.compacted)
            return Compacted(revision, gone.compacted)
        except TimeoutError:
            pass
        return StoreUnavailable(f"revision {revision} has been compacted, and etcd does not say how far")


def _is_compacted(error: EtcdRefused) -> bool:
    return "has been compacted" in error.details


def _unknown(error: NodewardError) -> OutcomeUnknown:
    return OutcomeUnknown(f"whether the write happened is not known: {error}")


def _explain(error: EtcdRefused) -> NodewardError:
    """Return what etcd's refusal means for whoever asked the store."""
    if "request is too large" in error.details or "larger than max" in error.details:
        return ValueTooLarge(f"etcd takes no value of this size: {error.details}")
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return StoreUnavailable(
            f"etcd is full or overloaded: {error.details}; compact and defragment it, or raise its quota"
        )
    return StoreUnavailable(f"etcd refused: {error.details} ({error.code.name})")
