"""NamespaceLifecycle: refuses to create objects in a namespace that does not exist or is terminating."""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.errors import not_found
from nodeward.api.meta import StatusCause
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write

#: Namespaces that cannot be deleted.
IMMORTAL: Final = ("default", "kube-public", "kube-system")

#: Reviews are answered for any namespace: an error would tell the caller which ones exist.
_REVIEWS: Final = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(AdmissionPlugin):
    name: ClassVar[str] = "NamespaceLifecycle"

    def admit(self, write: Write) -> None:
        if write.operation != "CREATE" or not write.kind.is_namespaced:
            return
        if (write.kind.group, write.kind.resource) == _REVIEWS:
            return
        namespace = self.env.peek(Namespace, write.namespace)
        if namespace is None:
            raise not_found("", "namespaces", write.namespace)
        if namespace.status.phase == "Terminating":
            where = write.namespace
            error = write.refuse(
                f"unable to create new content in namespace {where} because it is being terminated"
            )
            if error.status.details is not None:
                error.status.details.causes.append(
                    StatusCause(
                        reason="NamespaceTerminating",
                        message=f"namespace {where} is being terminated",
                        field="metadata.namespace",
                    )
                )
            raise error

    def validate(self, write: Write) -> None:
        if write.operation == "DELETE" and write.is_about("namespaces") and write.name in IMMORTAL:
            raise write.refuse("this namespace may not be deleted")
