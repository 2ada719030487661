"""What the reference looks at: nodes and pods as JSON, and nothing worked out beforehand but what each pod takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.scheduler.reference.amounts import Amounts, plus, requests

Tree = dict[str, Any]


@dataclass(frozen=True)
class OnNode:
    """A pod where it runs."""

    tree: Tree
    takes: Amounts
    counts_for: Amounts

    @classmethod
    def of(cls, tree: Tree) -> OnNode:
        return cls(tree, requests(tree, is_placed=True), requests(tree, is_placed=True, fill=True))


@dataclass
class Cluster:
    """Nodes by name, pods by uid; labels of namespaces; what services select."""

    nodes: dict[str, Tree] = field(default_factory=dict)
    pods: dict[str, OnNode] = field(default_factory=dict)
    by_node: dict[str, dict[str, OnNode]] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    services: list[Tree] = field(default_factory=list)
    #: what the last pod that was asked for wants
    _asked: tuple[Tree, Amounts] = field(default_factory=lambda: ({}, {}))

    def on(self, name: str) -> list[OnNode]:
        return [*self.by_node.get(name, {}).values()]

    def put(self, tree: Tree) -> None:
        uid = tree["metadata"]["uid"]
        self.pods[uid] = self.by_node.setdefault(tree["spec"]["nodeName"], {})[uid] = OnNode.of(tree)

    def remove(self, uid: str) -> None:
        gone = self.pods.pop(uid)
        del self.by_node[gone.tree["spec"]["nodeName"]][uid]

    def asked(self, pod: Tree) -> Amounts:
        """What a pod that waits asks for."""
        if self._asked[0] is not pod:
            self._asked = pod, requests(pod, is_placed=False)
        return self._asked[1]

    def taken(self, name: str) -> Amounts:
        found: Amounts = {}
        for pod in self.on(name):
            found = plus(found, pod.takes)
        return found

    def counted(self, name: str) -> Amounts:
        found: Amounts = {}
        for pod in self.on(name):
            found = plus(found, pod.counts_for)
        return found
