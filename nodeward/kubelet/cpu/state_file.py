"""The text of the checkpoint file `cpu_manager_state`, in the versions that Kubernetes writes and reads.

`encode` gives version 4, which also holds what version 2 needs, so that an older kubelet can take over the node.
`decode` reads versions 4, 3 and 2. The CPU manager writes the text to the kubelet's directory and reads it when it
starts. Pure: no file is touched here.

What must stay true: the bytes and checksums are upstream's, so that nodes can move between the two kubelets; a text
whose checksum is wrong is refused and never taken for empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.duration import quote
from nodeward.base.errors import NodewardError
from nodeward.base.fnv import fnv1a_32
from nodeward.kubelet.cpu.cpu_state import CPUState

FILE_NAME: Final = "cpu_manager_state"

_CORRUPT: Final = "checkpoint is corrupted"
_LARGEST_CHECKSUM: Final = 2**64 - 1

_Entries = dict[str, dict[str, str]]


class StateFileError(NodewardError):
    """The text is not a checkpoint of this node; the kubelet must not start with it."""


class _Fields(NamedTuple):
    """The fields of any version, as texts."""

    policy: str
    default: str
    entries: _Entries
    pod_entries: dict[str, str]
    baselines: _Entries
    checksum: int = 0
    data: str = ""
    data_checksum: int = 0


def encode(state: CPUState, policy: str) -> str:
    """Return the text of a state in version 4."""
    entries = _texts(state.entries)
    outer = {"policyName": policy, "defaultCpuSet": str(state.default)} | _unless_empty("entries", entries)
    pods = {uid: {"cpuSet": str(cpus)} for uid, cpus in sorted(state.pod_entries.items())}
    baselines = {
        uid: {name: {"baseline": text} for name, text in each.items()}
        for uid, each in _texts(state.baselines).items()
    }
    data = _json(outer | _unless_empty("podEntries", pods) | _unless_empty("baselines", baselines))
    sums = {
        "checksum": _fnv(_hashed(policy, str(state.default), entries)),
        "data": data,
        "dataChecksum": _fnv(f"(string){data}"),
    }
    return _json(outer | sums)


def decode(
    text: str, policy: str, *, keeps_baselines: bool = False, with_pod_level: bool = False
) -> CPUState:
    """Return the state that a text of any known version holds. Raises `StateFileError`.

    keeps_baselines: feature gate InPlacePodVerticalScalingExclusiveCPUs is on; a text without baselines then counts
    what containers have as promised. with_pod_level: feature gate PodLevelResourceManagers is on.
    """
    fields = _load(_object(text), with_pod_level=with_pod_level)
    if fields.policy != policy:
        raise StateFileError(
            f"configured policy {quote(policy)} differs from state checkpoint policy {quote(fields.policy)}"
        )
    state = CPUState(keeps_baselines=keeps_baselines)
    state.default = _cpus(fields.default, "default CPU set {}")
    state.entries = _parsed(fields.entries, "cpuset")
    if keeps_baselines:
        state.baselines = _parsed(fields.baselines or fields.entries, "Baseline cpuset")
    if with_pod_level:
        state.pod_entries = {uid: _cpus(cpus, "cpuset {}") for uid, cpus in fields.pod_entries.items()}
    return state


def refusal(path: str, why: StateFileError) -> str:
    """Return what the kubelet says when it does not start because of its state file."""
    return (
        f"could not restore state from checkpoint: {why}, please drain this node and delete the CPU manager"
        f" checkpoint file {quote(path)} before restarting Kubelet"
    )


def _load(outer: dict[str, Any], *, with_pod_level: bool) -> _Fields:
    """Return the fields of the newest version whose checksum is right."""
    # A wrong type elsewhere must not hide that this is version 4: it would then load as an older one.
    is_newest = bool(outer.get("data")) or outer.get("datachecksum") not in (None, 0)
    try:
        fields = _fields(outer)
        inner = _fields(_object(fields.data))
        if _fnv(f"(string){fields.data}") != fields.data_checksum:
            raise StateFileError(_CORRUPT)
        return inner
    except StateFileError as error:
        if is_newest:
            raise StateFileError(f"could not load v4 checkpoint: {error}") from None
    fields = _fields(outer)
    old = (fields.policy, fields.default, fields.entries)
    if fields.checksum in _checksums(*old, fields.pod_entries, types=("", "V3")):
        return fields
    # Version 2 knows nothing about pods; a checksum of zero was written before there were checksums.
    types = ("",) if with_pod_level else ("", "V2")
    if fields.checksum and fields.checksum not in _checksums(*old, None, types=types):
        raise StateFileError(_CORRUPT)
    return fields._replace(pod_entries={})


def _object(text: str) -> dict[str, Any]:
    """Return the fields of a JSON object by their names in lower case: upstream ignores case when it reads."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateFileError(f"not JSON: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StateFileError(f"json: cannot unmarshal {_name(value)} into a checkpoint, want an object")
    return {key.lower(): each for key, each in value.items()}


def _fields(outer: Mapping[str, Any]) -> _Fields:
    entries = _map(outer, "entries")
    baselines = _map(outer, "baselines")
    pods = _map(outer, "podentries")
    return _Fields(
        _text(outer.get("policyname"), "policyName"),
        _text(outer.get("defaultcpuset"), "defaultCpuSet"),
        {uid: {name: _text(cpus, "entries") for name, cpus in _map(entries, uid).items()} for uid in entries},
        {uid: _text(_map(pods, uid).get("cpuSet"), "podEntries") for uid in pods},
        {
            uid: {
                name: _text(_map(each, name).get("baseline"), "baselines")
                for each in (_map(baselines, uid),)
                for name in each
            }
            for uid in baselines
        },
        _number(outer, "checksum"),
        _text(outer.get("data"), "data"),
        _number(outer, "datachecksum"),
    )


def _text(value: Any, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise StateFileError(f"json: cannot unmarshal {_name(value)} into field {field}, want a text")
    return value


def _map(outer: Mapping[str, Any], field: str) -> dict[str, Any]:
    value = outer.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StateFileError(f"json: cannot unmarshal {_name(value)} into field {field}, want an object")
    return value


def _number(outer: Mapping[str, Any], field: str) -> int:
    value = outer.get(field)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_CHECKSUM:
        raise StateFileError(f"json: cannot unmarshal {_name(value)} into field {field}, want a checksum")
    return value


def _name(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool"}
    return names.get(type(value), f"number {value}")


def _cpus(text: str, what: str) -> CPUSet:
    try:
        return CPUSet.parse(text)
    except CPUSetError as error:
        raise StateFileError(f"could not parse {what.format(quote(text))}: {error}") from None


def _parsed(entries: _Entries, what: str) -> dict[str, dict[str, CPUSet]]:
    return {
        uid: {
            name: _cpus(text, f"{what} {{}} for container {quote(name)} in pod {quote(uid)}")
            for name, text in each.items()
        }
        for uid, each in entries.items()
    }


def _texts(entries: Mapping[str, Mapping[str, CPUSet]]) -> _Entries:
    return {
        uid: {name: str(cpus) for name, cpus in sorted(each.items())} for uid, each in sorted(entries.items())
    }


def _unless_empty(key: str, value: Mapping[str, object]) -> dict[str, Any]:
    return {key: value} if value else {}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _checksums(
    policy: str, default: str, entries: _Entries, pods: Mapping[str, str] | None, *, types: Iterable[str]
) -> list[int]:
    """Return the checksums that kubelets have written for these fields; `types` are ends of a type's name."""
    return [_fnv(_hashed(policy, default, entries, pods, version)) for version in types]


def _hashed(
    policy: str, default: str, entries: _Entries, pods: Mapping[str, str] | None = None, version: str = ""
) -> str:
    """Return the text that is hashed: a Go value as it prints, with sorted maps."""
    listed = _go_map({uid: _go_map(each) for uid, each in entries.items()})
    pod_part = ""
    if pods is not None:
        shown = {uid: _go_set(_cpus(text, "cpuset {}")) for uid, text in pods.items()}
        pod_part = f" PodEntries:(state.PodCPUAssignments){_go_map(shown)}"
    return (
        f"(*state.CPUManagerCheckpoint{version}){{PolicyName:(string){policy} DefaultCPUSet:(string){default}"
        f" Entries:(map[string]map[string]string){listed}{pod_part} Checksum:(checksum.Checksum)0}}"
    )


def _go_map(value: Mapping[str, str]) -> str:
    return "map[" + " ".join(f"{key}:{each}" for key, each in sorted(value.items())) + "]"


def _go_set(cpus: CPUSet) -> str:
    members = " ".join(f"{cpu}:{{}}" for cpu in cpus)
    return f"{{CPUSet:(cpuset.CPUSet){{elems:(map[int]struct {{}})map[{members}]}}}}"


def _fnv(text: str) -> int:
    return fnv1a_32(text.encode())
