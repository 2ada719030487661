"""RestartAllContainersOnContainerExits: a container's exit may restart the whole pod (KEP-5532).

A node without it would run the pod and ignore the rule, so the pod must not be placed there. The rules of a container
cannot be changed, so an update never needs it.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.feature import Feature, PodInfo, Requirements

NAME: Final = "RestartAllContainersOnContainerExits"
_ACTION: Final = "RestartAllContainers"


def _is_needed(pod: PodInfo) -> bool:
    return any(
        rule.action == _ACTION
        for containers in (pod.spec.containers, pod.spec.init_containers)
        for container in containers
        for rule in container.restart_policy_rules
    )


FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((NAME,)),
    scheduling_rule=_is_needed,
    scheduling_fields=("containers[*].restart_policy_rules", "init_containers[*].restart_policy_rules"),
)
