"""Of several copies one schedules; and a scheduler is an ordinary client, over HTTPS as in process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.pod import Pod
from nodeward.apiserver.pki import Pki, kubeconfig, server_context
from nodeward.cli.scheduler import COMPONENT
from nodeward.features.declared import Version
from nodeward.machinery.clock import RealClock, SeededChance, VirtualClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.machinery.leader import LeadershipLost
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import SchedulerSettings, default_profile
from tests.apiserver.running import running, settings
from tests.patience import PATIENCE_SECONDS
from tests.scheduler.running import GATES, cluster, node, one_profile, pod
from tests.scheduler.test_binding import Send


def test_only_the_leader_decides_and_another_copy_takes_over() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, starts=False) as world:
            elected = SchedulerSettings((default_profile(world.gates),))
            first = world.new_scheduler(elected, seed=1, identity="first")
            second = world.new_scheduler(elected, seed=2, identity="second")
            await first.start()
            await world.pass_time(3)
            await second.start()
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p"))
            assert await world.where("p") == "a"
            assert [dict(each.engine.queue.incoming) for each in (first, second)] == [
                {("UnscheduledPodAdd", "active"): 1}
            ] * 2, "the one that waits follows the cluster, too"
            assert len(second.engine.queue) == 0
            lease = await world.client.get(Lease, "kube-scheduler", "kube-system")
            assert lease.spec.holder_identity == "first"
            await first.stop()
            await world.pass_time(10)
            await world.add_pods(pod("q"))
            assert await world.where("q") == "a"
            lease = await world.client.get(Lease, "kube-scheduler", "kube-system")
            assert lease.spec.holder_identity == "second"
            await second.stop()

    run_virtual(main)


def test_a_leader_that_cannot_renew_its_lease_stops() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, starts=False) as world:

            async def no_leases(request: Request, send: Send) -> Response:
                if "/leases" in request.path and request.method == "PUT":
                    return Response(500, {}, b"{}")
                return await send(request)

            scheduler = world.new_scheduler(SchedulerSettings((default_profile(world.gates),)))
            await scheduler.start()
            await world.pass_time(3)
            assert scheduler.is_alive()
            world.transport.alter = no_leases
            with pytest.raises(LeadershipLost):
                await scheduler.run()
            assert not scheduler.is_alive()
            await scheduler.stop()

    run_virtual(main)


def test_pods_are_scheduled_over_https(tmp_path: Path) -> None:
    async def main() -> None:
        clock = RealClock()
        pki = Pki(tmp_path / "pki", clock.now_ns())
        chosen = settings(gates=GATES, disable_admission=("ServiceAccount", "TaintNodesByCondition"))
        async with running(chosen, clock=clock) as server:
            context = server_context(pki.serving("localhost", ("127.0.0.1",)), pki.authority_path)
            port = await server.listen("127.0.0.1", 0, context)
            pair = pki.client("scheduler", f"system:{COMPONENT}")
            file = tmp_path / "kubeconfig"
            file.write_text(kubeconfig(f"https://127.0.0.1:{port}", pki.authority_certificate, pair))
            client = connect(
                load_config({}, path=str(file)), clock=clock, environment={}, component=COMPONENT
            )
            scheduler = Scheduler(
                client,
                clock,
                SeededChance(1),
                gates=chosen.gates,
                version=Version.parse("1.37"),
                settings=one_profile(chosen.gates),
            )
            await scheduler.start()
            try:
                user = server.client("test")
                for number in range(3):
                    await user.create(node(f"n{number}"))
                for number in range(50):
                    await user.create(pod(f"p{number}", "10m"))
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while True:
                        listed = await user.list(Pod, "default")
                        if all(each.spec.node_name for each in listed.items):
                            break
                        await clock.yield_now()
                assert len(listed.items) == 50
            finally:
                await scheduler.stop()
                await client.aclose()

    asyncio.run(main())
