"""The strategy of nodes: a kubelet registers with its status, so the status in a create is kept."""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.node import Node
from nodeward.api.defaults.node import drop_disabled_node_fields
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy


class Nodes(Strategy):
    keeps_created_status: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("spec.unschedulable",)

    def prepare_create(self, obj: Node, env: Environment) -> None:
        super().prepare_create(obj, env)
        drop_disabled_node_fields(obj, None, env.context)

    def prepare_update(self, new: Node, old: Node, env: Environment) -> None:
        super().prepare_update(new, old, env)
        drop_disabled_node_fields(new, old, env.context)

    def prepare_status(self, new: Node, old: Node, env: Environment) -> None:
        super().prepare_status(new, old, env)
        drop_disabled_node_fields(new, old, env.context)
