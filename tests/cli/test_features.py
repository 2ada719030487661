"""`nodeward features`: questions about declared features, from files, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeward.cli.main import main

RESTARTING = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    image: i
    restartPolicyRules:
    - action: RestartAllContainers
      exitCodes: {operator: In, values: [1]}
"""
CLAIM = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: k}
status:
  allocation:
    devices:
      results:
      - {request: r, driver: d, pool: p, device: x, skipNodeOperations: true}
"""
PLAIN = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c}], resources: {requests: {cpu: 1}}}
"""
WEB_SOCKETS = "ExtendWebSocketsToKubelet"
POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
INIT = "InPlacePodVerticalScalingInitContainers"
FEATURE = "RestartAllContainersOnContainerExits"


def node(name: str, *declared: str) -> str:
    features = ", ".join(declared)
    return f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{declaredFeatures: [{features}]}}\n"


class Terminal:
    """Runs commands in a directory and tells what they printed."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._capture = capture

    def file(self, name: str, text: str) -> str:
        (self._home / name).write_text(text)
        return str(self._home / name)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["features", *arguments])
        out, err = self._capture.readouterr()
        return code, out, err

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "-o", "json")[1])


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path, capsys)


def test_discover_lists_what_a_kubelet_would_declare(terminal: Terminal) -> None:
    code, out, err = terminal.run(
        "discover",
        "--kubernetes-version=1.36",
        "--feature-gates=InPlacePodLevelResourcesVerticalScaling=false,UserNamespacesHostNetworkSupport=true",
        "--config=runtime.userNamespacesHostNetwork=true",
        "--config=kubelet.podResize=true",
    )
    assert (code, err) == (0, "")
    assert out.split() == [
        "ExtendWebSocketsToKubelet",
        "InPlacePodVerticalScalingInitContainers",
        FEATURE,
        "UserNamespacesHostNetworkSupport",
    ]
    assert terminal.json("discover", "--kubernetes-version", "1.34") == {"declaredFeatures": []}
    assert terminal.run("discover", "--kubernetes-version", "1.34") == (
        0,
        "",
        "such a node declares nothing\n",
    )


def test_discover_passes_on_what_an_operator_should_hear_about_gates(terminal: Terminal) -> None:
    code, out, err = terminal.run("discover", "--feature-gates", "NodeDeclaredFeatures=true")
    assert (code, out.split()) == (0, [WEB_SOCKETS, POD_LEVEL, INIT, FEATURE])
    assert "setting GA feature gate NodeDeclaredFeatures=true" in err


def test_infer_tells_what_a_pod_and_its_claims_need(terminal: Terminal) -> None:
    pod = terminal.file("pod.yaml", RESTARTING)
    assert terminal.run("infer", pod) == (0, f"{FEATURE}\n", "")
    both = terminal.file("both.yaml", RESTARTING + CLAIM)
    assert terminal.json("infer", both) == {"requiredFeatures": ["DraOptionalNodePreparation", FEATURE]}
    plain = terminal.file("plain.yaml", PLAIN)
    assert terminal.run("infer", plain) == (0, "", "nothing is needed: any node will do\n")


def test_infer_tells_what_a_change_needs(terminal: Terminal) -> None:
    old = terminal.file("old.yaml", PLAIN)
    new = terminal.file("new.yaml", PLAIN.replace("cpu: 1", "cpu: 2"))
    assert terminal.run("infer", new, "--old", old)[1] == "InPlacePodLevelResourcesVerticalScaling\n"
    assert terminal.run("infer", old, "--old", old)[1] == ""


def test_match_tells_which_node_lacks_what_and_fails_if_one_does(terminal: Terminal) -> None:
    pod = terminal.file("pod.yaml", RESTARTING)
    good = terminal.file("good.yaml", node("good", FEATURE, "Zebra"))
    bad = terminal.file("bad.yaml", node("bad", "Zebra") + node("worse"))
    assert terminal.run("match", pod, good) == (0, "good: match\n", "")
    code, out, err = terminal.run("match", pod, good, bad)
    assert (code, err) == (1, "")
    assert out.splitlines() == ["good: match", f"bad: lacks {FEATURE}", f"worse: lacks {FEATURE}"]
    assert terminal.json("match", pod, bad) == {
        "requiredFeatures": [FEATURE],
        "nodes": [
            {"name": "bad", "isMatch": False, "unsatisfied": [FEATURE]},
            {"name": "worse", "isMatch": False, "unsatisfied": [FEATURE]},
        ],
    }


def test_requirements_tell_what_a_node_needs_to_declare_a_feature(terminal: Terminal) -> None:
    assert terminal.json("requirements", "VolumeBindMountOptions") == {
        "name": "VolumeBindMountOptions",
        "featureGates": ["VolumeBindMountOptions"],
        "staticConfig": {"runtime.mountOptions": "true"},
        "maxVersion": None,
        "neededFor": ["scheduling"],
        "directConsumer": "",
    }
    _, out, _ = terminal.run("requirements", "ExtendWebSocketsToKubelet")
    assert out.splitlines() == [
        "ExtendWebSocketsToKubelet",
        "  feature gates: ExtendWebSocketsToKubelet=true",
        "  read by: kube-apiserver, for exec, attach and port-forward",
        "  matters: in every version",
    ]
    assert len(terminal.json("requirements")) == 10


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("discover", "--kubernetes-version", "1.99"), "emulation version 1.99 is not between [1.34, 1.38]"),
        (
            ("discover", "--feature-gates", "RestartAllContainers=true"),
            'unrecognized feature gate: RestartAllContainers (did you mean "RestartAllContainersOnContainerExits"?)',
        ),
        (("discover", "--config", "runtime.mountOptions"), "--config runtime.mountOptions: want KEY=VALUE"),
        (
            ("discover", "--config", "runtime.mountOption=true"),
            "--config runtime.mountOption: no feature asks for it (did you mean runtime.mountOptions?)",
        ),
        (
            ("requirements", "ExtendWebsocketsToKubelets"),
            "feature 'ExtendWebsocketsToKubelets' not registered (did you mean \"ExtendWebSocketsToKubelet\"?)",
        ),
        (("infer", "no-such.yaml"), "no-such.yaml: cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(terminal: Terminal, arguments: tuple[str, ...], why: str) -> None:
    assert terminal.run(*arguments) == (2, "", f"nodeward: {why}\n")


def test_files_with_the_wrong_things_in_them_are_refused(terminal: Terminal) -> None:
    pod, two = terminal.file("pod.yaml", PLAIN), terminal.file("two.yaml", PLAIN + "---\n" + PLAIN)
    nobody = terminal.file("nobody.yaml", CLAIM)
    machine = terminal.file("node.yaml", node("n"))
    assert terminal.run("infer", two)[2] == f"nodeward: {two}: 2 Pods in it, want one\n"
    assert terminal.run("infer", nobody)[2] == f"nodeward: {nobody}: no Pod in it, want one\n"
    assert terminal.run("infer", pod, "--kubernetes-version", "new")[2].endswith(
        '"new" is not a version, such as 1.36 or v1.36.2\n'
    )
    wrong = f"nodeward: {machine}:3: kind: v1 Node, want Pod or ResourceClaim\n"
    assert terminal.run("match", machine, pod) == (2, "", wrong)
