"""All volumes of a node's pods: made, kept up to date, handed to containers, and taken away again.

Each volume of a pod has a directory `pods/<uid>/volumes/kubernetes.io~<plugin>/<name>` below the node's root, as
upstream's; paths of the node itself stay where they are. What must stay true: a volume that cannot be made is told
with all the others that cannot; nothing of a hostPath is ever deleted; files are written by a thread, so that a slow
disk does not hold up the node.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.volume import Volume
from nodeward.api.core_v1.volume_sources import EmptyDirVolumeSource
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.volumes.atomic_writer import read_payload, write_payload
from nodeward.kubelet.volumes.claims import claimed_path
from nodeward.kubelet.volumes.host_path import host_path
from nodeward.kubelet.volumes.payloads import Sources, follows_the_api, own_fields, payload_of
from nodeward.machinery.clock import Clock

_OPEN: Final = 0o777


class MountedVolume:
    """Where a volume lies, and whether containers may only read it."""

    __slots__ = ("is_read_only", "path")

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.path: Final = path
        self.is_read_only: Final = is_read_only


class PodVolumes:
    """The volumes of one node, below `root` (the node's own directory)."""

    def __init__(self, root: Path, clock: Clock, sources: Sources) -> None:
        self._root = root
        self._clock = clock
        self._sources = sources
        self._placed: dict[str, dict[str, MountedVolume]] = {}

    def directory(self, uid: str) -> Path:
        """All of one pod but its logs."""
        return self._root / "pods" / uid

    async def set_up(self, pod: Pod) -> None:
        """Make every volume. Raises `WorldError` with all that is wrong."""
        uid = pod.metadata.uid
        self._sources.objects.expect_fresh(pod)
        (self.directory(uid) / "volumes").mkdir(parents=True, exist_ok=True, mode=0o750)
        (self.directory(uid) / "containers").mkdir(parents=True, exist_ok=True, mode=0o750)
        placed: dict[str, MountedVolume] = {}
        problems = []
        for volume in pod.spec.volumes:
            try:
                placed[volume.name] = await self._place(pod, volume)
            except (WorldError, OSError) as error:
                problems.append(f"MountVolume.SetUp failed for volume {quote(volume.name)} : {error}")
        if problems:
            raise WorldError("; ".join(problems))
        self._placed[uid] = placed

    async def refresh(self, pod: Pod) -> None:
        """Write anew what the API says otherwise by now. What is missing now stays as it was."""
        uid = pod.metadata.uid
        if uid not in self._placed:
            if self.directory(uid).is_dir():
                # From before a restart of the agent.
                await self.set_up(pod)
            return
        problems = []
        for volume in pod.spec.volumes:
            if follows_the_api(volume):
                try:
                    await self._fill(pod, volume)
                except (WorldError, OSError) as error:
                    problems.append(f"MountVolume.SetUp failed for volume {quote(volume.name)} : {error}")
        if problems:
            raise WorldError("; ".join(problems))

    async def refresh_own_fields(self, pod: Pod) -> None:
        """Write anew what shows the pod's own fields. Files beside them stay, so that the API need not be there."""
        now_ns, group = self._clock.now_ns(), _group(pod)
        wanted = {volume.name: own_fields(pod, volume, self._sources) for volume in pod.spec.volumes}
        targets = {
            self._at(pod, _plugin(volume), volume.name): wanted[volume.name]
            for volume in pod.spec.volumes
            if wanted[volume.name]
        }

        def write() -> None:
            for target, files in targets.items():
                # A volume that is not mounted yet is written when it is mounted.
                if (present := read_payload(target)) is not None:
                    write_payload(target, {**present, **files}, now_ns, group=group)

        if targets:
            await asyncio.to_thread(write)

    async def placed(self, pod: Pod) -> dict[str, MountedVolume]:
        """Where the volumes lie; after a restart of the node's agent they are looked at again."""
        uid = pod.metadata.uid
        if uid not in self._placed:
            await self.set_up(pod)
        return self._placed[uid]

    async def tear_down(self, uid: str) -> None:
        """Take away what was made for a pod."""
        self._placed.pop(uid, None)
        self._sources.tokens.forget(uid)
        await asyncio.to_thread(lambda: shutil.rmtree(self.directory(uid), ignore_errors=True))

    # -- one volume

    async def _place(self, pod: Pod, volume: Volume) -> MountedVolume:
        if volume.host_path is not None:
            wanted = volume.host_path
            return MountedVolume(await asyncio.to_thread(lambda: host_path(wanted.path, wanted.type)))
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            path, is_read_only = await claimed_path(pod, volume, self._sources.objects)
            return MountedVolume(path, is_read_only=is_read_only)
        if volume.empty_dir is not None:
            target = self._at(pod, "empty-dir", volume.name)
            source = volume.empty_dir
            await asyncio.to_thread(lambda: _empty_directory(target, source, _group(pod)))
            return MountedVolume(target)
        if follows_the_api(volume):
            return MountedVolume(await self._fill(pod, volume), is_read_only=True)
        if volume.csi is not None:
            raise WorldError(
                f"kubernetes.io/csi: driver {volume.csi.driver} not found in the list of registered CSI drivers: "
                "this kubelet has none"
            )
        raise WorldError("no volume plugin matched: this kind of volume is not supported by this kubelet")

    async def _fill(self, pod: Pod, volume: Volume) -> Path:
        payload = await payload_of(pod, volume, self._sources)
        target = self._at(pod, _plugin(volume), volume.name)
        group, now_ns = _group(pod), self._clock.now_ns()

        def write() -> None:
            target.mkdir(parents=True, exist_ok=True)
            target.chmod(0o755)
            write_payload(target, payload, now_ns, group=group)

        await asyncio.to_thread(write)
        return target

    def _at(self, pod: Pod, plugin: str, name: str) -> Path:
        return self.directory(pod.metadata.uid) / "volumes" / f"kubernetes.io~{plugin}" / name


def _plugin(volume: Volume) -> str:
    if volume.config_map is not None:
        return "configmap"
    if volume.secret is not None:
        return "secret"
    return "downward-api" if volume.downward_api is not None else "projected"


def _group(pod: Pod) -> int | None:
    context = pod.spec.security_context
    return context.fs_group if context is not None else None


def _empty_directory(target: Path, source: EmptyDirVolumeSource, group: int | None) -> None:
    """Open to everybody in the pod. What is in it from before a restart stays.

    A medium of memory is a directory as well: a node without rights to mount has no other. What the size limit says is
    kept by whoever watches the disk.
    """
    if source.medium not in ("", "Memory"):
        raise WorldError(f"unknown storage medium {quote(source.medium)}")
    target.mkdir(parents=True, exist_ok=True)
    if group is not None and os.geteuid() == 0:
        os.chown(target, -1, group)
        target.chmod((source.mode or _OPEN) | 0o2070)
    else:
        target.chmod(source.mode or _OPEN)
