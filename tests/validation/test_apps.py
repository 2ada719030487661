"""Deployments, replica sets, daemon sets, stateful sets, controllers and revisions: what is refused, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.apps_v1 import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.validation.registry import VALIDATORS
from tests.validation.tables import (
    DROP,
    Case,
    case,
    check_create,
    check_status,
    check_update,
    context,
    defaulted,
    edited,
)

_META = {"name": "web", "namespace": "default"}
_TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}
_SPEC = {"selector": {"matchLabels": {"app": "web"}}, "template": _TEMPLATE}
DEPLOYMENT: dict[str, Any] = {"metadata": _META, "spec": _SPEC}
STATEFUL_SET = edited(DEPLOYMENT, {"spec.serviceName": "web"})
CONTROLLER = edited(DEPLOYMENT, {"spec.selector": {"app": "web"}})
_NOT_CHOSEN = (
    'spec.template.metadata.labels: Invalid value: {"app":"db"}: `selector` does not match template `labels`'
)
_OTHER = {"matchLabels": {"app": "db"}}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain deployment is fine"),
        case(
            "the selector is required, and without one no pod is chosen",
            {"spec.selector": DROP, "spec.template.metadata.labels.app": "db"},
            "spec.selector: Required value",
            _NOT_CHOSEN,
        ),
        case(
            "the selector must choose the template's pods",
            {"spec.template.metadata.labels.app": "db"},
            _NOT_CHOSEN,
        ),
        case(
            "an empty selector is refused",
            {"spec.selector": {}},
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        case(
            "an operator nobody knows makes the selector useless",
            {"spec.selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            'spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
            'spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Like"}]}: '
            "invalid label selector",
        ),
        case(
            "pods are restarted always, without a deadline",
            {"spec.template.spec.restartPolicy": "Never", "spec.template.spec.activeDeadlineSeconds": 5},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
        ),
        case(
            "faults of the template are faults of the deployment",
            {"spec.template.spec.containers[0].image": DROP},
            "spec.template.spec.containers[0].image: Required value",
        ),
        case(
            "counts are not negative",
            {"spec.replicas": -1, "spec.minReadySeconds": -2, "spec.revisionHistoryLimit": -3},
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
            "spec.revisionHistoryLimit: Invalid value: -3: must be greater than or equal to 0",
        ),
        case(
            "there is time to become ready before progress is late",
            {"spec.progressDeadlineSeconds": 10, "spec.minReadySeconds": 10},
            "spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds",
        ),
        case(
            "recreating takes no rolling parameters",
            {"spec.strategy": {"type": "Recreate", "rollingUpdate": {}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        case(
            "an unknown strategy is shown whole",
            {"spec.strategy": {"type": "Magic"}},
            'spec.strategy: Unsupported value: {"type":"Magic"}: '
            'supported values: "Recreate", "RollingUpdate"',
        ),
        case(
            "a rolling update must be able to move",
            {"spec.strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}},
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        case(
            "percentages are percentages, of at most all",
            {"spec.strategy": {"rollingUpdate": {"maxUnavailable": "101%", "maxSurge": "x"}}},
            'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric '
            "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
    ],
    ids=str,
)
def test_a_new_deployment(one: Case) -> None:
    check_create(Deployment, DEPLOYMENT, one)


@pytest.mark.parametrize(
    "one",
    [
        case(
            "replicas and template may change",
            {"spec.replicas": 3, "spec.template.spec.containers[0].image": "b"},
        ),
        case(
            "the selector never changes",
            {"spec.selector": _OTHER, "spec.template.metadata.labels.app": "db"},
            'spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable',
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [Deployment, ReplicaSet, DaemonSet], ids=lambda kind: str(kind.__name__))
def test_a_changed_workload(kind: type[Deployment | ReplicaSet | DaemonSet], one: Case) -> None:
    good = edited(DEPLOYMENT, {"spec.replicas": 1}) if kind is not DaemonSet else DEPLOYMENT
    changes = {k: v for k, v in one.change.items() if kind is not DaemonSet or k != "spec.replicas"}
    check_update(kind, good, Case(one.promise, changes, one.errors))


@pytest.mark.parametrize(
    "one",
    [
        case(
            "parts are not more than the whole",
            {"status": {"replicas": 1, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 3}},
            "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        ),
        case(
            "the collision count never runs back",
            {"status": {"collisionCount": 1}},
            "status.collisionCount: Invalid value: 1: cannot be decremented",
            before={"status": {"collisionCount": 2}},
        ),
        case(
            "counts are not negative",
            {"status": {"observedGeneration": -1}},
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
    ids=str,
)
def test_the_status_of_a_deployment(one: Case) -> None:
    check_status(Deployment, DEPLOYMENT, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a plain daemon set is fine"),
        case("pods of a daemon set are chosen too", {"spec.template.metadata.labels.app": "db"}, _NOT_CHOSEN),
        case(
            "surge and unavailability exclude each other",
            {"spec.updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}},
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: "
            "may not be set when maxUnavailable is non-zero",
        ),
        case(
            "one of them is needed",
            {"spec.updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
        case(
            "an unknown strategy is shown whole",
            {"spec.updateStrategy": {"type": "Magic"}},
            'spec.updateStrategy: Unsupported value: {"type":"Magic"}: '
            'supported values: "RollingUpdate", "OnDelete"',
        ),
    ],
    ids=str,
)
def test_a_new_daemon_set(one: Case) -> None:
    check_create(DaemonSet, DEPLOYMENT, one)


_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain stateful set is fine"),
        case(
            "claims are volumes the template may mount",
            {
                "spec.volumeClaimTemplates": [_CLAIM],
                "spec.template.spec.containers[0].volumeMounts": [{"name": "data", "mountPath": "/data"}],
            },
        ),
        case(
            "claims are looked at",
            {
                "spec.volumeClaimTemplates": [
                    {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
                ]
            },
            "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ),
        case(
            "names have no dots",
            {"metadata.name": "a.b"},
            'metadata.name: Invalid value: "a.b": must not contain dots',
        ),
        case(
            "policies are known ones",
            {
                "spec.podManagementPolicy": "Chaos",
                "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "x",
            },
            "spec.podManagementPolicy: Invalid value: \"Chaos\": must be 'OrderedReady' or 'Parallel'",
            'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "x": '
            'supported values: "Retain", "Delete"',
        ),
        case(
            "deleting by hand takes no rolling parameters",
            {"spec.updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            'spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: '
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        case(
            "recreating needs its gate",
            {"spec.updateStrategy": {"type": "Recreate"}},
            'spec.updateStrategy: Invalid value: {"type":"Recreate"}: '
            "must be 'RollingUpdate' or 'OnDelete'",
        ),
        case(
            "with its gate recreating is fine",
            {"spec.updateStrategy": {"type": "Recreate"}},
            gates=("StatefulSetRecreateStrategy",),
        ),
        case(
            "some pod must be allowed to be away",
            {"spec.updateStrategy.rollingUpdate": {"maxUnavailable": 0, "partition": -1}},
            "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
        ),
        case(
            "the first ordinal is not negative",
            {"spec.ordinals": {"start": -1}},
            "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
        ),
        case(
            "the service has a service's name",
            {"spec.serviceName": "A"},
            'spec.serviceName: Invalid value: "A": a lowercase RFC 1123 label must consist of...',
        ),
    ],
    ids=str,
)
def test_a_new_stateful_set(one: Case) -> None:
    check_create(StatefulSet, STATEFUL_SET, one)


@pytest.mark.parametrize(
    "one",
    [
        case(
            "replicas and template may change",
            {"spec.replicas": 3, "spec.template.spec.containers[0].image": "b"},
        ),
        case(
            "what its pods are called by never changes",
            {"spec.serviceName": "db", "spec.podManagementPolicy": "Parallel"},
            'spec.serviceName: Invalid value: "db": field is immutable',
            'spec.podManagementPolicy: Invalid value: "Parallel": field is immutable',
        ),
        case(
            "claims never change",
            {"spec.volumeClaimTemplates": [_CLAIM]},
            "spec.volumeClaimTemplates: Invalid value: [...",
        ),
    ],
    ids=str,
)
def test_a_changed_stateful_set(one: Case) -> None:
    check_update(StatefulSet, STATEFUL_SET, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a plain controller is fine"),
        case("labels stand in for a missing selector", {"spec.selector": DROP}),
        case(
            "the selector must choose the template's pods",
            {"spec.selector": {"app": "x"}, "spec.template.metadata.labels.app": "db"},
            _NOT_CHOSEN,
        ),
        case(
            "a template is required",
            {"spec.template": DROP},
            "spec.template: Required value",
        ),
        case(
            "declared counts are told last",
            {"spec.replicas": -1, "spec.template.spec.containers[0].image": DROP},
            "spec.template.spec.containers[0].image: Required value",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
    ids=str,
)
def test_a_new_replication_controller(one: Case) -> None:
    check_create(ReplicationController, CONTROLLER, one)


REVISION = {"metadata": _META, "revision": 1, "data": {"a": 1}}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain revision is fine"),
        case("data is required", {"data": DROP}, "data: Required value: data is mandatory"),
        case("data is an object", {"data": [1]}, "data: Required value: data must be a valid JSON object"),
        case(
            "revisions count up",
            {"revision": -1},
            "revision: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
    ids=str,
)
def test_a_new_controller_revision(one: Case) -> None:
    check_create(ControllerRevision, REVISION, one)


def test_the_data_of_a_revision_never_changes() -> None:
    change = case("no", {"data": {"a": 2}}, 'data: Invalid value: {"a":2}: field is immutable')
    check_update(ControllerRevision, REVISION, change)


def test_a_name_that_pods_cannot_carry_draws_a_warning() -> None:
    obj = defaulted(Deployment, edited(DEPLOYMENT, {"metadata.name": "a.b"}))
    warnings = VALIDATORS[Deployment].warnings
    assert warnings is not None
    assert warnings(obj, None, context()) == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]
    assert warnings(obj, obj, context()) == []
