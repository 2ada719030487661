"""The examples of docs/node-readiness.md are real: the file is accepted, and the role is enough for a reporter."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import yaml

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node, NodeSpec
from nodeward.api.core_v1.pod import PodSpec, PodTemplateSpec
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding
from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.controllers.daemonset.placement import Placement
from nodeward.kubelet.config import load_text
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import running, settings
from tests.kubelet.reporting.test_running import Scene
from tests.tidy.repository import ROOT

_BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def examples() -> list[str]:
    return _BLOCK.findall((ROOT / "docs" / "node-readiness.md").read_text())


def test_the_configuration_in_the_documentation_is_accepted() -> None:
    found = load_text(examples()[0].encode(), "node-readiness.md", "1.37")
    assert [(each.gate.condition_type, each.probe is not None) for each in found.readiness_gates] == [
        ("example.com/StorageReady", False),
        ("example.com/AgentReady", True),
    ]


def test_the_tolerations_in_the_documentation_let_an_agent_land_on_a_node_that_is_not_ready_or_given_up() -> (
    None
):
    gate = load_text(examples()[0].encode(), "node-readiness.md", "1.37").readiness_gates[0].gate
    assert gate.readiness_taint is not None
    wanted = [from_tree(each, Toleration) for each in yaml.safe_load(examples()[1])["tolerations"]]
    not_ready = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    evicting = Taint(key=gate.readiness_taint.key, effect="NoExecute")
    for taints in ([not_ready], [gate.readiness_taint], [not_ready, gate.readiness_taint, evicting]):
        node = Node(spec=NodeSpec(taints=taints))
        with_them = Placement(PodTemplateSpec(spec=PodSpec(tolerations=wanted)), numeric=False)
        assert with_them.on(node).should_run
        assert not Placement(PodTemplateSpec(), numeric=False).on(node).should_run


def test_the_role_in_the_documentation_is_all_a_reporter_needs() -> None:
    role: dict[str, Any] = yaml.safe_load(examples()[2])
    binding = {
        "metadata": {"name": "reporter"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "readiness-reporter",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reporter"}],
    }

    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            scene = Scene(server, clock, User("reporter", groups=(AUTHENTICATED,)))
            await scene.add_node()
            await scene.admin.create(from_tree(role, ClusterRole))
            await scene.admin.create(from_tree(binding, ClusterRoleBinding))
            work = asyncio.create_task(scene.reporter.run())
            await clock.sleep(60)
            assert await scene.said() == ("True", "EndpointOK")
            assert len(scene.way.patches) == 2
            work.cancel()

    run_virtual(main, limit=10_000)
