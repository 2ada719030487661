"""Small volumes, claims, classes and drivers, in the words of the API."""

from __future__ import annotations

from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from nodeward.scheduler.framework.pod import PodView
from tests.scheduler.cache.objects import pod

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"


def only_in(*zones: str) -> dict[str, Any]:
    """An affinity to nodes by their zone."""
    wish = {"key": ZONE, "operator": "In", "values": list(zones)}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [wish]}]}}}


def volume(
    name: str,
    size: str = "10Gi",
    *,
    class_: str = "slow",
    labels: dict[str, str] | None = None,
    phase: str = "Available",
    handle: str = "",
    **spec: Any,
) -> PersistentVolume:
    tree = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_,
            **({"csi": {"driver": DRIVER, "volumeHandle": handle}} if handle else {}),
            **spec,
        },
        "status": {"phase": phase},
    }
    return from_tree(tree, PersistentVolume)


def claim(
    name: str,
    size: str = "5Gi",
    *,
    class_: str | None = "slow",
    bound: str = "",
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> PersistentVolumeClaim:
    notes = {**(annotations or {}), **({"pv.kubernetes.io/bind-completed": "yes"} if bound else {})}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "annotations": notes,
        **more.pop("metadata", {}),
    }
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "volumeName": bound,
        **({"storageClassName": class_} if class_ is not None else {}),
        **more.pop("spec", {}),
    }
    return from_tree({"metadata": metadata, "spec": spec, **more}, PersistentVolumeClaim)


def storage_class(name: str = "slow", *, waits: bool = True, **more: Any) -> StorageClass:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    tree = {
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
        **more,
    }
    return from_tree(tree, StorageClass)


def driver(**spec: Any) -> CSIDriver:
    return from_tree({"metadata": {"name": DRIVER}, "spec": spec}, CSIDriver)


def csi_node(name: str, count: int | None) -> CSINode:
    allocatable = {"allocatable": {"count": count}} if count is not None else {}
    spec = {"drivers": [{"name": DRIVER, "nodeID": name, "topologyKeys": [], **allocatable}]}
    return from_tree({"metadata": {"name": name}, "spec": spec}, CSINode)


def capacity(amount: str, zone: str, class_: str = "slow") -> CSIStorageCapacity:
    tree = {
        "metadata": {"name": f"c-{zone}", "namespace": "default"},
        "storageClassName": class_,
        "capacity": amount,
        "nodeTopology": {"matchLabels": {ZONE: zone}},
    }
    return from_tree(tree, CSIStorageCapacity)


def attachment(node: str, of: str) -> VolumeAttachment:
    spec = {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": of}}
    return from_tree({"metadata": {"name": f"a-{of}"}, "spec": spec}, VolumeAttachment)


def using(name: str, *claims: str, **spec: Any) -> PodView:
    """A pod with these claims."""
    volumes = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": c}} for n, c in enumerate(claims)]
    return pod(name, volumes=[*volumes, *spec.pop("volumes", [])], **spec)
