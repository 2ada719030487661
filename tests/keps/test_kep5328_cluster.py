"""KEP-5328 from end to end: kubelets of several versions, the scheduler and the API server together."""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod
from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.keps.clusters import World, world
from tests.keps.ledger import statement
from tests.keps.test_kep5328_scheduler import FEATURE, needy
from tests.scheduler.running import pod

GATE = f"{FEATURE}=false"


async def phase(each: World, name: str) -> tuple[str, str]:
    found = await each.pod(name)
    return found.status.phase, found.spec.node_name


@statement("5328-D16")
def test_a_kubelet_refuses_a_pod_that_needs_what_it_has_not() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, Pool(name="old", version="1.34")) as each:
            # Bound by hand, past the scheduler.
            refused = needy("p")
            refused.spec.node_name = "old-0"
            await each.add(refused)
            found = await each.pod("p")
            assert (found.status.phase, found.status.reason) == ("Failed", "PodFeatureUnsupported")
            assert FEATURE in found.status.message
            assert not found.status.container_statuses or all(
                status.state.running is None for status in found.status.container_statuses
            )
            reasons = [reason for reason, _ in await each.events("p")]
            assert "PodFeatureUnsupported" in reasons
            assert each.fleet.host.metrics.admission_rejections.value("PodFeatureUnsupported") == 1

    run_virtual(main)


@statement("5328-D41")
def test_a_running_pod_fails_when_its_feature_is_switched_off_and_the_kubelet_restarted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, Pool(name="a", version="1.37")) as each:
            await each.add(needy("p"), pod("plain"))
            assert await phase(each, "p") == ("Running", "a-0")
            await each.change_pool("a", feature_gates=GATE)
            await each.pass_time(60)
            found = await each.pod("p")
            assert (found.status.phase, found.status.reason) == ("Failed", "PodFeatureUnsupported")
            assert await phase(each, "plain") == ("Running", "a-0")
            running = (await each.pod("plain")).status.container_statuses[0]
            assert running.restart_count == 0

    run_virtual(main)


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


@statement("5328-D59")
def test_switching_gates_fills_and_clears_the_list_and_starts_and_stops_checks() -> None:
    async def main(clock: VirtualClock) -> None:
        off = (
            "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false,"
            "InPlacePodLevelResourcesVerticalScaling=false,InPlacePodVerticalScalingInitContainers=false,"
            "RestartAllContainersOnContainerExits=false"
        )
        async with world(clock, Pool(name="n", version="1.36"), version="1.36") as each:
            assert FEATURE in (await each.node("n-0")).status.declared_features
            await each.change_pool("n", feature_gates=off)
            assert (await each.node("n-0")).status.declared_features == []
            await each.add(needy("waits"))
            assert await phase(each, "waits") == ("Pending", "")
            await each.change_pool("n", feature_gates="")
            assert FEATURE in (await each.node("n-0")).status.declared_features
            assert await phase(each, "waits") == ("Running", "n-0")

    run_virtual(main)


@statement("5328-D49")
def test_the_metrics_that_show_the_feature_at_work_count() -> None:
    async def main(clock: VirtualClock) -> None:
        async with world(clock, Pool(name="old", version="1.34")) as each:
            refused = needy("bound")
            refused.spec.node_name = "old-0"
            await each.add(refused, needy("waits"))
            scheduler = each.cluster.scheduler
            assert scheduler is not None
            kubelet = each.fleet.host.metrics.all.text().decode()
            assert 'kubelet_admission_rejections_total{reason="PodFeatureUnsupported"} 1.0' in kubelet
            shown = scheduler.metrics.text().decode()
            held = (
                'scheduler_unschedulable_pods{plugin="NodeDeclaredFeatures",profile="default-scheduler"} 1.0'
            )
            assert held in shown
            assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in shown
            # Durations come from every tenth decision, and pods that are alike are decided together.
            await each.add(*(needy(f"more{n}", metadata={"labels": {"unlike": f"{n}"}}) for n in range(20)))
            timed = "scheduler_plugin_execution_duration_seconds_count{"
            lines = [
                line for line in scheduler.metrics.text().decode().splitlines() if line.startswith(timed)
            ]
            assert any('plugin="NodeDeclaredFeatures"' in line for line in lines)
            served = each.cluster.server.metrics.text().decode()
            name = 'name="NodeDeclaredFeatureValidator"'
            assert "apiserver_admission_controller_admission_duration_seconds_count{" in served
            assert name in served

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
