"""ExtendedResourceToleration: a pod that asks for a device tolerates the taint of nodes kept for that device.

Off unless enabled.
"""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.references import Toleration
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.rules.quota import is_extended


class ExtendedResourceToleration(AdmissionPlugin):
    name: ClassVar[str] = "ExtendedResourceToleration"

    def admit(self, write: Write) -> None:
        if not write.is_about("pods") or write.operation == "DELETE":
            return
        spec = write.new.spec
        containers = (*spec.containers, *spec.init_containers)
        asked = {
            name for container in containers for name in container.resources.requests if is_extended(name)
        }
        for name in sorted(asked):
            wanted = Toleration(key=name, operator="Exists", effect="NoSchedule")
            _add_or_replace(spec.tolerations, wanted)


def _add_or_replace(tolerations: list[Toleration], wanted: Toleration) -> None:
    """Add a toleration, or replace the one that differs in tolerationSeconds only."""
    for position, found in enumerate(tolerations):
        same = (found.key, found.operator, found.value, found.effect)
        if same == (wanted.key, wanted.operator, wanted.value, wanted.effect):
            tolerations[position] = wanted
            return
    tolerations.append(wanted)
