"""Questions asked again and again, of a server that may be away, until the answer is yes.

Only a test that fails waits as long as its patience: the machine may be busy.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nodeward.api.errors import ApiError
from nodeward.machinery.clock import Clock
from nodeward.machinery.transport import ConnectionFailed

PATIENCE_SECONDS = 90.0
LOOK_SECONDS = 0.05

T = TypeVar("T")


async def until(clock: Clock, ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool], what: str) -> T:
    """The first answer of which something is true."""
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


def with_environment(text: str) -> list[int]:
    """All living processes that were started with something in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environ = file.read()
        except OSError:
            continue  # gone, or not ours
        if text.encode() in environ.split(b"\0"):
            found.append(int(name))
    return found
