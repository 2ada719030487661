"""Leader election among several candidates on one fake API, in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from nodeward.api.coordination_v1 import Lease
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.leader import LeaderElector, LeadershipLost, LeaderTimes
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.machinery.fake_api import FakeApi


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("nodeward.machinery.leader").setLevel(logging.CRITICAL)


class Election:
    """Candidates with their own connections, so that each can be cut off alone."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.api = FakeApi(clock)
        self.client = Client(self.api, clock=clock)
        self.leading: list[str] = []
        self.diary: list[tuple[float, str]] = []
        self.cut: dict[str, None] = {}
        self.api.fault = self._fault

    def _fault(self, request: Request) -> Response | None:
        if request.headers["user-agent"].split("/")[0] in self.cut:
            raise ConnectionFailed("cut off")
        return None

    def candidate(self, name: str, *, release: bool = True) -> LeaderElector:
        return LeaderElector(
            self.client.as_component(name),
            SeededChance(name),
            name="lock",
            namespace="kube-system",
            identity=name,
            release_on_cancel=release,
        )

    def start(self, name: str, *, release: bool = True) -> asyncio.Task[None]:
        elector = self.candidate(name, release=release)

        async def lead() -> None:
            self.leading.append(name)
            assert len(self.leading) == 1, f"{self.leading} lead at the same time"
            self.diary.append((self.now(), f"+{name}"))
            try:
                await self.clock.sleep(1e6)
            finally:
                self.leading.remove(name)
                self.diary.append((self.now(), f"-{name}"))

        return asyncio.create_task(elector.run(lead))

    def now(self) -> float:
        return self.clock.elapsed_ns / SECOND_NS

    async def lease(self) -> Lease:
        return await self.client.get(Lease, "lock", "kube-system")


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_first_candidate_leads_at_once_and_keeps_the_lease_fresh() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        task = election.start("a")
        await clock.sleep(1)
        assert election.leading == ["a"]
        lease = await election.lease()
        assert lease.spec.holder_identity == "a"
        assert lease.spec.lease_duration_seconds == 15
        assert lease.spec.lease_transitions == 0
        assert lease.spec.acquire_time == lease.spec.renew_time == "2026-01-01T00:00:00.000000Z"
        await clock.sleep(100)
        later = (await election.lease()).spec
        assert later.acquire_time == lease.spec.acquire_time
        assert later.renew_time == "2026-01-01T00:01:40.000000Z"
        assert later.lease_transitions == 0
        reads = [line for line in election.api.log if line.startswith("GET")]
        assert len(reads) <= 3  # ours, and the one before the first write: renewing is one request
        await stop(task)

    run_virtual(program)


def test_a_leader_that_stops_in_good_order_hands_over_at_once() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        first = election.start("a")
        await clock.sleep(1)
        second = election.start("b")
        await clock.sleep(20)
        assert election.leading == ["a"]
        await stop(first)
        released = (await election.lease()).spec
        assert (released.holder_identity, released.lease_duration_seconds) == ("", 1)
        await clock.sleep(2 + 2 * 1.2)
        assert election.leading == ["b"]
        lease = await election.lease()
        assert lease.spec.lease_transitions == 1
        assert lease.spec.holder_identity == "b"
        await stop(second)

    run_virtual(program)


def test_a_leader_that_vanishes_is_replaced_after_the_lease_duration_not_before() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        first = election.start("a", release=False)
        await clock.sleep(1)
        second = election.start("b")
        await clock.sleep(60)
        await stop(first)
        vanished = election.now()
        await clock.sleep(12)
        assert election.leading == []
        await clock.sleep(15)
        assert election.leading == ["b"]
        took_over = election.diary[-1][0]
        # The last renewal was up to a retry period old, and noticed up to a jittered period later.
        assert 15 - 2 <= took_over - vanished <= 15 + 2 * (2 + 2.4)
        await stop(second)

    run_virtual(program)


def test_a_leader_cut_off_stops_before_another_starts() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        first = election.start("a")
        await clock.sleep(1)
        second = election.start("b")
        await clock.sleep(30)
        election.cut["a"] = None
        cut_at = election.now()
        with pytest.raises(LeadershipLost, match="a could not renew lease kube-system/lock within 10 s"):
            await first
        assert 8 <= election.now() - cut_at <= 12
        await clock.sleep(20)
        assert [entry for _, entry in election.diary] == ["+a", "-a", "+b"]
        await stop(second)

    run_virtual(program)


def test_a_short_outage_does_not_cost_the_lead() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        first, second = election.start("a"), election.start("b")
        await clock.sleep(30)
        leader = election.leading[0]
        election.cut[leader] = None
        await clock.sleep(7)
        election.cut.clear()
        await clock.sleep(60)
        assert [entry for _, entry in election.diary] == [f"+{leader}"]
        await stop(first)
        await stop(second)

    run_virtual(program)


def test_the_wall_clocks_in_the_lease_do_not_matter() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        first = election.start("a", release=False)
        await clock.sleep(1)
        lease = await election.lease()
        lease.spec.renew_time = "1999-01-01T00:00:00.000000Z"  # a machine with a wrong clock
        await stop(first)
        await election.client.update(lease)
        second = election.start("b")
        await clock.sleep(14)
        assert election.leading == []
        await clock.sleep(10)
        assert election.leading == ["b"]
        await stop(second)

    run_virtual(program)


def test_a_leader_recovers_from_a_lease_somebody_touched_or_deleted() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        task = election.start("a")
        await clock.sleep(5)
        touched = await election.lease()
        touched.metadata.labels = {"touched": "yes"}
        await election.client.update(touched)
        await clock.sleep(5)
        assert (await election.lease()).metadata.labels == {"touched": "yes"}
        await election.client.delete(Lease, "lock", "kube-system")
        await clock.sleep(5)
        assert (await election.lease()).spec.holder_identity == "a"
        assert election.leading == ["a"]
        await stop(task)

    run_virtual(program)


def test_of_many_candidates_exactly_one_leads_through_many_changes() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        names = [f"c{number}" for number in range(8)]
        tasks = {name: election.start(name) for name in names}
        for turn in range(7):
            await clock.sleep(40)
            assert len(election.leading) == 1
            leader = election.leading[0]
            if turn % 2:
                election.cut[leader] = None
            else:
                await stop(tasks[leader])
        await clock.sleep(40)
        assert len(election.leading) == 1
        assert (await election.lease()).spec.lease_transitions == 7
        for task in tasks.values():
            await stop(task)

    run_virtual(program)


def test_the_work_ending_ends_the_election_and_its_error_is_passed_on() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)

        async def done() -> None:
            await clock.sleep(3)

        async def failing() -> None:
            raise ZeroDivisionError("work")

        await election.candidate("a").run(done)
        assert (await election.lease()).spec.holder_identity == ""
        with pytest.raises(ZeroDivisionError, match="work"):
            await election.candidate("b").run(failing)
        assert (await election.lease()).spec.holder_identity == ""

    run_virtual(program)


def test_everybody_learns_who_leads() -> None:
    async def program(clock: VirtualClock) -> None:
        election = Election(clock)
        seen: list[str] = []
        watcher = LeaderElector(
            election.client,
            SeededChance(1),
            name="lock",
            namespace="kube-system",
            identity="watcher",
            on_new_leader=seen.append,
        )
        first = election.start("a")
        await clock.sleep(1)

        async def lead() -> None:
            await clock.sleep(1e6)

        task = asyncio.create_task(watcher.run(lead))
        await clock.sleep(10)
        assert (watcher.leader, watcher.is_leader()) == ("a", False)
        await stop(first)
        await clock.sleep(10)
        assert seen == ["a", "watcher"]
        assert watcher.is_leader()
        await stop(task)
        assert not watcher.is_leader()

    run_virtual(program)


@pytest.mark.parametrize(
    "times",
    [
        {"lease_duration": 10.0, "renew_deadline": 10.0},
        {"renew_deadline": 2.0},
        {"lease_duration": 0.5, "renew_deadline": 0.4, "retry_period": 0.1},
    ],
)
def test_times_that_could_let_two_lead_are_refused(times: dict[str, float]) -> None:
    with pytest.raises(InvariantBroken):
        LeaderTimes(**times)
