"""Why a container cannot be configured: what its waiting state says, as users know it.

Raised while a container's environment and mounts are worked out; the pod's worker shows it and tries again.
"""

from __future__ import annotations

from typing import Final

from nodeward.base.errors import WorldError

CONFIG_ERROR: Final = "CreateContainerConfigError"


class NotConfigured(WorldError):
    """Something a container needs to start is missing. `reason` is the reason of its waiting state."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
