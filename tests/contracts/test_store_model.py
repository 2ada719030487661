"""Every kind of store against a model that is a list of writes: writes, reads, watches, compactions, restarts."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from nodeward.store.interface import (
    Compacted,
    KeyValue,
    Page,
    Revision,
    Store,
    StoreEvent,
    StoreUnavailable,
    StoreWatch,
)
from tests.contracts.store_etcd_server import running_etcd
from tests.contracts.store_grounds import EtcdGrounds, Ground, memory_ground, next_batch, sqlite_ground

KEYS = ["/a", "/a/1", "/a/2", "/a0", "/ab", "/b/1", "/b/\ud7ff", "/b/\ue000", "/b/\U0010ffff"]
PREFIXES = ["", "/", "/a", "/a/", "/b/", "/b/\ud7ff", "/b/\U0010ffff", "/none/"]
STARTS = ["", "/a/1\x00", "/a/2", "/b/1", "/c"]

keys = st.sampled_from(KEYS)
values = st.binary(max_size=4)
#: a revision, as a share of the way from the first one known to the newest
positions = st.floats(0, 1)


@dataclass
class Model:
    """What should be in the store: the writes since `base`, and the state at every revision since."""

    base: int
    compacted: int = 0
    events: list[StoreEvent] = field(default_factory=list)
    states: list[dict[str, KeyValue]] = field(default_factory=lambda: [{}])

    @property
    def revision(self) -> Revision:
        return Revision(self.base + len(self.events))

    @property
    def now(self) -> dict[str, KeyValue]:
        return self.states[-1]

    def at(self, revision: int) -> dict[str, KeyValue]:
        return self.states[revision - self.base]

    def pick(self, position: float) -> int:
        return self.base + round(position * len(self.events))

    def put(self, key: str, value: bytes) -> None:
        revision = Revision(self.revision + 1)
        old = self.now.get(key)
        created = old.create_revision if old else revision
        self.states.append(self.now | {key: KeyValue(key, value, created, revision)})
        self.events.append(StoreEvent(revision, key, value, old is None))

    def delete(self, key: str) -> None:
        revision = Revision(self.revision + 1)
        self.states.append({name: item for name, item in self.now.items() if name != key})
        self.events.append(StoreEvent(revision, key, None, False))

    def page(self, prefix: str, start: str, limit: int, revision: int) -> Page:
        found = [
            item for key, item in sorted(self.at(revision).items()) if key.startswith(prefix) and key >= start
        ]
        kept = found[:limit] if limit else found
        return Page(kept, Revision(revision), len(found) - len(kept))

    def events_of(self, prefix: str, after: int) -> list[StoreEvent]:
        return [event for event in self.events if event.revision > after and event.key.startswith(prefix)]


@dataclass
class Watched:
    """A watch, and how far the model has read it."""

    watch: StoreWatch
    prefix: str
    after: int
    must_be_compacted: bool


class StoreMachine(RuleBasedStateMachine):
    """Does the same to a store and to the model; they must agree."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.ground = ground
        self.runner = asyncio.Runner()
        self.watches: list[Watched] = []
        self.store: Store = ground.make()
        self.runner.run(self.store.open())
        self.model = Model(self.runner.run(self.store.revision()))

    @rule(key=keys, value=values, is_stale=st.booleans(), position=positions)
    def put(self, key: str, value: bytes, is_stale: bool, position: float) -> None:
        current = self.model.now.get(key)
        right = current.mod_revision if current else 0
        expected = self.model.pick(position) if is_stale else right
        result = self.runner.run(self.store.put(key, value, expected=expected))
        assert result.succeeded == (expected == right)
        if result.succeeded:
            self.model.put(key, value)
            assert result.current is None
        else:
            assert result.current == current
        assert result.revision == self.model.revision

    @rule(key=keys, is_stale=st.booleans(), position=positions)
    def delete(self, key: str, is_stale: bool, position: float) -> None:
        current = self.model.now.get(key)
        expected = self.model.pick(position) if is_stale or not current else current.mod_revision
        result = self.runner.run(self.store.delete(key, expected=expected))
        assert result.succeeded == (current is not None and expected == current.mod_revision)
        assert result.current == current
        if result.succeeded:
            self.model.delete(key)
        assert result.revision == self.model.revision

    @rule(writes=st.lists(st.tuples(keys, values), min_size=2, max_size=6))
    def put_at_once(self, writes: list[tuple[str, bytes]]) -> None:
        """Writers that know nothing of each other; the store says in which order they came."""

        async def write() -> None:
            before = self.model.now
            results = await asyncio.gather(
                *(
                    self.store.put(key, value, expected=before[key].mod_revision if key in before else 0)
                    for key, value in writes
                )
            )
            winners = [(r.revision, w) for r, w in zip(results, writes, strict=True) if r.succeeded]
            assert len(winners) == len({key for key, _ in writes})
            for revision, (key, value) in sorted(winners):
                self.model.put(key, value)
                assert revision == self.model.revision

        self.runner.run(write())

    @rule(key=keys)
    def get(self, key: str) -> None:
        assert self.runner.run(self.store.get(key)) == self.model.now.get(key)

    @rule(
        prefix=st.sampled_from(PREFIXES),
        start=st.sampled_from(STARTS),
        limit=st.integers(0, 4),
        position=st.none() | positions,
    )
    def range(self, prefix: str, start: str, limit: int, position: float | None) -> None:
        revision = 0 if position is None else self.model.pick(position)
        call = self.store.range(prefix, start=start, limit=limit, revision=revision)
        if revision and revision < self.model.compacted:
            with pytest.raises(Compacted) as caught:
                self.runner.run(call)
            assert caught.value.requested == revision
            return
        page = self.runner.run(call)
        wanted = self.model.page(prefix, start, limit, revision or self.model.revision)
        assert (list(page.items), page.revision, page.remaining) == (
            list(wanted.items),
            wanted.revision,
            wanted.remaining,
        )

    @rule(position=positions)
    def compact(self, position: float) -> None:
        revision = self.model.pick(position)
        self.runner.run(self.store.compact(revision))
        self.model.compacted = max(self.model.compacted, revision)

    @precondition(lambda self: len(self.watches) < 4)
    @rule(prefix=st.sampled_from(PREFIXES), position=positions)
    def start_watch(self, prefix: str, position: float) -> None:
        after = self.model.pick(position)

        async def start() -> StoreWatch:
            return self.store.watch(prefix, after=after)

        watch = self.runner.run(start())
        self.watches.append(Watched(watch, prefix, after, after < self.model.compacted))

    @precondition(lambda self: self.watches)
    @rule(number=st.integers(0, 3), is_last=st.booleans())
    def read_watch(self, number: int, is_last: bool) -> None:
        watched = self.watches[number % len(self.watches)]
        wanted = self.model.events_of(watched.prefix, watched.after)

        async def read() -> bool:
            seen: list[StoreEvent] = []
            try:
                await watched.watch.request_progress()
                while watched.watch.revision < self.model.revision or len(seen) < len(wanted):
                    seen.extend(await next_batch(watched.watch))
            except Compacted:
                assert watched.after < self.model.compacted
                return False
            assert not watched.must_be_compacted
            assert seen == wanted
            return True

        if not self.runner.run(read()) or is_last:
            self.runner.run(watched.watch.aclose())
            self.watches.remove(watched)
        watched.after = self.model.revision

    @rule()
    def restart(self) -> None:
        self.runner.run(self.store.close())
        for watched in self.watches:
            with pytest.raises(StoreUnavailable):
                self.runner.run(next_batch(watched.watch))
        self.watches.clear()
        self.store = self.ground.make()
        self.runner.run(self.store.open())
        assert self.runner.run(self.store.revision()) == self.model.revision

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()


def check(make_ground: Callable[[Path], Ground], directory: Path, *, examples: int, steps: int) -> None:
    def machine() -> StoreMachine:
        return StoreMachine(make_ground(Path(tempfile.mkdtemp(dir=directory))))

    run_state_machine_as_test(
        cast(type[RuleBasedStateMachine], machine),  # any callable will do, says its documentation
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_memory_agrees_with_the_model(tmp_path: Path) -> None:
    check(memory_ground, tmp_path, examples=60, steps=50)


def test_sqlite_agrees_with_the_model(tmp_path: Path) -> None:
    check(sqlite_ground, tmp_path, examples=25, steps=50)


def test_etcd_agrees_with_the_model(tmp_path: Path) -> None:
    with running_etcd(tmp_path) as server:
        check(EtcdGrounds(server), tmp_path, examples=10, steps=40)
