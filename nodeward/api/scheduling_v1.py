"""Priority classes: scheduling.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.fields import Int32, OneOf, always
from nodeward.api.meta import KubeObject


class PriorityClass(KubeObject):
    value: Int32 = always(0)
    global_default: bool = False
    description: str = ""
    preemption_policy: Annotated[str | None, OneOf("Never", "PreemptLowerPriority")] = None
