"""Claims of pods: which volume serves one, and where on this node it lies. Volume managers call it.

Only volumes that are a path of the node can be used without a driver (hostPath and local); every other kind is
refused by its name, so that users see what is missing rather than a pod that waits.
"""

from __future__ import annotations

from pathlib import Path

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume
from nodeward.api.core_v1.volume import Volume
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.volumes.host_path import host_path
from nodeward.kubelet.volumes.object_cache import NotThere, ObjectCache


async def claimed_path(pod: Pod, volume: Volume, objects: ObjectCache) -> tuple[Path, bool]:
    """Where a claim's volume lies, and whether it may only be read."""
    found, is_read_only = await bound_volume(pod, volume, objects)
    return _path(found), is_read_only


async def bound_volume(pod: Pod, volume: Volume, objects: ObjectCache) -> tuple[PersistentVolume, bool]:
    """The persistent volume bound to a pod's claim, and whether it may only be read."""
    namespace = pod.metadata.namespace
    source = volume.persistent_volume_claim
    name = source.claim_name if source is not None else f"{pod.metadata.name}-{volume.name}"
    shown = f"{namespace}/{name}"
    try:
        claim = await objects.claim(namespace, name)
    except NotThere as error:
        raise WorldError(
            f"error processing PVC {shown}: failed to fetch PVC from API server: {error}"
        ) from error
    if source is None and not any(
        owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
    ):
        raise WorldError(f"error processing PVC {shown}: PVC {shown} was not created for pod {_name(pod)}")
    if claim.metadata.deletion_timestamp is not None:
        raise WorldError(f"error processing PVC {shown}: PVC is being deleted")
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        raise WorldError(f"error processing PVC {shown}: PVC is not bound")
    try:
        found = await objects.volume(claim.spec.volume_name)
    except NotThere as error:
        raise WorldError(
            f"failed to get PersistentVolume {quote(claim.spec.volume_name)} from API server: {error}"
        ) from error
    reference = found.spec.claim_ref
    if reference is None or (reference.uid and reference.uid != claim.metadata.uid):
        raise WorldError(f"PV {quote(found.metadata.name)} is not bound to PVC {quote(shown)}")
    return found, bool(source is not None and source.read_only)


def _path(volume: PersistentVolume) -> Path:
    spec = volume.spec
    if spec.volume_mode == "Block":
        raise WorldError(
            f"volume {quote(volume.metadata.name)} is a block device: not supported by this kubelet"
        )
    if spec.host_path is not None:
        return host_path(spec.host_path.path, spec.host_path.type)
    if spec.local is not None:
        if not Path(spec.local.path).is_dir():
            raise WorldError(f'path "{spec.local.path}" does not exist')
        return Path(spec.local.path)
    if spec.csi is not None:
        raise WorldError(
            f"kubernetes.io/csi: driver {spec.csi.driver} not found in the list of registered CSI drivers: "
            "this kubelet has none"
        )
    raise WorldError(
        f"no volume plugin of this kubelet matches PersistentVolume {quote(volume.metadata.name)}"
    )


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
