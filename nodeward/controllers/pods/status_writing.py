"""Writing what was counted into an owner's status, also when the copy it was counted for is old.

Called by the daemon set controller, `replicaset` and the stateful set controller.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.machinery.client import Client

W = TypeVar("W", bound=KubeObject)

_TRIES: Final = 2


async def write_status(client: Client, owner: W, status: Any) -> W | None:
    """Return the owner as stored, or None if it is another one by now."""
    latest = owner
    for tries_left in reversed(range(_TRIES)):
        try:
            return await client.update(_with(latest, status), subresource="status")
        except ApiError as refusal:
            if refusal.reason != "Conflict" or not tries_left:
                raise
        # The copy was old. What was counted is not: once more on the newest object.
        latest = await client.get(type(owner), owner.metadata.name, owner.metadata.namespace)
        if latest.metadata.uid != owner.metadata.uid:
            break
    return None


def _with(owner: W, status: Any) -> W:
    changed: dict[str, Any] = {"status": status}
    return msgspec.structs.replace(owner, **changed)
