"""Emptying a namespace: every object of every kind the server has, pods first.

In goes a terminating namespace, out come `DeletionFindings`: what failed, what is left, and how long that may take.
The server is asked each time which kinds it serves, so that kinds this program does not know are emptied too.

What must stay true: nothing else is deleted before all pods are known to be gone, since they may need it to end well;
one kind's failure does not keep the others from being emptied; finalizers and grace periods are waited for, never
overridden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.namespace_conditions import DeletionFindings
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock

#: How long whoever removes a finalizer is expected to take.
FINALIZER_SECONDS: Final = 15

_NOT_SUPPORTED: Final = (404, 405)


class NamespacedResourcesDeleter:
    """Empties namespaces through `client`."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def empty(self, namespace: Namespace) -> DeletionFindings:
        """Try once to delete everything in the namespace; the findings say what remains."""
        findings = DeletionFindings()
        try:
            kinds = await self._kinds()
        except (ApiError, WorldError) as error:
            findings.discovery_error = str(error)
            return findings
        for kind in kinds:
            try:
                await self._empty_kind(kind, namespace, findings)
            except (ApiError, WorldError) as error:
                findings.content_errors.append(str(error))
            if _is_pods(kind) and (findings.remaining or findings.content_errors):
                break
        return findings

    async def _kinds(self) -> Sequence[Kind]:
        """Return what can be deleted from a namespace: each resource once, in its preferred version, pods first."""
        kinds: dict[tuple[str, str], Kind] = {}
        for found in await self._client.discover():
            if found.namespaced and "/" not in found.name and "delete" in found.verbs:
                kind = Kind(
                    found.group, found.version, found.kind, KubeObject, found.name, verbs=tuple(found.verbs)
                )
                kinds.setdefault((kind.group, kind.resource), kind)
        return sorted(kinds.values(), key=lambda kind: not _is_pods(kind))

    async def _empty_kind(self, kind: Kind, namespace: Namespace, findings: DeletionFindings) -> None:
        name = namespace.metadata.name
        estimate = await self._pods_grace(namespace) if _is_pods(kind) else 0
        await self._delete_all(kind, name)
        left = await self._list(kind, name)
        if not left:
            return
        findings.remaining[f"{kind.resource}.{kind.group}"] += len(left)
        waiting = Counter(finalizer for obj in left for finalizer in obj.metadata.finalizers)
        findings.finalizers += waiting
        if estimate or waiting:
            findings.estimate = max(findings.estimate, estimate or FINALIZER_SECONDS)
            return
        what = f"{kind.group}/{kind.version}, Resource={kind.resource}"
        findings.content_errors.append(f"unexpected items still remain in namespace: {name} for gvr: {what}")

    async def _pods_grace(self, namespace: Namespace) -> int:
        """Return the longest grace of a pod that still runs; nothing once so much time has passed."""
        pods = await self._client.list(Pod, namespace.metadata.name)
        graces = [
            pod.spec.termination_grace_period_seconds or 0 for pod in pods.items if not is_terminal(pod)
        ]
        longest = max(graces, default=0)
        since = self._clock.now_ns() - parse_rfc3339(namespace.metadata.deletion_timestamp or "")
        return 0 if since >= longest * SECOND_NS else longest

    async def _delete_all(self, kind: Kind, namespace: str) -> None:
        # In the background: whatever depends on an object is in here too, and goes the same way.
        if "deletecollection" in kind.verbs:
            try:
                await self._client.delete_collection(kind, namespace, propagation="Background")
                return
            except ApiError as error:
                if error.code not in _NOT_SUPPORTED:
                    raise
        for obj in await self._list(kind, namespace):
            try:
                await self._client.delete(kind, obj.metadata.name, namespace, propagation="Background")
            except ApiError as error:
                if error.code not in _NOT_SUPPORTED:
                    raise

    async def _list(self, kind: Kind, namespace: str) -> Sequence[KubeObject]:
        """Return what is there; nothing of a kind that cannot be listed."""
        if "list" not in kind.verbs:
            return ()
        try:
            return (await self._client.list(KubeObject, namespace, kind=kind)).items
        except ApiError as error:
            if error.code not in _NOT_SUPPORTED:
                raise
            return ()


def _is_pods(kind: Kind) -> bool:
    return not kind.group and kind.resource == "pods"
