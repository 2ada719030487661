"""What `kubectl get` says about every other kind."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.meta import LabelSelector, LabelSelectorRequirement
from nodeward.api.printing import PRINTERS, volumes
from nodeward.api.printing.cells import selector_cell
from nodeward.api.scheme import SCHEME
from nodeward.api.storage_v1 import StorageClass
from tests.api.printing.objects import CREATED, NOW, ago, decode, row

_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"disk": "ssd"}}}
_SELECTOR = {"matchLabels": {"app": "x"}}
_RBAC = "rbac.authorization.k8s.io"

#: api version, kind, body, cells
_ROWS: dict[str, tuple[str, str, dict[str, Any], list[str | int | bool]]] = {
    "a replication controller": (
        "v1",
        "ReplicationController",
        {
            "spec": {"replicas": 3, "template": _TEMPLATE, "selector": {"app": "x"}},
            "status": {"replicas": 2, "readyReplicas": 1},
        },
        ["x", 3, 2, 1, "10m", "c", "i", "app=x"],
    ),
    "a replica set": (
        "apps/v1",
        "ReplicaSet",
        {
            "spec": {"replicas": 3, "template": _TEMPLATE, "selector": _SELECTOR},
            "status": {"replicas": 2, "readyReplicas": 1},
        },
        ["x", 3, 2, 1, "10m", "c", "i", "app=x"],
    ),
    "a deployment": (
        "apps/v1",
        "Deployment",
        {
            "spec": {"replicas": 3, "template": _TEMPLATE, "selector": _SELECTOR},
            "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
        },
        ["x", "1/3", 2, 1, "10m", "c", "i", "app=x"],
    ),
    "a deployment that selects nothing": (
        "apps/v1",
        "Deployment",
        {},
        ["x", "0/0", 0, 0, "10m", "", "", ""],
    ),
    "a stateful set": (
        "apps/v1",
        "StatefulSet",
        {"spec": {"replicas": 3, "template": _TEMPLATE}, "status": {"readyReplicas": 1}},
        ["x", "1/3", "10m", "c", "i"],
    ),
    "a daemon set": (
        "apps/v1",
        "DaemonSet",
        {
            "spec": {"template": _TEMPLATE, "selector": _SELECTOR},
            "status": {
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberReady": 3,
                "updatedNumberScheduled": 2,
                "numberAvailable": 1,
            },
        },
        ["x", 5, 4, 3, 2, 1, "disk=ssd", "10m", "c", "i", "app=x"],
    ),
    "a controller revision names its controller": (
        "apps/v1",
        "ControllerRevision",
        {
            "revision": 7,
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"},
                    {
                        "apiVersion": "apps/v1",
                        "kind": "StatefulSet",
                        "name": "s",
                        "uid": "2",
                        "controller": True,
                    },
                ]
            },
        },
        ["x", "statefulset.apps/s", 7, "10m"],
    ),
    "a controller revision without a controller": (
        "apps/v1",
        "ControllerRevision",
        {},
        ["x", "<none>", 0, "10m"],
    ),
    "a readiness rule": (
        "readiness.node.x-k8s.io/v1alpha1",
        "NodeReadinessRule",
        {
            "spec": {
                "enforcementMode": "continuous",
                "taint": {"key": "readiness.k8s.io/network", "effect": "NoSchedule"},
                "dryRun": True,
            }
        },
        ["x", "continuous", "readiness.k8s.io/network", "NoSchedule", True, "10m"],
    ),
    "a disruption budget": (
        "policy/v1",
        "PodDisruptionBudget",
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
        ["x", "50%", "N/A", 2, "10m"],
    ),
    "a running job without completions": (
        "batch/v1",
        "Job",
        {
            "spec": {"parallelism": 3, "template": _TEMPLATE, "selector": _SELECTOR},
            "status": {"succeeded": 1, "startTime": ago(5)},
        },
        ["x", "Running", "1/1 of 3", "5m", "10m", "c", "i", "app=x"],
    ),
    "a complete job": (
        "batch/v1",
        "Job",
        {
            "spec": {"completions": 2},
            "status": {
                "succeeded": 2,
                "startTime": ago(5),
                "completionTime": ago(2),
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ],
            },
        },
        ["x", "Complete", "2/2", "3m", "10m", "", "", "<none>"],
    ),
    "a job being deleted": (
        "batch/v1",
        "Job",
        {
            "metadata": {"deletionTimestamp": CREATED},
            "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
        },
        ["x", "Terminating", "0/1", "", "10m", "", "", "<none>"],
    ),
    "a suspended job": (
        "batch/v1",
        "Job",
        {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
        ["x", "Suspended", "0/1", "", "10m", "", "", "<none>"],
    ),
    "a cron job": (
        "batch/v1",
        "CronJob",
        {
            "spec": {
                "schedule": "* * * * *",
                "suspend": False,
                "jobTemplate": {"spec": {"template": _TEMPLATE}},
            },
            "status": {"active": [{"name": "j"}], "lastScheduleTime": ago(1)},
        },
        ["x", "* * * * *", "<none>", "False", 1, "60s", "10m", "c", "i", "<none>"],
    ),
    "a node that reports nothing": (
        "v1",
        "Node",
        {},
        ["x", "Unknown", "<none>", "10m", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"],
    ),
    "a cordoned node with roles": (
        "v1",
        "Node",
        {
            "metadata": {
                "labels": {
                    "node-role.kubernetes.io/worker": "",
                    "node-role.kubernetes.io/": "",
                    "kubernetes.io/role": "edge",
                }
            },
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [
                    {"type": "Hostname", "address": "h"},
                    {"type": "InternalIP", "address": "10.0.0.1"},
                    {"type": "ExternalIP", "address": "192.0.2.1"},
                ],
                "nodeInfo": {
                    "kubeletVersion": "v1.37.0",
                    "osImage": "Debian",
                    "kernelVersion": "6.1",
                    "architecture": "amd64",
                    "containerRuntimeVersion": "containerd://1.6",
                },
            },
        },
        [
            "x",
            "Ready,SchedulingDisabled",
            "edge,worker",
            "10m",
            "v1.37.0",
            "10.0.0.1",
            "192.0.2.1",
            "Debian",
            "6.1 (amd64)",
            "containerd://1.6",
        ],
    ),
    "a node that lost contact": (
        "v1",
        "Node",
        {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        ["x", "NotReady", "<none>", "10m", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"],
    ),
    "a runtime class": ("node.k8s.io/v1", "RuntimeClass", {"handler": "runc"}, ["x", "runc", "10m"]),
    "a service on node ports": (
        "v1",
        "Service",
        {
            "spec": {
                "type": "NodePort",
                "clusterIPs": ["10.96.0.1"],
                "ports": [
                    {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                ],
            }
        },
        ["x", "NodePort", "10.96.0.1", "<none>", "80:30080/TCP,53/UDP", "10m", "<none>"],
    ),
    "a load balancer that waits": (
        "v1",
        "Service",
        {"spec": {"type": "LoadBalancer"}},
        ["x", "LoadBalancer", "<none>", "<pending>", "<none>", "10m", "<none>"],
    ),
    "a load balancer with addresses": (
        "v1",
        "Service",
        {
            "spec": {"type": "LoadBalancer", "externalIPs": ["198.51.100.1"], "selector": {"app": "x"}},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}, {"hostname": "a.example"}]}},
        },
        ["x", "LoadBalancer", "<none>", "192.0.2.9,a.example,198.51.100.1", "<none>", "10m", "app=x"],
    ),
    "an external name": (
        "v1",
        "Service",
        {"spec": {"type": "ExternalName", "externalName": "db.example"}},
        ["x", "ExternalName", "<none>", "db.example", "<none>", "10m", "<none>"],
    ),
    "endpoints with ports, cut after three": (
        "v1",
        "Endpoints",
        {
            "subsets": [
                {"addresses": [{"ip": "fd00::1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80}, {"port": 443}]}
            ]
        },
        ["x", "[fd00::1]:80,10.0.0.2:80,[fd00::1]:443 + 1 more...", "10m"],
    ),
    "endpoints without ports": (
        "v1",
        "Endpoints",
        {"subsets": [{"addresses": [{"ip": "10.0.0.2"}]}]},
        ["x", "10.0.0.2", "10m"],
    ),
    "no endpoints": ("v1", "Endpoints", {}, ["x", "<none>", "10m"]),
    "an endpoint slice": (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {
            "addressType": "IPv4",
            "ports": [{"port": 80}, {"name": "all"}, {}],
            "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(5)],
        },
        ["x", "IPv4", "80,all,*", "10.0.0.0,10.0.0.1,10.0.0.2 + 2 more...", "10m"],
    ),
    "an empty endpoint slice": (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {},
        ["x", "", "<unset>", "<unset>", "10m"],
    ),
    "a bound volume": (
        "v1",
        "PersistentVolume",
        {
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "ns", "name": "claim"},
                "storageClassName": "fast",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Bound"},
        },
        [
            "x",
            "5Gi",
            "RWO,RWX",
            "Retain",
            "Bound",
            "ns/claim",
            "fast",
            "<unset>",
            "",
            "10m",
            "Filesystem",
        ],
    ),
    "a volume being deleted": (
        "v1",
        "PersistentVolume",
        {"metadata": {"deletionTimestamp": CREATED}, "status": {"phase": "Released"}},
        ["x", "0", "", "", "Terminating", "", "", "<unset>", "", "10m", "<unset>"],
    ),
    "a bound claim": (
        "v1",
        "PersistentVolumeClaim",
        {
            "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "spec": {"volumeName": "pv", "storageClassName": "new", "volumeAttributesClassName": "gold"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"]},
        },
        ["x", "Bound", "pv", "1Gi", "RWOP", "old", "gold", "10m", "<unset>"],
    ),
    "a claim that waits shows no capacity": (
        "v1",
        "PersistentVolumeClaim",
        {"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Pending"}},
        ["x", "Pending", "", "", "", "", "<unset>", "10m", "<unset>"],
    ),
    "a storage class with nothing set": (
        "storage.k8s.io/v1",
        "StorageClass",
        {"provisioner": "p"},
        ["x", "p", "Delete", "Immediate", False, "10m"],
    ),
    "a volume attributes class": (
        "storage.k8s.io/v1",
        "VolumeAttributesClass",
        {"driverName": "d"},
        ["x", "d", "10m"],
    ),
    "an attachment": (
        "storage.k8s.io/v1",
        "VolumeAttachment",
        {
            "spec": {"attacher": "d", "source": {"persistentVolumeName": "pv"}, "nodeName": "n"},
            "status": {"attached": True},
        },
        ["x", "d", "pv", "n", True, "10m"],
    ),
    "a CSI node": (
        "storage.k8s.io/v1",
        "CSINode",
        {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}},
        ["x", 1, "10m"],
    ),
    "a CSI driver with nothing set": (
        "storage.k8s.io/v1",
        "CSIDriver",
        {},
        ["x", True, False, False, "<unset>", False, "<none>", "10m"],
    ),
    "a CSI driver": (
        "storage.k8s.io/v1",
        "CSIDriver",
        {
            "spec": {
                "attachRequired": False,
                "podInfoOnMount": True,
                "storageCapacity": True,
                "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
                "requiresRepublish": True,
                "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            }
        },
        ["x", False, True, True, "a,b", True, "Persistent,Ephemeral", "10m"],
    ),
    "a namespace": ("v1", "Namespace", {"status": {"phase": "Active"}}, ["x", "Active", "10m"]),
    "a secret": (
        "v1",
        "Secret",
        {"type": "Opaque", "data": {"a": "YQ==", "b": "Yg=="}},
        ["x", "Opaque", 2, "10m"],
    ),
    "a config map": ("v1", "ConfigMap", {"data": {"a": ""}, "binaryData": {"b": "Yg=="}}, ["x", 2, "10m"]),
    "a service account": ("v1", "ServiceAccount", {}, ["x", "10m"]),
    "a healthy component": (
        "v1",
        "ComponentStatus",
        {"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]},
        ["x", "Healthy", "ok", ""],
    ),
    "a sick component": (
        "v1",
        "ComponentStatus",
        {"conditions": [{"type": "Healthy", "status": "False", "error": "refused"}]},
        ["x", "Unhealthy", "", "refused"],
    ),
    "a silent component": ("v1", "ComponentStatus", {}, ["x", "Unknown", "", ""]),
    "a quota": (
        "v1",
        "ResourceQuota",
        {
            "status": {
                "hard": {"requests.cpu": "4", "limits.cpu": "8", "pods": "10"},
                "used": {"requests.cpu": "500m", "limits.cpu": "1"},
            }
        },
        ["x", "pods: 0/10, requests.cpu: 500m/4", "limits.cpu: 1/8", "10m"],
    ),
    "a lease": ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "10m"]),
    "a priority class": (
        "scheduling.k8s.io/v1",
        "PriorityClass",
        {"value": 7, "globalDefault": True, "preemptionPolicy": "Never"},
        ["x", 7, True, "10m", "Never"],
    ),
    "a counted event": (
        "v1",
        "Event",
        {
            "type": "Warning",
            "reason": "BackOff",
            "message": " again \n",
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
            "source": {"component": "kubelet", "host": "n"},
            "firstTimestamp": ago(9),
            "lastTimestamp": ago(3),
            "count": 4,
        },
        ["3m", "Warning", "BackOff", "pod/p", "spec.containers{c}", "kubelet, n", "again", "9m", 4, "x"],
    ),
    "an event that happened once, in the newer form": (
        "events.k8s.io/v1",
        "Event",
        {
            "type": "Normal",
            "reason": "Scheduled",
            "note": "bound",
            "regarding": {"kind": "Node"},
            "reportingController": "scheduler",
            "eventTime": "2026-11-15T06:06:00.000000Z",
        },
        ["4m", "Normal", "Scheduled", "node", "", "scheduler", "bound", "4m", 1, "x"],
    ),
    "a series of events": (
        "v1",
        "Event",
        {
            "eventTime": "2026-11-15T06:01:00.000000Z",
            "series": {"count": 9, "lastObservedTime": "2026-11-15T06:08:00.000000Z"},
        },
        ["2m", "", "", "", "", "", "", "9m", 9, "x"],
    ),
    "a role binding": (
        f"{_RBAC}/v1",
        "RoleBinding",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "User", "name": "v"},
                {"kind": "Group", "name": "g"},
                {"kind": "ServiceAccount", "namespace": "ns", "name": "sa"},
            ],
        },
        ["x", "Role/r", "10m", "u, v", "g", "ns/sa"],
    ),
    "a cluster role binding": (
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        {"roleRef": {"kind": "ClusterRole", "name": "r"}},
        ["x", "ClusterRole/r", "10m", "", "", ""],
    ),
    "a device class": ("resource.k8s.io/v1", "DeviceClass", {}, ["x", "10m"]),
    "a claim template": ("resource.k8s.io/v1", "ResourceClaimTemplate", {}, ["x", "10m"]),
    "a pending resource claim": ("resource.k8s.io/v1", "ResourceClaim", {}, ["x", "pending", "10m"]),
    "a resource claim in use": (
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"status": {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}},
        ["x", "allocated,reserved", "10m"],
    ),
    "a deleted resource claim": (
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"metadata": {"deletionTimestamp": CREATED}},
        ["x", "deleted", "10m"],
    ),
    "a deleted resource claim that is still allocated": (
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"metadata": {"deletionTimestamp": CREATED}, "status": {"allocation": {}}},
        ["x", "deleted,allocated", "10m"],
    ),
    "a resource slice": (
        "resource.k8s.io/v1",
        "ResourceSlice",
        {"spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p"}}},
        ["x", "n", "d", "p", "10m"],
    ),
    "a device taint rule": (
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        {"spec": {"taint": {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": ago(5)}}},
        ["x", "k", "v", "NoExecute", "5m", "10m"],
    ),
}


@pytest.mark.parametrize(("api_version", "kind", "body", "cells"), _ROWS.values(), ids=_ROWS)
def test_the_row_of(api_version: str, kind: str, body: dict[str, Any], cells: list[Any]) -> None:
    shown = list(row(api_version, kind, **body).values())
    assert shown == cells
    # True == 1: types must match as well, for they are JSON
    assert [type(cell) for cell in shown] == [type(cell) for cell in cells]


def test_every_printer_with_columns_of_its_own_is_tried_here() -> None:
    tried = {(api_version.rpartition("/")[0], kind) for api_version, kind, _, _ in _ROWS.values()}
    elsewhere = {("", "Pod"), ("", "PodTemplate"), ("autoscaling", "Scale")}
    assert set(PRINTERS) == tried | elsewhere


def test_every_served_kind_without_a_printer_is_meant_to_be_shown_plainly() -> None:
    plain = {kind.name for kind in SCHEME.kinds if kind.is_stored and (kind.group, kind.name) not in PRINTERS}
    assert plain == {"LimitRange", "ClusterRole", "Role", "CSIStorageCapacity"}


def test_the_youngest_default_storage_class_is_the_default() -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        decode(
            StorageClass,
            {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}},
        )
        for name, created, annotations in [
            ("a", ago(9), mark),
            ("c", ago(2), mark),
            ("b", ago(2), mark),
            ("d", ago(1), {}),
        ]
    ]
    assert volumes.STORAGE_CLASS.list_cells is not None
    names = [cells[0] for cells in volumes.STORAGE_CLASS.list_cells(classes, NOW)]
    assert names == ["a", "c", "b (default)", "d"]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        (LabelSelector(), "<none>"),
        (LabelSelector(match_labels={"b": "2", "a": "1"}), "a=1,b=2"),
        (
            LabelSelector(
                match_labels={"m": "1"},
                match_expressions=[
                    LabelSelectorRequirement(key="z", operator="In", values=["2", "1"]),
                    LabelSelectorRequirement(key="k", operator="NotIn", values=["a"]),
                    LabelSelectorRequirement(key="e", operator="Exists"),
                    LabelSelectorRequirement(key="d", operator="DoesNotExist"),
                ],
            ),
            "!d,e,k notin (a),m=1,z in (1,2)",
        ),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Like")]),
            "<error>",
        ),
    ],
)
def test_selectors_are_shown_as_the_command_line_takes_them(
    selector: LabelSelector | None, text: str
) -> None:
    assert selector_cell(selector) == text
