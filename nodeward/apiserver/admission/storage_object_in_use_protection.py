"""StorageObjectInUseProtection: adds the finalizers that keep volumes and claims while they are in use."""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write

#: Group and resource, and the finalizer that its controller removes once the object is not in use.
FINALIZERS: Final = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(AdmissionPlugin):
    name: ClassVar[str] = "StorageObjectInUseProtection"

    def admit(self, write: Write) -> None:
        if write.operation != "CREATE" or write.subresource:
            return
        finalizer = FINALIZERS.get((write.kind.group, write.kind.resource))
        if finalizer is not None and finalizer not in write.new.metadata.finalizers:
            write.new.metadata.finalizers.append(finalizer)
