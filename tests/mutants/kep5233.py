"""Rules of KEP-5233 that are broken on purpose, one a row; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

RULES: Final = "nodeward/rules/readiness.py"
TIMERS: Final = "nodeward/rules/readiness_timers.py"
NODE: Final = "nodeward/kubelet/node/readiness.py"
CARE: Final = "nodeward/kubelet/node_manager.py"
PLUGIN: Final = "nodeward/scheduler/plugins/node_readiness_gates.py"
LIFECYCLE: Final = "nodeward/controllers/node_lifecycle/controller.py"

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "gates-of-the-configuration-not-sent-to-an-existing-node",
        CARE,
        """            if changes.spec_patch is not None:""",
        """            if changes.spec_patch is None:""",
        ("5233-R6",),
    ),
    Mutant(
        "status-patched-every-round",
        "nodeward/kubelet/node/status.py",
        """        is_over = self._is_period_over(monotonic_ns)""",
        """        is_over = True""",
        ("5233-R19",),
    ),
    Mutant(
        "every-restart-is-a-reboot",
        NODE,
        """        if stored_boot and stored_boot != boot_id:""",
        """        if stored_boot:""",
        ("5233-R32",),
    ),
    Mutant(
        "every-restart-gets-a-new-boot-id",
        "nodeward/cluster/real_node.py",
        """            boot_id=machine.boot_id,""",
        """            boot_id=f"{machine.boot_id}-{self._clock.now_ns()}",""",
        ("5233-R32", "5233-R40"),
    ),
    Mutant(
        "node-watch-ignored",
        "nodeward/kubelet/host.py",
        """            on_update=lambda _, new: self.nodes.on_node_changed(new),""",
        """            on_update=lambda _, new: None,""",
        ("5233-R22", "5233-R27"),
    ),
    Mutant(
        "agent-adds-the-taint",
        CARE,
        """        if step.gate_labels:
""",
        """        if step.expired_gates:
            marks = [gate.readiness_taint for gate in node.spec.readiness_gates if gate.readiness_taint]
            await self._client.patch(Node, name, {"spec": {"taints": [*node.spec.taints, *marks]}})
        if step.gate_labels:
""",
        ("5233-R26",),
    ),
    Mutant(
        "node-restriction-refuses-gate-labels",
        "nodeward/apiserver/admission/node_restriction_node.py",
        """    if domain.startswith(LABEL_PREFIX):
        return True
""",
        "",
        ("5233-R27",),
    ),
    Mutant(
        "ready-is-false-while-gates-wait",
        "nodeward/kubelet/node/node_core.py",
        """        done = self.status.sync(node, facts, now_ns, monotonic_ns, look.conditions)""",
        """        from nodeward.rules.readiness import waiting_for

        held = NodeFacts(errors=("gates wait",)) if [t for t in waiting_for(node) if t != "Ready"] else facts
        done = self.status.sync(node, held, now_ns, monotonic_ns, look.conditions)""",
        ("5233-R42", "5233-R29"),
    ),
    Mutant(
        "timeout-opens-the-node-before-its-taint",
        RULES,
        """        if view.state is GateState.WAITS or view.missing_taint(node.spec.taints) is not None""",
        """        if view.state is GateState.WAITS""",
        ("5233-R24",),
    ),
    Mutant(
        "a-taint-of-any-effect-opens-the-node",
        RULES,
        """        return None if any(is_same(taint, each) for each in taints) else taint""",
        """        return None if any(taint.key == each.key for each in taints) else taint""",
        ("5233-R24",),
    ),
    Mutant(
        "bypass-waits-for-a-taint",
        RULES,
        """        if self.state is not GateState.GIVEN_UP or self.action != TAINT or taint is None:""",
        """        if self.state is not GateState.GIVEN_UP or taint is None:""",
        ("5233-R24", "5233-R23"),
    ),
    Mutant(
        "kubelet-starts-pods-between-timeout-and-taint",
        "nodeward/kubelet/node/admission.py",
        """        or (_coming_taints(pod, node, gates) if is_new else None)
""",
        "",
        ("5233-R24",),
    ),
    Mutant(
        "kubelet-asks-gates-for-pods-it-has",
        "nodeward/kubelet/node/admission.py",
        """        or (_coming_taints(pod, node, gates) if is_new else None)
""",
        """        or _coming_taints(pod, node, gates)
""",
        ("5233-R13",),
    ),
    Mutant(
        "the-taint-wakes-nobody",
        PLUGIN,
        """            | Action.UPDATE_NODE_TAINT
""",
        "",
        ("5233-R24",),
    ),
    Mutant(
        "the-taint-wakes-pods-that-do-not-tolerate-it",
        PLUGIN,
        """        return is_open(node) and blocking_taint(""",
        """        return is_open(node) or blocking_taint(""",
        ("5233-R24", "5233-R15"),
    ),
    Mutant(
        "daemon-pods-wait-for-gates",
        RULES,
        """        owner.controller and owner.kind == "DaemonSet" and owner.api_version.startswith("apps/")""",
        """        owner.controller and owner.kind == "Daemon" and owner.api_version.startswith("apps/")""",
        ("5233-R12",),
    ),
    Mutant(
        "any-unknown-counts-as-given-up",
        RULES,
        """    if condition.status == "Unknown" and condition.reason == TIMEOUT_EXCEEDED:""",
        """    if condition.status == "Unknown":""",
        ("5233-R9", "5233-R30"),
    ),
    Mutant(
        "timer-starts-before-ready",
        TIMERS,
        """    if not was_ready:
        return timers, []
""",
        "",
        ("5233-R16",),
    ),
    Mutant(
        "all-gates-share-the-first-timeout",
        TIMERS,
        """        after[name] = _step(before, state_of(known.get(name)), _timeout_ns(gate), now_ns)""",
        """        after[name] = _step(before, state_of(known.get(name)), _timeout_ns(gates[0]), now_ns)""",
        ("5233-R17",),
    ),
    Mutant(
        "a-condition-that-holds-is-given-up-all-the-same",
        TIMERS,
        """        return GateTimer(GateTimerPhase.SETTLED, now_ns)""",
        """        state = GateState.WAITS""",
        ("5233-R19",),
    ),
    Mutant(
        "missing-conditions-are-written-after-a-reboot",
        NODE,
        """            for name in unsettled_by_reboot(gates, node.status.conditions):""",
        """            for name in [gate.condition_type for gate in gates]:""",
        ("5233-R30",),
    ),
    Mutant(
        "labels-of-removed-gates-stay",
        RULES,
        """    return LabelChanges(tuple(put), tuple(remove))""",
        """    return LabelChanges(tuple(put))""",
        ("5233-R27",),
    ),
    Mutant(
        "one-refused-label-costs-the-others",
        CARE,
        """                if error.code != 403 or agent.core.readiness is None:""",
        """                if True:""",
        ("5233-R18", "5233-R27"),
    ),
    Mutant(
        "the-controller-times-no-gates",
        LIFECYCLE,
        """        expired = health.gate_timers.expired(node, now_ns)""",
        """        expired: list[str] = []""",
        ("5233-R22",),
    ),
    Mutant(
        "the-controller-times-gates-that-the-kubelet-times",
        "nodeward/controllers/node_lifecycle/gate_timers.py",
        """        if not gates or is_timed_by_kubelet(node):""",
        """        if not gates:""",
        ("5233-R22",),
    ),
    Mutant(
        "an-older-kubelet-counts-as-keeping-the-time",
        RULES,
        """        return said == node.status.node_info.kubelet_version""",
        """        return True""",
        ("5233-R22",),
    ),
    Mutant(
        "an-outage-swallows-the-expiry",
        TIMERS,
        """    expired = [name for name, timer in after.items() if timer.phase is GateTimerPhase.EXPIRED]""",
        """    expired = [
        name
        for name, timer in after.items()
        if timer.phase is GateTimerPhase.EXPIRED and timers.of[name].phase is not GateTimerPhase.EXPIRED
    ]""",
        ("5233-R20",),
    ),
    Mutant(
        "the-taint-stays-when-the-condition-is-true",
        RULES,
        """        if taint is None or view.action != TAINT or view.state is GateState.HOLDS:""",
        """        if taint is None or view.action != TAINT:""",
        ("5233-R25",),
    ),
    Mutant(
        "the-gauge-of-a-removed-gate-stays",
        CARE,
        """            gauge.remove(agent.name, gone)""",
        """            pass""",
        ("5233-R43",),
    ),
)
