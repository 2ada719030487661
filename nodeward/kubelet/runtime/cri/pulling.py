"""Getting a container's image as its policy says, and knowing which images there are.

In goes an image and a policy; out come events for people, and the image's status, or a `NotStarted` with a reason
users know. The list of images is brought up to date when asked, and answers without asking the runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.cri.calls import PULL_SECONDS, Calls, CriError
from nodeward.kubelet.runtime.images import is_well_formed
from nodeward.kubelet.runtime.interface import ImagePulled, ImagePulling
from nodeward.machinery.clock import Clock


class NotStarted(WorldError):
    """A container does not start. `reason` is what its waiting state says."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ImagePuller:
    """The runtime's images."""

    def __init__(
        self, calls: Calls, clock: Clock, tell: Callable[[ImagePulling | ImagePulled], None]
    ) -> None:
        self._call = calls
        self._clock = clock
        self._tell = tell
        self._sizes: dict[str, int] = {}

    def has(self, image: str) -> bool:
        """As far as is known: the list may be some seconds old."""
        return full_name(image) in self._sizes

    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    async def refresh(self) -> None:
        listed = await self._call("ListImages")
        self._sizes = {
            name: image.size for image in listed.images for name in (*image.repo_tags, *image.repo_digests)
        }

    async def ensure(self, uid: str, container: str, image: str, policy: str, sandbox: Any) -> Any:
        """Have the image, and give its status. Raises `NotStarted`."""
        if not is_well_formed(image):
            told = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}"'
            raise NotStarted("InvalidImageName", f"{told}: invalid reference format")
        try:
            status = await self._status(image)
        except CriError as error:
            raise NotStarted("ImageInspectError", f'Failed to inspect image "{image}": {error}') from None
        if status is not None and policy != "Always":
            self._tell(ImagePulled(uid, container, image, True, 0.0, status.size))
            return status
        if policy == "Never":
            text = f'Container image "{image}" is not present with pull policy of Never'
            raise NotStarted("ErrImageNeverPull", text)
        self._tell(ImagePulling(uid, container, image))
        before_ns = self._clock.monotonic_ns()
        try:
            await self._call(
                "PullImage", seconds=PULL_SECONDS, image={"image": image}, sandbox_config=sandbox
            )
            status = await self._status(image)
        except CriError as error:
            raise NotStarted("ErrImagePull", str(error)) from None
        if status is None:
            raise NotStarted("ErrImagePull", f'image "{image}" was pulled and is gone again')
        seconds = (self._clock.monotonic_ns() - before_ns) / SECOND_NS
        self._tell(ImagePulled(uid, container, image, False, seconds, status.size))
        self._sizes[full_name(image)] = status.size
        return status

    async def _status(self, image: str) -> Any | None:
        answer = await self._call("ImageStatus", image={"image": image})
        return answer.image if answer.image.id else None


def full_name(image: str) -> str:
    """An image as runtimes list it: with its registry, and a tag or a digest."""
    first, slash, rest = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = "docker.io", image if slash else f"library/{image}"
    tagged, at, digest = rest.partition("@")
    if at:
        return f"{first}/{tagged.partition(':')[0]}@{digest}"
    return f"{first}/{rest if ':' in rest else f'{rest}:latest'}"
