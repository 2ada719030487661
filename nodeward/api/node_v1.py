"""Runtime classes: node.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import Toleration
from nodeward.api.fields import ATOMIC, REQUIRED, KubeStruct, always
from nodeward.api.meta import KubeObject
from nodeward.base.quantity import Quantity


class Overhead(KubeStruct):
    pod_fixed: dict[str, Quantity] = {}


class Scheduling(KubeStruct):
    node_selector: Annotated[dict[str, str], ATOMIC] = {}
    tolerations: list[Toleration] = []


class RuntimeClass(KubeObject):
    handler: Annotated[str, REQUIRED] = always("")
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
