"""Which probes run now, in one pod.

What must stay true: while a startup probe has not passed, it is the only one of its container; a container that stops
is not asked whether it lives, but still whether it is ready; the answer is the same object while nothing has changed.
"""

from __future__ import annotations

from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole, Stop
from nodeward.kubelet.pods.probing import LIVENESS, READINESS, STARTUP, ProbePlan
from nodeward.kubelet.pods.state import PodState


def probe_plans(state: PodState, before: tuple[ProbePlan, ...]) -> tuple[ProbePlan, ...]:
    """The plans now; those of `before` that still hold are the same objects."""
    made: list[ProbePlan] = []
    for life in (*state.inits, *state.mains):
        if life.role is not ContainerRole.INIT and life.is_shown_running:
            _add(state, life, made)
    if not made:
        return ()
    known = {(plan.container_id, plan.kind): plan for plan in before}
    kept = tuple(_same(known.get((plan.container_id, plan.kind)), plan) for plan in made)
    is_unchanged = len(kept) == len(before) and all(new is old for new, old in zip(kept, before, strict=True))
    return before if is_unchanged else kept


def _same(old: ProbePlan | None, new: ProbePlan) -> ProbePlan:
    return old if old is not None and old == new else new


def _add(state: PodState, life: ContainerLife, made: list[ProbePlan]) -> None:
    spec = life.spec
    is_stopping = life.stop is not Stop.NOT or state.is_ending
    if not life.is_passed:
        if spec.startup_probe is not None and not is_stopping:
            made.append(ProbePlan(spec.name, STARTUP, spec.startup_probe, life.id, life.started_ns))
        return
    if spec.readiness_probe is not None:
        made.append(ProbePlan(spec.name, READINESS, spec.readiness_probe, life.id, life.started_ns))
    if spec.liveness_probe is not None and not is_stopping:
        made.append(ProbePlan(spec.name, LIVENESS, spec.liveness_probe, life.id, life.started_ns))
