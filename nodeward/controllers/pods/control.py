"""Making and deleting the pods of an owner, and telling about it in the owner's events.

What must stay true: a template that is refused again and again is told in the same words each time, so that the
recorder counts one event instead of writing many; a delete names the uid, so that it never hits a younger pod.

Called by the workload controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.pod import Pod, PodTemplateSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, ObjectMeta, OwnerReference
from nodeward.base.errors import WorldError
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.machinery.client import Client
from nodeward.machinery.recorder import NORMAL, WARNING, EventRecorder

CREATED: Final = "SuccessfulCreate"
CREATE_FAILED: Final = "FailedCreate"
DELETED: Final = "SuccessfulDelete"
DELETE_FAILED: Final = "FailedDelete"


def pod_from_template(template: PodTemplateSpec, owner: KubeObject, reference: OwnerReference) -> Pod:
    """Return a pod of `owner`, not named yet. The spec is the template's own: replace it, do not change it."""
    meta = template.metadata
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{owner.metadata.name}-",
            namespace=owner.metadata.namespace,
            labels=dict(meta.labels),
            annotations=dict(meta.annotations),
            finalizers=list(meta.finalizers),
            owner_references=[reference],
        ),
        spec=template.spec,
    )


class PodControl:
    """The one who writes pods for a controller."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._kind = client.kind_of(Pod)

    async def create(self, owner: KubeObject, pod: Pod) -> Pod:
        """Store `pod`. A refusal is told and raised, unless the namespace is on its way out: then it is only raised."""
        try:
            created = await self._client.create(pod)
        except ApiError as error:
            steady = _without_generated_name(error, pod.metadata.generate_name)
            if not refused_for_namespace(error):
                self._recorder.event(owner, WARNING, CREATE_FAILED, f"Error creating: {steady}")
            raise steady from None
        except WorldError as error:
            self._recorder.event(owner, WARNING, CREATE_FAILED, f"Error creating: {error}")
            raise
        self._recorder.event(owner, NORMAL, CREATED, f"Created pod: {created.metadata.name}")
        return created

    async def delete(self, owner: KubeObject, pod: Pod) -> bool:
        """Begin the end of `pod`; False if it was gone before."""
        meta = pod.metadata
        try:
            await self._client.delete(self._kind, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            # A conflict: by this name there is another pod now.
            if error.code in (404, 409):
                return False
            self._recorder.event(owner, WARNING, DELETE_FAILED, f"Error deleting: {error}")
            raise
        except WorldError as error:
            self._recorder.event(owner, WARNING, DELETE_FAILED, f"Error deleting: {error}")
            raise
        self._recorder.event(owner, NORMAL, DELETED, f"Deleted pod: {meta.name}")
        return True

    async def patch(self, pod: Pod, body: Mapping[str, Any]) -> None:
        """Change some fields, in the way of a strategic merge."""
        meta = pod.metadata
        await self._client.patch(bytes, meta.name, body, namespace=meta.namespace, kind=self._kind)


def _without_generated_name(error: ApiError, generated_from: str) -> ApiError:
    """Return the refusal with the part of the name that was given instead of the one that was drawn.

    Unlike upstream: there every try has another name in its message, and so an event of its own.
    """
    details = error.status.details
    name = details.name if details is not None else ""
    if not generated_from or name == generated_from or not name.startswith(generated_from):
        return error
    message = error.status.message.replace(name, generated_from)
    return ApiError(msgspec.structs.replace(error.status, message=message))
