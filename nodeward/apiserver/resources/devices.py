"""Device taints carry the time they were set; the server says it where the driver does not."""

from __future__ import annotations

from typing import Any, ClassVar

from nodeward.api.defaults.resource import date_taints
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy


class DeviceTaintRules(Strategy):
    counts_generations: ClassVar[bool] = True

    def prepare_create(self, obj: Any, env: Environment) -> None:
        super().prepare_create(obj, env)
        date_taints(obj, env.now())

    def prepare_update(self, new: Any, old: Any, env: Environment) -> None:
        date_taints(new, env.now())
        super().prepare_update(new, old, env)


class ResourceSlices(DeviceTaintRules):
    answers_deleted: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("spec.nodeName", "spec.driver", "spec.pool.name")
