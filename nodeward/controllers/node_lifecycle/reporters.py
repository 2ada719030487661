"""Do the pods that report a node's readiness gates survive what the gates do when they give up (KEP-5233).

A gate with action Taint puts its taint on the node when nobody reported in time. If the agent that should report does
not tolerate that taint, it is not created again once it has gone (and leaves at once under NoExecute): the gate then
waits for an agent that cannot come. That is worth a warning while there is time to add the toleration.

A reporter of a gate is a pod of a DaemonSet on the node that says which gate it reports: by the variable
`CONDITION_TYPE` in the environment of a container (the proposal's side-car, `nodeward report-readiness`), or by the
gate's label in its node selector. Reporters that say neither, and those outside the node, are not seen here.

Called by `controller`, `gate_failures` and `plan`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.references import Taint
from nodeward.rules.readiness import LABEL_PREFIX, TAINT, failure_action, is_exempt
from nodeward.rules.taints import blocking_taint

_VARIABLE: Final = "CONDITION_TYPE"


@dataclass(frozen=True, slots=True)
class Reporters:
    """The reporters of one gate that were found on its node, and whether one of them tolerates the gate's taint."""

    condition_type: str
    taint: Taint
    #: as namespace/name
    pods: tuple[str, ...]
    tolerates: bool


def reporters_of(node: Node, pods: Iterable[Pod], *, numeric: bool) -> tuple[Reporters, ...]:
    """Return the reporters of each gate of the node that may taint it."""
    gates = {
        gate.condition_type: gate.readiness_taint
        for gate in node.spec.readiness_gates
        if gate.readiness_taint is not None and failure_action(gate) == TAINT
    }
    if not gates:
        return ()
    agents = [pod for pod in pods if is_exempt(pod.metadata) and not is_terminal(pod)]
    found = []
    for name, taint in gates.items():
        mine = [pod for pod in agents if _reports(pod, name)]
        if mine:
            tolerates = any(
                blocking_taint([taint], pod.spec.tolerations, numeric=numeric) is None for pod in mine
            )
            names = sorted(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in mine)
            found.append(Reporters(name, taint, tuple(names), tolerates))
    return tuple(found)


def _reports(pod: Pod, condition_type: str) -> bool:
    if LABEL_PREFIX + condition_type in pod.spec.node_selector:
        return True
    return any(
        variable.name == _VARIABLE and variable.value == condition_type
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for variable in container.env
    )
