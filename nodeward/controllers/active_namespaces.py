"""Active namespaces, for controllers that keep an object in each of them.

Called by the root CA and service account controllers.
"""

from __future__ import annotations

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.errors import ApiError
from nodeward.machinery.informer import Informer
from nodeward.machinery.workqueue import WorkQueue


def follow(namespaces: Informer[Namespace], queue: WorkQueue[str]) -> None:
    """Queue a namespace by name whenever it appears or changes."""
    namespaces.add_handler(
        on_add=lambda namespace: queue.add(namespace.metadata.name),
        on_update=lambda _, namespace: queue.add(namespace.metadata.name),
    )


def is_active(namespaces: Informer[Namespace], name: str) -> bool:
    namespace = namespaces.get(name)
    return namespace is not None and namespace.status.phase == "Active"


def refused_for_namespace(error: ApiError) -> bool:
    """Tell whether a create failed because its namespace is gone or going: then nothing needs to be there."""
    details = error.status.details
    return error.code == 404 or (
        details is not None and any(cause.reason == "NamespaceTerminating" for cause in details.causes)
    )
