"""RuntimeClass: sets overhead, node selector and tolerations of a pod from its runtime class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Toleration
from nodeward.api.node_v1 import RuntimeClass, Scheduling
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.base.fielderror import quote

_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClassPlugin(AdmissionPlugin):
    name: ClassVar[str] = "RuntimeClass"

    def admit(self, write: Write) -> None:
        if write.operation != "CREATE" or not write.is_about("pods"):
            return
        pod: Pod = write.new
        chosen = self._class(write, pod)
        if chosen is None:
            return
        if chosen.overhead is not None:
            if pod.spec.overhead and pod.spec.overhead != chosen.overhead.pod_fixed:
                raise write.refuse(_DIFFERS)
            pod.spec.overhead = dict(chosen.overhead.pod_fixed)
        if chosen.scheduling is not None:
            _steer(write, pod, chosen.scheduling)

    def validate(self, write: Write) -> None:
        if write.operation != "CREATE" or not write.is_about("pods"):
            return
        overhead = write.new.spec.overhead
        chosen = self._class(write, write.new)
        if chosen is not None and chosen.overhead is not None:
            if overhead != chosen.overhead.pod_fixed:
                raise write.refuse(_DIFFERS)
        elif overhead:
            raise write.refuse(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )

    def _class(self, write: Write, pod: Pod) -> RuntimeClass | None:
        name = pod.spec.runtime_class_name
        if name is None:
            return None
        found = self.env.peek(RuntimeClass, name)
        if found is None:
            raise write.refuse(f"pod rejected: RuntimeClass {quote(name)} not found")
        return found


def _steer(write: Write, pod: Pod, scheduling: Scheduling) -> None:
    spec = pod.spec
    for key, value in scheduling.node_selector.items():
        asked = spec.node_selector.get(key, value)
        if asked != value:
            raise write.refuse(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {asked}"
            )
    spec.node_selector = spec.node_selector | scheduling.node_selector
    spec.tolerations = merge_tolerations(spec.tolerations, scheduling.tolerations)


def merge_tolerations(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Join both lists without tolerations that another one covers; of equal ones the first stays."""
    every = [*first, *second]
    merged: list[Toleration] = []
    for position, each in enumerate(every):
        is_covered = any(_covers(kept, each) for kept in merged) or any(
            later != each and _covers(later, each) for later in every[position + 1 :]
        )
        if not is_covered:
            merged.append(each)
    return merged


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Tell whether `wide` tolerates all that `narrow` does. `Lt` and `Gt` cover only their equals (KEP-5471)."""
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if narrow.effect != wide.effect and wide.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in ("", "Equal"):
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"
