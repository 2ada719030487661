"""What pods get when their author leaves it out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeward.api.codec import encode
from nodeward.api.core_v1.pod import Pod, PodTemplate
from nodeward.api.defaults import DEFAULTS
from nodeward.api.defaults.image import pull_policy_for
from nodeward.api.defaults.pod import default_pod
from nodeward.apiserver.resources.pod_preparation import drop_disabled_pod_fields, prepare_pod
from tests.api.recorded import recorded_answer
from tests.validation.pods import POD, a_pod, pod_context
from tests.validation.tables import context, edited, read

_C = "spec.containers[0]"


def _tree(pod: Pod) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(encode(pod))
    return tree


def test_a_pod_gets_what_a_real_server_gives_it() -> None:
    sample = recorded_answer("create pod (defaults shown)")
    pod = read(Pod, sample["request"]["body"])
    default_pod(pod)
    # Admission adds these, not defaulting.
    recorded = {
        k: v
        for k, v in sample["body"]["spec"].items()
        if k not in ("priority", "preemptionPolicy", "tolerations")
    }
    mine = {k: v for k, v in _tree(pod)["spec"].items() if k != "tolerations"}
    assert mine == recorded


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        pytest.param({}, "spec.terminationGracePeriodSeconds", 30, id="half a minute to end"),
        pytest.param(
            {"spec.terminationGracePeriodSeconds": -5},
            "spec.terminationGracePeriodSeconds",
            1,
            id="one second instead of a negative time",
        ),
        pytest.param({}, "spec.enableServiceLinks", True, id="links to services"),
        pytest.param(
            {"spec.serviceAccount": "x"}, "spec.serviceAccountName", "x", id="the account by its old name"
        ),
        pytest.param(
            {"spec.serviceAccountName": "x", "spec.serviceAccount": "y"},
            "spec.serviceAccount",
            "x",
            id="the new name rules",
        ),
        pytest.param(
            {f"{_C}.resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
            f"{_C}.resources.requests",
            {"cpu": "500m", "memory": "1Gi"},
            id="requests from limits",
        ),
        pytest.param(
            {f"{_C}.resources": {"requests": {"cpu": "100u"}}},
            f"{_C}.resources.requests",
            {"cpu": "1m"},
            id="amounts rounded up to thousandths",
        ),
        pytest.param(
            {f"{_C}.ports": [{"containerPort": 1}]},
            f"{_C}.ports",
            [{"containerPort": 1, "protocol": "TCP"}],
            id="TCP ports",
        ),
        pytest.param(
            {"spec.hostNetwork": True, f"{_C}.ports": [{"containerPort": 1}]},
            f"{_C}.ports",
            [{"hostPort": 1, "containerPort": 1, "protocol": "TCP"}],
            id="the host's ports on its network",
        ),
        pytest.param(
            {f"{_C}.livenessProbe": {"httpGet": {"port": 1}}},
            f"{_C}.livenessProbe",
            {
                "httpGet": {"path": "/", "port": 1, "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            id="times and thresholds of probes",
        ),
        pytest.param(
            {f"{_C}.env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            f"{_C}.env",
            [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
            id="the version of a field",
        ),
        pytest.param(
            {"spec.volumes": [{"name": "v"}]},
            "spec.volumes",
            [{"name": "v", "emptyDir": {}}],
            id="an emptyDir for a volume without source",
        ),
        pytest.param(
            {
                "spec.volumes": [
                    {"name": "v", "secret": {"secretName": "s"}},
                    {"name": "w", "hostPath": {"path": "/"}},
                ]
            },
            "spec.volumes",
            [
                {"name": "v", "secret": {"secretName": "s", "defaultMode": 420}},
                {"name": "w", "hostPath": {"path": "/", "type": ""}},
            ],
            id="modes of files and types of paths",
        ),
        pytest.param(
            {
                "spec.volumes": [
                    {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
                ]
            },
            "spec.volumes",
            [
                {
                    "name": "v",
                    "projected": {
                        "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                        "defaultMode": 420,
                    },
                }
            ],
            id="an hour for a token",
        ),
        pytest.param(
            {"status.podIP": "1.1.1.1"}, "status.podIPs", [{"ip": "1.1.1.1"}], id="its address twice"
        ),
    ],
)
def test_a_pod_gets(changes: dict[str, Any], path: str, expected: object) -> None:
    found: Any = _tree(a_pod(changes))
    for step in path.replace("[0]", ".0").split("."):
        found = found[int(step)] if step.isdigit() else found[step]
    assert found == expected


def test_defaulting_twice_is_the_same_as_once() -> None:
    changes = {
        f"{_C}.resources": {"limits": {"cpu": "1"}},
        f"{_C}.lifecycle": {"preStop": {"httpGet": {"port": 1}}},
        "spec.volumes": [{"name": "v"}, {"name": "i", "image": {"reference": "r"}}, {"name": "r", "rbd": {}}],
    }
    pod = a_pod(changes)
    once = encode(pod)
    DEFAULTS[Pod](pod)
    assert encode(pod) == once


def test_a_template_gets_what_does_not_depend_on_a_pod() -> None:
    template = read(
        PodTemplate,
        {"template": {"spec": edited(POD, {f"{_C}.resources": {"limits": {"cpu": "1"}}})["spec"]}},
    )
    DEFAULTS[PodTemplate](template)
    spec = template.template.spec
    assert spec.restart_policy == "Always"
    assert spec.enable_service_links is None
    assert spec.containers[0].resources.requests == {}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("nginx", "Always", id="no tag"),
        pytest.param("nginx:latest", "Always", id="latest"),
        pytest.param("nginx:1.27", "IfNotPresent", id="a tag"),
        pytest.param("registry.example:5000/a/b", "Always", id="a port is not a tag"),
        pytest.param("registry.example:5000/a/b:1", "IfNotPresent", id="a port and a tag"),
        pytest.param(f"nginx@sha256:{'0' * 64}", "IfNotPresent", id="a digest"),
        pytest.param("Not An Image", "IfNotPresent", id="no image name at all"),
    ],
)
def test_images_are_looked_for(image: str, policy: str) -> None:
    assert pull_policy_for(image) == policy


def test_pod_level_resources_are_completed_from_the_containers() -> None:
    pod = a_pod(
        {
            f"{_C}.resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "hugepages-2Mi": "4Mi"}},
            "spec.resources": {"limits": {"memory": "1Gi"}},
        }
    )
    assert prepare_pod(pod, pod_context()) == []
    assert _tree(pod)["spec"]["resources"] == {
        "limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi", "cpu": "2"},
        "requests": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
    }


def test_keys_taken_from_the_pod_become_part_of_the_selector() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "t", "labelSelector": {}, "matchLabelKeys": ["a", "x"], "mismatchLabelKeys": ["b"]}
    pod = a_pod({"metadata.labels": {"a": "1", "b": "2"}, "spec.affinity.podAffinity": {required: [term]}})
    prepare_pod(pod, pod_context())
    merged = _tree(pod)["spec"]["affinity"]["podAffinity"][required][0]["labelSelector"]["matchExpressions"]
    assert merged == [
        {"key": "a", "operator": "In", "values": ["1"]},
        {"key": "b", "operator": "NotIn", "values": ["2"]},
    ]


def test_old_apparmor_annotations_become_fields_with_a_warning() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    pod = a_pod({"metadata.annotations": {key: "localhost/mine"}})
    assert prepare_pod(pod, pod_context()) == [
        f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    ]
    context_ = pod.spec.containers[0].security_context
    assert context_ is not None
    assert context_.app_armor_profile is not None
    assert context_.app_armor_profile.localhost_profile == "mine"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec.hostUsers": False}, id="user namespaces"),
        pytest.param({"spec.resources": {"limits": {"cpu": "1"}}}, id="pod-level resources"),
        pytest.param(
            {f"{_C}.resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
            id="resize policies",
        ),
        pytest.param({f"{_C}.restartPolicy": "Never"}, id="restart rules"),
        pytest.param({"spec.hostnameOverride": "x"}, id="names for hosts"),
        pytest.param({"spec.volumes": [{"name": "v", "image": {"reference": "r"}}]}, id="image volumes"),
        pytest.param(
            {
                "spec.volumes": [
                    {
                        "name": "v",
                        "secret": {"secretName": "s", "items": [{"key": "k", "path": "p", "user": 5}]},
                    }
                ]
            },
            id="owners of files",
        ),
        pytest.param(
            {
                f"{_C}.env": [
                    {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}
                ]
            },
            id="variables from files",
        ),
        pytest.param({"spec.resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, id="claims"),
        pytest.param({"spec.schedulingGroup": {"podGroupName": "g"}}, id="groups"),
        pytest.param({f"{_C}.lifecycle": {"stopSignal": "SIGTERM"}}, id="stop signals"),
        pytest.param({"status.observedGeneration": 5}, id="observed generations"),
        pytest.param(
            {"status.containerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": "x"}]}]},
            id="health of devices",
        ),
    ],
)
def test_fields_of_features_that_are_off_are_dropped_unless_the_pod_has_them(change: dict[str, Any]) -> None:
    fresh, kept, allowed = a_pod(change), a_pod(change), a_pod(change)
    before = encode(fresh)
    drop_disabled_pod_fields(fresh, None, context())
    drop_disabled_pod_fields(kept, a_pod(change), context())
    drop_disabled_pod_fields(allowed, None, context(*_EVERY_GATE))
    assert encode(fresh) != before
    assert encode(kept) == before
    assert encode(allowed) == before


_EVERY_GATE = (
    "AtomicWriteVolumeUserFields",
    "ContainerRestartRules",
    "ContainerStopSignals",
    "DynamicResourceAllocation",
    "EnvFiles",
    "GenericWorkload",
    "HostnameOverride",
    "ImageVolume",
    "InPlacePodVerticalScaling",
    "PodLevelResources",
    "PodObservedGenerationTracking",
    "ResourceHealthStatus",
    "UserNamespacesSupport",
)
