"""What is filled in for every kind but pods and nodes."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from nodeward.api.apps_v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.core_v1.cluster import LimitRange, Namespace, Secret
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.core_v1.service import Endpoints, Service
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.defaults.other_kinds import OTHERS
from nodeward.api.defaults.resource import date_taints
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.meta import KubeObject
from nodeward.api.rbac_v1 import RoleBinding
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.api.storage_v1 import CSIDriver, StorageClass
from tests.validation.tables import read

_TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def _tree(obj: KubeObject) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj, enc_hook=str))


def _filled(kind: type[KubeObject], given: dict[str, Any]) -> Any:
    obj = read(kind, given)
    OTHERS[kind](obj)
    return _tree(obj)


def _part(tree: Any, like: Any) -> Any:
    """The part of `tree` that `like` speaks of."""
    if isinstance(like, dict):
        return {key: _part(tree[key], value) for key, value in like.items()}
    return tree


@pytest.mark.parametrize(
    ("kind", "given", "filled"),
    [
        pytest.param(
            Deployment,
            {"spec": {"template": _TEMPLATE}},
            {
                "spec": {
                    "replicas": 1,
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                    "strategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                    },
                    "template": {"spec": {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}},
                }
            },
            id="a deployment rolls by a quarter",
        ),
        pytest.param(
            Deployment,
            {"spec": {"replicas": 0, "strategy": {"type": "Recreate"}}},
            {"spec": {"replicas": 0, "strategy": {"type": "Recreate"}}},
            id="nothing that is said is changed",
        ),
        pytest.param(ReplicaSet, {}, {"spec": {"replicas": 1}}, id="a replica set has one replica"),
        pytest.param(
            DaemonSet,
            {},
            {
                "spec": {
                    "revisionHistoryLimit": 10,
                    "updateStrategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
                    },
                }
            },
            id="a daemon set goes one by one",
        ),
        pytest.param(
            StatefulSet,
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}}]}},
            {
                "spec": {
                    "replicas": 1,
                    "podManagementPolicy": "OrderedReady",
                    "updateStrategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"partition": 0, "maxUnavailable": 1},
                    },
                    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                    "volumeClaimTemplates": [
                        {
                            "kind": "PersistentVolumeClaim",
                            "apiVersion": "v1",
                            "metadata": {"name": "d"},
                            "spec": {"resources": {}, "volumeMode": "Filesystem"},
                            "status": {"phase": "Pending"},
                        }
                    ],
                }
            },
            id="a stateful set keeps its claims",
        ),
        pytest.param(
            ReplicationController,
            {"spec": {"template": _TEMPLATE}},
            {"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 1, "selector": {"app": "web"}}},
            id="a controller takes its template's labels",
        ),
        pytest.param(
            Job,
            {"spec": {"template": _TEMPLATE}},
            {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "completions": 1,
                    "parallelism": 1,
                    "backoffLimit": 6,
                    "completionMode": "NonIndexed",
                    "suspend": False,
                    "podReplacementPolicy": "TerminatingOrFailed",
                    "manualSelector": False,
                },
            },
            id="a job runs once",
        ),
        pytest.param(
            Job,
            {
                "spec": {
                    "parallelism": 2,
                    "backoffLimitPerIndex": 1,
                    "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "A"}]}]},
                }
            },
            {
                "spec": {
                    "backoffLimit": 2**31 - 1,
                    "podReplacementPolicy": "Failed",
                    "podFailurePolicy": {
                        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "A", "status": "True"}]}]
                    },
                }
            },
            id="a job with limits per index has none of its own",
        ),
        pytest.param(
            CronJob,
            {},
            {
                "spec": {
                    "concurrencyPolicy": "Allow",
                    "suspend": False,
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                }
            },
            id="a cron job keeps three successes and a failure",
        ),
        pytest.param(
            Service,
            {"spec": {"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}},
            {
                "spec": {
                    "type": "ClusterIP",
                    "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                    "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
                    "internalTrafficPolicy": "Cluster",
                }
            },
            id="a service forwards to the same port",
        ),
        pytest.param(
            Service,
            {
                "spec": {"type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            },
            {
                "spec": {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}},
            },
            id="a load balancer has node ports",
        ),
        pytest.param(
            Endpoints,
            {"subsets": [{"ports": [{"port": 1}]}]},
            {"subsets": [{"ports": [{"port": 1, "protocol": "TCP"}]}]},
            id="endpoints speak TCP",
        ),
        pytest.param(
            EndpointSlice,
            {"ports": [{"port": 1}]},
            {"ports": [{"name": "", "port": 1, "protocol": "TCP"}]},
            id="slices speak TCP, without a name",
        ),
        pytest.param(
            Namespace,
            {"metadata": {"name": "a"}},
            {"metadata": {"labels": {"kubernetes.io/metadata.name": "a"}}, "status": {"phase": "Active"}},
            id="a namespace is labelled with its name",
        ),
        pytest.param(Secret, {}, {"type": "Opaque"}, id="a secret is opaque"),
        pytest.param(
            LimitRange,
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}]}},
            {
                "spec": {
                    "limits": [
                        {
                            "type": "Container",
                            "max": {"cpu": "2"},
                            "min": {"memory": "1Gi"},
                            "default": {"cpu": "2"},
                            "defaultRequest": {"cpu": "2", "memory": "1Gi"},
                        }
                    ]
                }
            },
            id="limits of containers follow from each other",
        ),
        pytest.param(
            PersistentVolume,
            {},
            {
                "spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
                "status": {"phase": "Pending"},
            },
            id="a volume is kept",
        ),
        pytest.param(
            PersistentVolumeClaim,
            {"spec": {"resources": {"requests": {"storage": "1n"}}}},
            {"spec": {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1m"}}}},
            id="amounts are rounded up to thousandths",
        ),
        pytest.param(
            StorageClass,
            {},
            {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
            id="volumes of a class are deleted",
        ),
        pytest.param(
            CSIDriver,
            {},
            {
                "spec": {
                    "attachRequired": True,
                    "podInfoOnMount": False,
                    "storageCapacity": False,
                    "fsGroupPolicy": "ReadWriteOnceWithFSType",
                    "volumeLifecycleModes": ["Persistent"],
                    "requiresRepublish": False,
                    "seLinuxMount": False,
                    "preventPodSchedulingIfMissing": False,
                }
            },
            id="a driver attaches",
        ),
        pytest.param(
            PriorityClass, {}, {"preemptionPolicy": "PreemptLowerPriority"}, id="priorities preempt"
        ),
        pytest.param(TokenRequest, {}, {"spec": {"expirationSeconds": 3600}}, id="a token lives an hour"),
        pytest.param(
            RoleBinding,
            {"subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]},
            {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [
                    {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
                    {"kind": "ServiceAccount", "name": "s"},
                ],
            },
            id="users are of the rbac group, accounts are not",
        ),
        pytest.param(
            ResourceClaim,
            {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}},
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "a",
                                "exactly": {
                                    "deviceClassName": "c",
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                },
                            }
                        ]
                    }
                }
            },
            id="a claim asks for one device",
        ),
    ],
)
def test_what_is_left_out_is_filled_in(
    kind: type[KubeObject], given: dict[str, Any], filled: dict[str, Any]
) -> None:
    assert _part(_filled(kind, given), filled) == filled


@pytest.mark.parametrize("kind", list(OTHERS), ids=lambda kind: str(kind.__name__))
def test_defaulting_twice_is_the_same_as_once(kind: type[KubeObject]) -> None:
    once = read(kind, {"metadata": {"name": "a"}})
    OTHERS[kind](once)
    twice = copy.deepcopy(once)
    OTHERS[kind](twice)
    assert _tree(twice) == _tree(once)


def test_filling_in_shares_nothing_between_objects() -> None:
    job = read(Job, {"spec": {"template": _TEMPLATE}})
    OTHERS[Job](job)
    job.metadata.labels["x"] = "y"
    assert job.spec.template.metadata.labels == {"app": "web"}


def test_taints_without_a_time_were_added_now() -> None:
    taints = [{"key": "a"}, {"key": "b", "timeAdded": "2025-01-01T00:00:00Z"}]
    devices = read(ResourceSlice, {"spec": {"devices": [{"name": "d", "taints": taints}]}})
    date_taints(devices, "2026-01-01T00:00:00Z")
    assert [t.time_added for t in devices.spec.devices[0].taints] == [
        "2026-01-01T00:00:00Z",
        "2025-01-01T00:00:00Z",
    ]
    rule = read(DeviceTaintRule, {"spec": {"taint": {"key": "a"}}})
    date_taints(rule, "2026-01-01T00:00:00Z")
    assert rule.spec.taint.time_added == "2026-01-01T00:00:00Z"
