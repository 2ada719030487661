"""DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or cannot be reached."""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.api.core_v1.references import Toleration
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write

SECONDS: Final = 300
TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(AdmissionPlugin):
    name: ClassVar[str] = "DefaultTolerationSeconds"

    def admit(self, write: Write) -> None:
        if not write.is_about("pods") or write.operation == "DELETE":
            return
        tolerations: list[Toleration] = write.new.spec.tolerations
        # Whatever the pod says about a taint, or about all taints, is left as it is.
        spoken_of = {each.key for each in tolerations if each.effect in ("", "NoExecute")}
        if "" in spoken_of:
            return
        tolerations.extend(
            Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=SECONDS)
            for key in TAINTS
            if key not in spoken_of
        )
