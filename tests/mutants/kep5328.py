"""Rules of KEP-5328 that are broken on purpose, one a row; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_VALIDATOR: Final = "nodeward/apiserver/admission/node_declared_feature_validator.py"
_PLUGIN: Final = "nodeward/scheduler/plugins/node_declared_features.py"
_KUBELET: Final = "nodeward/kubelet/node/features.py"
_LIBRARY: Final = "nodeward/features/declared/framework.py"

MUTANTS: Final[tuple[Mutant, ...]] = (
    # -- the API server
    Mutant(
        "validator-ignores-its-gate",
        _VALIDATOR,
        "        if not self._is_on:\n",
        "        if False:\n",
        ("5328-D45", "5328-D46", "5328-D59"),
    ),
    Mutant(
        "validator-target-version-is-constant",
        _VALIDATOR,
        "Version.parse(env.gates.version)",
        'Version.parse("1.37")',
        ("5328-D38",),
    ),
    Mutant(
        "validator-lets-a-missing-node-pass",
        _VALIDATOR,
        '            raise write.refuse(f"node {quote(node_name)} not found")\n',
        "            return\n",
        ("5328-D37",),
    ),
    Mutant(
        "validator-admits-what-it-cannot-infer",
        _VALIDATOR,
        'raise write.refuse(f"failed to infer pod capability requirements: {error}") from error',
        "return",
        ("5328-D38",),
    ),
    Mutant(
        "validator-looks-at-no-resize",
        _VALIDATOR,
        'write.is_about("pods", "", "resize")',
        'write.is_about("pods", "")',
        ("5328-D35", "5328-D40"),
    ),
    Mutant(
        "refused-writes-are-not-measured",
        "nodeward/apiserver/admission/chain.py",
        "            self._note(name, kind, write, clock.monotonic_ns() - started_ns, is_refused=True)\n",
        "",
        ("5328-D49",),
    ),
    # -- the scheduler
    Mutant(
        "scheduler-ignores-its-gate",
        _PLUGIN,
        'gate: ClassVar[str] = "NodeDeclaredFeatures"',
        'gate: ClassVar[str] = ""',
        ("5328-D45", "5328-D59"),
    ),
    Mutant(
        "scheduler-target-version-is-constant",
        _PLUGIN,
        "self._version = context.version",
        "self._version = type(context.version)(1, 37)",
        ("5328-D20", "5328-D24"),
    ),
    Mutant(
        "scheduler-message-names-no-feature",
        _PLUGIN,
        "features: {', '.join(missing.names())}",
        "features",
        ("5328-D26", "5328-D31"),
    ),
    Mutant(
        "no-list-wakes-a-pod-that-waits",
        _PLUGIN,
        "return QueueingHint.QUEUE if has and not had else QueueingHint.SKIP",
        "return QueueingHint.SKIP",
        ("5328-D28", "5328-D29"),
    ),
    Mutant(
        "every-list-wakes-a-pod-that-waits",
        _PLUGIN,
        "return QueueingHint.QUEUE if has and not had else QueueingHint.SKIP",
        "return QueueingHint.QUEUE",
        ("5328-D28", "5328-D29"),
    ),
    # -- the kubelet
    Mutant(
        "kubelet-checks-only-with-an-unknown-gate",
        _KUBELET,
        "gates.enabled(NODE_DECLARED_FEATURES_GATE) or not gates.knows(NODE_DECLARED_FEATURES_GATE)",
        "not gates.knows(NODE_DECLARED_FEATURES_GATE)",
        ("5328-D16", "5328-D53"),
    ),
    Mutant(
        "kubelet-publishes-bad-names",
        _KUBELET,
        "        if fault:\n",
        "        if False:\n",
        ("5328-D13",),
    ),
    Mutant(
        "rejection-says-nothing",
        "nodeward/kubelet/node/admission.py",
        "return f\"Pod requires node features that are not available: {', '.join(missing)}\"",
        'return ""',
        ("5328-D16",),
    ),
    Mutant(
        "rejection-event-says-nothing",
        "nodeward/kubelet/pods/lifecycle.py",
        "            out.append(RecordEvent(WARNING, reason, message))\n            state.is_rejected",
        '            out.append(RecordEvent(WARNING, reason, ""))\n            state.is_rejected',
        ("5328-D16",),
    ),
    Mutant(
        "rejections-are-not-counted",
        "nodeward/kubelet/pod_manager.py",
        "                self._metrics.rejected(refusal.reason)\n",
        "",
        ("5328-D16", "5328-D49"),
    ),
    Mutant(
        "status-list-loses-its-first-feature",
        "nodeward/kubelet/node/status.py",
        'found["declaredFeatures"] = list(self.features.names) or None',
        'found["declaredFeatures"] = list(self.features.names[1:]) or None',
        ("5328-D14", "5328-D15"),
    ),
    Mutant(
        "kubelet-keeps-the-list-with-its-gate-off",
        "nodeward/kubelet/node/status.py",
        "        if tuple(stored.declared_features) != self.features.names:\n",
        "        if self.features.names and tuple(stored.declared_features) != self.features.names:\n",
        ("5328-D46", "5328-D59"),
    ),
    Mutant(
        "status-round-reads-the-node",
        "nodeward/kubelet/node_manager.py",
        "        outcomes, agent.outcomes = agent.outcomes, {}\n",
        "        outcomes, agent.outcomes = agent.outcomes, {}\n        await self._client.get(Node, name)\n",
        ("5328-D51",),
    ),
    Mutant(
        "abilities-of-the-runtime-do-not-reach-the-node",
        "nodeward/cluster/real_node.py",
        "            abilities=self._runtime.abilities,\n",
        "",
        ("5328-D9", "5328-D34"),
    ),
    # -- the library
    Mutant(
        "framework-declares-with-its-gate-off",
        _LIBRARY,
        "        if not config.gates.enabled(NODE_DECLARED_FEATURES_GATE):\n",
        "        if False:\n",
        ("5328-D52", "5328-D59"),
    ),
    Mutant(
        "resize-of-memory-volumes-is-declared-where-nothing-resizes-them",
        "nodeward/features/declared/memory_volumes_resize.py",
        "Requirements((NAME,), able(MEMORY_VOLUME_RESIZE))",
        "Requirements((NAME,))",
        ("5328-D9",),
    ),
    Mutant(
        "last-version-is-excluded",
        "nodeward/features/declared/feature.py",
        "version <= self.max_version",
        "version < self.max_version",
        ("5328-D20",),
    ),
    Mutant(
        "5328-resize-works-and-is-not-declared",
        "nodeward/kubelet/node/abilities.py",
        "KUBELET_ABILITIES: Final = able(POD_RESIZE)\n",
        "KUBELET_ABILITIES: Final = able()\n",
        ("5328-D9", "5328-D40"),
    ),
)
