"""What components know about the cluster: a copy of a collection in memory, and word of every change.

An `Informer` is filled by a `Reflector`; components read it like a dictionary, look objects up by index, and are called
back for every add, update and delete. An `InformerFactory` makes sure that components that ask for the same
collection share one informer, one watch and one copy.

What must stay true: everything happens on the loop, so a reader never sees half a change; the copy is changed before
the handlers are called; a handler added late is first told of everything that is there. Objects are shared by all
readers: nobody changes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, KeysView, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from nodeward.api.scheme import Kind
from nodeward.base.invariant import invariant
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance
from nodeward.machinery.reading import ObjectReader
from nodeward.machinery.reflector import ReflectedObject, Reflector

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Handler(Generic[T]):
    """What to call. Callbacks do not block; one that raises stops the informer, since it has missed something."""

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None


class _Index(Generic[T]):
    """Keys by value. `values_of` may name any number of values for an object."""

    def __init__(self, values_of: Callable[[T], Iterable[str]]) -> None:
        self._values_of = values_of
        self._keys: dict[str, dict[str, None]] = {}

    def add(self, key: str, obj: T) -> None:
        for value in self._values_of(obj):
            self._keys.setdefault(value, {})[key] = None

    def remove(self, key: str, obj: T) -> None:
        for value in self._values_of(obj):
            keys = self._keys.get(value)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self._keys[value]

    def keys(self, value: str) -> Iterable[str]:
        return self._keys.get(value, ())

    def values(self) -> KeysView[str]:
        return self._keys.keys()


class Informer(Generic[T]):
    """A copy of one collection; `run` keeps it up to date. Implements the reflector's `Sink`."""

    def __init__(
        self,
        client: Client,
        wanted: type[T] | ObjectReader[T],
        chance: Chance,
        *,
        kind: Kind | None = None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self.reflector: Final = Reflector[T](
            client,
            wanted,
            self,
            chance,
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        self._items: dict[str, T] = {}
        self._versions: dict[str, str] = {}
        self._indexes: dict[str, _Index[T]] = {}
        self._handlers: tuple[Handler[T], ...] = ()
        self._synced = asyncio.Event()

    @property
    def kind(self) -> Kind:
        return self.reflector.kind

    async def run(self) -> None:
        """Run until cancelled."""
        await self.reflector.run()

    # -- reading --------------------------------------------------------------------------------------------------

    def has_synced(self) -> bool:
        """Tell whether the first list has arrived; before that, absence means nothing."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._items.get(f"{namespace}/{name}" if namespace else name)

    def by_key(self, key: str) -> T | None:
        """Return the object by "namespace/name", or "name" for a cluster-scoped one."""
        return self._items.get(key)

    def list(self, namespace: str = "") -> Sequence[T]:
        """Return everything, or everything in one namespace, longest known first."""
        if not namespace:
            return [*self._items.values()]
        prefix = f"{namespace}/"
        return [obj for key, obj in self._items.items() if key.startswith(prefix)]

    def keys(self) -> KeysView[str]:
        return self._items.keys()

    def __len__(self) -> int:
        return len(self._items)

    def add_index(self, name: str, values_of: Callable[[T], Iterable[str]]) -> None:
        """Make objects findable by what `values_of` says of them, which must depend on the object alone."""
        invariant(name not in self._indexes, f"index {name!r} exists already")
        index = _Index(values_of)
        for key, obj in self._items.items():
            index.add(key, obj)
        self._indexes[name] = index

    def has_index(self, name: str) -> bool:
        return name in self._indexes

    def by_index(self, name: str, value: str) -> Sequence[T]:
        """Return the objects with this value, in the order they came to have it."""
        return [self._items[key] for key in self._indexes[name].keys(value)]

    def index_values(self, name: str) -> KeysView[str]:
        """Return the values that at least one object has."""
        return self._indexes[name].values()

    # -- listening ------------------------------------------------------------------------------------------------

    def add_handler(
        self,
        on_add: Callable[[T], None] | None = None,
        on_update: Callable[[T, T], None] | None = None,
        on_delete: Callable[[T], None] | None = None,
    ) -> Handler[T]:
        """Call back from now on; what is there already is told at once, as added. Returns what `remove_handler` takes.

        `on_update` gets the old and the new object. An object that was deleted and made again while the connection
        was down arrives as an update with another uid.
        """
        handler = Handler(on_add, on_update, on_delete)
        if on_add is not None:
            for obj in [*self._items.values()]:
                on_add(obj)
        self._handlers = (*self._handlers, handler)
        return handler

    def remove_handler(self, handler: Handler[T]) -> None:
        self._handlers = tuple(other for other in self._handlers if other is not handler)

    # -- Sink -----------------------------------------------------------------------------------------------------

    def replace(self, items: Sequence[ReflectedObject[T]]) -> None:
        gone = dict.fromkeys(self._items)
        for item in items:
            gone.pop(item.key, None)
            self.upsert(item)
        for key in gone:
            self.remove(ReflectedObject(key, self._versions[key], self._items[key]))
        self._synced.set()

    def upsert(self, item: ReflectedObject[T]) -> None:
        key, version, obj = item
        known = self._versions.get(key)
        if known == version:
            return
        old = self._items.get(key)
        self._items[key] = obj
        self._versions[key] = version
        for index in self._indexes.values():
            if known is not None:
                index.remove(key, cast(T, old))
            index.add(key, obj)
        for handler in self._handlers:
            if known is None:
                if handler.on_add is not None:
                    handler.on_add(obj)
            elif handler.on_update is not None:
                handler.on_update(cast(T, old), obj)

    def remove(self, item: ReflectedObject[T]) -> None:
        if item.key not in self._items:
            return
        old = self._items.pop(item.key)
        del self._versions[item.key]
        for index in self._indexes.values():
            index.remove(item.key, old)
        for handler in self._handlers:
            if handler.on_delete is not None:
                handler.on_delete(item.obj)


class InformerFactory:
    """One informer for each collection, shared by all who ask for it."""

    def __init__(self, client: Client, chance: Chance) -> None:
        self._client = client
        self._chance = chance
        self._informers: dict[tuple[object, ...], Informer[Any]] = {}
        self._group: asyncio.TaskGroup | None = None

    def informer(
        self,
        wanted: type[T] | ObjectReader[T],
        *,
        kind: Kind | None = None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Informer[T]:
        """Return the informer of a collection; it starts with `run`, or at once if that is under way."""
        kind = kind or self._client.kind_of(wanted)
        key = (kind, wanted, namespace, label_selector, field_selector)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(
                self._client,
                wanted,
                self._chance.child(f"informer/{kind.qualified_resource}/{len(self._informers)}"),
                kind=kind,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
            )
            self._informers[key] = informer
            self._start(informer)
        return informer

    async def run(self) -> None:
        """Keep all informers up to date until cancelled; a handler's error ends it."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for informer in self._informers.values():
                    self._start(informer)
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    async def wait_synced(self) -> None:
        """Wait until every informer asked for so far has its first list."""
        for informer in [*self._informers.values()]:
            await informer.wait_synced()

    def has_synced(self) -> bool:
        return all(informer.has_synced() for informer in self._informers.values())

    def _start(self, informer: Informer[Any]) -> None:
        if self._group is not None:
            self._group.create_task(informer.run(), name=f"informer {informer.kind.qualified_resource}")
