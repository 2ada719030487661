"""What a command in a simulated container finds: its variables, its CPUs, and the files of the volumes mounted into it.

Made by `SimulatedMachines` for one command; `shell` runs the command on it. Only volumes have files, because the image
of a simulated container is a name, and the kernel has those that tell a process which CPUs it may use. Errors are
the OSErrors a command meets on a machine.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import Mount
from nodeward.kubelet.volumes.memory_volumes import MemoryVolumeManager

#: The directory through which volumes that follow the API are swapped; its files are the volume's own.
_DATA: Final = "..data"
#: Where a process finds the CPUs it may use.
_CPU_FILES: Final = ("/sys/fs/cgroup/cpuset.cpus", "/sys/fs/cgroup/cpuset.cpus.effective")
_STATUS_FILES: Final = ("/proc/1/status", "/proc/self/status")


class ContainerView:
    """The inside of one container, at one moment."""

    def __init__(
        self,
        pod: Pod,
        env: Mapping[str, str],
        mounts: tuple[Mount, ...],
        volumes: MemoryVolumeManager,
        cpus: CPUSet,
    ) -> None:
        """`cpus`: those the container may use."""
        self.pod: Final = pod
        self.env: Final = env
        self.cpus: Final = cpus
        self._mounts = {_clean(each.target): each for each in mounts}
        self._volumes = volumes

    async def read(self, path: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError or IsADirectoryError."""
        found = await self._own(_clean(path))
        if "" in found:
            return found[""]
        raise IsADirectoryError(path)

    async def names(self, path: str) -> list[str] | None:
        """The names in a directory, sorted; None if the path is a file. Raises FileNotFoundError."""
        path = _clean(path)
        found = await self._own(path)
        if "" in found:
            return None
        return sorted({name.partition("/")[0] for name in (*found, *self._nested(path))})

    async def tree(self, path: str) -> Mapping[str, bytes]:
        """All files below a path by their path relative to it; a file itself has the path ""."""
        path = _clean(path)
        found = await self._own(path)
        for name, mount in self._nested(path).items():
            for inner, data in (await self._files(mount)).items():
                found[posixpath.join(name, inner).rstrip("/")] = data
        return found

    async def write(self, path: str, data: bytes) -> None:
        """Write a file of a volume. Raises PermissionError where nothing can be written, or WorldError."""
        path = _clean(path)
        target = self._target(path)
        mount = self._mounts.get(target) if target is not None else None
        if target is None or mount is None or mount.is_read_only:
            raise PermissionError(path)
        volume, _, sub_path = mount.source.partition("/")
        inside = posixpath.join(sub_path, path[len(target) :].lstrip("/"))
        await self._volumes.write(self.pod, volume, inside, data)

    async def is_directory(self, path: str) -> bool:
        try:
            return await self.names(path) is not None
        except FileNotFoundError:
            return False

    async def _own(self, path: str) -> dict[str, bytes]:
        """Files at or below a path in the volume it lies in, or of the kernel. Raises FileNotFoundError."""
        if path in _CPU_FILES:
            return {"": f"{self.cpus}\n".encode()}
        if path in _STATUS_FILES:
            mask = f"Cpus_allowed:\t{cpu_mask(self.cpus)}\nCpus_allowed_list:\t{self.cpus}\n"
            return {"": mask.encode()}
        target = self._target(path)
        if target is None:
            if not self._nested(path):
                raise FileNotFoundError(path)
            return {}
        files = await self._files(self._mounts[target])
        inside = path[len(target) :].lstrip("/")
        if not inside:
            return files
        if inside in files:
            return {"": files[inside]}
        start = f"{inside}/"
        found = {name[len(start) :]: data for name, data in files.items() if name.startswith(start)}
        if not found and not self._nested(path):
            raise FileNotFoundError(path)
        return found

    def _nested(self, path: str) -> dict[str, Mount]:
        """The mounts below a path, by their path relative to it."""
        prefix = path if path.endswith("/") else f"{path}/"
        return {
            other[len(prefix) :]: mount for other, mount in self._mounts.items() if other.startswith(prefix)
        }

    async def _files(self, mount: Mount) -> dict[str, bytes]:
        volume, _, sub_path = mount.source.partition("/")
        try:
            files = await self._volumes.files(self.pod, volume)
        except WorldError:
            return {}  # what the volume refers to has gone meanwhile
        if not sub_path:
            return dict(files)
        if sub_path in files:
            return {"": files[sub_path]}
        start = f"{sub_path}/"
        return {name[len(start) :]: data for name, data in files.items() if name.startswith(start)}

    def _target(self, path: str) -> str | None:
        """The mount a path lies in: the longest that it begins with."""
        holding = [each for each in self._mounts if path == each or path.startswith(f"{each.rstrip('/')}/")]
        return max(holding, key=len, default=None)


def cpu_mask(cpus: CPUSet) -> str:
    """CPUs as Linux prints a mask: hexadecimal words of 32 bits, the highest first."""
    count = max(cpus.bits.bit_length() + 31, 32) // 32
    words = [cpus.bits >> 32 * number & 0xFFFFFFFF for number in reversed(range(count))]
    return ",".join([f"{words[0]:x}", *(f"{word:08x}" for word in words[1:])])


def _clean(path: str) -> str:
    """An absolute path without dots. Commands begin in the root directory."""
    parts = [part for part in posixpath.join("/", path).split("/") if part != _DATA]
    plain = posixpath.normpath("/".join(parts) or "/")
    return plain if not plain.startswith("//") else plain[1:]
