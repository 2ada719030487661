"""KEP-6122 in a kubelet: which pods and which gates the delay is about, and which it is not."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.errors import ConfigError
from nodeward.kubelet.config.cpu_options import CPU_POLICIES
from tests.keps.kep6122 import ALPHA, ASSIGNED, BOTH, EXCLUSIVE, CPUScene, play, static_config
from tests.keps.ledger import statement
from tests.keps.test_kep6122_downward import a_pod, item


def _on(is_on: bool) -> str:
    return str(is_on).lower()


@statement("6122-10")
@statement("6122-G1")
@pytest.mark.parametrize(
    ("row", "alpha", "exclusive", "assigned"),
    [(number, *row) for number, row in enumerate(product((False, True), repeat=3), start=1)],
)
def test_the_eight_combinations_of_the_three_gates(
    row: int, alpha: bool, exclusive: bool, assigned: bool
) -> None:
    gates = f"{ALPHA}={_on(alpha)},{EXCLUSIVE}={_on(exclusive)},{ASSIGNED}={_on(assigned)}"

    async def act(scene: CPUScene) -> None:
        has_delay = alpha and exclusive
        if not has_delay:
            why = "must be 0s unless" if alpha else "Alpha-level Options not enabled"
            with pytest.raises(ConfigError, match=why):
                await scene.restart(config=static_config("5s"))
            await scene.kubelet.stop()
        await scene.restart(config=static_config("5s" if has_delay else ""))
        pod = await scene.run()
        # Decided: the file is served whatever the gate of the API says (rows without it, too).
        assert scene.shown(pod) == "1,11"
        await scene.resize("p", "4", seconds=12)
        if not exclusive:
            assert await scene.conditions() == {"PodResizePending": "Infeasible"}
            assert await scene.in_force(pod) == "1,11"
            return
        assert await scene.in_force(pod) == scene.shown(pod) == "1-2,11-12"
        await scene.resize("p", "3")
        assert (scene.left(pod) is not None) is has_delay
        assert scene.shown(pod) == "1-2,11"

    play(act, delay="", feature_gates=gates, server_gates=f"{ASSIGNED}={_on(assigned)}")


@statement("6122-12")
@pytest.mark.parametrize("cpus", [("500m", "300m"), ("1500m", "1200m")])
def test_containers_that_share_their_cpus_are_not_delayed(cpus: tuple[str, str]) -> None:
    async def act(scene: CPUScene) -> None:
        before = scene.state()
        pod = await scene.run("p", cpus[0])
        await scene.resize("p", cpus[1], seconds=1)
        assert scene.left(pod) is None
        assert await scene.conditions() == {}, "done at once"
        assert scene.state() == before

    play(act, delay="10s")


@statement("6122-12")
def test_a_burstable_pod_with_whole_cpus_is_not_delayed() -> None:
    async def act(scene: CPUScene) -> None:
        container = {"name": "c", "image": "image", "resources": {"requests": {"cpu": "4"}}}
        tree = {
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": "n1", "containers": [container]},
        }
        pod = await scene.started(codec.from_tree(tree, Pod))
        body = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
        await scene.world.resize("p", body)
        await scene.clock.sleep(1)
        assert scene.left(pod) is None
        assert await scene.conditions() == {}

    play(act, delay="10s")


def _whole_pod(cpu: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": "256Mi"}, "limits": {"cpu": cpu, "memory": "256Mi"}}


@statement("6122-13")
@pytest.mark.parametrize("managed", [False, True])
def test_pods_with_pod_level_resources_are_not_delayed(managed: bool) -> None:
    gates = f"{BOTH},PodLevelResourceManagers={_on(managed)}"
    config = static_config("10s", topologyManagerPolicy="best-effort", topologyManagerScope="pod")

    async def act(scene: CPUScene) -> None:
        amounts = {"cpu": "2", "memory": "64Mi"}
        container = {
            "name": "c",
            "image": "image",
            "resources": {"requests": amounts, "limits": dict(amounts)},
        }
        tree = {
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": "n1", "resources": _whole_pod("4"), "containers": [container]},
        }
        pod = await scene.started(codec.from_tree(tree, Pod))
        before = scene.state()
        assert (pod.metadata.uid in before.get("entries", {})) is managed
        smaller = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
        await scene.world.resize("p", {"containers": [{"name": "c", "resources": smaller}]})
        await scene.clock.sleep(1)
        assert scene.left(pod) is None
        assert scene.state() == before
        assert await scene.conditions() == ({"PodResizePending": "Infeasible"} if managed else {})

    play(act, config=config, feature_gates=gates, server_gates="PodLevelResourceManagers=true")


@statement("6122-14", part="kubelet")
def test_there_are_the_same_two_policies_as_before() -> None:
    async def act(scene: CPUScene) -> None:
        assert CPU_POLICIES == ("none", "static")
        for name in ("dynamic", "static-delayed"):
            with pytest.raises(ConfigError, match="cpuManagerPolicy"):
                await scene.restart(config={**static_config("5s"), "cpuManagerPolicy": name})

    play(act)


@statement("6122-G1")
def test_alpha_is_behind_the_policy_and_its_gates_and_the_api_server_checks_the_field() -> None:
    async def act(scene: CPUScene) -> None:
        with pytest.raises(ConfigError, match="None policy: received unsupported options"):
            await scene.restart(config={**static_config("5s"), "cpuManagerPolicy": "none"})
        with pytest.raises(ConfigError, match="Alpha-level Options not enabled"):
            await scene.restart(feature_gates=f"{EXCLUSIVE}=true", config=static_config("5s"))
        with pytest.raises(ConfigError, match="must be 0s unless feature gate"):
            await scene.restart(feature_gates=f"{ALPHA}=true", config=static_config("5s"))
        await scene.kubelet.stop()
        await scene.restart(feature_gates=BOTH, config=static_config("5s"))
        with pytest.raises(ApiError, match=r"assigned\.cpus"):
            await scene.world.client.create(a_pod("wrong", item("assigned.cpus")))
        pod = await scene.run(grow=("4",))
        await scene.resize("p", "3")
        assert (scene.shown(pod), scene.left(pod) is not None) == ("1-2,11", True)

    play(act)
