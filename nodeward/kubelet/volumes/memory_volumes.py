"""The volume manager of a simulated node: volumes in memory, whose files are made when somebody reads them.

`mount` refuses what a machine would refuse (a config map, secret or claim that is not there), and keeps nothing. What
is in a volume that follows the API is computed when it is read, from the same payloads that a machine writes, so it is
always up to date; what a command writes into another volume (emptyDir, hostPath, a claim) is kept on the node's
`MemoryDisk`. Pod workers call it as any volume manager; commands in simulated containers read and write through it.

What must stay true: a plain pod costs nothing here; a token is asked for when its file is read, never before; of a
volume with a token only the pod's own fields are checked before that; no volume takes more than `MOST_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.volume import Volume
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.disk import MemoryDisk
from nodeward.kubelet.runtime.interface import Mount
from nodeward.kubelet.volumes.claims import bound_volume
from nodeward.kubelet.volumes.payloads import Sources, follows_the_api, own_fields, payload_of
from nodeward.kubelet.volumes.volume_manager import no_such_volume, sub_path_of, target_of

#: What a volume that can be written to holds at most.
MOST_BYTES: Final = 1 << 20
_NO_FILES: Final = ("", "")


class MemoryVolumeManager:
    """The volumes of one simulated node. `disk` gives the node's disk, which is made when it is first needed."""

    __slots__ = ("_disk", "_sources")

    def __init__(self, sources: Sources, disk: Callable[[], MemoryDisk]) -> None:
        self._sources = sources
        self._disk = disk

    # -- for pod workers

    async def mount(self, pod: Pod) -> str:
        late = [volume for volume in pod.spec.volumes if not _has_token(volume) or _shows_resources(volume)]
        if not late:
            return ""
        self._sources.objects.expect_fresh(pod)
        problems = []
        for volume in late:
            try:
                if _has_token(volume):
                    own_fields(pod, volume, self._sources)
                elif follows_the_api(volume):
                    await payload_of(pod, volume, self._sources)
                elif _is_claimed(volume):
                    await bound_volume(pod, volume, self._sources.objects)
            except WorldError as error:
                problems.append(f"MountVolume.SetUp failed for volume {quote(volume.name)} : {error}")
        if problems:
            raise WorldError("; ".join(problems))
        return ""

    def needs_refresh(self, pod: Pod) -> bool:
        return False

    async def refresh(self, pod: Pod) -> None:
        """Do nothing: files are made when they are read."""

    async def refresh_own_fields(self, pod: Pod) -> None:
        """Do nothing: files are made when they are read."""

    async def mounts(
        self, pod: Pod, container: Container | EphemeralContainer, env: Mapping[str, str]
    ) -> tuple[Mount, ...]:
        """The sources are `<volume>` or `<volume>/<path below it>`."""
        volumes = {each.name: each for each in pod.spec.volumes}
        found = []
        for wanted in container.volume_mounts:
            volume = volumes.get(wanted.name)
            if volume is None:
                raise no_such_volume(container, wanted)
            sub_path = sub_path_of(wanted, env)
            source = f"{volume.name}/{sub_path}" if sub_path else volume.name
            is_read_only = wanted.read_only or follows_the_api(volume)
            found.append(Mount(source, target_of(wanted), is_read_only))
        return tuple(found)

    async def read_file(self, pod: Pod, volume: str, path: str) -> tuple[str, bytes]:
        files = await self.files(pod, volume)
        if path not in files:
            raise FileNotFoundError(path)
        return f"{volume}/{path}", files[path]

    def container_files(
        self, pod: Pod, container: Container | EphemeralContainer, attempt: int
    ) -> tuple[str, str]:
        return _NO_FILES

    async def unmount(self, uid: str) -> None:
        self._sources.tokens.forget(uid)
        self._disk().remove_below(f"pods/{uid}")

    async def forget(self, uid: str) -> None:
        await self.unmount(uid)

    async def keep_only(self, uids: Collection[str]) -> None:
        disk = self._disk()
        for uid in sorted({path.partition("/")[0] for path in disk.below("pods")}):
            if uid not in uids:
                await self.forget(uid)

    # -- for commands in containers

    async def files(self, pod: Pod, volume: str) -> Mapping[str, bytes]:
        """All files of a volume by their path below it, as they are now. Raises WorldError."""
        found = _volume(pod, volume)
        if follows_the_api(found):
            payload = await payload_of(pod, found, self._sources)
            return {path: content.data for path, content in payload.items()}
        return self._disk().below(await self._directory(pod, found))

    async def write(self, pod: Pod, volume: str, path: str, data: bytes) -> None:
        """Write a file of a volume that can be written to. Raises WorldError when the volume is full."""
        directory = await self._directory(pod, _volume(pod, volume))
        disk = self._disk()
        others = sum(len(each) for name, each in disk.below(directory).items() if name != path)
        if others + len(data) > MOST_BYTES:
            raise WorldError("No space left on device")
        disk.write(f"{directory}/{path}", data)

    async def _directory(self, pod: Pod, volume: Volume) -> str:
        """Where the node's disk has the files of a volume."""
        if volume.host_path is not None:
            return f"host/{volume.host_path.path.strip('/')}"
        if _is_claimed(volume):
            bound, _ = await bound_volume(pod, volume, self._sources.objects)
            return f"persistent/{bound.metadata.name}"
        return f"pods/{pod.metadata.uid}/{volume.name}"


def _volume(pod: Pod, name: str) -> Volume:
    return next(each for each in pod.spec.volumes if each.name == name)


def _is_claimed(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None


def _has_token(volume: Volume) -> bool:
    """Whether the volume holds a service account's token: every plain pod has one such volume."""
    return volume.projected is not None and any(
        each.service_account_token is not None for each in volume.projected.sources
    )


def _shows_resources(volume: Volume) -> bool:
    """Whether the volume projects resources of containers, which a kubelet may not know."""
    return volume.projected is not None and any(
        item.resource_field_ref is not None
        for each in volume.projected.sources
        if each.downward_api is not None
        for item in each.downward_api.items
    )
