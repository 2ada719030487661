"""KEP-5945 from end to end: control plane, kubelet, driver and containers are processes of their own.

The kubelet has its node's own identity, and the driver is called over gRPC on unix sockets.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.keps.driver_processes import DRIVER, Site, site
from tests.keps.ledger import statement

pytestmark = pytest.mark.slow


@pytest.fixture
def place() -> Iterator[Site]:
    with site() as made:
        yield made


@statement("5945-E1.1")
@statement("5945-G1", part="e2e")
@pytest.mark.parametrize("skips", [True, ["*"]])
def test_without_a_driver_on_the_node_a_pod_runs_and_ends_if_its_devices_skip_node_operations(
    place: Site, skips: Any
) -> None:
    place.start_kubelet()
    place.start_driver(node="", skips=skips)
    place.start_pod()
    place.wait_running()
    assert place.events("FailedPrepareDynamicResources") == []
    [claim] = place.claims_on_disk()
    assert claim["DriverState"] == {DRIVER: {"Devices": None, "skipNodeOperations": ["*"]}}
    place.delete_pod()
    assert place.claims_on_disk() == []
    assert place.prepared() == []


@statement("5945-E1.2")
@statement("5945-G1", part="e2e")
@pytest.mark.parametrize("skips", [None, False])
def test_without_a_driver_on_the_node_a_pod_waits_unless_its_devices_skip_node_operations(
    place: Site, skips: Any
) -> None:
    place.start_kubelet()
    place.start_driver(node="", skips=skips)
    place.start_pod()
    assert place.wait_event("FailedPrepareDynamicResources") == (
        f"Failed to prepare dynamic resources: prepare dynamic resources: DRA driver {DRIVER} is not registered"
    )
    _, pod = place.cluster.call("GET", "/api/v1/namespaces/default/pods/p")
    [container] = pod["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "ContainerCreating"
    # Once there is a driver, the pod starts without waiting for its next try.
    place.start_driver(skips=skips)
    place.wait_running()


@statement("5945-E2.1")
@statement("5945-G1", part="e2e")
@pytest.mark.parametrize("skips", [None, False])
def test_with_a_driver_both_calls_are_made_and_the_container_has_its_device(place: Site, skips: Any) -> None:
    place.start_kubelet()
    driver = place.start_driver(skips=skips)
    place.start_pod()
    prepared = driver.until("prepared")
    place.wait_running()
    assert prepared["claim"] == "default/c"
    assert place.prepared() == [f"nodeward-{prepared['uid']}.json"]
    place.delete_pod()
    assert driver.until("unprepared")["uid"] == prepared["uid"]
    assert place.prepared() == []
    assert place.claims_on_disk() == []


def test_the_container_finds_the_device_of_its_claim(place: Site) -> None:
    place.start_kubelet()
    place.start_driver()
    place.start_pod()
    place.wait_running()
    place.wait_output("devices: n1/device-")
    place.delete_pod()


# -- kills: the pod ends Running or cleanly gone, and no device stays prepared


def test_a_driver_that_is_killed_while_it_prepares_prepares_again_when_it_is_back(place: Site) -> None:
    place.start_kubelet()
    driver = place.start_driver("--crash-in-prepare")
    place.start_pod()
    assert driver.wait() == -signal.SIGKILL
    place.wait_event("FailedPrepareDynamicResources", "rpc error: code = Unavailable")
    again = place.start_driver("--crash-in-prepare", is_awaited=False)
    uid = again.until("prepared")["uid"]
    place.wait_running()
    assert place.prepared() == [f"nodeward-{uid}.json"]
    place.delete_pod()
    assert place.prepared() == []
    assert place.claims_on_disk() == []


def test_a_kubelet_that_is_killed_between_prepare_and_checkpoint_prepares_again_and_leaks_nothing(
    place: Site,
) -> None:
    kubelet = place.start_kubelet()
    driver = place.start_driver("--slow", "2s")
    place.start_pod()
    uid = driver.until("prepared")["uid"]
    kubelet.stop(signal.SIGKILL)  # before it hears of that
    [claim] = place.claims_on_disk()
    assert (claim["ClaimUID"], claim["DriverState"][DRIVER]["Devices"]) == (uid, None)
    place.start_kubelet()
    assert driver.until("prepared")["uid"] == uid
    place.wait_running()
    assert place.prepared() == [f"nodeward-{uid}.json"]
    place.delete_pod()
    assert driver.until("unprepared")["uid"] == uid
    assert place.prepared() == []
    assert place.claims_on_disk() == []


def test_a_pod_that_is_deleted_while_its_driver_fails_ends_once_the_driver_works(place: Site) -> None:
    place.start_kubelet()
    driver = place.start_driver("--fail-unprepares", "1")
    place.start_pod()
    uid = driver.until("prepared")["uid"]
    place.wait_running()
    place.delete_pod()
    assert driver.until("unprepared")["uid"] == uid
    assert place.prepared() == []
