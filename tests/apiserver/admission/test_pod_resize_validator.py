"""A resize that a node can never carry out is refused at the door."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.node import Node, NodeStatus
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.apiserver.admission.pod_resize_validator import PodResizeValidator
from tests.apiserver.admission.world import admitted, amounts, asking, meta, pod, update, world


def node() -> Node:
    return Node(metadata=meta("n1"), status=NodeStatus(allocatable=amounts(cpu="4", memory="8Gi")))


def sized(cpu: str, memory: str = "1Gi", generation: int = 1, node_name: str = "n1") -> Pod:
    made = pod(node_name=node_name, containers=[asking("c", amounts(cpu=cpu, memory=memory))])
    made.metadata.generation = generation
    return made


def resize(new: Pod, old: Pod, *nodes: Node, subresource: str = "resize") -> None:
    admitted(PodResizeValidator(world(*nodes)), update(new, old, subresource))


def refused(new: Pod, old: Pod, *nodes: Node) -> tuple[str, list[str]]:
    with pytest.raises(ApiError) as caught:
        resize(new, old, *nodes)
    assert caught.value.code == 403
    details = caught.value.status.details
    assert details is not None
    return caught.value.status.message, [cause.reason for cause in details.causes]


def test_what_the_node_could_give_is_let_through() -> None:
    resize(sized("4", "8Gi", 2), sized("1"), node())


def test_more_than_the_node_has_is_refused_with_the_amounts() -> None:
    message, causes = refused(sized("4500m", "9Gi", 2), sized("1"), node())
    assert message == (
        'pods "p" is forbidden: node didn\'t have enough allocatable resources: '
        "cpu, requested: 4500, allocatable: 4000; memory, requested: 9663676416, allocatable: 8589934592"
    )
    assert causes == ["NodeCapacity"]
    message, _ = refused(sized("1", "9Gi", 2), sized("1"), node())
    assert "cpu" not in message


def test_pods_are_resized_on_linux_only() -> None:
    windows = Node(metadata=meta("n1", labels={"kubernetes.io/os": "windows"}))
    message, causes = refused(sized("2", generation=2), sized("1"), windows)
    assert message.endswith('pod resize is only supported on linux nodes, node "n1" is "windows"')
    assert causes == ["UnsupportedPlatform"]


def test_a_node_that_is_not_there_cannot_be_asked() -> None:
    assert refused(sized("2", generation=2), sized("1"))[0] == 'pods "p" is forbidden: node "n1" not found'


def test_others_are_none_of_its_business() -> None:
    resize(sized("99", generation=1), sized("99"), node())
    resize(sized("99", generation=2, node_name=""), sized("1", node_name=""), node())
    resize(sized("99", generation=2), sized("1"), node(), subresource="")
