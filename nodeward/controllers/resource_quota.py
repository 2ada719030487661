"""Resource quotas: their status says what is allowed and how much of it is used, and is kept true.

Keys are quotas. Objects are weighed by the same rules as at admission (`rules.quota`). A kind is followed from when the
first quota counts it: pods, services and claims whole, since they count for more than their number, all others by
their metadata.

What must stay true: `status.used` names what `spec.hard` names and somebody can count; everything is looked at again
every five minutes, because a pod that should have ended counts for nothing without any change to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.cluster import ResourceQuota, ResourceQuotaStatus
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.base.errors import WorldError
from nodeward.base.quantity import ZERO, Quantity
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.owner_graph import META, Meta
from nodeward.controllers.pods.index import NamespaceIndex
from nodeward.machinery.informer import Informer
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules import quota as rules
from nodeward.rules.pod_resources import Amounts, add
from nodeward.rules.quota_tally import QuotaTally

RESYNC_SECONDS: Final = 300.0
#: Changes come in crowds, and each would be a write.
SETTLE_SECONDS: Final = 0.05
SYNC_SECONDS: Final = 30.0
WORKERS: Final = 5
_NAMESPACE: Final = "namespace"
_COUNT: Final = "count/"


class NotCounted(WorldError):
    """A kind could not be listed in time."""


class ResourceQuotaController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._gates = context.gates
        self._informers = context.informers
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="resourcequota_primary")
        self._quotas = context.informers.informer(ResourceQuota)
        self._quotas_in = NamespaceIndex(self._quotas)
        self._quotas.add_handler(self._on_quota_added, self._changed, self._removed)
        #: Kinds that count for more than their number, and the others.
        self._weighed: dict[str, Informer[Any]] = {}
        self._counted: dict[str, Informer[Meta]] = {}
        #: Sums by quota and resource.
        self._tallies: dict[str, dict[str, QuotaTally]] = {}

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    # -- listening ------------------------------------------------------------------------------------------------

    def _on_quota_added(self, quota: ResourceQuota) -> None:
        self._queue.add(_key(quota))

    def _changed(self, old: ResourceQuota, new: ResourceQuota) -> None:
        if old.metadata.uid != new.metadata.uid or old.spec != new.spec:
            self._tallies.pop(_key(new), None)
        if old.spec != new.spec or new.status != old.status:
            self._queue.add(_key(new))

    def _removed(self, quota: ResourceQuota) -> None:
        self._tallies.pop(_key(quota), None)

    def _wake(self, resource: str, namespace: str) -> None:
        for quota in self._quotas_in[namespace]:
            if any(rules.counts(resource, name) for name in quota.spec.hard):
                self._queue.add_after(_key(quota), SETTLE_SECONDS)

    # -- following ------------------------------------------------------------------------------------------------

    async def _follow(self, resource: str) -> None:
        """Have the objects of this resource in memory from now on; nothing happens if nobody serves it."""
        informer = self._weighed.get(resource, self._counted.get(resource))
        if informer is None:
            kind = await self._kind(resource)
            if kind is None:
                return
            informer = self._listen(resource, kind)
        try:
            async with self._clock.timeout(SYNC_SECONDS):
                await informer.wait_synced()
        except TimeoutError:
            raise NotCounted(f"{resource} could not be listed in {SYNC_SECONDS:.0f} s") from None

    def _listen(self, resource: str, kind: Kind) -> Informer[Any]:
        if resource in rules.WEIGHED:
            informer: Informer[Any] = self._informers.informer(kind.type)
            NamespaceIndex(informer)
            self._weighed[resource] = informer
            self._listen_to_objects(resource, informer)
            return informer
        informer = self._informers.informer(META, kind=kind)
        if not informer.has_index(_NAMESPACE):
            informer.add_index(_NAMESPACE, lambda meta: (meta.namespace,))
        self._counted[resource] = informer
        informer.add_handler(
            on_add=lambda meta: self._wake(resource, meta.namespace),
            on_delete=lambda meta: self._wake(resource, meta.namespace),
        )
        return informer

    def _listen_to_objects(self, resource: str, informer: Informer[Any]) -> None:
        def on_put(obj: KubeObject) -> None:
            for tally in self._tallies_of(resource, obj):
                tally.put(obj.metadata.name, obj)
            self._wake(resource, obj.metadata.namespace)

        def on_delete(obj: KubeObject) -> None:
            for tally in self._tallies_of(resource, obj):
                tally.drop(obj.metadata.name)
            self._wake(resource, obj.metadata.namespace)

        informer.add_handler(on_add=on_put, on_update=lambda _, new: on_put(new), on_delete=on_delete)

    def _tallies_of(self, resource: str, obj: KubeObject) -> Iterator[QuotaTally]:
        for quota in self._quotas_in[obj.metadata.namespace]:
            tally = self._tallies.get(_key(quota), {}).get(resource)
            if tally is not None:
                yield tally

    async def _kind(self, resource: str) -> Kind | None:
        for kind in self._client.scheme.kinds:
            if kind.qualified_resource == resource and kind.is_namespaced and kind.is_stored:
                return kind
        name, _, group = resource.partition(".")
        for found in await self._client.discover():
            if (found.group, found.name) == (group, name) and found.namespaced and "watch" in found.verbs:
                return Kind(found.group, found.version, found.kind, KubeObject, found.name)
        return None

    # -- counting -------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        quota = self._quotas.by_key(key)
        if quota is None:
            return None
        resources = _resources(quota)
        for resource in resources:
            await self._follow(resource)
        quota = self._quotas.by_key(key)
        if quota is None or _resources(quota) != resources:
            return 0.0 if quota is not None else None
        status = ResourceQuotaStatus(hard=dict(quota.spec.hard), used=self._used(quota, resources))
        if status != quota.status:
            try:
                await self._client.update(msgspec.structs.replace(quota, status=status), subresource="status")
            except ApiError as error:
                if error.code != 404:
                    raise
        return RESYNC_SECONDS

    def _used(self, quota: ResourceQuota, resources: Sequence[str]) -> Amounts:
        used: Amounts = {}
        known = [each for each in resources if each in self._weighed or each in self._counted]
        for resource in known:
            if resource in self._weighed:
                add(used, self._tally(quota, resource).used())
            elif not quota.spec.scopes and quota.spec.scope_selector is None:
                # Scopes are about pods: nothing else is within one.
                found = len(self._counted[resource].by_index(_NAMESPACE, quota.metadata.namespace))
                count = Quantity.of_int(found)
                add(used, dict.fromkeys(rules.usage(resource, None, self._gates, 0), count))
        # What nobody can count any more keeps its last number.
        last = quota.status.used
        shown: Amounts = {}
        for name in quota.spec.hard:
            if any(rules.counts(resource, name) for resource in known):
                shown[name] = used.get(name, ZERO)
            elif name in last:
                shown[name] = last[name]
        return shown

    def _tally(self, quota: ResourceQuota, resource: str) -> QuotaTally:
        tallies = self._tallies.setdefault(_key(quota), {})
        tally = tallies.get(resource)
        if tally is None:

            def usage_of(obj: KubeObject) -> Amounts:
                return rules.usage_in(quota, resource, obj, self._gates, self._clock.now_ns())

            tally = tallies[resource] = QuotaTally(usage_of)
            for obj in NamespaceIndex(self._weighed[resource])[quota.metadata.namespace]:
                tally.put(obj.metadata.name, obj)
        return tally


def _key(quota: ResourceQuota) -> str:
    return f"{quota.metadata.namespace}/{quota.metadata.name}"


def _resources(quota: ResourceQuota) -> tuple[str, ...]:
    """Return the resources whose objects count in a quota, each once."""
    found: dict[str, None] = {}
    for name in quota.spec.hard:
        for weighed in rules.WEIGHED:
            if rules.counts(weighed, name):
                found[weighed] = None
        if name.startswith(_COUNT) and name.removeprefix(_COUNT) not in rules.UNCOUNTED:
            found[name.removeprefix(_COUNT)] = None
        elif rules.counts(name, name):
            found[name] = None
    return tuple(sorted(found))
