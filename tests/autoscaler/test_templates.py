"""KEP-5328 and KEP-5233 as an autoscaler sees them: templates that declare, and nodes that are on their way.

What an autoscaler will rest on. Its statements (5328-D33, 5328-D34, 5233-R39) stay open until one runs, so nothing here
is marked as their proof.
"""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.autoscaler.templates import NodeGroup, from_existing, from_nothing
from nodeward.autoscaler.upcoming import Usability, as_it_will_be, usability
from nodeward.base.quantity import Quantity
from nodeward.features import Gates, Version
from nodeward.features.declared.abilities import POD_RESIZE, able
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.node.features import discover
from nodeward.kubelet.node.specification import NodeModel
from nodeward.scheduler.explanation import explain_pod
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.settings import default_profile
from tests.keps.ledger import statement
from tests.keps.test_kep5233_scheduler import NETWORK, STORAGE, condition, gated
from tests.keps.test_kep5328_scheduler import FEATURE, declaring, needy
from tests.scheduler.running import node, pod

GATES = Gates.of("1.37", "NodeReadinessGates=true")
ROOM = {"cpu": Quantity.parse("4"), "memory": Quantity.parse("8Gi"), "pods": Quantity.parse("110")}


def fits(wanted: Pod, *nodes: Node) -> tuple[str, ...]:
    """Where the scheduler would put a pod."""
    explained = explain_pod(
        wanted, nodes, (), FixedListers(), default_profile(GATES), GATES, Version.parse("1.37")
    )
    return tuple(each.name for each in explained.fitting)


def test_a_group_that_has_nodes_grows_by_nodes_that_declare_what_those_do() -> None:
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    existing = node("blue-1", labels={"pool": "blue"}, taints=taints, status=declaring(FEATURE))
    template = from_existing(existing, "blue-2")
    assert template.status.declared_features == existing.status.declared_features
    assert template.metadata.labels["pool"] == "blue"
    assert template.spec.taints == [], "what is only so at the moment is not copied"
    assert fits(needy("p"), template) == ("blue-2",)
    assert fits(needy("p"), from_existing(node("green-1"), "green-2")) == ()


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        ("1.34", ""),
        ("1.35", "NodeDeclaredFeatures=true,RestartAllContainersOnContainerExits=true"),
        ("1.36", ""),
        ("1.37", ""),
        ("1.37", f"{FEATURE}=false"),
        ("1.37", "UserNamespacesHostNetworkSupport=true"),
    ],
)
def test_a_group_without_nodes_is_expected_to_declare_what_a_kubelet_reports(
    version: str, flags: str
) -> None:
    gates = Gates.of(version, flags)
    template = from_nothing(NodeGroup("new", version, gates, ROOM, static_config=able(POD_RESIZE)))
    kubelet = discover(NodeModel(settings=KubeletSettings(gates=gates), kubelet_version=f"v{version}.0"))
    assert tuple(template.status.declared_features) == kubelet.names
    expected = ("new",) if FEATURE in kubelet.names else ()
    assert fits(needy("p"), template) == expected


@statement("5233-R39", part="library")
def test_a_held_node_is_on_its_way_and_pods_that_wait_for_it_need_no_other() -> None:
    held = gated("held", condition(NETWORK, "True"), gates=(NETWORK, STORAGE))
    assert usability(held) is Usability.UPCOMING
    assert fits(pod("p"), held) == (), "it is not usable yet"
    assert fits(pod("p"), as_it_will_be(held)) == ("held",), "and will be, so nothing has to grow"
    assert usability(as_it_will_be(held)) is Usability.USABLE
    assert usability(gated("given-up", condition(NETWORK, "Unknown", "TimeoutExceeded"))) is Usability.USABLE
    assert usability(gated("broken", condition(NETWORK, "True"), ready="False")) is Usability.UNREADY
    assert usability(node("plain")) is Usability.USABLE
