"""Nodes: a kubelet registers with the status it has, so what a node is created with is kept."""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.node import Node
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy


class Nodes(Strategy):
    keeps_created_status: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("spec.unschedulable",)

    def prepare_create(self, obj: Node, env: Environment) -> None:
        super().prepare_create(obj, env)
        _drop_disabled(obj, None, env)

    def prepare_update(self, new: Node, old: Node, env: Environment) -> None:
        super().prepare_update(new, old, env)
        _drop_disabled(new, old, env)

    def prepare_status(self, new: Node, old: Node, env: Environment) -> None:
        super().prepare_status(new, old, env)
        _drop_disabled(new, old, env)


def _drop_disabled(new: Node, old: Node | None, env: Environment) -> None:
    """A field whose feature is off is as if it had not been sent, unless it is there already."""
    if not env.context.on("NodeDeclaredFeatures") and not (old and old.status.declared_features):
        new.status.declared_features = []
    if not env.context.on("NodeReadinessGates") and not (old and old.spec.readiness_gates):
        new.spec.readiness_gates = []
