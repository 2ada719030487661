"""ResourceClaims: generated for pods from templates, reserved for pods that are bound, released when nobody uses them.

Keys are "pod:NAMESPACE/NAME" and "claim:NAMESPACE/NAME". For a pod: claims are created for its templates and told in
its status; if somebody bound it past the scheduler, allocated claims are reserved for it. For a claim: pods that
are gone or done leave `reservedFor`; with the last of them the allocation is withdrawn and the finalizer taken off,
so that the devices are free and the claim can go. A generated claim of a pod that is done is deleted.

What must stay true: a pod leaves `reservedFor` only if it has surely ended, which the API is asked if the informer does
not know the pod; no two claims are made for one entry, also if the informer has not seen the first one yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from nodeward.api.core_v1.pod import Pod, PodResourceClaim
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from nodeward.base.errors import NodewardError, WorldError
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.resource_claim.generating import claim_from_template, owning_pod
from nodeward.controllers.resource_claim.metrics import ResourceClaimMetrics
from nodeward.machinery.client import PatchType
from nodeward.machinery.recorder import WARNING
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.resource_claims import (
    CLAIM_FINALIZER,
    POD_CLAIM_ANNOTATION,
    ClaimReferenceError,
    belongs_to_pod,
    claim_name,
    consumer_reference,
    is_generated,
    is_reserved_for,
    used_claim_names,
)

WORKERS: Final = 16
#: Deleted pods whose end is remembered, so that the API need not be asked.
MOST_DELETED: Final = 2000
FIELD_MANAGER: Final = "ResourceClaimController"
CREATION_FAILED: Final = "FailedResourceClaimCreation"

_POD: Final = "pod:"
_CLAIM: Final = "claim:"
_BY_CLAIM: Final = "resource claims"
_BY_TEMPLATE: Final = "resource claim templates"
_BY_OWNER: Final = "owning pod"


class MissingTemplate(NodewardError):
    """A pod names a template that does not exist (yet)."""


class ResourceClaimController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="resource_claim")
        self._claims = context.informers.informer(ResourceClaim)
        self._templates = context.informers.informer(ResourceClaimTemplate)
        self._pods = context.informers.informer(Pod)
        self._metrics = ResourceClaimMetrics(context.metrics, self._claims.list)
        #: claims that were created and not seen yet, by pod uid and entry
        self._created: dict[tuple[str, str], ResourceClaim] = {}
        self._deleted: OrderedDict[str, None] = OrderedDict()
        self._pods.add_index(_BY_CLAIM, _claim_keys)
        self._pods.add_index(_BY_TEMPLATE, _template_keys)
        self._claims.add_index(_BY_OWNER, lambda claim: [owning_pod(claim)[1]])
        self._pods.add_handler(self._pod_seen, lambda _, new: self._pod_seen(new), self._pod_deleted)
        self._claims.add_handler(self._claim_seen, lambda _, new: self._claim_seen(new), self._claim_deleted)
        self._templates.add_handler(self._template_seen, lambda _, new: self._template_seen(new))

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    # -- what happens

    def _pod_seen(self, pod: Pod) -> None:
        if not _has_claims(pod):
            return
        if _is_done(pod):
            self._queue_claims(pod)
        if self._needs_work(pod):
            self._queue.add(f"{_POD}{pod.metadata.namespace}/{pod.metadata.name}")

    def _pod_deleted(self, pod: Pod) -> None:
        if not _has_claims(pod):
            return
        uid = pod.metadata.uid
        self._deleted[uid] = None
        if len(self._deleted) > MOST_DELETED:
            self._deleted.popitem(last=False)
        for reference in pod.spec.resource_claims:
            self._created.pop((uid, reference.name), None)
        self._queue_claims(pod)

    def _queue_claims(self, pod: Pod) -> None:
        for key in _claim_keys(pod):
            self._queue.add(f"{_CLAIM}{key}")

    def _claim_seen(self, claim: ResourceClaim) -> None:
        entry = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION)
        if entry is not None:
            self._created.pop((owning_pod(claim)[1], entry), None)
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        # At the start every claim is looked at: a pod may have gone meanwhile.
        self._queue.add(f"{_CLAIM}{key}")
        for pod in self._pods.by_index(_BY_CLAIM, key):
            self._pod_seen(pod)

    def _claim_deleted(self, claim: ResourceClaim) -> None:
        for pod in self._pods.by_index(_BY_CLAIM, f"{claim.metadata.namespace}/{claim.metadata.name}"):
            self._pod_seen(pod)

    def _template_seen(self, template: ResourceClaimTemplate) -> None:
        key = f"{template.metadata.namespace}/{template.metadata.name}"
        for pod in self._pods.by_index(_BY_TEMPLATE, key):
            self._pod_seen(pod)

    def _needs_work(self, pod: Pod) -> bool:
        """Tell whether a claim is to be made for the pod, or reserved for it."""
        if pod.metadata.deletion_timestamp is not None or is_terminal(pod):
            return False
        for reference in pod.spec.resource_claims:
            try:
                name = claim_name(pod, reference)
            except ClaimReferenceError:
                return True
            if name is None:
                continue
            claim = self._claims.get(name, pod.metadata.namespace)
            if claim is None:
                if is_generated(reference):
                    return True
            elif pod.spec.node_name and self._is_to_reserve(claim, pod, reference):
                return True
        return False

    @staticmethod
    def _is_to_reserve(claim: ResourceClaim, pod: Pod, reference: PodResourceClaim) -> bool:
        return (
            claim.status.allocation is not None
            and not is_reserved_for(claim, pod)
            and (not is_generated(reference) or belongs_to_pod(claim, pod))
        )

    async def _handle(self, key: str) -> float | None:
        kind, _, name = key.partition(":")
        if f"{kind}:" == _POD:
            pod = self._pods.by_key(name)
            if pod is not None and self._needs_work(pod):
                await self._sync_pod(pod)
        else:
            claim = self._claims.by_key(name)
            if claim is not None:
                await self._sync_claim(claim)
        return None

    # -- pods

    async def _sync_pod(self, pod: Pod) -> None:
        made: dict[str, str] = {}
        for reference in pod.spec.resource_claims:
            try:
                claim = await self._generated(pod, reference)
            except (ApiError, WorldError, MissingTemplate, ClaimReferenceError) as error:
                text = f"PodResourceClaim {reference.name}: {error}"
                self._recorder.event(pod, WARNING, CREATION_FAILED, text)
                raise
            if claim is not None:
                made[reference.name] = claim.metadata.name
        if made:
            await self._tell_pod(pod, made)
        if pod.spec.node_name:
            await self._reserve(pod)

    async def _generated(self, pod: Pod, reference: PodResourceClaim) -> ResourceClaim | None:
        """Return the claim that is to be told to the pod: found or made; None: there is nothing to tell."""
        if not is_generated(reference) or reference.resource_claim_template_name is None:
            claim_name(pod, reference)
            return None
        told = next(
            (each for each in pod.status.resource_claim_statuses if each.name == reference.name), None
        )
        if told is not None:
            if told.resource_claim_name is None:
                return None
            known = self._claims.get(told.resource_claim_name, pod.metadata.namespace)
            if known is not None and belongs_to_pod(known, pod):
                return None
        found = self._orphan(pod, reference.name)
        return (
            found
            if found is not None
            else await self._create(pod, reference.name, reference.resource_claim_template_name)
        )

    def _orphan(self, pod: Pod, entry: str) -> ResourceClaim | None:
        """Return a claim that was made for the entry and not told to the pod."""
        uid = pod.metadata.uid
        known = [
            claim
            for claim in self._claims.by_index(_BY_OWNER, uid)
            if claim.metadata.annotations.get(POD_CLAIM_ANNOTATION) == entry
        ]
        return min(known, key=lambda claim: claim.metadata.name) if known else self._created.get((uid, entry))

    async def _create(self, pod: Pod, entry: str, template_name: str) -> ResourceClaim:
        template = self._templates.get(template_name, pod.metadata.namespace)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise MissingTemplate(f'resource claim template "{template_name}": {missing}')
        wanted = claim_from_template(template, pod, entry)
        try:
            created = await self._client.create(wanted)
        except (ApiError, WorldError):
            self._metrics.created(wanted, has_failed=True)
            raise
        self._metrics.created(wanted)
        if self._claims.get(created.metadata.name, created.metadata.namespace) is None:
            self._created[pod.metadata.uid, entry] = created
        return created

    async def _tell_pod(self, pod: Pod, made: dict[str, str]) -> None:
        known = {
            each.name: each.resource_claim_name
            for each in pod.status.resource_claim_statuses
            if each.resource_claim_name is not None
        }
        names = sorted((known | made).items())
        meta = pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": {
                "resourceClaimStatuses": [{"name": name, "resourceClaimName": claim} for name, claim in names]
            },
        }
        await self._client.patch(
            bytes,
            meta.name,
            body,
            namespace=meta.namespace,
            kind=self._client.kind_of(Pod),
            patch_type=PatchType.APPLY,
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )

    async def _reserve(self, pod: Pod) -> None:
        """Reserve allocated claims for a pod that has a node: whoever bound it did not."""
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference)
            claim = self._claims.get(name, pod.metadata.namespace) if name is not None else None
            if claim is not None and self._is_to_reserve(claim, pod, reference):
                users = [*claim.status.reserved_for, consumer_reference(pod)]
                await self._client.update(
                    replace(claim, status=replace(claim.status, reserved_for=users)), subresource="status"
                )

    # -- claims

    async def _sync_claim(self, claim: ResourceClaim) -> None:
        users = claim.status.reserved_for
        remaining = [each for each in users if not await self._is_over(claim, each)]
        is_protected = CLAIM_FINALIZER in claim.metadata.finalizers
        if len(remaining) < len(users):
            status = replace(claim.status, reserved_for=remaining)
            if not remaining and is_protected:
                status = replace(status, allocation=None, devices=[])
            claim = await self._client.update(replace(claim, status=status), subresource="status")
            if claim.status.allocation is None:
                claim = await self._unprotect(claim)
        elif is_protected and not remaining and claim.metadata.deletion_timestamp is not None:
            if claim.status.allocation is not None:
                status = replace(claim.status, allocation=None, devices=[])
                claim = await self._client.update(replace(claim, status=status), subresource="status")
            claim = await self._unprotect(claim)
        if not remaining:
            await self._delete_unused(claim)

    async def _unprotect(self, claim: ResourceClaim) -> ResourceClaim:
        if CLAIM_FINALIZER not in claim.metadata.finalizers:
            return claim
        left = [each for each in claim.metadata.finalizers if each != CLAIM_FINALIZER]
        return await self._client.update(replace(claim, metadata=replace(claim.metadata, finalizers=left)))

    async def _is_over(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        """Tell whether a user of a claim needs it no more. Users of unknown kinds need it."""
        if user.api_group or user.resource != "pods":
            return False
        if user.uid in self._deleted:
            return True
        namespace = claim.metadata.namespace
        pod = self._pods.get(user.name, namespace)
        if pod is not None:
            return pod.metadata.uid != user.uid or _is_done(pod)
        # The informer may not know the pod yet.
        try:
            found = await self._client.get(Pod, user.name, namespace)
        except ApiError as error:
            if error.code == 404:
                return True
            raise
        return found.metadata.uid != user.uid

    async def _delete_unused(self, claim: ResourceClaim) -> None:
        """Delete a claim that was generated for a pod that does not need it, unless garbage collection will."""
        name, uid = owning_pod(claim)
        pod = self._pods.get(name, claim.metadata.namespace) if name else None
        if pod is None or (pod.metadata.uid == uid and not _is_done(pod)):
            return
        if claim.metadata.deletion_timestamp is not None:
            return
        try:
            await self._client.delete(
                ResourceClaim, claim.metadata.name, claim.metadata.namespace, uid=claim.metadata.uid
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def make(context: ControllerContext) -> ResourceClaimController | None:
    """Return the controller, if the feature is on."""
    return ResourceClaimController(context) if context.gates.enabled("DynamicResourceAllocation") else None


def _is_done(pod: Pod) -> bool:
    """Tell whether the pod does not run and never will."""
    return is_terminal(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def _has_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def _claim_keys(pod: Pod) -> Iterable[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in used_claim_names(pod)]


def _template_keys(pod: Pod) -> Iterable[str]:
    return [
        f"{pod.metadata.namespace}/{each.resource_claim_template_name}"
        for each in pod.spec.resource_claims
        if each.resource_claim_template_name is not None
    ]
