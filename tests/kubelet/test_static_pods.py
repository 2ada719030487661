"""Pods from files of the node: they run without the API, and the API shows them when it can."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from nodeward.api.context import Context
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import ConfigError
from nodeward.features.gates import Gates
from nodeward.kubelet.static_pods import StaticPods, read_pod
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.rules.pod_references import MIRROR
from tests.kubelet.hosting import Hosted, hosted, specification

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: c
    image: {image}
"""
CONTEXT = Context(Gates.of("1.37"))


def static(each: Hosted, directory: Path, node: str = "n1") -> StaticPods:
    agent = each.host.agent(node)
    assert agent is not None
    return StaticPods(directory, agent, each.host.pods, each.clock)


def test_a_file_becomes_a_running_pod_which_the_api_shows(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            static(each, tmp_path).look()
            await clock.sleep(2)
            shown = await each.pod("web-n1")
            assert shown.status.phase == "Running"
            uid = shown.metadata.annotations[MIRROR]
            assert shown.metadata.annotations["kubernetes.io/config.hash"] == uid
            assert shown.metadata.annotations["kubernetes.io/config.source"] == "file"
            assert shown.metadata.uid != uid
            assert shown.metadata.owner_references[0].kind == "Node"
            held = each.host.find_pod("default", "web-n1")
            assert held is not None
            assert held.uid == uid

    run_virtual(main)


def test_a_mirror_that_is_deleted_comes_back_and_the_pod_does_not_notice(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            static(each, tmp_path).look()
            await clock.sleep(2)
            first = await each.pod("web-n1")
            await each.client.delete(Pod, "web-n1", "default")
            await clock.sleep(5)
            second = await each.pod("web-n1")
            assert second.metadata.uid != first.metadata.uid
            before, after = first.status.container_statuses[0], second.status.container_statuses[0]
            assert after.container_id == before.container_id
            assert second.status.phase == "Running"

    run_virtual(main)


def test_a_changed_file_is_another_pod_that_waits_until_the_first_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            pods = static(each, tmp_path)
            pods.look()
            await clock.sleep(2)
            first = await each.pod("web-n1")
            file.write_text(MANIFEST.format(image="two"))
            is_waiting = pods.look()
            while is_waiting:
                await clock.sleep(1)
                is_waiting = pods.look()
            await clock.sleep(5)
            second = await each.pod("web-n1")
            assert second.spec.containers[0].image == "two"
            assert second.metadata.annotations[MIRROR] != first.metadata.annotations[MIRROR]
            assert second.status.phase == "Running"
            assert len(each.host.pods) == 1

    run_virtual(main)


def test_a_removed_file_ends_the_pod_and_its_mirror(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            pods = static(each, tmp_path)
            pods.look()
            await clock.sleep(2)
            file.unlink()
            pods.look()
            await clock.sleep(40)
            assert not (await each.client.list(Pod)).items
            assert len(each.host.pods) == 0

    run_virtual(main)


def test_a_mirror_nobody_claims_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            static(each, tmp_path).look()
            await clock.sleep(2)
            each.host.stop_node("n1")
            await each.host.restart_node(specification("n1"))
            await clock.sleep(5)
            assert not (await each.client.list(Pod)).items

    run_virtual(main)


def test_a_static_pod_runs_on_a_node_nobody_has_registered(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock) as each:
            agent = each.host.add_node(specification("n1"))
            each.host.cut_off("n1")
            StaticPods(tmp_path, agent, each.host.pods, clock).look()
            await clock.sleep(5)
            assert not agent.is_registered
            (held,) = agent.pods.values()
            assert held.life.status(clock.now_ns()).phase == "Running"
            each.host.reconnect("n1")
            await clock.sleep(5)
            assert (await each.pod("web-n1")).status.phase == "Running"

    run_virtual(main)


def test_a_broken_file_is_told_once_with_its_line_and_its_pod_runs_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(MANIFEST.format(image="one"))

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            pods = static(each, tmp_path)
            pods.look()
            await clock.sleep(2)
            file.write_text(MANIFEST.format(image="one") + "    colour: red\n")
            with caplog.at_level(logging.WARNING, "nodeward.kubelet.static_pods"):
                pods.look()
                pods.look()
            assert len(each.host.pods) == 1
            assert (await each.pod("web-n1")).status.phase == "Running"

    run_virtual(main)
    told = [each.getMessage() for each in caplog.records if each.name.endswith("static_pods")]
    assert len(told) == 1
    assert f"{file}:9: spec.containers[0].colour: unknown field" in told[0]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("kind: Service\napiVersion: v1\n", "x.yaml:1: not a pod"),
        (MANIFEST.format(image="one") + "  serviceAccountName: me\n", "may not reference serviceaccounts"),
        (MANIFEST.format(image="one").replace("name: web", "labels: {}"), "name is needed"),
        (MANIFEST.format(image="one") + "  hostNetwork: maybe\n", "x.yaml:9: spec.hostNetwork"),
        (MANIFEST.format(image='""'), "x.yaml:8: spec.containers[0].image"),
        ("a: [\n", "x.yaml:2: not YAML"),
        ("", "holds one pod, not 0"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_pod(text.encode(), "x.yaml", "n1", CONTEXT)
    assert what in str(caught.value)
