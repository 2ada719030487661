"""KEP-5945 in a kubelet: who is called before a pod starts and after it ended, and who is not.

Through the real host, under the node's own identity; only containers and drivers are simulated.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.keps.kep5945 import (
    DRIVER,
    FAILED,
    FEATURE,
    OFF,
    ON,
    OTHER,
    DRAScene,
    Said,
    play,
    present,
)
from tests.keps.ledger import statement

BOTH = (present(DRIVER), present(OTHER))


# -- who is called


@statement("5945-3", "5945-5", "5945-18", "5945-U4")
@pytest.mark.parametrize("said", [None, False, [True, False], [True, None]])
def test_a_driver_is_called_unless_all_its_devices_say_otherwise(said: Any) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=said)
        pod = await scene.start()
        assert pod.status.phase == "Running"
        assert scene.calls() == ["prepare"]
        assert [*scene.drivers[DRIVER].prepared] == [(await scene.claim("c")).metadata.uid]
        assert len(scene.cdi_ids(pod)) == 1, "the container gets its device"
        assert scene.skips() == 0
        await scene.delete()
        assert await scene.is_gone()
        assert scene.calls() == ["prepare", "unprepare"]
        assert not scene.drivers[DRIVER].prepared
        assert scene.checkpoint() == []

    play(act, drivers=BOTH)


@statement("5945-U4")
def test_only_the_unpreparation_may_be_skipped() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=["NodeUnprepareResources"])
        assert (await scene.start()).status.phase == "Running"
        await scene.delete()
        assert await scene.is_gone()
        assert scene.calls() == ["prepare"]
        assert (scene.skips("prepare"), scene.skips("unprepare")) == (0, 1)

    play(act, drivers=BOTH)


@statement("5945-17", "5945-21", "5945-22", "5945-48", "5945-49", "5945-U4")
@pytest.mark.parametrize(
    "said", [True, [True, True], ["*"], ["NodePrepareResources", "NodeUnprepareResources"]]
)
@pytest.mark.parametrize("drivers", [(), BOTH], ids=["no driver", "a driver"])
def test_a_driver_is_neither_looked_for_nor_called_if_all_its_devices_say_so(said: Any, drivers: Any) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=said)
        pod = await scene.start()
        assert pod.status.phase == "Running"
        assert await scene.told() == []
        assert (scene.skips("prepare"), scene.skips("unprepare")) == (1, 0)
        await scene.delete()
        assert await scene.is_gone(), "it ends at once"
        assert (scene.skips("prepare"), scene.skips("unprepare")) == (1, 1)
        assert scene.checkpoint() == [], "the claim is forgotten"
        if drivers:
            assert scene.calls() == []

    play(act, drivers=drivers)


@statement("5945-19")
def test_each_driver_of_a_claim_is_judged_alone() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True, nic=None)
        await scene.start()
        await scene.delete()
        assert await scene.is_gone()
        assert (scene.calls(DRIVER), scene.calls(OTHER)) == ([], ["prepare", "unprepare"])
        assert (scene.skips(driver=DRIVER), scene.skips(driver=OTHER)) == (1, 0)

    play(act, drivers=BOTH)


@statement("5945-20")
def test_each_claim_is_judged_alone() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate("a", gpu=True)
        called = await scene.allocate("b", gpu=False)
        await scene.start("p", "a", "b")
        assert scene.drivers[DRIVER].calls == [("prepare", (called.metadata.uid,))]
        assert scene.skips() == 1

    play(act, drivers=BOTH)


@statement("5945-16", "5945-38")
def test_what_the_driver_says_later_changes_nothing_for_a_claim() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.publish(True)
        await scene.allocate(gpu=True)
        await scene.publish(False)
        assert (await scene.start()).status.phase == "Running"
        await scene.delete()
        assert await scene.is_gone()
        assert scene.calls() == []

    play(act, drivers=BOTH)


@statement("5945-39")
def test_a_claim_from_before_the_driver_left_needs_the_driver() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.publish(None)
        await scene.allocate(gpu=None)
        await scene.publish(True)
        pod = await scene.start()
        assert pod.status.phase == "Pending"
        assert await scene.told() == [
            f"Failed to prepare dynamic resources: prepare dynamic resources: DRA driver {DRIVER} is not registered"
        ]

    play(act)


@statement("5945-40")
@pytest.mark.parametrize("has_driver", [False, True])
def test_an_allocator_that_does_not_copy_leaves_the_kubelet_looking_for_a_driver(has_driver: bool) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.publish(True)
        await scene.allocate(gpu=None)
        await scene.start()
        assert await scene.phase() == ("Running" if has_driver else "Pending")
        assert bool(await scene.told()) != has_driver, "one that does nothing helps"

    play(act, drivers=(present(),) if has_driver else ())


@statement("5945-55")
def test_a_device_that_should_have_been_prepared_is_missing_in_its_container() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True)
        pod = await scene.start()
        assert pod.status.phase == "Running"
        assert scene.cdi_ids(pod) == ()

    play(act, drivers=BOTH)


# -- what is kept


@statement("5945-23", "5945-22")
@pytest.mark.parametrize("said", [True, ["*"]])
def test_what_was_decided_is_checkpointed_and_survives_a_restart(said: Any) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=said)
        await scene.start()
        assert scene.skipped() == ["*"]
        await scene.restart()
        assert scene.skipped() == ["*"]
        await scene.patch_claim("c", {"allocation": None, "reservedFor": None})
        await scene.delete()
        assert await scene.is_gone()
        assert scene.skips("unprepare") == 1
        assert scene.checkpoint() == []

    play(act)


@statement("5945-24", "5945-43", "5945-U8", "5945-E3.2c")
def test_an_older_kubelet_reads_a_newer_checkpoint_and_expects_the_driver() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True)
        await scene.start()
        [newer] = scene.checkpoint()
        await scene.restart(version="1.36", feature_gates="")
        assert await scene.phase() == "Running", "the kubelet starts, and the pod goes on"
        [kept] = scene.kubelet.host.nodes.agents["n1"].dra.claims
        assert (kept.name, [*kept.pods]) == ("c", [*newer["PodUIDs"]])
        assert kept.drivers[DRIVER].skipped == ()
        await scene.delete(seconds=30)
        assert not await scene.is_gone(), "there is no driver to unprepare the claim"
        await scene.restart(version="1.36", feature_gates="", drivers=scene.with_driver())
        await scene.world.pass_time(5)
        assert await scene.is_gone()
        assert scene.calls() == ["unprepare"]

    play(act)


@statement("5945-25", "5945-42", "5945-U8")
def test_a_newer_kubelet_reads_an_older_checkpoint_and_calls_the_driver() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        assert "skipNodeOperations" not in scene.checkpoint()[0]["DriverState"][DRIVER]
        await scene.restart(version="1.37", feature_gates=ON)
        assert await scene.phase() == "Running"
        assert scene.calls() == ["prepare"]
        await scene.delete()
        assert await scene.is_gone()
        assert scene.calls() == ["prepare", "unprepare"]
        assert scene.skips("unprepare") == 0

    play(act, version="1.36", gates="", drivers=BOTH)


# -- the kubelet's gate is off


@statement("5945-26", "5945-28", "5945-29", "5945-31", "5945-44", "5945-U5", "5945-U8", "5945-E3.2b")
def test_with_the_gate_off_what_was_skipped_stays_so_and_the_pod_ends_without_a_driver() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True)
        await scene.start()
        await scene.restart(feature_gates=OFF)
        assert await scene.phase() == "Running", "what runs is not admitted again"
        [kept] = scene.kubelet.host.nodes.agents["n1"].dra.claims
        assert kept.drivers[DRIVER].skipped == ("*",)
        assert scene.skipped() == ["*"]
        await scene.delete()
        assert await scene.is_gone()
        assert scene.skips("unprepare") == 1
        assert scene.calls() == []

    play(act, drivers=BOTH)


@statement("5945-27", "5945-44", "5945-U5")
@pytest.mark.parametrize(
    ("said", "gate"), [(True, "DRAOptionalNodePreparation"), (["*"], "DRAOptionalNodeOperations")]
)
def test_with_the_gate_off_a_pod_that_passed_admission_is_not_started(said: Any, gate: str) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=said)
        # Admission cannot read the claim, so it lets the pod pass.
        scene.lose_first_read()
        pod = await scene.start()
        assert pod.status.phase == "Pending"
        assert scene.requests == []
        [text] = await scene.told()
        assert text == (
            "Failed to prepare dynamic resources: prepare dynamic resources: ResourceClaim c: "
            f"DRAOptionalNodePreparationDisabled: {gate} feature gate is disabled on kubelet"
        )
        assert scene.calls() == []
        await scene.delete()
        assert await scene.is_gone()

    play(act, gates=OFF, drivers=BOTH)


@statement("5945-30", "5945-44", "5945-U7")
@pytest.mark.parametrize("said", [True, [True, False], ["*"]])
def test_with_the_gate_off_admission_refuses_a_pod_that_needs_the_feature(said: Any) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=said)
        pod = await scene.start()
        assert (pod.status.phase, pod.status.reason) == ("Failed", "PodFeatureUnsupported")
        assert pod.status.message == (
            f"Pod was rejected: Pod requires node features that are not available: {FEATURE}"
        )
        assert scene.requests == []
        assert await scene.told() == []

    play(act, gates=OFF, drivers=BOTH)


@statement("5945-30", "5945-U7")
@pytest.mark.parametrize("gates", [ON, OFF])
def test_admission_takes_pods_that_do_not_need_the_feature_and_pods_where_it_is_declared(gates: str) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=gates == ON)
        assert (await scene.start()).status.phase == "Running"

    play(act, gates=gates, drivers=BOTH)


# -- older control planes, and on, off, on


@statement("5945-41", part="kubelet")
def test_with_an_older_control_plane_the_field_is_absent_and_the_driver_is_called() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True)  # which an API server of 1.36 does not know, and drops
        assert (await scene.claim("c")).status.allocation.devices.results[0].skip_node_operations is None  # type: ignore[union-attr]
        await scene.start()
        assert scene.calls() == ["prepare"]

    play(act, control_version="1.36", control_gates="", drivers=BOTH)


@statement("5945-47", part="kubelet")
def test_claims_allocated_while_the_gate_was_off_keep_calling_the_driver_when_it_is_on_again() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        await scene.restart(feature_gates=ON)
        await scene.delete()
        assert await scene.is_gone()
        assert scene.calls() == ["prepare", "unprepare"]
        await scene.start("q")
        assert scene.calls() == ["prepare", "unprepare", "prepare"]
        assert (await scene.claim("c")).status.allocation.devices.results[0].skip_node_operations is None  # type: ignore[union-attr]

    play(act, gates=OFF, drivers=BOTH)


# -- cost, trouble, and an API server that is away


@statement("5945-51")
def test_trouble_shows_in_the_duration_of_operations_and_in_an_event() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start(seconds=1)
        metrics = scene.kubelet.metrics()
        assert (
            'dra_operations_duration_seconds_count{is_error="true",operation_name="PrepareResources"} 1.0'
            in metrics
        )
        assert [reason for reason, _ in await scene.world.events("p") if reason.startswith("Failed")] == [
            FAILED
        ]

    play(act)


@statement("5945-52")
def test_preparing_a_skipped_claim_takes_no_time_and_does_not_fail() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True)
        await scene.start()
        metrics = scene.kubelet.metrics()
        name = "dra_operations_duration_seconds"
        assert f'{name}_count{{is_error="false",operation_name="PrepareResources"}} 1.0' in metrics
        assert f'{name}_sum{{is_error="false",operation_name="PrepareResources"}} 0.0' in metrics
        assert 'is_error="true"' not in metrics
        assert "dra_grpc_operations_duration_seconds_count" not in metrics

    play(act)


@statement("5945-53")
def test_without_an_api_server_skipped_claims_are_unprepared() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=True)
        await scene.start()
        await scene.delete(seconds=0.0)
        await scene.kubelet.cut_off()
        await scene.world.pass_time(20)
        assert scene.checkpoint() == []
        assert scene.skips("unprepare") == 1
        scene.kubelet.reconnect()
        await scene.world.pass_time(60)
        assert await scene.is_gone()

    play(act)


@statement("5945-54")
@pytest.mark.parametrize("said", [True, None])
@pytest.mark.parametrize("gates", [ON, OFF])
def test_the_kubelet_reads_a_claim_once_whatever_is_skipped(said: Said, gates: str) -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=said)
        await scene.start()
        await scene.delete()
        reads = [call for call in scene.kubelet.wire.calls if "/resource.k8s.io/" in call.path]
        assert [(call.method, call.path.rpartition("/")[2], call.status) for call in reads] == [
            ("GET", "c", 200)
        ]

    play(act, gates=gates, drivers=BOTH)
