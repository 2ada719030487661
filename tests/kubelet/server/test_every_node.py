"""One pod, the same on every kind of node: simulated, processes of this machine, containers of containerd.

It has a config map volume, a downward API volume, variables from a secret and from its own fields, and hooks; kubectl
reads the files, copies one out, and finds the hook's event.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ConfigMap, Event, Secret
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from tests.kubelet.runtime.containerd import IMAGE, running_containerd
from tests.kubelet.server.serving import CONTAINED, HERE, THEN, Serving, serving

_SERVE = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("plain")) as running:
        _objects(running)
        yield running


@pytest.fixture(scope="module")
def contained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with (
        running_containerd(tmp_path_factory.mktemp("containerd")) as containerd,
        serving(tmp_path_factory.mktemp("contained"), containerd=containerd) as running,
    ):
        _objects(running)
        yield running


@pytest.fixture(params=[THEN, HERE, pytest.param(CONTAINED, marks=pytest.mark.slow)])
def node(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, node: str) -> Serving:
    served: Serving = request.getfixturevalue("contained" if node == CONTAINED else "plain")
    return served


def _objects(served: Serving) -> None:
    settings = ConfigMap(
        metadata=ObjectMeta(name="settings", namespace="default"), data={"colour": "red", "size": "9\n"}
    )
    served.do(served.client.create(settings))
    login = Secret(
        metadata=ObjectMeta(name="login", namespace="default"), data={"user": b"me", "word": b"hidden"}
    )
    served.do(served.client.create(login))


def _tree(name: str, node: str, root: str, **lifecycle: Any) -> dict[str, Any]:
    about = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "memory", "resourceFieldRef": {"containerName": "c", "resource": "limits.memory"}},
    ]
    env = [
        {"name": "USER_NAME", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "GREETING", "value": "hello $(USER_NAME)"},
    ]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 2,
            "volumes": [
                {"name": "settings", "configMap": {"name": "settings"}},
                {"name": "about", "downwardAPI": {"items": about}},
            ],
            "containers": [
                {
                    "name": "c",
                    "image": IMAGE,
                    "command": ["sh", "-c", _SERVE],
                    "env": env,
                    "envFrom": [{"prefix": "LOGIN_", "secretRef": {"name": "login"}}],
                    "resources": {"limits": {"memory": "64Mi"}},
                    "volumeMounts": [
                        {"name": "settings", "mountPath": f"{root}/settings"},
                        {"name": "about", "mountPath": f"{root}/about"},
                    ],
                    "lifecycle": lifecycle,
                }
            ],
        },
    }


def _kubectl(served: Serving, *words: str) -> subprocess.CompletedProcess[str]:
    command = ("kubectl", "--request-timeout=30s", *words)
    return subprocess.run(command, env=served.environment(), capture_output=True, text=True, check=False)


def _run(served: Serving, tree: dict[str, Any]) -> Pod:
    served.do(served.client.create(codec.from_tree(tree, Pod)))
    return served.wait(tree["metadata"]["name"], lambda pod: pod.status.phase == "Running")


def test_a_pod_finds_its_files_and_variables_on_every_node(cluster: Serving, node: str) -> None:
    root = "/etc/pod"
    _run(cluster, _tree(f"reads-{node}", node, root))
    read = _kubectl(
        cluster, "exec", f"reads-{node}", "--", "cat", f"{root}/settings/colour", f"{root}/settings/size"
    )
    assert (read.stdout, read.returncode) == ("red9\n", 0), read.stderr
    about = _kubectl(
        cluster, "exec", f"reads-{node}", "--", "cat", f"{root}/about/labels", f"{root}/about/memory"
    )
    assert about.stdout == f'app="web"{64 << 20}'
    listed = _kubectl(cluster, "exec", f"reads-{node}", "--", "ls", f"{root}/settings")
    assert listed.stdout.split() == ["colour", "size"]
    env = _kubectl(cluster, "exec", f"reads-{node}", "--", "env").stdout.splitlines()
    assert {"USER_NAME=me", f"POD=reads-{node}", "GREETING=hello me", "LOGIN_word=hidden"} <= set(env)
    missing = _kubectl(cluster, "exec", f"reads-{node}", "--", "cat", f"{root}/settings/shape")
    assert missing.returncode == 1
    assert "No such file or directory" in missing.stderr


def test_a_file_of_a_volume_is_copied_out_of_every_node(cluster: Serving, node: str) -> None:
    root = "/etc/copied"
    _run(cluster, _tree(f"copies-{node}", node, root))
    target = cluster.home / f"copied-{node}"
    # kubectl leaves links alone, and the files that users see are links through this directory.
    done = _kubectl(cluster, "cp", f"default/copies-{node}:{root}/about/..data/labels", str(target))
    assert done.returncode == 0, done.stderr
    assert target.read_text() == 'app="web"'


def test_a_hook_that_fails_is_told_on_every_node(cluster: Serving, node: str) -> None:
    root = "/etc/hooked"
    hook = {"exec": {"command": ["cat", f"{root}/settings/colour", f"{root}/settings/shape"]}}
    _run(cluster, _tree(f"hooked-{node}", node, root, preStop=hook))
    cluster.do(cluster.client.delete(Pod, f"hooked-{node}", "default"))
    told = cluster.do(_event(cluster, f"hooked-{node}", "FailedPreStopHook"))
    assert told.message == "PreStopHook failed"
    assert told.source.host == node


def test_a_pod_waits_for_a_config_map_on_every_node(cluster: Serving, node: str) -> None:
    tree = _tree(f"waits-{node}", node, "/etc/waits")
    tree["spec"]["volumes"][0]["configMap"]["name"] = f"late-{node}"
    cluster.do(cluster.client.create(codec.from_tree(tree, Pod)))
    told = cluster.do(_event(cluster, f"waits-{node}", "FailedMount"))
    assert f'configmap "late-{node}" not found' in told.message
    late = ConfigMap(metadata=ObjectMeta(name=f"late-{node}", namespace="default"), data={"colour": "blue"})
    cluster.do(cluster.client.create(late))
    cluster.wait(f"waits-{node}", lambda pod: pod.status.phase == "Running")
    assert (
        _kubectl(cluster, "exec", f"waits-{node}", "--", "cat", "/etc/waits/settings/colour").stdout == "blue"
    )


async def _event(served: Serving, pod: str, reason: str) -> Event:
    while True:
        for each in (await served.client.list(Event, "default")).items:
            if each.involved_object.name == pod and each.reason == reason:
                return each
        await served.clock.sleep(0.05)
