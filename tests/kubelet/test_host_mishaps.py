"""What goes wrong around a kubelet: lost news, refused writes, restarts at bad moments, objects that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from nodeward.api import errors
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.container import Container, ExecAction, Probe, ResourceRequirements
from nodeward.api.core_v1.node import Node, NodeReadinessGate
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.references import Toleration
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.node.specification import NodeModel
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.reflector import ReflectedObject
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification
from tests.kubelet.node.nodes import READINESS, settings

Send = Callable[[Request], Awaitable[Response]]
SOURCE = "kubernetes.io/config.source"


def play(act: Callable[[Hosted], Awaitable[None]], model: NodeModel | None = None, gates: str = "") -> None:
    """One node, `n1`, and what happens to it."""

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1", model), gates=gates) as each:
            await act(each)

    run_virtual(main)


def count(each: Hosted, wanted: Callable[[Request], bool]) -> list[str]:
    """From now on, the paths of the kubelet's requests that are `wanted`."""
    seen: list[str] = []

    async def alter(request: Request, send: Send) -> Response:
        if wanted(request):
            seen.append(request.path)
        return await send(request)

    each.transport.alter = alter
    return seen


def test_a_pod_made_anew_while_nobody_could_tell_takes_the_place_of_the_old_one() -> None:
    async def act(each: Hosted) -> None:
        old = await each.run_pod("p", "n1")
        await each.clock.sleep(1)
        seen = await each.pod("p")
        meta = msgspec.structs.replace(seen.metadata, uid="another", resource_version="1000000")
        new = msgspec.structs.replace(old, metadata=meta)
        # As a reflector tells it after it had to list again.
        each.host._pod_informer.upsert(ReflectedObject("default/p", "1000000", new))
        await each.clock.sleep(40)
        assert each.host.pods.get(old.metadata.uid) is None
        assert each.host.pods.get("another") is not None
        assert len(each.runtime) == 1

    play(act)


@pytest.mark.parametrize("restarts", [True, False])
def test_a_pod_that_goes_while_its_kubelet_is_down_leaves_nothing(restarts: bool) -> None:
    async def act(each: Hosted) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(1)
        each.host.stop_node("n1")
        await each.client.delete(Pod, "p", "default", grace_period=0)
        await each.clock.sleep(1)
        if restarts:
            each.host.add_node(specification("n1"))
            await each.clock.sleep(1)
        assert len(each.runtime) == 0
        assert len(each.host.pods) == 0

    play(act)


def test_a_pod_that_still_stops_when_its_kubelet_restarts_leaves_nothing_though_the_api_forgot_it() -> None:
    async def act(each: Hosted) -> None:
        await each.run_pod("p", "n1", c="stop-delay=20s")
        await each.clock.sleep(1)
        await each.client.delete(Pod, "p", "default", grace_period=0)
        await each.clock.sleep(1)
        assert len(each.runtime) == 1
        await each.host.restart_node(specification("n1"))
        await each.clock.sleep(1)
        assert len(each.runtime) == 0

    play(act)


def test_a_kubelet_restarted_while_a_container_starts_starts_it() -> None:
    async def act(each: Hosted) -> None:
        await each.run_pod("p", "n1", c="start-delay=5s")
        await each.clock.sleep(3)
        await each.host.restart_node(specification("n1"))
        await each.clock.sleep(8)
        status = (await each.pod("p")).status.container_statuses[0]
        assert status.state.running is not None
        assert status.restart_count == 0
        reasons = [event.reason for event in (await each.client.list(Event, "default")).items]
        assert "Failed" not in reasons

    play(act)


def test_a_kubelet_restarted_while_a_pod_stops_counts_it_until_it_has_stopped() -> None:
    async def act(each: Hosted) -> None:
        asked = ResourceRequirements(requests={"cpu": Quantity.parse("3")})
        for name, delay in (("old", "20s"), ("new", "0s")):
            meta = ObjectMeta(
                name=name,
                namespace="default",
                annotations={"simulation.nodeward.dev/c": f"stop-delay={delay}"},
            )
            container = Container(name="c", image="image", resources=asked)
            pod = Pod(metadata=meta, spec=PodSpec(node_name="n1", containers=[container]))
            if name == "new":
                await each.client.delete(Pod, "old", "default")
                await each.clock.sleep(1)
                await each.host.restart_node(specification("n1"))
                await each.clock.sleep(1)
            await each.client.create(pod)
            await each.clock.sleep(1)
        assert (await each.pod("new")).status.reason == "OutOfcpu"

    play(act)


def test_a_pod_that_is_refused_after_a_restart_has_its_place_until_it_has_stopped() -> None:
    async def act(each: Hosted) -> None:
        async def run(name: str) -> None:
            asked = ResourceRequirements(requests={"cpu": Quantity.parse("3")})
            meta = ObjectMeta(
                name=name, namespace="default", annotations={"simulation.nodeward.dev/c": "stop-delay=20s"}
            )
            spec = PodSpec(
                node_name="n1",
                containers=[Container(name="c", image="image", resources=asked)],
                tolerations=[Toleration(key="new", operator="Exists")] if name != "refused" else [],
            )
            await each.client.create(Pod(metadata=meta, spec=spec))
            await each.clock.sleep(2)

        await run("refused")
        taint = {"spec": {"taints": [{"key": "new", "effect": "NoExecute"}]}}
        await each.client.patch(Node, "n1", taint)
        await each.host.restart_node(specification("n1"))
        await each.clock.sleep(2)
        await run("too-early")
        await each.clock.sleep(30)
        await run("later")
        assert (await each.pod("refused")).status.reason == "TaintToleration"
        assert (await each.pod("too-early")).status.reason == "OutOfcpu"
        assert (await each.pod("later")).status.phase == "Running"

    play(act)


def test_pods_that_run_come_before_older_ones_that_never_did_when_a_kubelet_restarts() -> None:
    async def act(each: Hosted) -> None:
        def pod(name: str) -> Pod:
            asked = ResourceRequirements(requests={"cpu": Quantity.parse("3")})
            spec = PodSpec(containers=[Container(name="c", image="image", resources=asked)])
            return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)

        await each.client.create(pod("older"))
        await each.clock.sleep(5)
        runs = pod("runs")
        runs.spec.node_name = "n1"
        await each.client.create(runs)
        await each.clock.sleep(5)
        each.host.stop_node("n1")
        await each.client.bind("older", "default", "n1")
        await each.clock.sleep(1)
        each.host.add_node(specification("n1"))
        await each.clock.sleep(5)
        assert (await each.pod("runs")).status.phase == "Running"
        assert (await each.pod("older")).status.reason == "OutOfcpu"

    play(act)


def test_a_node_deleted_and_made_anew_by_somebody_has_a_lease_again() -> None:
    async def act(each: Hosted) -> None:
        node = await each.client.get(Node, "n1")
        await each.client.delete(Node, "n1")
        await each.client.delete(Lease, "n1", "kube-node-lease")
        await each.clock.sleep(60)
        assert not (await each.client.list(Lease, "kube-node-lease")).items
        made = await each.client.create(
            Node(metadata=ObjectMeta(name="n1", labels=node.metadata.labels), spec=node.spec)
        )
        await each.clock.sleep(30)
        lease = await each.client.get(Lease, "n1", "kube-node-lease")
        assert lease.metadata.owner_references[0].uid == made.metadata.uid
        ready = {each.type: each.status for each in (await each.client.get(Node, "n1")).status.conditions}
        assert ready["Ready"] == "True"

    play(act)


def test_an_answer_that_comes_after_newer_news_does_not_bring_the_old_node_back() -> None:
    async def act(each: Hosted) -> None:
        async def slow(request: Request, send: Send) -> Response:
            answer = await send(request)
            if request.path.endswith("/nodes/n1/status"):
                await each.client.patch(Node, "n1", {"metadata": {"labels": {"is": "newer"}}})
                await each.clock.sleep(2)
            return answer

        each.transport.alter = slow
        patch = {"status": {"declaredFeatures": ["Edited"]}}
        await each.client.patch(Node, "n1", patch, subresource="status", patch_type=PatchType.MERGE)
        await each.clock.sleep(5)
        agent = each.host.agent("n1")
        assert agent is not None
        assert agent.node is not None
        assert agent.node.metadata.labels.get("is") == "newer"

    play(act)


def test_without_a_namespace_for_leases_a_kubelet_does_not_ask_without_end() -> None:
    async def act(each: Hosted) -> None:
        asked: list[str] = []

        async def refuse(request: Request, send: Send) -> Response:
            if "/leases" in request.path:
                asked.append(request.path)
                raise errors.not_found("", "namespaces", "kube-node-lease")
            return await send(request)

        each.transport.alter = refuse
        await each.clock.sleep(120)
        assert 5 <= len(asked) <= 60
        each.transport.alter = None
        await each.clock.sleep(10)
        assert (await each.client.get(Lease, "n1", "kube-node-lease")).spec.renew_time

    play(act)


def test_a_gate_that_is_taken_out_of_the_node_is_probed_no_more_and_costs_nothing() -> None:
    probe = GateProbe(Probe(exec=ExecAction(command=["true"])))
    gate = NodeReadinessGate(
        condition_type="example.com/Ready", timeout_seconds=60, failure_action="BypassWithWarning"
    )
    model = NodeModel(settings=settings(READINESS, gate, probe=probe))

    async def act(each: Hosted) -> None:
        await each.clock.sleep(5)
        node = await each.client.get(Node, "n1")
        assert {each.type: each.status for each in node.status.conditions}["example.com/Ready"] == "True"
        patch: dict[str, Any] = {"spec": {"readinessGates": None}}
        await each.client.patch(Node, "n1", patch, patch_type=PatchType.MERGE)
        queue = each.host.nodes.queue
        before = queue.stats().adds
        await each.clock.sleep(600)
        assert queue.stats().adds - before < 100

    play(act, model, READINESS)


def test_a_status_that_is_refused_is_tried_seldom_and_does_not_keep_a_pod_from_going() -> None:
    async def act(each: Hosted) -> None:
        asked: list[str] = []

        async def refuse(request: Request, send: Send) -> Response:
            if request.path.endswith("/pods/p/status"):
                asked.append(request.path)
                raise errors.invalid("", "Pod", "p", [])
            return await send(request)

        await each.run_pod("p", "n1")
        each.transport.alter = refuse
        await each.clock.sleep(3600)
        assert 5 <= len(asked) <= 40
        await each.client.delete(Pod, "p", "default")
        await each.clock.sleep(60)
        assert not (await each.client.list(Pod)).items
        assert len(each.host.pods) == 0

    play(act)


def test_a_pod_of_the_api_that_says_it_is_from_a_file_runs_and_goes_like_any_other() -> None:
    async def act(each: Hosted) -> None:
        meta = ObjectMeta(name="copied", namespace="default", annotations={SOURCE: "file"})
        spec = PodSpec(node_name="n1", containers=[Container(name="c", image="image")])
        await each.client.create(Pod(metadata=meta, spec=spec))
        await each.clock.sleep(2)
        assert (await each.pod("copied")).status.phase == "Running"
        await each.client.delete(Pod, "copied", "default")
        await each.clock.sleep(40)
        assert not (await each.client.list(Pod)).items

    play(act)


def test_a_node_that_is_cut_off_tells_no_events() -> None:
    async def act(each: Hosted) -> None:
        await each.run_pod("p", "n1", c="run-time=20s,exit-code=1")
        await each.clock.sleep(5)
        each.host.cut_off("n1")
        events = count(each, lambda request: "/events" in request.path)
        await each.clock.sleep(300)
        assert events == []
        each.host.reconnect("n1")
        await each.clock.sleep(300)
        assert events

    play(act)


def test_a_node_deleted_while_it_was_cut_off_makes_no_lease_when_it_is_back() -> None:
    async def act(each: Hosted) -> None:
        each.host.cut_off("n1")
        await each.client.delete(Node, "n1")
        await each.client.delete(Lease, "n1", "kube-node-lease")
        await each.clock.sleep(5)
        each.host.reconnect("n1")
        await each.clock.sleep(120)
        assert not (await each.client.list(Lease, "kube-node-lease")).items

    play(act)


def test_upgrades_do_not_pile_up_what_they_leave() -> None:
    async def act(each: Hosted) -> None:
        for _ in range(300):
            await each.host.restart_node(specification("n1", NodeModel()))
        assert len(each.host._features) <= 256

    play(act)


def test_a_host_that_stops_leaves_no_task_behind() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1"), specification("n2")) as each:
            for number in range(5):
                await each.run_pod(f"p{number}", "n1", c="start-delay=1s")
            others = {task for task in asyncio.all_tasks() if "kubelet" not in task.get_name()}
            await each.host.stop()
            left = asyncio.all_tasks() - others
            assert left <= {asyncio.current_task()}
            await clock.sleep(60)

    run_virtual(main)
