"""Where plugins are let loose: whatever one of them raises costs one attempt, not the scheduler.

The only room of the scheduler that catches everything. What was raised on purpose says all in its text; of anything
else the place matters, and is logged. A broken invariant is not caught: the scheduler must stop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from nodeward.base.errors import NodewardError
from nodeward.base.invariant import InvariantBroken

LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")


def guarded(doing: str, about: str, call: Callable[..., object], *arguments: Any) -> str | None:
    """Call; None if that went well, else what went wrong. `doing` and `about` are for the log."""
    try:
        call(*arguments)
    except InvariantBroken:
        raise
    except Exception as error:
        return _told(doing, about, error)
    return None


async def guarded_wait(doing: str, about: str, awaited: Awaitable[T]) -> T | str:
    """Wait; what came of it, or, as text, what went wrong."""
    try:
        return await awaited
    except InvariantBroken:
        raise
    except Exception as error:
        return _told(doing, about, error)


def _told(doing: str, about: str, error: Exception) -> str:
    trace = None if isinstance(error, NodewardError) else error
    LOG.error("%s pod %s: %s", doing, about, error or type(error).__name__, exc_info=trace)
    return str(error) or type(error).__name__
