"""CDI files (Container Device Interface): what a device is to a container: variables, mounts, device nodes.

The process runtime asks when it starts a container with devices; CRI runtimes read the files themselves. Drivers write
one JSON file per vendor and class, or per claim, into one of the directories; later directories win. Hooks and other
edits that a process without namespaces cannot have are left out.

What must stay true: what is read is bounded; a device that is nowhere described stops the start of the container.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import ContainerRequest, Mount

CDI_DIRECTORIES: Final = ("/etc/cdi", "/var/run/cdi")
#: Larger files, and more files in a directory, are not looked at.
MOST_BYTES: Final = 1 << 20
MOST_FILES: Final = 1024


class CDIError(WorldError):
    """A container cannot be given its devices."""


class _Mount(msgspec.Struct, rename="camel"):
    host_path: str = ""
    container_path: str = ""
    options: list[str] = []


class _DeviceNode(msgspec.Struct, rename="camel"):
    path: str = ""
    host_path: str = ""


class _Edits(msgspec.Struct, rename="camel"):
    env: list[str] = []
    mounts: list[_Mount] = []
    device_nodes: list[_DeviceNode] = []


class _Device(msgspec.Struct, rename="camel"):
    name: str = ""
    container_edits: _Edits = msgspec.field(default_factory=_Edits)


class _Spec(msgspec.Struct, rename="camel"):
    kind: str = ""
    devices: list[_Device] = []
    container_edits: _Edits = msgspec.field(default_factory=_Edits)


@dataclass(frozen=True, slots=True)
class DeviceEdits:
    """What devices add to a container."""

    env: Mapping[str, str]
    mounts: tuple[Mount, ...]


def with_devices(
    request: ContainerRequest, directories: Sequence[str | Path] = CDI_DIRECTORIES
) -> ContainerRequest:
    """Return the request of a container with what its devices add to it. Raises `CDIError`."""
    if not request.cdi_ids:
        return request
    edits = device_edits(request.cdi_ids, directories)
    # What the pod says of a variable or a path goes before what a device says.
    taken = {each.target for each in request.mounts}
    mounts = tuple(each for each in edits.mounts if each.target not in taken)
    return replace(request, env={**edits.env, **request.env}, mounts=(*request.mounts, *mounts))


def device_edits(ids: Sequence[str], directories: Sequence[str | Path]) -> DeviceEdits:
    """Return what these devices, `vendor/class=name`, add to a container. Raises `CDIError`."""
    missing = dict.fromkeys(ids)
    found: dict[str, tuple[_Edits, _Edits]] = {}
    for spec in _specs(directories):
        for device in spec.devices:
            name = f"{spec.kind}={device.name}"
            if name in missing:
                found[name] = (spec.container_edits, device.container_edits)
    unknown = [each for each in missing if each not in found]
    if unknown:
        raise CDIError(f"CDI device injection failed: unresolvable CDI devices {', '.join(unknown)}")
    env: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    for name in missing:
        for edits in found[name]:
            for text in edits.env:
                key, _, value = text.partition("=")
                env[key] = value
            for mount in _mounts(name, edits):
                mounts[mount.target] = mount
    return DeviceEdits(env, tuple(mounts.values()))


def _mounts(name: str, edits: _Edits) -> Iterator[Mount]:
    for each in edits.mounts:
        _check(name, each.host_path, each.container_path)
        options = tuple(option for option in each.options if option in ("nosuid", "nodev", "noexec"))
        yield Mount(each.host_path, each.container_path, "ro" in each.options, options)
    for node in edits.device_nodes:
        source = node.host_path or node.path
        _check(name, source, node.path)
        yield Mount(source, node.path)


def _check(name: str, source: str, target: str) -> None:
    if not os.path.isabs(source) or not os.path.isabs(target):
        raise CDIError(f"CDI device injection failed: {name}: {source!r} at {target!r}: want absolute paths")
    if not os.path.lexists(source):
        raise CDIError(f"CDI device injection failed: {name}: {source} does not exist")


def _specs(directories: Sequence[str | Path]) -> Iterator[_Spec]:
    """Return all files that make sense; others are somebody else's, or half written."""
    for directory in directories:
        try:
            names = sorted(name for name in os.listdir(directory) if name.endswith(".json"))
        except OSError:
            continue
        for name in names[:MOST_FILES]:
            path = Path(directory, name)
            try:
                if path.stat().st_size <= MOST_BYTES:
                    yield msgspec.json.decode(path.read_bytes(), type=_Spec)
            except (OSError, msgspec.DecodeError, UnicodeError):
                continue
