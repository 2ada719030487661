"""PersistentVolumeClaimResize: a claim grows only if it is bound and its storage class lets volumes grow."""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.storage_v1 import StorageClass
from nodeward.apiserver.admission.default_storage_class import class_of
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.base.quantity import ZERO


class PersistentVolumeClaimResize(AdmissionPlugin):
    name: ClassVar[str] = "PersistentVolumeClaimResize"

    def validate(self, write: Write) -> None:
        if write.operation != "UPDATE" or not write.is_about("persistentvolumeclaims"):
            return
        new: PersistentVolumeClaim = write.new
        old: PersistentVolumeClaim = write.old
        before = old.spec.resources.requests.get("storage", ZERO)
        if new.spec.resources.requests.get("storage", ZERO) <= before:
            return
        if old.status.phase != "Bound":
            raise write.refuse("Only bound persistent volume claims can be expanded")
        if not self._may_grow(class_of(new), class_of(old)):
            raise write.refuse(
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize"
            )

    def _may_grow(self, new: str, old: str) -> bool:
        if not new or new != old:
            return False
        found = self.env.peek(StorageClass, new)
        return found is not None and bool(found.allow_volume_expansion)
