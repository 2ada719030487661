"""Pods and nodes as users of kubectl meet them: `nodeward up` with a node of real processes and two simulated ones."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import REPOSITORY, Cluster, command, running_cluster
from tests.e2e.kubectl import Kubectl, find
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

GATES = "NodeReadinessGates=true,TaintTolerationComparisonOperators=true"
LONG = f"--timeout={PATIENCE_SECONDS:.0f}s"
MESSAGE = '{.status.conditions[?(@.type=="PodScheduled")].message}{"\\n"}'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("cluster") / "home"
    with running_cluster(home, "--nodes", "3", "--runtime", "process", "--feature-gates", GATES) as running:
        yield running


@pytest.fixture
def kubectl(kubectl: Kubectl) -> Iterator[Kubectl]:
    """Nothing runs any more at the end, whatever became of the test: processes would outlive the cluster."""
    yield kubectl
    kubectl("delete", "deployments,pods", "--all", LONG)


def on(node: str, **spec: Any) -> dict[str, Any]:
    selector = {"kubernetes.io/hostname": node}
    return {"nodeSelector": selector, "terminationGracePeriodSeconds": 1, **spec}


def run(kubectl: Kubectl, name: str, node: str, *words: str, **spec: Any) -> None:
    """`kubectl run`, on a chosen node."""
    overrides = json.dumps({"spec": on(node, **spec)})
    rest = ("--command", "--", *words) if words else ()
    said = kubectl("run", name, "--image=image", f"--overrides={overrides}", *rest)
    assert said == f"pod/{name} created\n"


def apply(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def a_pod(name: str, node: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "image", **container}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": on(node, containers=containers, **spec),
    }


def wait_ready(kubectl: Kubectl, *names: str) -> None:
    kubectl("wait", "--for=condition=Ready", *(f"pod/{name}" for name in names), LONG)


def wait_for(kubectl: Kubectl, what: str, path: str, value: str) -> None:
    kubectl("wait", what, f"--for=jsonpath={{{path}}}={value}", LONG)


def wait_told(kubectl: Kubectl, name: str, words: str) -> str:
    """Until the scheduler says something about a pod that waits."""
    with kubectl.running("get", "pod", name, "--watch", "-o", f"jsonpath={MESSAGE}") as lines:
        for line in lines:
            if words in line:
                return line
    raise AssertionError(f"nobody said {words!r} about {name}")


@pytest.mark.parametrize("node", ["process-0", "sim-0"])
def test_a_running_pod_is_resized_and_described(kubectl: Kubectl, node: str) -> None:
    size = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m"}}
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    container = {"command": ["sleep", "1000"], "resources": size, "resizePolicy": policy}
    apply(kubectl, a_pod("web", node, container))
    wait_ready(kubectl, "web")

    def resize(**amounts: dict[str, str]) -> str:
        body = {"spec": {"containers": [{"name": "c", "resources": amounts}]}}
        return kubectl("patch", "pod", "web", "--subresource=resize", "-p", json.dumps(body))

    status = ".status.containerStatuses[0]"
    assert resize(requests={"cpu": "150m"}, limits={"cpu": "300m"}) == "pod/web patched\n"
    wait_for(kubectl, "pod/web", f"{status}.resources.limits.cpu", "300m")
    assert kubectl("get", "pod", "web", "-o", f"jsonpath={{{status}.restartCount}}") == "0"
    resize(requests={"memory": "96Mi"})
    wait_for(kubectl, "pod/web", f"{status}.restartCount", "1")
    wait_for(kubectl, "pod/web", f"{status}.resources.requests.memory", "96Mi")
    beyond = kubectl.run("patch", "pod", "web", "--subresource=resize", "-p", _much())
    assert beyond.code != 0
    assert "node didn't have enough allocatable resources: cpu, requested: 4000000" in beyond.err
    told = kubectl("describe", "pod", "web")
    for reason in ("ResizeStarted", "ResizeCompleted"):
        assert re.search(rf"^  Normal +{reason} .*Pod resize .*\"generation\":", told, re.MULTILINE)
    assert "Container c resize requires restart" in told
    assert "PodResize" not in told.partition("Events:")[0]


def _much() -> str:
    size = {"requests": {"cpu": "4000"}, "limits": {"cpu": "4000"}}
    return json.dumps({"spec": {"containers": [{"name": "c", "resources": size}]}})


def test_a_real_process_is_run_seen_entered_and_ended(kubectl: Kubectl, tmp_path: Path) -> None:
    run(kubectl, "web", "process-0", "sh", "-c", "echo hello; while sleep 0.1; do echo tick; done")
    wait_ready(kubectl, "web")
    header, row = kubectl.rows("get", "pod", "web", "-o", "wide")
    shown = dict(zip(header, row, strict=True))
    assert (shown["READY"], shown["STATUS"], shown["RESTARTS"]) == ("1/1", "Running", "0")
    assert (shown["IP"], shown["NODE"]) == ("127.0.0.1", "process-0")

    told = kubectl("describe", "pod", "web")
    assert re.search(r"^Node: +process-0/127\.0\.0\.1$", told, re.MULTILINE)
    assert re.search(r"Container ID: +process://[0-9a-f]{64}$", told, re.MULTILINE)
    assert re.search(r"^  Ready +True", told, re.MULTILINE)
    for reason in ("Scheduled", "Pulled", "Created", "Started"):
        assert re.search(rf"^  Normal +{reason} ", told, re.MULTILINE)

    assert kubectl("logs", "web").startswith("hello\n")
    with kubectl.running("logs", "-f", "web", "--tail=1") as lines:
        assert [lines.readline() for _ in range(3)] == ["tick\n"] * 3

    ended = kubectl.run("exec", "web", "--", "sh", "-c", "echo inside; exit 3")
    assert (ended.code, ended.out) == (3, "inside\n")
    sent, there, back = tmp_path / "sent", tmp_path / "there", tmp_path / "back"
    sent.write_text("carried\n")
    kubectl("cp", str(sent), f"web:{there}")
    assert there.read_text() == "carried\n"
    kubectl("cp", f"web:{there}", str(back))
    assert back.read_text() == "carried\n"

    assert kubectl("delete", "pod", "web", LONG).startswith('pod "web" deleted')
    assert "not found" in kubectl.refused("get", "pod", "web")


def test_a_simulated_pod_looks_like_any_other(kubectl: Kubectl) -> None:
    run(kubectl, "web", "sim-0")
    wait_ready(kubectl, "web")
    header, row = kubectl.rows("get", "pod", "web", "-o", "wide")
    shown = dict(zip(header, row, strict=True))
    assert (shown["READY"], shown["STATUS"], shown["NODE"]) == ("1/1", "Running", "sim-0")
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    assert kubectl("exec", "web", "--", "ls", account).split() == ["ca.crt", "namespace", "token"]
    assert kubectl("exec", "web", "--", "cat", f"{account}/namespace")


def test_what_cannot_start_shows_the_reason_users_know(kubectl: Kubectl) -> None:
    missing = {"valueFrom": {"configMapKeyRef": {"name": "missing", "key": "a"}}}
    apply(
        kubectl,
        a_pod("no-image", "process-0", {"image": "registry.invalid/app"}),
        a_pod("crashes", "process-0", {"command": ["sh", "-c", "echo dying; exit 7"]}),
        a_pod("no-config", "process-0", {"command": ["sleep", "1000"], "env": [{"name": "A", **missing}]}),
        a_pod("no-program", "process-0", {"command": ["no-such-program"]}),
        a_pod("no-program-once", "process-0", {"command": ["no-such-program"]}, restartPolicy="Never"),
    )
    reason = ".status.containerStatuses[0].state.waiting.reason"
    wait_for(kubectl, "pod/no-image", reason, "ErrImagePull")
    wait_for(kubectl, "pod/no-image", reason, "ImagePullBackOff")
    wait_for(kubectl, "pod/crashes", reason, "CrashLoopBackOff")
    wait_for(kubectl, "pod/no-config", reason, "CreateContainerConfigError")
    wait_for(kubectl, "pod/no-program", reason, "CrashLoopBackOff")
    wait_for(kubectl, "pod/no-program-once", ".status.phase", "Failed")
    shown = {row[0]: row[2] for row in kubectl.rows("get", "pods")}
    assert (shown["no-config"], shown["no-program-once"]) == ("CreateContainerConfigError", "StartError")
    unfit = kubectl.json("get", "pod", "no-program")["status"]["containerStatuses"][0]
    assert unfit["lastState"]["terminated"]["reason"] == "StartError"
    crashed = kubectl.json("get", "pod", "crashes")["status"]["containerStatuses"][0]
    assert crashed["restartCount"] >= 1
    assert crashed["lastState"]["terminated"]["exitCode"] == 7
    assert kubectl("logs", "crashes", "--previous") == "dying\n"
    assert "trying and failing to pull image" in kubectl.refused("logs", "no-image")
    told = kubectl("describe", "pod", "no-image", "crashes", "no-config", "no-program")
    for message in (
        'Failed to pull image "registry.invalid/app": ',
        "Back-off restarting failed container c in pod crashes_",
        'Error: configmap "missing" not found',
        'exec: "no-such-program": executable file not found in $PATH',
    ):
        assert message in told
    # What was missing comes: the container starts by itself.
    kubectl("create", "configmap", "missing", "--from-literal=a=b")
    wait_ready(kubectl, "no-config")


def test_numbers_in_taints_are_compared_when_placing_and_when_evicting(kubectl: Kubectl) -> None:
    toleration = {"key": "example.com/sla", "operator": "Gt", "value": "900"}
    kubectl("taint", "node", "sim-1", "example.com/sla=850:NoSchedule")
    try:
        apply(kubectl, a_pod("picky", "sim-1", {}, tolerations=[toleration]))
        wait_told(kubectl, "picky", "untolerated taint")
        kubectl("taint", "node", "sim-1", "example.com/sla=950:NoSchedule", "--overwrite")
        wait_ready(kubectl, "picky")
        kubectl("taint", "node", "sim-1", "example.com/sla=950:NoExecute")
        kubectl("taint", "node", "sim-1", "example.com/sla=899:NoExecute", "--overwrite")
        kubectl("wait", "--for=delete", "pod/picky", LONG)
    finally:
        kubectl("taint", "node", "sim-1", "example.com/sla-")
    wrong = a_pod("wrong", "sim-1", {}, tolerations=[toleration | {"value": "many"}])
    refused = kubectl.run("apply", "-f", "-", stdin=json.dumps(wrong))
    assert refused.code == 1
    assert "spec.tolerations[0].value" in refused.err


@contextmanager
def draining(kubectl: Kubectl, node: str) -> Iterator[subprocess.Popen[str]]:
    """A drain that goes on while something else is done."""
    process = subprocess.Popen(
        [find(), "drain", node, "--ignore-daemonsets", "--force", LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=kubectl.cluster.environment(),
    )
    giving_up = threading.Timer(PATIENCE_SECONDS, process.kill)
    giving_up.start()
    try:
        yield process
    finally:
        giving_up.cancel()
        process.kill()
        process.communicate()


def test_a_budget_blocks_a_drain_until_it_does_not(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=image", "--replicas=2")
    # The node with real processes has its own pods to look after.
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"nodeward.dev/runtime": "sim"}}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(selector))
    kubectl("rollout", "status", "deployment/web", LONG)
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2")
    wait_for(kubectl, "pdb/web", ".status.currentHealthy", "2")
    node = kubectl.json("get", "pods", "-l", "app=web")["items"][0]["spec"]["nodeName"]
    try:
        with draining(kubectl, node) as drain:
            assert drain.stdout is not None
            said = ""
            while "Cannot evict pod as it would violate the pod's disruption budget." not in said:
                said = drain.stdout.readline()
                assert said, "it ended"
            assert len(kubectl.json("get", "pods", "-l", "app=web")["items"]) == 2
            kubectl("scale", "deployment/web", "--replicas=4")
            assert f"node/{node} drained" in drain.communicate(timeout=PATIENCE_SECONDS)[0]
            assert drain.returncode == 0
        assert [row[1] for row in kubectl.rows("get", "node", node)][1:] == ["Ready,SchedulingDisabled"]
        kubectl("rollout", "status", "deployment/web", LONG)
        pods = kubectl.json("get", "pods", "-l", "app=web")["items"]
        assert node not in {pod["spec"]["nodeName"] for pod in pods}
    finally:
        kubectl("uncordon", node)


def test_a_node_with_two_gates_takes_pods_when_both_are_reported(kubectl: Kubectl) -> None:
    """The pool is added to the running fleet, as anybody may who edits its description."""
    place = ("configmap", "nodeward-fleet", "--namespace=kube-system")
    before = kubectl.json("get", *place)["data"]["fleet.yaml"]
    pool = """\
- name: gated
  nodes: 1
  featureGates: {NodeReadinessGates: true}
  kubelet:
    nodeReadinessGates:
    - {conditionType: example.com/NetworkReady, timeoutSeconds: 3600, failureAction: BypassWithWarning}
    - {conditionType: example.com/StorageReady, timeoutSeconds: 3600, failureAction: BypassWithWarning}
"""
    kubectl("patch", *place, "--type=merge", "-p", json.dumps({"data": {"fleet.yaml": before + pool}}))
    try:
        kubectl("wait", "--for=create", "node/gated-0", LONG)
        kubectl("wait", "--for=condition=Ready", "node/gated-0", LONG)
        run(kubectl, "web", "gated-0")
        wait_told(
            kubectl, "web", "unsatisfied readiness gates: example.com/NetworkReady, example.com/StorageReady"
        )
        report(kubectl, "example.com/NetworkReady")
        # The scheduler does not try in vain; who asks is told what is still missing.
        assert "had unsatisfied readiness gates: example.com/StorageReady" in why(kubectl, "web")
        assert "nodeName" not in kubectl.json("get", "pod", "web")["spec"]
        report(kubectl, "example.com/StorageReady")
        wait_ready(kubectl, "web")
        assert kubectl.json("get", "pod", "web")["spec"]["nodeName"] == "gated-0"
        told = kubectl("describe", "node", "gated-0")
        for gate in ("example.com/NetworkReady", "example.com/StorageReady"):
            assert re.search(rf"^  {gate} +True ", told, re.MULTILINE)
    finally:
        # Before its node goes: nobody would be there to end it.
        kubectl("delete", "pod", "web", "--ignore-not-found", LONG)
        kubectl("patch", *place, "--type=merge", "-p", json.dumps({"data": {"fleet.yaml": before}}))
        kubectl("wait", "--for=delete", "node/gated-0", LONG)


def why(kubectl: Kubectl, name: str) -> str:
    """What `nodeward why` says of a pod."""
    asked = command("why", "pod", f"{kubectl.namespace}/{name}")
    environment = kubectl.cluster.environment()
    ended = subprocess.run(
        asked, capture_output=True, cwd=REPOSITORY, env=environment, text=True, timeout=PATIENCE_SECONDS
    )
    return ended.stdout + ended.stderr


def report(kubectl: Kubectl, condition: str) -> None:
    """As a reporter does, with kubectl."""
    body = {"status": {"conditions": [{"type": condition, "status": "True", "reason": "Up"}]}}
    kubectl("patch", "node", "gated-0", "--subresource=status", "-p", json.dumps(body))
