"""Volumes, claims, classes, drivers and attachments: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)
from tests.validation.tables import DROP, Case, case, check_create, check_status, check_update

VOLUME: dict[str, Any] = {
    "metadata": {"name": "v"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}},
}
_MODES = 'supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
_AFFINITY = {
    "required": {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["a"]}
                ]
            }
        ]
    }
}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain volume is fine"),
        case(
            "a volume has a size, a way of access and a source",
            {"spec": {}},
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            'spec.capacity: Unsupported value: null: supported values: "storage"',
            "spec: Required value: must specify a volume type",
        ),
        case(
            "the size is more than nothing",
            {"spec.capacity.storage": "0"},
            'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
        ),
        case(
            "one pod is one pod",
            {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteOnce", "Never"]},
            f'spec.accessModes: Unsupported value: "Never": {_MODES}',
            "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        case(
            "a volume has one source",
            {"spec.nfs": {"server": "s", "path": "/"}},
            "spec.nfs: Forbidden: may not specify more than 1 volume type",
        ),
        case(
            "a local volume is somewhere",
            {"spec.hostPath": DROP, "spec.local": {"path": "/x/../y"}},
            "spec.local.path: Invalid value: \"/x/../y\": must not contain '..'",
            "spec.nodeAffinity: Required value: Local volume requires node affinity",
        ),
        case(
            "drivers and their secrets are named",
            {"spec.hostPath": DROP, "spec.csi": {"driver": "", "nodePublishSecretRef": {"name": "A"}}},
            "spec.csi.driver: Required value",
            "spec.csi.volumeHandle: Required value",
            'spec.csi.nodePublishSecretRef.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of...',
            "spec.csi.nodePublishSecretRef.namespace: Required value",
        ),
        case(
            "the root of a node is not recycled",
            {"spec.hostPath.path": "/", "spec.persistentVolumeReclaimPolicy": "Recycle"},
            "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
        ),
        case(
            "policies and modes are known ones",
            {"spec.persistentVolumeReclaimPolicy": "x", "spec.volumeMode": "y"},
            'spec.persistentVolumeReclaimPolicy: Unsupported value: "x": '
            'supported values: "Delete", "Recycle", "Retain"',
            'spec.volumeMode: Unsupported value: "y": supported values: "Block", "Filesystem"',
        ),
        case(
            "attributes are for drivers",
            {"spec.volumeAttributesClassName": ""},
            "spec.volumeAttributesClassName: Required value: an empty string is disallowed",
            "spec.csi: Required value: has to be specified when using volumeAttributesClassName",
        ),
        case(
            "initiators have known forms",
            {"spec.hostPath": DROP, "spec.iscsi": {"targetPortal": "1.2.3.4", "iqn": "bad", "lun": 256}},
            'spec.iscsi.iqn: Invalid value: "bad": must be valid format',
            "spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
        ),
    ],
    ids=str,
)
def test_a_new_volume(one: Case) -> None:
    check_create(PersistentVolume, VOLUME, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a volume may grow", {"spec.capacity.storage": "2Gi"}),
        case(
            "its source stays",
            {"spec.hostPath.path": "/other"},
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n...",
        ),
        case(
            "its mode stays",
            {"spec.volumeMode": "Block"},
            'volumeMode: Invalid value: "Block": field is immutable',
        ),
        case(
            "its place stays, under a better name",
            {
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key": "topology.kubernetes.io/zone"
            },
            before={"spec.nodeAffinity": _AFFINITY},
        ),
        case(
            "its place stays",
            {"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values": ["b"]},
            "nodeAffinity: Invalid value: {...",
            before={"spec.nodeAffinity": _AFFINITY},
        ),
    ],
    ids=str,
)
def test_a_changed_volume(one: Case) -> None:
    check_update(PersistentVolume, VOLUME, one)


CLAIM: dict[str, Any] = {
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_STAYS = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims\n..."
)
_BOUND = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}, "spec.volumeName": "v"}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain claim is fine"),
        case(
            "a claim says how much and how",
            {"spec": {}},
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ),
    ],
    ids=str,
)
def test_a_new_claim(one: Case) -> None:
    check_create(PersistentVolumeClaim, CLAIM, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a claim gets its volume", {"spec.volumeName": "v"}),
        case("a claim gets a class late", {"spec.storageClassName": "fast"}),
        case(
            "but does not change it",
            {"spec.storageClassName": "slow"},
            _STAYS,
            before={"spec.storageClassName": "fast"},
        ),
        case("an unbound claim does not grow", {"spec.resources.requests.storage": "2Gi"}, _STAYS),
        case("a bound claim grows", {"spec.resources.requests.storage": "2Gi"}, before=_BOUND),
        case(
            "a claim does not shrink below what it has",
            {"spec.resources.requests.storage": "1Gi"},
            "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
            before={**_BOUND, "spec.resources.requests.storage": "2Gi"},
        ),
        case(
            "a wish that never came true is taken back",
            {"spec.resources.requests.storage": "2Gi"},
            before={**_BOUND, "spec.resources.requests.storage": "3Gi"},
        ),
        case(
            "the class moves out of its annotation",
            {"spec.storageClassName": "fast"},
            before={"metadata.annotations": {"volume.beta.kubernetes.io/storage-class": "fast"}},
        ),
        case(
            "attributes in use are not forgotten",
            {"spec.volumeAttributesClassName": DROP},
            "spec.volumeAttributesClassName: Forbidden: "
            "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
            before={
                **_BOUND,
                "spec.volumeAttributesClassName": "gold",
                "status.currentVolumeAttributesClassName": "gold",
            },
        ),
    ],
    ids=str,
)
def test_a_changed_claim(one: Case) -> None:
    check_update(PersistentVolumeClaim, CLAIM, one)


def test_the_status_of_a_claim_speaks_of_storage() -> None:
    status = {
        "capacity": {"storage": "-1"},
        "allocatedResources": {"cpu": "1"},
        "allocatedResourceStatuses": {"storage": "x"},
    }
    errors = (
        "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
        'status.allocatedResourceStatuses: Unsupported value: "storage": supported values: ...',
        'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
    )
    check_status(PersistentVolumeClaim, CLAIM, case("bad", {"status": status}, *errors))


CLASS: dict[str, Any] = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com"}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain class is fine"),
        case("a provisioner is needed", {"provisioner": ""}, "provisioner: Required value"),
        case(
            "policies and modes are known ones",
            {"reclaimPolicy": "Recycle", "volumeBindingMode": "Later"},
            'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
            'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
        ),
        case(
            "topologies differ and have values",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": []}]}] * 2},
            "allowedTopologies[0].matchLabelExpressions[0].values: Required value",
            "allowedTopologies[1].matchLabelExpressions[0].values: Required value",
            'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
        ),
        case(
            "parameters are not too many",
            {"parameters": {f"p{i}": "" for i in range(513)}},
            "parameters: Too long: may not be more than 512 bytes",
        ),
    ],
    ids=str,
)
def test_a_new_class(one: Case) -> None:
    check_create(StorageClass, CLASS, one)


def test_what_a_class_promises_stays() -> None:
    change = {
        "provisioner": "other.example.com",
        "parameters": {"a": "b"},
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    errors = [f"{field}: Invalid value: null: field is immutable" for field in change]
    check_update(StorageClass, CLASS, case("stays", change, *errors))
    check_update(
        StorageClass, CLASS, case("may change", {"allowVolumeExpansion": True, "mountOptions": ["ro"]})
    )


def test_attributes_are_given_once() -> None:
    good = {"metadata": {"name": "gold"}, "driverName": "csi.example.com", "parameters": {"iops": "1"}}
    check_create(VolumeAttributesClass, good, case("fine"))
    none = "parameters: Required value: must contain at least one key/value pair"
    check_create(VolumeAttributesClass, good, case("none", {"parameters": {}}, none))
    stays = "parameters: Forbidden: updates to parameters are forbidden."
    check_update(VolumeAttributesClass, good, case("stays", {"parameters": {"iops": "2"}}, stays))


def test_capacity_is_reported_for_a_class() -> None:
    good = {"metadata": {"name": "a", "namespace": "default"}, "storageClassName": "fast", "capacity": "1Gi"}
    check_create(CSIStorageCapacity, good, case("fine"))
    negative = 'capacity: Invalid value: "-1": must be greater than or equal to 0'
    check_create(CSIStorageCapacity, good, case("negative", {"capacity": "-1"}, negative))
    stays = 'storageClassName: Invalid value: "slow": field is immutable'
    check_update(CSIStorageCapacity, good, case("stays", {"storageClassName": "slow"}, stays))


DRIVER: dict[str, Any] = {"metadata": {"name": "csi.example.com"}, "spec": {}}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain driver is fine"),
        case(
            "policies and modes are known ones",
            {
                "spec": {
                    "fsGroupPolicy": "x",
                    "volumeLifecycleModes": ["y"],
                    "nodeAllocatableUpdatePeriodSeconds": 9,
                }
            },
            'spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", "ReadWriteOnceWithFSType"',
            'spec.volumeLifecycleModes: Unsupported value: "y": supported values: "Persistent", "Ephemeral"',
            "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds",
        ),
        case(
            "tokens are for different audiences, and live a while",
            {"spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 1}, {"audience": "a"}]}},
            "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: "
            "may not specify a duration less than 10 minutes",
            'spec.tokenRequests[1].audience: Duplicate value: "a"',
        ),
        case(
            "tokens in secrets need tokens",
            {"spec": {"serviceAccountTokenInSecrets": True}},
            "spec.serviceAccountTokenInSecrets: Invalid value: true: "
            "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
        ),
    ],
    ids=str,
)
def test_a_new_driver(one: Case) -> None:
    check_create(CSIDriver, DRIVER, one)


def test_whether_a_driver_attaches_stays() -> None:
    error = "spec.attachedRequired: Invalid value: false: field is immutable"
    check_update(CSIDriver, DRIVER, case("stays", {"spec.attachRequired": False}, error))


NODE: dict[str, Any] = {
    "metadata": {"name": "n1"},
    "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n1", "topologyKeys": ["zone"]}]},
}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain node is fine"),
        case(
            "drivers are named once, know the node and its labels",
            {
                "spec.drivers[0]": {
                    "name": "a",
                    "nodeID": "",
                    "topologyKeys": ["", "z", "z"],
                    "allocatable": {"count": -1},
                },
                "spec.drivers[1]": {"name": "a", "nodeID": "x" * 257},
            },
            "spec.drivers[0].nodeID: Required value",
            "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
            "spec.drivers[0]: Required value",
            'spec.drivers[0]: Invalid value: "": name part must be non-empty',
            'spec.drivers[0]: Invalid value: "": name part must consist of...',
            'spec.drivers[0]: Duplicate value: "z"',
            'spec.drivers[1].nodeID: Invalid value: "xxx...',
            'spec.drivers[1].name: Duplicate value: "a"',
        ),
    ],
    ids=str,
)
def test_a_new_node(one: Case) -> None:
    check_create(CSINode, NODE, one)


def test_of_a_driver_on_a_node_only_the_count_changes() -> None:
    count = {"spec.drivers[0].allocatable": {"count": 5}}
    stays = "spec.drivers: Invalid value: {..."
    check_update(CSINode, NODE, case("count", count))
    check_update(
        CSINode, NODE, case("count, before 1.35", count, stays, off=("MutableCSINodeAllocatableCount",))
    )
    check_update(CSINode, NODE, case("id", {"spec.drivers[0].nodeID": "x"}, stays))


def test_the_health_of_storage_has_a_reason() -> None:
    health = {"name": "csi.example.com", "healthConditions": [{"status": "Fine", "reason": ""}]}
    errors = (
        'status.storageHealth[0].healthConditions[0].status: Unsupported value: "Fine": '
        'supported values: "StorageDegraded", "StorageUnreachable"',
        "status.storageHealth[0].healthConditions[0].reason: Required value",
    )
    check_status(CSINode, NODE, case("bad", {"status": {"storageHealth": [health]}}, *errors))


ATTACHMENT: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v"}},
}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain attachment is fine"),
        case(
            "an attachment is of something by somebody",
            {"spec.source": {}, "spec.attacher": ""},
            "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            "spec.attacher: Required value",
        ),
        case(
            "volumes inside are of a driver, and nothing else",
            {
                "spec.source": {
                    "inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"}}
                }
            },
            "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes",
            "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes",
            "spec.source.inlineVolumeSpec: Required value: must specify a volume type",
        ),
        case(
            "errors are short",
            {"status": {"attachError": {"message": "x" * 1025, "errorCode": -1}}},
            "status.attachError.message: Too long: may not be more than 1024 bytes",
            "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
    ],
    ids=str,
)
def test_a_new_attachment(one: Case) -> None:
    check_create(VolumeAttachment, ATTACHMENT, one)


def test_what_is_attached_where_stays() -> None:
    stays = "spec: Invalid value: null: field is immutable"
    check_update(VolumeAttachment, ATTACHMENT, case("stays", {"spec.nodeName": "n2"}, stays))
    check_status(VolumeAttachment, ATTACHMENT, case("attached", {"status": {"attached": True}}))
