"""Device profiles: thousands of devices from a few lines, and all mistakes of a file at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.base.errors import ConfigError
from nodeward.dra.device_profile import load_profile, load_profile_file

EXAMPLES = Path(__file__).parents[2] / "examples" / "dra"
HEAD = "apiVersion: nodeward.dev/v1alpha1\nkind: DeviceProfile\n"


def test_a_driver_without_node_part_has_a_thousand_devices_for_all_nodes() -> None:
    profile = load_profile_file(EXAMPLES / "licences.yaml")
    [pool] = profile.pools
    assert (profile.skip_node_operations, pool.place.all_nodes, len(pool.devices)) == (True, True, 1000)
    assert pool.devices[999].name == "seat-999"


def test_a_driver_with_a_node_part_has_its_node_for_place_and_pool() -> None:
    profile = load_profile_file(EXAMPLES / "gpus.yaml", "n1")
    [pool] = profile.pools
    assert (profile.skip_node_operations, pool.name, pool.place.node_name) == (None, "n1", "n1")
    last = pool.devices[-1]
    assert (last.name, last.attributes["index"].int_, str(last.capacity["memory"].value)) == (
        "device-7",
        7,
        "40Gi",
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("[]", ["want one DeviceProfile"], id="no map"),
        pytest.param(
            "a: 1", ["want nodeward.dev/v1alpha1", "no such field", "driver", "pools"], id="all wrong"
        ),
        pytest.param(
            HEAD + "driver: d\npools: [{name: p, count: 100001, allNodes: true}]",
            ["pools[0].count: Invalid value: 100001: want a number from 0 to 100000"],
            id="too many",
        ),
        pytest.param(
            HEAD + "driver: d\npools: [{name: p}]",
            ["pools[0]: want one of nodeName, nodeSelector, allNodes"],
            id="no place",
        ),
        pytest.param(
            HEAD + "driver: d\nskipNodeOperations: 1\npools: [{name: p, allNodes: true, device: 3}]",
            ["skipNodeOperations: Invalid value: 1", "pools[0].device: Invalid value: 3"],
            id="shapes",
        ),
        pytest.param(
            HEAD + "driver: d\npools: [{name: p, allNodes: true, device: {attributes: 3}}]",
            ["pools[0]: "],
            id="no device",
        ),
    ],
)
def test_everything_that_is_wrong_is_told_with_file_and_field(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"file\.yaml") as caught:
        load_profile(text.encode(), "file.yaml")
    for part in parts:
        assert part in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        load_profile_file(Path("nowhere.yaml"))
