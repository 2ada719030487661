"""Pods that have to leave, with the controller at work on a real API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.meta import ObjectMeta
from nodeward.cluster.identities import controller_client
from nodeward.controllers.runner import Runner
from nodeward.machinery.clock import SeededChance
from nodeward.machinery.transport import Request, Response
from tests.apiserver.running import settings
from tests.controllers.node_lifecycle.fleet import ALL_GATES, TAINT_EVICTION, Fleet
from tests.controllers.node_lifecycle.fleet import run as run_fleet

A = Taint(key="example.com/a", effect="NoExecute")
B = Taint(key="example.com/b", effect="NoExecute")


def run(
    main: Callable[[Fleet], Awaitable[None]], *, gates: str = ALL_GATES, controller_gates: str | None = None
) -> None:
    run_fleet(main, TAINT_EVICTION, gates=gates, controller_gates=controller_gates)


def tolerate(taint: Taint, seconds: int | None = None) -> Toleration:
    return Toleration(key=taint.key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)


def at_least(number: str, seconds: int | None = None) -> Toleration:
    return Toleration(key=A.key, operator="Gt", value=number, effect="NoExecute", toleration_seconds=seconds)


def level(value: str) -> Taint:
    return Taint(key=A.key, value=value, effect="NoExecute")


async def told(fleet: Fleet) -> list[str]:
    """What was told of pods, in short."""
    found = await fleet.events("taint-eviction-controller", "TaintManagerEviction")
    return [each.removeprefix("Normal TaintManagerEviction ") for each in found]


def test_a_pod_that_does_not_put_up_with_a_taint_goes_at_once_and_says_why() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n")
        await fleet.run_pod("other", "n", tolerate(A))
        # Held by a finalizer, so that it can still be looked at.
        body = {"metadata": {"finalizers": ["example.com/look"]}}
        await fleet.client.patch(Pod, "p", body, namespace="default")
        await fleet.taint("n", A)
        await fleet.pass_time(0.1)
        pod = await fleet.client.get(Pod, "p", "default")
        assert pod.metadata.deletion_timestamp is not None
        (condition,) = (each for each in pod.status.conditions if each.type == "DisruptionTarget")
        assert (condition.status, condition.reason, condition.message) == (
            "True",
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        )
        assert condition.observed_generation == 1
        assert await told(fleet) == ["p: Marking for deletion Pod default/p"]
        metrics = fleet.cluster.runner.metrics
        assert metrics.counter("taint_eviction_controller_pod_deletions_total", "").value() == 1
        name = "taint_eviction_controller_pod_deletion_duration_seconds"
        assert metrics.histogram(name, "", ()).of().counts[0] == 1
        await fleet.pass_time(3600)
        assert await fleet.pods() == ["other"]

    run(main)


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([tolerate(A)], None),
        ([tolerate(A, 30)], 30),
        ([tolerate(A, 0)], 0),
        ([tolerate(B)], 0),
        ([tolerate(A, 30), tolerate(A, 5)], 30),
        ([Toleration(operator="Exists")], None),
        ([Toleration(operator="Exists", toleration_seconds=20, effect="NoExecute")], 20),
        ([Toleration(key=A.key, operator="Exists", effect="NoSchedule")], 0),
    ],
)
def test_how_long_a_pod_stays(tolerations: list[Toleration], seconds: int | None) -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n", *tolerations)
        await fleet.taint("n", A)
        if seconds:
            await fleet.pass_time(seconds - 0.1)
            assert await fleet.pods() == ["p"]
            await fleet.pass_time(0.2)
        else:
            await fleet.pass_time(1000 if seconds is None else 0.1)
        assert await fleet.pods() == (["p"] if seconds is None else [])

    run(main)


def test_a_taint_that_goes_in_time_takes_the_deadline_along() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n", tolerate(A, 30))
        await fleet.taint("n", A)
        await fleet.pass_time(20)
        await fleet.taint("n")
        await fleet.pass_time(1000)
        assert await fleet.pods() == ["p"]
        assert await told(fleet) == ["p: Cancelling deletion of Pod default/p"]
        await fleet.taint("n", A)
        await fleet.pass_time(29)
        assert await fleet.pods() == ["p"]
        await fleet.pass_time(2)
        assert await fleet.pods() == []

    run(main)


def test_a_second_taint_with_a_shorter_time_counts() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n", tolerate(A, 300), tolerate(B, 10))
        await fleet.taint("n", A)
        await fleet.pass_time(100)
        await fleet.taint("n", A, B)
        await fleet.pass_time(9)
        assert await fleet.pods() == ["p"]
        await fleet.pass_time(2)
        assert await fleet.pods() == []

    run(main)


def test_a_pod_that_comes_later_has_its_own_time() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.taint("n", A)
        await fleet.run_pod("early", "n", tolerate(A, 60))
        await fleet.pass_time(40)
        await fleet.run_pod("late", "n", tolerate(A, 60))
        await fleet.run_pod("bound", "", tolerate(A, 60))
        await fleet.client.bind("bound", "default", "n")
        await fleet.pass_time(21)
        assert await fleet.pods() == ["bound", "late"]
        await fleet.pass_time(40)
        assert await fleet.pods() == []

    run(main)


def test_a_toleration_added_in_time_lets_the_pod_stay() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n", tolerate(B), tolerate(A, 30))
        await fleet.taint("n", A)
        await fleet.pass_time(10)
        pod = await fleet.client.get(Pod, "p", "default")
        for each in pod.spec.tolerations:
            if each.key == A.key:
                each.toleration_seconds = 90
        await fleet.client.update(pod)
        await fleet.pass_time(79)
        assert await fleet.pods() == ["p"]
        await fleet.pass_time(2)
        assert await fleet.pods() == []

    run(main)


def test_a_pod_that_is_deleted_meanwhile_is_left_alone_and_its_successor_is_another() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n", tolerate(A, 30))
        await fleet.taint("n", A)
        await fleet.pass_time(20)
        await fleet.client.delete(Pod, "p", "default", grace_period=0)
        await fleet.run_pod("p", "n", tolerate(A, 30))
        await fleet.pass_time(29)
        assert await fleet.pods() == ["p"]
        await fleet.pass_time(2)
        assert await fleet.pods() == []
        assert await told(fleet) == ["p: Marking for deletion Pod default/p"]

    run(main)


def test_a_node_that_is_deleted_does_not_stop_the_clock_and_one_that_returns_clean_does() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "m")
        for name in ("n", "m"):
            await fleet.run_pod(f"p-{name}", name, tolerate(A, 60))
            await fleet.taint(name, A)
        await fleet.pass_time(10)
        for name in ("n", "m"):
            await fleet.client.delete(Node, name)
        fleet.cut_off("n", "m")
        await fleet.pass_time(10)
        await fleet.client.create(Node(metadata=ObjectMeta(name="m")))
        await fleet.pass_time(100)
        assert await fleet.pods() == ["p-m"]

    run(main)


def test_a_controller_that_starts_later_gives_everybody_the_whole_time() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        await fleet.run_pod("p", "n", tolerate(A, 60))
        await fleet.run_pod("q", "n")
        await fleet.cluster.runner.stop()
        await fleet.taint("n", A)
        await fleet.pass_time(50)
        server, clock = fleet.cluster.server, fleet.clock
        second = Runner(
            lambda name: controller_client(server, name),
            clock,
            SeededChance(4),
            gates=settings(gates=ALL_GATES).gates,
            controllers=TAINT_EVICTION,
        )
        await second.start()
        await fleet.pass_time(59)
        assert await fleet.pods() == ["p"]
        await fleet.pass_time(2)
        assert await fleet.pods() == []
        await second.stop()

    run(main)


def test_a_number_that_falls_past_the_threshold_drives_the_pod_away() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", taints=(level("950"),))
        await fleet.run_pod("strict", "n", at_least("900"))
        await fleet.run_pod("patient", "n", at_least("900"), at_least("500", 60))
        await fleet.run_pod("easy", "n", at_least("100"))
        await fleet.pass_time(100)
        assert await fleet.pods() == ["easy", "patient", "strict"]
        await fleet.taint("n", level("900"))
        await fleet.pass_time(59)
        assert await fleet.pods() == ["easy", "patient"]
        await fleet.pass_time(2)
        assert await fleet.pods() == ["easy"]

    run(main)


def test_with_this_components_gate_off_pods_that_relied_on_numbers_go_and_others_stay() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", taints=(level("950"),))
        await fleet.run_pod("numeric", "n", at_least("900"))
        await fleet.run_pod("plain", "n", tolerate(A))
        await fleet.pass_time(1)
        assert await fleet.pods() == ["plain"]

    run(main, controller_gates="")


def test_what_the_server_refuses_is_tried_again_and_told_once() -> None:
    async def main(fleet: Fleet) -> None:
        refused: list[str] = []

        async def alter(request: Request, ask: Callable[[Request], Awaitable[Response]]) -> Response:
            if request.method in ("PATCH", "DELETE") and "/pods/" in request.path and len(refused) < 7:
                refused.append(request.method)
                return Response(status=500, headers={}, body=b"{}")
            return await ask(request)

        fleet.cluster.transports["node-controller"].alter = alter
        await fleet.register("n")
        await fleet.run_pod("p", "n")
        await fleet.taint("n", A)
        await fleet.pass_time(10)
        assert (len(refused), await fleet.pods()) == (7, [])
        assert await told(fleet) == ["p: Marking for deletion Pod default/p"]

    run(main)


def test_a_pod_whose_deletion_was_refused_stays_if_the_taint_goes_meanwhile() -> None:
    async def main(fleet: Fleet) -> None:
        async def alter(request: Request, ask: Callable[[Request], Awaitable[Response]]) -> Response:
            if request.method == "DELETE":
                return Response(status=500, headers={}, body=b"{}")
            return await ask(request)

        await fleet.register("n")
        await fleet.run_pod("p", "n")
        fleet.cluster.transports["node-controller"].alter = alter
        await fleet.taint("n", A)
        await fleet.pass_time(5)
        await fleet.taint("n")
        await fleet.pass_time(5)
        fleet.cluster.transports["node-controller"].alter = None
        await fleet.pass_time(1000)
        assert await fleet.pods() == ["p"]
        assert await told(fleet) == [
            "p: Marking for deletion Pod default/p",
            "p: Cancelling deletion of Pod default/p",
        ]

    run(main)


def test_many_timers_end_each_at_its_moment() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n")
        for number in range(150):
            await fleet.run_pod(f"p{number:03}", "n", tolerate(A, 10 + number % 3))
        await fleet.taint("n", A)
        await fleet.pass_time(9)
        assert len(await fleet.pods()) == 150
        for left in (100, 50, 0):
            await fleet.pass_time(1.01 if left == 100 else 1)
            assert len(await fleet.pods()) == left

    run(main)
