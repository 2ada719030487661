"""The file that describes the devices of a driver, thousands of pretended ones if need be.

```yaml
apiVersion: nodeward.dev/v1alpha1
kind: DeviceProfile
driver: gpu.example.com
skipNodeOperations: true          # the driver has no node part (KEP-5945); or a list of operations, as in 1.37
pools:
- name: rack-1                    # of a driver with a node part: the node's name
  count: 1000                     # so many devices
  allNodes: true                  # or nodeName, nodeSelector; of a driver with a node part: its node
  device:                         # each of them; {n} is its number
    attributes: {model: {string: pretended}, index: {int: "{n}"}}
    capacity: {memory: {value: 40Gi}}
```

All that is wrong is told at once, each with file, line and field. What a device may say is checked by the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeward.api.codec import from_tree
from nodeward.api.resource_v1 import Device, ResourceSliceSpec
from nodeward.base.errors import ConfigError
from nodeward.base.problems import Problems
from nodeward.base.yaml_text import documents

PROFILE_VERSION: Final = "nodeward.dev/v1alpha1"
PROFILE_KIND: Final = "DeviceProfile"
#: More devices than this in one pool are a slip of the finger.
MOST_DEVICES: Final = 100_000
_FIELDS: Final = ("apiVersion", "kind", "driver", "skipNodeOperations", "pools")
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes")
_POOL_FIELDS: Final = ("name", "count", "device", *_PLACES)
_NUMBER: Final = "{n}"


@dataclass(frozen=True, slots=True)
class ProfilePool:
    """Devices that are published together; `place` has what a slice says of the nodes that can use them."""

    name: str
    devices: tuple[Device, ...]
    place: ResourceSliceSpec


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """What a driver has to offer."""

    driver: str
    pools: tuple[ProfilePool, ...]
    skip_node_operations: bool | list[str] | None = None


def load_profile_file(path: Path, node: str = "") -> DeviceProfile:
    """Return the profile in a file; `node` is the node of a driver with a node part. Raises `ConfigError`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return load_profile(text, str(path), node)


def load_profile(text: bytes, shown: str, node: str = "") -> DeviceProfile:
    """Return the profile in bytes."""
    found = list(documents(text, shown))
    if len(found) != 1 or not isinstance(found[0].tree, dict):
        raise ConfigError(f"{shown}: want one {PROFILE_KIND}, a map with apiVersion: {PROFILE_VERSION}")
    tree, problems = found[0].tree, Problems(found[0])
    for name, wanted in (("apiVersion", PROFILE_VERSION), ("kind", PROFILE_KIND)):
        if tree.get(name) != wanted:
            problems.say(name, f"want {wanted}, got {tree.get(name)!r}")
    _check_names(tree, _FIELDS, "", problems)
    driver, skips = tree.get("driver"), tree.get("skipNodeOperations")
    if not isinstance(driver, str) or not driver:
        problems.wrong("driver", driver, "want the name of a driver, like gpu.example.com")
        driver = ""
    is_list = isinstance(skips, list) and all(isinstance(each, str) for each in skips)
    if not (skips is None or isinstance(skips, bool) or is_list):
        problems.wrong("skipNodeOperations", skips, "want true, false or a list of operations")
        skips = None
    pools = tree.get("pools")
    if not isinstance(pools, list) or not pools:
        problems.say("pools", "want at least one")
        pools = []
    made = [_pool(each, f"pools[{place}]", node, problems) for place, each in enumerate(pools)]
    problems.settle()
    return DeviceProfile(driver, tuple(made), skips)


def _pool(tree: Any, at: str, node: str, problems: Problems) -> ProfilePool:
    nothing = ProfilePool("", (), ResourceSliceSpec())
    if not isinstance(tree, dict):
        problems.wrong(at, tree, "want a map with name, count and device")
        return nothing
    _check_names(tree, _POOL_FIELDS, f"{at}.", problems)
    place = {name: tree[name] for name in _PLACES if name in tree} or ({"nodeName": node} if node else {})
    if len(place) != 1:
        problems.say(at, f"want one of {', '.join(_PLACES)}, or a driver with a node part")
    name = tree.get("name") or node
    if not isinstance(name, str) or not name:
        problems.wrong(f"{at}.name", name, "want the name of a pool, like rack-1")
    count = tree.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_DEVICES:
        problems.wrong(f"{at}.count", count, f"want a number from 0 to {MOST_DEVICES}")
        return nothing
    device = tree.get("device", {})
    if not isinstance(device, dict):
        problems.wrong(f"{at}.device", device, "want a map with attributes and capacity")
        return nothing
    named = {"name": f"device-{_NUMBER}", **device}
    try:
        devices = tuple(from_tree(_numbered(named, number), Device) for number in range(count))
        return ProfilePool(name, devices, from_tree(place, ResourceSliceSpec))
    except (msgspec.ValidationError, ValueError) as error:
        problems.say(at, str(error))
        return nothing


def _check_names(tree: Mapping[str, Any], known: tuple[str, ...], at: str, problems: Problems) -> None:
    for name in tree:
        if name not in known:
            problems.say(f"{at}{name}", f"no such field; there are {', '.join(known)}")


def _numbered(tree: Any, number: int) -> Any:
    """Put a device's number in the place of {n}; a text that is nothing else becomes a number."""
    match tree:
        case dict():
            return {key: _numbered(value, number) for key, value in tree.items()}
        case list():
            return [_numbered(each, number) for each in tree]
        case str() if tree == _NUMBER:
            return number
        case str():
            return tree.replace(_NUMBER, str(number))
    return tree
