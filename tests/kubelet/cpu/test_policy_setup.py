"""The static policy needs reserved CPUs."""

from __future__ import annotations

import pytest

from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.cpu.policy_setup import make_static_policy
from nodeward.kubelet.cpu.topology import CPUDescription

FOUR_CORES = CPUDescription(cores_per_numa=4, threads=2).topology()


def test_part_of_a_reserved_cpu_counts_as_a_whole_one() -> None:
    policy = make_static_policy(FOUR_CORES, CpuManagerOptions(), Quantity.parse("1500m"))
    assert str(policy.reserved) == "0,4"


@pytest.mark.parametrize(
    ("reservation", "text"),
    [
        (None, r"^\[cpumanager\] unable to determine reserved CPU resources for static policy$"),
        ("0", r"requires systemreserved.cpu \+ kubereserved.cpu to be greater than zero$"),
        ("9", r"^new static policy error: .* \(size of  did not equal 9\)$"),
    ],
)
def test_a_reservation_that_cannot_be_is_refused(reservation: str | None, text: str) -> None:
    amount = None if reservation is None else Quantity.parse(reservation)
    with pytest.raises(ConfigError, match=text):
        make_static_policy(FOUR_CORES, CpuManagerOptions(), amount)
