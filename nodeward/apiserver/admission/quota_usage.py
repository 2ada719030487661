"""A quota tally that follows the watch cache: the objects of one kind in one namespace, as of the newest revision.

Used by the ResourceQuota admission plugin; the sum itself is kept by `rules.quota_tally`. When asked, the tally applies
the changes in the cache's history; only if it is too far behind does it read everything.

What must stay true: after `used`, the tally holds every object of the cache under its prefix, and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeward.api.codec import decoder
from nodeward.apiserver.cache import ResourceCache
from nodeward.rules.pod_resources import Amounts
from nodeward.rules.quota_tally import QuotaTally, UsageOf


class CachedQuotaTally:
    """The objects of one kind in one namespace, as one quota counts them."""

    def __init__(self, cache: ResourceCache, namespace: str, usage_of: UsageOf) -> None:
        self._cache = cache
        self._prefix = f"{namespace}/"
        self._decode: Callable[[bytes], Any] = decoder(cache.kind.type).decode
        self._seen = -1
        self._tally = QuotaTally(usage_of)

    def used(self) -> Amounts:
        """Return the sum as of the cache's newest revision."""
        self._catch_up()
        return self._tally.used()

    def _catch_up(self) -> None:
        history = self._cache.history
        newest = history[-1].revision if history else self._cache.history_start
        if self._seen < self._cache.history_start:
            self._tally.clear()
            for key in self._cache.keys(self._prefix):
                self._tally.put(key, self._decode(self._cache.objects[key].data))
        else:
            changed: dict[str, None] = {}
            for change in reversed(history):
                if change.revision <= self._seen:
                    break
                if change.key.startswith(self._prefix):
                    changed[change.key] = None
            for key in changed:
                item = self._cache.objects.get(key)
                if item is None:
                    self._tally.drop(key)
                else:
                    self._tally.put(key, self._decode(item.data))
        self._seen = newest
