"""KEP-5233 on the node: labels of gates, labels that are refused, and who of kubelet and controller keeps the time.

Real kubelets with their nodes' own rights, as in test_kep5233_node.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.apps_v1 import DaemonSet
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.rules.readiness import TIMED_BY_ANNOTATION
from tests.keps.ledger import statement
from tests.keps.node_identity import node_world
from tests.keps.test_kep5233_node import (
    CNI,
    DISK,
    GATE,
    MARK,
    MISSING,
    TIMEOUT,
    Scene,
    bypass,
    play,
    tainting,
)
from tests.scheduler.running import pod

RESTRICTED = "node-restriction.kubernetes.io/Audited"
REFUSED = "ReadinessGateLabelRefused"


def label(name: str) -> str:
    return f"readiness-gate.{name}"


def selecting(name: str, spec: dict[str, Any]) -> DaemonSet:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }
    return from_tree(tree, DaemonSet)


@statement("5233-R27", part="kubelet")
def test_labels_follow_the_gates() -> None:
    async def act(scene: Scene) -> None:
        labels = (await scene.node()).metadata.labels
        assert labels[label(CNI)] == "true", "a domain of Kubernetes is no obstacle"
        await scene.write(
            {"spec": {"readinessGates": [bypass(DISK)]}, "metadata": {"labels": {label(CNI): "vandal"}}}
        )
        await scene.until(10)
        labels = (await scene.node()).metadata.labels
        assert (labels[label(CNI)], labels[label(DISK)]) == ("true", "true")
        await scene.write({"spec": {"readinessGates": [{"conditionType": CNI, "$patch": "delete"}]}})
        await scene.until(20)
        labels = (await scene.node()).metadata.labels
        assert (label(CNI) in labels, labels[label(DISK)]) == (False, "true")
        assert labels["kubernetes.io/hostname"] == "n1"
        assert not any(call.status >= 400 for call in scene.kubelet.wire.calls)

    play(act, bypass(CNI))


@statement("5233-R27", part="kubelet")
def test_selectors_find_the_nodes_that_have_a_gate() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=GATE, has_scheduler=True, has_controllers=True) as world:
            await world.start_kubelet("plain")
            await world.start_kubelet(
                "gated", feature_gates=GATE, config={"nodeReadinessGates": [bypass(CNI, 600)]}
            )
            exists = [{"matchExpressions": [{"key": label(CNI), "operator": "Exists"}]}]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": exists}}
            await world.add(
                pod("chosen", nodeSelector={label(CNI): "true"}),
                selecting("by-label", {"nodeSelector": {label(CNI): "true"}}),
                selecting("by-affinity", {"affinity": {"nodeAffinity": required}}),
            )
            await world.pass_time(10)
            found = (await world.client.list(Pod, "default")).items
            daemons = {
                each.metadata.labels["app"]: each.spec.node_name for each in found if each.metadata.labels
            }
            assert daemons == {"by-label": "gated", "by-affinity": "gated"}
            assert (await world.pod("chosen")).spec.node_name == "", (
                "it waits for the gate of the node it selects"
            )
            said = {"type": CNI, "status": "True", "reason": "Checked"}
            await world.patch_node("gated", {"status": {"conditions": [said]}}, status=True)
            await world.pass_time(10)
            assert (await world.pod("chosen")).spec.node_name == "gated"

    run_virtual(main)


@statement("5233-R18", "5233-R27", part="kubelet")
def test_a_label_that_is_refused_costs_nothing_else() -> None:
    async def act(scene: Scene) -> None:
        labels = (await scene.node()).metadata.labels
        assert (label(RESTRICTED) in labels, labels[label(DISK)]) == (False, "true")
        await scene.until(100)
        assert await scene.said(RESTRICTED, DISK, "Ready") == [TIMEOUT, TIMEOUT, ("True", "KubeletReady")]
        await scene.until(2000)
        assert [reason for reason, _ in await scene.world.events("n1")].count(REFUSED) == 1
        refused = [call for call in scene.kubelet.wire.calls if call.status == 403]
        assert len(refused) == 3, "at registration, among others, and alone: then never again in this run"
        assert (await scene.world.condition("Ready"))[0] == "True"
        # A gate that comes later has its label, though another's is refused.
        await scene.write({"spec": {"readinessGates": [bypass(CNI)]}})
        await scene.until(2010)
        assert (await scene.node()).metadata.labels[label(CNI)] == "true"

    play(act, bypass(RESTRICTED, 60), bypass(DISK, 60), has_controllers=True)


@statement("5233-R18", part="kubelet")
def test_a_restricted_gate_added_to_a_node_at_work_breaks_no_status_write() -> None:
    async def act(scene: Scene) -> None:
        await scene.write({"spec": {"readinessGates": [tainting(RESTRICTED, 60)]}})
        await scene.until(100)
        assert await scene.said(RESTRICTED) == [TIMEOUT]
        assert all(
            call.status < 400
            for call in scene.kubelet.wire.sent("PATCH", "/status")
            if b'"status"' in call.body
        )
        assert MARK["key"] in [each.key for each in (await scene.node()).spec.taints]
        assert [each["reason"] for each in scene.written_conditions() if each["type"] == RESTRICTED] == [
            "TimeoutExceeded"
        ], "the kubelet keeps the time of a gate without a label, too"

    play(act, has_controllers=True)


# -- who keeps the time (R22)


@statement("5233-R22", part="controllers")
@pytest.mark.parametrize(("version", "flags"), [("1.36", ""), ("1.37", "")])
def test_gates_of_a_node_whose_kubelet_does_not_know_them_are_timed_by_the_controller(
    version: str, flags: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=GATE, has_scheduler=True, has_controllers=True) as world:
            kubelet = await world.start_kubelet(version=version, feature_gates=flags)
            await world.pass_time(300)
            await world.patch_node("n1", {"spec": {"readinessGates": [tainting(CNI, 60), bypass(DISK, 90)]}})
            await world.add(pod("p"), pod("tolerant", tolerations=[{**MARK, "operator": "Exists"}]))
            await world.pass_time(54)
            assert await world.condition(CNI) == MISSING
            await world.pass_time(8)
            assert (await world.condition(CNI), await world.condition(DISK)) == (TIMEOUT, MISSING)
            await world.pass_time(30)
            assert await world.condition(DISK) == TIMEOUT
            node = await world.node("n1")
            (found,) = [each for each in node.status.conditions if each.type == CNI]
            assert found.message == "the condition was not True within 60 seconds"
            assert [each.key for each in node.spec.taints] == [MARK["key"]]
            await world.pass_time(10)
            assert ((await world.pod("p")).spec.node_name, (await world.pod("tolerant")).spec.node_name) == (
                "",
                "n1",
            )
            assert not any(b"TimeoutExceeded" in call.body for call in kubelet.wire.sent("PATCH")), (
                "not the kubelet"
            )

    run_virtual(main)


@statement("5233-R22", part="controllers")
def test_a_timer_of_the_controller_is_settled_by_a_condition_that_holds_in_time() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=GATE, has_controllers=True) as world:
            await world.start_kubelet(version="1.36")
            await world.patch_node("n1", {"spec": {"readinessGates": [bypass(CNI, 60)]}})
            await world.pass_time(50)
            said = {"type": CNI, "status": "True", "reason": "Works"}
            await world.patch_node("n1", {"status": {"conditions": [said]}}, status=True)
            await world.pass_time(600)
            assert await world.condition(CNI) == ("True", "Works")

    run_virtual(main)


@statement("5233-R22", part="kubelet")
@statement("5233-R22", part="controllers")
def test_who_keeps_the_time_follows_the_kubelet_through_upgrade_and_downgrade() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=GATE, has_controllers=True) as world:
            kubelet = await world.start_kubelet(version="1.36")
            await world.patch_node("n1", {"spec": {"readinessGates": [bypass(CNI, 100)]}})
            await world.pass_time(50)

            async def expires_after(seconds: float) -> None:
                await world.pass_time(seconds - 3)
                assert await world.condition(CNI) == MISSING
                await world.pass_time(6)
                assert await world.condition(CNI) == TIMEOUT

            async def forget() -> None:
                body: dict[str, Any] = {"status": {"conditions": [{"type": CNI, "$patch": "delete"}]}}
                await world.client.patch(Node, "n1", body, subresource="status")

            def written() -> int:
                return sum(b"TimeoutExceeded" in call.body for call in kubelet.wire.sent("PATCH"))

            # The new kubelet takes over: its restart starts the time anew, and the controller's timer is void.
            await kubelet.restart(version="1.37", feature_gates=GATE, seconds=0)
            await expires_after(100)
            assert written() == 1
            assert (await world.node("n1")).metadata.annotations[TIMED_BY_ANNOTATION] == "v1.37.0"
            # Gates are switched off on the node: the controller counts from then.
            await kubelet.restart(feature_gates="", seconds=0)
            await forget()
            await expires_after(100)
            assert written() == 1
            # And an older kubelet, which leaves label and annotation as they are.
            await kubelet.restart(feature_gates=GATE, seconds=1)
            await kubelet.restart(version="1.36", feature_gates="", seconds=1)
            await forget()
            await expires_after(100)
            assert written() == 1

    run_virtual(main)


# -- the gauge (R43)


@statement("5233-R43", part="kubelet")
def test_the_gauge_of_a_removed_gate_goes_away() -> None:
    async def act(scene: Scene) -> None:
        def shown() -> list[str]:
            page = scene.kubelet.metrics().splitlines()
            return [line for line in page if line.startswith("kubelet_node_readiness_gate_satisfied{")]

        await scene.report(CNI, "True")
        await scene.until(15)
        assert [line.rpartition(" ")[2] for line in shown()] == ["1.0", "0.0"]
        await scene.write({"spec": {"readinessGates": [{"conditionType": CNI, "$patch": "delete"}]}})
        await scene.until(30)
        (left,) = shown()
        assert DISK in left
        await scene.write({"spec": {"readinessGates": None}})
        await scene.until(45)
        assert shown() == []

    play(act, bypass(CNI), bypass(DISK))
