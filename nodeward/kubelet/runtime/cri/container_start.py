"""Starting one container: image, creation, start; given up when somebody asks for it on the way.

In goes a `ContainerRequest` with its sandbox; out comes the id of a container that has started, or a `NotStarted` with
a reason users know, and then nothing of the container is left.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from nodeward.kubelet.runtime.cri.calls import Calls, CriError
from nodeward.kubelet.runtime.cri.container_config import container_config, must_not_be_root, runs_as
from nodeward.kubelet.runtime.cri.pulling import ImagePuller, NotStarted
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings, sandbox_config
from nodeward.kubelet.runtime.interface import ContainerRequest

LOG: Final = logging.getLogger(__name__)

_T = TypeVar("_T")
#: A name that an earlier try has left behind, and which container has it.
_RESERVED: Final = re.compile(r'is reserved for "([0-9a-f]+)"')


class Start:
    """One start under way."""

    def __init__(self, attempt: int) -> None:
        self.attempt: Final = attempt
        self._stopped = asyncio.Event()
        #: how long it may go on once it runs after all; None: nobody wants it to stop
        self.grace_seconds: float | None = None

    def stop(self, grace_seconds: float) -> None:
        if self.grace_seconds is None or grace_seconds < self.grace_seconds:
            self.grace_seconds = grace_seconds
        self._stopped.set()

    def check(self) -> None:
        if self._stopped.is_set():
            raise NotStarted("RunContainerError", "stopped before it started")

    async def unless_stopped(self, work: Awaitable[_T]) -> _T:
        """Wait for something that may take long. Raises `NotStarted` as soon as the start is given up."""
        doing = asyncio.ensure_future(work)
        waiting = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((doing, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                self.check()
            return doing.result()
        finally:
            for each in (doing, waiting):
                each.cancel()
            await asyncio.gather(doing, waiting, return_exceptions=True)


class Starter:
    """Starts containers."""

    def __init__(self, calls: Calls, images: ImagePuller, settings: NodeSettings) -> None:
        self._call = calls
        self._images = images
        self._settings = settings

    async def run(
        self,
        request: ContainerRequest,
        start: Start,
        sandbox_id: str,
        *,
        is_on_host_network: bool,
        target_id: str = "",
    ) -> tuple[str, str]:
        """Have it started; gives its id and its image's. Raises `NotStarted`."""
        pod, container = request.pod, request.container
        sandbox = sandbox_config(
            pod,
            self._settings,
            attempt=0,
            log_directory=os.path.dirname(request.log_path),
            is_on_host_network=is_on_host_network,
        )
        image = await start.unless_stopped(
            self._images.ensure(
                pod.metadata.uid, container.name, container.image, container.image_pull_policy, sandbox
            )
        )
        start.check()
        _verify_user(request, image)
        try:
            _prepare_files(request)
        except OSError as error:
            raise NotStarted("CreateContainerError", str(error)) from None
        config = container_config(
            request, self._settings, is_on_host_network=is_on_host_network, target_id=target_id
        )
        try:
            container_id = await self._create(sandbox_id, config, sandbox)
        except CriError as error:
            raise NotStarted("CreateContainerError", error.details) from None
        try:
            start.check()
            await self._call("StartContainer", container_id=container_id)
        except CriError as error:
            await self._remove(container_id)
            raise NotStarted("RunContainerError", error.details) from None
        except NotStarted:
            await self._remove(container_id)
            raise
        return container_id, image.id

    async def _create(self, sandbox_id: str, config: Any, sandbox: Any) -> str:
        fields = {"pod_sandbox_id": sandbox_id, "config": config, "sandbox_config": sandbox}
        try:
            answer = await self._call("CreateContainer", **fields)
        except CriError as error:
            # A try of which the answer was lost has left a container of this name, which nobody knows of.
            leftover = _RESERVED.search(error.details)
            if leftover is None:
                raise
            await self._remove(leftover[1])
            answer = await self._call("CreateContainer", **fields)
        return str(answer.container_id)

    async def _remove(self, container_id: str) -> None:
        try:
            await self._call("RemoveContainer", container_id=container_id)
        except CriError as error:
            LOG.warning("container %s could not be removed: %s", container_id, error)


def _prepare_files(request: ContainerRequest) -> None:
    """The runtime wants the directory of the log and the file of the last words to be there.

    It would make a directory for a mount whose source is not there, and hide that something is wrong.
    """
    for mount in request.mounts:
        if not os.path.exists(mount.source):
            text = f'mount of "{mount.source}" at "{mount.target}": no such file or directory'
            raise NotStarted("CreateContainerError", text)
    if request.log_path:
        os.makedirs(os.path.dirname(request.log_path), 0o755, exist_ok=True)
    if request.termination_log:
        os.makedirs(os.path.dirname(request.termination_log), 0o755, exist_ok=True)
        handle = os.open(request.termination_log, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        # Whoever the container runs as may write it, whatever the agent's umask is.
        os.fchmod(handle, 0o666)
        os.close(handle)


def _verify_user(request: ContainerRequest, image: Any) -> None:
    """A container that must not be root is not started as root, nor as somebody who might be."""
    pod, container = request.pod, request.container
    if not must_not_be_root(pod, container):
        return
    where = f'(pod: "{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})", container: {container.name})'
    user = runs_as(pod, container)
    if user is not None:
        if user == 0:
            text = f"container's runAsUser breaks non-root policy {where}"
            raise NotStarted("CreateContainerConfigError", text)
        return
    if image.username:
        text = (
            f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
            f"cannot verify user is non-root {where}"
        )
        raise NotStarted("CreateContainerConfigError", text)
    if image.uid.value == 0:
        text = f"container has runAsNonRoot and image will run as root {where}"
        raise NotStarted("CreateContainerConfigError", text)
