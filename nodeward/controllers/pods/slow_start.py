"""Slow start: many requests in batches that double, so that a refusal costs few requests.

Called by the workload controllers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError

#: How many are tried first.
FIRST_BATCH: Final = 1


class BatchResult(NamedTuple):
    done: int
    #: The first failure; what came after the batch it was in has not been tried.
    error: ApiError | WorldError | None


async def in_growing_batches(count: int, act: Callable[[], Awaitable[object]]) -> BatchResult:
    """Call `act` `count` times: once, then twice at the same time, then four times, until one fails."""
    done, size = 0, min(count, FIRST_BATCH)
    while size > 0:
        failures = await at_once(size, lambda _: act())
        done += size - len(failures)
        if failures:
            return BatchResult(done, failures[0])
        count -= size
        size = min(2 * size, count)
    return BatchResult(done, None)


async def at_once(count: int, act: Callable[[int], Awaitable[object]]) -> list[ApiError | WorldError]:
    """Run `act(0)` to `act(count - 1)` at the same time; return what the API or the world refused."""
    failures: list[ApiError | WorldError] = []

    async def attempt(number: int) -> None:
        try:
            await act(number)
        except (ApiError, WorldError) as error:
            failures.append(error)

    if count == 1:
        await attempt(0)
    else:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(attempt(number))
    return failures
