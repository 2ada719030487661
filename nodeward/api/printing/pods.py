"""Printers of pods and pod templates.

The STATUS cell shows the most important reason in one word: why initialisation is stuck, why a container waits or
ended, that the pod is terminating, or that its node was lost. What must stay true: the order of these checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeward.api.core_v1.pod import Pod, PodTemplate
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.pod_status import ContainerStateTerminated, ContainerStatus
from nodeward.api.printing.cells import NONE, age, container_cells, labels_text, moment, since
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer, RowCondition, wide

_DONE = {
    "Succeeded": (RowCondition("Completed", "True", "Succeeded", "The pod has completed successfully."),),
    "Failed": (RowCondition("Completed", "True", "Failed", "The pod failed."),),
}


class _Summary:
    """Collected while walking over the containers of one pod."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.reason = pod.status.reason or pod.status.phase
        self.total = len(pod.spec.containers)
        self.ready = 0
        self.restarts = 0
        self.last_restart: str | None = None

    def count_restarts(self, status: ContainerStatus) -> None:
        self.restarts += status.restart_count
        ended = status.last_state.terminated
        if ended is not None:
            self.last_restart = _later(self.last_restart, ended.finished_at)

    def has_true(self, condition: str) -> bool:
        return any(c.type == condition and c.status == "True" for c in self.pod.status.conditions)


def _later(first: str | None, second: str | None) -> str | None:
    first_ns, second_ns = moment(first), moment(second)
    if second_ns is None or (first_ns is not None and first_ns >= second_ns):
        return first
    return second


def summary(pod: Pod, now_ns: int) -> tuple[str, str, str]:
    """Return READY, STATUS and RESTARTS."""
    result = _Summary(pod)
    if any(c.type == "PodScheduled" and c.reason == "SchedulingGated" for c in pod.status.conditions):
        result.reason = "SchedulingGated"
    sidecars = _Summary(pod)
    is_initializing = _walk_init_containers(result, sidecars)
    if not is_initializing or result.has_true("Initialized"):
        # Restarts of completed init containers no longer count; those of sidecars do.
        result.restarts, result.last_restart = sidecars.restarts, sidecars.last_restart
        _walk_containers(result)
    if pod.metadata.deletion_timestamp is not None:
        if pod.status.reason == "NodeLost":
            result.reason = "Unknown"
        elif not is_terminal(pod):
            result.reason = "Terminating"
    restarts = str(result.restarts)
    if result.restarts and result.last_restart is not None:
        restarts += f" ({since(result.last_restart, now_ns)} ago)"
    return f"{result.ready}/{result.total}", result.reason, restarts


def _walk_init_containers(result: _Summary, sidecars: _Summary) -> bool:
    """Tell whether the pod is still being initialised; the reason then shows the progress."""
    pod = result.pod
    restartable = {c.name for c in pod.spec.init_containers if c.restart_policy == "Always"}
    result.total += sum(c.name in restartable for c in pod.spec.init_containers)
    for index, status in enumerate(pod.status.init_container_statuses):
        result.count_restarts(status)
        is_sidecar = status.name in restartable
        if is_sidecar:
            sidecars.count_restarts(status)
        ended, waiting = status.state.terminated, status.state.waiting
        if ended is not None and ended.exit_code == 0:
            continue
        if is_sidecar and status.started:
            result.ready += status.ready
            continue
        if ended is not None:
            result.reason = f"Init:{_end_reason(ended)}"
        elif waiting is not None and waiting.reason and waiting.reason != "PodInitializing":
            result.reason = f"Init:{waiting.reason}"
        else:
            result.reason = f"Init:{index}/{len(pod.spec.init_containers)}"
        return True
    return False


def _walk_containers(result: _Summary) -> None:
    has_running, error = False, ""
    for status in reversed(result.pod.status.container_statuses):
        result.count_restarts(status)
        ended, waiting = status.state.terminated, status.state.waiting
        if waiting is not None and waiting.reason:
            result.reason = waiting.reason
        elif ended is not None:
            result.reason = _end_reason(ended)
            if ended.exit_code != 0:
                error = result.reason
        elif status.ready and status.state.running is not None:
            has_running = True
            result.ready += 1
    if result.reason == "Completed":  # one container ended well: what of the others?
        if has_running and result.has_true("Ready"):
            result.reason = "Running"
        elif error:
            result.reason = error
        elif has_running:
            result.reason = "NotReady"


def _end_reason(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}"


def _readiness_gates(pod: Pod) -> str:
    if not pod.spec.readiness_gates:
        return NONE
    status: dict[str, str] = {}
    for condition in pod.status.conditions:
        status.setdefault(condition.type, condition.status)
    true = sum(status.get(gate.condition_type) == "True" for gate in pod.spec.readiness_gates)
    return f"{true}/{len(pod.spec.readiness_gates)}"


def _pod_cells(pod: Pod, now_ns: int) -> Cells:
    ips = pod.status.pod_ips
    return [
        pod.metadata.name,
        *summary(pod, now_ns),
        age(pod, now_ns),
        (ips[0].ip if ips else "") or NONE,
        pod.spec.node_name or NONE,
        pod.status.nominated_node_name or NONE,
        _readiness_gates(pod),
    ]


def _pod_conditions(pod: Pod) -> Sequence[RowCondition]:
    return _DONE.get(pod.status.phase, ())


def _template_cells(template: PodTemplate, now_ns: int) -> Cells:
    names, images = container_cells(template.template.spec.containers)
    return [template.metadata.name, names, images, labels_text(template.template.metadata.labels)]


POD = Printer(
    (
        NAME,
        Column("Ready", description="Ready containers of all containers."),
        Column("Status", description="What the pod is doing, or what keeps it from running."),
        Column("Restarts", description="Restarts of its containers, and when the last one was."),
        AGE,
        wide("IP", "First address of the pod."),
        wide("Node", "Node the pod is bound to."),
        wide("Nominated Node", "Node on which room is being made for the pod."),
        wide("Readiness Gates", "Conditions that hold of those the pod waits for."),
    ),
    _pod_cells,
    _pod_conditions,
)
POD_TEMPLATE = Printer(
    (
        NAME,
        Column("Containers", description="Names of the containers in the template."),
        Column("Images", description="Images of the containers in the template."),
        Column("Pod Labels", description="Labels of pods made from the template."),
    ),
    _template_cells,
)
