"""Printers of volumes, claims, storage classes, and CSI drivers and nodes."""

from __future__ import annotations

from collections.abc import Sequence

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.meta import ObjectMeta
from nodeward.api.printing.cells import NONE, UNSET, age, moment
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer, wide
from nodeward.api.storage_v1 import CSIDriver, CSINode, StorageClass, VolumeAttachment, VolumeAttributesClass

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: Sequence[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _class_name(metadata: ObjectMeta, name: str | None) -> str:
    return metadata.annotations.get(_CLASS_ANNOTATION, name or "")


def _or_unset(text: str | None) -> str:
    return UNSET if text is None else text


def _persistent_volume(volume: PersistentVolume, now_ns: int) -> Cells:
    spec, claim = volume.spec, volume.spec.claim_ref
    return [
        volume.metadata.name,
        str(spec.capacity.get("storage", 0)),
        _modes(spec.access_modes),
        spec.persistent_volume_reclaim_policy,
        volume.status.phase if volume.metadata.deletion_timestamp is None else "Terminating",
        "" if claim is None else f"{claim.namespace}/{claim.name}",
        _class_name(volume.metadata, spec.storage_class_name),
        _or_unset(spec.volume_attributes_class_name),
        volume.status.reason,
        age(volume, now_ns),
        _or_unset(spec.volume_mode),
    ]


def _persistent_volume_claim(claim: PersistentVolumeClaim, now_ns: int) -> Cells:
    spec, status = claim.spec, claim.status
    is_bound = bool(spec.volume_name)
    return [
        claim.metadata.name,
        status.phase if claim.metadata.deletion_timestamp is None else "Terminating",
        spec.volume_name,
        str(status.capacity.get("storage", 0)) if is_bound else "",
        _modes(status.access_modes) if is_bound else "",
        _class_name(claim.metadata, spec.storage_class_name),
        _or_unset(spec.volume_attributes_class_name),
        age(claim, now_ns),
        _or_unset(spec.volume_mode),
    ]


def _storage_class(storage_class: StorageClass, now_ns: int) -> Cells:
    return [
        storage_class.metadata.name,
        storage_class.provisioner,
        storage_class.reclaim_policy or "Delete",
        storage_class.volume_binding_mode or "Immediate",
        bool(storage_class.allow_volume_expansion),
        age(storage_class, now_ns),
    ]


def _storage_classes(classes: Sequence[StorageClass], now_ns: int) -> list[Cells]:
    """Print storage classes: of several defaults the youngest counts, then the first by name."""
    marked = [
        c
        for c in classes
        if any(c.metadata.annotations.get(annotation) == "true" for annotation in _DEFAULT_ANNOTATIONS)
    ]
    default = min(
        marked, key=lambda c: (-(moment(c.metadata.creation_timestamp) or 0), c.metadata.name), default=None
    )
    rows = [_storage_class(c, now_ns) for c in classes]
    for storage_class, cells in zip(classes, rows, strict=True):
        if default is not None and storage_class.metadata.name == default.metadata.name:
            cells[0] = f"{cells[0]} (default)"
    return rows


def _attributes_class(obj: VolumeAttributesClass, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.driver_name, age(obj, now_ns)]


def _attachment(obj: VolumeAttachment, now_ns: int) -> Cells:
    return [
        obj.metadata.name,
        obj.spec.attacher,
        obj.spec.source.persistent_volume_name or "",
        obj.spec.node_name,
        obj.status.attached,
        age(obj, now_ns),
    ]


def _csi_node(obj: CSINode, now_ns: int) -> Cells:
    return [obj.metadata.name, len(obj.spec.drivers), age(obj, now_ns)]


def _csi_driver(obj: CSIDriver, now_ns: int) -> Cells:
    spec = obj.spec
    audiences = [request.audience for request in spec.token_requests]
    return [
        obj.metadata.name,
        spec.attach_required is not False,
        bool(spec.pod_info_on_mount),
        bool(spec.storage_capacity),
        ",".join(audiences) if audiences else UNSET,
        bool(spec.requires_republish),
        ",".join(spec.volume_lifecycle_modes) or NONE,
        age(obj, now_ns),
    ]


_CAPACITY = Column("Capacity", description="Size of the volume.")
_ACCESS_MODES = Column("Access Modes", description="Ways in which the volume may be mounted.")
_CLASS = Column("StorageClass", description="Storage class of the volume.")
_ATTRIBUTES_CLASS = Column("VolumeAttributesClass", description="Attributes class of the volume.")
_VOLUME_MODE = wide("VolumeMode", "Whether the volume is a file system or a block device.")

PERSISTENT_VOLUME = Printer(
    (
        NAME,
        _CAPACITY,
        _ACCESS_MODES,
        Column("Reclaim Policy", description="What becomes of the volume when its claim goes."),
        Column("Status", description="Whether the volume is free or bound."),
        Column("Claim", description="Claim the volume is bound to."),
        _CLASS,
        _ATTRIBUTES_CLASS,
        Column("Reason", description="Why the volume failed."),
        AGE,
        _VOLUME_MODE,
    ),
    _persistent_volume,
)
PERSISTENT_VOLUME_CLAIM = Printer(
    (
        NAME,
        Column("Status", description="Whether the claim has a volume."),
        Column("Volume", description="Volume the claim is bound to."),
        _CAPACITY,
        _ACCESS_MODES,
        _CLASS,
        _ATTRIBUTES_CLASS,
        AGE,
        _VOLUME_MODE,
    ),
    _persistent_volume_claim,
)
STORAGE_CLASS = Printer(
    (
        NAME,
        Column("Provisioner", description="Who makes the volumes."),
        Column("ReclaimPolicy", description="What becomes of a volume when its claim goes."),
        Column("VolumeBindingMode", description="When volumes are made and bound."),
        Column("AllowVolumeExpansion", description="Whether volumes may grow."),
        AGE,
    ),
    _storage_class,
    list_cells=_storage_classes,
)
VOLUME_ATTRIBUTES_CLASS = Printer(
    (NAME, Column("DriverName", description="Driver the attributes are for."), AGE), _attributes_class
)
VOLUME_ATTACHMENT = Printer(
    (
        NAME,
        Column("Attacher", format="name", description="Driver that attaches the volume."),
        Column("PV", description="Volume to attach."),
        Column("Node", description="Node to attach to."),
        Column("Attached", "boolean", description="Whether it is attached."),
        AGE,
    ),
    _attachment,
)
CSI_NODE = Printer(
    (NAME, Column("Drivers", "integer", description="CSI drivers on the node."), AGE), _csi_node
)
CSI_DRIVER = Printer(
    (
        NAME,
        Column("AttachRequired", "boolean", description="Whether volumes are attached before mounting."),
        Column("PodInfoOnMount", "boolean", description="Whether the driver is told about the pod."),
        Column("StorageCapacity", "boolean", description="Whether the scheduler asks for free capacity."),
        Column("TokenRequests", description="Audiences of the tokens the driver is given."),
        Column("RequiresRepublish", "boolean", description="Whether the driver is called again and again."),
        Column("Modes", description="Kinds of volumes the driver supports."),
        AGE,
    ),
    _csi_driver,
)
