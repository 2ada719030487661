"""Deleting pods under expectations: a failed deletion is no longer expected.

Called by the daemon set controller, `replicaset` and the stateful set controller; calls `expectations` and
`slow_start`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.controllers.pods.expectations import Expectations
from nodeward.controllers.pods.slow_start import at_once


async def delete_expected(
    expectations: Expectations[str], key: str, doomed: Sequence[Pod], delete: Callable[[Pod], Awaitable[bool]]
) -> ApiError | WorldError | None:
    """Delete them all at once; `delete` says whether the pod is on its way. The first failure, if there was one."""

    async def one(number: int) -> None:
        is_under_way = False
        try:
            is_under_way = await delete(doomed[number])
        finally:
            if not is_under_way:
                expectations.deletion_seen(key, doomed[number].metadata.uid)

    failures = await at_once(len(doomed), one)
    return failures[0] if failures else None
