"""How long tests wait for real processes, threads and sockets, and how they ask again and again.

Only a test that fails waits so long. The machine may be busy with other tests, so nothing shorter is a limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from nodeward.api.errors import ApiError
from nodeward.machinery.clock import Clock
from nodeward.machinery.transport import ConnectionFailed

#: What takes longer is stuck.
PATIENCE_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 0.05

T = TypeVar("T")


async def until(clock: Clock, ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool], what: str) -> T:
    """Ask until the answer holds, also of a server that is away for a while; return that answer."""
    answer: T | None = None
    try:
        async with clock.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    answer = await ask()
                except (ConnectionFailed, ApiError) as error:
                    if isinstance(error, ApiError) and error.code < 500 and error.code != 429:
                        raise
                else:
                    if holds(answer):
                        return answer
                await clock.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise AssertionError(f"{what}: not so after {PATIENCE_SECONDS:.0f} s; last seen: {answer}") from None
