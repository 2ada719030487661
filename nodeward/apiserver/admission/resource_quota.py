"""ResourceQuota: refuses writes that would exceed the quotas of their namespace.

Unlike upstream: usage is counted from the caches at the moment of the write, not read from the quota's status, so a new
quota holds at once. Writes that were admitted but are not in the caches yet are kept and counted, so that concurrent
writes cannot exceed a quota together. Several servers on one store do not share these: they can exceed it by what is in
flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from nodeward.api.core_v1.cluster import ResourceQuota
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.admission.quota_usage import CachedQuotaTally
from nodeward.apiserver.environment import Environment
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import ZERO, Quantity
from nodeward.rules import quota as rules
from nodeward.rules.pod_resources import Amounts, add

#: How long an admitted write may take to appear in the cache; after that it counts as failed.
PATIENCE_NS: Final = 10 * SECOND_NS
#: Sums kept; when there are more, all are dropped and counted again when needed.
MAX_TALLIES: Final = 1024


class _Passed(NamedTuple):
    """An admitted write: what it adds, and what the cache held before it."""

    adds: Amounts
    revision: int
    deadline_ns: int


class ResourceQuotaPlugin(AdmissionPlugin):
    name: ClassVar[str] = "ResourceQuota"

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._tallies: dict[tuple[str, str, bytes], CachedQuotaTally] = {}
        #: namespace and quota -> resource and key -> what was let through
        self._passed: dict[tuple[str, str], dict[tuple[str, str], _Passed]] = {}

    def validate(self, write: Write) -> None:
        if not write.namespace or write.operation == "DELETE" or write.kind.stored_as:
            return
        resource = write.kind.qualified_resource
        if resource in rules.UNCOUNTED or not write.kind.is_stored or not _may_use_more(write, resource):
            return
        quotas = self.env.peek_all(ResourceQuota, write.namespace)
        passed = []
        for quota in quotas:
            adds = self._check(write, resource, quota)
            if adds:
                passed.append((quota.metadata.name, adds))
        # A write counts only once no quota has refused it.
        if not write.is_dry_run:
            for name, adds in passed:
                self._remember(write, resource, name, adds)

    def _check(self, write: Write, resource: str, quota: ResourceQuota) -> Amounts:
        """Return what the write adds to the quota's usage; raises if that is too much."""
        if not rules.matches(quota, resource, write.new):
            return {}
        name, hard = quota.metadata.name, quota.spec.hard
        if resource == rules.PODS:
            missing = rules.unsaid(write.new, hard, self.env.gates)
            if missing:
                raise write.refuse(f"failed quota: {name}: {missing}")
        adds = self._added(write, resource, quota)
        negative = sorted(each for each, amount in adds.items() if amount.sign < 0)
        if negative:
            raise write.refuse(f"quota usage is negative for resource(s): {','.join(negative)}")
        adds = {each: amount for each, amount in adds.items() if amount and each in hard}
        if not adds:
            return {}
        used = self._used(write, resource, quota)
        over = sorted(each for each, amount in adds.items() if used.get(each, ZERO) + amount > hard[each])
        if over and write.subresource != "status":
            raise write.refuse(
                f"exceeded quota: {name}, requested: {_listed(over, adds)}, "
                f"used: {_listed(over, used)}, limited: {_listed(over, hard)}"
            )
        return adds

    def _added(self, write: Write, resource: str, quota: ResourceQuota) -> Amounts:
        now = self.env.clock.now_ns()
        new = rules.usage(resource, write.new, self.env.gates, now)
        if write.old is None or not rules.matches(quota, resource, write.old):
            return new
        old = rules.usage(resource, write.old, self.env.gates, now)
        return {name: max(amount - old.get(name, ZERO), ZERO) for name, amount in new.items()}

    # -- what is used

    def _used(self, write: Write, resource: str, quota: ResourceQuota) -> Amounts:
        """Return the usage: everything in the caches, and admitted writes that are not there yet."""
        if resource in rules.WEIGHED:
            used = self._tally(write, resource, quota).used()
        else:
            count = Quantity.of_int(len(self.env.hub.cache(write.kind).keys(f"{write.namespace}/")))
            used = dict.fromkeys(rules.usage(resource, None, self.env.gates, 0), count)
        waiting = self._passed.get((write.namespace, quota.metadata.name), {})
        mine = (resource, f"{write.namespace}/{write.name}")
        for key, passed in list(waiting.items()):
            if key[0] == resource:
                if self._has_arrived(write, key[1], passed):
                    del waiting[key]
                elif key != mine:  # a second try replaces the first
                    add(used, passed.adds)
        return used

    def _tally(self, write: Write, resource: str, quota: ResourceQuota) -> CachedQuotaTally:
        scopes = msgspec.json.encode([quota.spec.scopes, quota.spec.scope_selector])
        key = (resource, write.namespace, scopes)
        tally = self._tallies.get(key)
        if tally is None:
            if len(self._tallies) >= MAX_TALLIES:
                self._tallies.clear()

            def usage_of(obj: Any) -> Amounts:
                return rules.usage_in(quota, resource, obj, self.env.gates, self.env.clock.now_ns())

            cache = self.env.hub.cache(write.kind)
            tally = self._tallies[key] = CachedQuotaTally(cache, write.namespace, usage_of)
        return tally

    def _has_arrived(self, write: Write, key: str, passed: _Passed) -> bool:
        item = self.env.hub.cache(write.kind).objects.get(key)
        revision = 0 if item is None else item.revision
        return revision != passed.revision or self.env.clock.monotonic_ns() > passed.deadline_ns

    def _remember(self, write: Write, resource: str, quota: str, adds: Amounts) -> None:
        key = f"{write.namespace}/{write.name}"
        item = None if write.operation == "CREATE" else self.env.hub.cache(write.kind).objects.get(key)
        deadline = self.env.clock.monotonic_ns() + PATIENCE_NS
        waiting = self._passed.setdefault((write.namespace, quota), {})
        waiting[resource, key] = _Passed(adds, 0 if item is None else item.revision, deadline)


def _may_use_more(write: Write, resource: str) -> bool:
    """Tell whether this kind of write can change the usage."""
    if write.operation == "CREATE":
        return not write.subresource
    if resource == rules.PODS:
        if write.subresource == "resize":
            return True
        return not write.subresource and rules.is_terminating(write.new) != rules.is_terminating(write.old)
    if resource == rules.VOLUME_CLAIMS and write.subresource == "status":
        return bool(write.new.status.allocated_resources != write.old.status.allocated_resources)
    return resource in rules.WEIGHED and not write.subresource


def _listed(names: list[str], amounts: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)
