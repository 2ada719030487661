"""Renewals of leases that differ in nothing but the time: the short way gives what the whole way gives."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import Caller, running

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
LEASE = {
    "metadata": {"name": "n1"},
    "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
}


def moment(number: int) -> str:
    return f"2026-01-01T00:{number:02}:00.000000Z"


def renewal(text: str) -> dict[str, Any]:
    return {"spec": {"leaseDurationSeconds": 40, "renewTime": text}}


async def renewed(caller: Caller, text: str, agent: str = "kubelet/1", **more: Any) -> tuple[int, Any]:
    return await caller.json("PATCH", f"{PATH}/n1", renewal(text) | more, content_type=MERGE, agent=agent)


def test_the_hundredth_renewal_is_what_the_whole_way_makes_of_it() -> None:
    """A strategic patch always goes the whole way: both leases must look the same after the same changes."""

    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            for name in ("n1", "n2"):
                lease = LEASE | {"metadata": {"name": name}}
                status, _ = await caller.json("POST", PATH, lease, agent="kubelet/1")
                assert status == 201
            for number in range(1, 60):
                await clock.sleep(10)
                _, short = await renewed(caller, moment(number))
                _, whole = await caller.json(
                    "PATCH",
                    f"{PATH}/n2",
                    renewal(moment(number)),
                    content_type="application/strategic-merge-patch+json",
                    agent="kubelet/1",
                )
                assert short["spec"]["renewTime"] == moment(number)
                for found in (short, whole):
                    del (
                        found["metadata"]["uid"],
                        found["metadata"]["resourceVersion"],
                        found["metadata"]["name"],
                    )
                assert short == whole
            _, stored = await caller.json("GET", f"{PATH}/n1")
            assert stored["spec"]["renewTime"] == moment(59)

    run_virtual(main)


@pytest.mark.parametrize("bad", ["2026-01-01 00:09:00.000000Z", "x" * 27])
def test_a_time_that_is_none_is_refused_after_any_number_of_good_ones(bad: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            await caller.json("POST", PATH, LEASE, agent="kubelet/1")
            for number in range(1, 4):
                await renewed(caller, moment(number))
            status, answer = await renewed(caller, bad)
            assert status in (400, 422), answer
            _, stored = await caller.json("GET", f"{PATH}/n1")
            assert stored["spec"]["renewTime"] == moment(3)

    run_virtual(main)


def test_another_user_is_judged_anew_and_another_manager_becomes_the_owner() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            await caller.json("POST", PATH, LEASE, agent="kubelet/1")
            for number in range(1, 4):
                await renewed(caller, moment(number))
            stranger = Caller.of(server, User("system:node:n2", groups=("system:nodes", AUTHENTICATED)))
            assert (await renewed(stranger, moment(4)))[0] == 403
            owner = Caller.of(server, User("system:node:n1", groups=("system:nodes", AUTHENTICATED)))
            assert (await renewed(owner, moment(5)))[0] == 200
            _, answer = await renewed(caller, moment(6), agent="other/1")
            assert {entry["manager"] for entry in answer["metadata"]["managedFields"]} == {"kubelet", "other"}

    run_virtual(main)


def test_a_change_by_somebody_else_is_neither_lost_nor_overlooked() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            await caller.json("POST", PATH, LEASE, agent="kubelet/1")
            for number in range(1, 4):
                await renewed(caller, moment(number))
            labels = {"metadata": {"labels": {"time": "x"}}}
            await caller.json("PATCH", f"{PATH}/n1", labels, content_type=MERGE, agent="somebody/1")
            for number in range(4, 8):
                _, answer = await renewed(caller, moment(number))
                assert answer["metadata"]["labels"] == {"time": "x"}
                assert answer["spec"]["renewTime"] == moment(number)
            await caller.json("DELETE", f"{PATH}/n1")
            assert (await renewed(caller, moment(9)))[0] == 404

    run_virtual(main)


def test_the_same_time_again_writes_nothing_and_a_dry_run_neither() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            await caller.json("POST", PATH, LEASE, agent="kubelet/1")
            for number in range(1, 4):
                _, last = await renewed(caller, moment(number))
            _, same = await renewed(caller, moment(3))
            assert same == last
            _, dry = await caller.json(
                "PATCH",
                f"{PATH}/n1?dryRun=All",
                renewal(moment(8)),
                content_type=MERGE,
                agent="kubelet/1",
            )
            assert dry["spec"]["renewTime"] == moment(8)
            _, stored = await caller.json("GET", f"{PATH}/n1")
            assert stored == last

    run_virtual(main)
