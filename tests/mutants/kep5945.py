"""Rules of KEP-5945 that are broken on purpose, one a row; `make mutants` runs them."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_RESULTS: Final = "nodeward/rules/devices/results.py"
_TAKING: Final = "nodeward/rules/devices/taking.py"
_NODES: Final = "nodeward/rules/devices/node_operations.py"
_ALLOCATOR: Final = "nodeward/rules/devices/allocator.py"
_PLUGIN: Final = "nodeward/scheduler/plugins/dynamic_resources.py"
_HINTS: Final = "nodeward/scheduler/plugins/dra/claim_hints.py"

MUTANTS: Final[tuple[Mutant, ...]] = (
    # -- copied
    Mutant(
        "5945-not-copied",
        _RESULTS,
        "    operations = device.slice.spec.skip_node_operations if is_copied else None\n",
        "    operations = None\n",
        ("5945-11",),
    ),
    Mutant(
        "5945-false-is-left-out",
        _RESULTS,
        "        skip_node_operations=None if operations == [] else operations,\n",
        "        skip_node_operations=operations or None,\n",
        ("5945-12",),
    ),
    Mutant(
        "5945-list-becomes-a-boolean",
        _RESULTS,
        "        skip_node_operations=None if operations == [] else operations,\n",
        "        skip_node_operations=None if operations is None else bool(operations),\n",
        ("5945-U2",),
    ),
    Mutant(
        "5945-one-value-for-all-slices",
        _RESULTS,
        "    results = [_result(each, features, new_share_id) for each in chosen]\n",
        "    results = [_result(each, features, new_share_id) for each in chosen]\n"
        "    for each in results:\n"
        "        each.skip_node_operations = results[0].skip_node_operations\n",
        ("5945-13",),
    ),
    # -- the gate is off
    Mutant(
        "5945-used-with-the-gate-off",
        _TAKING,
        "        if self._features.node_operations is NodeOperations.REFUSED:\n",
        "        if self._features.node_operations is NodeOperations.UNKNOWN:\n",
        ("5945-14", "5945-U3"),
    ),
    Mutant(
        "5945-silent-with-the-gate-off",
        _ALLOCATOR,
        "            return NoDevices(DISABLED)\n",
        "            return NoDevices(CANNOT_ALLOCATE)\n",
        ("5945-14",),
    ),
    Mutant(
        "5945-all-slices-refused-with-the-gate-off",
        _TAKING,
        "        if not operations or self._features.node_operations is NodeOperations.UNKNOWN:\n",
        "        if self._features.node_operations is NodeOperations.UNKNOWN:\n",
        ("5945-15",),
    ),
    Mutant(
        "5945-one-such-slice-fails-the-claim-with-the-gate-off",
        _TAKING,
        "            self.refusals.add(NodeOperationsRefusal.DISABLED)\n            return False\n",
        "            self.refusals.add(NodeOperationsRefusal.DISABLED)\n"
        '            raise AllocationError("the feature is disabled")\n',
        ("5945-15",),
    ),
    # -- nodes
    Mutant(
        "5945-any-node-can-skip",
        _NODES,
        "    return operations is not True and OPERATIONS_FEATURE in declared\n",
        "    return True\n",
        ("5945-35", "5945-I2"),
    ),
    Mutant(
        "5945-the-shipped-name-stands-for-the-boolean",
        _NODES,
        "    return operations is not True and OPERATIONS_FEATURE in declared\n",
        "    return OPERATIONS_FEATURE in declared\n",
        ("5945-35",),
    ),
    Mutant(
        "5945-allocated-claims-go-anywhere",
        _PLUGIN,
        "        return can_skip_all(allocation.devices.results, node.status.declared_features)\n",
        "        return True\n",
        ("5945-35",),
    ),
    Mutant(
        "5945-event-does-not-name-the-feature",
        _ALLOCATOR,
        "        return NoDevices(UNDECLARED if trials.refusals else CANNOT_ALLOCATE)\n",
        "        return NoDevices(CANNOT_ALLOCATE)\n",
        ("5945-37", "5945-I3"),
    ),
    Mutant(
        "5945-a-new-feature-wakes-nobody",
        _HINTS,
        "    | Action.UPDATE_NODE_DECLARED_FEATURE\n",
        "",
        ("5945-36",),
    ),
    Mutant(
        "5945-any-feature-wakes-everybody",
        _HINTS,
        "        return _hint(not self._judge(state, new).is_rejected)\n",
        "        return QueueingHint.QUEUE\n",
        ("5945-36",),
    ),
    # -- KEP-5471 for devices
    Mutant(
        "5945-device-tolerations-do-not-compare",
        _TAKING,
        "        numeric = self._features.numeric_tolerations\n",
        "        numeric = False\n",
        ("5471-T22",),
    ),
    Mutant(
        "5945-device-tolerations-compare-without-the-gate",
        _TAKING,
        "        numeric = self._features.numeric_tolerations\n",
        "        numeric = True\n",
        ("5471-T22",),
    ),
)
