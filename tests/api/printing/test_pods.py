"""What `kubectl get pods` says about a pod."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.printing import printer_for
from tests.api.printing.objects import CREATED, ago, decode, row


def _status(name: str = "c", *, restarts: int = 0, ready: bool = False, **more: Any) -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, "ready": ready, "image": "i", "imageID": "i", **more}


def _running(name: str = "c", *, ready: bool = True, **more: Any) -> dict[str, Any]:
    return _status(name, ready=ready, state={"running": {"startedAt": CREATED}}, **more)


def _waiting(reason: str, name: str = "c", **more: Any) -> dict[str, Any]:
    return _status(name, state={"waiting": {"reason": reason}}, **more)


def _ended(code: int, name: str = "c", *, reason: str = "", signal: int = 0, **more: Any) -> dict[str, Any]:
    return _status(name, state={"terminated": {"exitCode": code, "reason": reason, "signal": signal}}, **more)


def _ended_before(minutes: int) -> dict[str, Any]:
    return {"lastState": {"terminated": {"exitCode": 1, "finishedAt": ago(minutes)}}}


def _condition(type_: str, status: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason}


def _pod(
    *,
    containers: tuple[str, ...] = ("c",),
    init: tuple[str, ...] = (),
    sidecars: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    spec = {
        "containers": [{"name": name} for name in containers],
        "initContainers": [
            *({"name": name, "restartPolicy": "Always"} for name in sidecars),
            *({"name": name} for name in init),
        ],
    }
    return {"metadata": metadata or {}, "spec": spec, "status": {"phase": "Pending", **status}}


_GONE = {"deletionTimestamp": CREATED}

_CASES = {
    "a pod nobody has touched is pending": (_pod(), "0/1", "Pending", "0"),
    "the reason of the pod outranks its phase": (
        _pod(phase="Failed", reason="Evicted"),
        "0/1",
        "Evicted",
        "0",
    ),
    "a gated pod says so": (
        _pod(conditions=[_condition("PodScheduled", "False", "SchedulingGated")]),
        "0/1",
        "SchedulingGated",
        "0",
    ),
    "a running pod counts its ready containers": (
        _pod(containers=("a", "b"), phase="Running", containerStatuses=[_running("a"), _running("b")]),
        "2/2",
        "Running",
        "0",
    ),
    "a container that is not ready does not count": (
        _pod(phase="Running", containerStatuses=[_running(ready=False)]),
        "0/1",
        "Running",
        "0",
    ),
    "a waiting container gives its reason": (
        _pod(phase="Running", containerStatuses=[_waiting("CrashLoopBackOff", restarts=3)]),
        "0/1",
        "CrashLoopBackOff",
        "3",
    ),
    "the last restart is told": (
        _pod(phase="Running", containerStatuses=[_running(restarts=3, **_ended_before(5))]),
        "1/1",
        "Running",
        "3 (5m ago)",
    ),
    "the latest of several restarts counts": (
        _pod(
            containers=("a", "b"),
            phase="Running",
            containerStatuses=[
                _running("a", restarts=1, **_ended_before(2)),
                _running("b", restarts=2, **_ended_before(7)),
            ],
        ),
        "2/2",
        "Running",
        "3 (2m ago)",
    ),
    "the first of several waiting containers is named": (
        _pod(
            containers=("a", "b"),
            containerStatuses=[_waiting("ErrImagePull", "a"), _waiting("ContainerCreating", "b")],
        ),
        "0/2",
        "ErrImagePull",
        "0",
    ),
    "an ended container without a reason shows its exit code": (
        _pod(phase="Failed", containerStatuses=[_ended(3)]),
        "0/1",
        "ExitCode:3",
        "0",
    ),
    "an ended container without a reason shows its signal": (
        _pod(phase="Failed", containerStatuses=[_ended(137, signal=9)]),
        "0/1",
        "Signal:9",
        "0",
    ),
    "one of two containers completed and the pod is ready: running": (
        _pod(
            containers=("a", "b"),
            phase="Running",
            conditions=[_condition("Ready")],
            containerStatuses=[_ended(0, "a", reason="Completed"), _running("b")],
        ),
        "1/2",
        "Running",
        "0",
    ),
    "one of two containers completed and the pod is not ready": (
        _pod(
            containers=("a", "b"),
            phase="Running",
            containerStatuses=[_ended(0, "a", reason="Completed"), _running("b")],
        ),
        "1/2",
        "NotReady",
        "0",
    ),
    "a failure is not hidden by a completed neighbour": (
        _pod(
            containers=("a", "b"),
            phase="Failed",
            containerStatuses=[_ended(0, "a", reason="Completed"), _ended(1, "b", reason="Error")],
        ),
        "0/2",
        "Error",
        "0",
    ),
    "initialisation counts the finished steps": (
        _pod(
            init=("i", "j"),
            initContainerStatuses=[_ended(0, "i"), _waiting("PodInitializing", "j")],
            containerStatuses=[_waiting("PodInitializing")],
        ),
        "0/1",
        "Init:1/2",
        "0",
    ),
    "a failed init container gives its reason": (
        _pod(init=("i",), initContainerStatuses=[_ended(1, "i", reason="Error", restarts=2)]),
        "0/1",
        "Init:Error",
        "2",
    ),
    "a failed init container without a reason shows its exit code": (
        _pod(init=("i",), initContainerStatuses=[_ended(1, "i")]),
        "0/1",
        "Init:ExitCode:1",
        "0",
    ),
    "a killed init container without a reason shows its signal": (
        _pod(init=("i",), initContainerStatuses=[_ended(137, "i", signal=9)]),
        "0/1",
        "Init:Signal:9",
        "0",
    ),
    "a waiting init container gives its reason": (
        _pod(init=("i",), initContainerStatuses=[_waiting("ImagePullBackOff", "i")]),
        "0/1",
        "Init:ImagePullBackOff",
        "0",
    ),
    "restarts of finished init containers are forgotten": (
        _pod(
            init=("i",),
            phase="Running",
            initContainerStatuses=[_ended(0, "i", restarts=4, **_ended_before(5))],
            containerStatuses=[_running()],
        ),
        "1/1",
        "Running",
        "0",
    ),
    "a started sidecar counts as a container": (
        _pod(
            sidecars=("s",),
            phase="Running",
            initContainerStatuses=[_running("s", started=True, restarts=1, **_ended_before(4))],
            containerStatuses=[_running(restarts=1, **_ended_before(6))],
        ),
        "2/2",
        "Running",
        "2 (4m ago)",
    ),
    "a sidecar that has not started holds the pod in initialisation": (
        _pod(sidecars=("s",), initContainerStatuses=[_running("s", ready=False, started=False)]),
        "0/2",
        "Init:0/1",
        "0",
    ),
    "an initialised pod is judged by its containers even if a sidecar restarts": (
        _pod(
            sidecars=("s",),
            phase="Running",
            conditions=[_condition("Initialized")],
            initContainerStatuses=[_waiting("CrashLoopBackOff", "s", started=False)],
            containerStatuses=[_waiting("ImagePullBackOff")],
        ),
        "0/2",
        "ImagePullBackOff",
        "0",
    ),
    "a pod being deleted is terminating": (
        _pod(metadata=_GONE, phase="Running", containerStatuses=[_running()]),
        "1/1",
        "Terminating",
        "0",
    ),
    "a finished pod being deleted still shows how it finished": (
        _pod(metadata=_GONE, phase="Succeeded", containerStatuses=[_ended(0, reason="Completed")]),
        "0/1",
        "Completed",
        "0",
    ),
    "a pod being deleted on a lost node is unknown": (
        _pod(metadata=_GONE, phase="Running", reason="NodeLost", containerStatuses=[_running()]),
        "1/1",
        "Unknown",
        "0",
    ),
}


@pytest.mark.parametrize(("pod", "ready", "status", "restarts"), _CASES.values(), ids=_CASES)
def test_ready_status_and_restarts(pod: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    cells = row("v1", "Pod", **pod)
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == (ready, status, restarts)


def test_wide_columns_name_address_node_and_gates() -> None:
    pod = _pod(
        podIPs=[{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
        nominatedNodeName="n2",
        conditions=[_condition("a"), _condition("b", "False")],
    )
    pod["spec"] |= {"nodeName": "n1", "readinessGates": [{"conditionType": t} for t in ("a", "b", "c")]}
    cells = row("v1", "Pod", **pod)
    assert [cells[c] for c in ("Age", "IP", "Node", "Nominated Node", "Readiness Gates")] == [
        "10m",
        "10.0.0.7",
        "n1",
        "n2",
        "1/3",
    ]


def test_finished_pods_mark_their_row_as_completed() -> None:
    printer = printer_for("", "Pod")
    reasons = {
        phase: [c.reason for c in printer.conditions(decode(Pod, {"status": {"phase": phase}}))]
        for phase in ("Running", "Succeeded", "Failed")
    }
    assert reasons == {"Running": [], "Succeeded": ["Succeeded"], "Failed": ["Failed"]}


def test_a_pod_template_shows_what_its_pods_would_be() -> None:
    template = {
        "metadata": {"labels": {"b": "2", "a": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]},
    }
    cells = row("v1", "PodTemplate", template=template)
    assert cells == {"Name": "x", "Containers": "c,d", "Images": "i,j", "Pod Labels": "a=1,b=2"}
