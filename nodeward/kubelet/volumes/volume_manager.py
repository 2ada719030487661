"""The volume manager of a node: mounts the volumes of pods, keeps them up to date, and takes them away again.

Pod workers call it: `mount` before a pod's sandbox starts, `mounts` when a container's request is built, `refresh` as
time passes, `unmount` when nothing of the pod runs any more, `forget` when the API does not know the pod either.
`DiskVolumeManager` is the one of a machine; simulated nodes have `memory_volumes.MemoryVolumeManager`.

What must stay true: of one pod, volumes are mounted, refreshed and unmounted by one at a time. A pod's files lie below
the node's root directory as upstream lays them out: `pods/<uid>/volumes/...`, `pods/<uid>/containers/<name>/<attempt>`
(termination messages); logs in `<logs>/<namespace>_<name>_<uid>/<container>/<attempt>.log`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from nodeward.api.core_v1.container import Container, EphemeralContainer, VolumeMount
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.config_error import CONFIG_ERROR, NotConfigured
from nodeward.kubelet.expansion import expand_with
from nodeward.kubelet.log_files import container_log_path, pod_log_directory
from nodeward.kubelet.runtime.interface import Mount
from nodeward.kubelet.volumes.payloads import Sources, follows_the_api
from nodeward.kubelet.volumes.pod_volumes import MountedVolume, PodVolumes
from nodeward.kubelet.volumes.sub_paths import Escapes, check_sub_path, resolve_sub_path
from nodeward.machinery.clock import Clock


class VolumeManager(Protocol):
    """The volumes of one node's pods."""

    async def mount(self, pod: Pod) -> str:
        """Mount every volume and return the directory for logs. Raises WorldError: FailedMount, tried again."""
        ...

    def needs_refresh(self, pod: Pod) -> bool:
        """Whether files of the pod must be written again when the API changes."""
        ...

    async def refresh(self, pod: Pod) -> None:
        """Bring volumes that follow the API (config maps, secrets, the pod's own fields) up to date."""
        ...

    async def refresh_own_fields(self, pod: Pod) -> None:
        """Write files that show the pod's own fields (downward API) at once. Raises OSError or WorldError."""
        ...

    async def mounts(
        self, pod: Pod, container: Container | EphemeralContainer, env: Mapping[str, str]
    ) -> tuple[Mount, ...]:
        """What a container sees of the pod's volumes. Raises `NotConfigured`."""
        ...

    async def read_file(self, pod: Pod, volume: str, path: str) -> tuple[str, bytes]:
        """A file of a volume: its name for people, and its bytes. Raises OSError when it cannot be read."""
        ...

    def container_files(
        self, pod: Pod, container: Container | EphemeralContainer, attempt: int
    ) -> tuple[str, str]:
        """Make the files of one instance: its log and its termination message; "" for one it has not."""
        ...

    async def unmount(self, uid: str) -> None:
        """Take volumes and directories away when nothing of the pod runs; logs stay until `forget`."""
        ...

    async def forget(self, uid: str) -> None:
        """Take everything of a pod away that the API does not know any more."""
        ...

    async def keep_only(self, uids: Collection[str]) -> None:
        """Take everything away of pods that are not in `uids`, after a restart."""
        ...


class DiskVolumeManager:
    """Volumes as files of this machine. `root` is the node's own directory."""

    def __init__(self, root: Path, logs: Path, clock: Clock, sources: Sources) -> None:
        self._logs = logs
        self._volumes = PodVolumes(root, clock, sources)
        self._locks: dict[str, asyncio.Lock] = {}

    async def mount(self, pod: Pod) -> str:
        directory = pod_log_directory(str(self._logs), pod)
        async with self._lock(pod.metadata.uid):
            try:
                await asyncio.to_thread(os.makedirs, directory, 0o755, exist_ok=True)
                await self._volumes.set_up(pod)
            except OSError as error:
                raise WorldError(f"cannot make the directories of the pod: {error}") from error
        return directory

    def needs_refresh(self, pod: Pod) -> bool:
        return any(map(follows_the_api, pod.spec.volumes))

    async def refresh(self, pod: Pod) -> None:
        async with self._lock(pod.metadata.uid):
            await self._volumes.refresh(pod)

    async def refresh_own_fields(self, pod: Pod) -> None:
        async with self._lock(pod.metadata.uid):
            await self._volumes.refresh_own_fields(pod)

    async def mounts(
        self, pod: Pod, container: Container | EphemeralContainer, env: Mapping[str, str]
    ) -> tuple[Mount, ...]:
        placed = await self._placed(pod)
        return tuple(_mount(container, each, placed, env) for each in container.volume_mounts)

    async def read_file(self, pod: Pod, volume: str, path: str) -> tuple[str, bytes]:
        file = resolve_sub_path((await self._placed(pod))[volume].path, path, make=False)
        return str(file), file.read_bytes()

    def container_files(
        self, pod: Pod, container: Container | EphemeralContainer, attempt: int
    ) -> tuple[str, str]:
        log = container_log_path(pod_log_directory(str(self._logs), pod), container.name, attempt)
        Path(log).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        if not container.termination_message_path:
            return log, ""
        message = self._volumes.directory(pod.metadata.uid) / "containers" / container.name / str(attempt)
        message.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        message.write_bytes(b"")
        # Anybody in the container may write to it.
        message.chmod(0o666)
        return log, str(message)

    async def unmount(self, uid: str) -> None:
        async with self._lock(uid):
            await self._volumes.tear_down(uid)

    async def forget(self, uid: str) -> None:
        await self.unmount(uid)
        self._locks.pop(uid, None)

        def remove_logs() -> None:
            for directory in self._logs.glob(f"*_{uid}"):
                shutil.rmtree(directory, ignore_errors=True)

        await asyncio.to_thread(remove_logs)

    async def keep_only(self, uids: Collection[str]) -> None:
        for uid in await asyncio.to_thread(self._present):
            if uid not in uids:
                await self.forget(uid)

    def _present(self) -> list[str]:
        """The pods that have anything on the disk."""
        directories = {each.name for each in self._volumes.directory("").glob("*")}
        return sorted(directories | {each.name.rpartition("_")[2] for each in self._logs.glob("*_*_*")})

    async def _placed(self, pod: Pod) -> Mapping[str, MountedVolume]:
        try:
            async with self._lock(pod.metadata.uid):
                return await self._volumes.placed(pod)
        except (WorldError, OSError) as error:
            raise NotConfigured(CONFIG_ERROR, str(error)) from error

    def _lock(self, uid: str) -> asyncio.Lock:
        return self._locks.setdefault(uid, asyncio.Lock())


def _mount(
    container: Container | EphemeralContainer,
    wanted: VolumeMount,
    placed: Mapping[str, MountedVolume],
    env: Mapping[str, str],
) -> Mount:
    volume = placed.get(wanted.name)
    if volume is None:
        raise no_such_volume(container, wanted)
    source = volume.path
    sub_path = sub_path_of(wanted, env)
    if sub_path:
        try:
            source = resolve_sub_path(volume.path, sub_path)
        except Escapes as error:
            # No more than that: the rest would tell about the node's own files.
            text = (
                f"failed to prepare subPath for volumeMount {quote(wanted.name)} "
                f"of container {quote(container.name)}"
            )
            raise NotConfigured(CONFIG_ERROR, text) from error
    is_read_only = wanted.read_only or volume.is_read_only
    return Mount(str(source), target_of(wanted), is_read_only, tuple(wanted.bind_mount_options))


def no_such_volume(container: Container | EphemeralContainer, wanted: VolumeMount) -> NotConfigured:
    """The error of a mount that names no volume of the pod."""
    text = f"cannot find volume {quote(wanted.name)} to mount into container {quote(container.name)}"
    return NotConfigured(CONFIG_ERROR, text)


def target_of(wanted: VolumeMount) -> str:
    """The absolute path of a mount in the container."""
    return wanted.mount_path if wanted.mount_path.startswith("/") else f"/{wanted.mount_path}"


def sub_path_of(wanted: VolumeMount, env: Mapping[str, str]) -> str:
    """The path below the volume that is mounted, "" for all of it. Raises `NotConfigured`."""
    sub_path = wanted.sub_path
    if wanted.sub_path_expr:
        sub_path = _expanded(wanted.sub_path_expr, env)
    if sub_path:
        try:
            check_sub_path(sub_path)
        except Escapes as error:
            raise NotConfigured(CONFIG_ERROR, str(error)) from error
    return sub_path


def _expanded(expression: str, env: Mapping[str, str]) -> str:
    missing: list[str] = []

    def value_of(name: str) -> str | None:
        if name not in env:
            missing.append(name)
        return env.get(name)

    text = expand_with(expression, value_of)
    if missing:
        raise NotConfigured(CONFIG_ERROR, f"missing value for {quote(missing[0])}")
    return text
