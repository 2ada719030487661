"""Whether an exited container runs again, and when: restart policies, restart rules, and growing waits.

In go the container, the pod's policy and the exit code; the waits are kept in the container's life: the first
restart comes at once, the second after 10 s, then 20 s, up to 5 min, until it has run for 10 min.

What must stay true: sidecars always run again; with the gate off, rules and policies of single containers do not exist.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import ContainerRestartRule
from nodeward.base.duration import SECOND_NS, format_duration
from nodeward.kubelet.pods.commands import Command
from nodeward.kubelet.pods.container_life import AnyContainer, ContainerLife, ContainerRole
from nodeward.kubelet.pods.event_texts import backing_off, pull_backing_off
from nodeward.kubelet.pods.lifecycle_rules import NOTICE_NS, STABLE_NS
from nodeward.kubelet.pods.state import PodState

RESTART_ALL: Final = "RestartAllContainers"
CRASH_LOOP: Final = "CrashLoopBackOff"
PULL_BACK_OFF: Final = "ImagePullBackOff"
#: Failures of the image itself, which wait longer each time.
PULL_REASONS: Final = frozenset({"ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"})


def matching_rule(container: AnyContainer, exit_code: int) -> ContainerRestartRule | None:
    """The first restart rule that speaks about the exit code."""
    for rule in container.restart_policy_rules:
        codes = rule.exit_codes
        if codes is None:
            continue
        is_listed = exit_code in codes.values
        if (codes.operator == "In" and is_listed) or (codes.operator == "NotIn" and not is_listed):
            return rule
    return None


def asks_for_all(state: PodState, container: AnyContainer, exit_code: int) -> bool:
    """Whether this exit starts the whole pod over."""
    if not state.rules.has_restart_all or not container.restart_policy_rules:
        return False
    rule = matching_rule(container, exit_code)
    return rule is not None and rule.action == RESTART_ALL


def could_restart_all(state: PodState) -> bool:
    """Whether any exit could."""
    if not state.rules.has_restart_all:
        return False
    return any(
        rule.action == RESTART_ALL
        for life in (*state.inits, *state.mains)
        for rule in life.spec.restart_policy_rules
    )


def runs_again(state: PodState, life: ContainerLife) -> bool:
    """Whether a container that is not alive is to be started (again)."""
    if life.exit is None:
        return True
    if life.role is ContainerRole.EPHEMERAL:
        return False
    if life.role is ContainerRole.SIDECAR or life.is_restart_due:
        return True
    return policy_restarts(state, life.spec, life.exit.exit_code)


def policy_restarts(state: PodState, container: AnyContainer, exit_code: int) -> bool:
    """What rules and policies say about an exit code: the container's own first, then the pod's."""
    policy = state.pod.spec.restart_policy
    if container.restart_policy and state.rules.has_restart_rules:
        rule = matching_rule(container, exit_code)
        if rule is not None and (
            rule.action == "Restart" or (rule.action == RESTART_ALL and state.rules.has_restart_all)
        ):
            return True
        policy = container.restart_policy
    if policy == "Never":
        return False
    if policy == "OnFailure":
        return exit_code != 0
    return True


def restarts_after_kill(state: PodState, container: AnyContainer) -> bool:
    """Whether a container that is killed for a failed probe comes back; no exit code is known yet."""
    policy = state.pod.spec.restart_policy
    if container.restart_policy and state.rules.has_restart_rules:
        policy = container.restart_policy
    return policy != "Never"


def after_exit(state: PodState, life: ContainerLife, at_ns: int, now_ns: int) -> None:
    """An instance ended at `at_ns` and another will follow: not before its wait is over."""
    if at_ns - life.restart_update_ns > STABLE_NS:
        life.crash_failures = 0
    if life.crash_failures:
        life.retry_ns = at_ns + int(state.rules.crash_curve.wait(life.crash_failures - 1) * SECOND_NS)
        life.show_ns = now_ns + NOTICE_NS


def count_restart(life: ContainerLife, now_ns: int) -> None:
    """A container that exited is started again: the next wait is longer."""
    life.crash_failures += 1
    life.restart_update_ns = now_ns


def after_failed_pull(state: PodState, life: ContainerLife, reason: str, message: str, now_ns: int) -> None:
    if now_ns - life.image_update_ns > 2 * int(state.rules.image_curve.cap) * SECOND_NS:
        life.image_failures = 0
    wait_ns = int(state.rules.image_curve.wait(life.image_failures) * SECOND_NS)
    life.image_failures += 1
    life.image_update_ns = now_ns
    life.wait(reason, message, now_ns + wait_ns)
    life.show_ns = now_ns + NOTICE_NS


def show_wait(state: PodState, life: ContainerLife, out: list[Command]) -> None:
    """What happened was seen; from now on the status says that it waits."""
    life.show_ns = 0
    if life.reason in PULL_REASONS:
        image = life.spec.image
        life.message = f'Back-off pulling image "{image}": {life.reason}: {life.message}'
        life.reason = PULL_BACK_OFF
        out.extend(pull_backing_off(life.spec.name, image))
        return
    wait_ns = int(state.rules.crash_curve.wait(life.crash_failures - 1) * SECOND_NS)
    where = f"container={life.spec.name} pod={state.full_name()}"
    life.reason = CRASH_LOOP
    life.message = f"back-off {format_duration(wait_ns)} restarting failed {where}"
    out.append(backing_off(life.spec.name, state.full_name()))
