"""The DRA manager through the real host: shared claims, claims that may not be used, drivers that fail, restarts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeward.api.codec import read
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.checkpoint import CheckpointCorrupt
from nodeward.kubelet.dra.claim_checkpoint import DRA_STATE_FILE
from nodeward.kubelet.dra.described_drivers import ALWAYS
from tests.keps.kep5945 import DRIVER, OTHER, DRAScene, play, present
from tests.rules.devices.allocating import devices, slice_of

PREFIX = "Failed to prepare dynamic resources: prepare dynamic resources: "


def unbound(name: str = "p", **reference: Any) -> Pod:
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "c", **(reference or {"resourceClaimName": "c"})}],
            "containers": [{"name": "m", "image": "image", "resources": {"claims": [{"name": "c"}]}}],
        },
    }
    return read(json.dumps(tree).encode(), Pod)


def test_a_claim_of_two_pods_is_prepared_once_and_unprepared_after_the_last() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        for name in ("p", "q"):
            assert (await scene.start(name)).status.phase == "Running"
        assert scene.calls() == ["prepare"]
        assert len(scene.checkpoint()[0]["PodUIDs"]) == 2
        await scene.delete("p")
        assert await scene.is_gone("p")
        assert scene.calls() == ["prepare"]
        assert len(scene.checkpoint()[0]["PodUIDs"]) == 1
        await scene.delete("q")
        assert scene.calls() == ["prepare", "unprepare"]
        assert scene.checkpoint() == []

    play(act, drivers=(present(),))


def test_two_pods_that_start_at_once_prepare_their_claim_once() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        for name in ("p", "q"):
            await scene.start(name, seconds=0.0)
        await scene.world.pass_time(10)
        assert [await scene.phase("p"), await scene.phase("q")] == ["Running", "Running"]
        assert scene.calls() == ["prepare"]

    play(act, drivers=(present(prepare_seconds=3),))


def test_all_claims_of_a_pod_are_prepared_with_one_call_per_driver() -> None:
    async def act(scene: DRAScene) -> None:
        claims = [await scene.allocate(name, gpu=None, nic=None) for name in ("a", "b")]
        await scene.start("p", "a", "b")
        uids = tuple(each.metadata.uid for each in claims)
        assert scene.drivers[DRIVER].calls == [("prepare", uids)]
        assert scene.drivers[OTHER].calls == [("prepare", uids)]

    play(act, drivers=(present(), present(OTHER)))


def test_a_claim_that_is_not_reserved_for_the_pod_is_not_prepared() -> None:
    async def act(scene: DRAScene) -> None:
        found = await scene.allocate(gpu=None)
        pod = await scene.world.client.create(unbound())
        await scene.bind(pod)
        uid = found.metadata.uid
        assert await scene.told() == [
            f"{PREFIX}pod p ({pod.metadata.uid}) is not allowed to use ResourceClaim c ({uid})"
        ]
        assert scene.calls() == []

    play(act, drivers=(present(),))


def test_a_claim_that_is_being_unprepared_is_not_given_to_another_pod() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        await scene.delete(seconds=5)
        await scene.start("q")
        assert await scene.told("q") == [f"{PREFIX}ResourceClaim c is being unprepared"]
        await scene.world.pass_time(60)
        assert await scene.is_gone()
        assert await scene.phase("q") == "Running"

    play(act, drivers=(present(failing_unprepares=2),))


def test_a_claim_that_is_not_there_is_not_prepared() -> None:
    async def act(scene: DRAScene) -> None:
        pod = await scene.world.client.create(unbound(resourceClaimName="nowhere"))
        await scene.bind(pod)
        [text] = await scene.told()
        assert (
            text == f'{PREFIX}fetch ResourceClaim nowhere: resourceclaims.resource.k8s.io "nowhere" not found'
        )

    play(act, drivers=(present(),))


def test_a_generated_claim_must_belong_to_its_pod() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        pod = await scene.world.client.create(unbound(resourceClaimTemplateName="t"))
        await scene.reserve("c", pod)
        status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "c"}]}
        await scene.world.client.patch(
            Pod, "p", {"status": status}, namespace="default", subresource="status"
        )
        await scene.bind(pod)
        assert await scene.told() == [
            f"{PREFIX}ResourceClaim default/c was not created for Pod default/p (Pod is not owner)"
        ]

    play(act, drivers=(present(),))


def test_a_driver_that_fails_is_called_again_and_again_with_growing_waits() -> None:
    async def act(scene: DRAScene) -> None:
        claim = await scene.allocate(gpu=None)
        await scene.start(seconds=5)
        assert await scene.told() == [
            f"{PREFIX}NodePrepareResources failed for ResourceClaim {claim.metadata.name}: the simulated driver fails"
        ]
        assert len(scene.calls()) == 1
        await scene.world.pass_time(10)
        assert len(scene.calls()) == 2
        await scene.world.pass_time(20)
        assert len(scene.calls()) == 3
        await scene.world.pass_time(40)
        assert await scene.phase() == "Running"
        assert scene.calls() == ["prepare"] * 4

    play(act, drivers=(present(failing_prepares=3),))


def test_a_pod_ends_only_when_its_driver_has_unprepared_its_claim() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        await scene.delete(seconds=5)
        assert not await scene.is_gone()
        assert (await scene.world.pod("p")).status.phase == "Running", "its status is not final"
        assert len(scene.checkpoint()) == 1
        await scene.world.pass_time(30)
        assert await scene.is_gone()
        assert scene.calls() == ["prepare", "unprepare", "unprepare", "unprepare"]

    play(act, drivers=(present(failing_unprepares=2),))


def test_a_driver_that_does_not_answer_costs_one_call_its_time() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate("slow", gpu=None)
        await scene.allocate("quick", nic=None)
        await scene.start("p", "slow")
        assert (await scene.start("q", "quick")).status.phase == "Running", "others do not wait"
        await scene.world.pass_time(45)
        assert await scene.told() == [
            f"{PREFIX}NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        ]
        metrics = scene.kubelet.metrics()
        assert f'driver_name="{DRIVER}",grpc_status_code="DeadlineExceeded"' in metrics

    play(act, drivers=(present(prepare_seconds=100), present(OTHER)))


def test_a_pod_that_is_deleted_while_its_claim_is_prepared_leaves_nothing_prepared() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start(seconds=2)
        await scene.delete(seconds=30)
        assert await scene.is_gone()
        assert scene.calls() == ["prepare", "unprepare"]
        assert not scene.drivers[DRIVER].prepared
        assert scene.requests == []

    play(act, drivers=(present(prepare_seconds=20),))


def test_a_pod_that_ran_before_a_restart_of_the_kubelet_is_not_prepared_again_and_keeps_its_devices() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        pod = await scene.start()
        before = scene.checkpoint()
        await scene.restart()
        assert scene.calls() == ["prepare"]
        assert scene.checkpoint() == before
        container = pod.spec.containers[0]
        assert scene.kubelet.host.nodes.agents["n1"].dra.cdi_ids(pod, container) == scene.cdi_ids(pod)
        await scene.delete()
        assert scene.calls() == ["prepare", "unprepare"]

    play(act, drivers=(present(),))


def test_claims_of_pods_that_went_while_no_kubelet_was_there_are_unprepared_within_a_minute() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        await scene.kubelet.stop()
        await scene.world.client.delete(Pod, "p", "default", grace_period=0)
        await scene.kubelet.start()
        await scene.world.pass_time(70)
        assert scene.calls() == ["prepare", "unprepare"]
        assert scene.checkpoint() == []

    play(act, drivers=(present(),))


def test_a_claim_that_was_made_anew_under_its_name_waits_for_the_old_one() -> None:
    async def act(scene: DRAScene) -> None:
        old = await scene.allocate(gpu=None)
        await scene.start()
        await scene.world.client.delete(Pod, "p", "default", grace_period=0)
        await scene.patch_claim("c", {"allocation": None, "reservedFor": None})
        await scene.world.client.delete(type(old), "c", "default")
        await scene.allocate(gpu=None)
        await scene.start("q")
        [text] = await scene.told("q")
        assert text == (
            f"{PREFIX}old ResourceClaim with same name c and different UID {old.metadata.uid} still exists "
            "(previous pod force-deleted?!)"
        )

    play(act, drivers=(present(failing_unprepares=ALWAYS),))


def test_when_the_api_server_does_not_answer_the_pod_starts_later() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        scene.lose_first_read()
        await scene.start()
        assert await scene.phase() == "Pending"
        [text] = await scene.told()
        assert text.startswith(f"{PREFIX}fetch ResourceClaim c: ")
        await scene.world.pass_time(10)
        assert await scene.phase() == "Running"

    play(act, drivers=(present(),))


def test_while_the_api_server_is_away_a_driver_unprepares_and_the_pod_is_gone_when_it_is_back() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        await scene.delete(seconds=0.0)
        await scene.kubelet.cut_off()
        await scene.world.pass_time(20)
        assert scene.calls() == ["prepare", "unprepare"]
        scene.kubelet.reconnect()
        await scene.world.pass_time(60)
        assert await scene.is_gone()

    play(act, drivers=(present(),))


def test_a_kubelet_does_not_start_with_a_corrupt_checkpoint_and_keeps_it() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.allocate(gpu=None)
        await scene.start()
        path = scene.world.root / "n1" / DRA_STATE_FILE
        path.write_bytes(path.read_bytes().replace(b"gpu.example", b"cpu.example"))
        with pytest.raises(CheckpointCorrupt, match="dra_manager_state"):
            await scene.restart()
        assert path.with_name(f"{DRA_STATE_FILE}.corrupt").exists()
        assert not path.exists()

    play(act, drivers=(present(),))


def test_slices_of_a_driver_that_is_gone_are_deleted_also_when_the_api_server_was_away() -> None:
    async def act(scene: DRAScene) -> None:
        await scene.publish(None)
        await scene.world.client.create(slice_of(devices(1), name="s2", nodeName="n2"))
        await scene.world.client.create(slice_of(devices(1), name="s3", driver=OTHER))
        await scene.kubelet.cut_off()
        scene.kubelet.host.nodes.agents["n1"].dra._gone(DRIVER)
        await scene.world.pass_time(5)
        scene.kubelet.reconnect()
        assert await scene.slices() == ["s1", "s2", "s3"]
        await scene.world.pass_time(70)
        assert await scene.slices() == ["s2", "s3"], "those of other nodes and drivers stay"

    play(act)
