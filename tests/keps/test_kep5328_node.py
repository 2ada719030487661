"""KEP-5328 on the node: what a kubelet declares, when it writes that, and which pods it refuses.

Every kubelet here is the real one under its node's own identity; cases of its cores are in tests/kubelet/node.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.features import Gates, Version
from nodeward.features.declared import FRAMEWORK, REGISTRY, Framework, NodeConfiguration
from nodeward.features.declared.abilities import MOUNT_OPTIONS, able
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.node.abilities import static_config
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.features.declared.objects import resources
from tests.keps.kep5328 import INIT, INVENTED, LEVITATION, LEVITATION_ON, POD_LEVEL, asking
from tests.keps.ledger import statement
from tests.keps.node_identity import Kubelet, NodeWorld, node_world
from tests.keps.test_kep5328_scheduler import FEATURE, needy
from tests.scheduler.running import pod

WEB_SOCKETS = "ExtendWebSocketsToKubelet"
#: the framework off, and with it what needs it
OFF = ",".join(f"{name}=false" for name in ("NodeDeclaredFeatures", WEB_SOCKETS, POD_LEVEL, INIT, FEATURE))
STATUS = "/api/v1/nodes/n1/status"
#: what a node of 1.37 declares
USUAL = [WEB_SOCKETS, POD_LEVEL, INIT, FEATURE]


class Counting(Framework):
    """The library, counting how often a kubelet asks it what to declare."""

    def __init__(self) -> None:
        super().__init__(REGISTRY)
        self.discovered = 0

    def discover_node_features(self, config: NodeConfiguration) -> tuple[str, ...]:
        self.discovered += 1
        return super().discover_node_features(config)


class Liar(Framework):
    """A framework that says what it is told to, as a bug could make it."""

    def __init__(self, *names: str) -> None:
        super().__init__(REGISTRY)
        self._lies = names

    def discover_node_features(self, config: NodeConfiguration) -> tuple[str, ...]:
        return self._lies


def on_node(made: Pod, name: str = "n1") -> Pod:
    """The pod, bound by hand, past the scheduler."""
    made.spec.node_name = name
    return made


def status_patches(kubelet: Kubelet) -> list[Any]:
    return [call.tree["status"] for call in kubelet.wire.sent("PATCH", STATUS)]


async def write_list(world: NodeWorld, names: list[str] | None) -> None:
    """Somebody who may do anything changes the list of the node."""
    await world.client.patch(
        type(await world.node("n1")), "n1", {"status": {"declaredFeatures": names}}, subresource="status"
    )


@statement("5328-D5", part="kubelet")
def test_the_list_is_found_once_and_another_gate_needs_a_restart() -> None:
    async def main(clock: VirtualClock) -> None:
        library = Counting()
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet(framework=library)
            first = await world.declared()
            assert first == USUAL
            await world.pass_time(1000)
            assert (await world.declared(), library.discovered) == (first, 1)
            # The same configuration gives the same list, on another node and after a restart.
            await world.start_kubelet("n2")
            assert await world.declared("n2") == first
            await kubelet.restart(seconds=20)
            assert (await world.declared(), library.discovered) == (first, 2)
            await kubelet.restart(feature_gates=f"{FEATURE}=false", seconds=20)
            assert (await world.declared(), library.discovered) == ([WEB_SOCKETS, POD_LEVEL, INIT], 3)
            assert await world.declared("n2") == first

    run_virtual(main)


@statement("5328-D9")
def test_a_gate_that_is_on_is_not_declared_where_the_kubelet_or_its_runtime_cannot_do_it() -> None:
    async def main(clock: VirtualClock) -> None:
        gates = "VolumeBindMountOptions=true,InPlacePodVerticalScalingMemoryBackedVolumes=true"
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet(feature_gates=gates, abilities={})
            assert await world.declared() == USUAL
            await kubelet.restart(abilities=able(MOUNT_OPTIONS), seconds=15)
            assert await world.declared() == [*USUAL, "VolumeBindMountOptions"]

    run_virtual(main)


@statement("5328-D13")
def test_bad_and_repeated_names_are_dropped_and_each_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        lies = Liar("Zeta", "Alpha", "not-a-name", "Alpha", "Alpha/sub", "")
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet(framework=lies)
            assert await world.declared() == ["Alpha", "Alpha/sub", "Zeta"]
            assert await world.condition("Ready") == ("True", "KubeletReady")
            assert all(call.status < 400 for call in kubelet.wire.calls), "the API server refuses nothing"

    with caplog.at_level(logging.ERROR):
        run_virtual(main)
    dropped = [each.getMessage() for each in caplog.records if "is not published" in each.getMessage()]
    assert [text.split("'")[1] for text in dropped] == ["not-a-name", "Alpha", ""]


@statement("5328-D14")
def test_the_list_goes_with_the_status_which_is_patched_on_a_change_or_when_the_period_is_over() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet()
            (made,) = kubelet.wire.sent("POST", "/api/v1/nodes")
            wanted = USUAL
            assert made.tree["status"]["declaredFeatures"] == wanted, (
                "it is there when the node is registered"
            )
            await world.pass_time(120)
            assert status_patches(kubelet) == []
            await write_list(world, None)
            await world.pass_time(10)
            (patch,) = status_patches(kubelet)
            assert patch["declaredFeatures"] == wanted
            await world.pass_time(7 * 300)
            reports = status_patches(kubelet)[1:]
            assert 5 <= len(reports) <= 9
            assert not any("declaredFeatures" in each for each in reports)

    run_virtual(main)


@statement("5328-D15")
@pytest.mark.parametrize("edit", [None, ["Stranger"], [FEATURE], [*USUAL, "Zeta"]])
def test_what_others_write_into_the_list_is_put_right_in_the_next_round(edit: list[str] | None) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            await world.start_kubelet()
            wanted = await world.declared()
            await write_list(world, edit)
            assert await world.declared() == (edit or [])
            await world.pass_time(10)
            assert await world.declared() == wanted == USUAL

    run_virtual(main)


@statement("5328-D16")
@statement("5328-D53")
def test_a_pod_that_needs_what_the_node_has_not_is_refused_with_an_event_and_a_count() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet(feature_gates=f"{FEATURE}=false")
            await world.add(on_node(needy("p")), on_node(pod("plain")))
            found = (await world.pod("p")).status
            why = f"Pod requires node features that are not available: {FEATURE}"
            assert (found.phase, found.reason) == ("Failed", "PodFeatureUnsupported")
            assert found.message == f"Pod was rejected: {why}"
            assert await world.events("p") == [("PodFeatureUnsupported", why)]
            assert (await world.pod("plain")).status.phase == "Running"
            uids = [each.uid for each in await kubelet.runtime.recover()]
            assert uids == [(await world.pod("plain")).metadata.uid], "it was never started"
            counted = 'kubelet_admission_rejections_total{reason="PodFeatureUnsupported"} 1.0'
            assert counted in kubelet.metrics()
            # The gate is known here and off; a feature no gate has heard of is refused alike.
            await kubelet.restart(framework=INVENTED, feature_gates="", seconds=15)
            await world.add(on_node(pod("floats", hostNetwork=True)))
            assert (await world.pod("floats")).status.reason == "PodFeatureUnsupported"
            await kubelet.restart(framework=INVENTED, feature_gates=LEVITATION_ON, seconds=15)
            await world.add(on_node(pod("flies", hostNetwork=True)))
            assert (await world.pod("flies")).status.phase == "Running"
            assert await world.declared() == [LEVITATION]

    run_virtual(main)


@statement("5328-D34", part="library")
@pytest.mark.parametrize(
    ("version", "gates", "abilities"),
    [
        ("1.34", "", ()),
        ("1.35", f"NodeDeclaredFeatures=true,{FEATURE}=true", ()),
        ("1.36", "", ()),
        ("1.37", "", ()),
        ("1.37", f"{FEATURE}=false", ()),
        ("1.37", "VolumeBindMountOptions=true", ()),
        ("1.37", "VolumeBindMountOptions=true", (MOUNT_OPTIONS,)),
    ],
)
def test_what_is_discovered_for_a_configuration_is_what_a_kubelet_with_it_reports(
    version: str, gates: str, abilities: tuple[str, ...]
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            await world.start_kubelet(version=version, feature_gates=gates, abilities=able(*abilities))
            switched = Gates.of(version, gates)
            settings = static_config(KubeletSettings(gates=switched), able(*abilities))
            template = NodeConfiguration(Version.parse(version), switched, settings)
            assert await world.declared() == list(FRAMEWORK.discover_node_features(template))

    run_virtual(main)


@statement("5328-D41")
def test_a_running_pod_fails_when_its_feature_is_switched_off_and_the_kubelet_restarted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet()
            await world.add(on_node(needy("p")), on_node(pod("plain")))
            assert (await world.pod("p")).status.phase == "Running"
            await kubelet.restart(feature_gates=f"{FEATURE}=false", seconds=60)
            found = (await world.pod("p")).status
            assert (found.phase, found.reason) == ("Failed", "PodFeatureUnsupported")
            plain = (await world.pod("plain")).status
            assert (plain.phase, plain.container_statuses[0].restart_count) == ("Running", 0)

    run_virtual(main)


@statement("5328-D46", part="kubelet")
@statement("5328-D47", part="kubelet")
def test_off_clears_the_list_other_pods_still_run_and_on_again_fills_it_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, version="1.36") as world:
            kubelet = await world.start_kubelet(version="1.36")
            wanted = await world.declared()
            assert wanted == USUAL
            await kubelet.restart(feature_gates=OFF)
            assert await world.declared() == []
            assert status_patches(kubelet)[-1]["declaredFeatures"] is None
            whole = on_node(pod("plain"))
            whole.spec.resources = resources(cpu="1", memory="1Gi")
            await world.add(whole)
            assert (await world.pod("plain")).status.phase == "Running"
            # What a node does not declare cannot be asked of it; declared again, it is done at once.
            with pytest.raises(ApiError, match=f"requires features {POD_LEVEL}"):
                await world.resize("plain", {"resources": asking("2")})
            await kubelet.restart(feature_gates="")
            assert await world.declared() == wanted
            await world.resize("plain", {"resources": asking("2")})
            await world.pass_time(5)
            status = (await world.pod("plain")).status
            assert str(status.allocated_resources["cpu"]) == "2"
            assert status.container_statuses[0].restart_count == 0

    run_virtual(main)


def test_a_kubelet_older_than_the_field_declares_nothing_after_a_downgrade() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet()
            assert await world.declared()
            await kubelet.restart(version="1.34", seconds=15)
            assert await world.declared() == []

    run_virtual(main)


@statement("5328-D50")
def test_a_kubelet_without_an_api_server_cannot_report_and_does_so_once_it_is_back() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, has_scheduler=True, has_controllers=True) as world:
            kubelet = await world.start_kubelet(seconds=15)
            await kubelet.cut_off()
            await write_list(world, [WEB_SOCKETS])
            await world.pass_time(30)
            assert await world.declared() == [WEB_SOCKETS], "nobody puts it right"
            # The scheduler decides on the list it knows, although the node has the feature.
            await world.add(needy("p"), pod("plain"))
            assert (await world.pod("p")).spec.node_name == ""
            assert (await world.pod("plain")).spec.node_name == "n1"
            kubelet.reconnect()
            await world.pass_time(60)
            assert await world.declared() == USUAL
            found = await world.pod("p")
            assert (found.spec.node_name, found.status.phase) == ("n1", "Running")

    run_virtual(main)


@statement("5328-D51")
def test_a_kubelet_that_declares_asks_nothing_more_of_the_api() -> None:
    """After its start a kubelet renews its lease and reports its status, and that is all: no reads, no list writes."""

    async def main(clock: VirtualClock) -> None:
        lasting: dict[str, list[tuple[str, str]]] = {}
        for gates in ("", OFF):
            async with node_world(clock, version="1.36") as world:
                kubelet = await world.start_kubelet(version="1.36", feature_gates=gates, seconds=5)
                kubelet.wire.calls.clear()
                await world.pass_time(3600)
                lasting[gates] = [(call.method, call.path) for call in kubelet.wire.calls]
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
        others = {call for call in lasting[""] if call not in (("PATCH", lease), ("PATCH", STATUS))}
        assert others <= {("GET", "/api/v1/pods"), ("GET", "/api/v1/nodes")}, "watches that ended begin anew"
        assert lasting[""].count(("PATCH", STATUS)) <= 3600 / 300 * 2
        assert lasting[""] == lasting[OFF]

    run_virtual(main)


@statement("5328-D52")
def test_the_field_is_sent_with_the_gate_on_and_left_out_with_it_off() -> None:
    async def main(clock: VirtualClock) -> None:
        # One of the features would be on without the framework.
        library = Framework([*REGISTRY, *INVENTED.features])
        wanted = sorted([*USUAL, LEVITATION])
        sent: dict[str, list[Any]] = {}
        for gates in (LEVITATION_ON, f"{LEVITATION_ON},{OFF}"):
            is_on = OFF not in gates
            async with node_world(clock, version="1.36") as world:
                kubelet = await world.start_kubelet(version="1.36", feature_gates=gates, framework=library)
                await world.pass_time(3600)
                (made,) = kubelet.wire.sent("POST", "/api/v1/nodes")
                sent["on" if is_on else "off"] = [made.tree["status"], *status_patches(kubelet)]
                assert await world.declared() == (wanted if is_on else [])
        assert sent["on"][0]["declaredFeatures"] == wanted
        assert len(sent["off"]) > 5
        assert not any("declaredFeatures" in each for each in sent["off"])

    run_virtual(main)
