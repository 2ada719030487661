"""The file that describes a fleet: pools of nodes with their versions, gates, machines and settings.

```yaml
apiVersion: nodeward.dev/v1alpha1
kind: Fleet
pools:
- name: blue
  nodes: 100
  version: "1.36"
  featureGates: {NodeReadinessGates: true}
  labels: {team: a}
  zones: [a, b, c]
  taints: [{key: dedicated, value: gpu, effect: NoSchedule}]
  capacity: {cpu: 16, memory: 64Gi, pods: 110}
  cpu: {sockets: 2, numaPerSocket: 4, coresPerNuma: 16, threads: 2, uncore: 8, reserved: "0,64"}   # gives capacity.cpu
  kubelet: {nodeLeaseDurationSeconds: 40}     # fields of a KubeletConfiguration
  behaviour: start-delay=1s                   # of simulated containers
  drivers:                                    # DRA drivers of simulated nodes; prepareTime, failPrepares, absent, ...
  - {name: gpu.example.com, prepareTime: 2s}
  rollout: {atOnce: 10, pause: 5s}            # how an upgrade goes: so many kubelets, a pause, the next ones
nodes:                                        # those with which something is the matter
- name: blue-3
  cutOff: true                                # no network
- name: blue-7
  boots: 1                                    # rebooted so often: another number is another reboot
```

All that is wrong is told at once, each with file, line and field; nothing is started from a file with a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from nodeward.api.core_v1.references import Taint
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.base.problems import Problems
from nodeward.base.quantity import Quantity
from nodeward.base.yaml_text import YamlDocument, documents
from nodeward.cluster.description import RUNTIMES, FleetPlan, NodeState, Pool
from nodeward.cluster.pools import machine_of
from nodeward.features import Gates
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.config.reading import cleaned
from nodeward.kubelet.config.shape import ListOf, MapOf, Part, Plain
from nodeward.kubelet.cpu.policy_setup import configured_policy
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.kubelet.cpu.topology import COUNTS, CPUDescription
from nodeward.kubelet.dra.described_drivers import DriverDescription
from nodeward.kubelet.runtime.behaviour import USUAL, parse

API_VERSION: Final = "nodeward.dev/v1alpha1"
KIND: Final = "Fleet"
#: More nodes than this in one pool are a slip of the finger.
MOST_NODES: Final = 100_000

#: How the DRA drivers of simulated nodes are described; read by `DriverDescription`.
_DRIVER: Final = Part(
    {
        "name": Plain.TEXT,
        "prepareTime": Plain.SPAN,
        "unprepareTime": Plain.SPAN,
        "failPrepares": Plain.INT32,
        "failUnprepares": Plain.INT32,
        "absent": Plain.TRUTH,
    }
)
_POOL: Final = Part(
    {
        "name": Plain.TEXT,
        "nodes": Plain.INT32,
        "version": Plain.TEXT,
        "featureGates": MapOf(Plain.TRUTH),
        "runtime": Plain.TEXT,
        "labels": MapOf(Plain.TEXT),
        "zones": ListOf(Plain.TEXT),
        "taints": ListOf(Part({"key": Plain.TEXT, "value": Plain.TEXT, "effect": Plain.TEXT})),
        "capacity": MapOf(Plain.QUANTITY),
        "cpu": Part({**dict.fromkeys(COUNTS, Plain.INT32), "uncore": Plain.INT32, "reserved": Plain.TEXT}),
        # Read by the kubelet's own rules.
        "kubelet": Plain.MAP,
        "behaviour": Plain.TEXT,
        "drivers": ListOf(_DRIVER),
        "rollout": Part({"atOnce": Plain.INT32, "pause": Plain.SPAN}),
    }
)
_NODE: Final = Part({"name": Plain.TEXT, "cutOff": Plain.TRUTH, "boots": Plain.INT32})
_FLEET: Final = Part(
    {"apiVersion": Plain.TEXT, "kind": Plain.TEXT, "pools": ListOf(_POOL), "nodes": ListOf(_NODE)}
)


def load_fleet_file(path: Path, version: str) -> FleetPlan:
    """The fleet in a file; `version` is that of nodes which do not say theirs."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return load_fleet(text, str(path), version)


def fleet_text(pools: Sequence[Mapping[str, Any]]) -> str:
    """A file with these pools, as trees."""
    return dump({"apiVersion": API_VERSION, "kind": KIND, "pools": [dict(pool) for pool in pools]})


def dump(tree: Mapping[str, Any]) -> str:
    """A tree as people write it."""
    return str(yaml.safe_dump(dict(tree), sort_keys=False, default_flow_style=False, allow_unicode=True))


def load_fleet(text: bytes, shown: str, version: str) -> FleetPlan:
    """The same from bytes."""
    found = list(documents(text, shown))
    if len(found) != 1 or not isinstance(found[0].tree, dict):
        raise ConfigError(f"{shown}: want one {KIND}, a map with apiVersion: {API_VERSION}")
    document = found[0]
    problems = Problems(document)
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.tree.get(name) != wanted:
            problems.say(name, f"want {wanted}, got {document.tree.get(name)!r}")
    tree = cleaned(document.tree, _FLEET, problems)
    given = tree.get("pools", ())
    # What is no pool has been told, and left out of those that were cleaned.
    places = (
        [place for place, each in enumerate(document.tree["pools"]) if isinstance(each, dict)]
        if given
        else []
    )
    pools = [
        _pool(each, document.inside("pools", place), f"pools[{place}]", version, problems)
        for place, each in zip(places, given, strict=True)
    ]
    if not pools:
        problems.say("pools", "want at least one")
    names = [pool.name for pool in pools]
    for number, name in enumerate(names):
        if name in names[:number]:
            problems.wrong(f"pools[{number}].name", name, "another pool has this name")
    nodes = _nodes(tree.get("nodes", ()), pools, problems)
    problems.settle()
    return FleetPlan(text.decode(), tuple(pools), nodes)


def _nodes(
    trees: Sequence[Mapping[str, Any]], pools: Sequence[Pool], problems: Problems
) -> dict[str, NodeState]:
    sizes = {pool.name: pool.nodes for pool in pools}
    found: dict[str, NodeState] = {}
    for place, tree in enumerate(trees):
        at, name = f"nodes[{place}]", tree.get("name", "")
        pool, _, number = name.rpartition("-")
        if pool not in sizes:
            problems.wrong(f"{at}.name", name, f"no pool has this node; there are {', '.join(sizes)}")
        elif not number.isdecimal() or str(int(number)) != number or int(number) >= sizes[pool]:
            problems.wrong(
                f"{at}.name", name, f"pool {pool!r} has the nodes {pool}-0 to {pool}-{sizes[pool] - 1}"
            )
        if name in found:
            problems.wrong(f"{at}.name", name, "said already; say all of a node in one place")
        boots = tree.get("boots", 0)
        if boots < 0:
            problems.wrong(f"{at}.boots", boots, "want 0 or more")
        found[name] = NodeState(tree.get("cutOff", False), boots)
    return found


def _pool(tree: Mapping[str, Any], document: YamlDocument, at: str, version: str, problems: Problems) -> Pool:
    name = tree.get("name", "")
    if not name or not all(part.isalnum() for part in name.split("-")) or name != name.lower():
        problems.wrong(f"{at}.name", name, "want a name of small letters, digits and dashes, like blue")
    nodes = tree.get("nodes", 1)
    if not 0 <= nodes <= MOST_NODES:
        problems.wrong(f"{at}.nodes", nodes, f"want a number from 0 to {MOST_NODES}")
    runtime = tree.get("runtime", "sim")
    if runtime not in RUNTIMES:
        problems.wrong(f"{at}.runtime", runtime, f"want one of {', '.join(RUNTIMES)}")
        runtime = "sim"
    chosen = tree.get("version", version)
    gates = tree.get("featureGates", {})
    known = _gates(chosen, gates, at, problems)
    behaviour = USUAL
    try:
        behaviour = parse(tree.get("behaviour", ""))
    except ValueError as error:
        problems.say(f"{at}.behaviour", str(error))
    rollout = tree.get("rollout", {})
    at_once, pause_ns = rollout.get("atOnce", 0), rollout.get("pause", SECOND_NS)
    if at_once < 0:
        problems.wrong(f"{at}.rollout.atOnce", at_once, "want a number of nodes, or 0 for a tenth of them")
    if pause_ns < 0:
        problems.say(f"{at}.rollout.pause", "want no time less than 0s")
    kubelet = tree.get("kubelet", {})
    cpus = _cpus(tree, runtime, at, problems)
    if cpus is not None and cpus.reserved:
        kubelet = {**kubelet, "reservedSystemCPUs": str(cpus.reserved)}
    if kubelet.get("featureGates"):
        problems.say(f"{at}.kubelet.featureGates", f"want {at}.featureGates, which kubelets go by")
    settings = None
    if known is not None:  # else nothing that needs a gate can be judged
        try:
            settings = load_tree(
                kubelet, document.inside("kubelet") if "kubelet" in tree else at, chosen, gates
            )
        except ConfigError as error:
            problems.say(f"{at}.kubelet", str(error))
    made = Pool(
        name=name,
        nodes=nodes,
        version=chosen,
        feature_gates=known.as_flag() if known is not None else "",
        runtime=runtime,
        labels=tree.get("labels", {}),
        taints=tuple(
            Taint(key=each.get("key", ""), value=each.get("value", ""), effect=each.get("effect", ""))
            for each in tree.get("taints", ())
        ),
        zones=tuple(tree.get("zones", ())),
        capacity={key: Quantity.from_json(value) for key, value in tree.get("capacity", {}).items()},
        cpus=cpus,
        kubelet=kubelet,
        drivers=_drivers(tree, runtime, at, problems),
        behaviour=behaviour,
        at_once=at_once,
        pause_ns=pause_ns,
    )
    if settings is not None and settings.cpu_policy == StaticPolicy.name and runtime == "sim":
        try:
            configured_policy(machine_of(made).topology(), settings)
        except ConfigError as error:
            problems.say(f"{at}.kubelet.cpuManagerPolicy", f"no kubelet could start: {error}")
    return made


def _cpus(tree: Mapping[str, Any], runtime: str, at: str, problems: Problems) -> CPUDescription | None:
    """The machine of a pool's nodes. What else the pool says about CPUs must say the same."""
    if "cpu" not in tree:
        return None
    if runtime != "sim":
        problems.say(
            f"{at}.cpu", f"only simulated nodes are described; runtime {runtime} has the CPUs of its machine"
        )
        return None
    try:
        cpus = CPUDescription.read(tree["cpu"])
    except ConfigError as error:
        field, _, what = str(error).partition(": ")
        problems.say(f"{at}.{field}", what)
        return None
    given = tree.get("capacity", {}).get("cpu")
    if given is not None and Quantity.from_json(given) != Quantity.of_int(cpus.cpus):
        problems.wrong(f"{at}.capacity.cpu", given, f"{at}.cpu describes {cpus.cpus}; leave it out")
    reserved = tree.get("kubelet", {}).get("reservedSystemCPUs")
    if cpus.reserved and reserved is not None and reserved != str(cpus.reserved):
        problems.wrong(
            f"{at}.kubelet.reservedSystemCPUs",
            reserved,
            f"{at}.cpu.reserved is {cpus.reserved}; leave one of the two out",
        )
    return cpus


def _drivers(
    tree: Mapping[str, Any], runtime: str, at: str, problems: Problems
) -> tuple[DriverDescription, ...]:
    """The DRA drivers of a pool's nodes."""
    given = tree.get("drivers", ())
    if given and runtime != "sim":
        problems.say(
            f"{at}.drivers",
            f"only those of simulated nodes are described; with runtime {runtime} they register",
        )
    found: dict[str, DriverDescription] = {}
    for place, each in enumerate(given):
        try:
            driver = DriverDescription.read(each)
        except ConfigError as error:
            field, _, what = str(error).partition(": ")
            problems.say(f"{at}.drivers[{place}].{field}", what)
            continue
        if driver.name in found:
            problems.wrong(f"{at}.drivers[{place}].name", driver.name, "another driver has this name")
        found[driver.name] = driver
    return tuple(found.values())


def _gates(version: str, gates: Mapping[str, bool], at: str, problems: Problems) -> Gates | None:
    field = "version"
    try:
        Gates.of(version)
        field = "featureGates"
        return Gates.of_mapping(version, gates)
    except ConfigError as error:
        problems.say(f"{at}.{field}", str(error))
        return None
