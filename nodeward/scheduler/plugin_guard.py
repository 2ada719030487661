"""Calls plugins so that an exception in one of them costs one attempt, not the scheduler.

Used by the engine, the binder and the scheduler; the only module of the scheduler that catches every exception. Errors
of this project are logged with their text, any other exception with its traceback. `InvariantBroken` is not caught: the
scheduler must stop.
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
    """Call; return None, or the text of the exception that was raised. `doing` and `about` are for the log."""
    try:
        call(*arguments)
    except InvariantBroken:
        raise
    except Exception as error:
        return _told(doing, about, error)
    return None


async def guarded_wait(doing: str, about: str, awaited: Awaitable[T]) -> T | str:
    """Await; return the result, or the text of the exception that was raised."""
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
