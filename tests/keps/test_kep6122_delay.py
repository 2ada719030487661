"""KEP-6122 in a kubelet: how long removed CPUs stay with their container, and what changes when."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import HOUR_NS
from nodeward.base.errors import ConfigError
from nodeward.kubelet.cpu.static_cpus import StaticCPUs
from tests.keps.kep6122 import CPUScene, play, static_config
from tests.keps.ledger import statement
from tests.keps.test_kep6122_downward import a_pod


@statement("6122-7", "6122-19")
@pytest.mark.parametrize("delay", ["0s", ""])
def test_without_a_delay_the_allocation_itself_frees_the_cpus(delay: str) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        assert (scene.assigned(pod), scene.shared()) == ("1-2,11-12", "0,3-10,13-19")
        await scene.resize("p", "3")
        assert (scene.assigned(pod), scene.shared()) == ("1-2,11", "0,3-10,12-19")
        assert scene.left(pod) is None
        assert scene.moves == [], "containers are moved by the next pass"
        await scene.after_pass()
        assert [move.cpuset for move in scene.moves] == ["1-2,11"]

    play(act, delay=delay)


@statement("6122-8")
def test_all_pods_of_the_kubelet_are_delayed() -> None:
    async def act(scene: CPUScene) -> None:
        pods = [await scene.run(name, "2", grow=("4",)) for name in ("a", "b")]
        for pod in pods:
            await scene.resize(pod.metadata.name, "2")
        assert [scene.left(pod) is not None for pod in pods] == [True, True]

    play(act)


@statement("6122-9")
def test_without_the_gate_for_the_resize_only_zero_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    async def act(scene: CPUScene) -> None:
        gates = {"feature_gates": "CPUManagerPolicyAlphaOptions=true"}
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(ConfigError, match='option "scale-delay-time" must be 0s unless'),
        ):
            await scene.restart(config=static_config("5s"), **gates)
        assert "InPlacePodVerticalScalingExclusiveCPUs" in caplog.text
        await scene.kubelet.stop()
        await scene.restart(config=static_config("0s"), **gates)
        assert scene.manager.cpus.resizing is None

    play(act)


@statement("6122-11", "6122-63")
def test_cpus_go_when_the_delay_is_over_whether_the_container_is_ready_or_not() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        await scene.resize("p", "3")
        # Nothing in the container has read its file, and nothing can answer.
        await scene.after_pass()
        await scene.after_pass()
        assert await scene.in_force(pod) == "1-2,11"
        assert (await scene.world.pod("p")).status.container_statuses[0].restart_count == 0

    play(act)


@statement("6122-15")
def test_less_than_assigned_waits_and_as_much_is_a_scale_up() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        await scene.resize("p", "3")
        assert scene.left(pod) is not None
        await scene.resize("p", "4")
        assert scene.left(pod) is None
        assert (scene.shown(pod), scene.assigned(pod)) == ("1-2,11-12", "1-2,11-12")

    play(act)


@statement("6122-16")
def test_the_timer_starts_after_the_new_set_is_worked_out() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        before = scene.now
        await scene.resize("p", "3", seconds=0.5)
        left = scene.left(pod)
        assert left is not None
        assert scene.now + left >= before + 5

    play(act)


@statement("6122-17")
@pytest.mark.parametrize("jump_ns", [-HOUR_NS, HOUR_NS])
def test_setting_the_wall_clock_does_not_change_the_delay(jump_ns: int) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        await scene.clock.sleep(8)
        await scene.resize("p", "3", seconds=1)
        scene.clock.start_ns += jump_ns  # type: ignore[misc]
        assert scene.left(pod) == 4
        await scene.after_pass()
        assert scene.moves == []
        await scene.after_pass()
        assert [move.cpuset for move in scene.moves] == ["1-2,11"]

    play(act)


@statement("6122-18")
def test_the_new_set_is_kept_beside_the_assignment_and_nothing_is_written() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        file = scene.root / "cpu_manager_state"
        before, shared = file.read_bytes(), scene.manager.cpus.state.default
        await scene.resize("p", "3")
        assert scene.shown(pod) == "1-2,11"
        assert file.read_bytes() == before
        assert scene.manager.cpus.state.default == shared
        assert str(scene.manager.cpus.state.assigned(pod.metadata.uid, "c")) == "1-2,11-12"

    play(act)


@statement("6122-20", "6122-58")
def test_a_scale_up_takes_its_cpus_at_once_and_is_applied_by_the_next_pass() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run()
        assert (scene.assigned(pod), scene.shared()) == ("1,11", "0,2-10,12-19")
        await scene.after_pass(8)
        await scene.resize("p", "5")
        assert (scene.assigned(pod), scene.shared()) == ("1-3,11-12", "0,4-10,13-19")
        assert scene.left(pod) is None
        await scene.after_pass()
        assert [move.cpuset for move in scene.moves] == ["1-3,11-12"]

    play(act, delay="10s")


@statement("6122-21", "6122-32")
@pytest.mark.parametrize("count", ["4", "6"])
def test_a_scale_up_to_what_it_had_or_more_ends_the_waiting(count: str) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        await scene.resize("p", "2")
        await scene.resize("p", count)
        assert scene.left(pod) is None
        assert len(CPUSet.parse(scene.assigned(pod))) == int(count)
        assert scene.shown(pod) == scene.assigned(pod)
        for _ in range(3):
            await scene.after_pass()
        expected = [] if count == "4" else [scene.assigned(pod)]
        assert [move.cpuset for move in scene.moves] == expected

    play(act)


@statement("6122-22", "6122-24")
def test_the_pass_after_the_delay_frees_the_cpus_writes_the_state_and_tells_the_runtime_once() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        await scene.resize("p", "3")
        await scene.after_pass()
        assert (scene.assigned(pod), scene.shared()) == ("1-2,11", "0,3-10,12-19")
        assert scene.left(pod) is None
        assert await scene.in_force(pod) == "1-2,11"
        for _ in range(3):
            await scene.after_pass()
        assert [move.cpuset for move in scene.moves] == ["1-2,11"]

    play(act)


@statement("6122-23", "6122-29")
def test_a_delay_that_is_running_at_a_pass_holds_the_set_back_until_the_next_one() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        begun = scene.now - 0.2  # of the last pass
        await scene.clock.sleep(7.8)
        await scene.resize("p", "3", seconds=0.0)
        await scene.after_pass()
        assert scene.moves == []
        assert (await scene.in_force(pod), scene.shown(pod)) == ("1-2,11-12", "1-2,11")
        await scene.after_pass()
        assert [round(move.at - begun) for move in scene.moves] == [20]

    play(act)


@statement("6122-28")
def test_a_delay_that_ends_between_two_passes_is_not_noticed() -> None:
    async def act(scene: CPUScene) -> None:
        await scene.run(grow=("4",))
        begun = scene.now - 0.2
        await scene.clock.sleep(1.8)
        await scene.resize("p", "3", seconds=0.0)
        await scene.after_pass()
        assert [round(move.at - begun) for move in scene.moves] == [10]

    play(act)


@statement("6122-30")
@pytest.mark.parametrize("delay", [0.5, 3.0, 10.0])
def test_the_real_delay_is_never_shorter_and_at_most_one_period_longer(delay: float) -> None:
    async def act(scene: CPUScene) -> None:
        await scene.run(grow=("4",))
        for phase in (0.0, 0.4, 2.7, 6.9, 9.3, 9.8):
            await scene.after_pass(phase)
            asked = scene.now
            await scene.resize("p", "2", seconds=25)
            (move,) = scene.moves
            assert delay <= move.at - asked <= delay + 10.2
            scene.moves.clear()
            await scene.resize("p", "4", seconds=25)
            scene.moves.clear()

    play(act, delay=f"{int(delay * 1000)}ms")


@statement("6122-25")
def test_an_exclusive_set_that_is_applied_makes_the_kubelet_look_at_the_pod_again() -> None:
    async def act(scene: CPUScene) -> None:
        looked: list[str] = []
        pods = scene.kubelet.host.pods
        real = pods.sync

        def sync(uid: str) -> None:
            looked.append(uid)
            real(uid)

        pods.sync = sync  # type: ignore[method-assign]
        shared = await scene.run("shared", "500m")
        pod = await scene.run("p", "2", grow=("4",))
        assert (looked, await scene.conditions()) == ([pod.metadata.uid], {})
        assert await scene.in_force(shared) == "0,3-10,13-19", "moved, too"
        await scene.resize("p", "3")
        await scene.after_pass()
        assert looked == [pod.metadata.uid] * 2
        assert await scene.conditions() == {}, "so that the resize is over at once"

    play(act)


@statement("6122-26", "6122-27")
def test_a_restart_inside_the_delay_works_it_out_again_with_a_fresh_timer() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        file = scene.root / "cpu_manager_state"
        before = file.read_bytes()
        await scene.resize("p", "3", seconds=9)
        assert file.read_bytes() == before, "neither set nor timer is stored"
        restarted = scene.now
        await scene.restart()
        assert file.read_bytes() == before
        left = scene.left(pod)
        assert left is not None
        assert scene.now + left >= restarted + 10
        assert scene.shown(pod) == "1-2,11"
        for _ in range(3):
            await scene.after_pass()
        (move,) = [each for each in scene.moves if each.cpuset == "1-2,11"]
        assert move.at >= restarted + 10
        assert [each.cpuset for each in scene.moves if each.at < restarted + 10] in ([], ["1-2,11-12"])
        assert await scene.conditions() == {}

    play(act, delay="10s")


@statement("6122-31", "6122-33")
@pytest.mark.parametrize(("second", "kept"), [("3", "1-2,11"), ("5", "1-3,11-12")])
def test_another_number_below_the_old_one_replaces_the_set_and_starts_the_delay_anew(
    second: str, kept: str
) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("6",))
        await scene.resize("p", "4", seconds=0.0)
        await scene.clock.sleep(4)
        asked = scene.now
        await scene.resize("p", second, seconds=0.0)
        assert scene.left(pod) == pytest.approx(10, abs=0.2)
        for _ in range(3):
            await scene.after_pass()
        assert [move.cpuset for move in scene.moves] == [kept]
        assert scene.moves[0].at >= asked + 10

    play(act, delay="10s")


@statement("6122-36")
def test_the_pod_sync_asks_the_container_manager_whether_the_sets_are_applied() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        asked: list[str] = []
        manager = scene.manager

        def never(uid: str) -> bool:
            asked.append(uid)
            return False

        manager.is_applied = never  # type: ignore[method-assign]
        await scene.resize("p", "6")
        await scene.after_pass()
        assert set(asked) == {pod.metadata.uid}
        assert "PodResizeInProgress" in await scene.conditions()
        manager.is_applied = lambda uid: StaticCPUs.is_applied(manager, uid)  # type: ignore[method-assign]
        scene.kubelet.host.pods.sync(pod.metadata.uid)
        await scene.clock.sleep(1)
        assert await scene.conditions() == {}

    play(act)


@statement("6122-43", "6122-47", "6122-60")
def test_the_file_shows_the_new_set_first_and_the_runtime_applies_it_then() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("6",))
        for count, kept in (("5", "1-3,11-12"), ("3", "1,3,11"), ("2", "1,11")):
            await scene.resize("p", count)
            assert scene.shown(pod) == kept
            assert scene.assigned(pod) != kept
            await scene.after_pass()
            assert scene.shown(pod) == scene.assigned(pod) == kept
        assert [(move.cpuset, move.shown) for move in scene.moves] == [
            (kept, kept) for kept in ("1-3,11-12", "1,3,11", "1,11")
        ]

    play(act, delay="500ms")


@statement("6122-60")
@pytest.mark.parametrize("delay", ["1s", "0s"])
@pytest.mark.parametrize("has_restart", [False, True])
def test_a_file_that_cannot_be_written_holds_the_set_back(delay: str, has_restart: bool) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        volume = scene.root / "pods" / pod.metadata.uid / "volumes" / "kubernetes.io~downward-api" / "info"
        # A directory in the way of the link that every write makes.
        obstacle = volume / "..data_tmp"
        obstacle.mkdir()
        (obstacle / "x").write_text("")
        await scene.resize("p", "3")
        if has_restart:
            await scene.restart()
        await scene.after_pass()
        await scene.after_pass()
        assert (scene.moves, scene.shown(pod)) == ([], "1-2,11-12")
        assert scene.assigned(pod) == ("1-2,11" if delay == "0s" else "1-2,11-12"), (
            "with a delay they are held"
        )
        assert "FailedCPUSetNotice" in {reason for reason, _ in await scene.world.events("p")}
        (obstacle / "x").unlink()
        obstacle.rmdir()
        await scene.clock.sleep(30)
        assert [(move.cpuset, move.shown) for move in scene.moves] == [("1-2,11", "1-2,11")]

    play(act, delay=delay)


@statement("6122-59")
def test_the_file_always_equals_the_set_that_waits_or_the_assignment() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("6",))
        uid = pod.metadata.uid
        for count in ("4", "2", "5", "8", "3"):
            await scene.resize("p", count)
            for _ in range(25):
                await scene.clock.sleep(0.5)
                pending = scene.manager.cpus.resizing
                assert pending is not None
                waiting = pending.delays.waiting(uid, "c")
                expected = scene.assigned(pod) if waiting is None else str(waiting.cpus)
                assert scene.shown(pod) == expected

    play(act)


@statement("6122-48", "6122-49")
def test_the_last_added_cpu_goes_and_the_first_ones_stay() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run()
        assert scene.assigned(pod) == "1,11"
        await scene.resize("p", "4")
        assert scene.assigned(pod) == "1-2,11-12"
        await scene.resize("p", "3", seconds=25)
        assert await scene.in_force(pod) == "1-2,11"
        for count in ("9", "2", "7", "2"):
            await scene.resize("p", count, seconds=25)
            assert CPUSet.parse("1,11") <= CPUSet.parse(await scene.in_force(pod))
            assert len(CPUSet.parse(await scene.in_force(pod))) == int(count)
        await scene.resize("p", "1", seconds=25)
        assert await scene.conditions() == {"PodResizePending": "Infeasible"}
        assert await scene.in_force(pod) == "1,11"

    play(act)


@statement("6122-54")
def test_switching_the_option_off_does_no_harm_and_on_again_delays_again() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("6",))
        await scene.resize("p", "4")
        await scene.restart(config=static_config(""))
        assert scene.assigned(pod) == scene.shown(pod) == "1-2,11-12", "no delay, so no waiting"
        await scene.after_pass()
        assert await scene.in_force(pod) == "1-2,11-12"
        await scene.restart(config=static_config("5s"))
        await scene.resize("p", "3")
        assert scene.left(pod) is not None
        await scene.after_pass()
        assert await scene.in_force(pod) == "1-2,11"
        assert (await scene.world.pod("p")).status.container_statuses[0].restart_count == 0

    play(act)


@statement("6122-56")
def test_the_state_file_is_the_same_with_and_without_the_option() -> None:
    found: list[list[Any]] = []

    async def act(scene: CPUScene) -> None:
        pod = await scene.run("p", "2", "1")
        written = []
        for counts in (("4", "2"), ("3", "2"), ("2", "1")):
            await scene.resize("p", *counts, seconds=25)
            text = (scene.root / "cpu_manager_state").read_text()
            data = scene.state()["data"].replace(pod.metadata.uid, "uid")
            assert "delay" not in text
            written.append(data)
        found.append(written)

    for delay in ("", "5s"):
        play(act, delay=delay)
    assert found[0] == found[1]


@statement("6122-57")
@pytest.mark.parametrize("value", ["11s", "-1s", "soon"])
def test_a_kubelet_with_a_bad_value_does_not_start_and_containers_keep_their_cpus(value: str) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        before = (scene.root / "cpu_manager_state").read_bytes()
        with pytest.raises(ConfigError, match="scale-delay-time"):
            await scene.restart(config=static_config(value))
        await scene.clock.sleep(60)
        assert scene.moves == []
        assert await scene.in_force(pod) == "1-2,11-12"
        assert (scene.root / "cpu_manager_state").read_bytes() == before
        await scene.kubelet.stop()
        await scene.restart(config=static_config("5s"))
        assert (await scene.world.pod("p")).status.phase == "Running"

    play(act)


@statement("6122-66")
def test_one_can_see_it_at_work(caplog: pytest.LogCaptureFixture) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        assert "scale-delay-time 5s" in caplog.text
        await scene.resize("p", "3")
        noticed, differing = scene.now, 0.0
        while await scene.in_force(pod) != scene.shown(pod):
            await scene.clock.sleep(0.5)
            differing = scene.now - noticed
        assert 5 <= differing <= 16
        text = scene.kubelet.metrics()
        assert "kubelet_cpu_manager_scale_down_delay_seconds_count 1.0" in text

    with caplog.at_level(logging.INFO):
        play(act)


@statement("6122-62")
def test_no_other_requests_are_made_than_without_a_delay() -> None:
    found: list[set[tuple[str, str]]] = []

    async def act(scene: CPUScene) -> None:
        await scene.run(grow=("4",))
        calls = scene.kubelet.wire.calls
        calls.clear()
        await scene.resize("p", "3", seconds=25)
        found.append({(call.method, call.path.partition("/events")[0]) for call in calls})

    for delay in ("", "5s"):
        play(act, delay=delay)
    assert found[0] == found[1]


@statement("6122-70")
@pytest.mark.parametrize("version", ["1.36", "1.37", "1.38"])
def test_the_delay_does_not_depend_on_the_control_plane(version: str) -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.started(a_pod("p", cpus=("2",)))
        await scene.resize("p", "4", seconds=12)
        await scene.resize("p", "3")
        assert scene.left(pod) is not None
        await scene.after_pass()
        await scene.after_pass()
        assert await scene.in_force(pod) == "1-2,11"

    play(act, server_version=version, server_gates="")


@statement("6122-72", "6122-U2")
def test_the_whole_flow_in_order() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        await scene.clock.sleep(7.5)
        flow: list[str] = []

        async def look(what: str) -> None:
            waits = "waits" if scene.left(pod) is not None else "settled"
            progress = "in progress" if "PodResizeInProgress" in await scene.conditions() else "done"
            parts = (scene.assigned(pod), scene.shown(pod), await scene.in_force(pod))
            flow.append(f"{what}: {waits}, {progress}, {' '.join(parts)}")

        await look("before")
        await scene.resize("p", "3")
        await look("allocated")
        await scene.after_pass()
        await look("a pass")
        await scene.after_pass()
        await look("the next")
        assert flow == [
            "before: settled, done, 1-2,11-12 1-2,11-12 1-2,11-12",
            "allocated: waits, in progress, 1-2,11-12 1-2,11 1-2,11-12",
            "a pass: waits, in progress, 1-2,11-12 1-2,11 1-2,11-12",
            "the next: settled, done, 1-2,11 1-2,11 1-2,11",
        ]
        reasons = [reason for reason, _ in await scene.world.events("p")]
        order = ("ScaleDownDelayStarted", "CPUSetApplied", "ResizeCompleted")
        assert all(reason in reasons for reason in order)

    play(act)
