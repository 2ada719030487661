"""Rules of KEP-5471 that are broken on purpose, one a row; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_RULE: Final = "nodeward/rules/tolerations.py"
_SETS: Final = "nodeward/rules/taint_columns.py"
_TAINTS: Final = "nodeward/rules/taints.py"
_VALID: Final = "nodeward/validation/pod/tolerations.py"
_PLUGIN: Final = "nodeward/scheduler/plugins/taint_toleration.py"
_LOG: Final = "nodeward/scheduler/plugins/unreadable_taints.py"
_EVICTION: Final = "nodeward/controllers/taint_eviction/deadlines.py"
_EVICTOR: Final = "nodeward/controllers/taint_eviction/controller.py"
_DEVICES: Final = "nodeward/controllers/device_taint_eviction/tainted_devices.py"
_DEVICE_EVICTOR: Final = "nodeward/controllers/device_taint_eviction/controller.py"

_COMPARED: Final = "return theirs < mine if operator == LESS else theirs > mine"

MUTANTS: Final[tuple[Mutant, ...]] = (
    # -- the comparison
    Mutant(
        "5471-equal-parses-numbers",
        _RULE,
        "        return toleration.value == taint.value\n",
        "        mine, theirs = canonical_int64(toleration.value), canonical_int64(taint.value)\n"
        "        return toleration.value == taint.value if mine is None else mine == theirs\n",
        ("5471-T17",),
    ),
    Mutant(
        "5471-directions-swapped",
        _RULE,
        _COMPARED,
        "return theirs > mine if operator == LESS else theirs < mine",
        ("5471-T2", "5471-T3"),
    ),
    Mutant(
        "5471-gt-takes-the-number-itself",
        _RULE,
        _COMPARED,
        "return theirs < mine if operator == LESS else theirs >= mine",
        ("5471-T2",),
    ),
    Mutant(
        "5471-gt-loops",
        _RULE,
        _COMPARED,
        "return theirs < mine if operator == LESS else not all(theirs <= mine for _ in range(len(str(theirs))))",
        ("5471-T17",),
    ),
    Mutant(
        "5471-numbers-wrap-past-64-bits",
        _RULE,
        "if str(number) == text and _LEAST <= number <= _MOST else None",
        "if str(number) == text else None",
        ("5471-T10", "5471-T11"),
    ),
    Mutant(
        "5471-leading-zeros-match",
        _RULE,
        "if str(number) == text and _LEAST <= number <= _MOST else None",
        "if _LEAST <= number <= _MOST else None",
        ("5471-T36",),
    ),
    Mutant(
        "5471-gate-is-ignored-in-matching",
        _RULE,
        "if not numeric or operator not in NUMERIC:",
        "if operator not in NUMERIC:",
        ("5471-T1", "5471-T23"),
    ),
    Mutant(
        "5471-unknown-operator-compares",
        _RULE,
        "if not numeric or operator not in NUMERIC:",
        "if not numeric:",
        ("5471-T30",),
    ),
    Mutant(
        "5471-effect-is-ignored",
        _RULE,
        "if toleration.effect and toleration.effect != taint.effect:",
        "if toleration.effect and toleration.effect != taint.effect and toleration.operator not in NUMERIC:",
        ("5471-T5",),
    ),
    # -- validation
    Mutant(
        "5471-gate-is-ignored-in-validation",
        _VALID,
        "return Numbers.TAKEN if was_used or ctx.on(COMPARISON_GATE) else Numbers.REFUSED",
        "return Numbers.TAKEN",
        ("5471-T14",),
    ),
    Mutant(
        "5471-stored-pods-cannot-be-updated",
        _VALID,
        "return Numbers.TAKEN if was_used or ctx.on(COMPARISON_GATE) else Numbers.REFUSED",
        "return Numbers.TAKEN if ctx.on(COMPARISON_GATE) else Numbers.REFUSED",
        ("5471-T26",),
    ),
    Mutant(
        "5471-older-servers-know-the-operators",
        _VALID,
        "        return Numbers.UNHEARD_OF\n",
        "        return Numbers.REFUSED\n",
        ("5471-T14",),
    ),
    Mutant(
        "5471-canonical-form-is-not-required",
        _VALID,
        "errors = [invalid(path, text, fault) for fault in decimal_integer(text)]",
        "errors = [invalid(path, text, fault) for fault in decimal_integer(text) if not text]",
        ("5471-T15", "5471-T16"),
    ),
    Mutant(
        "5471-minus-zero-and-leading-zeros-are-taken",
        _VALID,
        "errors = [invalid(path, text, fault) for fault in decimal_integer(text)]",
        "errors = [invalid(path, text, fault) for fault in decimal_integer(text) if text.lstrip('-')[:1] != '0']",
        ("5471-T15",),
    ),
    Mutant(
        "5471-negative-numbers-are-refused",
        _VALID,
        "    elif not -(2**63) <= int(text) < 2**63:",
        "    elif not 0 <= int(text) < 2**63:",
        ("5471-T10",),
    ),
    Mutant(
        "5471-largest-number-is-one-too-large",
        _VALID,
        "    elif not -(2**63) <= int(text) < 2**63:",
        "    elif not -(2**63) <= int(text) <= 2**63:",
        ("5471-T16",),
    ),
    # -- the scheduler
    Mutant(
        "5471-scheduler-ignores-its-gate",
        "nodeward/scheduler/plugins/taint_toleration.py",
        'self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")',
        'self._numeric = context.gates.knows("TaintTolerationComparisonOperators")',
        ("5471-T23",),
    ),
    Mutant(
        "5471-scheduler-never-compares",
        "nodeward/scheduler/plugins/taint_toleration.py",
        'self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")',
        "self._numeric = False",
        ("5471-T7",),
    ),
    Mutant(
        "5471-scores-ignore-numbers",
        _SETS,
        "unwelcome(each, tolerations, numeric=numeric)",
        "unwelcome(each, tolerations, numeric=False)",
        ("5471-T19", "5471-T40"),
    ),
    Mutant(
        "5471-sets-are-judged-for-every-pod",
        _SETS,
        "        if known is not None and len(known.fits) == len(self._sets):\n            return known\n",
        "        known = None\n",
        ("5471-T38",),
    ),
    Mutant(
        "5471-old-values-are-kept-for-ever",
        "nodeward/scheduler/cache/node_taints.py",
        "        if len(self.sets) > 2 * len(self.ids) + SPARE_TAINT_SETS:\n",
        "        if not len(self.ids):\n",
        ("5471-T38",),
    ),
    Mutant(
        "5471-a-better-value-wakes-nobody",
        _PLUGIN,
        "return QueueingHint.QUEUE if was_blocked and not self._blocks(pod, new) else QueueingHint.SKIP",
        "return QueueingHint.QUEUE if old is None and not self._blocks(pod, new) else QueueingHint.SKIP",
        ("5471-T7", "5471-T42"),
    ),
    Mutant(
        "5471-unreadable-taints-are-not-logged",
        _PLUGIN,
        "        if self._unreadable is not None:\n",
        "        if self._unreadable is not None and not len(rows):\n",
        ("5471-T12",),
    ),
    Mutant(
        "5471-unreadable-taints-are-logged-for-every-pod",
        _LOG,
        "        self._logged[key] = None\n",
        "",
        ("5471-T12",),
    ),
    Mutant(
        "5471-unreadable-taints-are-logged-once-per-value",
        _LOG,
        "key = (node, taint.key, taint.value)",
        'key = ("", taint.key, taint.value)',
        ("5471-T12",),
    ),
    Mutant(
        "5471-why-does-not-say-no-number",
        _PLUGIN,
        '_named(taint) + (UNREADABLE if is_unreadable else "")',
        "_named(taint)",
        ("5471-T12",),
    ),
    Mutant(
        "5471-event-does-not-name-the-taint",
        "nodeward/scheduler/cycle.py",
        "            notes=said.notes,\n",
        "",
        ("5471-T31",),
    ),
    Mutant(
        "5471-event-names-an-old-value",
        "nodeward/scheduler/cache/pod_class.py",
        "        self.diagnosis = None\n        if nodes_version == self._node_version",
        "        if nodes_version == self._node_version",
        ("5471-T31",),
    ),
    Mutant(
        "5471-rollback-metric-is-gone",
        "nodeward/scheduler/metrics.py",
        '"scheduler_scheduling_duration_seconds",',
        '"scheduler_e2e_scheduling_duration_seconds",',
        ("5471-T33",),
    ),
    # -- eviction
    Mutant(
        "5471-eviction-ignores-numbers",
        _EVICTOR,
        'self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")',
        "self._numeric = False",
        ("5471-T8",),
    ),
    Mutant(
        "5471-eviction-ignores-its-gate",
        _EVICTOR,
        'self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")',
        "self._numeric = True",
        ("5471-T24",),
    ),
    Mutant(
        "5471-seconds-restart-with-every-value",
        _EVICTION,
        "    if key in before:\n        return before[key]\n",
        "",
        ("5471-T9",),
    ),
    Mutant(
        "5471-seconds-are-given-although-the-number-does-not-hold",
        _EVICTION,
        "            return EvictionDeadline(now_ns)\n",
        "            continue\n",
        ("5471-T8",),
    ),
    Mutant(
        "5471-shortest-seconds-are-not-found",
        _TAINTS,
        "            return 0\n",
        "            continue\n",
        ("5471-T9",),
    ),
    Mutant(
        "5471-device-eviction-ignores-numbers",
        _DEVICE_EVICTOR,
        'self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")',
        "self._numeric = False",
        ("5471-T22",),
    ),
    Mutant(
        "5471-device-eviction-ignores-its-gate",
        _DEVICE_EVICTOR,
        'self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")',
        "self._numeric = True",
        ("5471-T22",),
    ),
    Mutant(
        "5471-device-eviction-gives-no-seconds",
        _DEVICES,
        "min(seconds, default=0) * SECOND_NS",
        "0 * min(seconds, default=0) * SECOND_NS",
        ("5471-T22",),
    ),
    Mutant(
        "5471-device-eviction-forgets-rules-that-change",
        _DEVICE_EVICTOR,
        "        if old.spec != new.spec or",
        "        if old.spec.taint.effect != new.spec.taint.effect or",
        ("5471-T22",),
    ),
    # -- the kubelet
    Mutant(
        "5471-kubelet-asks-its-own-gate",
        "nodeward/kubelet/node/admission.py",
        """own gate.
    numeric = gates.knows(""",
        """own gate.
    numeric = gates.enabled(""",
        ("5471-T24",),
    ),
    Mutant(
        "5471-old-kubelet-knows-the-operators",
        "nodeward/kubelet/node/admission.py",
        """own gate.
    numeric = gates.knows("TaintTolerationComparisonOperators")""",
        """own gate.
    numeric = True""",
        ("5471-T30",),
    ),
    # -- the API
    Mutant(
        "5471-gate-is-on-by-default",
        "nodeward/features/catalogue.py",
        "TaintTolerationComparisonOperators A1.35-",
        "TaintTolerationComparisonOperators A1.35+",
        ("5471-T44",),
    ),
)
