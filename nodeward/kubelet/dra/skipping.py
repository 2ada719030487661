"""Which operations of a driver a claim does without, from the results of its allocation (KEP-5945).

The DRA manager asks when it prepares a claim and records the answer with the claim. A result says it with a boolean, as
the proposal has it, or with a list of operations, as Kubernetes 1.37 has it; true is the list `["*"]`. Pure.

What must stay true: an operation is skipped only if all results of that driver in that claim say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from nodeward.api.resource_v1 import DeviceRequestAllocationResult
from nodeward.features.declared.dra_optional_node_operations import NAME as OPERATIONS_GATE
from nodeward.features.declared.dra_optional_node_preparation import OPTIONAL_PREPARATION_GATE
from nodeward.features.gates import Gates

ALL: Final = "*"
PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"
#: What the error of a kubelet whose gate is off begins with.
DISABLED: Final = "DRAOptionalNodePreparationDisabled"

Operations = tuple[str, ...]


class SkipSupport(Enum):
    """What a kubelet makes of skipNodeOperations."""

    #: its version has never heard of the field
    UNKNOWN = "unknown"
    #: its gate is off: nothing new is skipped
    OFF = "off"
    ON = "on"

    @classmethod
    def of(cls, gates: Gates) -> SkipSupport:
        if not gates.knows(OPTIONAL_PREPARATION_GATE):
            return cls.UNKNOWN
        return cls.ON if gates.enabled(OPTIONAL_PREPARATION_GATE) else cls.OFF


def skipped_operations(results: Iterable[DeviceRequestAllocationResult]) -> dict[str, Operations]:
    """Return for each driver of an allocation the operations that all of its results skip, sorted; () is none."""
    by_driver: dict[str, list[frozenset[str]]] = {}
    for each in results:
        said = _as_list(each.skip_node_operations)
        by_driver.setdefault(each.driver, []).append(frozenset(said))
    return {driver: _joined(said) for driver, said in by_driver.items()}


def _as_list(said: bool | Sequence[str] | None) -> Sequence[str]:
    if said is None or isinstance(said, bool):
        return (ALL,) if said else ()
    return said


def _joined(said: Sequence[frozenset[str]]) -> Operations:
    if all(ALL in each for each in said):
        return (ALL,)
    named = frozenset[str]().union(*said) - {ALL}
    return tuple(
        sorted(operation for operation in named if all(operation in each or ALL in each for each in said))
    )


def skips(operations: Operations, operation: str) -> bool:
    """Tell whether an operation is one of those that are skipped. Operations nobody knows mean nothing."""
    return ALL in operations or operation in operations


def disabled_text(results: Sequence[DeviceRequestAllocationResult]) -> str:
    """Return why a kubelet whose gate is off does not prepare this allocation; "" if it says nothing of skipping.

    The boolean counts wherever it is true, as in the proposal; a list counts where it has an effect, as in 1.37.
    """
    if any(each.skip_node_operations is True for each in results):
        return f"{DISABLED}: {OPTIONAL_PREPARATION_GATE} feature gate is disabled on kubelet"
    if any(skipped_operations(results).values()):
        return f"{DISABLED}: {OPERATIONS_GATE} feature gate is disabled on kubelet"
    return ""
