"""Rules of KEP-5945 in the kubelet that are broken on purpose, one a row; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_SKIPPING: Final = "nodeward/kubelet/dra/skipping.py"
_MANAGER: Final = "nodeward/kubelet/dra/dra_manager.py"
_CHECKPOINT: Final = "nodeward/kubelet/dra/claim_checkpoint.py"
_METRICS: Final = "nodeward/kubelet/dra/dra_metrics.py"
_PODS: Final = "nodeward/kubelet/pod_manager.py"
_WORKERS: Final = "nodeward/kubelet/pod_workers.py"
_STOPPING: Final = "nodeward/kubelet/pods/stopping.py"
_ADMISSION: Final = "nodeward/kubelet/node/admission.py"

MUTANTS: Final[tuple[Mutant, ...]] = (
    # -- what is skipped
    Mutant(
        "5945-one-device-is-enough",
        _SKIPPING,
        "    if all(ALL in each for each in said):\n",
        "    if any(ALL in each for each in said):\n",
        ("5945-18",),
    ),
    Mutant(
        "5945-true-is-nothing",
        _SKIPPING,
        "        return (ALL,) if said else ()\n",
        "        return ()\n",
        ("5945-17",),
    ),
    Mutant(
        "5945-false-is-everything",
        _SKIPPING,
        "        return (ALL,) if said else ()\n",
        "        return (ALL,) if said is not None else ()\n",
        ("5945-3",),
    ),
    Mutant(
        "5945-all-drivers-together",
        _SKIPPING,
        "        by_driver.setdefault(each.driver, []).append(frozenset(said))\n",
        "        by_driver.setdefault(each.driver, []).append(frozenset(said or by_driver and (ALL,)))\n",
        ("5945-19",),
    ),
    # -- preparing
    Mutant(
        "5945-driver-looked-for",
        _MANAGER,
        "                if not skips(operations, PREPARE) and self._drivers.find(driver) is None:\n",
        "                if self._drivers.find(driver) is None:\n",
        ("5945-21",),
    ),
    Mutant(
        "5945-missing-driver-passes",
        _MANAGER,
        '                    raise DRAError(f"DRA driver {driver} is not registered")\n',
        "                    return []\n",
        ("5945-39",),
    ),
    Mutant(
        "5945-skipped-prepare-is-called",
        _MANAGER,
        "                    if skips(state.skipped, PREPARE):\n                        self._parts.metrics.skipped_prepare(driver)\n",
        "                    if False:\n                        self._parts.metrics.skipped_prepare(driver)\n",
        ("5945-17",),
    ),
    Mutant(
        "5945-prepare-skips-uncounted",
        _MANAGER,
        "                        self._parts.metrics.skipped_prepare(driver)\n",
        "                        pass\n",
        ("5945-48",),
    ),
    Mutant(
        "5945-other-name-of-the-counter",
        _METRICS,
        '            for name in ("kubelet_dra_node_unprepare_skips_total", "dra_node_unprepare_skips_total")\n',
        '            for name in ("kubelet_dra_node_unprepare_skipped_total", "dra_node_unprepare_skips_total")\n',
        ("5945-49",),
    ),
    Mutant(
        "5945-errors-uncounted",
        _METRICS,
        '        self._operations.observe(seconds, operation, "true" if is_error else "false")\n',
        '        self._operations.observe(seconds, operation, "false")\n',
        ("5945-51",),
    ),
    Mutant(
        "5945-event-left-out",
        _WORKERS,
        'RecordEvent("Warning", "FailedPrepareDynamicResources", text)',
        'RecordEvent("Warning", "FailedPrepare", text)',
        ("5945-51",),
    ),
    Mutant(
        "5945-claim-read-twice",
        _MANAGER,
        "            claim = fetched.get(name) or await read_claim(self._parts.client, meta.namespace, name)\n",
        "            claim = await read_claim(self._parts.client, meta.namespace, name)\n",
        ("5945-54",),
    ),
    # -- unpreparing
    Mutant(
        "5945-skipped-unprepare-is-called",
        _MANAGER,
        "                if skips(state.skipped, UNPREPARE):\n",
        "                if False:\n",
        ("5945-22",),
    ),
    Mutant(
        "5945-gate-off-unprepares",
        _MANAGER,
        "                if skips(state.skipped, UNPREPARE):\n",
        "                if skips(state.skipped, UNPREPARE) and self._support is SkipSupport.ON:\n",
        ("5945-28",),
    ),
    Mutant(
        "5945-claim-stays-in-the-cache",
        _MANAGER,
        "        for info in last:\n            self._cache.remove(info)\n        try:\n",
        "        try:\n",
        ("5945-22",),
    ),
    Mutant(
        "5945-never-unprepared",
        _STOPPING,
        "        if not state.is_unprepared:\n            _unprepare(state, now_ns, out)\n            return\n",
        "",
        ("5945-3",),
    ),
    # -- the gate is off
    Mutant(
        "5945-gate-off-prepares",
        _MANAGER,
        '        text = disabled_text(results) if self._support is SkipSupport.OFF else ""\n',
        '        text = ""\n',
        ("5945-27",),
    ),
    Mutant(
        "5945-other-word-for-disabled",
        _SKIPPING,
        'DISABLED: Final = "DRAOptionalNodePreparationDisabled"\n',
        'DISABLED: Final = "FeatureDisabled"\n',
        ("5945-27",),
    ),
    Mutant(
        "5945-admission-sees-no-claims",
        _ADMISSION,
        "        missing = features.missing_for(PodInfo(pod.spec, pod.status, resource_claims=claims))\n",
        "        missing = features.missing_for(PodInfo(pod.spec, pod.status))\n",
        ("5945-30",),
    ),
    Mutant(
        "5945-running-pods-admitted-again",
        _PODS,
        "            and uid not in self.found\n            and uid not in agent.services.admitted\n",
        "",
        ("5945-31",),
    ),
    # -- versions and checkpoints
    Mutant(
        "5945-old-version-knows-the-field",
        _SKIPPING,
        "            return cls.UNKNOWN\n",
        "            return cls.ON\n",
        ("5945-43",),
    ),
    Mutant(
        "5945-old-version-reads-the-field",
        _CHECKPOINT,
        "            (state.skipped or ()) if knows_skipping else (),\n",
        "            state.skipped or (),\n",
        ("5945-24",),
    ),
    Mutant(
        "5945-skipping-is-not-written",
        _CHECKPOINT,
        "    if state.skipped:\n",
        "    if not state:\n",
        ("5945-23",),
    ),
    Mutant(
        "5945-absent-means-skipped",
        _CHECKPOINT,
        "            (state.skipped or ()) if knows_skipping else (),\n",
        '            state.skipped or ("*",),\n',
        ("5945-25",),
    ),
)
