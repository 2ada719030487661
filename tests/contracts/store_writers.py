"""Concurrent writers for the kill tests, and the ledger that their acknowledgements are held against.

Every write carries a name of its own, so that a write that happened twice, or that was acknowledged and is
not there, shows. Each writer has a key of its own, where nothing may ever be refused, and they all fight over
one shared key.

Run as a program (`python -m tests.contracts.store_writers FILE SEED`) it writes to a SQLite store until it is
killed and prints a line per acknowledged write.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from nodeward.store.interface import Store, StoreEvent, StoreUnavailable
from nodeward.store.sqlite import SqliteStore

WRITERS = 24
SHARED = "/k/shared"
_PADDING = b" " * 1500

#: revision, key, name of the write ("" for a delete)
Acknowledge = Callable[[int, str, str], None]


async def write_forever(store: Store, run: str, writer: int, acknowledge: Acknowledge) -> None:
    """Create, update and delete an own key, and now and then the shared one, as fast as the store answers."""
    chance = random.Random(f"{run}-{writer}")
    key = f"/k/{writer:02}"
    number = 0
    while True:
        number += 1
        name = f"{run}-{writer}-{number}"
        target = SHARED if chance.random() < 0.1 else key
        try:
            current = await store.get(target)
            expected = current.mod_revision if current else 0
            if current and chance.random() < 0.1:
                result = await store.delete(target, expected=expected)
                name = ""
            else:
                result = await store.put(target, name.encode() + _PADDING, expected=expected)
        except StoreUnavailable:
            continue  # not known to have happened: nothing to acknowledge
        if result.succeeded:
            acknowledge(result.revision, target, name)
        elif target == key:
            raise AssertionError(f"{name} was refused, though nobody else writes {key}: {result}")


@dataclass
class Ledger:
    """What the store said happened: acknowledgements on one side, the events of a watch on the other."""

    revision: int
    state: dict[str, bytes] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    events: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, event: StoreEvent) -> None:
        """One event of a watch; the next revision, with a name not seen before."""
        assert event.revision == self.revision + 1, "the watch has a gap or a repetition"
        self.revision = event.revision
        if event.value is None:
            name = ""
            del self.state[event.key]
        else:
            assert event.is_create == (event.key not in self.state)
            name = event.value.decode().strip()
            assert name not in self.names, "a write happened twice"
            self.names.add(name)
            self.state[event.key] = event.value
        self.events[int(event.revision)] = (event.key, name)

    def check(self, acknowledged: list[tuple[int, str, str]]) -> None:
        """Every acknowledged write is among the events, where it was said to be."""
        for revision, key, name in acknowledged:
            assert self.events[revision] == (key, name), "an acknowledged write is not there"


async def _main(file: str, run: str) -> None:
    store = SqliteStore(file)
    await store.open()
    # What happened before this run has been looked at: forgetting it goes on while we write and are killed.
    await store.compact(await store.revision())

    def acknowledge(revision: int, key: str, name: str) -> None:
        os.write(1, f"{revision} {key} {name}\n".encode())

    await asyncio.gather(*(write_forever(store, run, writer, acknowledge) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
