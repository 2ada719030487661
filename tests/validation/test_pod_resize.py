"""The subresource `resize`: cpu and memory of a pod that runs, and nothing else."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.rules.qos import qos_class
from nodeward.validation.pod.resize import validate_pod_resize
from tests.validation.pods import POD, pod_context, stored_pods
from tests.validation.tables import DROP, Case, case, check, edited, read

_C = "spec.containers[0]"
_R = f"{_C}.resources"
_BURSTABLE = {_R: {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}}
_INIT = "spec.initContainers"
_I = {"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}
_BIGGER = {"requests": {"cpu": "2"}}


@pytest.mark.parametrize(
    "one",
    [
        case("a request may change", {f"{_R}.requests.cpu": "500m"}, before=_BURSTABLE),
        case("a limit may be added", {f"{_R}.limits.memory": "2Gi"}, before=_BURSTABLE),
        case(
            "nothing is removed",
            {f"{_R}.requests.memory": DROP, f"{_R}.limits": {}},
            f"{_R}.requests: Forbidden: resource requests cannot be removed",
            f"{_R}.limits: Forbidden: resource limits cannot be removed",
            before=_BURSTABLE,
        ),
        case(
            "other resources stay",
            {f"{_R}.requests.ephemeral-storage": "1Gi"},
            "spec: Forbidden: only cpu and memory resources are mutable",
            before=_BURSTABLE,
        ),
        case(
            "other fields stay",
            {"spec.hostname": "x"},
            "spec: Forbidden: only cpu and memory resources are mutable",
            before=_BURSTABLE,
        ),
        case(
            "the promise made to the pod stays",
            {f"{_R}.requests.cpu": "2", f"{_R}.requests.memory": "1Gi", f"{_R}.limits.memory": "1Gi"},
            'spec: Invalid value: "": Pod QOS Class may not change as a result of resizing',
            before=_BURSTABLE,
        ),
        case(
            "the new amounts are checked like any",
            {f"{_R}.requests.cpu": "3"},
            f'{_R}.requests: Invalid value: "3": must be less than or equal to cpu limit of 2',
            before=_BURSTABLE,
        ),
        case(
            "a node that cannot resize says so by what it does not report",
            {f"{_R}.requests.cpu": "500m"},
            "spec: Forbidden: Pod running on node without support for resize",
            before={**_BURSTABLE, "status.containerStatuses": [{"name": "c", "state": {"running": {}}}]},
        ),
        case(
            "static pods are not resized",
            {f"{_R}.requests.cpu": "500m"},
            ": Forbidden: static pods cannot be resized",
            before={
                **_BURSTABLE,
                "spec.nodeName": "n",
                "metadata.annotations": {"kubernetes.io/config.mirror": "x"},
            },
        ),
        case(
            "Windows pods are not resized",
            {f"{_R}.requests.cpu": "500m"},
            ": Forbidden: windows pods cannot be resized",
            before={**_BURSTABLE, "spec.os": {"name": "windows"}},
        ),
        case(
            "containers stay where they are",
            {f"{_C}.name": "d", _INIT: [_I]},
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
            "spec.initContainers: Forbidden: initContainers may not be added or removed on resize",
            before=_BURSTABLE,
        ),
        case(
            "an init container may be resized",
            {f"{_INIT}[0].resources": _BIGGER},
            before={**_BURSTABLE, _INIT: [_I]},
        ),
        case(
            "before its gate only sidecars could",
            {f"{_INIT}[0].resources": _BIGGER},
            "spec: Forbidden: resources for non-sidecar init containers are immutable",
            before={**_BURSTABLE, _INIT: [_I]},
            off=("InPlacePodVerticalScalingInitContainers",),
        ),
        case(
            "an init container keeps its image",
            {f"{_INIT}[0].image": "j"},
            "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are "
            "mutable",
            before={**_BURSTABLE, _INIT: [{**_I, "restartPolicy": "Always"}]},
        ),
        case(
            "an init container that would have to restart is not resized",
            {f"{_INIT}[0].resources": _BIGGER},
            "spec.initContainers[0]: Forbidden: "
            "non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
            before={
                **_BURSTABLE,
                _INIT: [
                    {**_I, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
                ],
            },
        ),
        case(
            "a pod as a whole may be resized",
            {"spec.resources.requests.cpu": "3"},
            before={"spec.resources": _BIGGER},
        ),
        case(
            "not without the gate",
            {"spec.resources.requests.cpu": "3"},
            ": Forbidden: resize of pods with pod-level resources is forbidden when "
            "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled",
            before={"spec.resources": _BIGGER},
            off=("InPlacePodLevelResourcesVerticalScaling",),
        ),
        case(
            "its resources are not removed",
            {"spec.resources": {"requests": {"memory": "1Gi"}}},
            "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed",
            before={"spec.resources": _BIGGER},
        ),
        case(
            "volumes stay",
            {"spec.volumes": [{"name": "v"}]},
            "spec.volumes: Forbidden: volumes are immutable on resize when "
            "InPlacePodVerticalScalingMemoryBackedVolumes "
            "feature gate is disabled",
            before=_BURSTABLE,
        ),
        case(
            "with the gate a volume in memory may change its size",
            {"spec.volumes[0].emptyDir.sizeLimit": "2Gi"},
            before={
                **_BURSTABLE,
                "spec.volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
            },
            gates=("InPlacePodVerticalScalingMemoryBackedVolumes",),
        ),
        case(
            "a volume on disk may not",
            {"spec.volumes[0].emptyDir.sizeLimit": "2Gi"},
            "spec.volumes[0].emptyDir.sizeLimit: Forbidden: sizeLimit is only mutable for memory-backed emptyDir "
            "volumes",
            before={**_BURSTABLE, "spec.volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]},
            gates=("InPlacePodVerticalScalingMemoryBackedVolumes",),
        ),
    ],
    ids=str,
)
def test_resizes(one: Case) -> None:
    new, old = stored_pods(one)
    check(validate_pod_resize(new, old, pod_context(one)), one.errors)


_FULL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("changes", "qos"),
    [
        pytest.param({}, "BestEffort", id="who asks for nothing is promised nothing"),
        pytest.param({_R: _FULL}, "Guaranteed", id="who limits what it asks for is guaranteed"),
        pytest.param({_R: {"requests": {"cpu": "1"}}}, "Burstable", id="everything between may burst"),
        pytest.param(
            {_R: _FULL, "spec.containers[1]": {"name": "d", "image": "i"}},
            "Burstable",
            id="one container without limits makes the pod burstable",
        ),
        pytest.param(
            {"spec.resources": _FULL}, "Guaranteed", id="the pod as a whole decides where it says something"
        ),
        pytest.param(
            {_R: {"limits": {"example.com/gpu": "1"}}}, "BestEffort", id="other resources do not count"
        ),
    ],
)
def test_quality_of_service(changes: dict[str, object], qos: str) -> None:
    assert qos_class(read(Pod, edited(POD, changes)).spec) == qos
