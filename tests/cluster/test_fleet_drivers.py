"""DRA drivers of simulated nodes as a Fleet file describes them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import ConfigError
from nodeward.cluster.description import Pool
from nodeward.cluster.fleet_file import load_fleet
from nodeward.kubelet.dra.described_drivers import ALWAYS, DriverDescription
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.clusters import world
from tests.rules.devices.allocating import claim, device_class, devices, slice_of
from tests.scheduler.plugins.devices import using

DRIVER = "gpu.example.com"


def drivers(text: str) -> tuple[DriverDescription, ...]:
    file = f"apiVersion: nodeward.dev/v1alpha1\nkind: Fleet\npools:\n- name: blue\n  drivers:\n{text}\n"
    (found,) = load_fleet(file.encode(), "fleet.yaml", "1.37").pools
    return found.drivers


def test_a_described_driver_has_its_times_and_failures() -> None:
    text = (
        f"  - {{name: {DRIVER}, prepareTime: 2s, unprepareTime: 500ms, failPrepares: 3, failUnprepares: -1}}"
    )
    assert drivers(f"{text}\n  - {{name: nic.example.com, absent: true}}") == (
        DriverDescription(
            name=DRIVER,
            prepare_seconds=2.0,
            unprepare_seconds=0.5,
            failing_prepares=3,
            failing_unprepares=ALWAYS,
        ),
        DriverDescription(name="nic.example.com", is_absent=True),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  - {prepareTime: 1s}", "pools[0].drivers[0].name: Invalid value: ''"),
        ("  - {name: a, failPrepares: -2}", "pools[0].drivers[0].failPrepares: Invalid value: -2"),
        ("  - {name: a, prepareTime: -1s}", "pools[0].drivers[0].prepareTime: want no time less than 0s"),
        ("  - {name: a}\n  - {name: a}", 'pools[0].drivers[1].name: Invalid value: "a": another driver'),
        ("  - {name: a}\n  runtime: process", "pools[0].drivers: only those of simulated nodes"),
        ("  - {name: a, slow: true}", "slow"),
    ],
)
def test_a_driver_that_makes_no_sense_is_refused_with_its_field(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        drivers(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("described", "phase"),
    [
        pytest.param({}, "Running", id="it works"),
        pytest.param({"prepare_seconds": 5.0}, "Running", id="it is slow"),
        pytest.param({"failing_prepares": 1}, "Running", id="it fails once"),
        pytest.param({"is_absent": True}, "Pending", id="it is absent"),
    ],
)
def test_a_pod_of_a_fleet_starts_as_its_driver_lets_it(described: dict[str, Any], phase: str) -> None:
    async def main(clock: VirtualClock) -> None:
        pool = Pool(name="sim", drivers=(DriverDescription(name=DRIVER, **described),))
        async with world(clock, pool) as cluster:
            await cluster.add(device_class(), slice_of(devices(1), nodeName="sim-0"), claim())
            await cluster.add(using("p", "c", terminationGracePeriodSeconds=1))
            await cluster.pass_time(20)
            assert (await cluster.pod("p")).status.phase == phase
            await cluster.client.delete(Pod, "p", "default")
            await cluster.pass_time(5)
            assert [each.metadata.name for each in (await cluster.client.list(Pod)).items] == []

    run_virtual(main)
