"""KEP-5233 on the node: gates, timers, labels, reboots and restarts, of a real kubelet with its node's own rights.

Every kubelet here is the real `Host` as the user `system:node:NAME` before an API server with the Node authorizer,
RBAC and NodeRestriction; the test plays reporters and administrators. More cases of the core alone are in
tests/kubelet/node/test_readiness.py; labels and who keeps the time are in test_kep5233_labels.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.node.node_conditions import ALL_WELL, NodeFacts
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.rules.readiness import waiting_for
from tests.keps.ledger import statement
from tests.keps.node_identity import Kubelet, NodeWorld, node_world
from tests.scheduler.running import pod

GATE = "NodeReadinessGates=true"
CNI = "network.kubernetes.io/CNIReady"
DISK = "example.com/DiskReady"
MARK = {"key": "example.com/no-cni", "effect": "NoSchedule"}
TIMEOUT = ("Unknown", "TimeoutExceeded")
RESTARTED = ("Unknown", "NodeRestarted")
MISSING = ("", "")
STOPPED = NodeFacts(errors=("container runtime is down",))


def bypass(name: str, seconds: int = 180) -> dict[str, Any]:
    return {"conditionType": name, "timeoutSeconds": seconds, "failureAction": "BypassWithWarning"}


def tainting(name: str, seconds: int = 180, effect: str = "NoSchedule") -> dict[str, Any]:
    mark = {**MARK, "effect": effect}
    return {
        "conditionType": name,
        "timeoutSeconds": seconds,
        "failureAction": "Taint",
        "readinessTaint": mark,
    }


class Scene:
    """One kubelet, `n1`, and the seconds since it said Ready for the first time."""

    def __init__(self, world: NodeWorld, kubelet: Kubelet) -> None:
        self.world = world
        self.kubelet = kubelet
        self._began_ns = world.clock.monotonic_ns()

    async def until(self, seconds: float) -> None:
        passed = (self.world.clock.monotonic_ns() - self._began_ns) / SECOND_NS
        await self.world.pass_time(seconds - passed)

    async def said(self, *names: str) -> list[tuple[str, str]]:
        return [await self.world.condition(name) for name in names]

    async def report(self, name: str, status: str, reason: str = "Checked") -> None:
        said = {"type": name, "status": status, "reason": reason}
        await self.world.client.patch(Node, "n1", {"status": {"conditions": [said]}}, subresource="status")

    async def write(self, body: dict[str, Any]) -> None:
        """What an administrator does to the node."""
        await self.world.client.patch(Node, "n1", body)

    async def node(self) -> Node:
        return await self.world.node("n1")

    def patches(self) -> list[dict[str, Any]]:
        """The bodies of the kubelet's patches of its node so far."""
        return [
            call.tree
            for call in self.kubelet.wire.calls
            if call.method == "PATCH" and "/nodes/n1" in call.path
        ]

    def written_conditions(self) -> list[dict[str, Any]]:
        return [each for patch in self.patches() for each in patch.get("status", {}).get("conditions", ())]


def play(
    act: Callable[[Scene], Awaitable[None]], *gates: dict[str, Any], gates_of_node: str = GATE, **world: Any
) -> None:
    """A node whose kubelet is configured with these gates, and what happens to it from the start."""

    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=GATE, **world) as found:
            kubelet = await found.start_kubelet(
                feature_gates=gates_of_node, config={"nodeReadinessGates": list(gates)}, seconds=0
            )
            scene = Scene(found, kubelet)
            await found.pass_time(2)
            await act(scene)

    run_virtual(main)


@statement("5233-R6", part="kubelet")
def test_gates_of_the_configuration_are_in_the_spec_from_registration_and_those_of_others_count_too() -> None:
    async def act(scene: Scene) -> None:
        created = scene.kubelet.wire.sent("POST", "/nodes")[0]
        assert [each["conditionType"] for each in created.tree["spec"]["readinessGates"]] == [CNI]
        await scene.write({"spec": {"readinessGates": [bypass(DISK, 20)]}})
        await scene.until(25)
        assert await scene.said(CNI, DISK) == [MISSING, TIMEOUT]
        # It comes back with another gate in its configuration: that is merged into the spec.
        third = bypass("example.com/Third", 30)
        await scene.kubelet.restart(config={"nodeReadinessGates": [bypass(CNI, 240), third]})
        found = {
            each.condition_type: each.timeout_seconds for each in (await scene.node()).spec.readiness_gates
        }
        assert found == {CNI: 240, DISK: 20, "example.com/Third": 30}

    play(act, bypass(CNI))


@statement("5233-R16", part="kubelet")
def test_the_timer_starts_when_the_kubelet_says_ready() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=GATE) as world:
            config = {"nodeReadinessGates": [bypass(CNI)]}
            kubelet = await world.start_kubelet(feature_gates=GATE, config=config, seconds=0)
            agent = kubelet.host.nodes.agents["n1"]
            agent.facts = STOPPED
            await world.pass_time(60)
            assert await world.condition("Ready") == ("False", "KubeletNotReady")
            agent.facts = ALL_WELL
            await world.pass_time(179)
            assert await world.condition("Ready") == ("True", "KubeletReady")
            assert await world.condition(CNI) == MISSING
            await world.pass_time(12)
            assert await world.condition(CNI) == TIMEOUT

    run_virtual(main)


@statement("5233-R17", part="kubelet")
def test_each_gate_has_its_own_timer() -> None:
    async def act(scene: Scene) -> None:
        await scene.until(178)
        assert await scene.said(CNI, DISK) == [MISSING, MISSING]
        await scene.until(182)
        assert await scene.said(CNI, DISK) == [TIMEOUT, MISSING]
        await scene.until(298)
        assert await scene.said(DISK) == [MISSING]
        await scene.until(302)
        assert await scene.said(CNI, DISK) == [TIMEOUT, TIMEOUT]

    play(act, bypass(CNI, 180), bypass(DISK, 300))


@statement("5233-R18", part="kubelet")
def test_at_expiry_the_kubelet_writes_unknown_and_why() -> None:
    async def act(scene: Scene) -> None:
        await scene.report(CNI, "False", "Initializing")
        await scene.until(182)
        node = await scene.node()
        (found,) = [each for each in node.status.conditions if each.type == CNI]
        assert (found.status, found.reason) == TIMEOUT
        assert found.message == "the condition was not True within 180 seconds"
        assert found.last_transition_time == "2026-01-01T00:03:00Z"
        (written,) = [each for each in scene.written_conditions() if each["type"] == CNI]
        assert written["reason"] == "TimeoutExceeded"
        assert waiting_for(node) == []

    play(act, bypass(CNI))


@statement("5233-R19", part="kubelet")
def test_a_condition_that_held_in_time_is_left_alone() -> None:
    async def act(scene: Scene) -> None:
        await scene.until(175)
        await scene.report(CNI, "True", "Works")
        await scene.until(2000)
        assert await scene.said(CNI) == [("True", "Works")]
        assert not any(each["type"] == CNI for each in scene.written_conditions())

    play(act, bypass(CNI))


@statement("5233-R20")
def test_without_an_api_server_an_expiry_is_kept_and_sent_later() -> None:
    async def act(scene: Scene) -> None:
        await scene.until(100)
        await scene.kubelet.cut_off()
        await scene.until(900)
        assert await scene.said(CNI) == [MISSING]
        timeouts = f'kubelet_node_readiness_gate_timeouts_total{{condition_type="{CNI}"}} 1.0'
        assert timeouts in scene.kubelet.metrics(), "it expired on time, and once"
        scene.kubelet.reconnect()
        await scene.until(960)
        assert await scene.said(CNI) == [TIMEOUT]

    play(act, bypass(CNI))


@statement("5233-R21", part="kubelet")
def test_a_kubelet_restart_starts_all_timers_anew() -> None:
    async def act(scene: Scene) -> None:
        await scene.until(100)
        await scene.kubelet.restart(seconds=0)
        await scene.until(248)
        assert await scene.said(CNI, DISK) == [MISSING, MISSING]
        await scene.until(253)
        assert await scene.said(CNI, DISK) == [MISSING, TIMEOUT]
        await scene.until(283)
        assert await scene.said(CNI) == [TIMEOUT]

    play(act, bypass(CNI), bypass(DISK, 150))


@statement("5233-R22", part="kubelet")
def test_a_gate_added_later_counts_from_when_the_kubelet_sees_it() -> None:
    async def act(scene: Scene) -> None:
        await scene.until(1000)
        await scene.write({"spec": {"readinessGates": [bypass(CNI, 60)]}})
        await scene.until(1059)
        assert await scene.said(CNI) == [MISSING]
        await scene.until(1061)
        assert await scene.said(CNI) == [TIMEOUT]
        # Only the kubelet wrote it: the node lifecycle controller leaves the node to it.
        assert [each["reason"] for each in scene.written_conditions() if each["type"] == CNI] == [
            "TimeoutExceeded"
        ]

    play(act, has_controllers=True)


@statement("5233-R26")
def test_the_kubelet_never_touches_taints() -> None:
    async def act(scene: Scene) -> None:
        await scene.until(32)
        assert await scene.said(CNI) == [TIMEOUT]
        assert MARK["key"] not in [each.key for each in (await scene.node()).spec.taints]
        await scene.write({"spec": {"taints": [MARK]}})
        await scene.report(CNI, "True")
        await scene.until(600)
        await scene.kubelet.reboot("boot-2", seconds=60)
        assert [each.key for each in (await scene.node()).spec.taints] == [MARK["key"]]
        assert not any(
            "taints" in call.body.decode() for call in scene.kubelet.wire.calls if call.method == "PATCH"
        )
        assert all("taints" not in call.tree["spec"] for call in scene.kubelet.wire.sent("POST", "/nodes"))
        refused = [call for call in scene.kubelet.wire.calls if call.status == 403]
        assert refused == []

    play(act, tainting(CNI, 30))


@statement("5233-R29")
def test_network_conditions_are_not_summed_up() -> None:
    proxy = "network.kubernetes.io/NetworkProxyReady"

    async def act(scene: Scene) -> None:
        await scene.report(CNI, "True")
        await scene.report(proxy, "False", "Starting")
        await scene.until(100)
        node = await scene.node()
        types = sorted(each.type for each in node.status.conditions)
        assert types == sorted(["MemoryPressure", "DiskPressure", "PIDPressure", "Ready", CNI, proxy])
        assert await scene.said("Ready") == [("True", "KubeletReady")]
        assert waiting_for(node) == [proxy]

    play(act, bypass(CNI), bypass(proxy))


@statement("5233-R30", part="kubelet")
def test_after_a_reboot_present_conditions_are_unknown_and_missing_ones_stay_missing() -> None:
    async def act(scene: Scene) -> None:
        await scene.report(CNI, "True", "Works")
        await scene.report("example.com/Other", "True", "NoGate")
        await scene.until(20)
        await scene.kubelet.reboot("boot-2", seconds=10)
        assert await scene.said(CNI, DISK, "example.com/Other") == [RESTARTED, MISSING, ("True", "NoGate")]
        assert waiting_for(await scene.node()) == [CNI, DISK]
        assert "Rebooted" in [reason for reason, _ in await scene.world.events("n1")]
        await scene.world.add(pod("p"))
        assert (await scene.world.pod("p")).spec.node_name == ""
        await scene.report(CNI, "True", "Works")
        await scene.report(DISK, "True", "Works")
        await scene.world.pass_time(10)
        assert (await scene.world.pod("p")).spec.node_name == "n1"
        assert await scene.said(CNI) == [("True", "Works")]

    play(act, bypass(CNI), bypass(DISK), has_scheduler=True, has_controllers=True)


@statement("5233-R30", part="kubelet")
def test_the_new_boot_id_and_what_it_unsettles_are_one_write() -> None:
    async def act(scene: Scene) -> None:
        await scene.report(CNI, "True", "Works")
        before = len(scene.kubelet.wire.calls)
        await scene.kubelet.reboot("boot-2", seconds=10)
        written = [
            call.tree["status"]
            for call in scene.kubelet.wire.calls[before:]
            if call.method == "PATCH"
            and call.path.endswith("/status")
            and b"boot-2" in call.body
            and b"nodeInfo" in call.body
        ]
        (first,) = written
        assert "NodeRestarted" in [each.get("reason") for each in first["conditions"] if each["type"] == CNI]

    play(act, bypass(CNI))


@statement("5233-R32")
def test_a_kubelet_restart_leaves_conditions_alone() -> None:
    async def act(scene: Scene) -> None:
        await scene.report(CNI, "True", "Works")
        await scene.report(DISK, "False", "KubeletAway")
        before = len(scene.written_conditions())
        await scene.kubelet.restart(seconds=100)
        assert await scene.said(CNI, DISK) == [("True", "Works"), ("False", "KubeletAway")]
        assert not any(each["type"] in (CNI, DISK) for each in scene.written_conditions()[before:])
        assert "Rebooted" not in [reason for reason, _ in await scene.world.events("n1")]
        await scene.report(DISK, "True", "KubeletBack")
        await scene.until(600)
        assert await scene.said(DISK) == [("True", "KubeletBack")]

    play(act, bypass(CNI), bypass(DISK))


@statement("5233-R40", part="kubelet")
def test_configuration_kernel_and_service_gates_are_nothing_special() -> None:
    names = [
        "node.my-corp.com/CustomConfigApplied",
        "kernel.my-corp.com/Ready",
        "systemd.my-corp.com/MyServiceHealthy",
    ]

    async def act(scene: Scene) -> None:
        assert waiting_for(await scene.node()) == names
        for number, name in enumerate(names, start=1):
            await scene.report(name, "True", "Verified")
            assert waiting_for(await scene.node()) == names[number:]
        await scene.until(20)
        await scene.kubelet.restart(seconds=20)
        assert waiting_for(await scene.node()) == [], "a restart of the kubelet is nothing to them"
        await scene.kubelet.reboot("boot-2", seconds=20)
        assert await scene.said(*names) == [RESTARTED] * 3

    play(act, *(bypass(name, 600) for name in names))


@statement("5233-R42", part="kubelet")
def test_ready_keeps_its_meaning_and_nobody_manages_reporters_or_the_order_of_starting() -> None:
    async def act(scene: Scene) -> None:
        early = pod("early")
        early.spec.node_name = "n1"
        await scene.world.add(early)
        # Gates wait, and the node is Ready and starts what is bound to it, in whatever order it comes.
        assert waiting_for(await scene.node()) == [CNI, DISK]
        assert await scene.said("Ready") == [("True", "KubeletReady")]
        assert (await scene.world.pod("early")).status.phase == "Running"
        await scene.until(190)
        assert await scene.said("Ready", CNI, DISK) == [("True", "KubeletReady"), TIMEOUT, TIMEOUT]
        assert (await scene.world.pod("early")).status.container_statuses[0].restart_count == 0
        methods = {(call.method, call.path.split("?")[0]) for call in scene.kubelet.wire.calls}
        assert not any("daemonsets" in path for _, path in methods), (
            "reporters are not the kubelet's business"
        )
        assert not any(method == "DELETE" for method, _ in methods)

    play(act, bypass(CNI), tainting(DISK))


def bound(name: str, **spec: Any) -> Pod:
    """A pod that somebody bound to the node who does not know of gates."""
    return pod(name, nodeName="n1", **spec)


@statement("5233-R24", part="kubelet")
@statement("5233-R13", part="kubelet")
def test_between_a_timeout_and_its_no_execute_taint_only_pods_that_tolerate_it_start() -> None:
    async def act(scene: Scene) -> None:
        async def outcome(name: str) -> tuple[str, str]:
            status = (await scene.world.pod(name)).status
            return status.phase, status.reason

        await scene.world.add(bound("early"))
        await scene.until(35)
        assert await scene.said(CNI) == [TIMEOUT]
        assert waiting_for(await scene.node()) == [CNI]
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
        await scene.world.add(
            bound("between"),
            bound("tolerant", tolerations=[{"key": MARK["key"], "operator": "Exists"}]),
            bound("daemon", metadata={"ownerReferences": [owner]}),
        )
        await scene.kubelet.restart(seconds=5)
        assert await scene.said(CNI) == [TIMEOUT], "the restarted kubelet has not written it anew"
        assert await outcome("early") == ("Running", ""), "pods that the node has are not looked at again"
        assert await outcome("between") == ("Failed", "TaintToleration")
        assert (await scene.world.pod("between")).status.message == (
            "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate: "
            f"readiness gate {CNI} timed out, and its taint {MARK['key']}:NoExecute is not written yet"
        )
        assert await outcome("tolerant") == await outcome("daemon") == ("Running", "")
        # With the taint the gate has its say no more, and the taint refuses as taints do.
        await scene.write({"spec": {"taints": [{**MARK, "effect": "NoExecute"}]}})
        await scene.world.add(bound("after"))
        assert await outcome("after") == ("Failed", "TaintToleration")
        assert "gate" not in (await scene.world.pod("after")).status.message

    play(act, tainting(CNI, 30, "NoExecute"))


@statement("5233-R24", part="kubelet")
@pytest.mark.parametrize(
    ("gate", "gates_of_node", "seconds"),
    [
        (tainting(CNI, 30, "NoSchedule"), GATE, 35),
        (tainting(CNI, 300, "NoExecute"), GATE, 35),
        (bypass(CNI, 30), GATE, 35),
        (tainting(CNI, 30, "NoExecute"), "NodeReadinessGates=false", 35),
    ],
    ids=["a taint that evicts nobody", "a gate that still waits", "bypass", "gate off"],
)
def test_otherwise_the_kubelet_starts_what_is_bound_to_it_whatever_the_gates_say(
    gate: dict[str, Any], gates_of_node: str, seconds: int
) -> None:
    async def act(scene: Scene) -> None:
        if gates_of_node != GATE:
            await scene.write({"spec": {"readinessGates": [gate]}})
            await scene.report(CNI, *TIMEOUT)
        await scene.until(seconds)
        await scene.world.add(bound("p"))
        assert (await scene.world.pod("p")).status.phase == "Running"

    gates = [gate] if gates_of_node == GATE else []
    play(act, *gates, gates_of_node=gates_of_node)


@statement("5233-R19", part="kubelet")
def test_an_idle_node_with_gates_writes_nothing_but_its_reports() -> None:
    async def act(scene: Scene) -> None:
        await scene.report(CNI, "True")
        await scene.until(20)
        before = len(scene.patches())
        await scene.until(620)
        assert len(scene.patches()) - before <= 5, "a report every five minutes, give or take half of it"

    play(act, bypass(CNI))
