"""What a controller wrote last, so that it does not act on an older copy from the informer.

An informer lags behind the answers to our own writes. A look at a copy from before the last write would, for example,
miss what that write counted.

Called by `cronjob.controller` and `job.controller`.
"""

from __future__ import annotations

from nodeward.api.meta import KubeObject


class OwnWrites:
    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def note(self, written: KubeObject) -> None:
        """Record the object as the API answered it."""
        self._versions[written.metadata.uid] = int(written.metadata.resource_version)

    def is_behind(self, copy: KubeObject) -> bool:
        """Tell whether this copy is older than what was written."""
        return int(copy.metadata.resource_version) < self._versions.get(copy.metadata.uid, 0)

    def forget(self, uid: str) -> None:
        self._versions.pop(uid, None)
