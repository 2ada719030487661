"""TaintNodesByCondition: taints a new node as not ready, so that no pod is scheduled to it before it is."""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.api.core_v1.references import Taint
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write

NOT_READY: Final = "node.kubernetes.io/not-ready"


class TaintNodesByCondition(AdmissionPlugin):
    name: ClassVar[str] = "TaintNodesByCondition"

    def admit(self, write: Write) -> None:
        if write.operation != "CREATE" or not write.is_about("nodes"):
            return
        taints: list[Taint] = write.new.spec.taints
        if all((taint.key, taint.effect) != (NOT_READY, "NoSchedule") for taint in taints):
            taints.append(Taint(key=NOT_READY, effect="NoSchedule"))
