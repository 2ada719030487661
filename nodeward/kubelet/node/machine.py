"""The machine a real node stands on: how large it is, what it runs, and which boot this is.

Read once, at start, from what Linux tells anybody; what cannot be read is left empty, and what must not be empty has
a modest default.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeward.base.cpuset import CPUSet
from nodeward.base.quantity import Quantity
from nodeward.kubelet.cpu.topology import CPUTopology
from nodeward.kubelet.node.machine_cpus import SYSTEM, read_topology

_GO_NAMES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_LEAST_MEMORY: Final = 1 << 30
_UNIT: Final = 1024


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine at one boot."""

    capacity: Mapping[str, Quantity]
    architecture: str
    kernel_version: str
    os_image: str
    machine_id: str
    system_uuid: str
    boot_id: str
    #: None: unknown, and the CPU manager's static policy cannot start
    cpus: CPUTopology | None = None


def this_machine(root: Path) -> Machine:
    """The machine this process runs on; `root` is where the node keeps its pods, on the disk that counts."""
    known = platform.uname()
    cpus = read_topology(SYSTEM, CPUSet(os.sched_getaffinity(0)))
    return Machine(
        capacity={
            "cpu": Quantity.of_int(cpus.cpu_count),
            "memory": Quantity.of_int(_memory()),
            "ephemeral-storage": Quantity.of_int(_disk(root)),
        },
        architecture=_GO_NAMES.get(known.machine, known.machine),
        kernel_version=known.release,
        os_image=_os_image(),
        machine_id=_text("/etc/machine-id"),
        system_uuid=_text("/sys/class/dmi/id/product_uuid") or _text("/etc/machine-id"),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        cpus=cpus,
    )


def _memory() -> int:
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * _UNIT
    return _LEAST_MEMORY


def _disk(root: Path) -> int:
    there = next(each for each in (root, *root.absolute().parents) if each.exists())
    return shutil.disk_usage(there).total


def _os_image() -> str:
    for line in _text("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
