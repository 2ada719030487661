"""Names of images: which are well formed, and which no runtime can ever get.

For runtimes without a registry the image is only a name. So that its failures can be seen there too, names under the
top-level domain `.invalid`, which is reserved for never resolving (RFC 2606), cannot be pulled: `example.invalid/app`
fails on every runtime, real ones included.
"""

from __future__ import annotations

import re
from typing import Final

_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.?)+(?::[0-9]+)?|\[[a-fA-F0-9:]+\](?::[0-9]+)?"
_REFERENCE: Final = re.compile(
    rf"(?:(?:{_HOST})/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{{32,}})?",
    re.ASCII,
)
_LONGEST: Final = 255
_UNREACHABLE: Final = re.compile(r"[^/]*\.invalid(?::[0-9]+)?/")


def is_well_formed(image: str) -> bool:
    """Whether a runtime could look for an image of this name."""
    return len(image) <= _LONGEST and _REFERENCE.fullmatch(image) is not None


def is_reachable(image: str) -> bool:
    """False for names whose registry cannot exist."""
    return _UNREACHABLE.match(image) is None


def why_missing(image: str, pull_policy: str) -> tuple[str, str] | None:
    """Reason and message, as users know them, when a runtime without a registry cannot have the image."""
    if not is_well_formed(image):
        told = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}"'
        return "InvalidImageName", f"{told}: invalid reference format"
    if is_reachable(image):
        return None
    if pull_policy == "Never":
        return "ErrImageNeverPull", f'Container image "{image}" is not present with pull policy of Never'
    host = image.partition("/")[0]
    resolving = f'failed to resolve reference "{image}": lookup {host}: no such host'
    return "ErrImagePull", f'failed to pull and unpack image "{image}": {resolving}'
