"""What a container is started with: variables, command, mounts; and how it is told that something is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ConfigMap, Secret
from nodeward.api.core_v1.service import Service
from nodeward.api.meta import ObjectMeta
from nodeward.base.errors import WorldError
from nodeward.kubelet.config_error import NotConfigured
from nodeward.kubelet.env_files import read_variable
from nodeward.kubelet.runtime.interface import ContainerRequest
from nodeward.kubelet.service_variables import service_variables
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.machine import Machine, machine


def named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default")


def content(path: str) -> str:
    return Path(path).read_text()


async def requested(
    node: Machine, container: dict[str, Any], name: str = "p", **spec: Any
) -> ContainerRequest:
    pod = await node.pod({"containers": [{"name": "c", "image": "image", **container}], **spec}, name=name)
    await node.services.volumes.mount(pod)
    return await node.request(pod)


async def refused(node: Machine, container: dict[str, Any], name: str) -> str:
    with pytest.raises(NotConfigured) as caught:
        await requested(node, container, name)
    assert caught.value.reason == "CreateContainerConfigError"
    return str(caught.value)


def test_variables_come_from_everywhere_in_the_right_order(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(ConfigMap(metadata=named("cm"), data={"A": "cm", "not-a-name": "x"}))
            await node.client.create(Secret(metadata=named("s"), data={"A": b"secret", "B": b"b"}))
            request = await requested(
                node,
                {
                    "command": ["run", "$(GREETING)", "$(UNKNOWN)"],
                    "args": ["$$(GREETING)"],
                    "envFrom": [
                        {"configMapRef": {"name": "cm"}},
                        {"prefix": "S_", "secretRef": {"name": "s"}},
                        {"configMapRef": {"name": "none", "optional": True}},
                    ],
                    "env": [
                        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                        {"name": "GREETING", "value": "hello $(NODE), $(A), $(LATER)"},
                        {"name": "LATER", "value": "x"},
                        {"name": "EMPTY"},
                        {
                            "name": "KEY",
                            "valueFrom": {"secretKeyRef": {"name": "s", "key": "B"}},
                        },
                        {
                            "name": "MAYBE",
                            "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "z", "optional": True}},
                        },
                        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                        {"name": "API", "value": "$(KUBERNETES_SERVICE_HOST)"},
                    ],
                },
            )
            env = dict(request.env)
            assert env["A"] == "cm"
            assert env["S_A"] == "secret"
            assert env["not-a-name"] == "x"
            assert env["GREETING"] == "hello n1, cm, $(LATER)"
            assert env["EMPTY"] == ""
            assert env["KEY"] == "b"
            assert "MAYBE" not in env
            assert env["CPU"] == "4"
            assert env["API"] == env["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
            assert request.command == ("run", env["GREETING"], "$(UNKNOWN)")
            assert request.args == ("$(GREETING)",)

    run_virtual(main)


def test_what_is_missing_is_told_as_users_know_it(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(ConfigMap(metadata=named("cm"), data={"A": "1"}))
            await node.client.create(Secret(metadata=named("s"), data={"A": b"1"}))

            def env(source: dict[str, Any]) -> dict[str, Any]:
                return {"env": [{"name": "V", "valueFrom": source}]}

            none = {"name": "none", "key": "k"}
            assert await refused(node, env({"configMapKeyRef": none}), "a") == 'configmap "none" not found'
            assert await refused(node, env({"secretKeyRef": none}), "b") == 'secret "none" not found'
            text = await refused(node, env({"configMapKeyRef": {"name": "cm", "key": "k"}}), "c")
            assert text == "couldn't find key k in ConfigMap default/cm"
            text = await refused(node, env({"secretKeyRef": {"name": "s", "key": "k"}}), "d")
            assert text == "couldn't find key k in Secret default/s"
            text = await refused(node, {"envFrom": [{"secretRef": {"name": "none"}}]}, "e")
            assert text == 'secret "none" not found'

    run_virtual(main)


def test_links_to_services_are_given_unless_they_are_not_wanted(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            spec = {"selector": {"a": "b"}, "ports": [{"port": 6379, "name": "redis"}]}
            tree = {"metadata": {"name": "red-is", "namespace": "default"}, "spec": spec}
            made = await node.client.create(codec.from_tree(tree, Service))
            linked = dict((await requested(node, {}, "a")).env)
            assert linked["RED_IS_SERVICE_HOST"] == made.spec.cluster_ip
            assert linked["RED_IS_SERVICE_PORT_REDIS"] == "6379"
            alone = dict((await requested(node, {}, "b", enableServiceLinks=False)).env)
            assert "RED_IS_SERVICE_HOST" not in alone
            assert "KUBERNETES_SERVICE_HOST" in alone

    run_virtual(main)


def test_the_variables_of_a_service_are_dockers_too() -> None:
    spec = {"clusterIP": "fd00::1", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}]}
    service = codec.from_tree({"metadata": {"name": "web", "namespace": "x"}, "spec": spec}, Service)
    assert service_variables([service], "x", with_links=True) == {
        "WEB_SERVICE_HOST": "fd00::1",
        "WEB_SERVICE_PORT": "80",
        "WEB_SERVICE_PORT_DNS": "53",
        "WEB_PORT": "tcp://[fd00::1]:80",
        "WEB_PORT_80_TCP": "tcp://[fd00::1]:80",
        "WEB_PORT_80_TCP_PROTO": "tcp",
        "WEB_PORT_80_TCP_PORT": "80",
        "WEB_PORT_80_TCP_ADDR": "fd00::1",
        "WEB_PORT_53_UDP": "udp://[fd00::1]:53",
        "WEB_PORT_53_UDP_PROTO": "udp",
        "WEB_PORT_53_UDP_PORT": "53",
        "WEB_PORT_53_UDP_ADDR": "fd00::1",
    }
    headless = codec.from_tree(
        {"metadata": {"name": "h", "namespace": "x"}, "spec": {**spec, "clusterIP": "None"}}, Service
    )
    assert service_variables([headless], "x", with_links=True) == {}


def test_mounts_lead_into_the_volumes_and_logs_to_their_place(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            await node.client.create(ConfigMap(metadata=named("cm"), data={"a": "1"}))
            mounts = [
                {"name": "e", "mountPath": "/data", "subPathExpr": "$(WHO)/x"},
                {"name": "cm", "mountPath": "/etc/a", "subPath": "a"},
                {"name": "e", "mountPath": "/ro", "readOnly": True},
            ]
            request = await requested(
                node,
                {"volumeMounts": mounts, "env": [{"name": "WHO", "value": "me"}]},
                volumes=[{"name": "e", "emptyDir": {}}, {"name": "cm", "configMap": {"name": "cm"}}],
            )
            base = tmp_path / "pods" / request.pod.metadata.uid
            data, config, read_only = request.mounts
            assert data.source == str(base / "volumes" / "kubernetes.io~empty-dir" / "e" / "me" / "x")
            assert not data.is_read_only
            assert content(config.source) == "1"
            assert config.is_read_only
            assert read_only.is_read_only
            logs = tmp_path / "logs" / "pods" / f"default_p_{request.pod.metadata.uid}"
            assert request.log_path == str(logs / "c" / "0.log")
            assert request.termination_log == str(base / "containers" / "c" / "0")
            assert os.stat(request.termination_log).st_mode & 0o777 == 0o666
            assert os.listdir(logs) == ["c"]

    run_virtual(main)


def test_a_sub_path_that_leads_out_says_nothing_about_the_node(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            mounts = [{"name": "e", "mountPath": "/data", "subPath": "link/x"}]
            pod = await node.pod(
                {
                    "containers": [{"name": "c", "image": "image", "volumeMounts": mounts}],
                    "volumes": [{"name": "e", "emptyDir": {}}],
                }
            )
            await node.services.volumes.mount(pod)
            (node.volume(pod, "empty-dir", "e") / "link").symlink_to("/etc")
            with pytest.raises(NotConfigured) as caught:
                await node.request(pod)
            assert str(caught.value) == 'failed to prepare subPath for volumeMount "e" of container "c"'

    run_virtual(main)


def test_root_is_refused_where_it_must_not_be(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            text = await refused(node, {"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}, "p")
            assert text.startswith("container's runAsUser breaks non-root policy (pod: ")

    run_virtual(main)


def test_a_kubelet_that_was_restarted_knows_where_volumes_are(tmp_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        async with machine(clock, tmp_path) as node:
            spec = {
                "containers": [
                    {
                        "name": "c",
                        "image": "image",
                        "volumeMounts": [{"name": "e", "mountPath": "/data"}],
                    }
                ],
                "volumes": [{"name": "e", "emptyDir": {}}],
            }
            pod = await node.pod(spec)
            await node.services.volumes.mount(pod)
            node.services = node.another()
            request = await node.request(pod, "c", 1)
            assert request.mounts[0].source == str(node.volume(pod, "empty-dir", "e"))
            assert request.log_path.endswith("/c/1.log")

    run_virtual(main)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A='1'\n", "1"),
        ("# A='0'\n\n  A='1' # yes\nA='2'", "1"),
        ("B='x'\nA='two\nlines'\n", "two\nlines"),
        ("A= '1'\n", ""),
        ("B='x'\n", ""),
        ("A='$(X) \\n'", "$(X) \\n"),
    ],
)
def test_variables_are_read_from_files(text: str, value: str) -> None:
    assert read_variable(text.encode(), "A") == value


@pytest.mark.parametrize("text", ["A=1\n", "A ='1'\n", "A='1\n", "A='1' x\n", "nothing\n", "='1'\n"])
def test_a_file_with_anything_else_in_it_is_not_read(text: str) -> None:
    with pytest.raises(WorldError, match="couldn't parse env file"):
        read_variable(text.encode(), "A")
