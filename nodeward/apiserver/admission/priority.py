"""Priority: sets a pod's priority from its priority class, and allows one default class at most.

The number is computed by the server; a pod that brings another one is refused. Once set it stays.
"""

from __future__ import annotations

from typing import ClassVar, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write

_PREEMPT: Final = "PreemptLowerPriority"

#: The built-in classes: name, value, description. They are valid even before they are stored.
SYSTEM_CLASSES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def system_classes() -> list[PriorityClass]:
    """Make the objects of the built-in classes."""
    return [
        PriorityClass(
            metadata=ObjectMeta(name=name), value=value, description=description, preemption_policy=_PREEMPT
        )
        for name, value, description in SYSTEM_CLASSES
    ]


class Priority(AdmissionPlugin):
    name: ClassVar[str] = "Priority"

    def admit(self, write: Write) -> None:
        if not write.is_about("pods"):
            return
        if write.operation == "CREATE":
            self._resolve(write, write.new)
        elif write.operation == "UPDATE":
            # Validation refuses any other change; leaving the fields out is not meant as one.
            new, old = write.new.spec, write.old.spec
            if new.priority is None:
                new.priority = old.priority
            if new.preemption_policy is None:
                new.preemption_policy = old.preemption_policy

    def validate(self, write: Write) -> None:
        if not write.is_about("priorityclasses", group="scheduling.k8s.io") or write.operation == "DELETE":
            return
        if write.new.global_default:
            default = self._default()
            if default is not None and (write.operation == "CREATE" or default.metadata.name != write.name):
                raise write.refuse(
                    f"PriorityClass {default.metadata.name} is already marked as default. Only one default can exist"
                )

    def _resolve(self, write: Write, pod: Pod) -> None:
        spec = pod.spec
        chosen = self._class(write, spec.priority_class_name) if spec.priority_class_name else self._default()
        value = 0 if chosen is None else chosen.value
        policy = _PREEMPT if chosen is None else chosen.preemption_policy
        if chosen is not None:
            spec.priority_class_name = chosen.metadata.name
        if spec.priority is not None and spec.priority != value:
            raise write.refuse(
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
        spec.priority = value
        if policy is None:
            return
        if spec.preemption_policy is not None and spec.preemption_policy != policy:
            raise write.refuse(
                f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
        spec.preemption_policy = policy

    def _class(self, write: Write, name: str) -> PriorityClass:
        found = self.env.peek(PriorityClass, name)
        if found is None:
            found = next((each for each in system_classes() if each.metadata.name == name), None)
        if found is None:
            raise write.refuse(f"no PriorityClass with name {name} was found")
        return found

    def _default(self) -> PriorityClass | None:
        """Return the default class; of several that a race left, the one with the lowest value."""
        marked = [each for each in self.env.peek_all(PriorityClass) if each.global_default]
        return min(marked, key=lambda each: each.value, default=None)
