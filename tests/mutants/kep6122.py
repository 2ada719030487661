"""Rules of KEP-6122 about the kubelet's CPU manager that are broken on purpose; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

DELAYS: Final = "nodeward/kubelet/cpu/scale_delay.py"
RESIZE: Final = "nodeward/kubelet/cpu/exclusive_resize.py"
RESIZES: Final = "nodeward/kubelet/cpu/cpu_resizes.py"
MANAGER: Final = "nodeward/kubelet/cpu/cpu_manager.py"
STATIC: Final = "nodeward/kubelet/cpu/static_cpus.py"
POLICY: Final = "nodeward/kubelet/cpu/static_policy.py"
SETUP: Final = "nodeward/kubelet/cpu/policy_setup.py"
OPTIONS: Final = "nodeward/kubelet/config/cpu_options.py"

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "delay-option-is-stable",
        OPTIONS,
        """_ALPHA: Final = (ALIGN_BY_SOCKET, ACROSS_CORES, SCALE_DELAY)""",
        """_ALPHA: Final = (ALIGN_BY_SOCKET, ACROSS_CORES, "")""",
        ("6122-2",),
    ),
    Mutant(
        "negative-delay-taken",
        OPTIONS,
        """    if not 0 <= delay <= LONGEST_SCALE_DELAY:""",
        """    if not delay <= LONGEST_SCALE_DELAY:""",
        ("6122-3", "6122-4"),
    ),
    Mutant(
        "delay-without-the-resize-gate",
        OPTIONS,
        """    if delay and gates is not None and not gates.enabled(gate):""",
        """    if delay and gates is None:""",
        ("6122-9", "6122-10"),
    ),
    Mutant(
        "delay-for-nobody",
        SETUP,
        """    return settings.cpu_options.scale_delay_ns""",
        """    return 0""",
        ("6122-8",),
    ),
    Mutant(
        "delay-on-the-wall-clock",
        SETUP,
        """parts.clock.monotonic_ns""",
        """parts.clock.now_ns""",
        ("6122-17",),
    ),
    Mutant(
        "set-due-at-once",
        DELAYS,
        """            if waiting.due_ns <= now_ns and key not in self._unwritten""",
        """            if key not in self._unwritten""",
        ("6122-23",),
    ),
    Mutant(
        "set-due-before-its-file-is-written",
        DELAYS,
        """            if waiting.due_ns <= now_ns and key not in self._unwritten""",
        """            if waiting.due_ns <= now_ns""",
        ("6122-60",),
    ),
    Mutant(
        "first-scale-down-wins",
        DELAYS,
        """        self._waiting[uid, container] = ScaleDown(cpus, delay_ns, now_ns + delay_ns)""",
        """        self._waiting.setdefault((uid, container), ScaleDown(cpus, delay_ns, now_ns + delay_ns))""",
        ("6122-31",),
    ),
    Mutant(
        "undelayed-set-applied-before-its-file-is-written",
        STATIC,
        """        return applied is None or not applied <= move.cpus""",
        """        return False""",
        ("6122-60",),
    ),
    Mutant(
        "scale-down-not-announced",
        RESIZES,
        """            self._notices.announce(uid, losing)""",
        """            self._notices.announce(uid, ())""",
        ("6122-60",),
    ),
    Mutant(
        "waiting-set-written-to-the-state",
        RESIZE,
        """                self.delays.start(uid, name, cpus, delay_ns, self._monotonic_ns())
                return
""",
        """                self.delays.start(uid, name, cpus, delay_ns, self._monotonic_ns())
""",
        ("6122-18",),
    ),
    Mutant(
        "equal-number-is-a-scale-down",
        RESIZE,
        """        if wanted < len(current):
            cpus = original""",
        """        if wanted <= len(current):
            cpus = original""",
        ("6122-15",),
    ),
    Mutant(
        "scale-up-leaves-the-timer-running",
        RESIZE,
        """            cpus = current | self._choose(free, current, wanted - len(current), affinity)
        self.delays.cancel(uid, name)
""",
        """            cpus = current | self._choose(free, current, wanted - len(current), affinity)
""",
        ("6122-21", "6122-32"),
    ),
    Mutant(
        "scale-up-compared-with-the-waiting-set-only",
        RESIZE,
        """        return None if len(current if waiting is None else waiting.cpus) == wanted else current""",
        """        return None if len(current) == wanted else current""",
        ("6122-15", "6122-32"),
    ),
    Mutant(
        "originals-given-up",
        RESIZE,
        """            cpus = original | self._choose(""",
        """            cpus = self._choose(""",
        ("6122-48", "6122-49"),
    ),
    Mutant(
        "fewer-than-the-originals",
        RESIZE,
        """            if wanted < len(original):
                return infeasible(""",
        """            if wanted < 0:
                return infeasible(""",
        ("6122-49",),
    ),
    Mutant(
        "expired-set-not-assigned",
        RESIZE,
        """        for uid, name, cpus in due:
            self._policy.reassign(self._state, uid, name, cpus)
""",
        """        for uid, name, cpus in due:
""",
        ("6122-22",),
    ),
    Mutant(
        "freed-cpus-do-not-join-the-shared-set",
        POLICY,
        """        state.default = (state.default - cpus) | (before - state.assigned_in_pod(uid))""",
        """        state.default = state.default - cpus""",
        ("6122-19", "6122-22"),
    ),
    Mutant(
        "added-cpus-stay-in-the-shared-set",
        POLICY,
        """        state.default = (state.default - cpus) | (before - state.assigned_in_pod(uid))""",
        """        state.default = state.default | (before - state.assigned_in_pod(uid))""",
        ("6122-20",),
    ),
    Mutant(
        "file-shows-the-old-set-while-it-waits",
        MANAGER,
        """            return waiting.cpus
""",
        """            return self.state.assigned(uid, container) or CPUSet.EMPTY
""",
        ("6122-43", "6122-59"),
    ),
    Mutant(
        "sets-applied-in-every-pass",
        MANAGER,
        """                if cpus != self._applied.get(uid, {}).get(container.name):""",
        """                if cpus:""",
        ("6122-24",),
    ),
    Mutant(
        "no-look-at-the-pod-after-an-exclusive-set",
        STATIC,
        """            self._metrics.scale_down_delay.observe(seconds)
        self._pods.sync(uid)
""",
        """            self._metrics.scale_down_delay.observe(seconds)
""",
        ("6122-25",),
    ),
    Mutant(
        "pod-done-while-a-container-waits",
        STATIC,
        """        if resizing is not None and resizing.delays.is_waiting(uid):
            return False
""",
        """        if resizing is not None and resizing.delays.is_waiting(uid):
            return True
""",
        ("6122-72",),
    ),
    Mutant(
        "delay-forgotten-over-a-restart",
        RESIZES,
        """            self._catch_up(pod)
            applied""",
        """            applied""",
        ("6122-26", "6122-27"),
    ),
    Mutant(
        "start-log-without-the-delay",
        STATIC,
        """format_duration(self._settings.cpu_options.scale_delay_ns)""",
        """''""",
        ("6122-66",),
    ),
)
