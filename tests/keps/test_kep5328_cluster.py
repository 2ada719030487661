"""KEP-5328 from end to end: kubelets of several versions, the scheduler and the API server together."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.cluster.description import Pool
from nodeward.features import FRAMEWORK, Framework, Gates, Version
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.features.declared.objects import feature
from tests.keps.clusters import World, world
from tests.keps.kep5328 import INVENTED, LEVITATION, LEVITATION_ON
from tests.keps.ledger import statement
from tests.keps.node_identity import NodeWorld, node_world
from tests.keps.test_kep5328_scheduler import FEATURE, OFF_1_36, needy
from tests.scheduler.running import pod

GATE = f"{FEATURE}=false"
#: A change that needs the invented feature.
RESIZED = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}


def whole(clock: VirtualClock, **parts: Any) -> AbstractAsyncContextManager[NodeWorld]:
    """A 1.36 cluster of all components that know the invented feature and no other; kubelets are added to it."""
    return node_world(
        clock, version="1.36", has_scheduler=True, has_controllers=True, features=INVENTED, **parts
    )


def floating(name: str, **spec: Any) -> Pod:
    """A pod that needs the invented feature."""
    return pod(name, hostNetwork=True, **spec)


async def phase(each: World, name: str) -> tuple[str, str]:
    found = await each.pod(name)
    return found.status.phase, found.spec.node_name


ON_1_35 = "NodeDeclaredFeatures=true,RestartAllContainersOnContainerExits=true"
OFF_1_35 = "NodeDeclaredFeatures=false,RestartAllContainersOnContainerExits=false"


@statement("5328-D48")
def test_the_upgrade_and_rollback_script_of_the_proposal() -> None:
    """Two things differ from its text, because they cannot be: a gate is switched off together with those that need
    it, and a pod that failed is made anew rather than started again."""

    async def main(clock: VirtualClock) -> None:
        store = MemoryStore()
        old = Pool(name="n", version="1.34")
        async with world(clock, old, version="1.35", gates=ON_1_35, store=store) as each:
            assert (await each.node("n-0")).status.declared_features == []
            await each.add(needy("testpod1"))
            assert await phase(each, "testpod1") == ("Pending", "")
            # Upgrade: the node declares the feature, and the pod is scheduled by that very event.
            await each.change_pool("n", "1.35", ON_1_35)
            assert (await each.node("n-0")).status.declared_features == [FEATURE]
            assert await phase(each, "testpod1") == ("Running", "n-0")
            # Off on the node first: nothing is declared any more, and what runs goes on.
            await each.change_pool("n", feature_gates=OFF_1_35)
            assert (await each.node("n-0")).status.declared_features == []
            assert await phase(each, "testpod1") == ("Running", "n-0")
            turned_off = each.fleet.pools["n"].pool
        # Then on the control plane, which is started anew without it: no checks, and the pod goes on.
        async with world(clock, turned_off, version="1.35", gates=OFF_1_35, store=store) as each:
            assert await phase(each, "testpod1") == ("Running", "n-0")
            restarts = (await each.pod("testpod1")).status.container_statuses[0].restart_count
            assert restarts == 0
        # On again, everywhere.
        turned_on = turned_off.upgraded(feature_gates=ON_1_35)
        async with world(clock, turned_on, version="1.35", gates=ON_1_35, store=store) as each:
            assert (await each.node("n-0")).status.declared_features == [FEATURE]
            assert await phase(each, "testpod1") == ("Running", "n-0")
            # The feature alone off on the node: the pod fails at the kubelet's admission.
            await each.change_pool("n", feature_gates="NodeDeclaredFeatures=true")
            await each.pass_time(60)
            found = await each.pod("testpod1")
            assert (found.status.phase, found.status.reason) == ("Failed", "PodFeatureUnsupported")
            await each.change_pool("n", feature_gates=ON_1_35)
            await _make_anew(each)
            assert await phase(each, "testpod1") == ("Running", "n-0")
            # Downgrade: the list is cleared, and the pod cannot go on; made anew, it waits.
            await each.change_pool("n", "1.34", "")
            await each.pass_time(60)
            assert (await each.node("n-0")).status.declared_features == []
            assert (await each.pod("testpod1")).status.phase == "Failed"
            await _make_anew(each)
            assert await phase(each, "testpod1") == ("Pending", "")
            # Upgrade again.
            await each.change_pool("n", "1.35", ON_1_35)
            assert await phase(each, "testpod1") == ("Running", "n-0")

    run_virtual(main)


async def _make_anew(each: World) -> None:
    await each.client.delete(Pod, "testpod1", "default")
    await each.pass_time(40)
    await each.add(needy("testpod1"))


@statement("5328-D31")
def test_a_feature_nobody_has_heard_of_works_from_end_to_end() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole(clock) as each:
            await each.start_kubelet("sinks", version="1.36", seconds=15)
            await each.add(floating("p"))
            text = f"0/1 nodes are available: 1 node(s) did not match node declared features: {LEVITATION}."
            (told,) = [message for reason, message in await each.events("p") if reason == "FailedScheduling"]
            assert told.startswith(text)
            await each.start_kubelet("floats", version="1.36", feature_gates=LEVITATION_ON, seconds=15)
            assert await each.declared("floats") == [LEVITATION]
            assert await phase(each, "p") == ("Running", "floats")
            # A resize needs it too: on the one node it is admitted, on the other refused.
            plain = pod("plain")
            plain.spec.node_name = "sinks"
            await each.add(plain)
            with pytest.raises(ApiError, match=f"requires features {LEVITATION} which are not available"):
                await each.resize("plain", RESIZED)
            changed = await each.resize("p", RESIZED)
            assert str(changed.spec.containers[0].resources.requests["cpu"]) == "200m"

    run_virtual(main)


@statement("5328-D20", "5328-D24")
def test_a_scheduler_infers_for_its_own_version_and_ignores_a_feature_after_its_last_one() -> None:
    ending = Framework([feature("Ends", max_version=Version.parse("1.37"))])

    async def main(clock: VirtualClock) -> None:
        places = {}
        for version in ("1.36", "1.37", "1.38"):
            parts: dict[str, Any] = {"version": version, "features": ending, "has_scheduler": True}
            async with node_world(clock, has_controllers=True, **parts) as each:
                # The node's own kubelet does not check: the decision is the scheduler's alone.
                await each.start_kubelet(version="1.36", framework=FRAMEWORK, seconds=15)
                await each.add(pod("p"))
                places[version] = (await each.pod("p")).spec.node_name
        assert places == {"1.36": "", "1.37": "", "1.38": "n1"}

    run_virtual(main)


@statement("5328-D59")
def test_the_gate_of_the_kubelet_fills_and_clears_the_list() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole(clock) as each:
            kubelet = await each.start_kubelet(version="1.36", feature_gates=LEVITATION_ON)
            lists = []
            for gates in ("", f"{OFF_1_36},", ""):
                await kubelet.restart(feature_gates=f"{gates}{LEVITATION_ON}", seconds=15)
                lists.append(await each.declared())
            assert lists == [[LEVITATION], [], [LEVITATION]]

    run_virtual(main)


@statement("5328-D59")
def test_the_gate_of_the_scheduler_alone_starts_and_stops_filtering() -> None:
    async def main(clock: VirtualClock) -> None:
        store, places = MemoryStore(), []
        for number, gates in enumerate(("", OFF_1_36, "")):
            async with whole(clock, store=store, scheduler_gates=Gates.of("1.36", gates)) as each:
                await each.start_kubelet(version="1.36", seconds=15)
                await each.add(floating(f"p{number}"), *([pod("plain")] if not number else []))
                places.append((await each.pod(f"p{number}")).spec.node_name)
                with pytest.raises(ApiError, match="requires features"):
                    await each.resize("plain", RESIZED)
        assert places == ["", "n1", ""]

    run_virtual(main)


@statement("5328-D59")
def test_the_gate_of_the_api_server_alone_starts_and_stops_validating() -> None:
    async def main(clock: VirtualClock) -> None:
        store, answers = MemoryStore(), []
        on = Gates.of("1.36")
        for number, gates in enumerate(("", OFF_1_36, "")):
            async with whole(clock, gates=gates, store=store, scheduler_gates=on) as each:
                await each.start_kubelet(version="1.36", seconds=15)
                await each.add(floating(f"p{number}"), *([pod("plain")] if not number else []))
                assert (await each.pod(f"p{number}")).spec.node_name == "", "the scheduler goes on filtering"
                amounts = {"requests": {"cpu": f"{number + 2}00m"}}
                try:
                    await each.resize("plain", {"containers": [{"name": "main", "resources": amounts}]})
                    answers.append("passed")
                except ApiError as refused:
                    answers.append(str(refused).partition(": ")[2])
        refusal = f'pod update requires features {LEVITATION} which are not available on node "n1"'
        assert answers == [refusal, "passed", refusal]

    run_virtual(main)


@statement("5328-D49")
def test_the_metrics_that_show_the_feature_at_work_count() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole(clock) as each:
            kubelet = await each.start_kubelet(version="1.36", seconds=15)
            scheduler = each.cluster.scheduler.running
            assert scheduler is not None
            refused, plain = floating("bound"), pod("plain")
            refused.spec.node_name = plain.spec.node_name = "n1"
            await each.add(refused, floating("waits"), plain)
            rejections = 'kubelet_admission_rejections_total{reason="PodFeatureUnsupported"}'
            assert f"{rejections} 1.0" in kubelet.metrics()
            shown = scheduler.metrics.text().decode()
            held = (
                'scheduler_unschedulable_pods{plugin="NodeDeclaredFeatures",profile="default-scheduler"} 1.0'
            )
            assert held in shown
            assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in shown
            # Durations come from every tenth decision, and pods that are alike are decided together.
            await each.add(
                *(floating(f"more{n}", metadata={"labels": {"unlike": f"{n}"}}) for n in range(20))
            )
            timed = "scheduler_plugin_execution_duration_seconds_count{"
            lines = [
                line for line in scheduler.metrics.text().decode().splitlines() if line.startswith(timed)
            ]
            assert any('plugin="NodeDeclaredFeatures"' in line for line in lines)
            # Every refusal of the validator is measured, and counted as one.
            assert validator_refusals(each) == 0
            for times in (1, 2, 3):
                with pytest.raises(ApiError, match="requires features"):
                    await each.resize("plain", RESIZED)
                assert validator_refusals(each) == times

    run_virtual(main)


def validator_refusals(each: World) -> float:
    """How many writes the validator has refused, as the API server's page of metrics says."""
    families = text_string_to_metric_families(each.cluster.server.metrics.text().decode())
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "apiserver_admission_controller_admission_duration_seconds_count"
        and sample.labels["name"] == "NodeDeclaredFeatureValidator"
        and sample.labels["rejected"] == "true"
    )


def requests(each: World) -> dict[tuple[str, ...], float]:
    """Every request the API server was sent, by verb, resource and subresource."""
    counted: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(each.cluster.server.metrics.text().decode()):
        for sample in family.samples:
            if sample.name == "apiserver_request_total":
                key = tuple(sample.labels[name] for name in ("verb", "group", "resource", "subresource"))
                counted[key] = counted.get(key, 0) + sample.value
    return counted


@statement("5328-D51")
def test_no_component_sends_a_request_more_no_type_is_added_and_a_node_grows_by_its_list() -> None:
    async def main(clock: VirtualClock) -> None:
        counted, sizes, types = [], [], []
        for gates in ("", OFF_1_36):
            others = f"{gates}," if gates else ""
            async with whole(clock, gates=gates) as each:
                await each.start_kubelet(version="1.36", feature_gates=f"{others}{LEVITATION_ON}", seconds=15)
                await each.add(floating("needs"), pod("plain"))
                await each.pass_time(1000)
                assert await phase(each, "needs") == await phase(each, "plain") == ("Running", "n1")
                counted.append(requests(each))
                node = (await each.client.raw("GET", "/api/v1/nodes/n1")).body or b""
                sizes.append(len(node))
                types.append((await each.client.raw("GET", "/api/v1")).body)
        assert counted[0] == counted[1]
        assert sum(counted[0].values()) > 200
        assert 0 < sizes[0] - sizes[1] < len(f',"declaredFeatures":["{LEVITATION}"]') + 60
        assert types[0] == types[1]

    run_virtual(main)


def test_kubelets_of_different_versions_and_gates_in_one_process_do_not_touch_each_other() -> None:
    async def main(clock: VirtualClock) -> None:
        pools = (
            Pool(name="old", version="1.34"),
            Pool(name="new", version="1.37"),
            Pool(name="off", version="1.37", feature_gates=GATE),
        )
        async with world(clock, *pools) as each:
            declared = {
                name: (await each.node(f"{name}-0")).status.declared_features
                for name in ("old", "new", "off")
            }
            assert declared["old"] == []
            assert FEATURE in declared["new"]
            assert FEATURE not in declared["off"]
            versions = {
                name: (await each.node(f"{name}-0")).status.node_info.kubelet_version for name in declared
            }
            assert versions == {"old": "v1.34.0", "new": "v1.37.0", "off": "v1.37.0"}
            await each.add(*(needy(f"p{number}") for number in range(3)))
            assert {await phase(each, f"p{number}") for number in range(3)} == {("Running", "new-0")}
            await each.change_pool("off", feature_gates="")
            assert FEATURE in (await each.node("off-0")).status.declared_features
            assert (await each.node("old-0")).status.declared_features == []
            assert {await phase(each, f"p{number}") for number in range(3)} == {("Running", "new-0")}

    run_virtual(main)
