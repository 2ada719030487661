"""What objects count for in a quota."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.storage import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResourceRequirements,
)
from nodeward.api.resource_v1 import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from nodeward.base.quantity import Quantity
from nodeward.features import Gates
from nodeward.rules.quota import counts, usage

GATES = Gates.of("1.37")


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        ("pods", ["pods", "count/pods", "cpu", "requests.memory", "limits.cpu", "requests.example.com/gpu"]),
        ("pods", ["hugepages-2Mi", "requests.hugepages-2Mi", "requests.ephemeral-storage"]),
        ("services", ["services", "services.nodeports", "services.loadbalancers", "count/services"]),
        ("persistentvolumeclaims", ["requests.storage", "gold.storageclass.storage.k8s.io/requests.storage"]),
        ("resourceclaims.resource.k8s.io", ["gpu.deviceclass.resource.k8s.io/devices"]),
        ("deployments.apps", ["count/deployments.apps"]),
        ("secrets", ["secrets", "count/secrets"]),
    ],
)
def test_a_kind_counts_for_its_entries(resource: str, names: list[str]) -> None:
    assert [name for name in names if counts(resource, name)] == names
    assert not counts("configmaps", names[0])


@pytest.mark.parametrize("name", ["services", "requests.storage", "example.com/gpu", "limits.hugepages-2Mi"])
def test_a_pod_does_not_count_for_others(name: str) -> None:
    assert not counts("pods", name)


def test_a_pod_counts_by_its_devices_too() -> None:
    asked = {"example.com/gpu": Quantity.parse("2"), "hugepages-2Mi": Quantity.parse("4Mi")}
    pod = Pod(spec=PodSpec(containers=[Container(name="c", resources=ResourceRequirements(requests=asked))]))
    used = {name: str(amount) for name, amount in usage("pods", pod, GATES, 0).items()}
    assert used == {
        "count/pods": "1",
        "pods": "1",
        "requests.example.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
    }


def test_a_claim_counts_by_class_and_by_what_it_holds() -> None:
    claim = PersistentVolumeClaim(
        spec=PersistentVolumeClaimSpec(
            storage_class_name="gold",
            resources=VolumeResourceRequirements(requests={"storage": Quantity.parse("1Gi")}),
        ),
        status=PersistentVolumeClaimStatus(allocated_resources={"storage": Quantity.parse("2Gi")}),
    )
    used = {name: str(amount) for name, amount in usage("persistentvolumeclaims", claim, GATES, 0).items()}
    assert used == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "2Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2Gi",
    }


def test_a_resource_claim_counts_for_the_most_it_may_be_given() -> None:
    exact = ExactDeviceRequest(device_class_name="gpu", allocation_mode="ExactCount", count=2)
    either = [
        DeviceSubRequest(name="a", device_class_name="gpu", allocation_mode="ExactCount", count=1),
        DeviceSubRequest(name="b", device_class_name="gpu", allocation_mode="ExactCount", count=4),
        DeviceSubRequest(name="c", device_class_name="nic", allocation_mode="All"),
    ]
    requests = [DeviceRequest(name="x", exactly=exact), DeviceRequest(name="y", first_available=either)]
    claim = ResourceClaim(spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))
    used = {
        name: str(amount) for name, amount in usage("resourceclaims.resource.k8s.io", claim, GATES, 0).items()
    }
    assert used == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "6",
        "nic.deviceclass.resource.k8s.io/devices": "32",
    }
