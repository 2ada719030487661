"""The scale subresource: autoscaling/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.fields import REQUIRED, Int32, KubeStruct, always, nested
from nodeward.api.meta import KubeObject


class ScaleSpec(KubeStruct):
    replicas: Int32 = 0


class ScaleStatus(KubeStruct):
    replicas: Annotated[Int32, REQUIRED] = always(0)
    selector: str = ""


class Scale(KubeObject):
    spec: ScaleSpec = nested(ScaleSpec)
    status: ScaleStatus = nested(ScaleStatus)
