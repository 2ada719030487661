"""The runner keeps controllers going: failures delay a key, broken invariants stop a controller, nothing else stops."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nodeward.api.core_v1.cluster import Namespace, ServiceAccount
from nodeward.api.errors import ApiError, conflict, forbidden
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.cluster.identities import controller_client
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.controller import ControllerContext, ControllerDescriptor, Work
from nodeward.controllers.runner import Runner
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.machinery.workqueue import WorkQueue
from tests.controllers.cluster import cluster

Handle = Callable[[str], float | None]


class Scripted:
    """A controller with one queue that does what a test says."""

    def __init__(
        self, context: ControllerContext, keys: Sequence[str], handle: Handle, workers: int = 1
    ) -> None:
        self.clock = context.clock
        self.queue: WorkQueue[str] = WorkQueue(context.clock, name="scripted")
        self.calls: list[tuple[str, float]] = []
        self._workers = workers
        self._handle = handle
        self._begin_ns = context.clock.monotonic_ns()
        for key in keys:
            self.queue.add(key)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self.queue, self._look, workers=self._workers),)

    async def _look(self, key: str) -> float | None:
        self.calls.append((key, (self.clock.monotonic_ns() - self._begin_ns) / SECOND_NS))
        return self._handle(key)


class Made:
    """A registry line, and the controller it came to."""

    def __init__(self, keys: Sequence[str], handle: Handle, workers: int = 1) -> None:
        self.controllers: list[Scripted] = []

        def make(context: ControllerContext) -> Scripted:
            self.controllers.append(Scripted(context, keys, handle, workers))
            return self.controllers[-1]

        self.entry = ControllerDescriptor("scripted", make)

    def calls(self, key: str) -> list[float]:
        return [when for called, when in self.controllers[0].calls if called == key]


def test_a_failing_key_is_retried_later_each_time_and_forgotten_when_it_works() -> None:
    failures = ["x"] * 4

    def handle(key: str) -> None:
        if failures:
            failures.pop()
            raise conflict("", "pods", "p", "because")

    made = Made(["a"], handle)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[made.entry]) as each:
            await each.pass_time(60)
            assert made.calls("a") == pytest.approx([0, 0.005, 0.015, 0.035, 0.075])
            assert made.controllers[0].queue.num_requeues("a") == 0

    run_virtual(main)


@pytest.mark.parametrize(
    ("error", "is_worth_a_line"),
    [(conflict("", "pods", "p", "because"), False), (forbidden("", "pods", "p", "because"), True)],
)
def test_that_somebody_else_was_faster_is_not_worth_a_warning(
    caplog: pytest.LogCaptureFixture, error: ApiError, is_worth_a_line: bool
) -> None:
    failures = [error] * 4

    def handle(key: str) -> None:
        if failures:
            raise failures.pop()

    made = Made(["a"], handle)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[made.entry]) as each:
            await each.pass_time(60)
            assert len(made.calls("a")) == 5

    with caplog.at_level(logging.INFO, "nodeward.controllers.runner"):
        run_virtual(main)
    assert ("because" in caplog.text) == is_worth_a_line


def test_a_bug_in_a_handler_is_logged_with_its_place_and_costs_nobody_else_anything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handle(key: str) -> None:
        if key == "bad":
            raise ZeroDivisionError("oops")

    made = Made(["bad", "good"], handle)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[made.entry]) as each:
            await each.pass_time(0.004)
            assert len(made.calls("bad")) == 1
            assert len(made.calls("good")) == 1
            await each.pass_time(0.004)
            assert len(made.calls("bad")) == 2

    with caplog.at_level(logging.WARNING, "nodeward.controllers.runner"):
        run_virtual(main)
    assert "scripted: bad: oops" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_key_that_wants_another_look_gets_it_in_time() -> None:
    made = Made(["a"], lambda key: 90.0)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[made.entry]) as each:
            await each.pass_time(200)
            assert made.calls("a") == pytest.approx([0, 90, 180])

    run_virtual(main)


def test_a_broken_invariant_stops_that_controller_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def handle(key: str) -> None:
        raise InvariantBroken("two and two are five")

    made = Made(["a", "b"], handle, workers=2)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[made.entry, *CONTROLLERS]) as each:
            before = len(made.controllers[0].calls)
            made.controllers[0].queue.add("c")
            await each.create_namespace("later")
            assert made.controllers[0].queue.shutting_down
            assert len(made.controllers[0].calls) == before
            assert await each.exists(ServiceAccount, "default", "later")

    run_virtual(main)
    assert "scripted stops: two and two are five" in caplog.text


def test_a_failing_controller_does_not_keep_the_others_from_settling() -> None:
    def handle(key: str) -> None:
        raise conflict("", "pods", "p", "always")

    made = Made(["a"], handle)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[made.entry]):
            assert len(made.calls("a")) == 1

    run_virtual(main)


def test_an_informers_handler_that_raises_stops_everything_loudly(caplog: pytest.LogCaptureFixture) -> None:
    def make(context: ControllerContext) -> Scripted:
        def fail(namespace: Namespace) -> None:
            raise InvariantBroken(f"did not expect {namespace.metadata.name}")

        context.informers.informer(Namespace).add_handler(on_add=fail)
        return Scripted(context, ["a"], lambda key: None)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=[ControllerDescriptor("scripted", make)]):
            pass

    run_virtual(main)
    assert "no controller works any more" in caplog.text


def test_after_stop_nothing_is_done_and_a_new_runner_catches_up() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.runner.stop()
            await each.client.create(Namespace(metadata=ObjectMeta(name="missed")))
            await each.pass_time(60)
            assert not await each.exists(ServiceAccount, "default", "missed")
            second = Runner(
                lambda name: controller_client(each.server, name),
                clock,
                SeededChance(4),
                gates=each.server.env.gates,
            )
            await second.start()
            await second.settled()
            assert await each.exists(ServiceAccount, "default", "missed")
            await second.stop()

    run_virtual(main)


def test_every_registered_controller_has_a_name_with_rights_of_its_own() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            for entry in CONTROLLERS:
                bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
                account = entry.account or entry.name
                role = await each.client.raw("GET", f"{bindings}/system:controller:{account}")
                assert role.status == 200

    run_virtual(main)
