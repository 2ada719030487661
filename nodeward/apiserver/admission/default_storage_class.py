"""DefaultStorageClass: a claim that names no storage class gets the default one."""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.storage_v1 import StorageClass
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write

#: The annotation that named a claim's class before there was a field.
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


class DefaultStorageClass(AdmissionPlugin):
    name: ClassVar[str] = "DefaultStorageClass"

    def admit(self, write: Write) -> None:
        if write.operation != "CREATE" or not write.is_about("persistentvolumeclaims"):
            return
        claim: PersistentVolumeClaim = write.new
        if BETA_CLASS in claim.metadata.annotations or claim.spec.storage_class_name is not None:
            return
        chosen = self._default()
        if chosen is not None:
            claim.spec.storage_class_name = chosen.metadata.name

    def _default(self) -> StorageClass | None:
        """Return the newest class marked as default; of several as new, the first by name."""
        marked = [each for each in self.env.peek_all(StorageClass) if _is_default(each)]
        newest = max((each.metadata.creation_timestamp or "" for each in marked), default="")
        names = [each for each in marked if (each.metadata.creation_timestamp or "") == newest]
        return min(names, key=lambda each: each.metadata.name, default=None)


def _is_default(each: StorageClass) -> bool:
    return any(each.metadata.annotations.get(key) == "true" for key in _IS_DEFAULT)


def class_of(claim: PersistentVolumeClaim) -> str:
    """Return the storage class a claim names, "" for none."""
    return claim.metadata.annotations.get(BETA_CLASS) or claim.spec.storage_class_name or ""
