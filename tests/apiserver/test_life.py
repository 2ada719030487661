"""Starting, being looked after, stopping."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from pathlib import Path

import pytest

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.service import Service
from nodeward.apiserver.pki import Pki, server_context
from nodeward.apiserver.server import REPAIR_SECONDS
from nodeward.cli.up import loop_factory
from nodeward.machinery.clock import Clock, RealClock
from nodeward.machinery.serving import listener
from nodeward.machinery.serving.listener import bind
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running, settings
from tests.patience import PATIENCE_SECONDS


def test_what_every_cluster_has_comes_back_when_it_is_deleted() -> None:
    async def scenario(clock: Clock) -> None:
        async with running(clock=clock) as server:
            client = server.client("test")
            await client.delete(Service, "kubernetes", "default")
            await client.delete(Namespace, "kube-node-lease")
            lease = await client.get(Namespace, "kube-node-lease")
            lease.spec.finalizers = []
            await client.update(lease, subresource="finalize")
            await clock.sleep(REPAIR_SECONDS + 1)
            service = await client.get(Service, "kubernetes", "default")
            assert service.spec.cluster_ip == "10.96.0.1"
            assert (await client.get(Namespace, "kube-node-lease")).status.phase == "Active"

    run_virtual(scenario)


def test_the_clusters_service_leads_to_the_port_of_the_latest_start() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        for port in (6443, 7443):
            async with running(settings(address=f"127.0.0.1:{port}"), store=store) as server:
                service = await server.client("test").get(Service, "kubernetes", "default")
                assert [each.target_port for each in service.spec.ports] == [port]

    asyncio.run(scenario())


@pytest.mark.parametrize("factory", [None, loop_factory()], ids=["asyncio", "uvloop"])
def test_a_client_that_keeps_its_connection_does_not_hold_up_a_stop(
    tmp_path: Path, factory: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients with a pool read from a connection only while they wait for an answer."""
    # A busy machine may need seconds for a stop that waits for nobody.
    monkeypatch.setattr(listener, "SHUTDOWN_SECONDS", PATIENCE_SECONDS)
    pki = Pki(tmp_path, RealClock().now_ns())

    async def scenario() -> None:
        clock = RealClock()
        async with running() as server:
            port = await server.listen(
                "127.0.0.1", 0, server_context(pki.serving("localhost"), pki.authority_path)
            )
            context = ssl.create_default_context(cafile=pki.authority_path)
            kept = http.client.HTTPSConnection("127.0.0.1", port, context=context)

            def ask() -> int:
                kept.request("GET", "/version")
                answer = kept.getresponse()
                answer.read()
                return answer.status

            assert await asyncio.to_thread(ask) == 200
            started = clock.monotonic_ns()
        assert clock.monotonic_ns() - started < PATIENCE_SECONDS * 0.8e9
        kept.close()

    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        runner.run(scenario())


def test_a_port_in_use_is_an_error_at_once() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", taken.getsockname()[1])


def test_every_path_of_the_root_list_answers() -> None:
    async def scenario(clock: Clock) -> None:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            paths = (await caller.json("GET", "/"))[1]["paths"]
            assert "/apis/readiness.node.x-k8s.io/v1alpha1" in paths
            assert {
                path: status for path in paths if (status := (await caller.send("GET", path)).status) != 200
            } == {}

    run_virtual(scenario)
