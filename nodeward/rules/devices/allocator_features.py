"""Which parts of dynamic resource allocation are on, as a value. Made from the scheduler's gates for the allocator.

A scheduler that is older than a feature has never heard of its fields; one whose gate is off knows them and does not
act on them. Only `skipNodeOperations` makes a difference between the two (KEP-5945).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from nodeward.features.gates import Gates

OPTIONAL_PREPARATION_GATE: Final = "DRAOptionalNodePreparation"


class NodeOperations(Enum):
    """What becomes of `skipNodeOperations` of a slice."""

    #: the version has never heard of it: the devices are used, and the results do not have the field
    UNKNOWN = "unknown"
    #: the gate is off: the devices cannot be used
    REFUSED = "refused"
    #: the gate is on: the results say what the slice says
    COPIED = "copied"


@dataclass(frozen=True, slots=True)
class AllocatorFeatures:
    """The features of one allocator, named after their gates."""

    admin_access: bool = True
    binding_conditions: bool = True
    compatibility_groups: bool = False
    consumable_capacity: bool = True
    derived_attributes: bool = False
    device_taints: bool = True
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    partitionable_devices: bool = True
    prioritized_list: bool = True
    #: `Lt` and `Gt` in tolerations of devices (KEP-5471, stories 4 and 5)
    numeric_tolerations: bool = False
    node_operations: NodeOperations = NodeOperations.REFUSED

    @classmethod
    def of(cls, gates: Gates) -> AllocatorFeatures:
        """Return the features of a scheduler with these gates."""
        on = gates.enabled
        if not gates.knows(OPTIONAL_PREPARATION_GATE):
            operations = NodeOperations.UNKNOWN
        else:
            operations = NodeOperations.COPIED if on(OPTIONAL_PREPARATION_GATE) else NodeOperations.REFUSED
        return cls(
            admin_access=on("DRAAdminAccess"),
            binding_conditions=on("DRADeviceBindingConditions") and on("DRAResourceClaimDeviceStatus"),
            compatibility_groups=on("DRADeviceCompatibilityGroups"),
            consumable_capacity=on("DRAConsumableCapacity"),
            derived_attributes=on("DRADerivedAttributes"),
            device_taints=on("DRADeviceTaints"),
            fractional_capacity_range=on("DRAFractionalCapacityRange"),
            list_type_attributes=on("DRAListTypeAttributes"),
            partitionable_devices=on("DRAPartitionableDevices"),
            prioritized_list=on("DRAPrioritizedList"),
            numeric_tolerations=on("TaintTolerationComparisonOperators"),
            node_operations=operations,
        )
