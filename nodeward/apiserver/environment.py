"""What verbs, strategies and admission plugins may use: clock, chance, gates, caches. Passed to them, never global.

Made by `server.py`. Reads through `peek` never wait: they see the watch caches as they are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

import msgspec

from nodeward.api.codec import decoder
from nodeward.api.context import Context
from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind, Scheme
from nodeward.apiserver.hub import Hub
from nodeward.apiserver.item import Item
from nodeward.apiserver.large_bodies import BodyWorker, OnLoop
from nodeward.base.timestamp import rfc3339
from nodeward.features import FRAMEWORK, Framework, Gates
from nodeward.machinery.clock import Chance, Clock

LOG: Final = logging.getLogger(__name__)

K = TypeVar("K", bound=KubeObject)

#: Decoded objects kept between peeks.
PEEKED: Final = 4096
#: Larger objects, in bytes, are not kept.
LONGEST_PEEKED: Final = 8192


@dataclass(slots=True)
class Environment:
    """The dependencies of one API server's handlers."""

    hub: Hub
    scheme: Scheme
    clock: Clock
    chance: Chance
    gates: Gates
    #: the range service cluster IPs come from
    service_cidr: str = "10.96.0.0/16"
    node_ports: tuple[int, int] = (30000, 32767)
    #: the declared features that pods may need of nodes (KEP-5328)
    features: Framework = FRAMEWORK
    #: where work on large bodies is done
    worker: BodyWorker = field(default_factory=OnLoop)
    context: Context = field(init=False)
    _peeked: dict[tuple[Kind, str], tuple[Item, KubeObject]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.context = Context(self.gates)

    def now(self) -> str:
        """Return the current time, in the form objects carry it."""
        return rfc3339(self.clock.now_ns())

    def kind(self, type_: type[K]) -> Kind:
        return self.scheme.by_type(type_)

    def peek(self, type_: type[K], name: str, namespace: str = "") -> K | None:
        """Return an object from the caches. The object is shared: change only a copy."""
        kind = self.scheme.by_type(type_)
        key = f"{namespace}/{name}" if kind.is_namespaced else name
        item = self.hub.cache(kind).objects.get(key)
        return None if item is None else self._open(kind, type_, key, item)

    def peek_all(self, type_: type[K], namespace: str = "") -> list[K]:
        """Return all objects of a kind (in one namespace) from the caches; shared, as with `peek`."""
        kind = self.scheme.by_type(type_)
        cache = self.hub.cache(kind)
        if not cache.objects:
            return []
        prefix = f"{namespace}/" if namespace and kind.is_namespaced else ""
        found = [self._open(kind, type_, key, cache.objects[key]) for key in cache.keys(prefix)]
        return [each for each in found if each is not None]

    def _open(self, kind: Kind, type_: type[K], key: str, item: Item) -> K | None:
        """Decode an item, or return the decoded one: admission reads the same few objects again and again.

        None: what is stored cannot be decoded, so nobody can go by it.
        """
        known = self._peeked.get((kind, key))
        if known is not None and known[0] is item:
            return cast(K, known[1])
        try:
            obj = decoder(type_).decode(item.data)
        except msgspec.DecodeError as error:
            LOG.error("the stored %s %s cannot be decoded and counts for nothing: %s", kind.name, key, error)
            return None
        if len(item.data) <= LONGEST_PEEKED:
            if len(self._peeked) >= PEEKED:
                self._peeked.clear()
            self._peeked[kind, key] = (item, obj)
        return obj
