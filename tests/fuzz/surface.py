"""Every operation our OpenAPI v3 documents describe, and good objects to start from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.apiserver.running import Caller


@dataclass(frozen=True)
class Operation:
    """One method on one path."""

    method: str
    path: str
    group: str
    kind: str
    body: Mapping[str, Any] | None
    schemas: Mapping[str, Any]

    @property
    def is_watch(self) -> bool:
        return "/watch/" in self.path


async def operations(caller: Caller) -> list[Operation]:
    """What the server says it can do, in a fixed order."""
    _, index = await caller.json("GET", "/openapi/v3")
    found: list[Operation] = []
    for place, document in sorted(index["paths"].items()):
        if not place.startswith(("api/", "apis/")):
            continue
        answer = await caller.send("GET", document["serverRelativeURL"])
        described = json.loads(answer.body or b"")
        schemas = described["components"]["schemas"]
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if method not in ("get", "put", "post", "delete", "patch", "head", "options"):
                    continue
                about = operation.get("x-kubernetes-group-version-kind", {})
                content = operation.get("requestBody", {}).get("content", {})
                body = next(iter(content.values()))["schema"] if content else None
                found.append(
                    Operation(
                        method.upper(), path, about.get("group", ""), about.get("kind", ""), body, schemas
                    )
                )
    return found


_CONTAINERS: Final = [{"name": "c", "image": "registry.example/c:1", "ports": [{"containerPort": 80}]}]
_TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": _CONTAINERS}}
_SELECTOR: Final = {"matchLabels": {"a": "b"}}
_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_SUBJECT: Final = {"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}
_RULE: Final = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}

#: Kind -> the part of a good object that is not metadata.
GOOD: Final[Mapping[str, dict[str, Any]]] = {
    "Pod": {"spec": {"containers": _CONTAINERS, "volumes": [{"name": "v", "emptyDir": {}}]}},
    "Node": {
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}},
    },
    "Namespace": {},
    "ConfigMap": {"data": {"a": "b"}},
    "Secret": {"stringData": {"a": "b"}},
    "ServiceAccount": {},
    "Service": {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
    "Endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "Event": {
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "reason": "A",
        "type": "Normal",
    },
    "ReplicationController": {"spec": {"replicas": 1, "selector": {"a": "b"}, "template": _TEMPLATE}},
    "PodTemplate": {"template": _TEMPLATE},
    "ResourceQuota": {"spec": {"hard": {"pods": "1000"}}},
    "LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    "PersistentVolumeClaim": {"spec": _CLAIM},
    "PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    },
    "Deployment": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "ReplicaSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "DaemonSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "StatefulSet": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE, "serviceName": "a"}},
    "ControllerRevision": {"revision": 1, "data": {"a": 1}},
    "Job": {"spec": {"template": {"spec": {"containers": _CONTAINERS, "restartPolicy": "Never"}}}},
    "CronJob": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {
                "spec": {"template": {"spec": {"containers": _CONTAINERS, "restartPolicy": "Never"}}}
            },
        }
    },
    "Lease": {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 10}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": _SELECTOR}},
    "PriorityClass": {"value": 10},
    "StorageClass": {"provisioner": "example.com/p"},
    "CSIDriver": {"spec": {}},
    "RuntimeClass": {"handler": "a"},
    "Role": {"rules": [_RULE]},
    "ClusterRole": {"rules": [_RULE]},
    "RoleBinding": {
        "subjects": [_SUBJECT],
        "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
    },
    "ClusterRoleBinding": {
        "subjects": [_SUBJECT],
        "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
    },
    "NodeReadinessRule": {
        "spec": {
            "conditions": [{"type": "example.com/A", "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": "readiness.k8s.io/a", "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"a": "b"}},
        }
    },
    "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
}
