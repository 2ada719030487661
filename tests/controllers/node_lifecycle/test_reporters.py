"""Reporters that would not survive the taint of their own gate are told of, once (KEP-5233)."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.node_lifecycle.plan import NodeUpdatePlan, plan
from nodeward.controllers.node_lifecycle.reporters import reporters_of
from nodeward.rules.readiness import RECORD_ANNOTATION
from tests.controllers.node_lifecycle.fleet import Fleet, run
from tests.controllers.node_lifecycle.nodes import NOW, node
from tests.controllers.node_lifecycle.test_gate_failures import CNI, GPU, NO_CNI, gate, give_up, say

REASON = "ReadinessGateReporterNotTolerating"
TOLERATION = {"key": NO_CNI.key, "operator": "Exists"}
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}


def agent(
    name: str = "agent-1",
    *tolerations: dict[str, str],
    kind: str = CNI,
    by: str = "variable",
    owner: dict[str, Any] | None = None,
    **status: str,
) -> Pod:
    """A pod of a DaemonSet that says by a variable or by its selector which gate it reports."""
    env = [{"name": "CONDITION_TYPE", "value": kind}] if by == "variable" else []
    tree = {
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner or OWNER]},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i", "env": env}],
            "nodeSelector": {f"readiness-gate.{kind}": "true"} if by == "selector" else {},
            "tolerations": list(tolerations),
        },
        "status": status,
    }
    return from_tree(tree, Pod)


def step(held: Node, *pods: Pod) -> NodeUpdatePlan | None:
    found = plan(held, NOW, has_gates=True, reporters=reporters_of(held, pods, numeric=False))
    if found is not None:
        if "spec" in found.patch:
            held.spec.taints = found.patch["spec"]["taints"]
        record = found.patch["metadata"].get("annotations", {}).get(RECORD_ANNOTATION)
        held.metadata.annotations = {} if record is None else {RECORD_ANNOTATION: record}
    return found


def told(found: NodeUpdatePlan | None) -> list[tuple[str, tuple[str, ...]]]:
    if found is None or found.gates is None:
        return []
    return [(each.condition_type, each.pods) for each in found.gates.unreported]


@pytest.mark.parametrize("by", ["variable", "selector"])
def test_a_reporter_that_does_not_tolerate_its_gates_taint_is_told_of_once(by: str) -> None:
    held = node(gates=(gate(),))
    assert step(held) is None
    assert told(step(held, agent(by=by))) == [(CNI, ("default/agent-1",))]
    assert step(held, agent(by=by)) is None
    # It left because of the taint: that is no news.
    give_up(held)
    assert told(step(held)) == []
    assert told(step(held, agent(by=by))) == []
    # One that tolerates the taint makes it good, and a later one that does not is news again.
    assert told(step(held, agent("agent-2", TOLERATION, by=by))) == []
    assert told(step(held, agent("agent-3", by=by))) == [(CNI, ("default/agent-3",))]


def test_one_reporter_that_tolerates_the_taint_is_enough() -> None:
    held = node(gates=(gate(),))
    assert step(held, agent("a"), agent("b", TOLERATION)) is None


@pytest.mark.parametrize(
    "pod",
    [
        agent(kind=GPU),
        agent(by="nothing"),
        agent(owner={**OWNER, "kind": "ReplicaSet"}),
        agent(phase="Failed"),
    ],
)
def test_other_pods_are_no_reporters_of_the_gate(pod: Pod) -> None:
    assert step(node(gates=(gate(),)), pod) is None


def test_gates_that_put_no_taint_need_no_toleration() -> None:
    assert step(node(gates=(gate(action="BypassWithWarning"),)), agent()) is None
    held = node(gates=(gate(),))
    step(held, agent())
    held.spec.readiness_gates = [gate(action="BypassWithWarning")]
    step(held, agent())
    assert held.metadata.annotations == {}
    say(held, CNI, "True")
    assert step(held, agent()) is None


def test_the_event_names_the_pod_the_taint_and_the_toleration_to_add() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", gates=(gate(),))
        await fleet.client.create(agent())
        await fleet.pass_time(30)
        (event,) = await fleet.events("node-controller", REASON)
        assert event == (
            f"Warning {REASON} n: Node n may lose the only known reporter of its readiness gate {CNI}: pod "
            f"default/agent-1 does not tolerate {NO_CNI.key}=late:NoSchedule, which the gate puts on the node when its "
            f"time is over; add the toleration {{key: {NO_CNI.key}, operator: Exists, effect: NoSchedule}}"
        )

    run(main)


def test_the_controller_keeps_the_time_of_a_node_whose_kubelet_says_nothing_about_gates() -> None:
    async def main(fleet: Fleet) -> None:
        await fleet.register("n", "theirs", gates=(gate(),))
        # The label says that this kubelet knows of gates.
        body = {"metadata": {"labels": {f"readiness-gate.{CNI}": "true"}}}
        await fleet.client.patch(Node, "theirs", body)
        await fleet.pass_time(170)
        assert (await fleet.marks("n"), await fleet.marks("theirs")) == ([], [])
        await fleet.pass_time(20)
        assert (await fleet.marks("n"), await fleet.marks("theirs")) == (["no-cni:NoSchedule"], [])
        (said,) = [each for each in (await fleet.node("n")).status.conditions if each.type == CNI]
        assert (said.status, said.reason) == ("Unknown", "TimeoutExceeded")

    run(main)
